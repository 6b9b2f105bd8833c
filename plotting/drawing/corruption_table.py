"""Models under the common corruptions of a data set as a table: a row per model, corruption and severity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from plotting.drawing.counts import counted, span
from plotting.drawing.stored import number
from plotting.drawing.style import plain

from testbed.errors import TestbedError
from testbed.metrics.corruption import NUM_SEVERITIES, Cell, accuracies, in_order, missing_words, severities_of
from testbed.report import undefined_words
from testbed.results.corruption import DatasetGrids, StoredGrid, corruption_grids
from testbed.results.corruption_choice import family_of, family_words
from testbed.results.precision import Precision
from testbed.store.reader import Reader
from testbed.store.transfer import slug

if TYPE_CHECKING:
    import pandas as pd

    from testbed.records import MetricValue

# By what the papers call them: the metric, and its words for an axis.
METRICS = {
    "A_rel_c": ("relative_corruption_accuracy", "relative corruption accuracy A$_{rel,c}$"),
    "A_c": ("corruption_accuracy", "corruption accuracy A$_c$"),
    "q": ("recovery", "recovery q"),
}


@dataclass(frozen=True, kw_only=True)
class Corruptions:
    """The models of a data set, and the metric that is shown of them.

    Args:
        found: the models' grids.
        metric: a key of METRICS.
    """

    found: DatasetGrids
    metric: str

    @property
    def models(self) -> list[str]:
        """Names of the models, each once, in the order of the store."""
        return [model.name for model in self.found.models]

    @cached_property
    def wanted(self) -> list[Cell]:
        """The corruptions that any model has, at all severities that there are, in the order of the benchmark."""
        there = {cell for model in self.found.models for cell in model.groups}
        wanted: list[Cell] = []
        for name in in_order({corruption for corruption, _ in there}):
            is_single = severities_of(there, name) == [None]
            wanted += [(name, None)] if is_single else [(name, level) for level in range(1, NUM_SEVERITIES + 1)]
        return wanted

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per model and cell that has a result; percent.

        `value`, `ci_low`, `ci_high`, `method` and `n` of the metric, which is missing where it is undefined, with the
        reason; `corruption`, `severity` (missing without severities), draws of the corruption in each fit, fits and
        seeds. Where all severities of a corruption are there, another row `is_mean` of them together.
        """
        import pandas as pd

        rows = [row for model in self.found.models for row in self._rows(model)]
        return (
            pd.DataFrame(rows)
            .astype(dict.fromkeys(("value", "ci_low", "ci_high"), float))
            .astype({"severity": "Int64"})
        )

    @cached_property
    def clean(self) -> dict[str, MetricValue]:
        """Clean accuracy by model, in percent."""
        return {
            model.name: accuracies(model.grid.outcomes([next(iter(model.grid.cells))]))["clean_accuracy"]
            for model in self.found.models
        }

    def _rows(self, model: StoredGrid) -> list[dict[str, Any]]:
        rows = []
        for name in dict.fromkeys(name for name, _ in self.wanted):
            there = [cell for cell in self.wanted if cell[0] == name and cell in model.grid.cells]
            rows += [self._row(model, [(name, level)]) for _, level in there]
            if len(there) == NUM_SEVERITIES:
                rows.append(self._row(model, there))
        return rows

    def _row(self, model: StoredGrid, cells: Sequence[Cell]) -> dict[str, Any]:
        """The row of a cell, or of all severities of a corruption."""
        is_mean = len(cells) > 1
        metric = accuracies(model.grid.outcomes(cells))[METRICS[self.metric][0]]
        return {
            "model": model.name, "corruption": cells[0][0], "severity": None if is_mean else cells[0][1],
            "is_mean": is_mean, "metric": metric.name, **number(metric),
            "n": metric.n, "reason": metric.reason, "num_draws": max(model.grid.num_draws[cell] for cell in cells),
            "fits": len(model.grid.clean), "seeds": " ".join(map(str, model.seeds)),
        }  # fmt: skip

    def path(self, out: Path, figure: str) -> Path:
        """Where the files of a figure go, without their endings."""
        family = self.found.family.removeprefix("common-corruption")
        return out / slug(f"{figure}-{self.found.dataset}-{self.metric}{family}")

    # Words for captions and axes

    @property
    def label(self) -> str:
        """The metric with its unit."""
        return f"{METRICS[self.metric][1]} (%)"

    @property
    def source_words(self) -> str:
        """The data set and how its images were corrupted, for a caption."""
        return f"{self.found.dataset} under corruptions {family_words(self.found.family)}"

    @property
    def sample_words(self) -> str:
        """n with what the metric is a share of, the fitted models and the draws, for a caption."""
        grids = [model.grid for model in self.found.models]
        draws = counted([number for grid in grids for number in grid.num_draws.values()], "draw")
        kind = {"A_rel_c": "right", "q": "wrong"}.get(self.metric)
        share = f" ({span(self.table['n'])} {kind} when clean)" if kind else ""
        samples = counted([grid.n for grid in grids], "sample")
        fits = counted([len(grid.clean) for grid in grids], "fit")
        return f"n = {samples}{share}, {fits} of each model, {draws} of each corruption"

    @property
    def missing_sentence(self) -> str:
        """Which cells have no result, by model, and which settings are of other samples or lack labels; else empty."""
        lacking: dict[str, list[str]] = {}
        for model in self.found.models:
            lacking.setdefault(missing_words(model.grid.cells, self.wanted), []).append(plain(model.name))
        words = [
            f"{', '.join(names)} {'lacks' if len(names) == 1 else 'lack'} {lack}"
            for lack, names in lacking.items() if lack
        ]  # fmt: skip
        words += [f"{counted([number], 'setting')} of {name} not shown" for name, number in self.found.left_out.items()]
        said = [f"{'; '.join(words)}."] if words else []
        return "".join(f" {sentence}" for sentence in (*said, *undefined_words(self.found.undefined)))

    @property
    def undefined_sentence(self) -> str:
        """Where the metric is undefined, and why; empty where it is defined everywhere."""
        rows = self.table[self.table["value"].isna() & ~self.table["is_mean"]]
        words = [
            f"{plain(str(model))} has no value in {len(own)} cells, as {reason}"
            for (model, reason), own in rows.groupby(["model", "reason"])
        ]
        return f" {'; '.join(words)}." if words else ""


def corruptions(
    store: Reader, *, dataset: str | None, models: Sequence[str], is_on_disk: bool, variant: str, metric: str
) -> Corruptions:  # fmt: skip
    """What the store holds of a selection.

    Args:
        dataset: None for the only one that is stored.
        models: names or globs; all models if empty.
        is_on_disk: images that were read corrupted, and not corrupted in memory.
        variant: what the names of the settings end in; empty for the plain ones.
        metric: a key of METRICS.
    Raises: TestbedError: there is nothing, with a command that would fill it, or nothing with labels; or there are
        several data sets.
    """
    family = family_of(is_on_disk=is_on_disk, variant=variant)
    found = corruption_grids(store, Precision(), models=models, datasets=[dataset] if dataset else [], family=family)
    if len(found) > 1:
        raise TestbedError(
            f"{store.url} has corruptions of {', '.join(one.dataset for one in found)}. Choose one with --dataset."
        )
    if not found:
        model = "MODEL" if dataset else "digits-resnet"
        name, kind = dataset or "digits", "on-disk" if is_on_disk else "in-memory"
        setting = f"{name}-c.fog.3_{kind}-{variant}" if variant else f"'{name}-c.*_{kind}'"  # globs find plain ones
        raise TestbedError(
            f"{store.url} holds no complete evaluation of {dataset or 'any data set'} under {kind} corruptions "
            f"with its clean parent. Evaluate some: python eval.py --models {model} --eval-settings {name} "
            f"{setting} --db-url {store.url}"
        )
    if not found[0].models:
        raise TestbedError(" ".join(undefined_words(found[0].undefined)))
    return Corruptions(found=found[0], metric=metric)


def half_width_sentence(table: pd.DataFrame) -> str:
    """How wide the intervals of a table are, for a figure that does not show them."""
    half = ((table["ci_high"] - table["ci_low"]) / 2).dropna()
    if half.empty:
        return ""
    return (
        f" Half of a 95 % interval is {np.median(half):.2g} percentage points in the median, at most {half.max():.2g}."
    )
