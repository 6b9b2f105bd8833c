"""What makes the start quick: nothing heavy is loaded in the driver to learn that it is not needed."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest

from testbed.engine import devices


def test_torch_is_not_asked_for_devices_where_no_driver_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_has_driver", lambda: False)
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it would fail
    assert devices.choose_devices(gpus=None, workers=None).names[0] == "cpu"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PyTorch is always asked")
def test_a_driver_is_there_where_its_library_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(Path, "exists", lambda path: False)  # no /dev/kfd either
    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert not devices._has_driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: name)
    assert devices._has_driver()


def test_rocm_has_no_such_library_and_a_device_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == "/dev/kfd")
    assert devices._has_driver()
