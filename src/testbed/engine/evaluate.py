"""A plan to stored evaluations and their results: the one path that every evaluation takes."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from testbed.cli import interrupted_code
from testbed.engine.comparisons import Comparisons
from testbed.engine.driver import Driver
from testbed.engine.engine import Engine
from testbed.engine.inline import InlineEngine
from testbed.engine.place import Place
from testbed.engine.planned import Planned
from testbed.engine.preflight import Ready, identity
from testbed.engine.process import ProcessEngine
from testbed.engine.profiled import ProfiledEngine
from testbed.engine.schedule import Pending
from testbed.engine.unit import Unit
from testbed.errors import TestbedError
from testbed.eventlog import record
from testbed.interruption import Interruption
from testbed.profile import Profile
from testbed.progress import PlanProgress
from testbed.provenance import provenance
from testbed.records import WantedEvaluation
from testbed.results import Result, Run, result_of, store_metrics
from testbed.results.numerics import names_with_numerics, several_numerics
from testbed.store.admin import restore_evaluations
from testbed.store.definitions import put_definitions
from testbed.store.store import Store
from testbed.store.views import ModelFacts
from testbed.users_code import users_output

NOTHING_KNOWN = ModelFacts(weights_sha256=None, num_outputs=None)


def driver_name() -> str:
    """Who we are, for another driver that is refused or waits."""
    return f"process {os.getpid()} on {platform.node()}"


@users_output()
def run_evaluations(
    planned: Planned, store: Store, place: Place, *, progress: PlanProgress, profile: Profile | None = None
) -> dict[int, str]:
    """Evaluates what is pending; returns the reasons of the evaluations that failed, by id.

    `profile` is told when workers start and how long they are waited for.
    Raises:
        StoreError: another driver writes to the store.
        DataError: the disk is too small for the decoded images.
        KeyboardInterrupt: the user asked for an end; what workers had in hand is stored, unless they asked twice.
    """
    store.lock(driver_name())
    planned.reserve_banks()
    origin = provenance(devices=place.devices.described)
    run_id = store.start_run(origin)
    record("run", id=run_id, **origin)
    _put_definitions(planned.preparation.distinct, store)
    restore_evaluations(store, (ready.key for ready in planned.preparation.evaluations))
    ids = _put_evaluations((item.ready for item in planned.pending), store, run_id, planned.store_logits)
    record("plan", evaluations=[_facts(item, id_) for item, id_ in zip(planned.pending, ids, strict=True)])
    configs = place.worker_configs(planned.preparation.tasks)
    engine: Engine = InlineEngine(configs) if place.devices.is_inline else ProcessEngine(configs)
    if profile is not None:
        engine = ProfiledEngine(engine, profile)

    comparisons = Comparisons(planned.preparation.evaluations, store)

    def complete(ready: Ready, evaluation_id: int) -> None:
        store_metrics(store, evaluation_id)
        comparisons.make(ready)  # at once: an interrupted run leaves nothing uncompared
        seed = max(ready.key.fit_seed, ready.key.noise_seed)
        progress.note(f"done: {ready.pairing.model.name} on {ready.setting.name}" + (f", seed {seed}" if seed else ""))

    interruption = Interruption()
    driver = Driver(
        store,
        engine,
        planned.pending,
        ids,
        progress=progress,
        on_complete=complete,
        is_ready=partial(_is_ready, planned),
        unit_timeout=place.unit_timeout,
        is_interrupted=lambda: interruption.is_wanted,
    )
    status = 1
    try:
        _complete_stored(planned, store, run_id)
        if planned.pending:
            planned.filler.start()
            with interruption:
                driver.run(unknown_models(planned.pending, store))
            interruption.raise_if_wanted()
        for ready in planned.preparation.evaluations:
            comparisons.make(ready)
        status = 1 if driver.failed else 0
    except KeyboardInterrupt as error:
        status = interrupted_code(error)
        raise
    except TestbedError as error:
        status = error.exit_code
        raise
    finally:
        engine.stop()
        planned.filler.stop()
        store.finish_run(run_id, status)
        record("end", id=run_id, exit_status=status)
    return driver.failed


def _is_ready(planned: Planned, unit: Unit) -> bool:
    """Whether the samples of a unit are decoded. Raises: DataError: they are damaged."""
    task = planned.preparation.tasks[unit.task]
    return planned.filler.is_ready(task.bank, task.sample_indices[unit.start : unit.stop])


def collect(planned: Planned, store: Store) -> list[Result]:
    """The results of a plan from the store: one per model and setting, over its runs, in the plan's order."""
    evaluations = planned.preparation.evaluations
    states = store.find_evaluations(ready.key for ready in evaluations)
    found = store.evaluations_by_id(state.id for state in states if state is not None)
    stored = [None if state is None else found[state.id] for state in states]
    by_name = {
        (ready.pairing.model.name, ready.pairing.setting.name, ready.pairing.seed): evaluation
        for ready, evaluation in zip(evaluations, stored, strict=True)
    }
    runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for ready, evaluation in zip(evaluations, stored, strict=True):
        pairing = ready.pairing
        if evaluation is not None:
            clean = by_name.get((pairing.model.name, pairing.clean or "", pairing.seed))
            runs[pairing.model.name, ready.setting.name].append(
                Run(seed=pairing.seed, evaluation=evaluation, clean=clean)
            )
    results = [result_of(group) for group in runs.values()]
    names = names_with_numerics([result.evaluation for result in results], beside=several_numerics(store))
    return [replace(result, label=names[result.evaluation.id]) for result in results]


def _facts(item: Pending, evaluation_id: int) -> dict[str, Any]:
    """What is to be evaluated, for the log."""
    pairing = item.ready.pairing
    return {
        "id": evaluation_id,
        "model": pairing.model.name,
        "setting": item.ready.setting.name,
        "seed": pairing.seed,
        "task": item.ready.task,
        "missing_samples": sum(where.stop - where.start for where in item.missing),
    }


def _put_definitions(evaluations: Sequence[Ready], store: Store) -> None:
    put_definitions(
        store,
        models=(ready.model_version for ready in evaluations),
        datasets=(ready.dataset_version for ready in evaluations),
        settings=(ready.setting_version for ready in evaluations),
    )


def _put_evaluations(evaluations: Iterable[Ready], store: Store, run_id: int, store_logits: str | None) -> list[int]:
    """Takes evaluations up; returns their ids."""
    wanted = [
        WantedEvaluation(
            key=ready.key,
            num_draws=ready.pairing.num_draws,
            num_samples=ready.num_samples,
            shard_size=ready.shard_size,
        )
        for ready in evaluations
    ]
    return [state.id for state in store.put_evaluations(wanted, run_id=run_id, store_logits=store_logits)]


def _complete_stored(planned: Planned, store: Store, run_id: int) -> None:
    """Completes what was interrupted between its last shard and its metrics."""
    pending = {identity(item.ready) for item in planned.pending}
    stored = [ready for ready in planned.preparation.distinct if identity(ready) not in pending]
    states = store.find_evaluations(ready.key for ready in stored)
    left = [ready for ready, state in zip(stored, states, strict=True) if state and state.status != "complete"]
    for evaluation_id in _put_evaluations(left, store, run_id, planned.store_logits):
        store_metrics(store, evaluation_id)


def unknown_models(pending: Sequence[Pending], store: Store) -> list[Ready]:
    """One evaluation for each model that has never been loaded, and each number of classes that is asked of it: its
    outputs are looked at before anything is run."""
    firsts = {
        (item.ready.model_version.fingerprint, len(item.ready.dataset_version.class_names)): item.ready
        for item in reversed(pending)
    }
    return [ready for (mark, _), ready in firsts.items() if store.model_facts(mark) in (None, NOTHING_KNOWN)]
