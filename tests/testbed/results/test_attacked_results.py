"""What is made of stored attacks: they are no noise, and are told in words of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.definitions import Sources, load_definitions
from testbed.engine.devices import choose_devices
from testbed.engine.evaluate import collect, run_evaluations
from testbed.engine.place import Place
from testbed.engine.plan import Request
from testbed.engine.planned import plan_evaluations
from testbed.progress import PlanProgress
from testbed.report import report_text
from testbed.results.levels import Levels, answers
from testbed.store.store import Store


@pytest.mark.parametrize("norms", [(), ("linf",)])
def test_an_attack_of_the_level_that_is_asked_for_is_no_answer(tmp_path: Path, cache_home: Path, norms: tuple) -> None:  # type: ignore[type-arg]
    load_definitions()
    place = Place(
        devices=choose_devices(gpus=None, workers=0),
        threads=1,
        sources=Sources(),
        data_root=None,
        cache_root=cache_home,
    )
    settings = ("digits-fgsm-linf-0.1", "digits-noise-linf-0.1", "digits-fgsm-linf-0.2")
    request = Request(models=("digits-linear",), eval_settings=settings, limit=20, draws=1)
    with Store.open(tmp_path / "s.sqlite") as store:
        store.lock("a test")
        planned = plan_evaluations(request, store, place, is_quiet=True)
        with PlanProgress(total=planned.num_samples, is_quiet=True) as progress:
            run_evaluations(planned, store, place, progress=progress)
        found = answers(store, Levels(norms=norms, epsilon=0.1))
        missing = answers(store, Levels(norms=norms, epsilon=0.2)).missing
        words = " ".join(report_text(collect(planned, store), {}).split())
    assert [group[0].evaluation.setting for group in found.groups] == ["digits-noise-linf-0.1@limit20"]
    assert missing == {"digits-noise-linf-0.2": ["digits-linear"]}
    assert "under FGSM, an attack in L∞ within 0.2000 on 20 samples" in words  # of two the one that costs more
    assert "not tested: stronger attacks, other norms and levels, noise, corruptions, other data." in words
    assert "under uniform L∞ noise within 0.1000" in words
    assert "not tested: other norms and levels, corruptions, attacks, other data." in words
