"""Banks that are filled while models run: by one process or several, killed, resumed, damaged, on a full disk."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.conftest import ROOT
from tests.slow_filling import images, slow_pipeline

from testbed.data import bankfile, bankfill, filling
from testbed.data.bankfile import BLOCK, BankFile
from testbed.data.filling import BankFiller
from testbed.data.imagepipeline import Pipeline
from testbed.data.pipelines import Recipe
from testbed.errors import DataError, DefinitionError
from testbed.records import Samples

LARGE = 4_100  # more than are decoded when they are planned
SMALL = 320
FIRST = np.arange(3)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "decoded.txt"


@pytest.fixture
def fillers(tmp_path):
    """Makes fillers of one cache, and stops them."""
    made = []

    def make(**options):
        made.append(BankFiller(tmp_path / "cache", **{"num_threads": 2, **options}))
        return made[-1]

    yield make
    for filler in made:
        filler.stop()


def decoded(log):
    """How often each sample was decoded."""
    return Counter(map(int, log.read_text().split())) if log.exists() else Counter()


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.005)


def plan(filler, log, size=LARGE, seconds=0.0):
    return filler.plan(slow_pipeline(log, size, seconds), transform_identity="slow")


def begin(filler, *banks):
    filler.reserve(banks)
    filler.start()


def fill_only(filler, bank, indices):
    """Decodes the blocks of these samples, and few others."""
    with ThreadPoolExecutor(1) as pool:
        while not filler.is_ready(bank, indices):
            filler._fills[bank.fingerprint].work(pool, filler._stop, most=1)


def expected(size):
    return np.moveaxis(images(size), 3, 1)


@pytest.fixture
def run_slowly(tmp_path, log):
    """Starts programs that fill the same cache slowly, and kills them."""
    started = []

    def start(size=SMALL, seconds=0.004):
        command = [sys.executable, ROOT / "tests" / "slow_filling.py", tmp_path / "cache", log, size, seconds]
        started.append(subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_large_bank_is_planned_at_once_and_filled_in_the_background(fillers, log):
    filler = fillers()
    bank = plan(filler, log)
    assert (bank.shape, bank.dtype, bank.is_complete()) == ((LARGE, 3, 2, 6), "uint8", False)
    assert sum(decoded(log).values()) == 1
    assert not filler.is_ready(bank, FIRST)
    begin(filler, bank)
    assert filler.counts()[1] == LARGE
    wait_until(bank.is_complete)
    assert filler.is_ready(bank, np.array([LARGE - 1, 0]))
    assert filler.counts() == (LARGE, LARGE)
    np.testing.assert_array_equal(bank.open()[:], expected(LARGE))
    assert max(decoded(log).values()) == 2  # the first, which told the shape
    filler.finish(bank)
    names = {path.name for path in Path(bank.path).parent.iterdir()}
    assert names == {f"{bank.fingerprint}.npy", f"{bank.fingerprint}.checksums", "folder.lock"}


def test_a_bank_in_the_cache_is_whole_when_it_is_planned(fillers, log):
    first = fillers()
    first.finish(plan(first, log))
    again = fillers()
    bank = plan(again, log)
    assert again.is_ready(bank, FIRST)
    assert again.counts() == (0, 0)


def test_samples_that_are_asked_for_come_first(fillers, log):
    filler = fillers(num_threads=1)
    bank = plan(filler, log, seconds=0.001)
    wanted = np.array([LARGE - 1, 2_000])
    assert not filler.is_ready(bank, wanted)
    begin(filler, bank)
    wait_until(lambda: filler.is_ready(bank, wanted))
    assert not bank.is_complete()
    np.testing.assert_array_equal(bank.open()[wanted], expected(LARGE)[wanted])
    assert set(decoded(log)) >= {LARGE - 1, 2_000}
    assert len(decoded(log)) < LARGE / 2


def test_what_is_not_decoded_cannot_be_read(fillers, log):
    filler = fillers()
    bank = plan(filler, log)
    fill_only(filler, bank, np.array([40]))
    array = bank.open()
    np.testing.assert_array_equal(array[32:64], expected(LARGE)[32:64])
    for indices in (slice(60, LARGE), np.array([LARGE - 1])):
        with pytest.raises(DataError, match="not decoded yet"):
            array[indices]
    filler.finish(bank)
    np.testing.assert_array_equal(array[:], expected(LARGE))  # also by one that was opened before


def test_what_stop_leaves_is_taken_up_again(fillers, log):
    first = fillers(num_threads=1)
    bank = plan(first, log, seconds=0.001)
    begin(first, bank)
    wait_until(lambda: first.counts()[0] > 10 * BLOCK)
    before = decoded(log).total()
    first.stop()
    done = first.counts()[0]
    assert decoded(log).total() - before <= 2 * BLOCK, "it stops after the block that it is at"
    second = fillers()
    assert plan(second, log) == bank
    second.finish(bank)
    np.testing.assert_array_equal(bank.open()[:], expected(LARGE))
    assert done < LARGE
    assert sum(decoded(log).values()) == LARGE + 1


def test_a_bank_whose_filler_was_killed_is_finished_with_what_was_missing(run_slowly, fillers, log):
    process = run_slowly()
    wait_until(lambda: sum(decoded(log).values()) > SMALL // 2 + BLOCK // 2)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = decoded(log)
    bank = plan(fillers(), log, size=SMALL)
    np.testing.assert_array_equal(bank.open()[:], expected(SMALL))
    twice = [index for index, count in decoded(log).items() if count == 2 and index]
    assert len(twice) <= BLOCK, "only the block that it was at is decoded again"
    assert sum(decoded(log).values()) <= SMALL + 1 + BLOCK
    assert len(before) < SMALL


def test_two_processes_at_once_decode_each_block_once(run_slowly, fillers, log):
    processes = [run_slowly() for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert {count for index, count in decoded(log).items() if index} == {1}
    assert len(decoded(log)) == SMALL
    np.testing.assert_array_equal(plan(fillers(), log, size=SMALL).open()[:], expected(SMALL))


def test_a_second_process_reads_what_the_first_has_filled_and_takes_over_when_it_dies(run_slowly, fillers, log):
    process = run_slowly(size=LARGE, seconds=0.002)
    wait_until(lambda: sum(decoded(log).values()) > 3 * BLOCK)
    filler = fillers()
    bank = plan(filler, log)
    begin(filler, bank)
    wait_until(lambda: filler.counts()[0] >= 3 * BLOCK)
    assert filler.is_ready(bank, FIRST)
    np.testing.assert_array_equal(bank.open()[FIRST], expected(LARGE)[FIRST])
    assert process.poll() is None
    assert not bank.is_complete()
    process.kill()
    process.wait()
    wait_until(bank.is_complete)
    np.testing.assert_array_equal(bank.open()[:], expected(LARGE))
    assert sum(decoded(log).values()) <= LARGE + 2 + BLOCK


def test_a_block_whose_bytes_are_not_those_that_were_written_is_decoded_again(fillers, log):
    first = fillers()
    bank = plan(first, log)
    fill_only(first, bank, np.array([40, 100]))
    first.stop()
    file = BankFile(Path(bank.path))
    with open(file.partial, "r+b") as stream:  # as after a power failure that kept the journal, not the pixels
        stream.seek(128 + 40 * 36)
        stream.write(bytes(30))
    file.journal.write_bytes(file.journal.read_bytes() + b"7 00ff\n9 12345678\n12")  # and a line that is not whole
    before = decoded(log)
    second = fillers()
    second.finish(plan(second, log))
    np.testing.assert_array_equal(bank.open()[:], expected(LARGE))
    again = decoded(log) - before
    assert {40, 300} <= set(again)
    assert not {100, 120} & set(again)


def test_a_line_that_a_killed_process_left_unfinished_spoils_no_other(fillers, log):
    first = fillers()
    bank = plan(first, log)
    fill_only(first, bank, np.array([40]))
    first.stop()
    journal = BankFile(Path(bank.path)).journal
    journal.write_bytes(b"1")  # of the block that had been decoded, and of block 12, for example
    second = fillers(num_threads=1)
    fill_only(second, plan(second, log), np.array([70]))
    assert list(BankFile(Path(bank.path)).filled_blocks()) == [2]


def test_another_process_is_not_believed_unless_the_bytes_are_there(fillers, log):
    filler = fillers()
    bank = plan(filler, log)
    filler.reserve([bank])
    BankFile(Path(bank.path)).journal.write_text("0 12345678\n")
    assert not filler.is_ready(bank, FIRST)


def test_nothing_is_counted_on_in_a_bank_that_was_deleted_and_begun_anew(fillers, log):
    filler = fillers()
    bank = plan(filler, log)
    fill_only(filler, bank, FIRST)
    BankFile(Path(bank.path)).remove_partial()
    other = fillers()
    other.reserve([plan(other, log)])
    filler.finish(bank)
    np.testing.assert_array_equal(bank.open()[:], expected(LARGE))


@pytest.fixture
def files(tmp_path):
    """A large split of files: all of them one image, but those that a test damages."""
    good, empty = tmp_path / "good.png", tmp_path / "empty.png"
    Image.fromarray(np.arange(36, dtype=np.uint8).reshape(3, 4, 3)).save(good)
    empty.write_bytes(b"")

    def make(*damaged):
        items = [empty if index in damaged else good for index in range(LARGE)]
        samples = Samples(
            dataset="made",
            split="test",
            items=items,
            targets=np.zeros(LARGE, np.int32),
            sample_ids=tuple(map(str, range(LARGE))),
            class_names=("a", "b"),
            fingerprint="0" * 64,
        )
        return Pipeline(samples=samples, canonical_size=None, setting_transform=None, model_transform=None)

    return make


def test_damage_in_a_large_bank_is_told_together_and_nothing_is_ready_after_it_is_known(fillers, files):
    filler = fillers()
    bank = filler.plan(files(1_000, 4_000))
    fill_only(filler, bank, FIRST)
    assert filler.is_ready(bank, FIRST)
    with ThreadPoolExecutor(1) as pool:
        filler._fills[bank.fingerprint].work(pool, filler._stop, most=50)  # comes to the first damaged file
    assert not filler.is_ready(bank, FIRST)
    begin(filler, bank)
    message = r"2 of the 4100 files .*Index 1000: .*empty\.png: the file is empty.*Index 4000"
    wait_until(lambda: filler._fills[bank.fingerprint].is_over())
    with pytest.raises(DataError, match=message):
        filler.is_ready(bank, FIRST)
    with pytest.raises(DataError, match=message):
        filler.finish(bank)
    assert not bank.is_complete()


def test_a_transform_that_fails_far_inside_is_told_where_samples_are_asked_for(fillers, log):
    def failing(image):
        if image.getpixel((0, 0))[0] == 12:
            raise KeyError("size")
        return image

    filler = fillers()
    pipeline = slow_pipeline(log, LARGE, 0)
    bank = filler.plan(
        Pipeline(samples=pipeline.samples, canonical_size=None, setting_transform=failing, model_transform=None)
    )
    begin(filler, bank)
    wait_until(lambda: filler._fills[bank.fingerprint].is_over())
    with pytest.raises(DataError, match=r"failed on test/3072 \(KeyError: 'size'\)"):
        filler.is_ready(bank, FIRST)


def test_no_thread_is_at_work_any_more_when_an_error_is_told(fillers, log):
    at_work = []

    def failing(image):
        index = 256 * image.getpixel((0, 0))[0] + image.getpixel((0, 0))[1]
        if index == 5:
            raise KeyError("size")
        at_work.append(index)
        time.sleep(0.002)
        at_work.remove(index)
        return image

    filler, samples = fillers(), slow_pipeline(log, LARGE, 0).samples
    bank = filler.plan(Pipeline(samples=samples, canonical_size=None, setting_transform=failing, model_transform=None))
    with ThreadPoolExecutor(2) as pool:
        filler._fills[bank.fingerprint].work(pool, filler._stop)
        assert at_work == []
    with pytest.raises(DefinitionError, match="test/5"):
        filler.finish(bank)


def test_a_disk_that_is_full_is_an_error_at_the_start_and_leaves_nothing(fillers, log, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    filler = fillers()
    monkeypatch.setattr(bankfile.os, "posix_fallocate", full)
    with pytest.raises(DataError, match=r"Cannot write the image bank .*No space left.*TESTBED_HOME"):
        filler.reserve([plan(filler, log)])
    assert [path.name for path in (tmp_path / "cache" / "bank").iterdir()] == ["folder.lock"]


def test_space_is_taken_when_a_bank_is_reserved_and_not_before(fillers, log):
    filler = fillers()
    bank = plan(filler, log)
    assert not BankFile(Path(bank.path)).partial.exists()
    filler.reserve([bank])
    status = BankFile(Path(bank.path)).partial.stat()
    assert status.st_size >= LARGE * 36
    assert status.st_blocks * 512 >= LARGE * 36


def test_banks_that_do_not_fit_together_are_refused_before_one_of_them_takes_space(fillers, log, tmp_path):
    filler = fillers(limit=2 * LARGE * 36)
    banks = [plan(filler, log), plan(filler, log, size=LARGE + 1)]
    with pytest.raises(DataError, match=r"need 295,236 bytes, and those .* take 0 bytes: together more"):
        filler.reserve(banks)
    assert [path.name for path in (tmp_path / "cache" / "bank").iterdir()] == ["folder.lock"]
    filler.reserve(banks[:1])
    with pytest.raises(DataError, match=r"need 147,636 bytes, and those .* take 147,\d+ bytes: together more"):
        filler.reserve(banks)


def test_a_disk_that_fails_while_a_bank_is_filled_is_an_error_and_no_crash(fillers, log, monkeypatch):
    def failing(*arguments):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    filler = fillers()
    bank = plan(filler, log)
    monkeypatch.setattr(bankfile.os, "pwrite", failing)
    begin(filler, bank)
    wait_until(lambda: filler._fills[bank.fingerprint].is_over())
    with pytest.raises(DataError, match=r"Cannot write the image bank .*Input/output error"):
        filler.is_ready(bank, FIRST)


def test_a_dry_run_writes_no_large_bank(fillers, log, tmp_path):
    filler = fillers(streams="large")
    recipe = Recipe("setting", "model", None, None)
    bank = filler.plan(slow_pipeline(log, LARGE, 0), recipe=recipe)
    assert filler.is_ready(bank, FIRST)
    assert [path.name for path in (tmp_path / "cache" / "bank").iterdir()] == ["folder.lock"]
    small = filler.plan(slow_pipeline(log, 40, 0), recipe=recipe)
    assert small.is_complete()


def test_banks_in_use_are_kept_from_going(fillers, log, monkeypatch):
    first = fillers()
    first.finish(plan(first, log, size=SMALL))
    filler = fillers()
    banks = [plan(filler, log, size=SMALL), plan(filler, log, size=LARGE)]
    filler.reserve(banks)
    partial = BankFile(Path(banks[1].path)).partial
    monkeypatch.setattr(filling, "KEEP_SECONDS", 0.01)
    monkeypatch.setattr(bankfill.BankFill, "work", lambda *a, **k: False)
    paths = (Path(banks[0].path), partial)
    for path in paths:
        os.utime(path, (0, 0))
    begin(filler, banks[1])
    wait_until(lambda: all(path.stat().st_mtime for path in paths))
