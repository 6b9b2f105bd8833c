"""An option that was forgotten is told, before what is stored is evaluated anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.laboratory import put_planned

from testbed.definitions import Sources, load_definitions
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.devices import Devices
from testbed.engine.place import Place
from testbed.engine.plan import Request
from testbed.engine.planned import plan_evaluations
from testbed.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    load_definitions()
    with Store.open(tmp_path / "s.sqlite") as store:
        yield store


@pytest.mark.parametrize(("forgotten", "seeds", "told"), [
    ({"batch_size": 16}, (0,), "2 evaluation(s) are stored with batch size 32 and are made anew with 16"),
    ({"threads": 2}, (0,), "2 evaluation(s) are stored with threads 1 and are made anew with 2"),
    ({"threads": 2}, (0, 1), "2 evaluation(s) are stored with threads 1 and are made anew with 2"),
    ({"arithmetic": Arithmetic(precision="bf16")}, (0,), ""),
    ({"batch_size": 16, "threads": 2}, (0,), ""),
    ({}, (0, 1), ""),
])  # fmt: skip
def test_one_fact_of_the_numerics_that_differs_is_told_with_its_option(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    forgotten: dict[str, Any],
    seeds: tuple[int, ...],
    told: str,
) -> None:
    request = Request(models=("digits-linear",), eval_settings=("digits-noise-linf-0.1",), limit=40, batch_size=32)
    place = Place(devices=Devices(names=("cpu",)), threads=1, sources=Sources(), data_root=None, cache_root=tmp_path)
    put_planned(store, plan_evaluations(request, store, place).preparation.evaluations)
    assert capsys.readouterr().err == ""
    batch_size = forgotten.pop("batch_size", 32)
    plan_evaluations(replace(request, seeds=seeds, batch_size=batch_size), store, replace(place, **forgotten))
    err = capsys.readouterr().err
    assert err == "" if not told else told in err
    assert err.count("Notice") == bool(told)
