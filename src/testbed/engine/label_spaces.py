"""Whether the outputs of a model are the classes of a setting: their number, their names, and none that is missing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence

import numpy as np

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from testbed.class_subset import NO_LABEL, columns_of
from testbed.data.class_order import LABEL_SPACES, label_space_names
from testbed.data.imagefolder import folder_layout
from testbed.errors import DefinitionError, TestbedError
from testbed.records import IntArray
from testbed.signatures import argument_names

KNOWN = (*LABEL_SPACES, "imagenet-1k")
FindDataset = Callable[[], Dataset]
_NEAR = 0.8  # of difflib's ratio
_SHOWN = 3
_FEW = 0.01  # of the classes: a model that lacks more of them is not one for this setting


def check_label_space(
    model: Model,
    setting: EvalSetting,
    label_space: str | None,
    warn: Callable[[str], None],
    find_dataset: FindDataset,
) -> None:
    """Compares what a model says of its outputs with a label space that is known by name, before data are looked at.

    `warn` is told where the model lacks a few of the setting's classes; `find_dataset` as in `check_classes`.

    Raises: DefinitionError: another number, other or otherwise ordered names, or more than a few classes that it lacks.
    """
    says_something = (model.num_outputs, model.class_names, getattr(model.classify, "missing_classes", None))
    if label_space is None or not any(says_something) or not (names := label_space_names(label_space)):
        return
    picks_itself = model.classify is not None and "class_sublist" in argument_names(model.classify)
    if not (picks_itself and setting.class_sublist is not None):
        _check_number(model, setting, names, find_dataset)
    _check_names(model, setting, names)
    _check_missing(model, setting, names, warn)


def check_spelling(model: Model, setting: EvalSetting, label_space: str | None, warn: Callable[[str], None]) -> None:
    """Compares a label space that is not known by name with those that are: whose it is cannot be checked at all.

    `warn` is told of one that is called nearly as a known one, other than by its numbers.

    Raises: DefinitionError: it differs in case or in marks alone, and the model is not declared for it either.
    """
    if label_space is None or (near := _near_label_space(label_space)) is None:
        return
    told = (
        f"the data set '{setting.dataset.name}' has the label space '{label_space}', which is none of those that are "
        f"known by name, so that its classes are not checked. Did you mean label_space='{near}'?"
    )
    if _letters(label_space) == _letters(near) and model.label_space != label_space:
        raise DefinitionError(f"{told[0].upper()}{told[1:]}")
    warn(told)


def check_classes(model: Model, setting: EvalSetting, class_names: Sequence[str], find_dataset: FindDataset) -> None:
    """Compares what a model says of its outputs with the classes that the data set turned out to have.

    A setting that picks columns picks them of its label space, whatever classes its data set has.

    Args: find_dataset: finds the setting's data set, of which a refusal tells more.
    Raises: DefinitionError: another number, or other or otherwise ordered names.
    """
    if setting.class_sublist is None:
        _check_number(model, setting, class_names, find_dataset)
        _check_names(model, setting, class_names)


def check_targets(setting: EvalSetting, labels: IntArray, num_classes: int, warn: Callable[[str], None]) -> None:
    """Says how many samples are of none of the classes that a setting lists, and so cannot be right.

    A setting with a `metrics_fn` may have its own idea of what is right.

    Args:
        labels: (n,) targets or (n, labels) label sets over the setting's classes; -1 for none of them.
        num_classes: of the data set.
    Raises: DefinitionError: all of them.
    """
    if setting.columns is None or setting.metrics_fn is not None:
        return
    is_among = labels.reshape(len(labels), -1).max(axis=1, initial=NO_LABEL) >= 0
    if (num_lost := int(np.count_nonzero(~is_among))) == 0:
        return
    told = (
        f"{num_lost:,} of {len(labels):,} samples of '{setting.name}' are of none of the {len(setting.columns)} "
        "classes in its class_sublist"
    )
    if num_lost < len(labels):
        warn(f"{told}, and count as wrong.")
        return
    raise DefinitionError(
        f"{told}, so that none could be right. Its data set has {num_classes} classes. Where they are those of the "
        "list, there must be as many; else the list must hold columns of the model's outputs that are the data's."
    )


def _near_label_space(label_space: str) -> str | None:
    """The known label space that an unknown one may stand for: another number, as of cifar20, is another space."""
    if label_space_names(label_space):
        return None
    numbers = set(re.findall(r"\d+", label_space))
    candidates = {_letters(known): known for known in KNOWN if numbers <= set(re.findall(r"\d+", known))}
    near = difflib.get_close_matches(_letters(label_space), candidates, n=1, cutoff=_NEAR)
    return candidates[near[0]] if near else None


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _check_number(model: Model, setting: EvalSetting, class_names: Sequence[str], find_dataset: FindDataset) -> None:
    num_outputs = len(model.class_names) if model.class_names and model.num_outputs is None else model.num_outputs
    if num_outputs is None or num_outputs == len(class_names):
        return
    raise DefinitionError(
        f"Model '{model.name}' has {num_outputs:,} outputs, but the classes of '{setting.name}' are "
        f"{len(class_names):,}. Use a model of the setting's label space, or give it a classify function that picks "
        f"the classes.{_own_head(num_outputs, class_names, find_dataset)}"
    )


def _own_head(num_outputs: int, class_names: Sequence[str], find_dataset: FindDataset) -> str:
    """What to do where a head seems to be one of just those of ImageNet's classes that a data set has folders of."""
    if num_outputs >= len(class_names) or tuple(class_names) != label_space_names("imagenet-1k"):
        return ""
    try:
        dataset = find_dataset()
        path, is_ordered = dataset.path, dataset.class_order is not None
        if path is None or is_ordered or not path.is_dir() or len(folder_layout(path).class_folders) != num_outputs:
            return ""
    except TestbedError:  # its data are not there, which is not what is told of here
        return ""
    return (
        f" Data set '{dataset.name}' has folders of {num_outputs:,} classes, and they are named as ImageNet's. For a "
        "head of just these, give --class-order lexicographic and no --label-space; or --class-order FILE with their "
        "names in the order of the outputs. In add_dataset, it is class_order."
    )


def _check_names(model: Model, setting: EvalSetting, class_names: Sequence[str]) -> None:
    if model.class_names is None or len(model.class_names) != len(class_names):  # of a model that picks them itself
        return
    outputs, classes = (tuple(map(_plain, names)) for names in (model.class_names, class_names))
    shared = set(outputs) & set(classes)
    if outputs == classes or len(shared) < len(classes) / 2:  # names of another kind, such as words for wnids
        return
    wrong = [index for index, name in enumerate(outputs) if name != classes[index]]
    examples = ", ".join(f"{i} is '{model.class_names[i]}' for '{class_names[i]}'" for i in wrong[:_SHOWN])
    raise DefinitionError(
        f"The outputs of model '{model.name}' are not the classes of '{setting.name}' in their order: {len(wrong)} of "
        f"{len(outputs)} differ (output {examples}). Give the model's order with --class-order FILE, or the model a "
        "classify function that sorts its outputs."
    )


def _check_missing(model: Model, setting: EvalSetting, class_names: Sequence[str], warn: Callable[[str], None]) -> None:
    lacked = set(getattr(model.classify, "missing_classes", ()))
    needed = set(range(len(class_names)) if setting.class_sublist is None else columns_of(setting.class_sublist))
    if not (missing := sorted(lacked & needed)):
        return
    named = ", ".join(class_names[index] for index in missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
    told = (
        f"model '{model.name}' was not trained on {len(missing)} of the {len(needed):,} classes of '{setting.name}' "
        f"({named})"
    )
    if len(missing) <= _FEW * len(needed):
        warn(f"{told}: their samples count as wrong.")
        return
    raise DefinitionError(
        f"{told[0].upper()}{told[1:]}, and could never answer them. Use a setting without these classes, or weights "
        "that were fine-tuned on all of them."
    )


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").split())
