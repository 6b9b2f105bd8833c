"""Stored evaluations under common corruptions: by model the grid of corruption x severity, with the clean parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError, UnknownNameError, suggestion
from testbed.metrics.corruption import Cell, Grid
from testbed.metrics.factors import Factors
from testbed.metrics.wellposed import Identical, Outputs, guessing_rate
from testbed.results.corruption_choice import IN_MEMORY, SampleSet, check_family, is_of, sample_sets
from testbed.results.numerics import names_with_numerics, network_key
from testbed.results.own import clean_correct, correct
from testbed.results.precision import Precision
from testbed.results.runs import Run, by_fit, guessing_when_clean, unknown_answers
from testbed.results.stored import Group, complete_evaluations, is_named, stored_groups
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader

Fit = tuple[int, int | None]  # seed of the fitted model, and the clean evaluation of the run


@dataclass(frozen=True, kw_only=True)
class StoredGrid:
    """A model under the corruptions of a data set.

    Args:
        name: of the model, with the numerics that tell it from others of its name.
        groups: by cell its runs; those of all cells are of the same fitted models and images.
        grid: the outcomes.
        missing: by setting the seeds that its runs lack there, of cells that the model or another one has.
    """

    name: str
    groups: Mapping[Cell, Group]
    grid: Grid
    missing: Mapping[str, tuple[int, ...]]

    @property
    def evaluation(self) -> Evaluation:
        """The first one, which stands for what all share."""
        return next(iter(self.groups.values()))[0].evaluation

    @property
    def seeds(self) -> list[int]:
        """Of all runs."""
        return sorted({run.seed for group in self.groups.values() for run in group})

    @property
    def nonfinite(self) -> tuple[int, int]:
        """How many answers, clean and corrupted, are not finite and so count as wrong, and of how many."""
        runs = [run for group in self.groups.values() for run in group]
        found = {one.id: one.predictions() for run in runs for one in (run.evaluation, run.clean) if one}
        lost = sum(int(np.count_nonzero(predictions < 0)) for predictions in found.values())
        return lost, sum(predictions.size for predictions in found.values())

    @property
    def warning(self) -> str:
        """That the model guesses on the clean images; empty where it does not."""
        return guessing_when_clean(run for group in self.groups.values() for run in group)


@dataclass(frozen=True, kw_only=True)
class DatasetGrids:
    """The models under the corruptions of one data set, in the order of the store.

    Args:
        dataset: name of the clean data, with `@limitN` where they are that part of it.
        family: of the shifts.
        models: each on its own cells.
        left_out: by name of other parts of the data, the number of their settings.
        undefined: by setting why it is not known which answers are right there, so that no model has it.
    """

    dataset: str
    family: str
    models: Sequence[StoredGrid]
    left_out: Mapping[str, int]
    undefined: Mapping[str, str]


def corruption_grids(
    store: Reader, precision: Precision, *, models: Sequence[str] = (), datasets: Sequence[str] = (),
    family: str = IN_MEMORY, beside: Sequence[str] = (),
) -> list[DatasetGrids]:  # fmt: skip
    """What the store has on the common corruptions of each data set.

    Args:
        precision: of the intervals.
        models, datasets: names and globs; all without any. The data set is that of the clean evaluations; of its
            samples all are reported, or as many as the models have (`testbed.results.corruption_choice.sample_sets`).
        family: of the shifts; one alone, as images made in memory and read from disk are not the same.
        beside: names of more models, which need not be there.
    Raises:
        UnknownNameError: a model has nothing there, or only other variants of the family are stored.
        DataError: cells of a model are not of the same samples, or a sample is in no cluster.
    """
    evaluations = complete_evaluations(store)
    check_family(family, evaluations)
    groups = [group for group in stored_groups(store, evaluations, lambda one: _is_of(one, family))
              if all(run.clean for run in group) and is_of(group, datasets)]  # fmt: skip
    _check_named(models, [group[0].evaluation.model for group in groups])
    chosen = (*models, *beside) if models else ()
    wanted = [group for group in groups if is_named(group[0].evaluation.model, chosen)]
    return [_dataset_grids(one, family, precision) for one in sample_sets(wanted, datasets)]


def grid_of_runs(cells: Mapping[Cell, Sequence[Sequence[Run]]], precision: Precision) -> Grid:
    """The outcomes of the runs of a model, joined by sample id.

    Args:
        cells: by cell the runs of each fitted model, the same ones in every cell.
        precision: of the intervals.
    Raises: DataError: cells are not of the same samples, or a sample is in no cluster or not in the clean evaluation.
    """
    reference = [fit[0] for fit in next(iter(cells.values()))]
    clean = np.array([_clean(run) for run in reference], np.float64)
    factors: Factors = precision.factors([run.evaluation for run in reference])
    found, num_draws = {}, {}
    for cell, fits in cells.items():
        rows = [_right(runs, start) for runs, start in zip(fits, reference, strict=True)]
        is_single = all(len(row) == 1 for row in rows)
        found[cell] = np.array([row[0] if is_single else row.mean(axis=0) for row in rows])
        num_draws[cell] = float(np.mean([len(row) for row in rows]))
    return Grid(clean=clean, cells=found, num_draws=num_draws, factors=factors)


def cell_of(evaluation: Evaluation) -> Cell:
    """The corruption and severity of an evaluation."""
    shift = evaluation.shift
    return (shift.name, shift.severity) if shift else ("", None)


def outputs_of(stored: StoredGrid) -> dict[Cell, Outputs]:
    """By cell how often guessing would be right, and whether the model puts out what it does for the clean images."""
    return {cell: _outputs(group) for cell, group in stored.groups.items()}


def _is_of(evaluation: Evaluation, family: str) -> bool:
    return evaluation.shift is not None and evaluation.shift.family == family


def _check_named(patterns: Iterable[str], known: Sequence[str]) -> None:
    for pattern in patterns:
        if not any(is_named(name, [pattern]) for name in known):
            hint = suggestion(pattern, sorted(set(known)))
            raise UnknownNameError(f"Model '{pattern}' has no complete evaluation under corruptions. {hint}".rstrip())


def _dataset_grids(found: SampleSet, family: str, precision: Precision) -> DatasetGrids:
    reasons = {group[0].evaluation.setting: unknown_answers(group) for group in found.groups}
    undefined = {setting: reason for setting, reason in reasons.items() if reason}
    known = [group for group in found.groups if group[0].evaluation.setting not in undefined]
    return DatasetGrids(dataset=found.name, family=family, models=_grids(known, precision), left_out=found.left_out,
                        undefined=undefined)  # fmt: skip


def _grids(groups: Sequence[Group], precision: Precision) -> list[StoredGrid]:
    """The grids of the models of one data set; with names that tell them apart."""
    by_model: dict[tuple[str, str], dict[Cell, Group]] = {}
    for group in groups:
        evaluation = group[0].evaluation
        own = by_model.setdefault((evaluation.model_fingerprint, network_key(evaluation)), {})
        if (cell := cell_of(evaluation)) in own:
            raise _two_of_a_cell(own[cell][0].evaluation, evaluation)
        own[cell] = group
    firsts = [next(iter(own.values()))[0].evaluation for own in by_model.values()]
    names = names_with_numerics(firsts, twin_key=lambda one: one.model)
    settings = {cell: group[0].evaluation.setting for own in by_model.values() for cell, group in own.items()}
    return [_grid(names, own, settings, precision) for own in by_model.values()]


def _grid(
    names: Mapping[int, str], own: Mapping[Cell, Group], settings: Mapping[Cell, str], precision: Precision
) -> StoredGrid:
    by_cell = {cell: {_fit(runs[0]): runs for runs in by_fit(group)} for cell, group in own.items()}
    fits = sorted({fit for there in by_cell.values() for fit in there}, key=lambda fit: (fit[0], fit[1] or 0))
    whole = {cell: there for cell, there in by_cell.items() if len(there) == len(fits)}
    first = next(iter(own.values()))
    if not whole:
        raise DataError(
            f"No corruption was evaluated with all {len(fits)} runs of '{first[0].evaluation.model}', which have the "
            f"seeds {', '.join(str(seed) for seed, _ in fits)}. Evaluate all settings with the same --seeds."
        )
    seeds = tuple(sorted({run.seed for group in own.values() for run in group}))
    missing = {setting: seeds for cell, setting in settings.items() if cell not in whole}
    grid = grid_of_runs({cell: [there[fit] for fit in fits] for cell, there in whole.items()}, precision)
    return StoredGrid(name=names[first[0].evaluation.id], groups={cell: own[cell] for cell in whole}, grid=grid,
                      missing=missing)  # fmt: skip


def _two_of_a_cell(first: Evaluation, second: Evaluation) -> DataError:
    name, severity = cell_of(first)
    settings = f"two settings of {name} at severity {severity}: '{first.setting}' and '{second.setting}'"
    places = f"'{first.setting}' twice, with its perturbation computed on the device and on the CPU"
    told = places if first.setting == second.setting else settings
    return DataError(
        f"'{first.model}' has {told}. Put those that are to be reported into a database of their own: eval.py --db-url."
    )


def _fit(run: Run) -> Fit:
    return run.evaluation.fit_seed, None if run.clean is None else run.clean.id


def _clean(run: Run) -> NDArray[np.bool_]:
    return correct(run.evaluation)[0] if run.clean is None else clean_correct(run.evaluation, run.clean)


def _right(runs: Sequence[Run], reference: Run) -> NDArray[np.bool_]:
    """[draws, n] whether each sample is right, over the runs of one fitted model, in the order of a reference.

    Raises: DataError: they are not of the same samples.
    """
    for run in runs:
        if run.evaluation.n != reference.evaluation.n:
            raise _other_samples(run.evaluation, reference.evaluation)
    return np.concatenate([correct(run.evaluation)[:, _places(run.evaluation, reference.evaluation)] for run in runs])


def _places(evaluation: Evaluation, wanted: Evaluation) -> slice | NDArray[np.int64]:
    """Where the samples of another evaluation are in an evaluation: joined by sample id.

    Raises: DataError: one of them is not there.
    """
    if evaluation.has_samples_of(wanted):
        return slice(None)
    places = {name: place for place, name in enumerate(evaluation.sample_ids())}
    names = wanted.sample_ids()
    if any(name not in places for name in names):
        raise _other_samples(evaluation, wanted)
    return np.array([places[name] for name in names])


def _other_samples(first: Evaluation, second: Evaluation) -> DataError:
    return DataError(
        f"'{first.setting}' and '{second.setting}' of '{first.model}' are not of the same samples ({first.n} and "
        f"{second.n}). Evaluate both with the same --limit."
    )


def _outputs(group: Group) -> Outputs:
    rates, weights = [], []
    for runs in by_fit(group):
        wrong = ~_clean(runs[0])
        predictions = np.concatenate([run.evaluation.predictions() for run in runs])
        rate = guessing_rate(predictions, runs[0].evaluation.targets(), wrong)
        rates.append(rate or 0.0)
        weights.append(np.count_nonzero(wrong))
    guessing = float(np.average(rates, weights=weights)) if sum(weights) else None
    return Outputs(guessing=guessing, identical=_identical(group))


def _identical(group: Group) -> Identical | None:
    """What of all outputs, in every run and draw, is that of the clean images."""
    pairs = [(run.evaluation, run.clean) for run in group if run.clean is not None]
    places = [_places(clean, shifted) for shifted, clean in pairs]
    for (shifted, clean), place in zip(pairs, places, strict=True):
        if not (shifted.predictions() == clean.predictions()[0][place]).all():
            return None
    for (shifted, clean), place in zip(pairs, places, strict=True):
        if not (shifted.keeps_all_logits and clean.keeps_all_logits):
            return "predictions"
        expected = clean.logits()[place]
        if not all(np.array_equal(shifted.logits(draw), expected) for draw in range(shifted.num_draws)):
            return "predictions"
    return "logits"
