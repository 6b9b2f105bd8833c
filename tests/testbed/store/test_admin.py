"""Removing hides and can be undone; purging deletes what was removed, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.errors import UnknownNameError
from testbed.records import MetricValue
from testbed.store import admin
from testbed.store.store import Store
from testbed.store.verification import verify

NAMES = ["'; drop table models;--", "../../x", "a/b", "a_b", "x" * 300, "100%", "🦆"]


@pytest.fixture
def pair(store: Store, samples: Any) -> tuple[int, int]:
    """A clean and a noisy evaluation, the second compared with the first."""
    noisy = samples.setting("noisy", shift=samples.shift)
    samples.put_definitions(store, samples.setting(), noisy)
    ids = []
    for setting in (samples.setting(), noisy):
        state = samples.take_up(store, samples.key(setting=setting))
        samples.fill(store, state)
        store.complete_evaluation(state.id, [MetricValue(name="top1", value=50.0, n=10)])
        ids.append(state.id)
    store.put_metrics(ids[1], [MetricValue(name="loss", value=1.0, n=5)], reference_evaluation_id=ids[0])
    return ids[0], ids[1]


def shown(store: Store) -> list[str]:
    return [evaluation.setting for evaluation in store.list_evaluations()]


@pytest.mark.parametrize(
    ("kind", "name", "left"), [("model", "net", []), ("eval-setting", "data", ["noisy"])], ids=["model", "setting"]
)
def test_what_is_removed_is_hidden_and_can_be_restored(
    store: Store, pair: tuple[int, int], kind: Any, name: str, left: list[str]
) -> None:
    admin.remove(store, kind, name)
    assert shown(store) == left
    assert len(store.list_evaluations(with_removed=True)) == 2
    with pytest.raises(UnknownNameError):
        store.evaluation("net", "data")
    admin.restore(store, name)
    assert shown(store) == ["data", "noisy"]


def test_one_pair_is_removed_and_restored_by_either_name(store: Store, pair: tuple[int, int]) -> None:
    for name in ("net", "noisy"):
        assert admin.remove_evaluations(store, model="net", setting="noisy") == 1
        assert shown(store) == ["data"]
        with pytest.raises(UnknownNameError, match="No evaluation of model 'net' on setting 'noisy'"):
            admin.remove_evaluations(store, model="net", setting="noisy")
        assert admin.restore(store, name) == 1
        assert shown(store) == ["data", "noisy"]
    with pytest.raises(UnknownNameError, match="Nothing named 'net' was removed"):
        admin.restore(store, "net")


def test_an_unknown_name_is_met_with_a_suggestion(store: Store, pair: tuple[int, int]) -> None:
    with pytest.raises(UnknownNameError, match=r"no model 'nett'.*Did you mean net\?"):
        admin.remove(store, "model", "nett")
    with pytest.raises(UnknownNameError, match=r"python db\.py --list-eval-settings-db"):
        admin.remove(store, "eval-setting", "zzz")
    with pytest.raises(UnknownNameError):
        admin.remove(store, "model", "net", "nett")
    assert not any(model.hidden for model in store.list_models())


def test_what_is_asked_for_again_is_back(store: Store, pair: tuple[int, int], samples: Any) -> None:
    admin.remove(store, "model", "net")
    admin.remove_evaluations(store, model="net", setting="data")
    store.put_model(samples.model())
    assert shown(store) == ["noisy"]
    admin.restore_evaluations(store, [samples.key()])
    assert shown(store) == ["data", "noisy"]


def test_purge_deletes_what_was_removed_and_reports_its_bytes(
    store: Store, pair: tuple[int, int], execute: Any
) -> None:
    admin.remove(store, "eval-setting", "data")
    found = admin.removed(store)
    assert (found.models, found.eval_settings, found.num_evaluations) == ((), ("data",), 1)
    assert found.num_bytes == 10 * (3 * 4 + 4 + 4), "ten samples: three float32 logits, a prediction, a rank"
    assert admin.purge(store) == found
    assert shown(store) == ["noisy"]
    assert [setting.name for setting in store.list_settings()] == ["noisy"]
    for table in ("logit_shards", "logit_payloads"):
        assert {row[0] for row in execute(f"select evaluation_id from {table}")} == {pair[1]}  # noqa: S608
    assert store.evaluation_by_id(pair[1]).comparisons() == {}, "there is nothing left to compare with"
    assert store.evaluation_by_id(pair[1]).logits().shape == (10, 3)
    assert verify(store).findings == ()
    with pytest.raises(UnknownNameError):
        admin.restore(store, "data")


def test_data_sets_go_with_their_last_setting(store: Store, pair: tuple[int, int], execute: Any) -> None:
    for name, left in (("data", 1), ("noisy", 0)):
        admin.remove(store, "eval-setting", name)
        admin.purge(store)
        assert execute("select count(*) from datasets")[0][0] == left


def test_compacting_gives_back_what_was_purged_and_keeps_the_rest(store: Store, samples: Any) -> None:
    noise = np.random.default_rng(0).normal(size=(10, 100_000)).astype(np.float32)
    for setting in (samples.setting("wide"), samples.setting()):
        samples.put_definitions(store, setting)
        state = samples.take_up(store, samples.key(setting=setting))
        logits = noise if setting.name == "wide" else samples.logits()
        store.put_shards((state.id, samples.shard(where, logits)) for where in state.missing())
        store.complete_evaluation(state.id, [])
    admin.remove(store, "eval-setting", "wide")
    before = store.database.size()
    assert admin.purge(store).num_bytes > 4_000_000
    store.database.compact()
    assert store.database.size() < before - 3_000_000
    assert store.evaluation("net", "data").logits().tobytes() == samples.logits().tobytes()
    assert verify(store).findings == ()


def test_purging_nothing_deletes_nothing(store: Store, pair: tuple[int, int]) -> None:
    assert admin.purge(store).num_bytes == 0
    assert shown(store) == ["data", "noisy"]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_removed_restored_and_purged_and_no_other(store: Store, samples: Any, name: str) -> None:
    for other in ("net", "a/b", "a_b", name):
        store.put_model(samples.model(other))
    admin.remove(store, "model", name)
    assert [model.name for model in store.list_models() if model.hidden] == [name]
    admin.restore(store, name)
    assert not [model.name for model in store.list_models() if model.hidden]
    admin.remove(store, "model", name)
    assert admin.purge(store).models == (name,)
    assert {model.name for model in store.list_models()} == {"net", "a/b", "a_b"} - {name}
