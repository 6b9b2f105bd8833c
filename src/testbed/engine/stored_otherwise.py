"""What is asked for and is stored, but for the batch size or the threads: it would be evaluated anew, which is told."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from testbed.engine.preflight import Ready, identity
from testbed.results.numerics import Numerics, stored_numerics
from testbed.store.store import Store

_OPTIONS = {"batch_size": "--batch-size", "threads": "--threads"}  # facts that change by an option that is forgotten


def stored_otherwise(evaluations: Sequence[Ready], store: Store) -> list[str]:
    """A notice for each batch size or number of threads with which some of the evaluations are stored.

    Args: evaluations: that are not stored as they are asked for.
    """
    stored: dict[Any, list[Numerics]] = defaultdict(list)
    for key, numerics in stored_numerics(store, {ready.setting_version.fingerprint for ready in evaluations}):
        stored[key].append(numerics)
    found: Counter[tuple[str, int, int]] = Counter()
    for ready in evaluations:
        for numerics in stored[identity(ready)]:
            own = ready.key.numerics
            differing = [name for name in {*own, *numerics} if own.get(name) != numerics.get(name)]
            if len(differing) == 1 and (name := differing[0]) in _OPTIONS:
                found[name, numerics[name], own[name]] += 1
    return [
        f"{count} evaluation(s) are stored with {name.replace('_', ' ')} {there} and are made anew with {asked}, since "
        f"results can depend on it. {_OPTIONS[name]} {there} goes on with those that are stored."
        for (name, there, asked), count in found.items()
    ]
