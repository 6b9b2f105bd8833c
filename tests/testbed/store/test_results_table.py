"""The long table of a store: every metric once, in an order that depends on the content alone; published numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sqlalchemy import update

from testbed.errors import StoreError, UnknownNameError
from testbed.records import MetricValue, PublishedResult
from testbed.store import open_store, schema
from testbed.store.store import Store
from testbed.store.table import COLUMNS


def published(value: float | None = 50.0, **changes: Any) -> PublishedResult:
    fields: dict[str, Any] = {
        "source": "paper", "source_sha256": "0" * 64, "model": "net", "eval_setting": "val", "metric": "top1",
        "protocol": "theirs", "value": value,
    }  # fmt: skip
    return PublishedResult(**fields | changes)


def evaluate(store: Store, samples: Any) -> tuple[int, int]:
    """A clean evaluation and a noisy one that is compared with it."""
    noisy = samples.setting("noisy", shift=samples.shift)
    samples.put_definitions(store, samples.setting(), noisy)
    ids = []
    for setting, draws, seed in ((noisy, 2, 7), (samples.setting(), 1, 0)):
        state = samples.take_up(store, samples.key(setting=setting, noise_seed=seed), num_draws=draws)
        samples.fill(store, state)
        top5 = MetricValue(name="top5", value=None, n=10, reason="three classes")
        top1 = MetricValue(name="top1", value=0.1 + 0.2, n=10, ci_low=0.0, ci_high=1.0, method="wilson")
        store.complete_evaluation(state.id, [top5, top1])
        ids.append(state.id)
    store.put_metrics(ids[0], [MetricValue(name="mscr", value=-2.0, n=10)], reference_evaluation_id=ids[1])
    return ids[1], ids[0]


def test_there_is_a_row_for_every_metric_with_all_that_identifies_it(store: Store, samples: Any) -> None:
    clean_id, noisy_id = evaluate(store, samples)
    table = store.results()
    assert list(table) == list(COLUMNS)
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(COLUMNS)
    assert list(zip(table["eval_setting"], table["metric"], strict=True)) == [
        ("data", "top1"), ("data", "top5"), ("noisy", "mscr"), ("noisy", "top1"), ("noisy", "top5"),
    ]  # fmt: skip
    first, mscr = table.iloc[0], table.iloc[2]
    assert (first["value"], first["n"], first["method"], first["noise_seed"]) == (0.1 + 0.2, 10, "wilson", 0)
    assert (mscr["noise_seed"], mscr["num_draws"], mscr["epsilon"], mscr["clean_eval_setting"]) == (7, 2, 0.1, "data")
    clean, noisy = store.evaluation_by_id(clean_id), store.evaluation_by_id(noisy_id)
    assert mscr["setting_fingerprint"] == noisy.setting_fingerprint
    assert mscr["clean_setting_fingerprint"] == clean.setting_fingerprint
    assert mscr["model_fingerprint"] == clean.model_fingerprint


def test_what_is_missing_is_missing_and_not_zero_or_an_empty_text(store: Store, samples: Any) -> None:
    evaluate(store, samples)
    top5 = store.results().iloc[1]
    assert math.isnan(top5["value"])
    assert top5["reason"] == "three classes"
    assert top5[["method", "severity", "source", "input_size", "clean_setting_fingerprint"]].isna().all()


def test_an_empty_store_gives_an_empty_table_with_all_columns(store: Store) -> None:
    table = store.results()
    assert len(table) == 0
    assert {name: str(kind) for name, kind in table.dtypes.items()} == dict(COLUMNS)


@pytest.mark.parametrize("table", [schema.models, schema.eval_settings, schema.evaluations])
def test_what_was_removed_is_left_out(store: Store, samples: Any, table: Any) -> None:
    evaluate(store, samples)
    with store.writing() as connection:
        connection.execute(update(table).values(hidden=True))
    assert len(store.results()) == 0


def test_stale_results_are_marked(store: Store, samples: Any) -> None:
    evaluate(store, samples)
    samples.supersede(store, samples.model(spec={"width": 16}))
    assert store.results()["is_stale"].all()


def test_published_numbers_come_only_when_they_are_asked_for(store: Store, samples: Any) -> None:
    evaluate(store, samples)
    store.put_published(
        [published(), published(None, model="b", input_size=224, flag="odd"), published(source="other")]
    )
    assert len(store.results()) == 5
    table = store.results(published=["paper"]).iloc[5:]
    assert table["status"].tolist() == ["published", "published"]
    assert table["model"].tolist() == ["b", "net"]
    assert table["input_size"].fillna(0).tolist() == [224, 0]
    assert table["flag"].fillna("").tolist() == ["odd", ""]
    assert table["reason"].fillna("").tolist() == ["the source gives no value", ""]
    assert table[["n", "ci_low", "model_fingerprint"]].isna().all(axis=None)
    with pytest.raises(
        UnknownNameError, match=r"no published source 'papers'. Did you mean paper\? Imported: other, pap"
    ):
        store.results(published=["papers"])


def test_importing_again_changes_nothing_and_another_number_is_refused(store: Store) -> None:
    numbers = [published(), published(None, model="b"), published(60.0, input_size=224)]
    assert store.put_published(numbers) == 3
    assert store.put_published(numbers) == 0
    with pytest.raises(
        StoreError, match=r"1 of the numbers .* top1 of 'net' on 'val': 50.0, now 51.0.*--source, or --over"
    ):
        store.put_published([published(model="new"), published(51.0)])
    assert len(store.results(published=["paper"])) == 3, "nothing of a refused file is stored"
    assert store.put_published([published(51.0)], override=True) == 1
    assert sorted(store.results(published=["paper"])["value"].fillna(-1)) == [-1, 51.0, 60.0]


def test_an_evaluation_is_found_by_the_seed_of_its_run(store: Store, samples: Any) -> None:
    for fit, noise in ((0, 0), (0, 3), (5, 5), (9, 0)):
        samples.completed(store, samples.key(fit_seed=fit, noise_seed=noise))
    found = {seed: store.evaluation("net", "data", seed) for seed in (0, 3, 5, 9)}
    assert {seed: (one.fit_seed, one.noise_seed) for seed, one in found.items()} == {
        0: (0, 0), 3: (0, 3), 5: (5, 5), 9: (9, 0),
    }  # fmt: skip
    with pytest.raises(UnknownNameError):
        store.evaluation("net", "data", 4)


def test_an_open_store_is_for_reading(store: Store, url: str, samples: Any) -> None:
    evaluate(store, samples)
    with open_store(url) as opened:
        assert len(opened.results()) == 5
        assert opened.evaluation("net", "noisy", 7).logits(1).shape == (10, 3)
        with pytest.raises(StoreError, match="opened for reading only"):
            opened.put_model(samples.model())
