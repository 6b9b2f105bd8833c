"""What is known of models beside their results: their type and baseline, by their definitions or by who published them.

The type of a model that was evaluated here is, in this order: what a list says that was imported under the source
'own'; what its definition tells (votes under noise, noise in training, other training data than its classes' own, a
baseline that lacks the intervention); what its name at timm or torchvision tells. A model of which nothing is told has
no type, and no line is fitted to it unasked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from models.model_base import Model
from registry import registry
from testbed.definitions import load_definitions
from testbed.errors import TestbedError
from testbed.model_types import LP_ADV, MORE_DATA, OWN, ROBUST_INTV, STANDARD, type_by_name, type_by_tag
from testbed.results.baselines import known_baseline
from testbed.results.model_families import family_of
from testbed.store.reader import Reader

if TYPE_CHECKING:
    import pandas as pd

_TIMM, _TORCHVISION = ("timm:", "hf-hub:timm/"), "torchvision:"


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """Type, family and baseline of a model; None where it is not known."""

    model_type: str | None
    family: str
    baseline: str | None = None


@dataclass(frozen=True, kw_only=True)
class ModelFactsOf:
    """What is known of the models of a store.

    Args: types: by source and model, as they were imported.
    """

    types: Mapping[tuple[str, str], str]
    _known: dict[tuple[str, str | None, str | None], ModelInfo] = field(default_factory=dict, repr=False)

    def of(self, model: str, *, label_space: str | None, source: str | None) -> ModelInfo:
        """Args: label_space: of a model that was evaluated here; source: of one that was published, else None."""
        key = (model, label_space, source)
        if key not in self._known:
            told = self.types.get((source or OWN, model))
            self._known[key] = _published(model, told) if source else _own(model, label_space, told)
        return self._known[key]


def model_facts(store: Reader) -> ModelFactsOf:
    """What is known of the models of a store."""
    return ModelFactsOf(types={(one.source, one.model): one.model_type for one in store.published_types()})


def with_model_facts(store: Reader, table: pd.DataFrame) -> pd.DataFrame:
    """A long table of results with the columns `model_type` and `baseline` at its end."""
    facts = model_facts(store)
    found = [
        facts.of(model, label_space=_text(space), source=_text(source))
        for model, space, source in zip(table["model"], table["label_space"], table["source"], strict=True)
    ]
    return table.assign(
        model_type=_strings([one.model_type for one in found]), baseline=_strings([one.baseline for one in found])
    )  # fmt: skip


@cache
def load_if_needed() -> None:
    """Imports what built-in definitions are not imported yet, once: others may have imported a few of them."""
    load_definitions()


def _published(model: str, told: str | None) -> ModelInfo:
    return ModelInfo(model_type=told or type_by_name(model), family=family_of(model), baseline=known_baseline(model))


def _own(model: str, label_space: str | None, told: str | None) -> ModelInfo:
    by_name = _type_by_library(model)
    known = None if by_name else _definition(model, label_space)
    if known is None:
        return ModelInfo(model_type=told or by_name, family=family_of(model))
    return ModelInfo(
        model_type=told or _type_by_definition(known), family=family_of(known.arch or model), baseline=known.baseline
    )  # fmt: skip


def _type_by_library(model: str) -> str | None:
    """The type of a model that its name at timm or torchvision tells; these need not be imported for it."""
    if model.startswith(_TIMM):
        return type_by_tag(model.rpartition("timm:")[2].rpartition("/")[2].partition("@")[0])
    if model.startswith(_TORCHVISION) and "-smoothed-" not in model:
        return MORE_DATA if "SWAG" in model else STANDARD
    return None


def _definition(model: str, label_space: str | None) -> Model | None:
    load_if_needed()
    try:
        return registry.model(model, label_space)
    except TestbedError:
        return None  # imported from elsewhere, or defined by a file that is not here


def _type_by_definition(model: Model) -> str | None:
    if model.answers == "votes":
        return LP_ADV  # randomized smoothing
    if any(data not in _own_data(model.label_space) for data in model.training_data):
        return MORE_DATA
    if model.fit_noise is not None or model.baseline is not None:
        return ROBUST_INTV
    return STANDARD if model.training_data or model.is_fitted else None


def _own_data(label_space: str) -> set[str]:
    """Names of what a model of a label space is trained on as usual: the label space, and data sets that have it."""
    return {label_space, *(name for name, dataset in registry.datasets.items() if dataset.label_space == label_space)}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _strings(values: Sequence[str | None]) -> Any:
    import pandas as pd

    return pd.array(list(values), dtype="string")
