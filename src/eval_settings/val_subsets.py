"""Parts of ImageNet's validation photos: of some classes, of some photos, a tenth of a costly setting; and greyscale.

`val-on-X-classes` has the photos of the classes that another set X has, told apart from each other: what a model's
accuracy on X is held against. Where X has groups of classes (ObjectNet, videos), so has this.
`val-on-objectnet-classes_125way` tells the 125 classes of ObjectNet's 113 kinds apart, as the first version of the
ImageNet Testbed's code does; its last one, and its figures, merge them.

`val_subsampled_class_1_N` has one of N classes: for N = 8 those of the ImageNet Testbed, else drawn by us.
`val_subsampled_iid_1_N` has one of N photos, whatever their class.

`imagenet-c.NAME.SEVERITY_in-memory_10percent`, and so on for copies on disk, evaluates 5 photos of each class. It is
not run where the whole setting is complete for a model. The ImageNet Testbed draws its 5,000 with replacement, so that
201 of them are repeats; ours are distinct. Those of its attacks are in `attacks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eval_settings._imagenet_classes import EIGHTH, IMAGENET_A, IMAGENET_R
from eval_settings._objectnet_classes import OBJECTNET
from eval_settings._openimages_classes import OPENIMAGES
from eval_settings._subsets import TENTH, OfClasses, OneOf, random_classes, tenth
from eval_settings._video_classes import VID_GROUPS, YTBB_GROUPS
from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import Registry, registry
from testbed.class_subset import columns_of
from testbed.perturbations.corruptions.builtin import CORRUPTIONS
from testbed.perturbations.corruptions.corrupt import Corrupt
from testbed.records import ClassSublist

VERSION = "1"  # of the definitions below; a bump makes stored results of these settings stale
DATASET, CLEAN = "imagenet", "val"
NUM_CLASSES, PHOTOS_PER_CLASS = 1_000, 50
OBJECTNET_GROUPS: ClassSublist = tuple(columns for _, _, columns in OBJECTNET)
PARTS = (2, 4, 16, 32)

# end of the name; classes, or groups of classes; what they are
CLASS_SETS: tuple[tuple[str, ClassSublist, str], ...] = (
    ("-on-imagenet-a-classes", IMAGENET_A, "the 200 classes of ImageNet-A"),
    ("-on-imagenet-r-classes", IMAGENET_R, "the 200 classes of ImageNet-R"),
    ("-on-objectnet-classes", OBJECTNET_GROUPS, "the 113 kinds of ObjectNet, each the largest of its classes' logits"),
    ("-on-objectnet-classes_125way", tuple(sorted(columns_of(OBJECTNET_GROUPS))), "the 125 classes of ObjectNet"),
    ("-on-vid-robust-classes", VID_GROUPS, "the 30 kinds of ImageNet-Vid-Robust"),
    ("-on-ytbb-robust-classes", YTBB_GROUPS, "the kinds of YTBB-Robust that ImageNet has"),
    ("-on-openimages-classes", tuple(sorted(OPENIMAGES.values())), "the 420 classes that Open Images has"),
    ("_subsampled_class_1_8", EIGHTH, "an eighth of the classes, as the ImageNet Testbed has it"),
    *(
        (f"_subsampled_class_1_{parts}", random_classes(NUM_CLASSES, NUM_CLASSES // parts, label_space="imagenet-1k"),
         f"one of {parts} classes, drawn at random")
        for parts in PARTS
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Tenth:
    """`NAME_10percent`: 5 photos of each class of a corruption setting, whose shift is another family's."""

    registry: Registry

    def names(self, dataset: Dataset) -> Iterator[str]:
        from eval_settings.corruptions import InMemory, OnDisk  # when all definitions are there

        if dataset.name == DATASET:
            for family in (InMemory(self.registry), OnDisk(self.registry)):
                yield from (f"{name}{TENTH}" for name in family.names(dataset))

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        whole = name.removesuffix(TENTH)
        if dataset.name != DATASET or whole == name or not ("_in-memory" in whole or "_on-disk" in whole):
            return None
        return tenth(self.registry.eval_setting(whole))


def add_class_set(ending: str, classes: ClassSublist, what: str) -> None:
    """Registers the validation photos of some classes, told apart from each other."""
    columns = tuple(columns_of(classes))
    registry.add_eval_setting(
        EvalSetting(
            name=f"{CLEAN}{ending}",
            dataset=StandardDataset(name=DATASET),
            size=PHOTOS_PER_CLASS * len(columns),
            class_sublist=classes,
            idx_subsample_list=OfClasses(columns),
            version=VERSION,
            description=f"ImageNet's validation photos of {what}, told apart from each other",
        )
    )


for row in CLASS_SETS:
    add_class_set(*row)
for parts in sorted((*PARTS, 8)):
    registry.add_eval_setting(
        EvalSetting(
            name=f"{CLEAN}_subsampled_iid_1_{parts}",
            dataset=StandardDataset(name=DATASET),
            size=NUM_CLASSES * PHOTOS_PER_CLASS // parts,
            idx_subsample_list=OneOf(parts),
            version=VERSION,
            description=f"one of {parts} of ImageNet's validation photos, drawn at random whatever their class",
        )
    )
registry.add_eval_setting(
    EvalSetting(
        name="greyscale",
        dataset=StandardDataset(name=DATASET),
        size=NUM_CLASSES * PHOTOS_PER_CLASS,
        perturbation_fn_gpu=Corrupt(
            corruption=next(row for row in CORRUPTIONS if row.name == "greyscale"), severity=None
        ),
        shift=Shift(family="greyscale", name="greyscale", clean_eval_setting=CLEAN),
        version=VERSION,
        description="ImageNet's validation photos without colour, at the size that the model takes",
    )
)
registry.add_eval_setting_family(Tenth(registry))
