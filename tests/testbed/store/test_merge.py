"""Merging two stores: by content, in either direction, twice, interrupted, and never over what is there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update

from testbed.codec import checksum, encode
from testbed.fingerprint import fingerprint
from testbed.records import MetricValue, PublishedResult, Separation, ShardRange
from testbed.store import merge_pieces, schema
from testbed.store.merge import merge
from testbed.store.merge_report import MergeReport
from testbed.store.store import Store

Content = dict[str, list[Any]]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "other.sqlite") as opened:
        yield opened


def content(store: Store) -> Content:
    """All that a store says, without ids, moments and provenance."""
    table = store.results()
    with store.reading() as connection:
        marks: dict[str, dict[int, str]] = {}
        for name in ("model_versions", "setting_versions", "datasets"):
            versions = schema.metadata.tables[name]
            marks[name] = dict(map(tuple, connection.execute(select(versions.c.id, versions.c.fingerprint))))
        keys = {
            row.id: (
                marks["model_versions"][row.model_version_id], marks["setting_versions"][row.setting_version_id],
                row.fit_seed, row.noise_seed, row.numerics_fingerprint,
            )
            for row in connection.execute(select(schema.evaluations))
        }  # fmt: skip
        names = {table.name: dict(map(tuple, connection.execute(select(table.c.id, table.c.name))))
                 for table in (schema.models, schema.eval_settings)}  # fmt: skip
        refer = {"model_version_id": marks["model_versions"], "setting_version_id": marks["setting_versions"],
                 "dataset_id": marks["datasets"], "evaluation_id": keys, "reference_evaluation_id": keys,
                 "model_id": names["models"], "setting_id": names["eval_settings"]}  # fmt: skip
        ignored = {
            "id",
            "digest",
            "created_at",
            "completed_at",
            "imported_at",
            "attempts",
            "run_id",
            "worker",
            "seconds",
            "batch_size",
        }
        found: Content = {"table": table.astype(object).where(table.notna(), None).values.tolist()}
        for one in schema.metadata.sorted_tables:
            if one.name in ("meta", "locks", "runs"):
                continue
            rows = []
            for row in connection.execute(select(one)).mappings():
                row = {name: value for name, value in row.items() if name not in ignored}
                row = {name: refer[name].get(value) if name in refer else value for name, value in row.items()}
                rows.append(repr(sorted((name, _plain(value)) for name, value in row.items())))
            found[one.name] = sorted(rows)
    return found


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


# Stores to merge


def metric(key: Any, num_draws: int, name: str = "top1") -> MetricValue:
    """A number that depends on what is evaluated alone."""
    value = int(fingerprint([key.model_fingerprint, key.setting_fingerprint, key.noise_seed, num_draws, name])[:4], 16)
    return MetricValue(name=name, value=float(value), n=10)


def finish(store: Store, report: MergeReport) -> None:
    """What a command does after a merge: computes the metrics of what became whole."""
    for evaluation_id in report.to_complete:
        one = store.evaluation_by_id(evaluation_id)
        key = _Key(one.model_fingerprint, one.setting_fingerprint, one.noise_seed)
        store.complete_evaluation(evaluation_id, [metric(key, one.num_draws)])


class _Key:
    def __init__(self, model: str, setting: str, noise_seed: int) -> None:
        self.model_fingerprint, self.setting_fingerprint, self.noise_seed = model, setting, noise_seed


def fill_at_random(store: Store, samples: Any, rng: random.Random) -> None:
    """Definitions, evaluations, pieces, metrics, separations and published numbers: some of a common stock."""
    models = [samples.model(name, spec={"width": width}) for name in ("net", "a/b") for width in (8, 16)]
    settings = [
        samples.setting(),
        samples.setting("noisy", shift=samples.shift),
        samples.setting("noisy", spec={"v": 2}),
    ]
    store.put_dataset(samples.dataset())
    for model in rng.sample(models, 3):
        store.put_model(model)
        for setting in rng.sample(settings, 2):
            store.put_setting(setting)
            key = samples.key(model, setting, noise_seed=rng.choice([0, 7]))
            state = samples.take_up(store, key, num_draws=rng.choice([1, 2]))
            part = rng.choice([0.0, 0.5, 1.0, 1.0])
            for where in state.missing():
                if rng.random() < part:
                    shard = samples.shard(where)
                    if rng.random() < 0.3:
                        shard = replace(shard, payload=b"", codec="predictions", sha256=checksum(b""))
                    store.put_shards([(state.id, shard)])
            if not store.find_evaluation(key).missing():  # type: ignore[union-attr]
                store.complete_evaluation(state.id, [metric(key, state.num_draws)])
            elif rng.random() < 0.3:
                store.fail_evaluation(state.id, "the model raised")
    if rng.random() < 0.7:
        store.put_separation(
            Separation(norm="linf", min_distance=0.5, pair=(0, 1), num_points=10), dataset="data", splits=("test",),
            data_fingerprint="f" * 64, norm="linf", space=rng.choice(["8 px", "4 px"]), pair_ids=("test/0", "test/1"),
        )  # fmt: skip
    store.put_published([published(model) for model in rng.sample("abcd", 2)])
    with store.writing() as connection:
        for table in (schema.models, schema.evaluations):
            for row in connection.execute(select(table.c.id)).all():
                connection.execute(update(table).where(table.c.id == row.id).values(hidden=rng.random() < 0.2))


def published(model: str, value: float | None = 50.0) -> PublishedResult:
    return PublishedResult(source="paper", source_sha256="0" * 64, model=model, eval_setting="val", metric="top1",
                           protocol="theirs", value=value)  # fmt: skip


def merged(ours: Store, theirs: Store) -> MergeReport:
    report = merge(ours, theirs)
    finish(ours, report)
    assert not report.conflicts
    return report


# The rules


@pytest.mark.parametrize("seed", range(4))
def test_both_directions_give_the_same_content_and_a_second_merge_changes_nothing(
    store: Store, other: Store, samples: Any, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    fill_at_random(store, samples, rng)
    fill_at_random(other, samples, rng)
    with Store.open(tmp_path / "copy.sqlite") as ours_again:
        merged(ours_again, store)
        assert content(ours_again) == content(store), "an empty store takes over everything"
        merged(store, other)
        merged(other, ours_again)
    whole = content(store)
    assert content(other) == whole
    again = merged(store, other)
    assert (content(store), again.added, again.to_complete) == (whole, {}, [])


def test_an_incomplete_evaluation_is_completed_by_the_pieces_of_the_other(
    store: Store, other: Store, samples: Any
) -> None:
    ours, theirs = samples.begin(store, num_draws=2), samples.begin(other, num_draws=2)
    where = ours.missing()
    store.put_shards((ours.id, samples.shard(one)) for one in where[::2])
    other.put_shards((theirs.id, samples.shard(one)) for one in where[1::2])
    report = merge(store, other)
    assert report.added == {"pieces": len(where[1::2])}
    assert report.to_complete == [ours.id]
    store.complete_evaluation(ours.id, [])
    assert np.array_equal(store.evaluation("net", "data").logits(1), samples.logits(1))


def test_metrics_and_comparisons_come_along(store: Store, other: Store, samples: Any) -> None:
    noisy = samples.setting("noisy", shift=samples.shift)
    clean_id = samples.completed(other)
    other.put_setting(noisy)
    state = samples.take_up(other, samples.key(setting=noisy), num_draws=2)
    samples.fill(other, state)
    other.complete_evaluation(state.id, [MetricValue(name="top1", value=40.0, n=10, detail={"nonfinite": 1})])
    other.put_metrics(state.id, [MetricValue(name="mscr", value=-2.5, n=10)], reference_evaluation_id=clean_id)
    samples.completed(store, samples.key(noise_seed=5))  # ids here are others than there
    assert merge(store, other).to_complete == []
    found = store.evaluation("net", "noisy")
    assert [(one.name, one.value, dict(one.detail)) for one in found.metrics()] == [("top1", 40.0, {"nonfinite": 1})]
    ((reference, (mscr,)),) = found.comparisons().items()
    assert (store.evaluation_by_id(reference).setting, mscr.value) == ("data", -2.5)


@pytest.mark.parametrize("what", ["logits", "labels"])
def test_a_differing_piece_is_reported_and_nothing_is_overwritten(
    store: Store, other: Store, samples: Any, what: str
) -> None:
    state = samples.begin(store, num_draws=2)
    store.put_shards((state.id, samples.shard(one)) for one in state.missing()[:2])
    there = samples.begin(other, num_draws=2)
    changed = samples.shard(ShardRange(draw=0, start=4, stop=8), samples.logits() + 1)
    if what == "labels":
        changed = samples.shard(changed.where, predictions=np.zeros(4, np.int32))
    for where in there.missing():
        other.put_shards([(there.id, changed if where == changed.where else samples.shard(where))])
    other.complete_evaluation(there.id, [])
    before = content(store)
    (conflict,) = merge(store, other).conflicts
    assert "net on data (fit seed 0, noise seed 0): 1 of 2 pieces" in conflict
    assert "draw 0, samples 4 to 8" in conflict
    assert content(store) == before, "an evaluation in conflict takes nothing, not even the pieces it lacks"


def test_equal_logits_in_another_encoding_are_no_conflict(store: Store, other: Store, samples: Any) -> None:
    state = samples.begin(store)
    there = samples.begin(other)
    samples.fill(store, state)
    for where in there.missing():
        payload = encode(samples.logits()[where.start : where.stop], codec="f32+shuffle+zlib")
        shard = samples.shard(where, payload=payload, codec="f32+shuffle+zlib", sha256=checksum(payload))
        other.put_shards([(there.id, shard)])
    assert not merge(store, other).conflicts


def test_the_store_that_keeps_more_of_the_logits_gives_them(store: Store, other: Store, samples: Any) -> None:
    state = samples.begin(store)
    for where in state.missing():
        shard = replace(samples.shard(where), payload=b"", codec="predictions", sha256=checksum(b""))
        store.put_shards([(state.id, shard)])
    store.complete_evaluation(state.id, [metric(samples.key(), 1)])
    samples.completed(other)
    assert not merge(store, other).conflicts
    found = store.evaluation("net", "data")
    assert np.array_equal(found.logits(), samples.logits())
    assert [one.name for one in found.metrics()] == ["top1"], "its metrics stay"


def test_a_piece_that_is_damaged_there_is_not_taken(store: Store, other: Store, samples: Any) -> None:
    samples.completed(other)
    with other.writing() as connection:
        payloads = schema.logit_payloads
        connection.execute(update(payloads).where(payloads.c.start == 4).values(payload=b"\0" * 48))
    report = merge(store, other)
    assert len(report.conflicts) == 1
    assert "samples 4 to 8 are damaged there" in report.conflicts[0]
    assert store.evaluation("net", "data").status == "running"


def test_other_targets_under_one_fingerprint_keep_everything_about_them_out(
    store: Store, other: Store, samples: Any
) -> None:
    samples.completed(other)
    wrong = replace(samples.dataset(), targets=np.zeros(10, np.int64))
    store.put_dataset(wrong)
    report = merge(store, other)
    assert report.conflicts == ["data set 'data' (test) has other targets, sample ids or label sets"]
    assert not store.list_evaluations()
    assert not store.list_settings()


def test_published_numbers_and_separations_that_differ_are_conflicts(store: Store, other: Store) -> None:
    store.put_published([published("a"), published("b")])
    other.put_published([published("a", 51.0), published("c", None)])
    report = merge(store, other)
    assert report.conflicts == ["top1 of 'a' on 'val' as published by 'paper' differs"]
    assert report.added == {"published numbers": 1}
    assert store.results(published=["paper"])["value"].fillna(-1).tolist() == [50.0, 50.0, -1]


def test_the_current_version_is_that_of_the_store_that_knows_both(store: Store, other: Store, samples: Any) -> None:
    old, new = samples.model(spec={"width": 8}), samples.model(spec={"width": 16})
    for model in (old, new):
        store.put_model(model)
    other.put_model(old)
    merge(store, other)
    merge(other, store)
    assert [one.list_models()[0].spec for one in (store, other)] == [{"width": 16}] * 2


def test_a_name_is_hidden_only_where_both_hide_it(store: Store, other: Store, samples: Any) -> None:
    for one in (store, other):
        one.put_model(samples.model())
        one.put_model(samples.model("second"))
        with one.writing() as connection:
            names = ["net", "second"] if one is store else ["net"]
            connection.execute(update(schema.models).where(schema.models.c.name.in_(names)).values(hidden=True))
    merge(store, other)
    assert {model.name: model.hidden for model in store.list_models()} == {"net": True, "second": False}


def test_an_evaluation_is_hidden_only_where_both_hide_it(store: Store, other: Store, samples: Any) -> None:
    for one in (store, other):
        for seed in (0, 1):
            samples.completed(one, samples.key(noise_seed=seed))
        with one.writing() as connection:
            hidden = schema.evaluations.c.noise_seed.in_([0, 1] if one is store else [0])
            connection.execute(update(schema.evaluations).where(hidden).values(hidden=True))
    merge(store, other)
    assert [one.noise_seed for one in store.list_evaluations()] == [1]


def test_the_run_comes_along_once(store: Store, other: Store, samples: Any) -> None:
    run_id = other.start_run({"host": "there", "argv": ["eval.py"]})
    samples.put_definitions(other)
    for seed in (0, 1):
        other.put_evaluation(
            samples.key(noise_seed=seed), num_draws=1, num_samples=10, shard_size=4, run_id=run_id
        )  # fmt: skip
    store.start_run({"host": "here"})
    merge(store, other)
    first, second = store.list_evaluations()
    assert first.run_id == second.run_id
    assert (first.provenance["host"], first.provenance["argv"]) == ("there", ["eval.py"])


def test_what_is_known_of_a_loaded_model_is_filled_in_and_a_contradiction_is_a_conflict(
    store: Store, other: Store, samples: Any
) -> None:
    mark = samples.model().fingerprint
    for one, weights, outputs in ((store, "a" * 64, None), (other, "b" * 64, 3)):
        one.put_model(samples.model())
        one.set_model_facts(mark, weights_sha256=weights, num_outputs=outputs)
    report = merge(store, other)
    assert report.conflicts == [f"model 'net' has weights_sha256 {'a' * 64} here and {'b' * 64} there"]
    facts = store.model_facts(mark)
    assert facts is not None
    assert (facts.weights_sha256, facts.num_outputs) == ("a" * 64, 3)


def test_a_model_that_is_called_otherwise_there_keeps_our_name(store: Store, other: Store, samples: Any) -> None:
    samples.completed(other)
    samples.completed(store)
    with other.writing() as connection:
        connection.execute(update(schema.models).values(name="renamed"))
    report = merge(store, other)
    assert report.notes == ["model 'net' is called 'renamed' there"]
    assert [model.name for model in store.list_models()] == ["net"]


def test_a_dry_run_reports_what_the_merge_does_and_writes_nothing(store: Store, other: Store, samples: Any) -> None:
    samples.completed(other, num_draws=2)
    other.put_published([published("a")])
    before = content(store)
    planned = merge(store, other, is_dry_run=True)
    assert content(store) == before
    assert planned.added == merge(store, other).added == {
        "data sets": 1, "models": 1, "model versions": 1, "settings": 1, "setting versions": 1, "evaluations": 1,
        "pieces": 6, "published numbers": 1,
    }  # fmt: skip


def test_a_merge_that_was_interrupted_goes_on(
    store: Store, other: Store, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.completed(other, num_draws=2)
    monkeypatch.setattr(merge_pieces, "BATCH_BYTES", 1)
    put, left = merge_pieces._put, [2]

    def put_twice(*arguments: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        put(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(merge_pieces, "_put", put_twice)
        with pytest.raises(KeyboardInterrupt):
            merge(store, other)
    assert len(store.find_evaluation(samples.key()).stored) == 2  # type: ignore[union-attr]
    merged(store, other)
    assert content(store) == content(other)


def test_a_complete_evaluation_stays_complete_when_more_draws_of_it_are_interrupted(
    store: Store, other: Store, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.completed(store)
    samples.completed(other, num_draws=2)
    monkeypatch.setattr(merge_pieces, "BATCH_BYTES", 1)
    put = merge_pieces._put

    def put_once(*arguments: Any) -> None:
        put(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(merge_pieces, "_put", put_once)
        with pytest.raises(KeyboardInterrupt):
            merge(store, other)
    assert (store.evaluation("net", "data").status, store.evaluation("net", "data").num_draws) == ("complete", 1)
    merge(store, other)
    assert content(store) == content(other)


def test_a_complete_evaluation_stays_complete_beside_a_larger_plan(store: Store, other: Store, samples: Any) -> None:
    samples.completed(store)
    state = samples.begin(other, num_draws=3)
    other.put_shards([(state.id, samples.shard(ShardRange(draw=1, start=0, stop=4)))])
    merge(store, other)
    found = store.evaluation("net", "data")
    assert (found.status, found.num_draws) == ("complete", 1)
    assert (1, 0, 4) in store.find_evaluation(samples.key()).stored, "what was evaluated is kept"  # type: ignore[union-attr]
