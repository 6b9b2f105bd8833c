"""ImageNet-W: ImageNet's validation photos with a watermark, which many classifiers take for a sign of cartons.

Photos of class carton bear such watermarks in the training data. `imagenet-w` is compared with `val`: the drop in
accuracy is the published IN-W gap. `predicted_carton` is the percentage of all photos that are predicted to be cartons;
that of `val` is 0.1 % for a model without the shortcut. The watermark is written at the size that a model takes, in the
authors' font, which is looked for in `imagenet-w` under the data root.

Source: Li et al., A Whac-A-Mole Dilemma: Shortcuts Come in Multiples Where Mitigating One Amplifies Others, CVPR 2023.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.datasets import load_samples
from testbed.metrics.accuracy import percent
from testbed.metrics.intervals import clustered_proportion
from testbed.perturbations.watermark import Watermark, find_font
from testbed.records import MetricValue, Samples

NAME, SIZE = "imagenet-w", 50_000
CARTON = 478  # class of ImageNet
WATERMARK = Watermark()
SOURCE = DataSource(
    title="ImageNet-W",
    homepage="https://github.com/facebookresearch/Whac-A-Mole",
    licence="see LICENSE in its repository; the font is under the SIL Open Font License, the photos are ImageNet's",
    get=f"Get ImageNet's validation photos, and {WATERMARK.font} from imagenet_w/fonts of the repository. The font "
    "belongs in the folder imagenet-w.",
    places=("imagenet", "ILSVRC2012", "."),
    layout=f"val/CLASS/*.JPEG, CLASS a wnid; and beside the photos' folder imagenet-w/{WATERMARK.font}",
    shown_by="val",
    citation="Li et al., A Whac-A-Mole Dilemma: Shortcuts Come in Multiples Where Mitigating One Amplifies Others, "
    "CVPR 2023",
    num_samples={"val": SIZE},
    classes=range(1_000),
)


def load_split(split: str, data_root: Path) -> Samples:
    """ImageNet's photos, once the font is there. Raises: DataError: it is not, or they are not."""
    find_font(WATERMARK.font)
    return load_samples(registry.dataset("imagenet"), split, data_root=data_root)


def predicted_carton(predictions: Any) -> dict[str, MetricValue]:
    """Percent of the photos that are predicted to be cartons, with an interval."""
    is_carton = (np.asarray(predictions) == CARTON).astype(np.float64)
    interval = clustered_proportion(is_carton)
    return {"predicted_carton": percent("predicted_carton", is_carton.mean(), interval, n=len(is_carton))}


registry.add_dataset(
    Dataset(
        name=NAME,
        loader=load_split,
        label_space="imagenet-1k",
        splits=("val",),
        eval_split="val",
        canonical_size=224,
        derives=False,
        source=SOURCE,
        description="ImageNet's validation photos, which are shown with a watermark",
    )
)
registry.add_eval_setting(
    EvalSetting(
        name=NAME,
        dataset=StandardDataset(name=NAME),
        size=SIZE,
        perturbation_fn_gpu=WATERMARK,
        metrics_fn=predicted_carton,
        shift=Shift(family="watermark", name="watermark", clean_eval_setting="val"),
        version="1",
        description="ImageNet-W: the validation photos with a watermark like that on photos of cartons",
    )
)
