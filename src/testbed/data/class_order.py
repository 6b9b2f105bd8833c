"""Class names to positions in a model's output: by name where names tell, as asked where not, never guessed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from testbed.data.timm_lists import wnids
from testbed.errors import DataError

ClassOrder = Literal["numeric", "lexicographic"] | Path | tuple[str, ...]

_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
LABEL_SPACES: Mapping[str, tuple[str, ...]] = {
    "digits": tuple("0123456789"),
    "cifar10": ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    "cifar100": tuple(_CIFAR100.split()),
    "fashion-mnist": (
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ),
}  # fmt: skip
_WNID = re.compile(r"n\d{8}")
_WHOLE_NUMBER = re.compile(r"-?\d+", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_NUMBER_OR_CHARACTER = re.compile(rf"{_NUMBER.pattern}|.", re.ASCII | re.DOTALL)
_DIGITS = ord("0")  # where digits stand among characters
_MOST_CLASSES = 1_000_000  # larger labels are no indices of classes, but identifiers
_NAMED = 5  # classes that a message names, of however many
_REMEDY = (
    "Give --class-order numeric, lexicographic, or a file with one class name per line in the order of the outputs"
)


@dataclass(frozen=True, kw_only=True)
class ClassMap:
    """How the class names found in a data set map to classes.

    Args:
        class_names: names of all classes in the order of the model's outputs, also of those without a sample.
        indices: name found in the data set -> class index.
        label_space: whose classes these are; None where only their number is known.
    """

    class_names: tuple[str, ...]
    indices: Mapping[str, int]
    label_space: str | None


@dataclass(frozen=True, kw_only=True)
class ClassDifference:
    """Names of classes that there should not be, and of those that there should be."""

    too_many: tuple[str, ...]
    too_few: tuple[str, ...]

    def __str__(self) -> str:
        named = {"too many": self.too_many, "too few": self.too_few}
        return "; ".join(f"{len(names)} {word}: {some_of(names)}" for word, names in named.items() if names)


def label_space_names(label_space: str) -> tuple[str, ...] | None:
    """Class names of a known label space in the order of the outputs (wnids for 'imagenet-1k'); None if unknown."""
    return wnids(label_space) if label_space == "imagenet-1k" else LABEL_SPACES.get(label_space)


def numbered_names(num_classes: int, *, where: str) -> tuple[str, ...]:
    """Names of classes that have none: '0', '1', ... Raises: DataError: the labels are too large for indices."""
    if num_classes > _MOST_CLASSES:
        raise DataError(
            f"{where} has labels up to {num_classes - 1}, but class indices go to {_MOST_CLASSES - 1} at most. Number "
            "the classes from 0, or give their names as text."
        )
    return tuple(map(str, range(num_classes)))


def class_difference(found: Collection[str], known: Sequence[str]) -> ClassDifference | None:
    """How the classes that are there differ from those that there should be; None where they do not."""
    too_many = tuple(sorted(set(found).difference(known)))
    too_few = tuple(name for name in known if name not in found)
    return ClassDifference(too_many=too_many, too_few=too_few) if too_many or too_few else None


def some_of(names: Sequence[str]) -> str:
    """`a, b and 7 more`, and the name alone where there is one."""
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else shown


def nearly_known(found: Collection[str]) -> str | None:
    """What is told of class names that are nearly those of a known label space, most of them and not all; else None."""
    for label_space in (*LABEL_SPACES.keys() - {"digits"}, "imagenet-1k"):  # other sets count their classes as well
        known = label_space_names(label_space) or ()
        common = [name for name in known if name in found]
        is_whole = len(common) > len(known) / 2
        if len(common) > len(found) / 2 and (is_whole or label_space == "imagenet-1k"):
            difference = class_difference(found, known if is_whole else common)
            return None if difference is None else f"the classes are nearly those of {label_space} ({difference})"
    return None


def parse_class_order(text: str | None) -> ClassOrder | None:
    """The value of `--class-order`: 'numeric', 'lexicographic', or else the path of a file."""
    words: dict[str, ClassOrder] = {"numeric": "numeric", "lexicographic": "lexicographic"}
    return None if text is None else words.get(text) or Path(text).expanduser().resolve()


def class_map(found: Iterable[str], *, order: ClassOrder | None, label_space: str | None, where: str) -> ClassMap:
    """The map of the class names that a data set has.

    An explicit `order` goes first: the class names, in a file or not, or 'lexicographic', or 'numeric' (the number is
    itself the index where the label space is a known one, else its rank is). Without one, names are looked up in the
    label space: the declared one, of which they may be a part; or one whose names are exactly these; or ImageNet's, of
    which wnids may be a part. Other names count in sorted order, unless numbers in them sort differently as text.

    Args:
        found: class names of the data set: names of folders, or values of labels.
        order: 'numeric', 'lexicographic', a file with one class name per line, or the class names themselves.
        label_space: as declared; None where it is to be recognised.
        where: the data set, for messages.
    Raises: DataError: the names do not tell the order, or do not fit the file or the label space.
    """
    names = sorted(set(found))
    if isinstance(order, Path):
        return _map(names, _names_in_file(order), label_space, where=f"{where}, class order {order}")
    known = label_space_names(label_space) if label_space else None
    if isinstance(order, tuple):
        return _map(names, order, label_space, where=where)
    if order == "numeric":
        return _numeric_map(names, known, label_space, where=where)
    if order == "lexicographic":
        return _map(names, tuple(names), label_space, where=where)
    if label_space is None and (recognised := _recognised(names)):
        label_space, known = recognised, label_space_names(recognised)
    if known:
        return _map(names, known, label_space, where=f"{where}, label space {label_space}")
    if names != (by_number := sorted(names, key=_by_number)):
        raise DataError(
            f"The class names of {where} have numbers whose order differs as numbers and as text "
            f"({_around_difference(by_number, names)} against {_around_difference(names, by_number)}). {_REMEDY}; "
            "a head trained on torchvision's ImageFolder uses lexicographic."
        )
    return _map(names, tuple(names), label_space, where=where)


def _map(names: list[str], class_names: tuple[str, ...], label_space: str | None, *, where: str) -> ClassMap:
    positions = {name: index for index, name in enumerate(class_names)}
    if unknown := [name for name in names if name not in positions]:
        absent = [name for name in class_names if name not in names]
        lacking = f"; there is none of {some_of(absent)}" if 0 < len(absent) < len(class_names) / 2 else ""
        raise DataError(
            f"{len(unknown)} of {len(names)} class names are not among the {len(class_names)} of {where}: "
            f"{', '.join(unknown[:5])}{', ...' if len(unknown) > 5 else ''}{lacking}. Rename them, or: {_REMEDY}."
        )
    space = label_space or next((space for space, known in LABEL_SPACES.items() if known == class_names), None)
    return ClassMap(class_names=class_names, indices={name: positions[name] for name in names}, label_space=space)


def _numeric_map(names: list[str], known: tuple[str, ...] | None, label_space: str | None, *, where: str) -> ClassMap:
    is_ordered = _NUMBER.search if known is None else _WHOLE_NUMBER.fullmatch
    if other := next((name for name in names if not is_ordered(name)), None):
        raise DataError(f"--class-order numeric: the class name '{other}' of {where} is not a number. {_REMEDY}.")
    if known is None:
        return _map(names, tuple(sorted(names, key=_by_number)), label_space, where=where)
    by_number = sorted(names, key=int)
    if not 0 <= int(by_number[0]) <= int(by_number[-1]) < len(known):
        raise DataError(
            f"--class-order numeric: the class names of {where} go from {by_number[0]} to {by_number[-1]}, but label "
            f"space {label_space} has the classes 0 to {len(known) - 1}. Give a file of class names instead."
        )
    indices = {name: int(name) for name in names}
    if len(set(indices.values())) < len(names):
        doubled = next(pair for pair in pairwise(by_number) if indices[pair[0]] == indices[pair[1]])
        raise DataError(f"The class names '{doubled[0]}' and '{doubled[1]}' of {where} are one number. Remove one.")
    return ClassMap(class_names=known, indices=indices, label_space=label_space)


def _recognised(names: list[str]) -> str | None:
    for label_space, known in LABEL_SPACES.items():
        if set(names) == set(known):
            return label_space
    is_imagenet = all(_WNID.fullmatch(name) for name in names) and set(names) <= set(
        label_space_names("imagenet-1k") or ()
    )
    return "imagenet-1k" if names and is_imagenet else None


def _by_number(name: str) -> tuple[tuple[tuple[int, float], ...], str]:
    """Sorts names as text, but numbers in them as numbers, among other characters where digits are.

    So `class2` comes before `class10`, and nothing but two numbers that are compared can change the order of text. A
    name that is a whole number may have a sign.
    """
    parts = [name] if _WHOLE_NUMBER.fullmatch(name) else _NUMBER_OR_CHARACTER.findall(name)
    return tuple((_DIGITS, float(part)) if part[-1] in "0123456789" else (ord(part), 0.0) for part in parts), name


def _around_difference(names: Sequence[str], others: Sequence[str]) -> str:
    """Three names from the last on that stands equally in both orders."""
    first = next(index for index, pair in enumerate(zip(names, others, strict=True)) if pair[0] != pair[1])
    return f"{', '.join(names[max(0, first - 2) : first + 1])}, ..."


def _names_in_file(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read the class order {path} ({error}). {_REMEDY}.") from error
    names = tuple(line.strip() for line in lines if line.strip())
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"The class order {path} names {', '.join(doubled[:5])} more than once. One class per line.")
    return names
