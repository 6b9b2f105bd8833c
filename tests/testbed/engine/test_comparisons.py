"""Evaluations are compared with their clean parents once both are complete, and each once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from testbed.engine import comparisons as module
from testbed.engine.comparisons import Comparisons


class Stored:
    """A store in which evaluations become complete one by one, and that counts how often it is asked."""

    def __init__(self) -> None:
        self.complete: dict[str, int] = {}
        self.compared: list[tuple[int, int]] = []
        self.num_looks = 0

    def find_evaluation(self, key: Any) -> Any:
        self.num_looks += 1
        id_ = self.complete.get(key.setting_fingerprint + key.model_fingerprint)
        return None if id_ is None else SimpleNamespace(id=id_, status="complete")

    def evaluation_by_id(self, id_: int) -> Any:
        known = {clean: None for shifted, clean in self.compared if shifted == id_}
        return SimpleNamespace(id=id_, comparisons=lambda: known)


def ready(setting: str, *, model: str = "m", clean: str | None = None, seed: int = 0) -> Any:
    pairing = SimpleNamespace(
        model=SimpleNamespace(name=model), setting=SimpleNamespace(name=setting), seed=seed, clean=clean
    )
    key = SimpleNamespace(
        model_fingerprint=model, setting_fingerprint=setting, fit_seed=0, noise_seed=seed, numerics={"batch_size": 1}
    )
    return SimpleNamespace(pairing=pairing, key=key)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Stored:
    store = Stored()
    monkeypatch.setattr(
        module, "store_comparison", lambda _, shifted, clean: store.compared.append((shifted.id, clean.id))
    )
    return store


def test_a_comparison_waits_for_both_and_is_made_once(store: Stored) -> None:
    clean, noise = ready("data"), ready("noise", clean="data")
    comparisons = Comparisons([clean, noise], store)  # type: ignore[arg-type]
    store.complete = {"noisem": 2}
    comparisons.make(noise)
    assert store.compared == []
    store.complete["datam"] = 1
    for one in (clean, noise, noise):
        comparisons.make(one)
    assert store.compared == [(2, 1)]


def test_one_that_is_stored_already_is_not_made_again(store: Stored) -> None:
    clean, noise = ready("data"), ready("noise", clean="data")
    store.complete, store.compared = {"datam": 1, "noisem": 2}, [(2, 1)]
    Comparisons([clean, noise], store).make(noise)  # type: ignore[arg-type]
    assert store.compared == [(2, 1)]


def test_a_parent_of_many_is_looked_up_once_and_few_are_kept(store: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PARENTS", 2)
    models = ("a", "b", "c")
    plan = [ready("data", model=model) for model in models]
    plan += [ready(f"noise{level}", model=model, clean="data") for model in models for level in range(10)]
    store.complete = {one.key.setting_fingerprint + one.key.model_fingerprint: at for at, one in enumerate(plan)}
    comparisons = Comparisons(plan, store)  # type: ignore[arg-type]
    for one in plan:
        comparisons.make(one)
    assert len(store.compared) == 30
    assert store.num_looks == 30 + 3
    assert len(comparisons._parents) == 2
    for one in plan:
        comparisons.make(one)
    assert store.num_looks == 33, "what was compared is not looked up again"
