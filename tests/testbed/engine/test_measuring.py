"""Batch sizes and places of perturbation that are measured: once per device, and part of what an evaluation is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.laboratory import put_planned

from testbed.definitions import Sources, load_definitions
from testbed.engine import measuring
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.devices import Devices
from testbed.engine.measured import Measured
from testbed.engine.place import Place
from testbed.engine.plan import Request
from testbed.engine.planned import plan_evaluations
from testbed.engine.preflight import Ready
from testbed.engine.unit import Unit, WorkerConfig
from testbed.fingerprint import fingerprint
from testbed.store.store import Store


class Fake:
    """Stands for the trials on a device: answers as a test says, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

    def __call__(self, config: WorkerConfig, units: Sequence[Unit]) -> list[Any]:
        self.asked += [(config.device, unit.models[0]) for unit in units]
        return [self.answers[index % len(self.answers)] for index in range(len(units))]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    load_definitions()
    with Store.open(tmp_path / "s.sqlite") as store:
        yield store


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """An empty one, in which nothing was measured."""
    return tmp_path / "cache"


def place_of(cache: Path, *names: str, **wanted: Any) -> Place:
    return Place(devices=Devices(names=names), threads=1, sources=Sources(), data_root=None, cache_root=cache,
                 **wanted)  # fmt: skip


def planned(
    store: Store, place: Place, *settings: str, models: Sequence[str] = ("digits-linear",), **wanted: Any
) -> list[Ready]:
    request = Request(models=models, eval_settings=settings, limit=40, draws=1, **wanted)
    return list(plan_evaluations(request, store, place).preparation.evaluations)


def test_a_measured_batch_is_that_of_all_settings_of_a_model(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measuring, "largest_batches", fake := Fake(32))
    found = planned(store, place_of(cache, "cpu"), "digits-noise-linf-0.1", batch_size="auto")
    assert fake.asked == [("cpu", "digits-linear")]
    assert [ready.pairing.batch_size for ready in found] == [32, 32]
    assert [ready.key.numerics["batch_size"] for ready in found] == [32, 32]
    assert [ready.shard_size for ready in found] == [128, 128]
    assert "a batch of digits-linear is 32 images" in capsys.readouterr().err


def test_what_was_measured_is_not_measured_again(store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "largest_batches", fake := Fake(16))
    place = place_of(cache, "cpu")
    for _ in range(2):
        assert planned(store, place, "digits", batch_size="auto")[0].pairing.batch_size == 16
    assert len(fake.asked) == 1
    planned(store, replace(place, arithmetic=Arithmetic(precision="bf16")), "digits", batch_size="auto")
    assert len(fake.asked) == 2  # in another arithmetic it is another question


def test_one_batch_fits_all_devices(store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "device_name", str)
    monkeypatch.setattr(measuring, "largest_batches", lambda config, units: [64 if config.device == "cuda:0" else 8])
    place = place_of(cache, "cuda:0", "cuda:1", "cuda:0", "cuda:1")
    assert planned(store, place, "digits", batch_size="auto")[0].pairing.batch_size == 8


def test_equal_cards_are_measured_once(store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "device_name", lambda device: "a card")
    monkeypatch.setattr(measuring, "largest_batches", fake := Fake(8))
    planned(store, place_of(cache, "cuda:0", "cuda:1"), "digits", batch_size="auto")
    assert fake.asked == [("cuda:0", "digits-linear")]


def test_a_unit_is_never_larger_than_large_ones_are(store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "largest_batches", Fake(4096))
    assert planned(store, place_of(cache, "cpu"), "digits", batch_size="auto")[0].pairing.batch_size == 1024


def test_a_model_that_cannot_be_measured_keeps_its_own_batch(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = planned(store, place_of(cache, "cpu"), "digits")[0].pairing.batch_size
    monkeypatch.setattr(measuring, "largest_batches", fake := Fake(None))
    for _ in range(2):
        found = planned(store, place_of(cache, "cpu"), "digits", batch_size="auto")
        assert found[0].pairing.batch_size == own
    assert len(fake.asked) == 2  # no answer is none to remember
    assert f"its own {own}, as none was found" in capsys.readouterr().err


def test_where_a_perturbation_is_computed_is_part_of_its_evaluation_alone(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "cheaper_places", fake := Fake("cpu"))
    clean, noisy = planned(store, place_of(cache, "cuda:0"), "digits-noise-linf-0.1")
    assert fake.asked == [("cuda:0", "digits-linear")]  # the clean setting perturbs nothing
    assert "perturbed_on" not in clean.key.numerics
    assert noisy.key.numerics["perturbed_on"] == "cpu"
    planned(store, place_of(cache, "cuda:0"), "digits-noise-linf-0.1", models=("digits-resnet",))
    assert len(fake.asked) == 1  # whatever the model


def test_tasks_carry_the_place_to_the_workers(store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "cheaper_places", Fake("cpu", "device"))
    request = Request(models=("digits-linear",), eval_settings=("digits-noise-linf-0.1", "digits-noise-linf-0.2"))
    tasks = plan_evaluations(request, store, place_of(cache, "cuda:0")).preparation.tasks
    assert {task.setting: task.perturbs_on for task in tasks} == {
        "digits": "device", "digits-noise-linf-0.1": "cpu", "digits-noise-linf-0.2": "device"
    }  # fmt: skip


def test_a_setting_that_is_stored_keeps_its_place_on_a_machine_that_measures_another(
    store: Store, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "cheaper_places", Fake("cpu"))
    request = Request(models=("digits-linear",), eval_settings=("digits-noise-linf-0.1",), limit=40, draws=1)
    first = plan_evaluations(request, store, place_of(cache, "cuda:0")).preparation
    put_planned(store, first.evaluations)
    monkeypatch.setattr(measuring, "cheaper_places", fake := Fake("device"))
    elsewhere = place_of(tmp_path / "another", "cuda:0")
    found = plan_evaluations(request, store, elsewhere).preparation.evaluations
    assert [ready.key for ready in found] == [ready.key for ready in first.evaluations]
    more = planned(store, elsewhere, "digits-noise-linf-0.1", models=("digits-resnet",), seeds=(1,))
    assert [ready.key.numerics.get("perturbed_on") for ready in more] == [None, "cpu"]  # comparable with the others
    assert fake.asked == []
    _, forced = planned(store, replace(elsewhere, perturbs_on="device"), "digits-noise-linf-0.1")
    assert "perturbed_on" not in forced.key.numerics


@pytest.mark.parametrize(("asked", "expected"), [("cpu", "cpu"), ("device", None)])
def test_a_place_that_is_asked_for_is_not_measured(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch, asked: Any, expected: str | None
) -> None:
    monkeypatch.setattr(measuring, "cheaper_places", fake := Fake("cpu"))
    place = place_of(cache, "cuda:0", perturbs_on=asked)
    _, noisy = planned(store, place, "digits-noise-linf-0.1")
    assert (noisy.key.numerics.get("perturbed_on"), fake.asked) == (expected, [])


@pytest.mark.parametrize("asked", ["auto", "cpu", "device"])
def test_on_the_cpu_there_is_no_other_place(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch, asked: Any
) -> None:
    monkeypatch.setattr(measuring, "cheaper_places", fake := Fake("cpu"))
    _, noisy = planned(store, place_of(cache, "cpu", perturbs_on=asked), "digits-noise-linf-0.1")
    assert fake.asked == []
    assert "perturbed_on" not in noisy.key.numerics


def test_a_damaged_file_of_measurements_is_as_none(tmp_path: Path) -> None:
    known = Measured(tmp_path)
    known.put({"what": "batch size"}, 8)
    assert (known.get({"what": "batch size"}), known.get({"what": "another"})) == (8, None)
    for text in ("", "{", "[1]", '{"a": 1}'):
        next((tmp_path / "measured").iterdir()).write_text(text)
        assert known.get({"what": "batch size"}) is None
    known.put({"what": "batch size"}, 16)
    assert known.get({"what": "batch size"}) == 16
    file = next((tmp_path / "measured").iterdir())
    file.write_text(file.read_text().replace("16", "17"))
    assert known.get({"what": "batch size"}) is None


def test_what_an_earlier_version_measured_is_believed_and_kept_with_a_checksum_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "measured").mkdir()
    file, question = tmp_path / "measured" / "measured.json", {"what": "batch size"}
    file.write_text(json.dumps({fingerprint(question): {"question": question, "answer": 8}}))
    known = Measured(tmp_path)
    assert known.get(question) == 8
    known.put({"what": "another"}, 4)
    assert known.get(question) == 8
    assert "sha256" in json.loads(file.read_text())


def test_attacks_follow_from_what_was_measured_and_models_that_are_fitted_keep_their_own(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparation = plan_evaluations(
        Request(models=("digits-linear", "digits-random-forest"), eval_settings=("digits",)), store,
        place_of(cache, "cpu"),
    ).preparation  # fmt: skip
    linear, forest = preparation.evaluations
    attacked = replace(linear, setting=replace(linear.setting, name="attacked", adversarial_attack={"eps": 1}))
    monkeypatch.setattr(measuring, "largest_batches", fake := Fake(64))
    fitted = replace(
        linear, pairing=replace(forest.pairing, model=SimpleNamespace(name="fitted", is_fitted=True, adapts=None))
    )  # type: ignore[arg-type]
    whole = replace(preparation, evaluations=(linear, attacked, fitted))
    found = measuring.with_measured_batches(whole, place_of(cache, "cpu")).evaluations
    assert [ready.pairing.batch_size for ready in found[:2]] == [64, 8]
    assert found[1].key.numerics["batch_size"] == 8
    assert len(fake.asked) == 1
