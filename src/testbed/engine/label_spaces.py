"""Whether the outputs of a model are the classes of a setting: their number, their names, and none that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from testbed.data.class_order import label_space_names
from testbed.errors import DefinitionError
from testbed.signatures import argument_names

_SHOWN = 3


def check_label_space(model: Model, setting: EvalSetting, label_space: str | None) -> None:
    """Compares what a model says of its outputs with a label space that is known by name, before data are looked at.

    Raises: DefinitionError: another number, other or otherwise ordered names, or classes of the setting that it lacks.
    """
    says_something = (model.num_outputs, model.class_names, getattr(model.classify, "missing_classes", None))
    if label_space is None or not any(says_something) or not (names := label_space_names(label_space)):
        return
    picks_itself = model.classify is not None and "class_sublist" in argument_names(model.classify)
    if not (picks_itself and setting.class_sublist is not None):
        _check_number(model, setting, names)
    _check_names(model, setting, names)
    _check_missing(model, setting, names)


def check_classes(model: Model, setting: EvalSetting, class_names: Sequence[str]) -> None:
    """Compares what a model says of its outputs with the classes that the data set turned out to have.

    A setting that picks columns picks them of its label space, whatever classes its data set has.

    Raises: DefinitionError: another number, or other or otherwise ordered names.
    """
    if setting.class_sublist is None:
        _check_number(model, setting, class_names)
        _check_names(model, setting, class_names)


def _check_number(model: Model, setting: EvalSetting, class_names: Sequence[str]) -> None:
    if model.num_outputs in (None, len(class_names)):
        return
    raise DefinitionError(
        f"Model '{model.name}' has {model.num_outputs:,} outputs, but the classes of '{setting.name}' are "
        f"{len(class_names):,}. Use a model of the setting's label space, or give it a classify function that picks "
        "the classes."
    )


def _check_names(model: Model, setting: EvalSetting, class_names: Sequence[str]) -> None:
    if model.class_names is None:
        return
    outputs, classes = (tuple(map(_plain, names)) for names in (model.class_names, class_names))
    shared = set(outputs) & set(classes)
    if outputs == classes or len(shared) < len(classes) / 2:  # names of another kind, such as words for wnids
        return
    wrong = [index for index, name in enumerate(outputs) if index >= len(classes) or name != classes[index]]
    examples = ", ".join(f"{i} is '{model.class_names[i]}' for '{class_names[i]}'" for i in wrong[:_SHOWN])
    raise DefinitionError(
        f"The outputs of model '{model.name}' are not the classes of '{setting.name}' in their order: {len(wrong)} of "
        f"{len(outputs)} differ (output {examples}). Give the model's order with --class-order FILE, or the model a "
        "classify function that sorts its outputs."
    )


def _check_missing(model: Model, setting: EvalSetting, class_names: Sequence[str]) -> None:
    lacked = set(getattr(model.classify, "missing_classes", ()))
    needed = set(range(len(class_names)) if setting.class_sublist is None else _columns(setting.class_sublist))
    if not (missing := sorted(lacked & needed)):
        return
    named = ", ".join(class_names[index] for index in missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
    raise DefinitionError(
        f"Model '{model.name}' was not trained on {len(missing)} of the {len(needed):,} classes of '{setting.name}' "
        f"({named}), and could never answer them. Use a setting without these classes, or weights that were fine-tuned "
        "on all of them."
    )


def _columns(sublist: Iterable[int | Sequence[int]]) -> list[int]:
    """All columns of a sublist whose entries are columns, or several of them that count as one class."""
    return [column for entry in sublist for column in (entry if isinstance(entry, Sequence) else (entry,))]


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").split())
