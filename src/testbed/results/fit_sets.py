"""Which models a line is fitted on: named sets, as rows, and sets that the user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError, UnknownNameError, suggestion
from testbed.results.stored import is_named

if TYPE_CHECKING:
    import pandas as pd

# Least accuracy on x, percent, by setting, of a model in the paper's fits.
THRESHOLDS: Mapping[str, float] = {
    "val": 55.0,
    "val-on-objectnet-classes": 55.0,
    "val-on-vid-robust-classes": 92.0,
    "val-on-ytbb-robust-classes": 95.0,
    "imagenet-vid-robust_pm0": 49.0,
    "val-on-imagenet-r-classes": 75.0,
    "val-on-imagenet-a-classes": 75.0,
}


@dataclass(frozen=True, kw_only=True)
class FitSet:
    """Models that a line is fitted on.

    A set of a type is a yardstick: beside published models, one's own are held against it and are not part of it.

    Args:
        name: of the set.
        words: what they are, as a sentence has it.
        model_types: that they are of; any without one.
        without: parts of lower-case names that exclude a model.
        models: names and globs that they must be among; any without one.
        has_threshold: whether the least accuracy on x, of `THRESHOLDS`, holds.
    """

    name: str
    words: str
    model_types: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    has_threshold: bool = False

    def members(self, table: pd.DataFrame, x: str) -> pd.Series[Any]:
        """For each row of a table of models, whether it is in.

        Args:
            table: with `model`, `model_type`, `is_own` and `x`, the accuracy on a setting.
            x: the setting's name.
        """
        return self.candidates(table, x) & ~self.held_against(table)

    def held_against(self, table: pd.DataFrame) -> pd.Series[Any]:
        """For each row, whether it is one's own beside published ones, and the set is not one of names."""
        is_own = table["is_own"].astype(bool)
        return is_own & self.is_yardstick & (not is_own.all())

    @property
    def is_yardstick(self) -> bool:
        """Whether the set is one of a type."""
        return bool(self.model_types)

    def candidates(self, table: pd.DataFrame, x: str) -> pd.Series[Any]:
        """For each row, as for `members`, whether it is in if it is published."""
        is_in = table["model"].map(self._has_name).astype(bool)
        if self.model_types:
            is_in &= table["model_type"].isin(self.model_types).fillna(False)
        if self.has_threshold and x in THRESHOLDS:
            is_in &= table["x"] >= THRESHOLDS[x]
        return is_in

    def _has_name(self, model: str) -> bool:
        return is_named(model, self.models) and not any(part in model.lower() for part in self.without)


# Trained on fewer images, with another batch size, or as a baseline elsewhere: no models of their own.
_VARIANTS = ("aws", "batch64", "subsample")
# Standard models that the testbed has published since its paper.
_SINCE_2020 = ("simclrv2", "simsiam", "swav", "vit_small_patch16_224")

FIT_SETS: Mapping[str, FitSet] = {
    one.name: one
    for one in (
        FitSet(
            name="standard",
            words="standard models",
            model_types=("STANDARD",),
            without=_VARIANTS,
            has_threshold=True,
        ),
        FitSet(
            name="standard-2020",
            words="the standard models of the ImageNet Testbed's paper",
            model_types=("STANDARD",),
            without=(*_VARIANTS, *_SINCE_2020),
            has_threshold=True,
        ),
        FitSet(name="all", words="all models"),
    )
}


def fit_set_named(names: str | Sequence[str]) -> FitSet:
    """The set of this name, or of models by names, globs and @FILE (a name or glob a line).

    Raises: DataError: a file cannot be read, or nothing is named.
    """
    asked = [names] if isinstance(names, str) else list(names)
    if len(asked) == 1 and asked[0] in FIT_SETS:
        return FIT_SETS[asked[0]]
    patterns = [pattern for name in asked for pattern in (_lines(name[1:]) if name.startswith("@") else [name])]
    if not patterns:
        raise DataError(f"No model to fit a line on is named. Use {', '.join(FIT_SETS)}, or names of models.")
    return FitSet(name=" ".join(asked), words=f"models named {', '.join(asked)}", models=tuple(patterns))


def check_members(chosen: FitSet, models: Sequence[str]) -> None:
    """Raises: UnknownNameError: a name or glob of the set is none of these models."""
    for pattern in chosen.models:
        if not any(is_named(model, [pattern]) for model in models):
            near = suggestion(pattern, [*FIT_SETS, *models])
            raise UnknownNameError(
                f"The fit set names '{pattern}', which is neither a fit set ({', '.join(FIT_SETS)}) nor a model with "
                f"results on both settings. {near}".rstrip()
            )


def _lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The fit set's file {path} cannot be read: {error}.") from error
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
