"""A request against the store: what is asked for, what is stored, what is missing. No model is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from registry import registry
from testbed.class_subset import columns_of
from testbed.cli import say
from testbed.cores import available_cores
from testbed.data.filling import BankFiller
from testbed.engine.data import Data
from testbed.engine.measuring import with_measured_batches, with_places
from testbed.engine.place import Place
from testbed.engine.plan import Request, left_out, make_plan
from testbed.engine.preflight import Preparation, Ready, located, prepare
from testbed.engine.schedule import Pending, make_units
from testbed.engine.stored_otherwise import stored_otherwise
from testbed.errors import DefinitionError
from testbed.records import ShardRange
from testbed.store.store import Store
from testbed.store.views import EvaluationState
from testbed.users_code import users_output


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan against what is stored: every evaluation, and the pieces that are missing.

    `store_logits` is the policy that was asked for, which pieces that keep less do not satisfy; None where none was.
    `filler` fills the banks that are not whole, and knows which samples can be read.
    """

    preparation: Preparation
    pending: tuple[Pending, ...]
    filler: BankFiller
    store_logits: str | None = None

    def reserve_banks(self) -> None:
        """Takes the disk space of what has to be decoded for what is pending.

        Raises: DataError: the disk is too small.
        """
        tasks = dict.fromkeys(item.ready.task for item in self.pending)
        self.filler.reserve(self.preparation.tasks[task].bank for task in tasks)

    @property
    def num_samples(self) -> int:
        """Samples times draws of all evaluations."""
        return sum(ready.num_samples * ready.pairing.num_draws for ready in self.preparation.distinct)

    @property
    def num_missing(self) -> int:
        """The part of `num_samples` that has to be evaluated."""
        return sum(where.stop - where.start for item in self.pending for where in item.missing)

    @property
    def num_units(self) -> int:
        """Units that are to be done: more workers would have nothing to do."""
        return len(make_units(self.pending))

    @property
    def separations(self) -> dict[str, Mapping[str, Any]]:
        """By name of a setting, the separation that its noise level is half of."""
        versions = (ready.setting_version for ready in self.preparation.evaluations)
        return {version.name: version.spec["separation"] for version in versions if version.spec["separation"]}

    @property
    def num_missing_bytes(self) -> int:
        """Size of what will be stored, at most."""
        return sum(item.ready.bytes_per_sample * (w.stop - w.start) for item in self.pending for w in item.missing)


@users_output()
def plan_evaluations(
    request: Request, store: Store, place: Place, *, is_dry_run: bool = False, is_quiet: bool = False
) -> Planned:
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
        is_quiet=is_quiet,
        uses_bank=place.uses_bank,
        bank_limit=place.bank_limit,
    )
    _tell_left_out(request)
    device = place.devices.names[0]
    prepared = prepare(make_plan(request), data, device=device, threads=place.threads, arithmetic=place.arithmetic)
    if request.batch_size == "auto":
        prepared = with_measured_batches(prepared, place)
    prepared = with_places(prepared, place, store)
    version_of = cache(lambda name: located(registry.eval_setting(name), data).version.fingerprint)
    wanted = tuple(ready for ready in prepared.evaluations if not _has_complete_parent(store, ready, version_of))
    preparation = replace(prepared, evaluations=wanted)
    states = store.find_evaluations(ready.key for ready in preparation.distinct)
    new = [ready for ready, state in zip(preparation.distinct, states, strict=True) if state is None]
    for notice in stored_otherwise(new, store):
        say(f"Notice: {notice}")
    pending = (
        Pending(ready, _missing(state, ready, request.store_logits))
        for ready, state in zip(preparation.distinct, states, strict=True)
    )
    planned = Planned(
        preparation=preparation,
        pending=tuple(item for item in pending if item.missing),
        filler=data.filler,
        store_logits=request.store_logits,
    )
    _check_outputs(planned, store)
    return planned


def _tell_left_out(request: Request) -> None:
    if children := left_out(request.eval_settings):
        child, parent = next(iter(children.items()))
        say(
            f"Notice: {len(children)} setting(s) that a glob found are left out, as '{parent}' stands for {child}, for "
            "example. Name what is to be run beside its parent."
        )


def _check_outputs(planned: Planned, store: Store) -> None:
    """Raises a DefinitionError for a model that was loaded before and has another number of outputs than is needed."""
    facts_of = cache(store.model_facts)
    for item in planned.pending:
        ready, facts = item.ready, facts_of(item.ready.model_version.fingerprint)
        num_outputs = facts.num_outputs if facts else None
        if num_outputs is None:
            continue
        sublist, num_classes = ready.setting.columns, len(ready.dataset_version.class_names)
        largest = None if sublist is None else max(columns_of(sublist))
        if num_outputs != num_classes if largest is None else num_outputs <= largest:
            asked = f"has {num_classes} classes" if largest is None else f"looks at class {largest}"
            raise DefinitionError(
                f"Model '{ready.pairing.model.name}' has {num_outputs} outputs but '{ready.setting.name}' {asked}. "
                "Use a model of the setting's label space."
            )


def _missing(state: EvaluationState | None, ready: Ready, store_logits: str | None) -> tuple[ShardRange, ...]:
    """The pieces of an evaluation that are not stored or keep less than is asked for, on the grid of those that are."""
    if state is None:
        return tuple(ready.shards)
    if store_logits is not None and (codecs := state.codecs_below(store_logits)):
        name = f"{ready.pairing.model.name} on {ready.setting.name}"
        say(f"Notice: {name} is stored as {', '.join(codecs)}; {store_logits} keeps more, so that is evaluated again.")
    return tuple(state.missing(num_draws=ready.pairing.num_draws, store_logits=store_logits))


def _has_complete_parent(store: Store, ready: Ready, version_of: Callable[[str], str]) -> bool:
    """Whether the setting's `parent_eval_setting` is complete for the very model and noise, and stands for this one.

    `version_of` tells the fingerprint of a setting as it is defined today.
    """
    parent, model = ready.setting.parent_eval_setting, ready.pairing.model
    if parent is None:
        return False
    found = store.list_evaluations(
        model=model.name,
        label_space=model.label_space,
        setting=parent,
        fit_seed=ready.key.fit_seed,
        status="complete",
        is_stale=False,
    )
    ours = ready.key.model_fingerprint, ready.key.noise_seed, dict(ready.key.numerics)
    alike = [one for one in found if (one.model_fingerprint, one.noise_seed, dict(one.numerics)) == ours]
    is_found = any(one.setting_fingerprint == version_of(parent) for one in alike)
    if is_found:
        say(f"Notice: '{parent}' is complete for {model.name} and stands for {ready.setting.name}, which is not run.")
    return is_found
