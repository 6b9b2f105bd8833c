"""From a plan to stored results, where it is interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.definitions import Sources, load_definitions
from testbed.engine.devices import choose_devices
from testbed.engine.evaluate import run_evaluations
from testbed.engine.place import Place
from testbed.engine.plan import Request
from testbed.engine.planned import plan_evaluations
from testbed.progress import PlanProgress
from testbed.store.store import Store


class Impatient(PlanProgress):
    """A user who presses Ctrl-C once a setting under noise is done."""

    def note(self, line: str) -> None:
        if "mscr" in line:
            raise KeyboardInterrupt


def test_what_is_complete_is_compared_before_an_interruption(tmp_path: Path, cache_home: Path) -> None:
    load_definitions()
    devices = choose_devices(gpus=None, workers=0)
    place = Place(devices=devices, threads=1, sources=Sources(), data_root=None, cache_root=cache_home)
    settings = ("digits-mscr-linf", "digits-noise-linf-0.1")
    request = Request(models=("digits-linear",), eval_settings=settings, limit=20, draws=1)
    with Store.open(tmp_path / "s.sqlite") as store:
        store.lock("a test")
        planned = plan_evaluations(request, store, place)
        with pytest.raises(KeyboardInterrupt), Impatient(total=planned.num_samples, is_quiet=True) as progress:
            run_evaluations(planned, store, place, progress=progress)
        found = {one.setting: one for one in store.list_evaluations(status="complete")}
        clean = found["digits@limit20"]
        assert list(found["digits-mscr-linf@limit20"].comparisons()) == [clean.id]
        assert "digits-noise-linf-0.1@limit20" not in found
