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

    Args:
        sources: names under which grids were imported.
        models: names and globs; all without any.
        baseline: name of the grid's own baseline; alexnet without one.
    Raises: UnknownNameError: no such source, model or baseline.
    """
    with store.reading() as connection:
        results = list_published(connection, sources)
    found: list[PublishedRow] = []
    for source in dict.fromkeys(result.source for result in results):
        known = _models([result for result in results if result.source == source])
        own = None if baseline == ALEXNET_IMAGENET_C.name else _named(known, baseline or USUAL_BASELINE, source)
        bases = [ALEXNET_IMAGENET_C, *([own] if own else [])]
        _check_named(known, models, source)
        found += [_row(errors, bases) for name, errors in known.items() if is_named(name, models)]
    return found


def _row(errors: Errors, bases: Sequence[Errors]) -> PublishedRow:
    mces = {
        base.name: (
            mean_corruption_error(errors, base),
            mean_corruption_error(errors, base, is_relative=True),
        )
        for base in bases
    }
    return PublishedRow(errors=errors, mean_error=unnormalised_mean_error(errors), mces=mces)


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


def _named(known: Mapping[str, Errors], name: str, source: str) -> Errors:
    if name not in known:
        raise UnknownNameError(
            f"The baseline '{name}' has no errors on ImageNet-C's files in '{source}'. {suggestion(name, known)} "
            f"Give --baseline one that has, or {ALEXNET_IMAGENET_C.name} alone."
        )
    return known[name]


def _check_named(known: Mapping[str, Errors], models: Sequence[str], source: str) -> None:
    for pattern in models:
        if not any(is_named(name, [pattern]) for name in known):
            hint = suggestion(pattern, known)
            raise UnknownNameError(
                f"Model '{pattern}' has no errors on ImageNet-C's files in '{source}'. {hint}".rstrip()
            )
