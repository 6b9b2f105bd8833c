"""All stored metrics as one long table, read in three queries however many evaluations there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Select, false, select, true

from testbed.store import digests, published
from testbed.store.database import Database
from testbed.store.schema import (
    datasets,
    eval_settings,
    evaluations,
    metrics,
    model_versions,
    models,
    setting_versions,
)
from testbed.store.versions import is_superseded

if TYPE_CHECKING:
    import pandas as pd

# Every column of the table and its type, in the order of every table and file. All types but float64 know a missing
# value as such; there, NaN says it.
COLUMNS: Mapping[str, str] = {
    "model": "string",
    "label_space": "string",
    "eval_setting": "string",
    "dataset": "string",
    "split": "string",
    "fit_seed": "Int64",
    "noise_seed": "Int64",
    "num_draws": "Int64",
    "status": "string",
    "is_stale": "boolean",
    "shift_family": "string",
    "shift_name": "string",
    "severity": "Int64",
    "norm": "string",
    "epsilon": "float64",
    "clean_eval_setting": "string",
    "metric": "string",
    "value": "float64",
    "ci_low": "float64",
    "ci_high": "float64",
    "n": "Int64",
    "method": "string",
    "reason": "string",
    "model_fingerprint": "string",
    "setting_fingerprint": "string",
    "numerics_fingerprint": "string",
    "clean_setting_fingerprint": "string",
    "clean_numerics_fingerprint": "string",
    "source": "string",
    "protocol": "string",
    "input_size": "Int64",
    "flag": "string",
    "source_sha256": "string",
}
# What tells evaluations apart in any store; their ids would not sort two stores of one content alike.
_IDENTITY = (
    "model", "label_space", "eval_setting", "model_fingerprint", "setting_fingerprint", "fit_seed", "noise_seed",
    "numerics_fingerprint",
)  # fmt: skip


def long_table(database: Database, sources: Collection[str] = ()) -> pd.DataFrame:
    """A row per model, setting, run and metric, and a row per published number of the named sources.

    Returns: the columns of `COLUMNS`, sorted by what is in them, so that equal contents give equal tables. Hidden
    models, settings and evaluations are left out. What does not exist is missing, never 0 or an empty text.
    Raises: UnknownNameError: nothing was imported under the name of a source.
    """
    import pandas as pd

    with database.reading() as connection:
        own = _typed(own_metrics(connection))
        theirs = _typed(published_numbers(connection, sources))
    return pd.concat([own, theirs], ignore_index=True)


def own_metrics(
    connection: Connection, settings: Collection[str] | None = None, *, where: ColumnElement[bool] | None = None
) -> pd.DataFrame:
    """A row per model, setting, run and metric, with what columns there are, and the `evaluation_id`.

    Args:
        settings: only these; all if None.
        where: which rows of the table of metrics; all if None.
    """
    evaluated, measured = _evaluations(), _metrics()
    if where is not None:
        measured = measured.where(where)
    if settings is not None:
        evaluated = evaluated.where(eval_settings.c.name.in_(settings))
        measured = measured.where(metrics.c.evaluation_id.in_(evaluated.with_only_columns(evaluations.c.id)))
    ids = evaluated.with_only_columns(evaluations.c.id)
    digests.check_evaluations(connection, ids)
    digests.check(connection, metrics, metrics.c.evaluation_id.in_(ids) & (true() if where is None else where))
    found = _frame(connection, evaluated).sort_values(list(_IDENTITY), kind="stable")
    values = _frame(connection, measured).sort_values("metric", kind="stable")
    return found.merge(values, on="evaluation_id")


def published_numbers(
    connection: Connection, sources: Collection[str], settings: Collection[str] | None = None
) -> pd.DataFrame:
    """A row per published number of the sources, with what columns there are.

    Raises: UnknownNameError: nothing was imported under the name of a source.
    """
    rows = _frame(connection, published.numbers_of(connection, sources, settings))
    rows = rows.sort_values(list(published.KEY), kind="stable")
    rows["input_size"] = rows["input_size"].where(rows["input_size"] != published.UNKNOWN_SIZE)
    reason = rows["value"].isna().map({True: "the source gives no value", False: ""})
    return rows.assign(status="published", reason=reason)


def _frame(connection: Connection, wanted: Select[Any]) -> pd.DataFrame:
    import pandas as pd

    rows = list(map(tuple, connection.execute(wanted)))
    return pd.DataFrame.from_records(rows, columns=list(wanted.selected_columns.keys()))


def _typed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with all columns, in their order and of their types; an empty text says that there is none."""
    import pandas as pd

    frame = rows.reindex(columns=list(COLUMNS)).astype(dict(COLUMNS))
    texts = [name for name, kind in COLUMNS.items() if kind == "string"]
    frame[texts] = frame[texts].replace("", pd.NA)
    return frame


def _evaluations() -> Select[Any]:
    version = setting_versions.c
    is_stale = is_superseded(model_versions) | is_superseded(setting_versions)
    return (
        select(
            evaluations.c.id.label("evaluation_id"),
            models.c.name.label("model"),
            models.c.label_space,
            eval_settings.c.name.label("eval_setting"),
            datasets.c.name.label("dataset"),
            datasets.c.split,
            *evaluations.c["fit_seed", "noise_seed", "num_draws", "status", "numerics_fingerprint"],
            is_stale.label("is_stale"),
            version.shift_family,
            version.shift_name,
            version.shift_severity.label("severity"),
            version.shift_norm.label("norm"),
            version.shift_epsilon.label("epsilon"),
            version.clean_eval_setting,
            model_versions.c.fingerprint.label("model_fingerprint"),
            version.fingerprint.label("setting_fingerprint"),
        )
        .select_from(evaluations)
        .join(model_versions)
        .join(models)
        .join(setting_versions, evaluations.c.setting_version_id == version.id)
        .join(eval_settings)
        .join(datasets, version.dataset_id == datasets.c.id)
        .where(*(table.c.hidden == false() for table in (models, eval_settings, evaluations)))
    )


def _metrics() -> Select[Any]:
    clean, clean_version = evaluations.alias(), setting_versions.alias()
    return (
        select(
            metrics.c.evaluation_id,
            metrics.c.name.label("metric"),
            *metrics.c["value", "ci_low", "ci_high", "n", "method", "reason"],
            clean_version.c.fingerprint.label("clean_setting_fingerprint"),
            clean.c.numerics_fingerprint.label("clean_numerics_fingerprint"),
        )
        .select_from(metrics)
        .outerjoin(clean, metrics.c.reference_evaluation_id == clean.c.id)
        .outerjoin(clean_version, clean.c.setting_version_id == clean_version.c.id)
    )
