"""Actions of `db.py` that look at the whole: what is done, and how the store differs from the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from testbed.commands.action import Options, definitions, print_json, reading
from testbed.commands.administration import data_of
from testbed.store.status import STATES, Status, Unfinished
from testbed.store.status import status as store_status
from testbed.visible import visible

SHOWN = 20  # unfinished evaluations


def status(options: Options) -> None:
    """Prints how many evaluations of each model are in which state, and those that are not complete."""
    with reading(options) as store:
        found = store_status(store)
    if options["as_json"]:
        totals = {state: found.total(state) for state in STATES}
        print_json({**asdict(found), "totals": totals})
    else:
        print(_status_text(found))


def diff_registry(options: Options) -> None:
    """Prints how the store's definitions differ from the registry's."""
    definitions(options)
    from testbed.engine.register import differences

    with reading(options) as store:
        found = differences(store, data_of(options, store, is_kept=False))
    if options["as_json"]:
        print_json([asdict(difference) for difference in found])
    else:
        for one in found:
            print(f"{one.kind} {one.name}: {one.state}{f', {one.reason}' if one.reason else ''}")


def _status_text(found: Status) -> str:
    totals = ["all", *(str(found.total(state)) for state in STATES)]
    rows = [[visible(model.model), *(str(model.counts[state]) for state in STATES)] for model in found.models]
    table = [["model", *STATES], *rows, totals]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table]
    lines += [f"Written to by {found.writer}." if found.writer else "Nobody writes to it."]
    for one in found.unfinished[:SHOWN]:
        way = _numerics_words(one, found.unfinished)
        where = f" (process {one.pid} on {one.host})" if one.state == "running" else ""
        reason = f": {one.reason}" if one.reason else ""
        lines.append(f"{one.state}: {one.model}{way} on {one.eval_setting}{where}{reason}")
    if (left := sum(found.total(state) for state in STATES[1:-1]) - SHOWN) > 0:
        lines.append(f"... and {left} more")
    lines += [
        f"metrics_fn failed: {one.model} on {one.eval_setting}: {one.reason}" for one in found.without_metrics[:SHOWN]
    ]
    return "\n".join(lines)


def _numerics_words(one: Unfinished, shown: Sequence[Unfinished]) -> str:
    """What tells the numerics of an evaluation from those of the others; empty where nothing does."""
    from testbed.results.numerics import arithmetic_key, arithmetic_words, other_facts

    is_ambiguous = len({arithmetic_key(other.numerics) for other in shown}) > 1
    twins = [other.numerics for other in shown if (other.model, other.eval_setting) == (one.model, one.eval_setting)]
    facts = [arithmetic_words(one.numerics)] if is_ambiguous else []
    told = ", ".join(filter(None, [*facts, *other_facts(one.numerics, twins)]))
    return f" ({told})" if told else ""
