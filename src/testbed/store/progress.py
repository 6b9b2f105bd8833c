"""How an evaluation fills: created by its key, shard by shard, until stored equals planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, func, select, tuple_, update

from testbed.errors import DataError, StoreError
from testbed.fingerprint import fingerprint
from testbed.logit_policy import detail
from testbed.records import EvaluationKey, Shard, ShardRange
from testbed.store.columns import int32_bytes, jsonable
from testbed.store.database import insert_new
from testbed.store.schema import evaluations, logit_payloads, logit_shards, model_versions, setting_versions
from testbed.store.versions import digest
from testbed.store.views import EvaluationState


def find_evaluation(connection: Connection, key: EvaluationKey) -> EvaluationState | None:
    """The state of the evaluation with this key; None where there is none."""
    model_id = _version_id(connection, model_versions, key.model_fingerprint)
    setting_id = _version_id(connection, setting_versions, key.setting_fingerprint)
    if model_id is None or setting_id is None:
        return None
    row = connection.execute(select(evaluations).filter_by(**_key_row(key, model_id, setting_id))).one_or_none()
    return None if row is None else _state(connection, row)


def put_evaluation(
    connection: Connection,
    key: EvaluationKey,
    *,
    num_draws: int,
    num_samples: int,
    shard_size: int,
    run_id: int | None,
    store_logits: str | None,
) -> EvaluationState:
    """The state of the evaluation with this key, taken up by the run unless it is already complete."""
    if min(num_draws, num_samples, shard_size) < 1:
        raise StoreError(f"An evaluation of {num_draws} draws, {num_samples} samples, shards of {shard_size} is empty.")
    model_id = _version_id(connection, model_versions, key.model_fingerprint)
    setting_id = _version_id(connection, setting_versions, key.setting_fingerprint)
    if model_id is None or setting_id is None:
        raise StoreError("The model or the setting of an evaluation is not in the store. Put both there first.")
    key_row = _key_row(key, model_id, setting_id)
    size = {"n": num_samples, "num_draws": num_draws, "shard_size": shard_size}
    new = {"numerics": jsonable(key.numerics), "status": "pending", "reason": "", "attempts": 0, "run_id": run_id}
    insert_new(connection, evaluations, [{**key_row, **size, **new}])
    row = connection.execute(select(evaluations).filter_by(**key_row)).one()
    if row.n != num_samples:
        raise DataError(
            f"Evaluation {row.id} was begun with {row.n} samples, and now has {num_samples}. "
            "The fingerprint of a setting must cover which samples it uses."
        )
    state = _state(connection, row)
    keeps_less = store_logits is not None and bool(state.codecs_below(store_logits))
    if state.status == "complete" and num_draws <= state.num_draws and not keeps_less:
        return state
    return _take_up(connection, state, num_draws, shard_size, run_id)


def _take_up(
    connection: Connection, state: EvaluationState, num_draws: int, shard_size: int, run_id: int | None
) -> EvaluationState:
    missing = state.missing()
    whole_draws = missing[0].draw if missing else state.num_draws
    changes = {
        "num_draws": max(num_draws, whole_draws),  # what was planned and not done is no longer asked for
        "shard_size": state.shard_size if state.stored else shard_size,
        "status": "running" if state.stored else "pending",
        "reason": "",
        "completed_at": None,
        "attempts": evaluations.c.attempts + 1,
        "run_id": run_id,
    }
    is_it = evaluations.c.id == state.id
    connection.execute(update(evaluations).where(is_it).values(changes))
    return _state(connection, connection.execute(select(evaluations).where(is_it)).one())


def put_shards(connection: Connection, shards: Sequence[tuple[int, Shard]]) -> None:
    """Stores the shards; one that is there already changes nothing, unless it keeps less of the logits."""
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
    place = tuple_(*logit_shards.c["evaluation_id", "draw", "start"])
    found = select(*logit_shards.c["evaluation_id", "draw", "start", "codec"]).where(place.in_(new))
    poorer = [tuple(key) for *key, codec in connection.execute(found) if detail(codec) < detail(new[tuple(key)])]
    if poorer:
        connection.execute(delete(logit_shards).where(place.in_(poorer)))


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


def evaluation_state(connection: Connection, evaluation_id: int) -> EvaluationState:
    """The state of an evaluation by its id.

    Raises: StoreError: there is none.
    """
    row = connection.execute(select(evaluations).where(evaluations.c.id == evaluation_id)).one_or_none()
    if row is None:
        raise StoreError(f"There is no evaluation {evaluation_id} in the store.")
    return _state(connection, row)


def _version_id(connection: Connection, table: Table, content: str) -> int | None:
    return connection.scalar(select(table.c.id).where(table.c.fingerprint == content))


def _key_row(key: EvaluationKey, model_version_id: int, setting_version_id: int) -> dict[str, Any]:
    return {
        "model_version_id": model_version_id,
        "setting_version_id": setting_version_id,
        "fit_seed": int(key.fit_seed),
        "noise_seed": int(key.noise_seed),
        "numerics_fingerprint": fingerprint(jsonable(key.numerics)),
    }


def _state(connection: Connection, row: Row[Any]) -> EvaluationState:
    columns = logit_shards.c["draw", "start", "stop", "codec"]
    shards = connection.execute(select(*columns).where(logit_shards.c.evaluation_id == row.id)).all()
    return EvaluationState(
        id=row.id,
        status=row.status,
        num_draws=row.num_draws,
        num_samples=row.n,
        shard_size=row.shard_size,
        codecs={(shard.draw, shard.start, shard.stop): shard.codec for shard in shards},
    )


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
