"""What is done, at a look."""

from __future__ import annotations

import os
import platform
from typing import Any

import pytest

from testbed.store import admin
from testbed.store.status import STATES, status
from testbed.store.store import Store


@pytest.fixture
def filled(store: Store, samples: Any) -> list[int]:
    """One evaluation complete, one failed, one begun and two not begun, of five settings."""
    settings = [samples.setting(name) for name in ("a", "b", "c", "d", "e")]
    samples.put_definitions(store, *settings)
    states = [samples.take_up(store, samples.key(setting=setting)) for setting in settings]
    samples.fill(store, states[0])
    store.complete_evaluation(states[0].id, [])
    store.fail_evaluation(states[1].id, "out of memory")
    store.put_shards([(states[2].id, samples.shard(states[2].missing()[0]))])
    return [state.id for state in states]


def counts(store: Store) -> dict[str, int]:
    (model,) = status(store).models
    assert tuple(model.counts) == STATES
    return {state: number for state, number in model.counts.items() if number}


def test_every_evaluation_is_counted_once(store: Store, filled: list[int]) -> None:
    assert counts(store) == {"complete": 1, "failed": 1, "interrupted": 3}
    found = status(store)
    assert [(one.eval_setting, one.state, one.reason) for one in found.unfinished] == [
        ("b", "failed", "out of memory"), ("c", "interrupted", ""), ("d", "interrupted", ""), ("e", "interrupted", ""),
    ]  # fmt: skip
    assert found.writer is None
    assert len(status(store, limit=2).unfinished) == 2


def test_running_is_what_the_owner_of_the_lock_has_taken_up(store: Store, samples: Any, filled: list[int]) -> None:
    store.lock("the driver")
    run = store.start_run({"host": platform.node(), "pid": os.getpid()})
    key = samples.key(setting=samples.setting("d"))
    store.put_evaluation(key, num_draws=1, num_samples=10, shard_size=4, run_id=run)
    assert counts(store) == {"complete": 1, "failed": 1, "running": 1, "interrupted": 2}
    found = status(store)
    assert found.writer == "the driver"
    (running,) = [one for one in found.unfinished if one.state == "running"]
    assert (running.eval_setting, running.host, running.pid) == ("d", platform.node(), os.getpid())
    store.finish_run(run, 1)
    assert counts(store)["interrupted"] == 3


def test_results_of_changed_definitions_are_stale(store: Store, samples: Any, filled: list[int]) -> None:
    changed = samples.setting("a", spec={"changed": True})
    store.put_setting(changed)
    assert counts(store) == {"complete": 1, "failed": 1, "interrupted": 3}, "nothing has taken their place"
    samples.fill(store, state := samples.take_up(store, samples.key(setting=changed)))
    store.complete_evaluation(state.id, [])
    assert counts(store) == {"stale": 1, "complete": 1, "failed": 1, "interrupted": 3}
    samples.supersede(store, samples.model(spec={"width": 16}))
    assert counts(store) == {"stale": 6, "complete": 1}
    assert status(store).unfinished == ()


def test_what_was_removed_does_not_count(store: Store, filled: list[int]) -> None:
    admin.remove(store, "eval-setting", "b")
    admin.remove_evaluations(store, model="net", setting="c")
    assert counts(store) == {"complete": 1, "interrupted": 2}
    assert [one.eval_setting for one in status(store).unfinished] == ["d", "e"]
    admin.remove(store, "model", "net")
    assert status(store).models == ()


def test_totals_are_over_all_models(store: Store, samples: Any, filled: list[int]) -> None:
    other = samples.model("other")
    store.put_model(other)
    samples.completed(store, samples.key(other))
    assert status(store).total("complete") == 2
    assert [model.model for model in status(store).models] == ["net", "other"]
