"""Where the numbers of our own models come from: definitions, weights, runs, versions and devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from testbed.provenance import revision_words
from testbed.results.numerics import arithmetic_words
from testbed.results.stored import seed_of
from testbed.store import digests
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader
from testbed.store.schema import runs
from testbed.store.views import StoredModel


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the numbers of a model come from.

    Args:
        model: as the store knows it.
        settings: that it was evaluated on, with the seeds of the runs.
        numerics: how it computed, in words.
        runs: versions, devices and code revisions, each combination once.
        first, last: days of the first and the last evaluation.
    """

    model: StoredModel | None
    settings: Mapping[str, Sequence[int]]
    numerics: Sequence[str]
    runs: Sequence[Mapping[str, Any]]
    first: str
    last: str


def origins(
    store: Reader, evaluations: Sequence[Evaluation], label_of: Callable[[Evaluation], str]
) -> dict[str, Origin]:
    """By label of a model where its numbers come from."""
    models = {(model.name, model.label_space): model for model in store.list_models()}
    known = _known_runs(store)
    own: dict[str, list[Evaluation]] = defaultdict(list)
    for evaluation in evaluations:
        own[label_of(evaluation)].append(evaluation)
    return {
        label: _origin(models.get((there[0].model, there[0].label_space)), there, known) for label, there in own.items()
    }


def _origin(
    model: StoredModel | None, evaluations: Sequence[Evaluation], known: Mapping[int, Mapping[str, Any]]
) -> Origin:
    seeds: dict[str, set[int]] = defaultdict(set)
    for one in evaluations:
        seeds[one.setting].add(seed_of(one))
    days = sorted(one.completed_at.date().isoformat() for one in evaluations if one.completed_at)
    used = _distinct(known[run] for run in {one.run_id for one in evaluations} if run is not None and run in known)
    return Origin(
        model=model,
        settings={name: sorted(of_setting) for name, of_setting in sorted(seeds.items())},
        numerics=sorted({arithmetic_words(one.numerics) for one in evaluations}),
        runs=used,
        first=days[0] if days else "",
        last=days[-1] if days else "",
    )


def _known_runs(store: Reader) -> dict[int, dict[str, Any]]:
    """By id of a run what it was made with; nothing of the person, the machine or its folders."""
    wanted = select(*runs.c["id", "code_revision", "versions", "devices"])
    with store.reading() as connection:
        digests.check(connection, runs)
        rows = connection.execute(wanted).all()
    return {
        row.id: {
            "revision": revision_words(row.code_revision or ""),
            "versions": row.versions or {},
            "devices": sorted(set(row.devices or [])),
        }
        for row in rows
    }


def _distinct(known: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted({repr(one): one for one in known}.values(), key=repr)
