"""Evaluations that keep a part of their logits: what can be read, what is said of the rest, and how more is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.codec import checksum
from testbed.errors import DataError
from testbed.logit_policy import keep
from testbed.records import Shard, ShardRange
from testbed.store.store import Store
from testbed.store.transfer import save_logits


def shard(samples: Any, where: ShardRange, policy: str) -> Shard:
    """A shard as a worker makes it under a policy."""
    part = samples.logits(where.draw)[where.start : where.stop]
    targets = np.arange(where.start, where.stop) % samples.num_classes
    kept = keep(policy, part, in_setting=part, targets=targets)
    changes = {"payload": kept.payload, "codec": kept.codec, "sha256": checksum(kept.payload)}
    made: Shard = samples.shard(where, **changes, num_outputs=kept.num_outputs)
    return made


def complete(store: Store, samples: Any, *policies: str) -> int:
    """A complete evaluation with one shard of each of three policies."""
    state = samples.begin(store)
    store.put_shards(
        (state.id, shard(samples, where, policy)) for where, policy in zip(state.missing(), policies, strict=True)
    )
    store.complete_evaluation(state.id, [])
    return int(state.id)


@pytest.mark.parametrize("policy", ["full", "lossless", "float16"])
def test_logits_are_there_under_policies_that_keep_all(store: Store, samples: Any, policy: str) -> None:
    found = store.evaluation_by_id(complete(store, samples, *[policy] * 3))
    assert found.keeps_all_logits
    assert found.logits() == pytest.approx(samples.logits(), abs=2e-3 if policy == "float16" else 0)


@pytest.mark.parametrize(
    ("policy", "available"), [("topk:2", "top_logits, predictions"), ("predictions", "predictions")]
)
def test_lost_logits_are_an_error_that_says_what_is_kept(
    store: Store, samples: Any, policy: str, available: str
) -> None:
    found = store.evaluation_by_id(complete(store, samples, policy, policy, policy))
    assert not found.keeps_all_logits
    message = rf"\(--store-logits {policy}\): ask for {available} or target_ranks.*--store-logits full"
    with pytest.raises(DataError, match=message):
        found.logits()
    assert found.predictions().shape == (1, 10)


def test_top_logits_are_read_from_shards_of_any_kind(store: Store, samples: Any) -> None:
    found = store.evaluation_by_id(complete(store, samples, "full", "topk:2", "float16"))
    assert found.logit_codecs == ("f16", "f32", "topk:2")
    top = found.top_logits()
    order = np.argsort(-samples.logits(), axis=1, kind="stable")
    assert np.array_equal(top.classes, order[:, :2]), "two are kept of every sample"
    assert top.values == pytest.approx(np.take_along_axis(samples.logits(), order[:, :2], 1), abs=2e-3)
    assert top.target_logits == pytest.approx(samples.logits()[np.arange(10), np.arange(10) % 3], abs=2e-3)
    assert found.top_logits(k=1).classes.shape == (10, 1)
    with pytest.raises(DataError, match="keeps the 2 largest logits of each sample, and 3 were asked for"):
        found.top_logits(k=3)


def test_all_logits_are_top_logits(store: Store, samples: Any) -> None:
    found = store.evaluation_by_id(samples.completed(store))
    assert found.top_logits().classes.shape == (10, 3)
    assert found.top_logits(k=2).classes.shape == (10, 2)


def test_predictions_only_have_no_top_logits(store: Store, samples: Any) -> None:
    found = store.evaluation_by_id(complete(store, samples, "full", "full", "predictions"))
    with pytest.raises(DataError, match=r"keeps predictions only .*: ask for predictions or target_ranks"):
        found.top_logits()


def test_top_logits_of_a_class_subset_count_its_classes(store: Store, samples: Any) -> None:
    setting = samples.setting("subset", class_sublist=(2, 0))
    samples.put_definitions(store, setting)
    state = samples.take_up(store, samples.key(setting=setting))
    samples.fill(store, state)
    top = store.evaluation_by_id(state.id).top_logits()
    assert np.array_equal(top.classes[:, 0], samples.logits()[:, [2, 0]].argmax(1))
    assert np.isnan(top.target_logits).tolist() == [index % 3 == 1 for index in range(10)]


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [("predictions", "topk:1", "topk:1"), ("topk:1", "topk:2", "topk:2"), ("topk:2", "full", "f32"),
     ("float16", "full", "f32"), ("full", "predictions", "f32"), ("full", "float16", "f32"),
     ("topk:2", "topk:1", "topk:2"), ("full", "lossless", "f32")],
)  # fmt: skip
def test_a_shard_that_keeps_more_takes_the_place_of_one_that_keeps_less(
    store: Store, samples: Any, execute: Any, before: str, after: str, kept: str
) -> None:
    id_ = complete(store, samples, before, before, before)
    store.put_shards([(id_, shard(samples, ShardRange(draw=0, start=4, stop=8), after))])
    other = shard(samples, ShardRange(draw=0, start=0, stop=4), before).codec
    rows = execute("select codec from logit_shards order by start")
    assert [tuple(row) for row in rows] == [(other,), (kept,), (other,)]
    assert store.evaluation_by_id(id_).predictions().tolist() == [samples.logits().argmax(1).tolist()]


def test_a_replaced_shard_leaves_no_payload_behind(store: Store, samples: Any, execute: Any) -> None:
    id_ = complete(store, samples, "topk:2", "topk:2", "topk:2")
    places = samples.take_up(store).missing(store_logits="full")
    store.put_shards((id_, shard(samples, where, "full")) for where in places)
    assert np.array_equal(store.evaluation_by_id(id_).logits(), samples.logits())
    assert execute("select count(*), sum(length(payload)) from logit_payloads") == [(3, 10 * 3 * 4)]


def test_a_complete_evaluation_is_taken_up_only_for_more(store: Store, samples: Any) -> None:
    id_ = complete(store, samples, "topk:2", "full", "topk:2")
    size = {"num_draws": 1, "num_samples": 10, "shard_size": 4, "run_id": None}
    for enough in (None, "predictions", "topk:2", "topk:1"):
        assert store.put_evaluation(samples.key(), **size, store_logits=enough).status == "complete"
    state = store.put_evaluation(samples.key(), **size, store_logits="float16")
    assert (state.id, state.status, state.codecs_below("float16")) == (id_, "running", ["topk:2"])
    assert [where.start for where in state.missing(store_logits="float16")] == [0, 8]
    assert state.missing() == [], "what is stored stays whole: it can be completed as it is"
    store.complete_evaluation(id_, [])


@pytest.mark.parametrize("policy", ["topk:2", "predictions"])
def test_logits_that_are_not_all_there_are_not_written_as_files(
    store: Store, samples: Any, policy: str, tmp_path: Any
) -> None:
    found = store.evaluation_by_id(complete(store, samples, "full", policy, "full"))
    with pytest.raises(DataError, match=rf"1 of 1 evaluation\(s\) have not all logits.*--store-logits {policy}"):
        save_logits([found], tmp_path / "out")
    assert not (tmp_path / "out").exists()
