"""What is shown of how far a plan is."""

from __future__ import annotations

import io
import sys

import pytest

from testbed import progress as module
from testbed.progress import PlanProgress


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """Standard error of somebody who watches."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", clock)
    return clock


def test_a_line_comes_every_half_minute_also_while_nothing_advances(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with PlanProgress(total=1000, devices=("cpu", "cpu")) as progress:
        for _ in range(65):
            clock.now += 1
            progress.tick()
    told = capsys.readouterr().err.splitlines()
    assert told == ["0/1000 samples (0 %), 0 per second, time left unknown, 2 x cpu"] * 2


def test_the_line_has_rate_time_left_decoded_samples_and_devices(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    devices = ("cuda:0", "cuda:1")
    with PlanProgress(total=100_000, done=40_000, devices=devices, decoding=lambda: (200, 900)) as progress:
        clock.now += 40
        progress.advance(2_000)
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "42000/100000 samples (42 %), 50 per second, 19 min left, 200/900 decoded, cuda:0, cuda:1",
    ]


def test_what_was_stored_before_is_no_speed_and_a_pause_is_forgotten(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with PlanProgress(total=10_000, done=5_000) as progress:
        clock.now += 100_000  # hours of decoding
        progress.advance(0)
        capsys.readouterr()
        for _ in range(20):
            clock.now += 10
            progress.advance(100)
    assert "10 per second" in capsys.readouterr().err.splitlines()[-1]


def test_what_need_not_be_done_any_more_is_done_and_no_speed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with PlanProgress(total=1_000) as progress:
        clock.now += 40
        progress.skip(500)
        progress.tick()
    assert capsys.readouterr().err == "500/1000 samples (50 %), 0 per second, time left unknown\n"
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with PlanProgress(total=1_000) as progress:
        progress.skip(500)
        clock.now += 1
        progress.tick()
        told = terminal.getvalue().split("\r")[-1]
    assert "50%" in told
    assert "?, ? samples/s" in told


def test_few_marks_are_kept_however_many_pieces_come(clock: Clock) -> None:
    with PlanProgress(total=10_000, is_quiet=True) as progress:
        for _ in range(10_000):
            clock.now += 0.05
            progress.advance(1)
    assert len(progress._marks) <= 123
    assert progress._rate() == pytest.approx(20, rel=0.02)


def test_nothing_but_what_must_be_said_is_said_to_who_wants_quiet(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with PlanProgress(total=10, is_quiet=True) as progress:
        clock.now += 100
        progress.tick()
        progress.advance(5)
        progress.note("done: a on b")
        progress.say("failed: a on c")
    assert capsys.readouterr().err == "failed: a on c\n"


def test_a_terminal_sees_a_bar_with_devices_and_decoding(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with PlanProgress(total=2_000, devices=("cpu",), decoding=lambda: (3, 7)) as progress:
        progress.advance(1_000)
        clock.now += 1
        progress.tick()
    told = terminal.getvalue()
    assert "cpu:" in told
    assert "1.00k/2.00k" in told
    assert "3/7 decoded" in told


def test_a_bar_says_that_workers_start_and_does_not_count_that_as_speed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with PlanProgress(total=1000) as progress:
        clock.now += 60
        progress.tick()
        assert "starting" in sys.stderr.getvalue()  # type: ignore[attr-defined]
        progress.began()
        clock.now += 10
        progress.advance(100)
        progress.tick()
        assert "starting" not in sys.stderr.getvalue().rpartition("\r")[2]  # type: ignore[attr-defined]
        assert progress._rate() == 10


def test_the_stages_of_a_unit_are_handed_on() -> None:
    seen: list[object] = []
    with PlanProgress(total=1, on_busy=lambda worker, stages: seen.append((worker, stages))) as progress:
        progress.busy("cpu/0", {"forward": 1.0})
    assert seen == [("cpu/0", {"forward": 1.0})]


@pytest.mark.parametrize(
    ("seconds", "words"), [(45, "45 s"), (119, "119 s"), (120, "2 min"), (7000, "117 min"), (12_000, "3 h 20 min")]
)
def test_times_are_told_in_the_units_that_matter(seconds: float, words: str) -> None:
    assert module._duration(seconds) == words
