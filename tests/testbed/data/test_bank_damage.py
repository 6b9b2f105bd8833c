"""A bank on a disk that has changed since: what is read is what was decoded, whatever was damaged."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.slow_filling import images, slow_pipeline

from testbed import cache_files
from testbed.data.bankfile import BLOCK, BankFile, BlockFile, Form
from testbed.data.banksamples import open_samples
from testbed.data.filling import BankFiller
from testbed.errors import DataError

SIZE = 70  # two blocks, and a part of one
SAMPLE = 36  # bytes
EXPECTED = np.moveaxis(images(SIZE), 3, 1)


class Bench:
    """A bank of SIZE samples in a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.log = folder / "cache", folder / "decoded.txt"
        self.pipeline = slow_pipeline(self.log, SIZE, 0)
        self.bank = self.planned()
        self.file = BankFile(Path(self.bank.path))
        self.log.unlink()

    def planned(self):
        return BankFiller(self.cache, num_threads=1).plan(self.pipeline, transform_identity="slow")

    def samples(self):
        return open_samples(self.file, Form(self.bank.shape, self.bank.dtype), lambda: self.pipeline)

    def decoded(self):
        """How often each sample has been decoded since the bank was filled."""
        return Counter(map(int, self.log.read_text().split())) if self.log.exists() else Counter()

    def start(self):
        return self.file.whole.stat().st_size - SIZE * SAMPLE

    def change(self, change, path=None):
        path = path or self.file.whole
        content = bytearray(path.read_bytes())
        path.write_bytes(change(content) or content)


@pytest.fixture
def bench(tmp_path):
    cache_files.tell_once.cache_clear()
    return Bench(tmp_path)


def flip(place, bit=0):
    def change(content):
        content[place] ^= 1 << bit

    return change


def zero(start, stop):
    def change(content):
        content[start:stop] = bytes(stop - start)

    return change


def test_an_undamaged_bank_is_read_and_nothing_is_decoded(bench, capfd):
    samples = bench.samples()
    np.testing.assert_array_equal(samples[:], EXPECTED)
    np.testing.assert_array_equal(samples[np.array([69, 0, 0])], EXPECTED[[69, 0, 0]])
    np.testing.assert_array_equal(samples[5], EXPECTED[5])
    np.testing.assert_array_equal(samples[60:0:-7], EXPECTED[60:0:-7])
    assert not bench.decoded()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("indices", [slice(None), np.arange(30, 50), np.array([41, 3, 41]), 41, slice(1, 60, 8)])
def test_a_damaged_sample_is_decoded_again_and_told_of_once(bench, capfd, indices):
    bench.change(flip(bench.start() + 41 * SAMPLE + 7))
    samples = bench.samples()
    np.testing.assert_array_equal(samples[indices], EXPECTED[indices])
    assert set(bench.decoded()) == {41}
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 1
    assert "damaged" in told[0]
    assert str(bench.file.whole) in told[0]
    before = bench.decoded()
    np.testing.assert_array_equal(samples[indices], EXPECTED[indices])
    np.testing.assert_array_equal(np.load(bench.file.whole), EXPECTED)  # it was mended on disk
    assert bench.decoded() == before


def test_a_zeroed_disk_block_is_decoded_again_where_it_is_asked_for(bench):
    bench.change(zero(bench.start() + 10 * SAMPLE, bench.start() + 20 * SAMPLE))
    np.testing.assert_array_equal(bench.samples()[np.arange(15, 30)], EXPECTED[15:30])
    assert set(bench.decoded()) == {15, 16, 17, 18, 19}


def test_samples_that_changed_places_go_back(bench):
    def swap(content):
        first, second = (bench.start() + number * BLOCK * SAMPLE for number in (0, 1))
        length = BLOCK * SAMPLE
        content[first : first + length], content[second : second + length] = (
            content[second : second + length],
            content[first : first + length],
        )

    bench.change(swap)
    np.testing.assert_array_equal(bench.samples()[:], EXPECTED)


def test_what_cannot_be_mended_on_disk_is_right_all_the_same(bench, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("testbed.data.banksamples.overwrite", refuse)
    bench.change(flip(bench.start() + 41 * SAMPLE))
    samples = bench.samples()
    for _ in range(2):
        np.testing.assert_array_equal(samples[:], EXPECTED)
    assert bench.decoded() == Counter({41: 2})


def test_a_sample_that_decodes_to_another_image_by_now_is_an_error(bench):
    bench.change(flip(bench.start() + 41 * SAMPLE))
    samples = bench.samples()
    bench.pipeline.samples.items[41, 1, 1] ^= 1
    with pytest.raises(DataError, match=r"Sample 41 \(test/41\) .* is damaged, and decodes to another image"):
        samples[40:42]


def test_a_damaged_sample_of_a_bank_that_is_being_filled_is_decoded_again(bench):
    bench.file.remove_whole()
    form = Form(bench.bank.shape, bench.bank.dtype)
    bench.file.allocate(form)
    blocks = BlockFile(bench.file, form)
    blocks.write(1, EXPECTED[32:64])
    blocks.close()
    bench.change(flip(128 + 41 * SAMPLE), bench.file.partial)
    samples = bench.samples()
    np.testing.assert_array_equal(samples[32:64], EXPECTED[32:64])
    assert set(bench.decoded()) == {41}
    with pytest.raises(DataError, match="not decoded yet"):
        samples[np.array([64])]


def _another_bank(bench):
    """Puts a whole bank of equal size in the place of the bank, with its checksums."""
    other = BankFiller(bench.cache, num_threads=1).plan(slow_pipeline(bench.log, SIZE, 0), transform_identity="other")
    shutil.copy(other.path, bench.file.whole)
    shutil.copy(BankFile(Path(other.path)).checksums, bench.file.checksums)
    bench.change(flip(bench.start() + 41 * SAMPLE))
    bench.log.unlink()


WHOLE_DAMAGE = {
    "the shape in the header": lambda bench: bench.change(flip(bytes(bench.file.whole.read_bytes()).index(b"70,"))),
    "the version of the header": lambda bench: bench.change(flip(6)),
    "the length of the header": lambda bench: bench.change(flip(8, bit=4)),
    "a blank in the header": lambda bench: bench.change(flip(100)),
    "too short": lambda bench: bench.change(lambda content: content[:-1]),
    "too long": lambda bench: bench.change(lambda content: content + b"0"),
    "empty": lambda bench: bench.change(lambda content: b"\n"),
    "no checksums, as before there were any": lambda bench: bench.file.checksums.unlink(),
    "empty checksums": lambda bench: bench.file.checksums.write_bytes(b""),
    "checksums of another bank": _another_bank,
    "a digit of the checksums": lambda bench: bench.change(flip(-20), bench.file.checksums),
    "checksums in other words": lambda bench: bench.file.checksums.write_text('{"sha256": 1, "content": []}'),
}


@pytest.mark.parametrize("damage", WHOLE_DAMAGE.values(), ids=WHOLE_DAMAGE)
def test_a_bank_that_is_not_known_to_be_whole_is_never_read_but_filled_again_under_its_own_key(bench, capfd, damage):
    damage(bench)
    with pytest.raises(DataError, match=r"is damaged\. Run again"):
        bench.samples()
    again = bench.planned()
    assert again == bench.bank
    np.testing.assert_array_equal(bench.samples()[:], EXPECTED)
    assert set(bench.decoded()) == set(range(SIZE))
    told = capfd.readouterr().err
    assert f"The image bank {bench.file.whole} is damaged or has no checksums, and is decoded again." in told


def test_a_bank_without_checksums_where_nothing_can_be_written_is_an_error_with_a_remedy(bench, monkeypatch):
    def refuse(file):
        raise OSError(30, "Read-only file system")

    bench.file.checksums.unlink()
    monkeypatch.setattr(BankFile, "remove_whole", refuse)
    with pytest.raises(DataError, match=r"Cannot write .* \(Read-only file system\).*TESTBED_HOME"):
        bench.planned()


@pytest.mark.parametrize(
    "change",
    [flip(0), flip(8, bit=3), lambda content: content.replace(b"|u1", b"|i1"), lambda content: content[:-1]],
    ids=["magic", "length of the header", "dtype", "too short"],
)
def test_a_bank_that_is_being_filled_and_begins_otherwise_is_begun_anew(bench, change):
    bench.file.remove_whole()
    bench.file.allocate(Form(bench.bank.shape, bench.bank.dtype))
    bench.file.journal.write_text(f"0 {'00' * 4 * BLOCK}\n")
    bench.change(change, bench.file.partial)
    assert bench.file.partial_form(SIZE) is None
    assert bench.planned() == bench.bank
    np.testing.assert_array_equal(bench.samples()[:], EXPECTED)


@pytest.mark.attack
def test_no_damage_of_a_hundred_changes_what_is_read(bench):
    chance = np.random.default_rng(0)
    paths = (bench.file.whole, bench.file.checksums)
    kept = {path: path.read_bytes() for path in paths}
    decoded_again = 0
    for _ in range(100):
        path = paths[int(chance.random() < 0.2)]
        start = int(chance.integers(len(kept[path])))
        stop = min(len(kept[path]), start + int(chance.choice([1, 1, 16, 4096])))
        content = bytearray(kept[path])
        content[start:stop] = chance.bytes(stop - start) if chance.random() < 0.5 else bytes(stop - start)
        is_damaged = content != kept[path]
        path.write_bytes(content)
        before = bench.decoded().total()
        assert bench.planned() == bench.bank
        np.testing.assert_array_equal(bench.samples()[:], EXPECTED)
        assert (bench.decoded().total() > before) == is_damaged, f"bytes {start} to {stop} of {path.name}"
        decoded_again += is_damaged
        for each, original in kept.items():
            assert each.read_bytes() == original, "mended"
    assert decoded_again > 90
