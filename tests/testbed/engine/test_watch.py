"""When a worker counts as silent, by a clock that is turned by hand."""

from __future__ import annotations

import pytest

from testbed.engine.watch import LONGEST_TURN, MAX_STARTS, START_SECONDS, Watch


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> Watch:
    watch = Watch(3.0, clock)
    watch.add("a")
    watch.heard("a")
    return watch


def pass_time(watch: Watch, clock: Clock, seconds: float) -> None:
    """Lets time pass as a driver sees it that listens all the while."""
    for _ in range(int(seconds)):
        clock.now += 1
        watch.turn()


def test_a_worker_is_silent_after_the_timeout_and_named_once(watch: Watch, clock: Clock) -> None:
    pass_time(watch, clock, 3)
    assert watch.newly_silent(["a"]) == []
    pass_time(watch, clock, 1)
    assert watch.newly_silent(["a"]) == ["a"]
    assert watch.newly_silent(["a"]) == []
    assert watch.verdict("a") == "worker a gave no sign of life for 3 s; --unit-timeout allows more"


def test_every_sign_of_life_and_every_first_unit_starts_the_time_anew(watch: Watch, clock: Clock) -> None:
    pass_time(watch, clock, 3)
    watch.heard("a")
    pass_time(watch, clock, 3)
    watch.begins("a")
    pass_time(watch, clock, 3)
    assert watch.newly_silent(["a"]) == []
    assert watch.verdict("a") == ""


def test_a_driver_that_did_not_listen_accuses_nobody(watch: Watch, clock: Clock) -> None:
    """It computed metrics, or was stopped and continued, for an hour: that is one turn."""
    clock.now += 3600
    watch.turn()
    assert LONGEST_TURN < 3
    assert watch.newly_silent(["a"]) == []


def test_a_worker_that_starts_has_a_minute_at_least_and_more_where_more_is_allowed(clock: Clock) -> None:
    assert START_SECONDS == 60
    patient = Watch(90.0, clock)
    patient.add("a")
    pass_time(patient, clock, 90)
    assert patient.newly_silent(["a"]) == []
    watch = Watch(3.0, clock)
    watch.add("a")
    pass_time(watch, clock, START_SECONDS)
    assert watch.newly_silent(["a"]) == []
    pass_time(watch, clock, 1)
    assert watch.newly_silent(["a"]) == ["a"]


def test_a_worker_that_was_at_work_is_replaced_for_ever_and_one_that_never_was_three_times(clock: Clock) -> None:
    watch = Watch(3.0, clock)
    watch.add("a")
    assert not watch.is_up("a")
    for number in range(1, MAX_STARTS):
        assert watch.may_start_again("a" if number == 1 else f"a~{number - 1}")
        watch.add(f"a~{number}", in_place_of="a" if number == 1 else f"a~{number - 1}")
    assert not watch.may_start_again(f"a~{MAX_STARTS - 1}")
    watch.heard(f"a~{MAX_STARTS - 1}")
    assert watch.may_start_again(f"a~{MAX_STARTS - 1}")
    watch.add("b", in_place_of=f"a~{MAX_STARTS - 1}")
    assert watch.may_start_again("b"), "starts that came to nothing long ago do not count"
