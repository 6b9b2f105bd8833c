"""What is computed and kept: metrics of an evaluation, and separations of data sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select, update

from testbed.errors import DataError
from testbed.records import MetricValue
from testbed.store import digests
from testbed.store.columns import finite, jsonable
from testbed.store.database import insert_new
from testbed.store.schema import evaluations, metrics, separations
from testbed.store.views import StoredSeparation

# What is the same wherever a separation is computed.
SEPARATION_RESULT = ("min_distance", "pair_first", "pair_second", "num_points", "exact")


def forget_metrics(connection: Connection, evaluation_id: int) -> None:
    """Deletes the metrics of an evaluation, and the comparisons that were made with it."""
    is_touched = or_(metrics.c.evaluation_id == evaluation_id, metrics.c.reference_evaluation_id == evaluation_id)
    delete_metrics(connection, is_touched)


def delete_metrics(connection: Connection, where: ColumnElement[bool]) -> None:
    """Deletes metrics; the evaluations that they are of know how many they have left."""
    digests.reopen(connection, evaluations.c.id.in_(select(metrics.c.evaluation_id).where(where)))
    connection.execute(delete(metrics).where(where))


def put_metrics(
    connection: Connection, evaluation_id: int, values: Iterable[MetricValue], *, reference_evaluation_id: int | None
) -> None:
    """Replaces the metrics of an evaluation that have the same names or the same reference."""
    rows = [_metric_row(evaluation_id, value, reference_evaluation_id) for value in values]
    same_reference = metrics.c.reference_evaluation_id.is_not_distinct_from(reference_evaluation_id)
    is_replaced = or_(same_reference, metrics.c.name.in_([row["name"] for row in rows]))
    delete_metrics(connection, (metrics.c.evaluation_id == evaluation_id) & is_replaced)
    if rows:
        connection.execute(insert(metrics), rows)


def _metric_row(evaluation_id: int, metric: MetricValue, reference_evaluation_id: int | None) -> dict[str, Any]:
    value = finite(metric.value)
    is_lost = value is None and metric.value is not None
    return {
        "evaluation_id": evaluation_id,
        "name": metric.name,
        "value": value,
        "ci_low": finite(metric.ci_low),
        "ci_high": finite(metric.ci_high),
        "method": metric.method,
        "n": int(metric.n),
        "reason": metric.reason or (f"the value is {metric.value}" if is_lost else ""),
        "detail": jsonable(metric.detail),
        "reference_evaluation_id": reference_evaluation_id,
    }


def list_metrics(connection: Connection, evaluation_id: int) -> list[tuple[int | None, MetricValue]]:
    """The metrics of an evaluation by name, each with the id of the evaluation it was compared with.

    Raises: StoreError: one is not as it was written, or is gone.
    """
    digests.check_metrics(connection, evaluation_id)
    rows = connection.execute(select(metrics).where(metrics.c.evaluation_id == evaluation_id).order_by(metrics.c.name))
    return [(row.reference_evaluation_id, _metric(row._mapping)) for row in rows]


def _metric(row: Any) -> MetricValue:
    fields = ("name", "value", "n", "ci_low", "ci_high", "method", "reason", "detail")
    return MetricValue(**{field: row[field] for field in fields})


def put_separation(connection: Connection, key: Mapping[str, str], separation: StoredSeparation) -> None:
    """Stores a separation; one that is there already gains what its detail lacks, and nothing else changes.

    Raises: DataError: it is not a finite number, or is stored with another distance or pair.
    """
    if not math.isfinite(separation.min_distance):
        distance = separation.min_distance
        raise DataError(f"Data set '{key['dataset']}' has no separation ({distance}): it needs samples of two classes.")
    row = {
        **key,
        "min_distance": float(separation.min_distance),
        "pair_first": int(separation.pair[0]),
        "pair_second": int(separation.pair[1]),
        "pair_ids": list(separation.pair_ids),
        "num_points": int(separation.num_points),
        "exact": separation.exact,
        "detail": jsonable(separation.detail),
    }
    get_separation(connection, key)  # refuses one that is not as it was written
    insert_new(connection, separations, [row])
    stored = connection.execute(select(separations).filter_by(**key)).one()
    ours, theirs = ({name: part[name] for name in SEPARATION_RESULT} for part in (stored._mapping, row))
    if ours != theirs:
        raise DataError(
            f"The {key['norm']} separation of '{key['dataset']}' ({key['splits']}, {key['space']}) is stored as {ours} "
            f"but is now found to be {theirs}. The same data have one separation: find out which of the two programs "
            "that computed them is wrong before you trust either."
        )
    if row["detail"].keys() - stored.detail.keys():
        is_it = separations.c.id == stored.id
        connection.execute(update(separations).where(is_it).values(detail={**row["detail"], **stored.detail}))


def get_separation(connection: Connection, key: Mapping[str, str]) -> StoredSeparation | None:
    """The stored separation; None where it was not computed yet.

    Raises: StoreError: it is not as it was written.
    """
    row = connection.execute(select(separations).filter_by(**key)).one_or_none()
    if row is None:
        return None
    digests.check(connection, separations, separations.c.id == row.id)
    return StoredSeparation(
        norm=row.norm,
        min_distance=row.min_distance,
        pair=(row.pair_first, row.pair_second),
        num_points=row.num_points,
        pair_ids=tuple(row.pair_ids),
        exact=row.exact,
        detail=row.detail,
    )


def separation_key(dataset: str, splits: Sequence[str], data_fingerprint: str, norm: str, space: str) -> dict[str, str]:
    """The columns of separations that say of what it is the separation."""
    names = ("dataset", "splits", "data_fingerprint", "norm", "space")
    return dict(zip(names, (dataset, "+".join(splits), data_fingerprint, norm, space), strict=True))
