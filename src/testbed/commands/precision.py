"""What actions of `db.py` that compare share: the intervals that the options ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.commands.action import Options
from testbed.errors import DataError

if TYPE_CHECKING:
    from testbed.results import Precision


def precision_of(options: Options) -> Precision:
    """The intervals that `--confidence`, `--one-sided`, `--cluster-by` and `--sample-table` ask for.

    Raises: DataError: one of the last two without the other, or a table that does not name the clusters.
    """
    from testbed.results import Precision

    cluster_by, table = options["cluster_by"], options["sample_table"]
    if (cluster_by is None) != (table is None):
        given, lacking = (
            ("--cluster-by", "--sample-table FILE") if table is None else ("--sample-table", "--cluster-by COLUMN")
        )
        raise DataError(f"{given} needs {lacking}: the table says which samples belong together, by a column of it.")
    wanted = {"confidence": options["confidence"], "is_one_sided": options["one_sided"]}
    return Precision(**wanted) if table is None else Precision.of_table(table, cluster_by, **wanted)


def precision_words(precision: Precision) -> str:
    """How sure the intervals are and what they take as units, for the line under a table."""
    kind = "one-sided bounds" if precision.is_one_sided else "intervals"
    units = f"clusters by {precision.cluster_by}" if precision.cluster_by else "samples"
    return f"{100 * precision.confidence:g} % {kind} over {units}, draws of the noise nested in them"
