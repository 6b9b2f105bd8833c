"""What the registry is made of: named tables of definitions, and the families that make definitions when asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from testbed.errors import DefinitionError

if TYPE_CHECKING:
    from eval_settings.dataset_base import Dataset
    from eval_settings.eval_setting_base import EvalSetting
    from models.model_base import Model

T = TypeVar("T")


class EvalSettingFamily(Protocol):
    """Settings derived from every data set, made when they are asked for."""

    def names(self, dataset: Dataset) -> Iterable[str]:
        """Names to show in a listing; a family may answer to more, such as any noise level."""

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        """The setting `name` of this family, or None where the name is not one of its own."""


class ModelFamily(Protocol):
    """Models named `prefix:REST`, made when they are asked for; too many, or too slow to list, to be registered."""

    def names(self) -> Iterable[str]:
        """What may stand for REST, for listings and globs; a family may answer to more. May import a library."""

    def build(self, rest: str) -> Model:
        """The model `prefix:REST`. Raises: TestbedError: there is none."""


class ModelVariants(Protocol):
    """Models derived from every registered one, made when they are asked for."""

    def base_name(self, name: str) -> str | None:
        """Name of the model that `name` is a variant of, or None where it is no such variant."""

    def build(self, base: Model, name: str) -> Model:
        """The variant `name` of a model. Raises: DefinitionError: it has no such variant."""


@dataclass(frozen=True)
class Failure:
    """A file of definitions that could not be imported, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path.name} ({self.reason})"


class Table(Generic[T]):
    """Named definitions of one kind, each with the file it came from."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.values: dict[Any, T] = {}
        self.sources: dict[Any, Path | None] = {}
        self.conflicts: dict[Any, str] = {}

    def add(self, key: Any, value: T, *, label: str, source: Path | None) -> None:
        """Adds a definition, called `label` in messages. Raises: DefinitionError: another one has its key."""
        if self.values.get(key) is value:
            return
        if key in self.values:
            self.conflicts[key] = (
                f"{self.kind} {label} is defined twice, in {self.sources[key] or 'memory'} and in "
                f"{source or 'memory'}. Rename one of the two."
            )
            raise DefinitionError(self.conflicts[key])
        self.values[key], self.sources[key] = value, source

    def get(self, key: Any) -> T | None:
        """The definition, if there is one. Raises: DefinitionError: there are two."""
        if key in self.conflicts:
            raise DefinitionError(self.conflicts[key])
        return self.values.get(key)

    def forget(self, source: Path) -> None:
        """Takes back what came from a file."""
        for key in [key for key, where in self.sources.items() if where == source]:
            del self.values[key], self.sources[key]
