"""Data and settings of your own. Copy this file into this folder under a name without `_`, or name it with --plugin.

    python eval.py --models digits-linear --eval-settings 'my-*' --plugin my_settings.py

A data set has its settings at once: clean, under noise (`my-digits-noise-linf-0.1`), under noise at half its minimal
class separation (`my-digits-mscr-linf`) and under every corruption (`my-digits-c.fog.3_in-memory`). Nothing is opened
before it is evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image
    from torch import Tensor


def load(split: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Images [n, H, W(, 3)], 8-bit or in [0, 1], or rows of numbers; and the class of each, counted from 0."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images * 255 / 16).round().astype("uint8")
    part = slice(0, 1200) if split == "train" else slice(1200, None)
    return images[part], digits.target[part]


registry.add_dataset(
    "my-digits",
    load,
    # A folder of class folders, or an .npz with x and y, instead: Path(__file__).parent / "photos". Such a path names
    # its own splits; a relative one lies under the data root.
    splits=("train", "test"),
    fit_split="train",
    label_space="digits",  # the classes of which models are meant; leave it out where they are your own
    # canonical_size=224,  # where images differ in size: the side in pixels at which noise is drawn
    description="one line for listings",
)


def upside_down(image: Image) -> Image:
    """The photo as another camera would have taken it: before the model's own transform."""
    return image.rotate(180)


def darker(images: Tensor) -> Tensor:
    """Images [n, C, H, W] in [0, 1], as a model would see them before its normalization, to the same.

    It may also take `model`, the classifier with its normalization, for attacks; `targets`; and `keys`, which draw
    noise that depends on the seed and the sample alone.
    """
    return images * 0.5


registry.add_eval_setting(
    EvalSetting(
        name="my-digits-upside-down",
        dataset=StandardDataset(name="my-digits"),
        transform=upside_down,
        # What it is compared with, for loss and recovery; without a shift the setting stands alone.
        shift=Shift(family="camera", name="upside-down", clean_eval_setting="my-digits"),
    )
)
registry.add_eval_setting(
    EvalSetting(
        name="my-digits-dark",
        dataset=StandardDataset(name="my-digits"),
        size=597,  # refused where another number of samples is found
        perturbation_fn_gpu=darker,
        shift=Shift(family="camera", name="dark", clean_eval_setting="my-digits"),
    )
)


def share_of_ones(predictions: NDArray[Any]) -> float:
    """A metric is a function of any of logits, targets, predictions, target_ranks, class_names and sample_ids."""
    return 100 * float((predictions == 1).mean())


registry.add_metric("share-of-ones", share_of_ones)
