"""Our own evaluations beside their accuracies: what noise and corruptions cost, and where the numbers come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from plotting.pages.entries import Entry
from plotting.pages.origins import Origin, origins

from testbed.fingerprint import fingerprint
from testbed.metrics.comparison import NETTED
from testbed.records import MetricValue, Shift
from testbed.report import clean_parent_words, clipping_lines, few_runs_lines, former_words, undefined_words
from testbed.results.corruption import corruption_grids
from testbed.results.corruption_report import Column, CorruptionReport, corruption_report
from testbed.results.point_numerics import numerics_words
from testbed.results.precision import Precision
from testbed.results.runs import Run, guessing_when_clean, result_of
from testbed.results.stored import Group, complete_evaluations, stored_groups
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader

if TYPE_CHECKING:
    import pandas as pd

CORRUPTIONS = "common-corruption"  # begins the families of shifts that are corruptions


@dataclass(frozen=True, kw_only=True)
class Change:
    """A model under a shift against its clean parent, over all its runs.

    Args:
        setting, clean: names.
        shift: of the setting.
        metrics: MSCR, loss and recovery by name, percent.
        n: images.
        num_draws: draws of the noise in a run.
        num_runs: runs that are taken together.
        notes: which accuracy is the clean one, and what clipped noise and few fitted models do not tell, in sentences.
    """

    setting: str
    clean: str
    shift: Shift
    metrics: Mapping[str, MetricValue]
    n: int
    num_draws: int
    num_runs: int
    notes: Sequence[str] = ()

    @property
    def relative_accuracy(self) -> MetricValue:
        """Percent of the images right when clean that are right under the shift: 100 less the loss."""
        loss = self.metrics["loss"]
        value, low, high = (None if one is None else 100 - one for one in (loss.value, loss.ci_high, loss.ci_low))
        return replace(loss, name="relative_corruption_accuracy", value=value, ci_low=low, ci_high=high)


@dataclass(frozen=True, kw_only=True)
class Own:
    """What is known of our own evaluations, by label of the model.

    Args:
        changes: under shifts, by setting.
        warnings: that a model guesses on clean images, where it does.
        former: whose results are of a former definition, in sentences.
        undefined: where it is not known which answers are right, in sentences.
        reports: of corruptions, with the position of the model's column.
        origins: of all.
    """

    changes: Mapping[str, Mapping[str, Change]] = field(default_factory=dict)
    warnings: Mapping[str, str] = field(default_factory=dict)
    former: Mapping[str, Sequence[str]] = field(default_factory=dict)
    undefined: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reports: Mapping[str, Sequence[tuple[CorruptionReport, int]]] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def column(self, entry: str, clean: str) -> Column | None:
        """The column of the corruption report of a model on the data of a clean setting; None where there is none."""
        for report, place in self.reports.get(entry, ()):
            column = report.columns[place]
            shift = column.stored.evaluation.shift
            if shift is not None and shift.clean_eval_setting == clean:
                return column
        return None


def own_results(store: Reader, table: pd.DataFrame, entries: Sequence[Entry], *, settings: Collection[str]) -> Own:
    """What the store holds of our own models.

    Args:
        table: the long table of our own complete results.
        entries: the models of the site.
        settings: those that any model has an accuracy on.
    """
    labels = _Labels(store, table, entries)
    evaluations = [one for one in complete_evaluations(store) if labels.of(one) and one.setting in settings]
    if not evaluations:
        return Own()
    groups = stored_groups(store, evaluations, lambda one: one.shift is not None)
    return Own(
        changes=_changes(groups, table, labels),
        warnings=_warnings(groups, labels),
        former=_former(evaluations, labels),
        undefined={label: undefined_words(undefined_in(rows)) for label, rows in labels.rows(table)},
        reports=_reports(store, evaluations, labels),
        origins=origins(store, evaluations, labels.of),
    )


def undefined_in(table: pd.DataFrame) -> dict[str, str]:
    """By setting why our own accuracies are undefined, in a long table."""
    rows = table[(table["metric"] == "top1") & table["value"].isna() & table["source"].isna()]
    return dict(zip(rows["eval_setting"], rows["reason"], strict=True))


class _Labels:
    """The labels of our own models: one for each way of computing, where a model was evaluated in several."""

    def __init__(self, store: Reader, table: pd.DataFrame, entries: Sequence[Entry]) -> None:
        names: dict[tuple[str, str], list[str]] = defaultdict(list)
        for entry in entries:
            if entry.is_own:
                names[entry.model, entry.label_space].append(entry.name)
        rows = table.drop_duplicates(["model", "label_space", "eval_setting", "numerics_fingerprint"])
        keys = zip(rows["model"], rows["label_space"], rows["numerics_fingerprint"], strict=True)
        self._labels: dict[tuple[Any, ...], str] = {
            (model, space, numerics): _told(names.get((model, space), []), words)
            for (model, space, numerics), words in zip(keys, numerics_words(store, rows), strict=True)
        }

    def of(self, evaluation: Evaluation) -> str:
        """The label of the model that was evaluated; '' for one that the site does not show."""
        numerics = fingerprint(dict(evaluation.numerics))
        return self._labels.get((evaluation.model, evaluation.label_space, numerics), "")

    def rows(self, table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
        """By label its rows of the long table."""
        for key, rows in table.groupby(["model", "label_space", "numerics_fingerprint"], sort=False):
            if label := self._labels.get(tuple(key), ""):
                yield label, rows


def _told(names: Sequence[str], words: str) -> str:
    """The one of a model's labels that ends in what its numerics are; '' for none."""
    if len(names) == 1:
        return names[0]
    return next((name for name in names if not words or name.endswith((f"({words})", f", {words})"))), "")


def _warnings(groups: Sequence[Group], labels: _Labels) -> dict[str, str]:
    runs: dict[str, list[Run]] = defaultdict(list)
    for group in groups:
        runs[labels.of(group[0].evaluation)] += group
    return {label: warning for label, own in runs.items() if (warning := guessing_when_clean(own))}


def _former(evaluations: Sequence[Evaluation], labels: _Labels) -> dict[str, list[str]]:
    own: dict[str, list[Evaluation]] = defaultdict(list)
    for evaluation in evaluations:
        own[labels.of(evaluation)].append(evaluation)
    return {label: words for label, there in own.items() if (words := former_words(there))}


def _changes(groups: Sequence[Group], table: pd.DataFrame, labels: _Labels) -> dict[str, dict[str, Change]]:
    single = _single_runs(table)
    found: dict[str, dict[str, Change]] = defaultdict(dict)
    for group in groups:
        first = group[0].evaluation
        metrics = single.get(_identity(first)) if len(group) == 1 else None
        if metrics is None:
            metrics = dict(result_of(group).comparisons)
        if first.shift is not None and metrics:
            found[labels.of(first)][first.setting] = _change(group, first.shift, metrics)
    return found


def _change(group: Group, shift: Shift, metrics: Mapping[str, MetricValue]) -> Change:
    first = group[0].evaluation
    clean = group[0].clean.setting if group[0].clean else shift.clean_eval_setting
    parent = None if shift.family.startswith(CORRUPTIONS) else clean_parent_words(group)  # else a line for each of 75
    notes = [*([f"{parent}."] if parent else []), *clipping_lines([group]), *few_runs_lines([group])]
    return Change(setting=first.setting, clean=clean, shift=shift, metrics=metrics, n=first.n,
                  num_draws=first.num_draws, num_runs=len(group), notes=notes)  # fmt: skip


def _single_runs(table: pd.DataFrame) -> dict[tuple[Any, ...], dict[str, MetricValue]]:
    """By identity of an evaluation MSCR, loss and recovery as they are stored beside it."""
    rows = table[table["metric"].isin(NETTED)]
    columns = ("model", "label_space", "eval_setting", "fit_seed", "noise_seed", "numerics_fingerprint")
    values = ("metric", "value", "ci_low", "ci_high", "n", "method", "reason")
    found: dict[tuple[Any, ...], dict[str, MetricValue]] = defaultdict(dict)
    plain = rows[[*columns, *values]].astype(object)
    for *key, name, value, low, high, n, method, reason in plain.where(plain.notna(), None).to_numpy().tolist():
        found[tuple(key)][name] = MetricValue(
            name=name, value=value, n=int(n or 0), ci_low=low, ci_high=high, method=method or "", reason=reason or ""
        )
    return found


def _identity(evaluation: Evaluation) -> tuple[Any, ...]:
    numerics = fingerprint(dict(evaluation.numerics))
    seeds = evaluation.fit_seed, evaluation.noise_seed
    return (evaluation.model, evaluation.label_space, evaluation.setting, *seeds, numerics)


def _reports(
    store: Reader, evaluations: Sequence[Evaluation], labels: _Labels
) -> dict[str, list[tuple[CorruptionReport, int]]]:
    families = {one.shift.family for one in evaluations if one.shift and one.shift.family.startswith(CORRUPTIONS)}
    models = sorted({one.model for one in evaluations})
    precision, found = Precision(), defaultdict(list)
    for family in sorted(families):
        there = {one.model for one in evaluations if one.shift and one.shift.family == family}
        for grids in corruption_grids(store, precision, models=[name for name in models if name in there],
                                      family=family):  # fmt: skip
            report = corruption_report(grids, precision)
            for place, column in enumerate(report.columns if report else ()):
                if report and (label := labels.of(column.stored.evaluation)):
                    found[label].append((report, place))
    return found
