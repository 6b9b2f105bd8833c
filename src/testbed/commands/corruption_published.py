"""mCE of published models, as `db.py --corruption-report --with-published` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from testbed.commands.action import Options, print_json, reading
from testbed.report import WIDTH, aligned_table, interval_cell

if TYPE_CHECKING:
    from testbed.results.corruption_published import PublishedRow

SHOWN = 3  # models in a note
PROTOCOL = (
    "A baseline belongs to its protocol: errors that were measured by another one than the baseline's make another mCE "
    "than the papers'. There are no intervals, as only accuracies of whole settings are published."
)


def print_published(options: Options) -> None:
    """Prints the mCE of published models against the published AlexNet and against their source's own baseline.

    Raises: UnknownNameError: no such source, model or baseline.
    """
    from testbed.results.corruption_published import published_rows

    with reading(options) as store:
        rows = published_rows(store, options["with_published"], models=options["models"], baseline=options["baseline"])
    if options["as_json"]:
        print_json({"results": [_record(row) for row in rows]})
    else:
        print(_text(rows))


def _record(row: PublishedRow) -> dict[str, Any]:
    from testbed.results.records import number

    return {
        "model": row.errors.name,
        "source": row.errors.source,
        row.mean_error.name: number(row.mean_error),
        "baselines": {name: {value.name: number(value) for value in pair} for name, pair in row.mces.items()},
    }


def _text(rows: Sequence[PublishedRow]) -> str:
    bases = list(dict.fromkeys(name for row in rows for name in row.mces))
    kinds = [f"{kind} % by {base}" for base in bases for kind in ("mCE", "relative mCE")]
    table = [["model", "unnormalised mean error %", *kinds]]
    sources: dict[str, str] = {}
    reasons: dict[str, list[str]] = {}
    for row in rows:
        values = [value for base in bases for value in row.mces[base]]
        table.append([row.errors.name, interval_cell(row.mean_error), *map(interval_cell, values)])
        sources |= {
            value.detail["baseline"]: value.detail["of_baseline"] for value in values if value.value is not None
        }
        for reason in {value.reason for value in values if value.value is None}:
            reasons.setdefault(reason, []).append(row.errors.name)
    notes = [f"{name}: {source}." for name, source in sources.items()]
    notes += [PROTOCOL, *(f"Undefined, {_names(models)}: {reason}." for reason, models in sorted(reasons.items()))]
    return "\n".join([aligned_table(table, num_names=1), "", *(fill(note, WIDTH) for note in notes)])


def _names(models: Sequence[str]) -> str:
    more = f" and {len(models) - SHOWN} more" if len(models) > SHOWN else ""
    return ", ".join(models[:SHOWN]) + more
