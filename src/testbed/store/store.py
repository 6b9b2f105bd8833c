"""The store: everything that is kept of an evaluation, by one writer at a time, read by any number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, func, insert, update

from testbed.errors import StoreError
from testbed.records import (
    DatasetVersion,
    EvaluationKey,
    MetricValue,
    ModelVersion,
    Norm,
    PublishedResult,
    Separation,
    SettingVersion,
    Shard,
    WantedEvaluation,
)
from testbed.store import digests, findings, progress, published, versions
from testbed.store.columns import jsonable
from testbed.store.database import Database
from testbed.store.lock import DriverLock, take_lock
from testbed.store.reader import Reader
from testbed.store.revision import prepare_schema
from testbed.store.schema import runs
from testbed.store.views import (
    EvaluationState,
    ModelFacts,
    StoredSeparation,
)


class Store(Reader):
    """A database of evaluations, used as a context manager.

    Each `put_`, `set_`, `start_` ... method is one transaction: when it returns, what it wrote outlives a killed
    program; when it raises, nothing of it was written. Putting what is there already changes nothing. What is handed
    out are frozen copies. Every failure of the database is a StoreError.

    A Store must not be carried over a fork or sent to another process: send `url` and open it there, to read.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._lock: DriverLock | None = None

    @classmethod
    def open(cls, url: str | Path, *, read_only: bool = False, create: bool = True) -> Self:
        """The store at `url`.

        Args:
            url: the path of an SQLite file, `sqlite:///FILE`, or `postgresql+psycopg://...`.
            read_only: refuse every write.
            create: make file, folders and tables where there are none.
        Raises: StoreError: there is no such database, it is another program's or another version's, or not writable.
        """
        database = Database(url, read_only=read_only, create=create)
        try:
            prepare_schema(database, create=create)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Gives back the lock and closes all connections. Raises: StoreError: the file was removed or replaced."""
        with suppress(StoreError):  # a lock that cannot be given back expires
            if self._lock is not None:
                self._lock.release()
        self._lock = None
        try:
            self._database.check_file()
        finally:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(*() if kind is None else (StoreError,)):  # what went wrong first is told
            self.close()

    # One driver at a time

    def lock(self, owner: str, *, expires_after: float = 120.0, on_wait: Callable[[str], None] | None = None) -> None:
        """Takes the right to write, until `close`; every write renews it. A store that has it keeps it.

        Args:
            owner: who takes it, in words for another who is refused.
            expires_after: seconds of silence after which another may take it; at once, if this program was killed.
            on_wait: told once who holds it, while it is waited for; None does not wait.
        Raises: BusyError: another driver holds it.
        """
        if self._lock is None:
            self._lock = take_lock(self._database, owner=owner, expires_after=expires_after, on_wait=on_wait)

    def heartbeat(self) -> None:
        """Renews the lock where nothing has been written for a while; may be called as often as one likes.

        Raises: StoreError: another driver has taken it.
        """
        if self._lock is not None and self._lock.is_due:
            with self.writing():
                pass

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction that is kept as a whole or not at all, and renews the lock.

        Raises: StoreError: the database refuses, or another driver has taken the lock; nothing is kept then.
        """
        with self._database.writing() as connection:
            if self._lock is not None:
                self._lock.beat(connection)
            yield connection
            digests.seal(connection)

    # Runs

    def start_run(self, provenance: Mapping[str, Any]) -> int:
        """Id of a new run.

        Args:
            provenance: host, pid, user, argv, code_revision, versions, devices; anything else goes under detail.
        """
        columns = ("host", "pid", "user", "argv", "code_revision", "versions", "devices")
        known = {name: jsonable(provenance[name]) for name in columns if name in provenance}
        detail = {name: value for name, value in provenance.items() if name not in columns}
        with self.writing() as connection:
            new = insert(runs).values(**known, detail=jsonable(detail)).returning(runs.c.id)
            return int(connection.execute(new).scalar_one())

    def finish_run(self, run_id: int, exit_status: int) -> None:
        """Records the end of a run."""
        changes = {"finished_at": func.now(), "exit_status": exit_status}
        with self.writing() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(changes))

    # Definitions

    def put_model(self, model: ModelVersion) -> int:
        """Id of the model version, which becomes the current one of its name and label space.

        Raises: DefinitionError: the fingerprint is that of another model.
        """
        with self.writing() as connection:
            return versions.put_model(connection, model)

    def put_dataset(self, dataset: DatasetVersion) -> int:
        """Id of the data set's version.

        Raises: DataError: the fingerprint is stored with other targets.
        """
        with self.writing() as connection:
            return versions.put_dataset(connection, dataset)

    def put_setting(self, setting: SettingVersion) -> int:
        """Id of the setting version, which becomes the current one of its name; its data set must be there.

        Raises: DefinitionError: the fingerprint is that of another setting.
        """
        with self.writing() as connection:
            return versions.put_setting(connection, setting)

    def set_model_facts(self, fingerprint: str, *, weights_sha256: str | None, num_outputs: int | None) -> None:
        """Records what was found when a model was loaded; None says nothing.

        Raises: DataError: the weights or the number of outputs changed while the definition did not.
        """
        with self.writing() as connection:
            facts = ModelFacts(weights_sha256=weights_sha256, num_outputs=num_outputs)
            versions.set_model_facts(connection, fingerprint, facts)

    # Evaluations

    def put_evaluation(
        self,
        key: EvaluationKey,
        *,
        num_draws: int,
        num_samples: int,
        shard_size: int,
        run_id: int | None,
        store_logits: str | None = None,
    ) -> EvaluationState:
        """The evaluation with this key, created or found, and taken up by the run unless it is complete.

        Asking for more draws than there are extends it: it is complete again when those are stored, and keeps its
        earlier metrics until then. Asking for fewer drops only what was planned and not done. Once a shard is stored
        the shard size stays what it was, so go by the state that is returned: `state.missing()` is left to do.

        Args:
            num_draws: draws of the perturbation that are wanted.
            num_samples: samples of the setting.
            shard_size: samples per shard.
            run_id: from `start_run`.
            store_logits: a complete evaluation that keeps less than this policy is taken up as well.
        Raises: DataError: the setting had another number of samples before.
        """
        wanted = WantedEvaluation(key=key, num_draws=num_draws, num_samples=num_samples, shard_size=shard_size)
        return self.put_evaluations([wanted], run_id=run_id, store_logits=store_logits)[0]

    def put_evaluations(
        self, wanted: Sequence[WantedEvaluation], *, run_id: int | None, store_logits: str | None = None
    ) -> list[EvaluationState]:
        """Many at once, as `put_evaluation` does each, in their order."""
        with self.writing() as connection:
            return progress.put_evaluations(connection, wanted, run_id=run_id, store_logits=store_logits)

    def put_shards(self, shards: Iterable[tuple[int, Shard]]) -> None:
        """Stores finished pieces, each with the id of its evaluation.

        A piece that is there already stays as it is, unless it keeps less of the logits than the new one, which then
        takes its place.

        Raises: StoreError: a piece is not on its evaluation's grid.
        """
        with self.writing() as connection:
            progress.put_shards(connection, list(shards))

    def complete_evaluation(self, evaluation_id: int, metrics: Iterable[MetricValue]) -> None:
        """Marks an evaluation complete, with its own metrics; called again, it replaces those.

        Metrics and comparisons that were made before the last shards came are dropped.
        Raises: StoreError: planned shards are not stored; the message names the first.
        """
        with self.writing() as connection:
            if progress.complete(connection, evaluation_id):
                findings.forget_metrics(connection, evaluation_id)
            findings.put_metrics(connection, evaluation_id, metrics, reference_evaluation_id=None)

    def put_metrics(
        self, evaluation_id: int, metrics: Iterable[MetricValue], *, reference_evaluation_id: int | None = None
    ) -> None:
        """Replaces the metrics of an evaluation that were made with the same reference or have the same names.

        Args:
            metrics: NaN and infinite numbers are stored as missing.
            reference_evaluation_id: the clean evaluation a comparison was made with; None for its own metrics.
        """
        with self.writing() as connection:
            findings.put_metrics(connection, evaluation_id, metrics, reference_evaluation_id=reference_evaluation_id)

    def fail_evaluation(self, evaluation_id: int, reason: str) -> None:
        """Marks an evaluation failed; its stored shards stay. Raises: StoreError: it is complete."""
        with self.writing() as connection:
            progress.set_aside(connection, evaluation_id, status="failed", reason=reason)

    def reject_evaluation(self, evaluation_id: int, reason: str) -> None:
        """Marks an evaluation failed, complete or not, and deletes its shards and metrics: nothing of it is right.

        Comparisons with it go too.
        """
        with self.writing() as connection:
            progress.reject(connection, evaluation_id, reason=reason)

    def mark_partial(self, evaluation_id: int, reason: str) -> None:
        """Marks an evaluation partial: not all of it can be had. Raises: StoreError: it is complete."""
        with self.writing() as connection:
            progress.set_aside(connection, evaluation_id, status="partial", reason=reason)

    # What others published

    def put_published(self, results: Sequence[PublishedResult], *, override: bool = False) -> int:
        """Stores numbers of one source; returns how many are new or changed. What is there stays as it is.

        Args:
            results: none twice.
            override: let a number that differs replace the stored one.
        Raises: StoreError: a number is stored with another value, and `override` is not given.
        """
        with self.writing() as connection:
            return published.put_published(connection, results, override=override)

    # Separations

    def put_separation(
        self,
        separation: Separation,
        *,
        dataset: str,
        splits: Sequence[str],
        data_fingerprint: str,
        norm: Norm,
        space: str,
        pair_ids: tuple[str, str],
        exact: bool = True,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Stores a separation; one that is there already gains what its detail lacks.

        Args:
            dataset, norm: of what, and in which norm.
            splits: parts of the data set that were searched together, in this order.
            data_fingerprint: of the data of all of them.
            space: what the distances are measured in, e.g. '8 px'.
            pair_ids: sample ids of the pair that attains it.
            exact: whether the search was exhaustive.
            detail: what else was found, such as the witness.
        Raises: DataError: the separation is not a finite number, or is stored with another distance or pair.
        """
        key = findings.separation_key(dataset, splits, data_fingerprint, norm, space)
        found = StoredSeparation(**asdict(separation), pair_ids=pair_ids, exact=exact, detail=detail or {})
        with self.writing() as connection:
            findings.put_separation(connection, key, found)
