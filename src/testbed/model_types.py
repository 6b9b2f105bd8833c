"""Types of models as the ImageNet Testbed has them, by which figures colour models and lines are fitted.

Its own models come with a list. Those of timm follow from the tags of their names, so that one training has one type
in both: AdvProp is a robustness intervention and AugMix too, adversarial training is training against attacks within
an L_p ball, and whatever saw other images than ImageNet's 1.28 million has more data, labelled or not. Recipes whose
augmentation serves accuracy (RandAugment, Mixup, CutMix) are standard.

Source: Taori et al. 2020, section 3 and appendix; timm's documentation of its tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from testbed.timm_tags import trained_on

STANDARD, ROBUST_INTV, LP_ADV, MORE_DATA = "STANDARD", "ROBUST_INTV", "LP_ADV", "MORE_DATA"
LOW_ACCURACY = "LOW_ACCURACY_CNN"  # trained on fewer images, or not to the end
OWN = "own"  # a source of types, which are of the models that were evaluated here
_IMAGENET = "imagenet-1k"

# Of parts of timm's names that name no data set; the first that a name has counts.
_BY_PART: Mapping[str, str] = MappingProxyType(
    {
        "clip": MORE_DATA,  # image and text pairs from the web
        "ssld": MORE_DATA,  # four million images of ImageNet-22k, without their labels
        "adv": LP_ADV,
        "ap": ROBUST_INTV,
        "am": ROBUST_INTV,  # AugMix
        "ram": ROBUST_INTV,  # RandAugment and AugMix
    }
)
_UNFINISHED = re.compile(r"resnet.*_\d+_epochs")  # which the ImageNet Testbed leaves out of its list
_BLURRED = "resnetblur"  # anti-aliased by low-pass filters, an intervention in the ImageNet Testbed

# The words of timm's list of what models of older releases were pretrained on.
_BY_PRETRAINING: Mapping[str, str] = MappingProxyType(
    {
        "in1k": STANDARD,
        "in1k-dist": STANDARD,
        "in1k-adv": LP_ADV,
        "in1k-ap": ROBUST_INTV,
        "in21k": MORE_DATA,
        "in21k-selfsl": MORE_DATA,
        "jft300m-ns": MORE_DATA,
        "ig1b-swsl": MORE_DATA,
        "ig1b-wsl": MORE_DATA,
        "yfc-semisl": MORE_DATA,
    }
)


@dataclass(frozen=True, kw_only=True)
class PublishedType:
    """The type of a model that somebody published.

    Args:
        source: name that it was imported under.
        source_sha256: of the file it was read from.
        model: as the source calls it.
        model_type: such as 'STANDARD', in the source's words.
    """

    source: str
    source_sha256: str
    model: str
    model_type: str


def type_by_name(name: str) -> str | None:
    """The type of a published model that no list has; None where its name tells none."""
    return LOW_ACCURACY if _UNFINISHED.fullmatch(name) else type_by_tag(name)


def type_by_tag(name: str) -> str | None:
    """The type that the tag of one of timm's names tells; None for a name without a tag, or one that tells nothing."""
    parts, data = re.split(r"[._]", name), trained_on(name.partition(".")[2])
    if any(known != _IMAGENET for known in data):
        return MORE_DATA
    if not data:
        return None
    if (told := next((kind for part, kind in _BY_PART.items() if part in parts), None)) is not None:
        return told
    return ROBUST_INTV if name.startswith(_BLURRED) else STANDARD


def type_by_pretraining(words: str) -> str | None:
    """The type of a model by what timm's list says that it was pretrained on; None for words that it does not use."""
    return _BY_PRETRAINING.get(words)


def pretraining_words() -> tuple[str, ...]:
    """What `type_by_pretraining` knows."""
    return tuple(_BY_PRETRAINING)
