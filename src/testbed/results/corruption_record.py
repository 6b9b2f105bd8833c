"""The report on common corruptions as JSON-able records, with every number of every cell."""

from __future__ import annotations

from typing import Any

from testbed.metrics.corruption import COMMON, RELATIVE, Cell, accuracies
from testbed.metrics.wellposed import Finding
from testbed.results.corruption_report import MEAN, Column, CorruptionReport
from testbed.results.records import number


def report_record(report: CorruptionReport) -> dict[str, Any]:
    """The report as a JSON-able record, numbers in percent."""
    errors = report.baseline.errors
    return {
        "dataset": report.dataset,
        "family": report.family,
        "left_out": dict(report.left_out) or None,
        "undefined": dict(report.undefined) or None,
        "averaged_over": list(report.averaged),
        "missing_of_the_15": [name for name in COMMON if name not in report.rows],
        "baseline": None if errors is None else {"name": errors.name, "source": errors.source},
        "not_compared": report.not_compared or None,
        "models": [_model(report, index) for index in range(len(report.columns))],
    }


def _model(report: CorruptionReport, index: int) -> dict[str, Any]:
    column = report.columns[index]
    stored = column.stored
    num_nonfinite, num_answers = stored.nonfinite
    marks = {name: row[index] or None for name, row in report.marks.items()}
    cells = [(name, severity) for name, severities in report.rows.items() for severity in severities]
    return {
        "model": stored.evaluation.model,
        "numerics": dict(stored.evaluation.numerics),
        "n": stored.grid.n,
        "seeds": stored.seeds,
        "num_fitted_models": len(stored.grid.clean),
        "num_answers": num_answers,
        "num_nonfinite": num_nonfinite,
        "warning": stored.warning or None,
        "mark": marks.get(MEAN),
        "mean": {name: number(value) for name, value in column.mean.items()},
        "errors": {name: number(value) for name, value in column.errors.items()},
        "corruptions": [_corruption(report, column, name, marks.get(name)) for name in report.rows],
        "cells": [_cell(column, cell) for cell in cells if cell in stored.grid.cells],
        "findings": None if column.findings is None else [_finding(found) for found in column.findings],
    }


def _corruption(report: CorruptionReport, column: Column, name: str, mark: str | None) -> dict[str, Any]:
    values = {RELATIVE: column.relative[name]} | {value.name: value for value in column.ces.get(name, ())}
    return {
        "corruption": name,
        "severities": list(report.rows[name]),
        "mark": mark,
        **{kind: number(value) for kind, value in values.items()},
    }


def _cell(column: Column, cell: Cell) -> dict[str, Any]:
    grid = column.stored.grid
    found = accuracies(grid.outcomes([cell]))
    if cell in column.recoveries:
        found["recovery"] = column.recoveries[cell]
    return {
        "corruption": cell[0],
        "severity": cell[1],
        "eval_setting": column.stored.groups[cell][0].evaluation.setting,
        "num_draws": grid.num_draws[cell],
        "metrics": {name: number(value) for name, value in found.items()},
    }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "corruption": found.corruption,
        "severities": list(found.severities),
        "sentence": found.sentence,
        "values": [number(value) for value in found.values],
    }
