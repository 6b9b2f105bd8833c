"""What the registry is made of: named tables of definitions, and the families that make definitions when asked."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from testbed.errors import DefinitionError, TestbedError, UnknownNameError, suggestion

if TYPE_CHECKING:
    from eval_settings.dataset_base import Dataset
    from eval_settings.eval_setting_base import EvalSetting
    from models.model_base import Model

T = TypeVar("T")
SOURCE_ROOT = Path(__file__).resolve().parent


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
    """Models derived from every registered one, made when they are asked for.

    Attributes:
        suits_families: whether models of families, such as `timm:NAME`, have them too.
    """

    suits_families: bool

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


def unknown(kind: str, name: str, known: Iterable[str], failures: Sequence[Failure]) -> str:
    """What a user is told about a name that nobody registered: near ones, and files that may have had it."""
    parts = [f"Unknown {kind} '{name}'.", suggestion(name, known)]
    if failures:
        parts.append(f"{len(failures)} file(s) failed to import: {', '.join(map(str, failures))}.")
    return " ".join(part for part in (*parts, listing_hint(kind)) if part)


def no_own_weights(
    name: str, variants: Iterable[ModelVariants], known: Sequence[str], failures: Sequence[Failure]
) -> TestbedError:
    """The error for a model that is given weights and is not registered: a variant has those of its base model."""
    if (base := next((base for one in variants if (base := one.base_name(name)) in known), None)) is None:
        return UnknownNameError(unknown("model", name, known, failures))
    return DefinitionError(f"Model '{name}' has the weights of '{base}'. Give them to that: --weights {base}=FILE.")


def listing_hint(kind: str) -> str:
    """How all names of a kind are listed, for kinds that can be."""
    if kind in ("dataset", "corruption"):
        return ""
    prefixes = ". Those of libraries have a prefix, as in timm:NAME or torchvision:NAME" if kind == "model" else ""
    return f"All names: python db.py --list-{kind}s-registry{prefixes}"


def expanded(kind: str, patterns: Iterable[str], known: Callable[[str], Iterable[str]]) -> list[str]:
    """Names, and what the globs among them match, in their order and each once; `known(glob)` is what it may match.

    Raises: UnknownNameError: a glob matches nothing.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        is_glob = any(mark in pattern for mark in "*?[")
        matches = fnmatch.filter(known(pattern), pattern) if is_glob else [pattern]
        if not matches:
            raise UnknownNameError(f"No {kind} matches '{pattern}'. {listing_hint(kind)}")
        found.update(dict.fromkeys(matches))
    return list(found)


class Table(Generic[T]):
    """Named definitions of one kind, each with the file it came from.

    Args:
        kind: for messages.
        is_overridable: whether a definition of a plugin goes before a built-in one of its key.
    """

    def __init__(self, kind: str, *, is_overridable: bool = False) -> None:
        self.kind = kind
        self.is_overridable = is_overridable
        self.values: dict[Any, T] = {}
        self.overridden: dict[Any, T] = {}
        self.overridden_sources: dict[Any, Path | None] = {}
        self.sources: dict[Any, Path | None] = {}
        self.conflicts: dict[Any, str] = {}

    def add(self, key: Any, value: T, *, label: str, source: Path | None) -> None:
        """Adds a definition, called `label` in messages. Raises: DefinitionError: another one has its key."""
        if self.values.get(key) is value:
            return
        if self.is_overridable and _is_built_in(self.sources.get(key)) and source and not _is_built_in(source):
            self.overridden[key], self.overridden_sources[key] = self.values.pop(key), self.sources.pop(key)
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

    def found(self, name: str, failures: Sequence[Failure]) -> T:
        """The definition `name`. Raises: UnknownNameError: there is none; files that failed may have had it."""
        if (value := self.get(name)) is not None:
            return value
        raise UnknownNameError(unknown(self.kind.lower(), name, self.values, failures))

    def forget(self, source: Path) -> None:
        """Takes back what came from a file; what it stood in front of is as it was."""
        for key in [key for key, where in self.sources.items() if where == source]:
            del self.values[key], self.sources[key]
            if key in self.overridden:
                self.values[key] = self.overridden.pop(key)
                self.sources[key] = self.overridden_sources.pop(key)

    def notices(self, keys: Iterable[Any], what: str) -> list[str]:
        """The definitions of these keys as ones that stand in front of others, a sentence each."""
        named = ((key[0] if isinstance(key, tuple) else key, self.sources[key] or "memory") for key in keys)
        return [f"{self.kind} '{name}' of {source} overrides the {what} one." for name, source in named]


def with_data_of(
    setting: EvalSetting, owners: Iterable[EvalSetting | None], known: Container[str | None]
) -> EvalSetting:
    """`setting` with the data set of the first of `owners` that has a known one; as it is where none has."""
    for data in (owner.dataset for owner in owners if owner is not None and owner.dataset.name in known):
        return replace(setting, dataset=replace(data, split=setting.dataset.split or data.split))
    return setting


def _is_built_in(source: Path | None) -> bool:
    return source is not None and source.is_relative_to(SOURCE_ROOT)
