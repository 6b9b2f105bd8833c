"""What every store must do, whatever database is behind it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from testbed.errors import DataError, DefinitionError, StoreError, TestbedError, UnknownNameError
from testbed.records import MetricValue, Separation, ShardRange
from testbed.store.queries import settings_with_results
from testbed.store.store import Store

NAMES = ["'; drop table models;--", "100%", "under_score", "back\\slash", "quote\"'", "a/b", "🦆", "x" * 300, "ключ"]


def metric(name: str = "top1", value: float | None = 50.0, **changes: Any) -> MetricValue:
    return MetricValue(name=name, value=value, n=10, **changes)


# Definitions


def test_putting_twice_gives_the_same_id(store: Store, samples: Any) -> None:
    store.put_dataset(samples.dataset())
    for put, record in (
        (store.put_model, samples.model()),
        (store.put_dataset, samples.dataset()),
        (store.put_setting, samples.setting()),
    ):
        assert put(record) == put(record)
    assert len(store.list_models()) == len(store.list_settings()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_names_come_back_as_they_were(store: Store, samples: Any, name: str) -> None:
    model, setting = samples.model(name), samples.setting(name)
    store.put_dataset(samples.dataset())
    store.put_model(model)
    store.put_setting(setting)
    state = samples.take_up(store, samples.key(model, setting))
    found = store.evaluation(name, name)
    assert (found.id, found.model, found.setting) == (state.id, name, name)
    assert [stored.name for stored in store.list_models()] == [name]
    assert [stored.name for stored in store.list_settings()] == [name]


def test_a_percent_sign_is_no_wildcard(store: Store, samples: Any) -> None:
    samples.begin(store)
    with pytest.raises(UnknownNameError):
        store.evaluation("%", "data")


def test_one_name_may_be_two_models_of_two_label_spaces(store: Store, samples: Any) -> None:
    store.put_model(samples.model())
    store.put_model(samples.model(label_space="other"))
    assert [(stored.name, stored.label_space) for stored in store.list_models()] == [("net", "other"), ("net", "three")]


def test_a_changed_definition_with_results_makes_the_old_ones_stale(store: Store, samples: Any) -> None:
    old = samples.completed(store)
    wider = samples.model(spec={"width": 16})
    samples.supersede(store, wider)
    assert store.evaluation_by_id(old).is_stale
    assert store.evaluation("net", "data").model_fingerprint == wider.fingerprint
    store.put_model(samples.model())
    assert store.evaluation("net", "data").id == old, "a definition that is changed back is current again"


@pytest.mark.parametrize("state", ["not begun", "begun", "half done", "failed"])
@pytest.mark.parametrize("changed", ["model", "setting"])
def test_a_definition_without_results_supersedes_none(store: Store, samples: Any, changed: str, state: str) -> None:
    old = samples.completed(store)
    definition = getattr(samples, changed)(spec={"changed": True})
    getattr(store, f"put_{changed}")(definition)
    if state != "not begun":
        new = samples.take_up(store, samples.key(**{changed: definition}))
        if state == "half done":
            store.put_shards([(new.id, samples.shard(new.missing()[0]))])
        if state == "failed":
            store.fail_evaluation(new.id, "the arch is another one")
        assert not store.evaluation_by_id(new.id).is_stale, "it is told of beside what counts"
    found = store.evaluation_by_id(old)
    assert (found.is_stale, found.is_current) == (False, False)
    assert [one.id for one in store.list_evaluations(status="complete", is_stale=False)] == [old]
    listed = (*store.list_models(), *store.list_settings())
    assert [one.fingerprint for one in listed] == [found.model_fingerprint, found.setting_fingerprint]
    assert not store.results()["is_stale"].any()
    with store.reading() as connection:
        assert settings_with_results(connection) == ["data"]


def test_of_several_versions_before_a_failure_the_last_that_was_completed_counts(store: Store, samples: Any) -> None:
    for width in (8, 16):
        samples.supersede(store, samples.model(spec={"width": width}))
    store.put_model(samples.model(spec={"width": 32}))
    assert store.list_models()[0].spec == {"width": 16}
    assert [one.is_stale for one in store.list_evaluations()] == [True, False]


def test_listing_shows_the_current_version_where_none_has_results(store: Store, samples: Any) -> None:
    samples.put_definitions(store)
    store.put_model(samples.model(spec={"width": 16}))
    samples.take_up(store, samples.key(samples.model(spec={"width": 16})))
    (model,) = store.list_models()
    assert (model.spec, model.num_versions, model.num_evaluations) == ({"width": 16}, 2, 1)


def test_two_models_may_not_share_a_fingerprint(store: Store, samples: Any) -> None:
    model = samples.model()
    store.put_model(model)
    with pytest.raises(DefinitionError, match="'other' has the fingerprint of another"):
        store.put_model(type(model)(name="other", label_space="three", fingerprint=model.fingerprint, spec={}))


def test_a_fingerprint_with_other_targets_is_refused(store: Store, samples: Any) -> None:
    dataset = samples.dataset()
    store.put_dataset(dataset)
    changed = type(dataset)(**{**vars(dataset), "targets": np.zeros(10, int)})
    with pytest.raises(DataError, match="other targets"):
        store.put_dataset(changed)


def test_model_facts_must_stay_what_they_were(store: Store, samples: Any) -> None:
    content = samples.model().fingerprint
    assert store.model_facts(content) is None
    store.put_model(samples.model())
    store.set_model_facts(content, weights_sha256="a" * 64, num_outputs=3)
    store.set_model_facts(content, weights_sha256=None, num_outputs=3)
    with pytest.raises(DataError, match=r"'net' has changed while its definition has not.*version="):
        store.set_model_facts(content, weights_sha256="b" * 64, num_outputs=3)
    facts = store.model_facts(content)
    assert facts is not None
    assert (facts.weights_sha256, facts.num_outputs) == ("a" * 64, 3)


def test_shift_subset_and_spec_come_back(store: Store, samples: Any) -> None:
    setting = samples.setting(
        "noisy", shift=samples.shift, sample_indices=np.array([7, 1, 2]), class_sublist=(2, 1), spec={"k": [1, None]}
    )
    samples.put_definitions(store, setting)
    (stored,) = store.list_settings()
    assert (stored.shift, stored.n, stored.spec, stored.dataset) == (samples.shift, 3, {"k": [1, None]}, "data")
    store.put_evaluation(samples.key(setting=setting), num_draws=1, num_samples=3, shard_size=4, run_id=None)
    found = store.evaluation("net", "noisy")
    assert found.shift == samples.shift
    assert found.sample_indices().tolist() == [7, 1, 2]
    assert found.sample_ids() == ["test/7", "test/1", "test/2"]
    assert found.class_names == ("c", "b")
    assert found.targets().tolist() == [1, 1, 0], "data set's targets 1, 1, 2 as positions in the sublist (2, 1)"


# Progress of an evaluation


def test_an_evaluation_is_found_by_its_key(store: Store, samples: Any) -> None:
    assert store.find_evaluation(samples.key()) is None
    state = samples.begin(store)
    assert (state.status, state.stored) == ("pending", frozenset())
    assert store.find_evaluation(samples.key()) == state
    assert samples.take_up(store) == state
    for other in ({"noise_seed": 1}, {"fit_seed": 1}, {"numerics": {"dtype": "bfloat16"}}):
        assert samples.take_up(store, samples.key(**other)).id != state.id


def test_what_is_missing_is_planned_minus_stored(store: Store, samples: Any) -> None:
    state = samples.begin(store, num_draws=2)
    grid = [(draw, start, stop) for draw in (0, 1) for start, stop in ((0, 4), (4, 8), (8, 10))]
    assert [(where.draw, where.start, where.stop) for where in state.missing()] == grid
    store.put_shards([(state.id, samples.shard(ShardRange(draw=1, start=4, stop=8)))])
    state = samples.take_up(store, num_draws=2)
    assert [len(state.missing(num_draws=num_draws)) for num_draws in (1, 2, 3)] == [3, 5, 8]
    assert state.status == "running"
    assert state.stored == {(1, 4, 8)}
    assert [(where.draw, where.start, where.stop) for where in state.missing()] == [g for g in grid if g != (1, 4, 8)]


def test_a_shard_that_is_there_stays_as_it_is(store: Store, samples: Any) -> None:
    state = samples.begin(store)
    samples.fill(store, state)
    again = samples.shard(ShardRange(draw=0, start=0, stop=4), samples.logits(5))
    store.put_shards([(state.id, again)])
    assert np.array_equal(store.evaluation_by_id(state.id).logits(), samples.logits(0))


@pytest.mark.parametrize("where", [(0, 2, 6), (0, 8, 12), (1, 0, 4), (0, 12, 16), (-1, 0, 4)])
def test_a_shard_that_is_not_planned_is_refused(store: Store, samples: Any, where: tuple[int, int, int]) -> None:
    state = samples.begin(store)
    draw, start, stop = where
    shard = samples.shard(ShardRange(draw=draw, start=start, stop=stop), np.zeros((20, 3), np.float32))
    with pytest.raises(StoreError, match="is not planned"):
        store.put_shards([(state.id, shard)])


def test_a_group_of_shards_is_stored_as_a_whole_or_not_at_all(store: Store, samples: Any) -> None:
    state = samples.begin(store)
    good, bad = samples.shard(state.missing()[0]), samples.shard(ShardRange(draw=9, start=0, stop=4))
    with pytest.raises(StoreError):
        store.put_shards([(state.id, good), (state.id, bad)])
    assert samples.take_up(store).stored == frozenset()


def test_complete_refuses_missing_shards_and_names_the_first(store: Store, samples: Any) -> None:
    state = samples.begin(store)
    store.put_shards([(state.id, samples.shard(state.missing()[0]))])
    with pytest.raises(StoreError, match=r"2 of its planned shards .* draw 0, samples 4 to 8"):
        store.complete_evaluation(state.id, [metric()])
    found = store.evaluation_by_id(state.id)
    assert found.status == "running"
    assert found.metrics() == []


def test_more_draws_extend_an_evaluation_and_fewer_change_nothing(store: Store, samples: Any) -> None:
    id_ = samples.completed(store)
    store.complete_evaluation(id_, [metric()])
    assert samples.take_up(store, num_draws=1).status == "complete"
    state = samples.take_up(store, num_draws=3)
    assert (state.id, state.status, state.num_draws, len(state.missing())) == (id_, "running", 3, 6)
    assert store.evaluation_by_id(id_).metrics() == [metric()]
    with pytest.raises(StoreError, match="samples 0 to 10 of draw 1 are not stored"):
        store.evaluation_by_id(id_).predictions()
    samples.fill(store, state)
    store.complete_evaluation(id_, [metric(value=60.0)])
    state = samples.take_up(store, num_draws=2)
    assert (state.status, state.num_draws) == ("complete", 3)


def test_draws_that_were_planned_and_not_done_need_not_be_done(store: Store, samples: Any) -> None:
    state = samples.begin(store, num_draws=5)
    store.put_shards((state.id, samples.shard(where)) for where in state.missing()[: 3 * 2 + 1])
    state = samples.take_up(store, num_draws=1)
    assert (state.num_draws, state.missing()) == (2, []), "two draws are stored as a whole, and stay"
    store.complete_evaluation(state.id, [])
    assert store.evaluation_by_id(state.id).predictions().shape == (2, 10)
    assert len(samples.take_up(store, num_draws=3).missing()) == 2, "of the third draw a shard was stored"


def test_the_grid_stays_once_a_shard_is_stored(store: Store, samples: Any) -> None:
    state = samples.begin(store)
    kwargs = {"num_draws": 1, "num_samples": 10, "run_id": None}
    assert store.put_evaluation(samples.key(), shard_size=5, **kwargs).shard_size == 5
    store.put_shards([(state.id, samples.shard(ShardRange(draw=0, start=5, stop=10)))])
    assert store.put_evaluation(samples.key(), shard_size=2, **kwargs).shard_size == 5
    with pytest.raises(DataError, match="begun with 10 samples, and now has 9"):
        store.put_evaluation(samples.key(), shard_size=5, num_draws=1, num_samples=9, run_id=None)


def test_a_failed_evaluation_keeps_its_shards_and_can_be_taken_up(store: Store, samples: Any) -> None:
    state = samples.begin(store)
    store.put_shards([(state.id, samples.shard(state.missing()[0]))])
    store.fail_evaluation(state.id, "the model raised ValueError")
    found = store.evaluation_by_id(state.id)
    assert (found.status, found.reason) == ("failed", "the model raised ValueError")
    state = samples.take_up(store)
    assert (state.status, len(state.stored)) == ("running", 1)
    assert store.evaluation_by_id(state.id).reason == ""
    store.mark_partial(state.id, "2 images are damaged")
    assert store.evaluation_by_id(state.id).status == "partial"


def test_recomputing_metrics_does_not_move_the_time_of_completion(store: Store, samples: Any, execute: Any) -> None:
    id_ = samples.completed(store)
    execute("update evaluations set completed_at = '2020-01-01 00:00:00'")
    store.complete_evaluation(id_, [metric()])
    completed_at = store.evaluation_by_id(id_).completed_at
    assert completed_at is not None
    assert completed_at.year == 2020


def test_a_complete_evaluation_cannot_fail(store: Store, samples: Any) -> None:
    id_ = samples.completed(store)
    with pytest.raises(StoreError, match="is complete"):
        store.fail_evaluation(id_, "too late")
    assert store.evaluation_by_id(id_).status == "complete"


# Arrays


def test_logits_come_back_bit_for_bit(store: Store, samples: Any) -> None:
    logits = samples.logits()
    logits[3] = np.nan
    logits[4] = [np.inf, -np.inf, -0.0]
    logits[5] = np.array([1e-45, 3.4028235e38, 0.1], np.float32)
    state = samples.begin(store)
    for where in reversed(state.missing()):
        store.put_shards([(state.id, samples.shard(where, logits))])
    found = store.evaluation_by_id(state.id).logits()
    assert found.dtype == np.float32
    assert found.tobytes() == logits.tobytes()


def test_predictions_and_ranks_are_in_order_of_draw_and_sample(store: Store, samples: Any) -> None:
    state = samples.begin(store, num_draws=2)
    for where in reversed(state.missing()):
        store.put_shards([(state.id, samples.shard(where))])
    found = store.evaluation_by_id(state.id)
    assert found.predictions().dtype == found.target_ranks().dtype == np.int32
    assert np.array_equal(found.predictions(), [samples.logits(draw).argmax(1) for draw in (0, 1)])
    assert np.array_equal(found.target_ranks(), [np.arange(10) % 3] * 2)
    assert np.array_equal(found.logits(1), samples.logits(1))
    assert found.targets().tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert found.sample_ids()[9] == "test/9"


def test_logits_are_read_shard_by_shard(store: Store, samples: Any) -> None:
    found = store.evaluation_by_id(samples.completed(store))
    assert [(start, len(part)) for start, part in found.logit_shards()] == [(0, 4), (4, 4), (8, 2)]


def test_a_gap_is_an_error_not_a_shorter_array(store: Store, samples: Any) -> None:
    state = samples.begin(store)
    first, _, last = state.missing()
    store.put_shards((state.id, samples.shard(where)) for where in (first, last))
    found = store.evaluation_by_id(state.id)
    for read in (found.logits, found.predictions, found.target_ranks):
        with pytest.raises(StoreError, match="samples 4 to 8 of draw 0 are not stored"):
            read()
    with pytest.raises(DataError, match=r"has 1 draw.* there is no draw 1"):
        found.logits(1)


def test_a_store_without_logits_says_so(store: Store, samples: Any) -> None:
    state = samples.begin(store)
    store.put_shards((state.id, samples.shard(where, payload=b"")) for where in state.missing())
    found = store.evaluation_by_id(state.id)
    assert found.predictions().shape == (1, 10)
    with pytest.raises(DataError, match="keeps predictions only"):
        found.logits()


# Metrics


def test_metrics_come_back_as_they_were(store: Store, samples: Any) -> None:
    id_ = samples.completed(store)
    full = metric("a", 1 / 3, ci_low=0.1, ci_high=0.7, method="wilson", detail={"classes": [1.5, None]})
    store.complete_evaluation(id_, [metric("b", None, reason="five classes or fewer"), full])
    assert store.evaluation_by_id(id_).metrics() == [full, metric("b", None, reason="five classes or fewer")]


def test_nan_is_stored_as_missing_with_a_reason(store: Store, samples: Any, execute: Any) -> None:
    id_ = samples.completed(store)
    odd = {"detail": {"nan": math.nan, "deep": [np.float32(math.inf), np.int64(3)]}}
    store.complete_evaluation(id_, [metric("a", math.nan, ci_low=-math.inf, **odd), metric("b", math.inf)])
    first, second = store.evaluation_by_id(id_).metrics()
    assert (first.value, first.ci_low, first.reason) == (None, None, "the value is nan")
    assert first.detail == {"nan": None, "deep": [None, 3]}
    assert (second.value, second.reason) == (None, "the value is inf")


def test_comparisons_are_kept_apart_from_own_metrics(store: Store, samples: Any) -> None:
    clean = samples.completed(store)
    noisy = samples.completed(store, samples.key(noise_seed=1))
    store.put_metrics(noisy, [metric("mscr", -3.0)], reference_evaluation_id=clean)
    store.complete_evaluation(noisy, [metric("top1"), metric("top5")])
    store.complete_evaluation(noisy, [metric("top1", 51.0)])
    found = store.evaluation_by_id(noisy)
    assert found.metrics() == [metric("top1", 51.0)], "recomputing replaces the whole set"
    assert found.comparisons() == {clean: [metric("mscr", -3.0)]}
    store.put_metrics(noisy, [metric("mscr", -4.0)], reference_evaluation_id=clean)
    assert store.evaluation_by_id(noisy).comparisons() == {clean: [metric("mscr", -4.0)]}


def test_metrics_of_fewer_draws_go_when_the_evaluation_is_complete_again(store: Store, samples: Any) -> None:
    clean = samples.completed(store)
    noisy = samples.completed(store, samples.key(noise_seed=1))
    store.put_metrics(noisy, [metric("mscr", -3.0)], reference_evaluation_id=clean)
    samples.fill(store, samples.take_up(store, samples.key(noise_seed=1), num_draws=2))
    assert store.evaluation_by_id(noisy).comparisons() != {}
    store.complete_evaluation(noisy, [metric()])
    assert store.evaluation_by_id(noisy).comparisons() == {}


# Separations, runs


def test_a_separation_comes_back_under_its_whole_key(store: Store) -> None:
    separation = Separation(norm="linf", min_distance=111 / 255, pair=(3, 8), num_points=1797)
    key: dict[str, Any] = {
        "dataset": "digits", "splits": ("train", "test"), "data_fingerprint": "f" * 64, "norm": "linf", "space": "8 px",
    }  # fmt: skip
    assert store.get_separation(**key) is None
    for _ in range(2):
        store.put_separation(separation, pair_ids=("train/3", "test/0"), **key)
    found = store.get_separation(**key)
    assert found is not None
    assert (found.min_distance, found.pair, found.pair_ids) == (111 / 255, (3, 8), ("train/3", "test/0"))
    assert found.epsilon_min == 111 / 510
    others = {"dataset": "x", "splits": ("test",), "data_fingerprint": "e" * 64, "norm": "l2", "space": "16 px"}
    for name, value in others.items():
        assert store.get_separation(**key | {name: value}) is None
    with pytest.raises(DataError, match="two classes"):
        store.put_separation(
            Separation(norm="l2", min_distance=math.inf, pair=(0, 0), num_points=1), pair_ids=("", ""),
            **key | {"norm": "l2"},
        )  # fmt: skip


def test_an_evaluation_knows_the_run_it_comes_from(store: Store, samples: Any) -> None:
    samples.put_definitions(store)
    run = store.start_run({"host": "h", "pid": 7, "argv": ["eval.py"], "versions": {"numpy": "2"}, "mood": "good"})
    state = store.put_evaluation(samples.key(), num_draws=1, num_samples=10, shard_size=4, run_id=run)
    store.finish_run(run, 130)
    found = store.evaluation_by_id(state.id).provenance
    assert (found["host"], found["pid"], found["argv"], found["exit_status"]) == ("h", 7, ["eval.py"], 130)
    assert found["versions"] == {"numpy": "2"}
    assert found["detail"] == {"mood": "good"}
    assert found["started_at"].utcoffset().total_seconds() == 0
    assert 0 <= (found["finished_at"] - found["started_at"]).total_seconds() < 60


# Look-ups


def test_several_evaluations_of_one_pair_are_told_apart(store: Store, samples: Any) -> None:
    first = samples.begin(store).id
    second = samples.take_up(store, samples.key(noise_seed=1)).id
    third = samples.take_up(store, samples.key(numerics={"dtype": "float32", "device": "cuda"})).id
    with pytest.raises(TestbedError, match=r"There are 3 evaluations .* noise_seed 1"):
        store.evaluation("net", "data")
    assert store.evaluation("net", "data", noise_seed=1).id == second
    assert store.evaluation("net", "data", numerics={"device": "cuda"}).id == third
    assert {found.id for found in store.list_evaluations(noise_seed=0)} == {first, third}
    assert store.list_evaluations(status="complete") == store.list_evaluations(model="other") == []
    assert len({found.fingerprint for found in store.list_evaluations()}) == 3


def test_an_unknown_name_is_met_with_a_suggestion(store: Store, samples: Any) -> None:
    samples.begin(store)
    with pytest.raises(UnknownNameError, match="Did you mean net\\?"):
        store.evaluation("nett", "data")
    with pytest.raises(UnknownNameError, match="no evaluation 99"):
        store.evaluation_by_id(99)


def test_readers_see_only_what_was_committed(store: Store, url: str, samples: Any) -> None:
    state = samples.begin(store)
    with Store.open(url, read_only=True) as reader:
        assert reader.find_evaluation(samples.key()) == state
        samples.fill(store, state)
        assert len(reader.evaluation_by_id(state.id).logits()) == 10
        with pytest.raises(StoreError, match="for reading only"):
            reader.put_model(samples.model("new"))


# One driver at a time


def test_a_second_driver_is_refused_with_the_owner_of_the_lock(store: Store, url: str) -> None:
    store.lock("the first driver")
    store.lock("the first driver")
    store.heartbeat()
    with Store.open(url) as other:
        with pytest.raises(StoreError, match="in use by the first driver"):
            other.lock("the second")
        store.close()
        other.lock("the second")


def test_an_expired_lock_is_taken_and_its_owner_stops_writing(
    store: Store, url: str, samples: Any, execute: Any
) -> None:
    store.lock("sleeper", expires_after=5)
    execute("update locks set heartbeat_at = '2020-01-01 00:00:00'")
    with Store.open(url) as other:
        other.lock("successor")
        with pytest.raises(StoreError, match="now in use by successor"):
            store.put_model(samples.model())
        assert other.list_models() == []
        store.close()
        other.put_model(samples.model())


def test_the_lock_of_a_dead_program_on_this_machine_is_free_at_once(store: Store, url: str, execute: Any) -> None:
    store.lock("killed")
    execute("update locks set pid = 2147483647")
    with Store.open(url) as other:
        other.lock("successor")


def test_a_heartbeat_writes_only_when_one_is_due(store: Store, execute: Any) -> None:
    for expires_after, is_renewed in ((1000.0, False), (0.0, True)):
        store.close()
        store.lock("driver", expires_after=expires_after)
        execute("update locks set heartbeat_at = '2020-01-01 00:00:00'")
        store.heartbeat()
        assert execute("select heartbeat_at > '2021-01-01' from locks")[0][0] == is_renewed


def test_writing_renews_the_lock(store: Store, samples: Any, execute: Any) -> None:
    store.lock("driver", expires_after=1000)
    execute("update locks set heartbeat_at = '2020-01-01 00:00:00'")
    store.put_model(samples.model())
    assert execute("select heartbeat_at > '2021-01-01' from locks")[0][0]
