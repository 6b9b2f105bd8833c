"""The image banks of a plan: planned at once, small ones filled then, large ones in the background while models run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testbed.data.bankfile import BankFile, Form
from testbed.data.bankfill import LOOK_SECONDS, SMALL, BankFill, Progress
from testbed.data.banksamples import open_samples
from testbed.data.blocks import bank_form, decode_all
from testbed.data.eviction import folder_lock, make_room, touch
from testbed.data.imagebank import Bank, bank_fingerprint
from testbed.data.imagepipeline import Pipeline
from testbed.data.pipelines import Recipe
from testbed.data.streaming import StreamedBank
from testbed.paths import cache_folder

KEEP_SECONDS = 300.0  # between two notes that banks are in use; far less than what protects them from going
_ROUND = 16  # blocks per thread

Shown = Callable[[str], AbstractContextManager[Progress]]


class BankFiller:
    """Plans banks, fills them, and tells which samples are there.

    Args:
        cache_root: see `testbed.paths.cache_root`.
        num_threads: that decode. Threads, not processes: a user's transforms cannot be sent to another process, and
            Pillow lets other threads run for nine tenths of its time (tests/benchmarks/decoding.py).
        limit: bytes that all banks together may take on disk; None for nine tenths of what is free or banks already.
        streams: which banks are not kept on disk but decoded whenever needed: 'none', 'large' ones that are not there
            yet (for a plan that is not carried out), or 'all'.
        shown: makes, of a sentence, what shows the progress of a decoding that is waited for.

    Attributes:
        seconds: that were spent waiting for decoding.
    """

    def __init__(
        self,
        cache_root: Path,
        *,
        num_threads: int,
        limit: int | None = None,
        streams: Literal["none", "large", "all"] = "none",
        shown: Shown = lambda what: nullcontext(lambda done, total: None),
    ) -> None:
        self._cache_root, self._num_threads, self._limit = cache_root, num_threads, limit
        self._streams, self._shown = streams, shown
        self._banks: dict[str, Bank] = {}
        self._fills: dict[str, BankFill] = {}
        self._reserved: list[BankFill] = []
        self._kept: list[Path] = []  # banks that were whole when they were planned
        self._asked: dict[str, None] = {}  # banks whose samples were asked for and are not there, in that order
        self.seconds = 0.0
        self._stop = Event()
        self._threads: list[Thread] = []

    def plan(self, pipeline: Pipeline, *, transform_identity: str = "", recipe: Recipe | None = None) -> Bank:
        """The bank of a split under its transforms. One of few samples, or in the cache, is whole when this returns.

        Samples pass the canonical transform, then the setting's, then the model's. They are stored as uint8 where that
        ends in 8-bit pixels, which is exact, else as float32. Several processes may fill the same bank at once.

        Args:
            pipeline: the whole split, and its transforms.
            transform_identity: content (e.g. SHA-256 of the source file) behind transforms other than
                StandardTransform.
            recipe: how other processes find the pipeline, where the bank may be one without a file.
        Raises:
            DataError: damaged files, counted and the first few named; samples of different shapes; too little disk
                space. Of a large bank only the first sample is looked at, and its space is taken by `reserve`.
            DefinitionError: a transform that fails, or gives anything but [C, H, W] in [0, 1].
        """
        key = bank_fingerprint(pipeline, transform_identity)
        if key not in self._banks:
            self._banks[key] = self._planned(pipeline, key, recipe)
        if self._banks[key].recipe is None:  # it was loaded for this process alone before
            self._banks[key] = replace(self._banks[key], recipe=recipe)
        return self._banks[key]

    def load(self, pipeline: Pipeline) -> NDArray[Any]:
        """All samples at once, from their bank, which is filled where it is not; in memory where none is kept.

        Raises: as `plan` for a bank of few samples.
        """
        if self._streams == "all":
            return decode_all(pipeline, num_threads=self._num_threads)
        bank = self.plan(pipeline)
        self.finish(bank)
        return open_samples(BankFile(Path(bank.path)), Form(bank.shape, bank.dtype), lambda: pipeline)[:]

    def finish(self, bank: Bank) -> None:
        """Waits until a bank is whole, and fills it unless another process does. Raises: as `plan` for a small one."""
        fill = self._fills.get(bank.fingerprint)
        if fill is None:
            return
        begin = monotonic()
        with self._shown(f"Decoding {bank.shape[0]:,} samples.") as progress, self._pool() as pool:
            while not fill.is_over() and not self._stop.is_set():
                if not fill.work(pool, self._stop, progress=progress):
                    self._stop.wait(LOOK_SECONDS)
        self.seconds += monotonic() - begin
        if fill.failure is not None:
            raise fill.failure

    def reserve(self, banks: Iterable[Bank]) -> None:
        """Takes the disk space of banks that are not whole, so that `start` fills them; others make room.

        Raises: DataError: the disk is too small for all of them together, and then none has been begun; or it cannot be
            written.
        """
        fills = {bank.fingerprint: self._fills.get(bank.fingerprint) for bank in banks}.values()
        new = [fill for fill in fills if fill is not None and not fill.is_over() and fill not in self._reserved]
        if new:
            self._make_room(new)
        for fill in new:
            fill.allocate()
            self._reserved.append(fill)

    def start(self) -> None:
        """Begins to fill, in the background, the banks that are reserved, those first that are asked for."""
        for target in (self._fill_all, self._keep_all):
            self._threads.append(Thread(target=target, name=target.__name__, daemon=True))
            self._threads[-1].start()

    def is_ready(self, bank: Bank, sample_indices: NDArray[np.int64]) -> bool:
        """Whether samples can be read from a bank; of one that is known to be damaged, none can any more.

        Raises: DataError: damaged files, counted and the first few named, once all files have been tried; or whatever
            else keeps the bank from being filled.
        """
        fill = self._fills.get(bank.fingerprint)
        is_ready = fill is None or fill.contains(sample_indices)
        if not is_ready:
            self._asked[bank.fingerprint] = None
        return is_ready

    def counts(self) -> tuple[int, int]:
        """(done, total) samples of the banks that are reserved."""
        return sum(fill.num_done for fill in self._reserved), sum(fill.bank.shape[0] for fill in self._reserved)

    def stop(self) -> None:
        """Stops filling after the blocks that are in work; what is filled stays. Safe to call twice."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for fill in self._fills.values():
            fill.close()

    def _make_room(self, fills: Sequence[BankFill]) -> None:
        """Makes room for all of them at once: one that fits must not take the place of a plan that does not."""
        folder = cache_folder(self._cache_root, "bank")
        with folder_lock(folder):
            if num_bytes := sum(fill.claim() for fill in fills):
                make_room(folder, num_bytes, limit=self._limit)

    def _planned(self, pipeline: Pipeline, key: str, recipe: Recipe | None) -> Bank:
        if recipe is not None and self._streams == "all":
            return _bank(pipeline, key, bank_form(pipeline), recipe, kind=StreamedBank)
        file, num_samples = BankFile(cache_folder(self._cache_root, "bank") / f"{key}.npy"), len(pipeline.samples)
        if (form := self._whole_form(file, num_samples)) is not None:
            return _bank(pipeline, key, form, recipe, path=str(file.whole))
        form = file.partial_form(num_samples) or bank_form(pipeline)
        if recipe is not None and self._streams == "large" and num_samples > SMALL:
            return _bank(pipeline, key, form, recipe, kind=StreamedBank)
        bank = _bank(pipeline, key, form, recipe, path=str(file.whole))
        self._fills[key] = BankFill(bank, pipeline, limit=self._limit)
        if self._fills[key].is_small:
            self.finish(bank)
        return bank

    def _whole_form(self, file: BankFile, num_samples: int) -> Form | None:
        """Of a bank that is whole; it is in use from now on."""
        with folder_lock(file.whole.parent):
            form = file.whole_form(num_samples)
            if form is not None:
                touch(file.whole)
                self._kept.append(file.whole)
        return form

    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._num_threads, thread_name_prefix="decode")

    def _fill_all(self) -> None:
        """Fills bank after bank, a round of blocks at a time: what is asked for meanwhile comes first."""
        with self._pool() as pool:
            while (left := [fill for fill in self._reserved if not fill.is_over()]) and not self._stop.is_set():
                asked, self._asked = self._asked, {}
                places = {key: place for place, key in enumerate(list(asked))}
                left.sort(key=lambda fill: places.get(fill.bank.fingerprint, len(places)))
                if not any(fill.work(pool, self._stop, most=_ROUND * self._num_threads) for fill in left):
                    self._stop.wait(LOOK_SECONDS)

    def _keep_all(self) -> None:
        while not self._stop.wait(KEEP_SECONDS):
            for path in self._kept:
                touch(path)
            for fill in self._reserved:
                fill.keep()


def _bank(
    pipeline: Pipeline, key: str, form: Form, recipe: Recipe | None, *, kind: type[Bank] = Bank, path: str = ""
) -> Bank:
    return kind(
        path=path,
        shape=form.shape,
        dtype=form.dtype,
        fingerprint=key,
        recipe=recipe,
        samples_fingerprint=pipeline.samples.fingerprint,
    )
