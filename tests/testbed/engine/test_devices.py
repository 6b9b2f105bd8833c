"""Devices: what is asked for or an error, never something else in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.engine import cards, devices
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.cards import card, card_among, device_name
from testbed.engine.devices import Devices, check_arithmetic, choose_devices
from testbed.errors import DeviceError

INSTALLED = [
    {"index": "0", "uuid": "GPU-aaaa-1", "compute_cap": "9.0", "name": "NVIDIA H200"},
    {"index": "1", "uuid": "GPU-bbbb-2", "compute_cap": "7.0", "name": "Tesla V100"},
]


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_num_cuda_devices", lambda: 2)
    monkeypatch.setattr(cards, "_installed", list)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def two_kinds(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cards that nvidia-smi lists: a newer and an older one."""
    monkeypatch.setattr(cards, "_installed", lambda: INSTALLED)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_num_cuda_devices", lambda: 0)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("two_gpus")
def test_gpus_are_those_asked_for_or_all() -> None:
    assert choose_devices(gpus=[1], workers=None).names == ("cuda:1",)
    assert choose_devices(gpus=[1], workers=None).notice == "Using cuda:1."
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


@pytest.mark.usefixtures("two_gpus")
def test_workers_that_share_gpus_take_turns_over_them() -> None:
    chosen = choose_devices(gpus=[0, 1], workers=None, workers_per_gpu=2)
    assert chosen.names == ("cuda:0", "cuda:1", "cuda:0", "cuda:1")
    assert chosen.distinct == ("cuda:0", "cuda:1")
    assert choose_devices(gpus=None, workers=None, workers_per_gpu=3).names.count("cuda:1") == 3


@pytest.mark.usefixtures("no_gpu")
def test_workers_per_gpu_are_for_gpus() -> None:
    with pytest.raises(DeviceError, match="--workers-per-gpu 2 and --workers 1 exclude each other"):
        choose_devices(gpus=None, workers=1, workers_per_gpu=2)
    with pytest.raises(DeviceError, match="--workers-per-gpu 2 was asked for, but no CUDA device is present"):
        choose_devices(gpus=None, workers=None, workers_per_gpu=2)


@pytest.mark.usefixtures("no_gpu")
def test_visible_devices_that_hide_all_gpus_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "99")
    assert "No CUDA device found under CUDA_VISIBLE_DEVICES=99" in choose_devices(gpus=None, workers=None).notice
    with pytest.raises(DeviceError, match="none is present under CUDA_VISIBLE_DEVICES=99"):
        choose_devices(gpus=[0], workers=None)


@pytest.mark.usefixtures("two_kinds")
def test_messages_name_the_physical_cards() -> None:
    assert (
        "cuda:0 (NVIDIA H200, physical 0, GPU-aaaa-1), cuda:1 (Tesla V100"
        in choose_devices(gpus=None, workers=None).notice
    )
    with pytest.raises(DeviceError, match=r"GPU 2 was asked for, but 2 present \(cuda:0 \(NVIDIA H200, physical 0"):
        choose_devices(gpus=[2], workers=None)
    assert Devices(names=("cuda:1",)).described == ("cuda:1 (Tesla V100, physical 1, GPU-bbbb-2)",)
    assert Devices(names=("cpu", "cpu")).described == ("cpu", "cpu")


def test_visible_numbers_are_counted_within_cuda_visible_devices() -> None:
    assert card_among(0, INSTALLED, None).name == "NVIDIA H200"
    assert card_among(0, INSTALLED, "1,0").name == "Tesla V100"
    assert card_among(1, INSTALLED, "GPU-bbbb-2, GPU-aaaa").name == "NVIDIA H200"  # a beginning is enough
    assert card_among(0, INSTALLED, "1").capability == (7, 0)
    unknown = card_among(0, [], "3")
    assert (str(unknown), unknown.capability) == ("cuda:0 (physical 3)", None)
    assert str(card_among(0, [], None)) == "cuda:0"


def test_slices_of_a_card_are_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1111,MIG-2222")
    monkeypatch.setattr(cards, "_installed", lambda: INSTALLED)
    assert str(card("cuda:1")) == "cuda:1 (a MIG slice, physical MIG-2222)"
    assert device_name("cuda:0") != device_name("cuda:1")  # they may differ in size


def test_equal_cards_have_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(cards, "_installed", lambda: [INSTALLED[0], {**INSTALLED[0], "index": "1", "uuid": "GPU-c"}])
    assert device_name("cuda:0") == device_name("cuda:1") == "NVIDIA H200"
    assert device_name("cpu")


@pytest.mark.usefixtures("two_kinds")
def test_a_precision_that_a_device_has_not_is_refused() -> None:
    both, older, cpu = (Devices(names=names) for names in (("cuda:0", "cuda:1"), ("cuda:1",), ("cpu",)))
    for precision in ("bf16", "tf32"):
        check_arithmetic(Arithmetic(precision=precision), Devices(names=("cuda:0",)))  # type: ignore[arg-type]
        with pytest.raises(DeviceError, match=rf"--precision {precision} needs .* 8.0 .*Tesla V100.* has 7.0"):
            check_arithmetic(Arithmetic(precision=precision), both)  # type: ignore[arg-type]
    check_arithmetic(Arithmetic(precision="fp16"), older)
    check_arithmetic(Arithmetic(precision="bf16"), cpu)
    with pytest.raises(DeviceError, match="tf32 is a format of CUDA devices"):
        check_arithmetic(Arithmetic(precision="tf32"), cpu)


@pytest.mark.usefixtures("two_gpus")
def test_what_is_not_known_of_a_card_is_left_to_it() -> None:
    check_arithmetic(Arithmetic(precision="bf16"), Devices(names=("cuda:0",)))


def test_looking_for_devices_leaves_cuda_alone() -> None:
    import torch

    choose_devices(gpus=None, workers=None)
    assert not torch.cuda.is_initialized()


def test_cards_are_read_as_nvidia_smi_writes_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, GPU-aaaa-1, 9.0, NVIDIA H200'\necho '1, GPU-bbbb-2, 7.0, Tesla V100'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert cards._installed.__wrapped__() == INSTALLED
    program.write_text("#!/bin/sh\nexit 9\n")
    assert cards._installed.__wrapped__() == []
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cards._installed.__wrapped__() == []


@pytest.mark.usefixtures("two_gpus")
def test_there_are_no_more_workers_than_units_but_always_one() -> None:
    chosen = choose_devices(gpus=None, workers=None, workers_per_gpu=2)
    assert chosen.at_most(3).names == ("cuda:0", "cuda:1", "cuda:0")
    assert chosen.at_most(0).names == ("cuda:0",)
    assert chosen.at_most(9) == chosen


@pytest.mark.usefixtures("no_gpu")
def test_more_workers_than_cores_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available_cores", lambda: 2)
    assert choose_devices(gpus=None, workers=2).notice == ""
    assert choose_devices(gpus=None, workers=3).notice == "3 workers share 2 core(s)."
