"""Which banks go for a new one: those not used for the longest time, never one of the last hour."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from filelock import FileLock
from tests.slow_filling import slow_pipeline

from testbed.data import eviction
from testbed.data.eviction import kept_banks, make_room
from testbed.data.filling import BankFiller
from testbed.errors import DataError

HOUR = 3600


@pytest.fixture
def folder(tmp_path):
    """A folder of banks of 100 bytes."""
    return tmp_path


def put(folder, key, *, hours, suffixes=(".npy",), size=100):
    for suffix in suffixes:
        path = folder / f"{key}{suffix}"
        path.write_bytes(bytes(size))
        os.utime(path, (0, time.time() - hours * HOUR))


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_the_bank_that_was_not_used_for_the_longest_time_goes_first_and_no_more_than_need_be(folder):
    for key, hours in (("b", 3), ("a", 9), ("c", 2)):
        put(folder, key, hours=hours)
    assert [bank.key for bank in kept_banks(folder)] == ["a", "b", "c"]
    make_room(folder, 100, limit=300)
    assert names(folder) == ["b.npy", "c.npy"]
    make_room(folder, 100, limit=300)
    assert names(folder) == ["b.npy", "c.npy"]


def test_a_bank_of_the_last_hour_never_goes(folder):
    put(folder, "old", hours=1.1)
    put(folder, "new", hours=0.9)
    with pytest.raises(DataError, match=r"hour take 100 bytes: .* 150 bytes .*--bank-limit.*TESTBED_HOME.*--bank off"):
        make_room(folder, 100, limit=150)
    assert names(folder) == ["new.npy"]
    make_room(folder, 100, limit=200)


def test_a_bank_that_was_being_filled_goes_with_its_journal_unless_it_is_being_filled_now(folder):
    put(folder, "left", hours=5, suffixes=(".partial", ".journal"))
    put(folder, "live", hours=9, suffixes=(".partial", ".journal"))
    with FileLock(folder / "live.lock"):
        os.utime(folder / "live.lock", (0, time.time() - 9 * HOUR))
        make_room(folder, 100, limit=300)
    assert names(folder) == ["live.journal", "live.partial"]
    assert [bank.is_whole for bank in kept_banks(folder)] == [False]


def test_what_a_killed_process_left_of_earlier_versions_goes_too(folder):
    put(folder, "key", hours=5, suffixes=(".npy.12-ab.tmp",))
    make_room(folder, 100, limit=100)
    assert names(folder) == []


def test_a_bank_counts_as_used_when_any_of_its_files_was(folder):
    put(folder, "key", hours=5, suffixes=(".partial",))
    put(folder, "key", hours=0, suffixes=(".journal",))
    with pytest.raises(DataError, match="last hour"):
        make_room(folder, 100, limit=250)


def test_without_a_limit_a_tenth_of_the_disk_stays_free(folder, monkeypatch):
    put(folder, "old", hours=5)
    usage = type("Usage", (), {"free": 900})  # 900 free + 100 of banks: 900 for banks
    monkeypatch.setattr(eviction.shutil, "disk_usage", lambda path: usage)
    make_room(folder, 800, limit=None)
    assert names(folder) == ["old.npy"]
    make_room(folder, 801, limit=None)
    assert names(folder) == []


def test_banks_go_where_the_disk_is_full_though_the_limit_is_not_reached(folder, monkeypatch):
    put(folder, "old", hours=5)
    usage = type("Usage", (), {"free": 50})
    monkeypatch.setattr(eviction.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DataError, match=r"need 100 bytes but .* has 50 bytes free"):  # the full disk stays so
        make_room(folder, 100, limit=10**6)
    assert names(folder) == []


def test_using_a_bank_keeps_it_from_going_before_one_that_was_used_later(tmp_path):
    def bank(size):
        return BankFiller(tmp_path, num_threads=1).plan(slow_pipeline(tmp_path / "log", size, 0))

    banks = [bank(size) for size in (10, 20, 30)]
    for position, each in enumerate(banks):
        for path in (tmp_path / "bank").glob(f"{each.fingerprint}.*"):
            os.utime(path, (0, time.time() - (9 - position) * HOUR))
    bank(10)
    assert [one.key for one in kept_banks(tmp_path / "bank")] == [banks[i].fingerprint for i in (1, 2, 0)]
    sizes = {one.key: one.num_bytes for one in kept_banks(tmp_path / "bank")}
    limit = sizes[banks[0].fingerprint] + sizes[banks[2].fingerprint] + 50 * 36
    new = BankFiller(tmp_path, num_threads=1, limit=limit).plan(slow_pipeline(tmp_path / "log", 50, 0))
    assert {one.key for one in kept_banks(tmp_path / "bank")} == {
        banks[0].fingerprint, banks[2].fingerprint, new.fingerprint
    }  # fmt: skip
    assert np.array_equal(bank(30).open()[:], banks[2].open()[:])
