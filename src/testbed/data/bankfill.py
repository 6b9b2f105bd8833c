"""One bank that is being filled: block by block by this process, or by another whose blocks are read as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from time import monotonic

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from testbed.cache_files import tell_once
from testbed.data.bankfile import BLOCK, BankFile, BlockFile, Checksums, Form
from testbed.data.blocks import damage_report, decode_block
from testbed.data.eviction import folder_lock, make_room, touch
from testbed.data.imagebank import Bank
from testbed.data.imagepipeline import DamagedFile, Pipeline
from testbed.errors import DataError, TestbedError
from testbed.paths import HOME_VARIABLE

SMALL = 4_096  # banks of so many samples are whole before any model is run
LOOK_SECONDS = 0.2  # between two looks at what another process has filled


Progress = Callable[[int, int], None]  # is told how many of how many samples are there


def _ignore(done: int, total: int) -> None:
    """A progress that nobody follows."""


class BankFill:
    """Fills a bank and knows which of its samples are there. Its methods may be called from any thread.

    Args:
        bank: what is filled.
        pipeline: where its samples come from.
        limit: bytes that all banks may take; see `make_room`.
    """

    def __init__(self, bank: Bank, pipeline: Pipeline, *, limit: int | None) -> None:
        self.bank, self._pipeline, self._limit = bank, pipeline, limit
        self._file, self._form = BankFile(Path(bank.path)), Form(bank.shape, bank.dtype)
        self._turn = Lock()  # one thread at a time fills, or looks at what is filled
        self._filled: dict[int, Checksums] = {}  # by number of the block
        self._damaged: dict[int, list[DamagedFile]] = {}  # by number of the block
        self._wanted: set[int] = set()  # blocks that were asked for and are not there
        self.failure: TestbedError | None = None  # why the bank cannot become whole, once all has been tried
        self._is_whole = False
        self._blocks: BlockFile | None = None
        self._last_look = 0.0

    def is_over(self) -> bool:
        """Whether there is nothing left to do: the bank is whole, or cannot become so."""
        return self._is_whole or self.failure is not None

    @property
    def is_small(self) -> bool:
        """Whether it is filled before any model is run, and found damaged then."""
        return len(self._pipeline.samples) <= SMALL

    @property
    def num_done(self) -> int:
        """Samples that are there."""
        total = self._form.shape[0]
        return total if self._is_whole else min(total, len(self._filled) * BLOCK)

    def contains(self, indices: NDArray[np.int64]) -> bool:
        """Whether these samples are there; none is, once a file is known to be damaged. Those asked for come next.

        Raises: DataError: the bank cannot become whole.
        """
        if self.failure is not None:
            raise DataError(str(self.failure)) from self.failure
        if self._is_whole:
            return True
        if self._damaged:
            return False
        numbers = set(np.unique(indices // BLOCK).tolist())
        if numbers <= self._filled.keys():
            return True
        self._wanted.update(numbers)
        if monotonic() - self._last_look > LOOK_SECONDS and self._turn.acquire(blocking=False):
            try:
                self._look(numbers)
            finally:
                self._turn.release()
        return self._is_whole or numbers <= self._filled.keys()

    def claim(self) -> int:
        """Bytes that the bank has yet to take on the disk; from now on what it has there is in use.

        The caller holds the folder's lock.
        """
        self._remove_damaged()
        is_there = self._sees_whole() or self._file.partial_form(self._form.shape[0]) is not None
        self.keep()
        return 0 if is_there else self._form.num_bytes

    def allocate(self) -> None:
        """Takes the disk space of the bank, and makes room for it where need be.

        Raises: DataError: the disk is too small, or cannot be written.
        """
        with folder_lock(self._file.whole.parent):
            if self._sees_whole():
                touch(self._file.whole)
                return
            self._remove_damaged()
            if self._file.partial_form(self._form.shape[0]) is not None:
                touch(self._file.partial)
                return
            self._file.partial.unlink(missing_ok=True)
            make_room(self._file.whole.parent, self._form.num_bytes, limit=self._limit)
            try:
                self._file.allocate(self._form)
            except OSError as error:
                self._file.remove_partial()
                raise self._disk_error(error) from error

    def _remove_damaged(self) -> None:
        """Takes a whole bank that is not known to be this one off the disk. Raises: DataError: it cannot be removed."""
        if not self._file.whole.exists():
            return
        tell_once(f"The image bank {self._file.whole} is damaged or has no checksums, and is decoded again.")
        try:
            self._file.remove_whole()
        except OSError as error:
            raise self._disk_error(error) from error

    def work(
        self, pool: ThreadPoolExecutor, stop: Event, *, progress: Progress = _ignore, most: int | None = None
    ) -> bool:
        """Fills blocks that are missing, and keeps errors; False where another process is filling, or nothing is left.

        Args:
            pool: threads that decode.
            stop: blocks that are not begun are left out once this is set.
            progress: is told what is there after every block.
            most: blocks to fill, those first that were asked for; None for all.
        """
        with self._turn:
            if self.is_over():
                return False
            try:
                with FileLock(self._file.lock, timeout=0):
                    self._fill_or_fail(pool, stop, progress, most)
            except Timeout:
                self._look(range(self._form.num_blocks))
                progress(self.num_done, self._form.shape[0])
                return False
            except OSError as error:
                self.failure = self._disk_error(error)
            finally:
                if self.is_over():
                    self._close()
            return True

    def keep(self) -> None:
        """Notes that the bank is in use, so that no other process takes it for an old one."""
        touch(self._file.whole if self._is_whole else self._file.partial)

    def close(self) -> None:
        """Once no thread works any more."""
        with self._turn:
            self._close()

    def _fill_or_fail(self, pool: ThreadPoolExecutor, stop: Event, progress: Progress, most: int | None) -> None:
        try:
            self._fill(pool, stop, progress, most)
        except TestbedError as error:
            self.failure = error
        except OSError as error:
            self.failure = self._disk_error(error)
        except Exception as error:  # in a background thread: it is told where the samples are asked for
            self.failure = DataError(f"Decoding for {self._file.whole} failed: {type(error).__name__}: {error}")
        if self.failure is not None and self.is_small:
            self._file.remove_partial()  # nobody has been told of a sample in it

    def _fill(self, pool: ThreadPoolExecutor, stop: Event, progress: Progress, most: int | None) -> None:
        """Decodes blocks that are missing. This process holds the bank's lock."""
        self.allocate()
        if self._is_whole:
            self._file.lock.unlink(missing_ok=True)  # that of whoever filled it is gone: this one was made by waiting
            return
        blocks, known = self._current_blocks(), self._file.filled_blocks()
        blocks.begin()

        def fill_block(number: int) -> None:
            if stop.is_set():
                return
            checksums = known.get(number)
            if checksums is None or not blocks.has_checksums(number, checksums):
                decoded = decode_block(self._pipeline, self._form.block(number), self._form)
                if isinstance(decoded, list):
                    self._damaged[number] = decoded
                    return
                checksums = blocks.write(number, decoded)
            self._filled[number] = checksums

        self._follow([pool.submit(fill_block, number) for number in self._missing()[:most]], progress)
        self._conclude(blocks)

    def _missing(self) -> list[int]:
        """The blocks that have not been tried, those first that were asked for."""
        left = [n for n in range(self._form.num_blocks) if n not in self._filled and n not in self._damaged]
        wanted, self._wanted = self._wanted, set()
        return sorted(left, key=lambda number: number not in wanted)

    def _conclude(self, blocks: BlockFile) -> None:
        """Makes the bank whole, or finds it damaged, once all blocks have been tried."""
        if len(self._filled) + len(self._damaged) < self._form.num_blocks:
            return
        if self._damaged:
            damaged = [file for files in self._damaged.values() for file in files]
            raise DataError(damage_report(self._pipeline.samples, damaged))
        blocks.sync()
        with folder_lock(self._file.whole.parent):
            self._file.complete(self._form, np.concatenate([self._filled[n] for n in range(self._form.num_blocks)]))
        self._is_whole = True

    def _follow(self, futures: list[Future[None]], progress: Progress) -> None:
        """Waits for all blocks, in order. After an error those not begun are left out."""
        try:
            for future in futures:
                future.result()
                progress(self.num_done, self._form.shape[0])
        finally:
            for future in futures:
                future.cancel()
            wait(futures)

    def _look(self, numbers: Iterable[int]) -> None:
        """Notes which blocks have been filled by another process, and whether the bank is whole."""
        self._last_look = monotonic()
        if self._sees_whole():
            return
        known = self._file.filled_blocks()
        if wanted := [number for number in numbers if number in known and number not in self._filled]:
            with suppress(FileNotFoundError):  # it has just become whole
                blocks = self._current_blocks()
                self._filled.update({n: known[n] for n in wanted if blocks.has_checksums(n, known[n])})

    def _sees_whole(self) -> bool:
        self._is_whole = self._file.whole_form(self._form.shape[0]) is not None
        return self._is_whole

    def _current_blocks(self) -> BlockFile:
        """The file as it is now; what was known of one that was deleted and begun anew is forgotten."""
        if self._blocks is not None and not self._blocks.is_of(self._file):
            self._close()
            self._filled.clear()
        if self._blocks is None:
            self._blocks = BlockFile(self._file, self._form)
        return self._blocks

    def _close(self) -> None:
        if self._blocks is not None:
            self._blocks.close()
            self._blocks = None

    def _disk_error(self, error: OSError) -> DataError:
        return DataError(
            f"Cannot write the image bank {self._file.whole} ({error.strerror}). Free some space, or set "
            f"{HOME_VARIABLE} to a folder on another disk."
        )
