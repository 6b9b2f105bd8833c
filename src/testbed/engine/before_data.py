"""What is told of a plan before any data are looked at: label spaces that do not match, and all missing weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial

from models.model_base import Model
from registry import ANY_LABEL_SPACE
from testbed.engine.data import Data
from testbed.engine.identity import model_version
from testbed.engine.label_spaces import check_label_space, check_spelling
from testbed.engine.plan import Pairing, label_space
from testbed.errors import DataError
from testbed.offline import without_downloads


def check_before_data(pairings: Sequence[Pairing], data: Data) -> None:
    """Compares models with the label spaces of their settings, and finds all weights.

    Raises:
        DefinitionError: a model is not one for its setting.
        DataError: as `check_weights`.
    """
    for pairing in pairings:
        model, setting, space = pairing.model, pairing.setting, label_space(pairing.setting)
        check_spelling(model, setting, space, data.warn_once)
        check_label_space(model, setting, space, data.warn_once, partial(data.dataset, setting.dataset))
        _compare_label_spaces(model, space, data)
    check_weights(pairing.model for pairing in pairings)


def check_weights(models: Iterable[Model]) -> None:
    """Finds the weights of all models, and fetches what may be fetched, until that fails once.

    Raises: DataError: some are missing; a line for each.
    """
    missing: dict[int, str] = {}  # by the identity of the weights, which a model and its variants share
    with ExitStack() as stack:
        for model in {(model.name, model.label_space): model for model in models}.values():
            if id(model.weights) in missing:
                continue
            try:
                model_version(model)
            except DataError as error:
                if not missing:  # a network that does not answer would be waited for again and again
                    stack.enter_context(without_downloads("nothing more is downloaded after a failure"))
                missing[id(model.weights)] = str(error)
    if missing:
        raise DataError("\n".join(dict.fromkeys(missing.values())))


def _compare_label_spaces(model: Model, space: str | None, data: Data) -> None:
    if space is not None and model.label_space not in (space, "unknown", ANY_LABEL_SPACE):
        data.warn_once(
            f"model '{model.name}' is declared for the label space {model.label_space} and is evaluated on that of "
            f"{space}; only the number of its outputs is checked. Give it label_space='{space}' if that is right."
        )
