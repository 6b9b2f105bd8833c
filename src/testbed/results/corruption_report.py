"""The table of common corruptions: a row each, a column per model, means, and what stands behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.metrics.best import Mark, marks
from testbed.metrics.comparison import Outcomes
from testbed.metrics.corruption import (
    COMMON,
    EXTRA,
    RELATIVE,
    SIDES,
    Cell,
    Grid,
    accuracies,
    among,
    common_correct,
    in_order,
    incomparable,
    missing_words,
    relative_corruption_accuracy,
    severities_of,
)  # fmt: skip
from testbed.metrics.corruption_error import (
    all_severities,
    corruption_error,
    mean_corruption_error,
    mean_error_difference,
    unnormalised_mean_error,
)  # fmt: skip
from testbed.metrics.intervals import Array
from testbed.metrics.runs import accuracy_of_runs
from testbed.metrics.wellposed import Finding, findings, recoveries
from testbed.records import MetricValue
from testbed.results.corruption import DatasetGrids, StoredGrid, outputs_of
from testbed.results.corruption_baseline import Baseline, baseline_of
from testbed.results.precision import Precision
from testbed.results.stored import is_named

ON_COMMON = f"{RELATIVE}_on_common_correct"
MEAN = ""  # the row of the mean, beside those of the corruptions
Rows = Mapping[str, Sequence[int | None]]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A model's numbers.

    Args:
        stored: what they are of.
        relative: by corruption, relative corruption accuracy over the severities of its row.
        mean: over the cells of the mean row by name, those of `accuracies`, and relative corruption accuracy on the
            images that all models have right when clean.
        errors: by name, over the 15: unnormalised mean error (over 19, too, where any model has them), mean
            corruption error difference, mCE and relative mCE.
        ces: by corruption CE and relative CE; empty without a baseline.
        findings: what a well-posed simulator would not do; None where that was not asked for.
        recoveries: by cell q beside its null, where that was asked for.
    """

    stored: StoredGrid
    relative: Mapping[str, MetricValue]
    mean: Mapping[str, MetricValue]
    errors: Mapping[str, MetricValue]
    ces: Mapping[str, tuple[MetricValue, MetricValue]]
    findings: Sequence[Finding] | None
    recoveries: Mapping[Cell, MetricValue]


@dataclass(frozen=True, kw_only=True)
class CorruptionReport:
    """The models under the corruptions of a data set.

    Args:
        dataset, family: of the clean data, and of the shifts.
        left_out: by name of other parts of the data, the number of their settings.
        undefined: by setting, which is in no row, why it is not known which answers are right there.
        rows: by corruption the severities that its row is over: all that any of the models has.
        averaged: the corruptions of the mean row: those of the 15 that are there, or all where none of them is.
        columns: the models.
        marks: by row the mark of each column.
        not_compared: why nothing is marked; empty where it is.
        baseline: that mCE is measured by.
    """

    dataset: str
    family: str
    left_out: Mapping[str, int]
    undefined: Mapping[str, str]
    rows: Rows
    averaged: Sequence[str]
    columns: Sequence[Column]
    marks: Mapping[str, Sequence[Mark]]
    not_compared: str
    baseline: Baseline

    @property
    def mean_cells(self) -> list[Cell]:
        """The cells of the mean row."""
        return _cells(self.rows, self.averaged)


def corruption_report(
    found: DatasetGrids, precision: Precision, *, models: Sequence[str] = (), baseline: str | None = None,
    with_wellposed: bool = False,
) -> CorruptionReport | None:  # fmt: skip
    """The report on one data set; None where none of the models is there.

    Args:
        models: names and globs of the columns; all without any.
        baseline: name of a model of `found`, or that of the published AlexNet; None for none.
        with_wellposed: whether to look at what a well-posed simulator would not do.
    """
    shown = [model for model in found.models if is_named(model.evaluation.model, models)]
    if not shown:
        return None
    grids = [model.grid for model in shown]
    cells = {cell for grid in grids for cell in grid.cells}
    rows = {name: severities_of(cells, name) for name in in_order({name for name, _ in cells})}
    averaged = [name for name in COMMON if name in rows] or list(rows)
    not_compared = "there is one model" if len(grids) == 1 else incomparable(grids) or _other_samples(shown)
    common = None if not_compared else common_correct(grids)
    measure, base = _Measure(rows, averaged, precision, common), baseline_of(found, baseline)
    return CorruptionReport(
        dataset=found.dataset,
        family=found.family,
        left_out=found.left_out,
        undefined=found.undefined,
        rows=rows,
        averaged=averaged,
        columns=[measure.column(model, base.of(model), with_wellposed) for model in shown],
        marks={} if not_compared else _marks(shown, rows, averaged, precision),
        not_compared=not_compared,
        baseline=base,
    )


@dataclass(frozen=True)
class _Measure:
    """What the numbers of all columns are over."""

    rows: Rows
    averaged: Sequence[str]
    precision: Precision
    common: Array | None

    def column(self, stored: StoredGrid, baseline: Baseline, with_wellposed: bool) -> Column:
        grid, outputs = stored.grid, outputs_of(stored) if with_wellposed else {}
        is_baseline = baseline.errors is not None and baseline.errors.name == stored.evaluation.model
        upper = replace(grid, factors=grid.factors.of(side=self.precision.side("upper")))
        return Column(
            stored=stored,
            relative={name: self._over(grid, _cells(self.rows, [name]), RELATIVE) for name in self.rows},
            mean=self._means(grid),
            errors={value.name: _as_baseline(value, is_baseline) for value in _errors(upper, baseline, self.rows)},
            ces=_ces(upper, baseline, self.rows),
            findings=findings(grid, outputs) if with_wellposed else None,
            recoveries=recoveries(grid, outputs) if with_wellposed else {},
        )

    def _means(self, grid: Grid) -> dict[str, MetricValue]:
        cells = _cells(self.rows, self.averaged)
        found = {name: self._over(grid, cells, name) for name in SIDES}
        found["clean_accuracy"] = self._clean(grid)
        if self.common is not None:
            found[ON_COMMON] = replace(self._over(grid, cells, RELATIVE, images=self.common), name=ON_COMMON)
        return found

    def _clean(self, grid: Grid) -> MetricValue:
        """That of the clean evaluations, whatever cells there are."""
        factors = grid.factors.of(num_draws=1, side=self.precision.side(SIDES["clean_accuracy"]))
        return accuracy_of_runs("clean_accuracy", grid.clean, factors)

    def _over(self, grid: Grid, cells: Sequence[Cell], name: str, *, images: Array | None = None) -> MetricValue:
        """A number over cells; None where the model lacks one of them."""
        if words := _gap_words(grid.cells, cells):
            return MetricValue(name=name, value=None, n=grid.n, reason=f"{words} missing")
        outcomes = grid.outcomes(cells, side=self.precision.side(SIDES[name]))
        if images is not None:
            outcomes = among(outcomes, images)
        return relative_corruption_accuracy(outcomes) if name == RELATIVE else accuracies(outcomes)[name]


def _cells(rows: Rows, names: Sequence[str]) -> list[Cell]:
    return [(name, severity) for name in names for severity in rows[name]]


def _gap_words(there: Collection[Cell], wanted: Iterable[Cell]) -> str:
    """As `missing_words`, but 'severities 1, 2 of all' where each of several corruptions lacks the same ones."""
    wanted = list(wanted)
    gone = [cell for cell in wanted if cell not in there]
    names = dict.fromkeys(name for name, _ in wanted)
    lost = {tuple(severities_of(gone, name)) for name in names}
    is_whole = len(gone) == len(wanted)
    if len(names) == 1 or len(lost) > 1 or is_whole or not gone:
        return missing_words(there, wanted)
    (severities,) = lost
    return f"severit{'ies' if len(severities) > 1 else 'y'} {', '.join(map(str, severities))} of all"


def _other_samples(models: Sequence[StoredGrid]) -> str:
    """That models are not of the same samples in the same order; empty where they are."""
    first, *others = (model.evaluation for model in models)
    is_same = all(one.has_samples_of(first) or one.sample_ids() == first.sample_ids() for one in others)
    return "" if is_same else "they are of other samples"


def _errors(grid: Grid, baseline: Baseline, rows: Rows) -> list[MetricValue]:
    found = [unnormalised_mean_error(grid), mean_error_difference(grid)]
    for is_relative in (False, True):
        if baseline.errors is None:
            name = "relative_mce" if is_relative else "mce"
            found.append(MetricValue(name=name, value=None, n=grid.n, reason=baseline.reason))
        else:
            found.append(mean_corruption_error(grid, baseline.errors, is_relative=is_relative))
    found = [_in_short(value, grid, COMMON) for value in found]
    if set(rows) >= set(EXTRA):
        all_19 = (*COMMON, *EXTRA)
        found.append(_in_short(unnormalised_mean_error(grid, corruptions=all_19), grid, all_19))
    return found


def _in_short(value: MetricValue, grid: Grid, corruptions: Sequence[str]) -> MetricValue:
    """A number over all severities; where the model lacks some, its reason names them as `_gap_words` does."""
    cells = all_severities(corruptions)
    if not (words := missing_words(grid.cells, cells)):
        return value
    return replace(value, reason=value.reason.replace(words, _gap_words(grid.cells, cells)))


def _ces(grid: Grid, baseline: Baseline, rows: Rows) -> dict[str, tuple[MetricValue, MetricValue]]:
    if (errors := baseline.errors) is None:
        return {}
    return {
        name: (corruption_error(grid, errors, name), corruption_error(grid, errors, name, is_relative=True))
        for name in rows
    }


def _as_baseline(value: MetricValue, is_baseline: bool) -> MetricValue:
    """100 by definition, for the baseline itself."""
    if not is_baseline or value.name not in ("mce", "relative_mce") or value.value is None:
        return value
    return replace(value, ci_low=None, ci_high=None, method="", reason="no interval: it is the baseline")


def _marks(
    models: Sequence[StoredGrid], rows: Rows, averaged: Sequence[str], precision: Precision
) -> dict[str, list[Mark]]:
    wanted = {name: _cells(rows, [name]) for name in rows} | {MEAN: _cells(rows, averaged)}

    def outcomes(grid: Grid, cells: Sequence[Cell]) -> Outcomes | None:
        return None if missing_words(grid.cells, cells) else grid.outcomes(cells)

    table = [[outcomes(model.grid, cells) for model in models] for cells in wanted.values()]
    found = marks(table, confidence=precision.confidence)
    return dict(zip(wanted, found, strict=True))
