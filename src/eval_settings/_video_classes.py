"""The classes of ImageNet-Vid-Robust and YTBB-Robust, and the columns of ImageNet models that stand for each.

A frame is classified among these few classes: each has the largest of its columns' logits. The columns are those of the
files that are published with the two sets.

Source: Shankar et al., Do Image Classifiers Generalize Across Time?, ICCV 2021.
"""

from __future__ import annotations

from itertools import chain

Span = int | tuple[int, int]  # a column, or the first and the last of some
_BIRDS: tuple[Span, ...] = ((7, 24), (80, 100), (127, 146))
_CARS = (407, 436, 468, 511, 609, 627, 656, 661, 751, 817)

# wnid, name, columns; in the order of the published label numbers
VID: tuple[tuple[str, str, tuple[Span, ...]], ...] = (
    ("n02691156", "airplane", (404,)),
    ("n02419796", "antelope", ((351, 353),)),
    ("n02131653", "bear", ((294, 297),)),
    ("n02834778", "bicycle", (444, 671)),
    ("n01503061", "bird", _BIRDS),
    ("n02924116", "bus", (654, 779, 874)),
    ("n02958343", "car", _CARS),
    ("n02402425", "cattle", (345,)),
    ("n02084071", "dog", ((151, 268),)),
    ("n02121808", "domestic_cat", ((281, 285),)),
    ("n02503517", "elephant", (385, 386)),
    ("n02118333", "fox", ((277, 280),)),
    ("n02510455", "giant_panda", (388,)),
    ("n02342885", "hamster", (333,)),
    ("n02374451", "horse", (339,)),
    ("n02129165", "lion", (291,)),
    ("n01674464", "lizard", ((38, 48),)),
    ("n02484322", "monkey", ((370, 382),)),
    ("n03790512", "motorcycle", (665,)),
    ("n02324045", "rabbit", (330, 332)),
    ("n02509815", "red_panda", (387,)),
    ("n02411705", "sheep", (348,)),
    ("n01726692", "snake", ((52, 68),)),
    ("n02355227", "squirrel", (335,)),
    ("n02129604", "tiger", (292,)),
    ("n04468005", "train", (466,)),
    ("n01662784", "turtle", ((33, 37),)),
    ("n04530566", "watercraft", (403, 472, 484, 510, 554, 576, 625, 628, 724, 780, 814, 833, 871, 913, 914)),
    ("n02062744", "whale", (147, 148)),
    ("n02391049", "zebra", (340,)),
)
# name, columns; in the order of the published label numbers. Five have no class in ImageNet.
YTBB: tuple[tuple[str, tuple[Span, ...]], ...] = (
    ("person", ((981, 983),)),
    ("bird", _BIRDS),
    ("bicycle", (444, 671)),
    ("boat", (472, 554, 576, 625, 814, 914)),
    ("bus", (654, 779, 874)),
    ("bear", ((294, 297),)),
    ("cow", ()),
    ("cat", ((281, 287),)),
    ("giraffe", ()),
    ("potted plant", (985, 986)),
    ("horse", (339,)),
    ("motorcycle", (665,)),
    ("knife", (499, 623)),
    ("airplane", (404,)),
    ("skateboard", ()),
    ("train", (466,)),
    ("truck", (555, 569, 675, 717, 734, 864, 867)),
    ("zebra", (340,)),
    ("toilet", ()),
    ("dog", ((151, 268),)),
    ("elephant", (385, 386)),
    ("umbrella", (879,)),
    ("none", ()),
    ("car", _CARS),
)


def _columns(spans: tuple[Span, ...]) -> tuple[int, ...]:
    ranges = ((span,) if isinstance(span, int) else range(span[0], span[1] + 1) for span in spans)
    return tuple(chain.from_iterable(ranges))


VID_NAMES = tuple(name for _, name, _ in VID)
VID_GROUPS = tuple(_columns(spans) for _, _, spans in VID)  # columns of each class, for `EvalSetting.class_sublist`
YTBB_NAMES = tuple(name for name, _ in YTBB)
YTBB_COLUMNS = tuple(_columns(spans) for _, spans in YTBB)  # as numbered in the published files; some are empty
YTBB_GROUPS = tuple(columns for columns in YTBB_COLUMNS if columns)  # of the classes that ImageNet has
