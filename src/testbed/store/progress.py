"""How an evaluation fills: created by its key, shard by shard, until stored equals planned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, bindparam, delete, func, select, tuple_, update

from testbed.errors import DataError, StoreError
from testbed.fingerprint import fingerprint
from testbed.logit_policy import detail
from testbed.records import EvaluationKey, Shard, ShardRange, WantedEvaluation
from testbed.store import digests
from testbed.store.columns import int32_bytes, jsonable
from testbed.store.database import insert_new, pieces
from testbed.store.findings import forget_metrics
from testbed.store.schema import evaluations, logit_payloads, logit_shards, model_versions, setting_versions
from testbed.store.versions import digest
from testbed.store.views import EvaluationState

_KEY = ("model_version_id", "setting_version_id", "fit_seed", "noise_seed", "numerics_fingerprint")


def find_evaluations(connection: Connection, keys: Iterable[EvaluationKey]) -> list[EvaluationState | None]:
    """The states of the evaluations with these keys, in their order; None where there is none."""
    return _states(connection, _key_rows(connection, list(keys)))


def put_evaluations(
    connection: Connection, wanted: Sequence[WantedEvaluation], *, run_id: int | None, store_logits: str | None
) -> list[EvaluationState]:
    """The states of the evaluations with these keys, taken up by the run unless they are already complete."""
    key_rows = _key_rows(connection, [one.key for one in wanted])
    rows = [_new_row(one, key_row, run_id) for one, key_row in zip(wanted, key_rows, strict=True)]
    insert_new(connection, evaluations, rows)
    states = [state for state in _states(connection, key_rows) if state is not None]  # all of them, by now
    changes = [
        _taking_up(state, one) if _is_wanted(state, one, store_logits) else {}
        for state, one in zip(states, wanted, strict=True)
    ]
    taken_up = [{"of_id": state.id, **change} for state, change in zip(states, changes, strict=True) if change]
    if taken_up:
        others = {"reason": "", "completed_at": None, "attempts": evaluations.c.attempts + 1, "run_id": run_id}
        changed: dict[str, Any] = {name: bindparam(name) for name in ("num_draws", "shard_size", "status")}
        is_it = evaluations.c.id == bindparam("of_id")
        connection.execute(update(evaluations).where(is_it).values({**others, **changed}), taken_up)
    return [replace(state, **change) for state, change in zip(states, changes, strict=True)]


def _new_row(wanted: WantedEvaluation, key_row: Mapping[str, Any] | None, run_id: int | None) -> dict[str, Any]:
    size = {"n": wanted.num_samples, "num_draws": wanted.num_draws, "shard_size": wanted.shard_size}
    if min(size.values()) < 1:
        raise StoreError(
            f"An evaluation of {wanted.num_draws} draws, {wanted.num_samples} samples, shards of {wanted.shard_size} "
            "is empty."
        )
    if key_row is None:
        raise StoreError("The model or the setting of an evaluation is not in the store. Put both there first.")
    new = {"numerics": jsonable(wanted.key.numerics), "status": "pending", "reason": "", "attempts": 0}
    return {**key_row, **size, **new, "run_id": run_id}


def _is_wanted(state: EvaluationState, wanted: WantedEvaluation, store_logits: str | None) -> bool:
    """Whether something of an evaluation is to be done."""
    if state.num_samples != wanted.num_samples:
        raise DataError(
            f"Evaluation {state.id} was begun with {state.num_samples} samples, and now has {wanted.num_samples}. "
            "The fingerprint of a setting must cover which samples it uses."
        )
    keeps_less = store_logits is not None and bool(state.codecs_below(store_logits))
    return state.status != "complete" or wanted.num_draws > state.num_draws or keeps_less


def _taking_up(state: EvaluationState, wanted: WantedEvaluation) -> dict[str, Any]:
    """What changes in an evaluation that a run takes up."""
    missing = state.missing()
    whole_draws = missing[0].draw if missing else state.num_draws
    return {
        "num_draws": max(wanted.num_draws, whole_draws),  # what was planned and not done is no longer asked for
        "shard_size": state.shard_size if state.stored else wanted.shard_size,
        "status": "running" if state.stored else "pending",
    }


def put_shards(connection: Connection, shards: Sequence[tuple[int, Shard]]) -> None:
    """Stores the shards; one that is there already changes nothing, unless it keeps less of the logits."""
    if not shards:
        return
    ids = {evaluation_id for evaluation_id, _ in shards}
    planned = {row.id: row for row in connection.execute(select(evaluations).where(evaluations.c.id.in_(ids)))}
    for evaluation_id, shard in shards:
        _check_shard(evaluation_id, planned.get(evaluation_id), shard)
    _delete_poorer(connection, shards)
    insert_new(connection, logit_shards, [_shard_row(evaluation_id, shard) for evaluation_id, shard in shards])
    payloads = [{**_place(evaluation_id, s.where), "payload": s.payload} for evaluation_id, s in shards if s.payload]
    insert_new(connection, logit_payloads, payloads)
    if begun := [row.id for row in planned.values() if row.status == "pending"]:
        connection.execute(update(evaluations).where(evaluations.c.id.in_(begun)).values(status="running"))


def _delete_poorer(connection: Connection, shards: Sequence[tuple[int, Shard]]) -> None:
    """Makes room for shards that keep more of the logits than those in their place; payloads go with their shards."""
    new = {tuple(_place(evaluation_id, shard.where).values()): shard.codec for evaluation_id, shard in shards}
    columns = logit_shards.c["evaluation_id", "draw", "start"]
    # SQLite finds its index by a list for each column, but not by a list of triples
    is_near = and_(*(column.in_(set(values)) for column, values in zip(columns, zip(*new, strict=True), strict=True)))
    rows = connection.execute(select(*columns, logit_shards.c.codec).where(is_near))
    stored = {tuple(key): codec for *key, codec in rows}
    poorer = [key for key, codec in stored.items() if key in new and detail(codec) < detail(new[key])]
    if poorer:
        connection.execute(delete(logit_shards).where(is_near, tuple_(*columns).in_(poorer)))


def complete(connection: Connection, evaluation_id: int) -> bool:
    """Marks the evaluation complete; returns whether it was not before.

    Raises: StoreError: planned shards are not stored.
    """
    state = evaluation_state(connection, evaluation_id)
    if missing := state.missing():
        first = missing[0]
        raise StoreError(
            f"Evaluation {evaluation_id} is not complete: {len(missing)} of its planned shards are not stored, the "
            f"first is draw {first.draw}, samples {first.start} to {first.stop}. Run the same command again."
        )
    if state.status == "complete":
        return False
    changes = {"status": "complete", "reason": "", "completed_at": func.now()}
    connection.execute(update(evaluations).where(evaluations.c.id == evaluation_id).values(changes))
    return True


def set_aside(connection: Connection, evaluation_id: int, *, status: str, reason: str) -> None:
    """Marks an evaluation that did not become complete as partial or failed, and says why."""
    if evaluation_state(connection, evaluation_id).status == "complete":
        raise StoreError(f"Evaluation {evaluation_id} is complete, and cannot become {status}.")
    changes = {"status": status, "reason": reason}
    connection.execute(update(evaluations).where(evaluations.c.id == evaluation_id).values(changes))


def reject(connection: Connection, evaluation_id: int, *, reason: str) -> None:
    """Marks an evaluation failed, and deletes what was stored of it and what was computed from that."""
    connection.execute(delete(logit_shards).where(logit_shards.c.evaluation_id == evaluation_id))
    forget_metrics(connection, evaluation_id)
    changes = {"status": "failed", "reason": reason, "completed_at": None}
    connection.execute(update(evaluations).where(evaluations.c.id == evaluation_id).values(changes))


def evaluation_state(connection: Connection, evaluation_id: int) -> EvaluationState:
    """The state of an evaluation by its id.

    Raises: StoreError: there is none, or it is not as it was written.
    """
    digests.check_evaluations(connection, [evaluation_id])
    return state_as_it_is(connection, evaluation_id)


def state_as_it_is(connection: Connection, evaluation_id: int) -> EvaluationState:
    """The state of an evaluation by its id, damaged or not. Raises: StoreError: there is none."""
    row = connection.execute(select(evaluations).where(evaluations.c.id == evaluation_id)).one_or_none()
    if row is None:
        raise StoreError(f"There is no evaluation {evaluation_id} in the store.")
    return next(state for _, state in _with_shards(connection, [row]))


def _key_rows(connection: Connection, keys: Sequence[EvaluationKey]) -> list[dict[str, Any] | None]:
    """The columns that the keys are in; None for a model or setting that is not in the store."""
    model_ids = _version_ids(connection, model_versions, {key.model_fingerprint for key in keys})
    setting_ids = _version_ids(connection, setting_versions, {key.setting_fingerprint for key in keys})
    return [
        {
            "model_version_id": model_ids[key.model_fingerprint],
            "setting_version_id": setting_ids[key.setting_fingerprint],
            "fit_seed": int(key.fit_seed),
            "noise_seed": int(key.noise_seed),
            "numerics_fingerprint": fingerprint(jsonable(key.numerics)),
        }
        if key.model_fingerprint in model_ids and key.setting_fingerprint in setting_ids
        else None
        for key in keys
    ]


def _version_ids(connection: Connection, table: Table, contents: Iterable[str]) -> dict[str, int]:
    columns = table.c["fingerprint", "id"]
    found: dict[str, int] = {}
    for some in pieces(sorted(contents)):
        found.update(tuple(row) for row in connection.execute(select(*columns).where(table.c.fingerprint.in_(some))))
    return found


def _states(connection: Connection, key_rows: Sequence[Mapping[str, Any] | None]) -> list[EvaluationState | None]:
    """The states of the evaluations with these columns, in their order."""
    wanted = [tuple(row[name] for name in _KEY) if row is not None else None for row in key_rows]
    rows = _rows(connection, {key for key in wanted if key is not None})
    digests.check_evaluations(connection, [row.id for row in rows])
    states = {_key_of(row): state for row, state in _with_shards(connection, rows)}
    return [states.get(key) if key is not None else None for key in wanted]


def _rows(connection: Connection, keys: Collection[tuple[Any, ...]]) -> list[Row[Any]]:
    """The evaluations with these keys, model by model: SQLite finds no index for a list of whole keys."""
    settings: dict[int, set[int]] = defaultdict(set)
    for model_id, setting_id, *_ in keys:
        settings[model_id].add(setting_id)
    found: list[Row[Any]] = []
    for model_id, setting_ids in settings.items():
        is_its = evaluations.c.model_version_id == model_id
        for some in pieces(sorted(setting_ids)):
            wanted = select(evaluations).where(is_its, evaluations.c.setting_version_id.in_(some))
            found += (row for row in connection.execute(wanted) if _key_of(row) in keys)
    return found


def _key_of(row: Row[Any]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in _KEY)


def _with_shards(connection: Connection, rows: Sequence[Row[Any]]) -> Iterator[tuple[Row[Any], EvaluationState]]:
    columns = logit_shards.c["evaluation_id", "draw", "start", "stop", "codec"]
    codecs: dict[int, dict[tuple[int, int, int], str]] = {row.id: {} for row in rows}
    for some in pieces(list(codecs)):
        for shard in connection.execute(select(*columns).where(logit_shards.c.evaluation_id.in_(some))):
            codecs[shard.evaluation_id][shard.draw, shard.start, shard.stop] = shard.codec
    for row in rows:
        state = EvaluationState(
            id=row.id,
            status=row.status,
            num_draws=row.num_draws,
            num_samples=row.n,
            shard_size=row.shard_size,
            codecs=codecs[row.id],
        )
        yield row, state


def _check_shard(evaluation_id: int, planned: Row[Any] | None, shard: Shard) -> None:
    where = shard.where
    name = f"Shard (draw {where.draw}, samples {where.start} to {where.stop}) of evaluation {evaluation_id}"
    if planned is None:
        raise StoreError(f"{name} belongs to no evaluation in the store.")
    is_on_grid = (
        0 <= where.draw < planned.num_draws
        and 0 <= where.start < planned.n
        and where.start % planned.shard_size == 0
        and where.stop == min(where.start + planned.shard_size, planned.n)
    )
    if not is_on_grid:
        raise StoreError(
            f"{name} is not planned: it has {planned.num_draws} draws of {planned.n} samples, in shards of "
            f"{planned.shard_size}."
        )
    counts = {len(shard.predictions), len(shard.target_ranks), where.stop - where.start}
    if len(counts) > 1:
        raise StoreError(f"{name} has {len(shard.predictions)} predictions and {len(shard.target_ranks)} ranks.")


def _place(evaluation_id: int, where: ShardRange) -> dict[str, int]:
    return {"evaluation_id": evaluation_id, "draw": int(where.draw), "start": int(where.start)}


def _shard_row(evaluation_id: int, shard: Shard) -> Mapping[str, Any]:
    return {
        **_place(evaluation_id, shard.where),
        "stop": int(shard.where.stop),
        "codec": shard.codec,
        "num_outputs": int(shard.num_outputs),
        "sha256": shard.sha256,
        "labels_sha256": digest(int32_bytes(shard.predictions), int32_bytes(shard.target_ranks)),
        "num_nonfinite": int(shard.num_nonfinite),
        "batch_size": int(shard.batch_size),
        "seconds": float(shard.seconds),
        "worker": shard.worker,
        "predictions": shard.predictions,
        "target_ranks": shard.target_ranks,
    }
