"""One stored evaluation: what was evaluated, how far it came, and its arrays, read shard by shard and verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, select

from testbed.class_subset import columns_in_subset
from testbed.codec import checksum, decode
from testbed.errors import DataError, StoreError
from testbed.fingerprint import fingerprint
from testbed.logit_policy import NO_LOGITS, keeps_all
from testbed.records import MetricValue, Shift
from testbed.store import digests, findings, payloads
from testbed.store.columns import int32_bytes
from testbed.store.evaluated_samples import EvaluatedSamples
from testbed.store.schema import logit_payloads, logit_shards, model_versions, runs
from testbed.store.versions import digest
from testbed.store.views import Status
from testbed.top_logits import TopLogits


@dataclass(frozen=True, kw_only=True)
class Evaluation(EvaluatedSamples):
    """A model on a setting, with one pair of seeds and one kind of numerics, as it was when it was looked up.

    Nothing larger than these fields is read before it is asked for.

    Args:
        id: within its store.
        model: its name.
        label_space: of the model.
        model_fingerprint, setting_fingerprint: of the definitions that were evaluated.
        is_current: whether both definitions are those that were put last.
        is_stale: whether either definition was superseded by one that has results.
        noise_seed: of the run.
        numerics: dtype, precision flags, device class, batch size, threads.
        shift: how the setting departs from its clean parent.
        status: 'pending', 'running', 'complete', 'partial' or 'failed', and `reason` says why.
        num_draws: draws of the perturbation.
        run_id: the run that took it up last.
        setting, dataset, split, class_sublist, n, fit_seed: see `EvaluatedSamples`.
    """

    id: int
    model: str
    label_space: str
    model_fingerprint: str
    setting_fingerprint: str
    is_current: bool
    is_stale: bool
    noise_seed: int
    numerics: Mapping[str, Any]
    shift: Shift | None
    status: Status
    reason: str
    num_draws: int
    run_id: int | None
    created_at: datetime
    completed_at: datetime | None

    def metrics(self) -> list[MetricValue]:
        """The metrics of this evaluation by itself, by name."""
        return [metric for reference, metric in self._metrics() if reference is None]

    def comparisons(self) -> dict[int, list[MetricValue]]:
        """The metrics that compare this evaluation with another, by the id of that one."""
        found: dict[int, list[MetricValue]] = {}
        for reference, metric in self._metrics():
            if reference is not None:
                found.setdefault(reference, []).append(metric)
        return found

    def logits(self, draw: int = 0) -> NDArray[np.float32]:
        """Logits [n, num_outputs] float32 of one draw, as the model gave them: all columns, before softmax.

        Raises:
            DataError: not all of them were kept; the message says what was.
            StoreError: the draw is not stored as a whole, or a shard is not what was written.
        """
        logits: NDArray[np.float32] | None = None
        for start, shard in self.logit_shards(draw):
            if logits is None:
                logits = np.empty((self.n, shard.shape[1]), np.float32)
            logits[start : start + len(shard)] = shard
        if logits is None:
            raise StoreError(f"{self._name} has no samples.")
        return logits

    def logit_shards(self, draw: int = 0) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """The logits of one draw piece by piece: position of the first sample, logits [count, num_outputs] float32.

        Raises: DataError, StoreError: as `logits`, when the piece is reached.
        """
        for row in self._payloads(draw):
            if row.payload is None or not keeps_all(row.codec):
                kept = payloads.what_is_kept(NO_LOGITS if row.payload is None else row.codec)
                raise DataError(f"{self._name} {kept}")
            logits = decode(row.payload, codec=row.codec, num_outputs=row.num_outputs)
            if len(logits) != row.stop - row.start:
                raise StoreError(f"{self._name}: there are logits of {len(logits)} samples in {_where(draw, row)}.")
            yield row.start, logits

    def top_logits(self, draw: int = 0, *, k: int | None = None) -> TopLogits:
        """The largest logits of each sample over the setting's classes, with the target's and the normalizer.

        Args:
            k: how many; None for as many as were kept of every sample.
        Raises: DataError: fewer were kept, or none. StoreError: as `logits`.
        """
        return payloads.read_top(self._payloads(draw), self.targets(), k=k, in_setting=self.in_setting, name=self._name)

    def in_setting(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Logits [n, classes] of the setting's classes, from some that `logits` or `logit_shards` handed out."""
        return columns_in_subset(
            logits, self.class_sublist, is_cut=self.is_cut_by_model, sums_votes=bool(self.numerics.get("sums_votes"))
        )

    @cached_property
    def logit_codecs(self) -> tuple[str, ...]:
        """How the stored logits are encoded, see `testbed.codec` and `testbed.logit_policy`: one name, or several."""
        is_ours = logit_shards.c.evaluation_id == self.id
        wanted = select(logit_shards.c.codec).where(is_ours).distinct().order_by(logit_shards.c.codec)
        with self._database.reading() as connection:
            return tuple(connection.scalars(wanted))

    @property
    def keeps_all_logits(self) -> bool:
        """Whether `logits` can be asked for."""
        return all(keeps_all(codec) for codec in self.logit_codecs)

    def _payloads(self, draw: int) -> Iterator[Any]:
        """The rows of one draw with their payloads, in order and verified."""
        if not 0 <= draw < self.num_draws:
            raise DataError(f"{self._name} has {self.num_draws} draw(s), counted from 0; there is no draw {draw}.")
        wanted = (
            select(*logit_shards.c["start", "stop", "codec", "num_outputs", "sha256"], logit_payloads.c.payload)
            .outerjoin_from(logit_shards, logit_payloads)
            .where(logit_shards.c.evaluation_id == self.id, logit_shards.c.draw == draw)
            .order_by(logit_shards.c.start)
        )
        position = 0
        self._check_shards()
        with self._rows(wanted, at_once=1) as rows:
            for row in rows:
                self._check_position(draw, position, row.start)
                if row.payload is not None and checksum(row.payload) != row.sha256:
                    where = _where(draw, row)
                    raise StoreError(f"{self._name}: the logits of {where} are not those that were written (checksum).")
                yield row
                position = row.stop
        self._check_position(draw, position, self.n)

    def predictions(self) -> NDArray[np.int32]:
        """Predicted classes [num_draws, n] int32 over the setting's classes; -1 where a logit is not finite.

        Raises: StoreError: a draw is not stored as a whole, or a shard is not what was written.
        """
        return self._labels[0]

    def target_ranks(self) -> NDArray[np.int32]:
        """Ranks of the targets [num_draws, n] int32: classes with a larger logit, or an equal one and a lower index.

        Raises: StoreError: as `predictions`.
        """
        return self._labels[1]

    @property
    def is_cut_by_model(self) -> bool:
        """Whether the logits are of the setting's classes alone, because the model itself picked them."""
        return bool(self.numerics.get("is_cut_by_model"))

    @property
    def fingerprint(self) -> str:
        """What makes this evaluation this one, in any store: the definitions, seeds and numerics, as SHA-256 (hex)."""
        parts = (self.model_fingerprint, self.setting_fingerprint, self.fit_seed, self.noise_seed, dict(self.numerics))
        return fingerprint(list(parts))

    @property
    def model_spec(self) -> dict[str, Any]:
        """The definition of the model, as it was when it was evaluated."""
        is_its = model_versions.c.fingerprint == self.model_fingerprint
        with self._database.reading() as connection:
            return dict(connection.execute(select(model_versions.c.spec).where(is_its)).scalar_one())

    @property
    def provenance(self) -> dict[str, Any]:
        """The run that took the evaluation up last: host, versions, devices, code revision and so on."""
        with self._database.reading() as connection:
            row = connection.execute(select(runs).where(runs.c.id == self.run_id)).one_or_none()
            digests.check(connection, runs, runs.c.id == self.run_id)
        return {} if row is None else dict(row._mapping)

    @property
    def _name(self) -> str:
        return f"Evaluation {self.id} ('{self.model}' on '{self.setting}')"

    def _metrics(self) -> list[tuple[int | None, MetricValue]]:
        with self._database.reading() as connection:
            return findings.list_metrics(connection, self.id)

    @contextmanager
    def _rows(self, wanted: Select[Any], *, at_once: int) -> Iterator[Iterable[Any]]:
        """Rows that are fetched from the database a few at a time, however many there are."""
        with self._database.reading() as connection:
            with connection.execute(wanted.execution_options(yield_per=at_once)) as rows:
                yield rows

    def _check_shards(self) -> None:
        with self._database.reading() as connection:
            digests.check(connection, logit_shards, logit_shards.c.evaluation_id == self.id)

    def _check_position(self, draw: int, position: int, start: int) -> None:
        if position != start:
            raise StoreError(
                f"{self._name} is {self.status}: samples {position} to {start} of draw {draw} are not stored. "
                "Run its evaluation again to complete it."
            )

    @cached_property
    def _labels(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        columns = logit_shards.c["draw", "start", "stop", "predictions", "target_ranks", "labels_sha256"]
        is_ours = (logit_shards.c.evaluation_id == self.id) & (logit_shards.c.draw < self.num_draws)
        wanted = select(*columns).where(is_ours).order_by(logit_shards.c.draw, logit_shards.c.start)
        labels = np.empty((2, self.num_draws, self.n), np.int32)
        ends = [0] * self.num_draws
        self._check_shards()
        with self._rows(wanted, at_once=64) as rows:
            for row in rows:
                if digest(int32_bytes(row.predictions), int32_bytes(row.target_ranks)) != row.labels_sha256:
                    where = _where(row.draw, row)
                    raise StoreError(f"{self._name}: predictions or ranks of {where} are not those that were written.")
                self._check_position(row.draw, ends[row.draw], row.start)
                labels[:, row.draw, row.start : row.stop] = row.predictions, row.target_ranks
                ends[row.draw] = row.stop
        for draw, end in enumerate(ends):
            self._check_position(draw, end, self.n)
        labels.flags.writeable = False
        return labels[0], labels[1]


def _where(draw: int, row: Any) -> str:
    return f"draw {draw}, samples {row.start} to {row.stop}"
