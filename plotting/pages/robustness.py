"""Effective robustness over every named pair of settings that a site has enough models on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError, UnknownNameError
from testbed.results.effective import SHIFT_PAIRS, Effective, effective_robustness

if TYPE_CHECKING:
    import pandas as pd

# Pairs of an overview: the natural shifts with the accuracy on the same classes, and the synthetic ones.
SHOWN = ("imagenetv2", "objectnet", "imagenet-sketch", "imagenet-r", "imagenet-a", "vid-robust", "ytbb-robust")


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """The lines that were fitted.

    Args:
        fits: by name of the pair.
    """

    fits: Mapping[str, Effective]

    def of(self, entry: str) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The rows of a model, each after the name of its pair."""
        return self._rows.get(entry, [])

    def row(self, entry: str, pair: str) -> Mapping[str, Any] | None:
        """The row of a model in one pair; None where it lacks one of the settings."""
        return next((row for name, row in self.of(entry) if name == pair), None)

    def title(self, pair: str) -> str:
        """What a pair is called."""
        return SHIFT_PAIRS[pair].title

    @cached_property
    def shown(self) -> Sequence[str]:
        """The pairs of an overview."""
        return [name for name in SHOWN if name in self.fits]

    @cached_property
    def _rows(self) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
        found: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
        for name, fit in self.fits.items():
            plain = fit.table.astype(object).where(fit.table.notna(), None)
            for values in plain.to_numpy().tolist():
                row = dict(zip(plain.columns, values, strict=True))
                found[row["entry"]].append((name, row))
        return found


def robustness(points: pd.DataFrame) -> Robustness:
    """The lines of all named pairs whose settings are there, and for which there are models enough."""
    there = set(points["eval_setting"])
    fits = {}
    for name, pair in SHIFT_PAIRS.items():
        if {pair.x, pair.y} <= there:
            with suppress(DataError, UnknownNameError):  # too few standard models, or none with both
                fits[name] = effective_robustness(points, pair.x, pair.y)
    return Robustness(fits=fits)
