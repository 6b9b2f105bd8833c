"""The plan in words: no time where none was measured, and a line per setting where there are very many."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from testbed.engine import dry_run

PLACE: Any = SimpleNamespace(devices=SimpleNamespace(names=["cpu"], described=["CPU"]))
ATTACK = {"norm": "linf"}


def ready(setting: str, attack: Any, model: str) -> Any:
    return SimpleNamespace(
        setting=SimpleNamespace(name=setting, adversarial_attack=attack),
        pairing=SimpleNamespace(model=SimpleNamespace(name=model), num_draws=1, store_logits="full"),
        num_samples=5,
        model_version=SimpleNamespace(fingerprint=model),
    )


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan of evaluations of which nothing is stored, with models that take 2 s for a sample."""
    engine = SimpleNamespace(start=lambda: ["worker"])
    monkeypatch.setattr(dry_run, "InlineEngine", lambda configs: engine)
    monkeypatch.setattr(dry_run, "identity", lambda one: (one.setting.name, one.pairing.model.name))
    monkeypatch.setattr(dry_run, "_seconds_per_sample", lambda engine, worker, one: 2.0)
    place = SimpleNamespace(**vars(PLACE), worker_configs=lambda tasks: [])

    def plan(*evaluations: Any) -> str:
        pending = [SimpleNamespace(ready=one, missing=[SimpleNamespace(start=0, stop=5)]) for one in evaluations]
        preparation = SimpleNamespace(distinct=evaluations, tasks=[])
        planned: Any = SimpleNamespace(
            pending=pending, preparation=preparation, num_missing=5 * len(pending), num_missing_bytes=0
        )
        return dry_run.plan_text(planned, place)  # type: ignore[arg-type]

    return plan


def test_attacks_have_no_time(text: Any) -> None:
    clean, attacked = ready("digits", None, "net"), ready("digits-pgd", ATTACK, "net")
    assert "about 10 s with 1 worker" in text(clean)
    assert "about 10 s, beside an unknown time for 1 with attacks, with 1 worker" in text(clean, attacked)
    assert "for an unknown time, since attacks are not timed, with 1 worker" in text(attacked)


def test_very_many_evaluations_have_a_line_per_setting(text: Any) -> None:
    many = [ready(setting, None, f"net{number}") for setting in ("one", "two") for number in range(dry_run.MANY)]
    lines = text(*many).splitlines()
    assert lines[:2] == [f"100 evaluations  {name}  500 of 500 samples to evaluate" for name in ("one", "two")]
    assert len(lines) == 3
    assert text(*many[:2]).splitlines()[0] == "net0  one  5 of 5 samples to evaluate"
