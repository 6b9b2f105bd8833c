"""Stored evaluations to numbers: metrics, comparisons with the clean parent or another model, records, one table."""

from testbed.results.own import (
    accuracies,
    accuracies_of,
    compared,
    correct,
    own_metrics,
    recompute,
    store_comparison,
    store_metrics,
)
from testbed.results.precision import Precision
from testbed.results.records import COMPARISONS, comparison_records, evaluation_record, results_object, table
from testbed.results.runs import Result, Run, accuracies_over_runs, by_fit, compare_runs, result_of

__all__ = [
    "COMPARISONS", "Precision", "Result", "Run", "accuracies", "accuracies_of", "accuracies_over_runs", "by_fit",
    "compare_runs", "compared", "comparison_records", "correct", "evaluation_record", "own_metrics", "recompute",
    "result_of", "results_object", "store_comparison", "store_metrics", "table",
]  # fmt: skip
