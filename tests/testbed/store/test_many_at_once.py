"""Many definitions and evaluations at once are stored as one after the other would be."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Table, event, func, select

from testbed.errors import DefinitionError, StoreError, UnknownNameError
from testbed.records import EvaluationKey, WantedEvaluation
from testbed.store import database
from testbed.store.definitions import put_definitions
from testbed.store.schema import datasets, evaluations, models
from testbed.store.store import Store


def wanted(samples: Any, key: EvaluationKey, *, num_draws: int = 1, num_samples: int = 10) -> WantedEvaluation:
    return WantedEvaluation(key=key, num_draws=num_draws, num_samples=num_samples, shard_size=samples.shard_size)


def num_rows(store: Store, table: Table) -> int:
    with store.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


@pytest.fixture(params=[2, 500])
def keys(
    request: pytest.FixtureRequest, store: Store, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> list[EvaluationKey]:
    """Keys of seven evaluations on two settings whose definitions are stored, asked for in pieces and at once."""
    monkeypatch.setattr(database, "MAX_VALUES", request.param)
    settings = [samples.setting(name) for name in ("data", "data-noise")]
    samples.put_definitions(store, *settings)
    keys = [samples.key(setting=setting, noise_seed=seed) for setting in settings for seed in (3, 1, 2)]
    return [*keys, replace(keys[0], numerics={"dtype": "float32", "device": "cuda"})]


def test_states_come_in_the_order_of_the_keys(store: Store, samples: Any, keys: list[EvaluationKey]) -> None:
    for key in reversed(keys[1:4]):
        samples.fill(store, samples.take_up(store, key))
    unknown = samples.key(samples.model("other"))
    found = store.find_evaluations([keys[5], *keys[:4], unknown, keys[2]])
    alone = [store.find_evaluation(key) for key in keys[1:4]]
    assert found == [None, None, *alone, None, alone[1]]
    assert [len(state.stored) for state in found if state] == [3, 3, 3, 3]


def test_many_are_taken_up_as_one_after_the_other_would_be(
    store: Store, samples: Any, keys: list[EvaluationKey]
) -> None:
    complete = samples.take_up(store, keys[1])
    samples.fill(store, complete)
    store.complete_evaluation(complete.id, [])
    begun = samples.take_up(store, keys[3], num_draws=2)
    store.put_shards([(begun.id, samples.shard(begun.missing()[0]))])
    run = store.start_run({})
    states = store.put_evaluations([wanted(samples, key) for key in keys], run_id=run)
    assert states == store.find_evaluations(keys), "as they are handed out, so they are stored"
    assert [state.status for state in states] == [
        "pending", "complete", "pending", "running", "pending", "pending", "pending",
    ]  # fmt: skip
    assert states[3].num_draws == 1
    taken_up = [store.evaluation_by_id(state.id).run_id == run for state in states]
    assert taken_up == [True, False, True, True, True, True, True]
    again = store.put_evaluations([wanted(samples, key, num_draws=3) for key in keys], run_id=None)
    assert [state.id for state in again] == [state.id for state in states]
    assert {state.num_draws for state in again} == {3}


def test_one_that_cannot_be_taken_up_leaves_all_as_they_were(
    store: Store, samples: Any, keys: list[EvaluationKey]
) -> None:
    unknown = samples.key(samples.model("other"))
    with pytest.raises(StoreError, match="Put both there first"):
        store.put_evaluations([wanted(samples, key) for key in (*keys, unknown)], run_id=None)
    with pytest.raises(StoreError, match="is empty"):
        store.put_evaluations(
            [wanted(samples, key, num_samples=n) for key, n in ((keys[0], 10), (keys[1], 0))], run_id=None
        )
    assert num_rows(store, evaluations) == 0


def test_nothing_asked_for_is_nothing_found(store: Store) -> None:
    assert store.find_evaluations([]) == store.put_evaluations([], run_id=None) == []
    assert store.evaluations_by_id([]) == {}


def test_evaluations_are_looked_up_by_many_ids(store: Store, samples: Any, keys: list[EvaluationKey]) -> None:
    ids = [samples.take_up(store, key).id for key in keys]
    found = store.evaluations_by_id(ids)
    assert found == {id_: store.evaluation_by_id(id_) for id_ in ids}
    with pytest.raises(UnknownNameError, match="There is no evaluation 99"):
        store.evaluations_by_id([*ids, 99])


def test_no_table_is_read_as_a_whole_for_a_few_of_its_rows(
    store: Store, samples: Any, keys: list[EvaluationKey]
) -> None:
    """SQLite has no use for an index where rows are named by a list of several columns at once."""
    if not store.url.startswith("sqlite"):
        pytest.skip("a server decides by the sizes of its tables")
    engine, seen = store.database.engine, list[tuple[str, Any]]()
    event.listen(engine, "before_cursor_execute", lambda c, k, statement, values, *_: seen.append((statement, values)))
    states = store.put_evaluations([wanted(samples, key) for key in keys], run_id=None)
    store.put_shards((state.id, samples.shard(where)) for state in states for where in state.missing())
    store.find_evaluations(keys)
    store.evaluations_by_id([state.id for state in states])
    asked = [(text, values) for text, values in seen if text.startswith(("SELECT", "UPDATE", "DELETE"))]
    assert len(asked) > 9
    with engine.connect() as connection:
        for text, values in asked:
            one = values[0] if isinstance(values, list) else values
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", one).all()
            # Nothing but the rows of this transaction is in the index of those that have no digest yet.
            whole = r"SCAN (evaluations|logit_shards)(?! USING INDEX ix_\w+_without_digest)"
            scans = [row.detail for row in plan if re.match(whole, row.detail)]
            assert not scans, text


def test_definitions_are_stored_together_or_not_at_all(store: Store, samples: Any) -> None:
    store.put_model(samples.model("a"))
    impostor = replace(samples.model("b"), fingerprint=samples.model("a").fingerprint)
    with pytest.raises(DefinitionError, match="fingerprint of another"):
        put_definitions(store, models=[samples.model("c"), impostor], datasets=[samples.dataset()], settings=[])
    assert (num_rows(store, models), num_rows(store, datasets)) == (1, 0)
    twice = [samples.setting(), samples.setting()]
    put_definitions(store, models=[samples.model("c")], datasets=[samples.dataset()], settings=twice)
    assert [model.name for model in store.list_models()] == ["a", "c"]
    assert [setting.name for setting in store.list_settings()] == ["data"]
