"""Devices: what is asked for or an error, never something else in silence."""

from __future__ import annotations

import pytest

from testbed.engine import devices
from testbed.engine.devices import choose_devices
from testbed.errors import DeviceError


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_num_cuda_devices", lambda: 2)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_num_cuda_devices", lambda: 0)


@pytest.mark.usefixtures("two_gpus")
def test_gpus_are_those_asked_for_or_all() -> None:
    assert choose_devices(gpus=[1], workers=None).names == ("cuda:1",)
    assert choose_devices(gpus=None, workers=None).names == ("cuda:0", "cuda:1")


@pytest.mark.usefixtures("two_gpus")
def test_an_absent_gpu_is_an_error_that_tells_which_there_are() -> None:
    with pytest.raises(DeviceError, match=r"GPU 7 was asked for, but 2 present \(0, 1\)"):
        choose_devices(gpus=[0, 7], workers=None)
    with pytest.raises(DeviceError, match="GPU -1"):
        choose_devices(gpus=[-1], workers=None)


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_named_twice_is_an_error() -> None:
    with pytest.raises(DeviceError, match="names 1 more than once"):
        choose_devices(gpus=[1, 0, 1], workers=None)


@pytest.mark.usefixtures("two_gpus")
def test_workers_ask_for_the_cpu_and_exclude_gpus() -> None:
    assert choose_devices(gpus=None, workers=3).names == ("cpu",) * 3
    assert choose_devices(gpus=None, workers=0).is_inline
    with pytest.raises(DeviceError, match="exclude each other"):
        choose_devices(gpus=[0], workers=2)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_there_is_one_worker_per_core_and_a_notice() -> None:
    chosen = choose_devices(gpus=None, workers=None)
    assert chosen.names == ("cpu",) * devices.available_cores()
    assert "No CUDA device found" in chosen.notice
    with pytest.raises(DeviceError, match="none is present"):
        choose_devices(gpus=[0], workers=None)
