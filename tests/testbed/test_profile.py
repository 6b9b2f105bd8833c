"""Where time went: every column adds up to the time on the clock."""

from __future__ import annotations

import pytest

from testbed.profile import Profile


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def run(clock: Clock, *, is_inline: bool = False) -> Profile:
    """One second of start-up, two of preflight, workers up after 3 s, 10 s of evaluation of which 1 s is storing, and
    half a second for the results."""
    profile = Profile(is_inline=is_inline, clock=clock)
    clock.now += 1
    profile.begin("preflight")
    clock.now += 2
    profile.begin("store")
    for worker in ("cpu/0",) if is_inline else ("cpu/0", "cpu/1"):
        profile.started(worker, 0.0)
    clock.now += 3
    profile.waited(3.0)
    profile.heard("cpu/0")
    profile.heard("cpu/1")
    clock.now += 7
    profile.waited(6.0)
    profile.busy("cpu/0", {"read": 0.5, "forward": 5.0})
    profile.busy("cpu/0", {"forward": 0.5})
    profile.begin("results")
    clock.now += 0.5
    return profile


def test_the_driver_and_every_device_add_up_to_the_wall(clock: Clock) -> None:
    columns = run(clock).columns()
    assert columns["driver"] == pytest.approx({"start-up": 1, "preflight": 2, "store": 1, "results": 0.5, "idle": 9})
    assert columns["cpu (mean of 2)"] == pytest.approx(
        {"start-up": 1, "preflight": 2, "worker start": 3, "read": 0.25, "forward": 2.75, "idle": 4.5}
    )
    assert {round(sum(column.values()), 9) for column in columns.values()} == {13.5}


def test_decoding_before_the_first_unit_has_a_row_of_its_own_in_every_column(clock: Clock) -> None:
    profile = Profile(clock=clock)
    profile.begin("preflight")
    clock.now += 5
    profile.took("decode", 4.0)
    profile.begin("store")
    profile.started("cpu/0", 0.0)
    clock.now += 1
    columns = profile.columns()
    assert columns["driver"] == pytest.approx({"start-up": 0, "preflight": 1, "decode": 4, "store": 1, "idle": 0})
    assert columns["cpu"]["decode"] == 4


def test_a_worker_in_the_drivers_process_shares_its_column(clock: Clock) -> None:
    profile = Profile(is_inline=True, clock=clock)
    clock.now += 1
    profile.begin("preflight")
    clock.now += 2
    profile.begin("store")
    clock.now += 3
    profile.waited(3.0)
    profile.started("cpu/0", 3.0)
    clock.now += 5
    profile.waited(4.5)
    profile.busy("cpu/0", {"forward": 4.0})
    assert profile.columns() == {
        "cpu": pytest.approx(
            {"start-up": 1, "preflight": 2, "worker start": 3, "forward": 4, "store": 0.5, "idle": 0.5}
        )
    }


def test_what_a_lost_worker_was_at_is_told_and_its_start_is_a_start(clock: Clock) -> None:
    profile = Profile(clock=clock)
    profile.begin("store")
    profile.started("cpu/0", 0.0)
    clock.now += 2
    profile.heard("cpu/0")
    clock.now += 3
    profile.lost("cpu/0")
    profile.started("cpu/0~1", 0.0)
    clock.now += 4
    profile.lost("cpu/0~1")
    clock.now += 1
    assert profile.columns()["cpu"] == pytest.approx({"start-up": 0, "worker start": 6, "lost": 3, "idle": 1})


def test_a_worker_in_the_place_of_a_lost_one_has_its_column(clock: Clock) -> None:
    profile = Profile(clock=clock)
    profile.started("cuda:0/0", 0.0)
    profile.heard("cuda:0/0")
    profile.busy("cuda:0/0", {"forward": 1.0})
    clock.now += 4
    profile.started("cuda:0/0~1", 0.5)
    clock.now += 1
    profile.heard("cuda:0/0~1")
    profile.busy("cuda:0/0~1", {"forward": 2.0})
    column = profile.columns()["cuda:0"]
    assert column["forward"] == 3
    assert column["worker start"] == pytest.approx(1.5)
    assert sum(column.values()) == pytest.approx(5)


def test_a_worker_that_never_answered_was_starting(clock: Clock) -> None:
    profile = Profile(clock=clock)
    profile.begin("store")
    profile.started("cpu/0", 0.0)
    clock.now += 8
    assert profile.columns()["cpu"] == {"start-up": 0, "worker start": 8, "idle": 0}


def test_stages_that_overlap_are_not_counted_twice(clock: Clock) -> None:
    profile = Profile(clock=clock)
    profile.begin("store")
    profile.started("cuda:0/0", 0.0)
    profile.heard("cuda:0/0")
    clock.now += 10
    profile.busy("cuda:0/0", {"forward": 9.0, "encode": 3.0})
    column = profile.columns()["cuda:0"]
    assert column["at once"] == pytest.approx(-2)
    assert "idle" not in column
    assert sum(column.values()) == pytest.approx(10)


def test_the_table_shows_seconds_and_percent_in_a_fixed_order(clock: Clock) -> None:
    lines = run(clock).text().splitlines()
    assert lines[0].split("  ")[-1].strip() == "cpu (mean of 2)"
    assert [line.split("  ")[0].strip() for line in lines[1:]] == [
        "start-up", "preflight", "worker start", "read", "forward", "store", "results", "idle", "total",
    ]  # fmt: skip
    assert lines[5].endswith("2.8 s   20 %")
    assert lines[-1].endswith("13.5 s  100 %")
    assert len({len(line) for line in lines}) == 1


def test_this_process_has_run_for_a_while() -> None:
    profile = Profile.of_this_process()
    assert 0 < sum(profile.columns()["driver"].values()) < 3600
