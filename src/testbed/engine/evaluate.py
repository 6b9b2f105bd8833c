"""A plan to stored evaluations and their results: the one path that every evaluation takes."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from collections.abc import Mapping, Sequence

from testbed.cli import EXIT_INTERRUPTED
from testbed.engine.driver import Driver
from testbed.engine.engine import Engine
from testbed.engine.inline import InlineEngine
from testbed.engine.planned import Place, Planned
from testbed.engine.preflight import Preparation, Ready, identity
from testbed.engine.process import ProcessEngine
from testbed.engine.schedule import Pending
from testbed.engine.unit import WorkerConfig
from testbed.errors import TestbedError
from testbed.progress import PlanProgress
from testbed.provenance import provenance
from testbed.results import Result, Run, result_of, store_comparison, store_metrics
from testbed.store.admin import restore_evaluations
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store
from testbed.store.views import ModelFacts

NOTHING_KNOWN = ModelFacts(weights_sha256=None, num_outputs=None)


def driver_name() -> str:
    """Who we are, for another driver that is refused or waits."""
    return f"process {os.getpid()} on {platform.node()}"


def run_evaluations(planned: Planned, store: Store, place: Place, *, progress: PlanProgress) -> dict[int, str]:
    """Evaluates what is pending; returns the reasons of the evaluations that failed, by id.

    Raises: StoreError: another driver writes to the store.
    """
    store.lock(driver_name())
    run_id = store.start_run(provenance(devices=place.devices.names))
    _put_definitions(planned.preparation.distinct, store)
    restore_evaluations(store, (ready.key for ready in planned.preparation.evaluations))
    ids = [_put_evaluation(item.ready, store, run_id, planned.store_logits) for item in planned.pending]
    configs = worker_configs(planned.preparation, place)
    engine: Engine = InlineEngine(configs) if place.devices.is_inline else ProcessEngine(configs)

    named = _by_name(planned.preparation.evaluations)

    def complete(ready: Ready, evaluation_id: int) -> None:
        store_metrics(store, evaluation_id)
        _store_comparison(ready, named, store)  # at once: an interrupted run leaves nothing uncompared
        seed = max(ready.key.fit_seed, ready.key.noise_seed)
        progress.note(f"done: {ready.pairing.model.name} on {ready.setting.name}" + (f", seed {seed}" if seed else ""))

    driver = Driver(store, engine, planned.pending, ids, progress=progress, on_complete=complete)
    status = 1
    try:
        _complete_stored(planned, store, run_id)
        if planned.pending:
            driver.run(unknown_models(planned.pending, store))
        for ready in planned.preparation.evaluations:
            _store_comparison(ready, named, store)
        status = 1 if driver.failed else 0
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
        raise
    except TestbedError as error:
        status = error.exit_code
        raise
    finally:
        engine.stop()
        store.finish_run(run_id, status)
    return driver.failed


def collect(planned: Planned, store: Store) -> list[Result]:
    """The results of a plan from the store: one per model and setting, over its runs, in the plan's order."""
    stored = {id(ready): _stored(ready, store) for ready in planned.preparation.evaluations}
    by_name = {
        (ready.pairing.model.name, ready.pairing.setting.name, ready.pairing.seed): stored[id(ready)]
        for ready in planned.preparation.evaluations
    }
    runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for ready in planned.preparation.evaluations:
        pairing, evaluation = ready.pairing, stored[id(ready)]
        if evaluation is not None:
            clean = by_name.get((pairing.model.name, pairing.clean or "", pairing.seed))
            runs[pairing.model.name, ready.setting.name].append(
                Run(seed=pairing.seed, evaluation=evaluation, clean=clean)
            )
    return [result_of(group) for group in runs.values()]


def _stored(ready: Ready, store: Store) -> Evaluation | None:
    state = store.find_evaluation(ready.key)
    return None if state is None else store.evaluation_by_id(state.id)


def _put_definitions(evaluations: Sequence[Ready], store: Store) -> None:
    """Each definition once, however many runs there are of it."""
    for model in {ready.model_version.fingerprint: ready.model_version for ready in evaluations}.values():
        store.put_model(model)
    for dataset in {ready.dataset_version.fingerprint: ready.dataset_version for ready in evaluations}.values():
        store.put_dataset(dataset)
    for setting in {ready.setting_version.fingerprint: ready.setting_version for ready in evaluations}.values():
        store.put_setting(setting)


def _put_evaluation(ready: Ready, store: Store, run_id: int, store_logits: str | None) -> int:
    state = store.put_evaluation(
        ready.key,
        num_draws=ready.pairing.num_draws,
        num_samples=ready.num_samples,
        shard_size=ready.shard_size,
        run_id=run_id,
        store_logits=store_logits,
    )
    return state.id


def _complete_stored(planned: Planned, store: Store, run_id: int) -> None:
    """Completes what was interrupted between its last shard and its metrics."""
    pending = {identity(item.ready) for item in planned.pending}
    for ready in planned.preparation.distinct:
        state = None if identity(ready) in pending else store.find_evaluation(ready.key)
        if state is not None and state.status != "complete":
            store_metrics(store, _put_evaluation(ready, store, run_id, planned.store_logits))


def unknown_models(pending: Sequence[Pending], store: Store) -> list[Ready]:
    """One evaluation for each model that has never been loaded, and each number of classes that is asked of it: its
    outputs are looked at before anything is run."""
    firsts = {
        (item.ready.model_version.fingerprint, len(item.ready.dataset_version.class_names)): item.ready
        for item in reversed(pending)
    }
    return [ready for (mark, _), ready in firsts.items() if store.model_facts(mark) in (None, NOTHING_KNOWN)]


def _by_name(evaluations: Sequence[Ready]) -> dict[tuple[str, str, int], Ready]:
    """The evaluations by model, setting and seed as it was asked for."""
    return {(r.pairing.model.name, r.pairing.setting.name, r.pairing.seed): r for r in evaluations}


def _store_comparison(ready: Ready, named: Mapping[tuple[str, str, int], Ready], store: Store) -> None:
    """Compares an evaluation with its clean parent, where both are complete and that has not been done."""
    pairing = ready.pairing
    parent = named.get((pairing.model.name, pairing.clean or "", pairing.seed))
    clean, shifted = parent and _stored(parent, store), parent and _stored(ready, store)
    if shifted and clean and shifted.status == clean.status == "complete" and clean.id not in shifted.comparisons():
        store_comparison(store, shifted, clean)


def worker_configs(preparation: Preparation, place: Place) -> list[WorkerConfig]:
    """One worker per device."""
    return [
        WorkerConfig(
            name=f"{device}/{position}",
            device=device,
            threads=place.threads,
            sources=place.sources,
            data_root=place.data_root,
            tasks=preparation.tasks,
        )
        for position, device in enumerate(place.devices.names)
    ]
