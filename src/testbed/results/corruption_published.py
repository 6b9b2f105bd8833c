"""mCE of published models, from imported grids of accuracies on ImageNet-C's files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.errors import UnknownNameError, suggestion
from testbed.metrics.alexnet import ALEXNET_IMAGENET_C
from testbed.metrics.corruption_error import Errors, mean_corruption_error, unnormalised_mean_error
from testbed.records import MetricValue, PublishedResult
from testbed.results.stored import is_named
from testbed.store.published import list_published
from testbed.store.reader import Reader

# The columns of the ImageNet Testbed's grid: an import has no definitions that would say what they are.
_COLUMN = re.compile(r"imagenet-c\.([a-z_]+)\.([1-5])_on-disk")
_CLEAN = "val"
USUAL_BASELINE = "alexnet"


@dataclass(frozen=True, kw_only=True)
class PublishedRow:
    """A published model.

    Args:
        errors: its own.
        mean_error: the unnormalised mean error over the 15.
        mces: by name of the baseline mCE and relative mCE; its protocol is in their detail.
    """

    errors: Errors
    mean_error: MetricValue
    mces: Mapping[str, tuple[MetricValue, MetricValue]]


def published_rows(
    store: Reader, sources: Sequence[str], *, models: Sequence[str] = (), baseline: str | None = None
) -> list[PublishedRow]:
    """The models of imported grids, each measured by the published AlexNet and by the grid's own baseline.

    Where a grid lacks the latter, what is measured by it is undefined, with that reason.

    Args:
        sources: names under which grids were imported.
        models: names and globs; all without any.
        baseline: name of the grid's own baseline; alexnet without one.
    Raises: UnknownNameError: no such source, or no such model or baseline in any of them.
    """
    with store.reading() as connection:
        results = list_published(connection, sources)
    by_source = {source: _models([result for result in results if result.source == source])
                 for source in dict.fromkeys(result.source for result in results)}  # fmt: skip
    own = [] if baseline == ALEXNET_IMAGENET_C.name else [baseline or USUAL_BASELINE]
    _check_named(by_source, [*models, *([baseline] if baseline in own else [])])
    return [
        _row(errors, {ALEXNET_IMAGENET_C.name: ALEXNET_IMAGENET_C} | {base: known.get(base) for base in own}, source)
        for source, known in by_source.items()
        for name, errors in known.items()
        if is_named(name, models)
    ]


def _row(errors: Errors, bases: Mapping[str, Errors | None], source: str) -> PublishedRow:
    """Args: bases: by name; None for one that the source lacks."""
    mces = {
        name: (_missing("mce", name, source), _missing("relative_mce", name, source))
        if base is None
        else (mean_corruption_error(errors, base), mean_corruption_error(errors, base, is_relative=True))
        for name, base in bases.items()
    }
    return PublishedRow(errors=errors, mean_error=unnormalised_mean_error(errors), mces=mces)


def _missing(name: str, baseline: str, source: str) -> MetricValue:
    return MetricValue(name=name, value=None, n=0, reason=f"the baseline {baseline} is not in '{source}'")


def _models(results: Sequence[PublishedResult]) -> dict[str, Errors]:
    """The errors of each model of a source that has any on ImageNet-C's files."""
    cells: dict[str, dict[tuple[str, int | None], float]] = {}
    clean: dict[str, float] = {}
    source = ""
    for one in results:
        if one.metric != "top1" or one.value is None:
            continue
        if one.eval_setting == _CLEAN:
            clean[one.model] = 1 - one.value / 100
        elif (column := _COLUMN.fullmatch(one.eval_setting)) is not None:
            cells.setdefault(one.model, {})[column[1], int(column[2])] = 1 - one.value / 100
            source = f"{one.source}, protocol {one.protocol}"
    return {
        name: Errors(name=name, source=source, cells=errors, clean=clean.get(name)) for name, errors in cells.items()
    }


def _check_named(known: Mapping[str, Mapping[str, Errors]], patterns: Sequence[str]) -> None:
    """Raises: UnknownNameError: something is no model of any source."""
    names = list(dict.fromkeys(name for models in known.values() for name in models))
    where = "errors on ImageNet-C's files in " + ", ".join(f"'{source}'" for source in known)
    if not names:
        raise UnknownNameError(f"No model has {where}.")
    for pattern in patterns:
        if not any(is_named(name, [pattern]) for name in names):
            raise UnknownNameError(f"'{pattern}' has no {where}. {suggestion(pattern, names)}".rstrip())
