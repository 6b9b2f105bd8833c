"""A request to stored evaluations: plan, preflight, units, results. The one path that every evaluation takes."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.cli import EXIT_INTERRUPTED, say
from testbed.definitions import Sources
from testbed.engine.data import Data
from testbed.engine.devices import Devices, available_cores
from testbed.engine.driver import Driver
from testbed.engine.engine import Engine
from testbed.engine.inline import InlineEngine
from testbed.engine.plan import Request, make_plan
from testbed.engine.preflight import Preparation, Ready, prepare
from testbed.engine.process import ProcessEngine
from testbed.engine.schedule import Pending
from testbed.engine.unit import WorkerConfig
from testbed.progress import PlanProgress
from testbed.provenance import provenance
from testbed.records import ShardRange
from testbed.results import Result, Run, result_of, store_comparison, store_metrics
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where and with what evaluations are run.

    Args:
        devices: one worker each.
        threads: CPU threads per worker; results can depend on it, so it is fixed by the plan.
        sources: definitions beside the built-in ones.
        data_root: where data sets are looked for.
        cache_root: where decoded images are kept.
    """

    devices: Devices
    threads: int
    sources: Sources
    data_root: Path | None
    cache_root: Path


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan against what is stored: every evaluation, and the pieces that are missing."""

    preparation: Preparation
    pending: tuple[Pending, ...]

    @property
    def num_samples(self) -> int:
        """Samples times draws of all evaluations."""
        distinct = {identity(ready): ready for ready in self.preparation.evaluations}
        return sum(ready.num_samples * ready.pairing.num_draws for ready in distinct.values())

    @property
    def num_missing(self) -> int:
        """The part of `num_samples` that has to be evaluated."""
        return sum(where.stop - where.start for item in self.pending for where in item.missing)

    @property
    def separations(self) -> dict[str, Mapping[str, Any]]:
        """By name of a setting, the separation that its noise level is half of."""
        versions = (ready.setting_version for ready in self.preparation.evaluations)
        return {version.name: version.spec["separation"] for version in versions if version.spec["separation"]}

    @property
    def num_missing_bytes(self) -> int:
        """Size of the logits that will be stored."""
        return sum(
            item.ready.num_bytes * sum(w.stop - w.start for w in item.missing)
            // (item.ready.num_samples * item.ready.pairing.num_draws)
            for item in self.pending
        )  # fmt: skip


def plan_evaluations(request: Request, store: Store, place: Place, *, is_dry_run: bool = False) -> Planned:
    """Resolves, loads and checks all that a request needs, and compares it with the store. No model is run.

    Raises: TestbedError: whatever can be known to fail.
    """
    data = Data(
        store=store,
        data_root=place.data_root,
        cache_root=place.cache_root,
        threads=available_cores(),
        warn=say,
        is_kept=not is_dry_run,
    )
    device = place.devices.names[0]
    preparation = prepare(make_plan(request), data, device=device, threads=place.threads, limit=request.limit)
    distinct = {identity(ready): ready for ready in preparation.evaluations}
    pending = (Pending(ready, _missing(store, ready)) for ready in distinct.values())
    return Planned(preparation=preparation, pending=tuple(item for item in pending if item.missing))


def identity(ready: Ready) -> tuple[str, str, int, int]:
    """Runs whose seeds change nothing are one evaluation."""
    key = ready.key
    return key.model_fingerprint, key.setting_fingerprint, key.fit_seed, key.noise_seed


def _missing(store: Store, ready: Ready) -> tuple[ShardRange, ...]:
    """The pieces of an evaluation that are not stored, on the grid of those that are."""
    if _has_complete_parent(store, ready):
        parent, model = ready.setting.parent_eval_setting, ready.pairing.model.name
        say(f"Notice: '{parent}' is complete for {model} and stands for {ready.setting.name}, which is not run.")
        return ()
    state = store.find_evaluation(ready.key)
    if state is None:
        return tuple(ready.shards)
    return tuple(where for where in state.missing(num_draws=ready.pairing.num_draws))


def _has_complete_parent(store: Store, ready: Ready) -> bool:
    """Whether the setting's `parent_eval_setting` is complete for the model and stands for this one."""
    parent = ready.setting.parent_eval_setting
    if parent is None:
        return False
    model = ready.pairing.model
    found = store.list_evaluations(
        model=model.name, label_space=model.label_space, setting=parent, status="complete", is_stale=False
    )
    return bool(found)


def run_evaluations(planned: Planned, store: Store, place: Place, *, progress: PlanProgress) -> dict[int, str]:
    """Evaluates what is pending; returns the reasons of the evaluations that failed, by id.

    Raises: StoreError: another driver writes to the store.
    """
    store.lock(f"process {os.getpid()} on {platform.node()}")
    run_id = store.start_run(provenance(devices=place.devices.names))
    _put_definitions(planned.preparation.evaluations, store)
    ids = [_put_evaluation(item.ready, store, run_id) for item in planned.pending]
    configs = worker_configs(planned.preparation, place)
    engine: Engine = InlineEngine(configs) if place.devices.is_inline else ProcessEngine(configs)

    def complete(ready: Ready, evaluation_id: int) -> None:
        store_metrics(store, evaluation_id)
        progress.say(f"done: {ready.pairing.model.name} on {ready.setting.name}")

    driver = Driver(store, engine, planned.pending, ids, progress=progress, on_complete=complete)
    status = 1
    try:
        _complete_stored(planned, store)
        if planned.pending:
            driver.run(unknown_models(planned.pending, store))
        _store_comparisons(planned.preparation.evaluations, store)
        status = 1 if driver.failed else 0
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
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
    for ready in {identity(ready): ready for ready in evaluations}.values():
        store.put_model(ready.model_version)
        store.put_dataset(ready.dataset_version)
        store.put_setting(ready.setting_version)


def _put_evaluation(ready: Ready, store: Store, run_id: int) -> int:
    state = store.put_evaluation(
        ready.key,
        num_draws=ready.pairing.num_draws,
        num_samples=ready.num_samples,
        shard_size=ready.shard_size,
        run_id=run_id,
    )
    return state.id


def _complete_stored(planned: Planned, store: Store) -> None:
    """Completes what was interrupted between its last shard and its metrics."""
    pending = {identity(item.ready) for item in planned.pending}
    for ready in planned.preparation.evaluations:
        state = None if identity(ready) in pending else store.find_evaluation(ready.key)
        if state is not None and state.status != "complete":
            store_metrics(store, state.id)


def unknown_models(pending: Sequence[Pending], store: Store) -> list[Ready]:
    """One evaluation for each model that has never been loaded: its outputs are looked at before anything is run."""
    firsts = {item.ready.model_version.fingerprint: item.ready for item in reversed(pending)}
    known = {mark for mark in firsts if (facts := store.model_facts(mark)) and facts.num_outputs is not None}
    return [ready for mark, ready in firsts.items() if mark not in known]


def _store_comparisons(evaluations: Sequence[Ready], store: Store) -> None:
    """Compares every complete evaluation with its clean parent, where that has not been done."""
    by_name = {(r.pairing.model.name, r.pairing.setting.name, r.pairing.seed): r for r in evaluations}
    for ready in {identity(r): r for r in evaluations if r.pairing.clean is not None}.values():
        pairing = ready.pairing
        clean = _stored(by_name[pairing.model.name, pairing.clean or "", pairing.seed], store)
        shifted = _stored(ready, store)
        if shifted and clean and shifted.status == clean.status == "complete" and not shifted.comparisons():
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
