"""Other photos, drawings and paintings of ImageNet's classes, in folders of images per class.

ImageNetV2's three test sets, in the form in which they are published (`...-format-val`: scaled and encoded like
ImageNet's own) and as they were found; ImageNet-A, ImageNet-R, ImageNet-Sketch, and Stylized-ImageNet, which everybody
makes for themselves. The names are those of the ImageNet Testbed. A folder is named by the class's wnid, or by its
number among the 1,000: 10 comes after 9.

ImageNet-A and ImageNet-R have 200 classes. `imagenet-a` and `imagenet-r` look at these alone, as their authors do: a
model says which of the 200 it is. `imagenet-a_1000way` and `imagenet-r_1000way` look at all 1,000, which is harder:
ResNet-50 is right on 36 % of ImageNet-R among the 200, and on 24 % among 1,000.

Sources: Recht et al., Do ImageNet Classifiers Generalize to ImageNet?, ICML 2019. Hendrycks et al., Natural Adversarial
Examples, CVPR 2021. Hendrycks et al., The Many Faces of Robustness, ICCV 2021. Wang et al., Learning Robust Global
Representations by Penalizing Local Predictive Power, NeurIPS 2019. Geirhos et al., ImageNet-trained CNNs are biased
towards texture, ICLR 2019.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from eval_settings._imagenet_classes import EIGHTH, IMAGENET_A, IMAGENET_R
from eval_settings._subsets import OfClasses
from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.places import load_imagenet_folders

NUM_CLASSES = 1_000
VERSION = "1"  # of the definitions below; a bump makes stored results of these settings stale
SPLIT = "test"
WNIDS, NUMBERS = "CLASS/image.jpg, CLASS a wnid such as n01440764", "CLASS/image.jpeg, CLASS a number from 0 to 999"

V2_HOME = "https://github.com/modestyachts/ImageNetV2"
V2_TERMS = "MIT for the code; the photos are Flickr's, to be used as those of ImageNet"
V2_PAPER = "Recht et al., Do ImageNet Classifiers Generalize to ImageNet?, ICML 2019"
V2_FILES = "https://huggingface.co/datasets/vaishaal/ImageNetV2"
V2_WHAT = {
    "matched-frequency": "photos that people agree on as often as on ImageNet's own",
    "threshold0.7": "photos that at least 7 of 10 people agree on",
    "topimages": "the photos that people agree on most",
}

# name of the set of photos; name of the published form; the archive; other folders that it may unpack to
V2_SETS = (
    ("matched-frequency", "matched-frequency-format-val", "imagenetv2-matched-frequency.tar.gz", ()),
    ("threshold0.7", "threshold-0.7-format-val", "imagenetv2-threshold0.7.tar.gz",
     ("imagenetv2-threshold0.7-format-val",)),
    ("topimages", "top-images-format-val", "imagenetv2-top-images.tar.gz", ("imagenetv2-topimages-format-val",)),
)  # fmt: skip

# name; source; how many images; classes that it has, where they are not all
SETS: tuple[tuple[str, DataSource, int, tuple[int, ...] | None], ...] = (
    ("imagenet-a",
     DataSource(
         title="ImageNet-A",
         homepage="https://github.com/hendrycks/natural-adv-examples",
         licence="MIT",
         get="Download https://people.eecs.berkeley.edu/~hendrycks/imagenet-a.tar (0.7 GB) and unpack it.",
         places=("imagenet-a", "imagenet-a/imagenet-a"),
         layout=WNIDS,
         citation="Hendrycks et al., Natural Adversarial Examples, CVPR 2021",
         num_samples={SPLIT: 7_500},
     ), 7_500, IMAGENET_A),
    ("imagenet-r",
     DataSource(
         title="ImageNet-R(endition)",
         homepage="https://github.com/hendrycks/imagenet-r",
         licence="MIT",
         get="Download https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar (2.2 GB) and unpack it.",
         places=("imagenet-r", "imagenet-r/imagenet-r"),
         layout=WNIDS,
         citation="Hendrycks et al., The Many Faces of Robustness, ICCV 2021",
         num_samples={SPLIT: 30_000},
     ), 30_000, IMAGENET_R),
    ("imagenet-sketch",
     DataSource(
         title="ImageNet-Sketch",
         homepage="https://github.com/HaohanWang/ImageNet-Sketch",
         licence="none stated; drawings from a web search, for research",
         get="Download ImageNet-Sketch.zip (7.8 GB), which the page links to, and unpack it. It has 50,889 images, "
             "though its page, and the ImageNet Testbed, say 50,000.",
         places=("imagenet-sketch", "imagenet-sketch/sketch", "sketch", "ImageNet-Sketch/sketch", "ImageNet-Sketch"),
         layout=WNIDS,
         citation="Wang et al., Learning Robust Global Representations by Penalizing Local Predictive Power, "
                  "NeurIPS 2019",
         num_samples={SPLIT: 50_889},
     ), 50_889, None),
    ("stylized_imagenet",
     DataSource(
         title="Stylized-ImageNet, of ImageNet's validation photos",
         homepage="https://github.com/rgeirhos/Stylized-ImageNet",
         licence="MIT for the code; the images as ImageNet's",
         get="It is not published: its code makes it from ImageNet and a collection of paintings, so two copies are "
             "not the same. Make it.",
         places=("stylized_imagenet", "stylized_imagenet/val", "stylized-imagenet/val", "Stylized-ImageNet/val"),
         layout=WNIDS,
         citation="Geirhos et al., ImageNet-trained CNNs are biased towards texture, ICLR 2019",
         num_samples={SPLIT: 50_000},
     ), 50_000, None),
)  # fmt: skip

CHOSEN_AGAINST = {"imagenet-a": "ResNet-50"}  # it takes none of the images for what they are


def add(
    name: str, source: DataSource, size: int, classes: tuple[int, ...] | None = None, description: str = ""
) -> None:
    """Registers a data set and its clean setting: masked to the classes that it has, with a twin of all 1,000."""
    source = replace(source, classes=range(NUM_CLASSES) if classes is None else classes)
    what = f"{source.title}{', ' if description else ''}{description}: {size} images"
    registry.add_dataset(
        Dataset(
            name=name,
            loader=partial(load_imagenet_folders, dataset=name, source=source),
            label_space="imagenet-1k",
            derives=False,
            source=source,
            chosen_against=CHOSEN_AGAINST.get(name),
            description=what,
        )
    )
    ways = [(name, None, "")] if classes is None else [
        (name, classes, f" of {len(classes)} classes, told apart from each other"),
        (f"{name}_1000way", None, " told apart from all 1,000 classes"),
    ]  # fmt: skip
    for setting, sublist, way in ways:
        registry.add_eval_setting(
            EvalSetting(
                name=setting,
                dataset=StandardDataset(name=name),
                size=size,
                class_sublist=sublist,
                version=VERSION,
                description=what + way,
            )
        )


def add_imagenetv2(kind: str, published: str, archive: str, other_folders: tuple[str, ...]) -> None:
    """Registers one of ImageNetV2's sets, as published and as found."""
    found, encoded = f"imagenetv2-{kind}", f"imagenetv2-{published}"
    forms = (
        (encoded, f"Download {archive} (1.3 GB) from {V2_FILES} and unpack it.",
         (encoded, *other_folders, f"imagenetv2/{encoded}"), NUMBERS, "as published"),
        (found, "The photos as they were found are not published as an archive: the code of the page gathers them.",
         (found, f"imagenetv2/{found}"), f"{NUMBERS}, or a wnid", "as found"),
    )  # fmt: skip
    for name, get, places, layout, form in forms:
        source = DataSource(
            title=f"ImageNetV2 {kind} ({form})",
            homepage=V2_HOME,
            licence=V2_TERMS,
            get=get,
            places=places,
            layout=layout,
            citation=V2_PAPER,
            num_samples={SPLIT: 10_000},
        )
        add(name, source, 10_000, description=V2_WHAT[kind])


for row in SETS:
    add(*row)
for v2_row in V2_SETS:
    add_imagenetv2(*v2_row)
registry.add_eval_setting(
    EvalSetting(
        name="imagenetv2-matched-frequency-format-val_subsampled_class_1_8",
        dataset=StandardDataset(name="imagenetv2-matched-frequency-format-val"),
        size=1_250,
        class_sublist=EIGHTH,
        idx_subsample_list=OfClasses(EIGHTH),
        version=VERSION,
        description="ImageNetV2 matched-frequency (as published): an eighth of the classes, told apart from each other",
    )
)
