"""What a report may say of a model under common corruptions, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from testbed.metrics.corruption import COMMON, Cell, Grid, relative_corruption_accuracy
from testbed.results import Precision, Result, by_fit
from testbed.results.corruption import cell_of, grid_of_runs
from testbed.results.corruption_choice import IN_MEMORY, ON_DISK

SOURCES = {IN_MEMORY: "simulated", ON_DISK: "as published"}


def is_corrupted(result: Result) -> bool:
    """Whether a result is one under a common corruption, in any form."""
    shift = result.evaluation.shift
    return shift is not None and shift.family.startswith(IN_MEMORY)


def corruption_sentences(results: Sequence[Result]) -> list[str]:
    """A sentence for each model, and each form of the corruptions on each data set, over all that is among the results.

    Over the 15 alone where all of them are: every severity of every corruption counts alike.

    Args: results: of one command, any of them.
    """
    grouped: dict[tuple[str, str, str], dict[Cell, Result]] = {}
    for result in results:
        if is_corrupted(result) and result.comparisons and (clean := result.runs[0].clean):
            shift = result.evaluation.shift
            key = (result.name, clean.dataset, shift.family if shift else "")
            grouped.setdefault(key, {})[cell_of(result.evaluation)] = result
    return [_sentence(*key, cells) for key, cells in grouped.items()]


def _sentence(model: str, dataset: str, family: str, results: Mapping[Cell, Result]) -> str:
    common = {cell: result for cell, result in results.items() if cell[0] in COMMON}
    if {name for name, _ in common} == set(COMMON):
        results = common  # those that a mean is usually over; others are in the table
    grid = grid_of_runs({cell: by_fit(result.runs) for cell, result in results.items()}, Precision())
    kept = relative_corruption_accuracy(grid.outcomes(grid.cells))
    over = f"{_cells_words(list(grid.cells))} on {grid.n} samples of {dataset}, {_source(family)}"
    if kept.value is None:
        return f"{model}: what it keeps under {over}, is undefined, because {kept.reason}."
    return (
        f"{model} keeps {kept.value:.2f} % of the images that it classifies right when clean, with 95 % confidence "
        f"between {kept.ci_low:.2f} and {kept.ci_high:.2f} % (n = {kept.n}{_runs_words(results)}), under {over}"
        f"{_worst(grid)}; not tested: other corruptions, attacks, other data."
    )


def _worst(grid: Grid) -> str:
    if len(grid.cells) == 1:
        return ""
    kept = {cell: relative_corruption_accuracy(grid.outcomes([cell])).value or 0.0 for cell in grid.cells}
    worst = min(kept, key=lambda cell: kept[cell])
    return f"; the least, {kept[worst]:.2f} %, under {_cell_words(worst)}"


def _cells_words(cells: Sequence[Cell]) -> str:
    if len(cells) == 1:
        return _cell_words(cells[0])
    names = list(dict.fromkeys(name for name, _ in cells))
    named = ", ".join(names) if len(names) <= 3 else f"{len(names)} corruptions"
    named = f"the {len(COMMON)} common corruptions" if set(names) == set(COMMON) else named
    levels = sorted({severity for _, severity in cells if severity is not None})
    if not levels:
        return named
    is_range = len(levels) > 2 and levels[-1] - levels[0] == len(levels) - 1
    listed = f"{levels[0]} to {levels[-1]}" if is_range else ", ".join(map(str, levels))
    return f"{named} at severit{'y' if len(levels) == 1 else 'ies'} {listed}"


def _cell_words(cell: Cell) -> str:
    return cell[0] if cell[1] is None else f"{cell[0]} at severity {cell[1]}"


def _source(family: str) -> str:
    """How a family of shifts has its images, as in 'simulated, mnist28' or 'as published, c-bar, resized'."""
    known = max((name for name in SOURCES if family.startswith(name)), key=len)
    choices = family.removeprefix(known).split("-")
    if known == ON_DISK:  # the name of a set of copies may have such a line itself
        end = choices[-1:] if choices[-1] == "resized" else []
        choices = ["-".join(choices[1 : len(choices) - len(end)]), *end]
    return ", ".join([SOURCES[known], *filter(None, choices)])


def _runs_words(results: Mapping[Cell, Result]) -> str:
    fits = by_fit(next(iter(results.values())).runs)
    return "" if len(fits) == 1 else f", {len(fits)} fitted models"
