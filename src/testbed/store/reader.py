"""What can be looked up in a store: by anybody, at any time, also while an evaluation runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from testbed.model_types import PublishedType
from testbed.records import EvaluationKey, Norm
from testbed.store import findings, progress, published_models, queries, versions
from testbed.store.database import Database
from testbed.store.evaluation import Evaluation
from testbed.store.table import long_table
from testbed.store.views import EvaluationState, ModelFacts, Status, StoredModel, StoredSeparation, StoredSetting

if TYPE_CHECKING:
    import pandas as pd


class Reader:
    """Look-ups in an open database; they write nothing, and what they hand out are frozen copies."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def url(self) -> str:
        """Where the store is, without a password."""
        return self._database.url

    @property
    def database(self) -> Database:
        """The open database itself, for what concerns it as a whole."""
        return self._database

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a transaction that sees one state of the database; nothing is to be written on it."""
        with self._database.reading() as connection:
            yield connection

    def list_models(self) -> list[StoredModel]:
        """The models, in their current versions, by name and label space."""
        with self.reading() as connection:
            return queries.list_models(connection)

    def list_settings(self) -> list[StoredSetting]:
        """The settings, in their current versions, by name."""
        with self.reading() as connection:
            return queries.list_settings(connection)

    def list_evaluations(
        self,
        *,
        model: str | None = None,
        setting: str | None = None,
        label_space: str | None = None,
        fit_seed: int | None = None,
        noise_seed: int | None = None,
        numerics: Mapping[str, Any] | None = None,
        status: Status | None = None,
        is_stale: bool | None = None,
        with_removed: bool = False,
    ) -> list[Evaluation]:
        """The evaluations that fit all that is given, by model, setting and seeds; `numerics` may name a part.

        Those that were removed, or whose model or setting was, are left out unless `with_removed` is given.
        """
        return queries.list_evaluations(
            self._database, model=model, setting=setting, label_space=label_space, fit_seed=fit_seed,
            noise_seed=noise_seed, numerics=numerics, status=status, is_stale=is_stale, with_removed=with_removed,
        )  # fmt: skip

    def evaluation(
        self,
        model: str,
        setting: str,
        seed: int | None = None,
        *,
        label_space: str | None = None,
        fit_seed: int | None = None,
        noise_seed: int | None = None,
        numerics: Mapping[str, Any] | None = None,
    ) -> Evaluation:
        """The evaluation of the current definitions; what is not given need not be, where there is only one.

        Args:
            seed: of the run: `fit_seed`, `noise_seed` or both are it. 0 where nothing is drawn at random.
        Raises:
            UnknownNameError: there is none.
            TestbedError: there are several; the message lists them.
        """
        return queries.one_evaluation(
            self._database, model=model, setting=setting, seed=seed, label_space=label_space, fit_seed=fit_seed,
            noise_seed=noise_seed, numerics=numerics,
        )  # fmt: skip

    def results(self, *, published: Collection[str] = ()) -> pd.DataFrame:
        """All stored metrics as one long table: a row per model, setting, run and metric, with n and interval.

        Args:
            published: sources whose imported numbers are wanted below our own; they have neither n nor interval.
        Raises: UnknownNameError: nothing was imported under the name of a source.
        """
        return long_table(self._database, published)

    def published_types(self) -> list[PublishedType]:
        """What sources tell of their models, by source and model."""
        with self.reading() as connection:
            return published_models.list_types(connection)

    def evaluation_by_id(self, evaluation_id: int) -> Evaluation:
        """The evaluation with this id. Raises: UnknownNameError: there is none."""
        return queries.evaluation_by_id(self._database, evaluation_id)

    def evaluations_by_id(self, evaluation_ids: Iterable[int]) -> dict[int, Evaluation]:
        """Many at once, by their ids. Raises: UnknownNameError: there is none with one of the ids."""
        return queries.evaluations_by_id(self._database, list(evaluation_ids))

    def model_facts(self, fingerprint: str) -> ModelFacts | None:
        """What was found when the model was loaded; None where it is not in the store."""
        with self.reading() as connection:
            return versions.model_facts(connection, fingerprint)

    def find_evaluation(self, key: EvaluationKey) -> EvaluationState | None:
        """The state of the evaluation with this key; None where there is none. Writes nothing."""
        return self.find_evaluations([key])[0]

    def find_evaluations(self, keys: Iterable[EvaluationKey]) -> list[EvaluationState | None]:
        """Many at once, as `find_evaluation` finds each, in their order."""
        with self.reading() as connection:
            return progress.find_evaluations(connection, keys)

    def get_separation(
        self, *, dataset: str, splits: Sequence[str], data_fingerprint: str, norm: Norm, space: str
    ) -> StoredSeparation | None:
        """The separation that was stored under the same arguments; None where it was not computed yet."""
        key = findings.separation_key(dataset, splits, data_fingerprint, norm, space)
        with self.reading() as connection:
            return findings.get_separation(connection, key)
