"""What failed is told last, once for each reason, and of many evaluations the first few are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from testbed.commands.evaluate import _report_failures


def result(setting: str, reason: str = "", status: str = "failed") -> Any:
    one = SimpleNamespace(id=setting, model="net", setting=setting, reason=reason, status=status, metrics=list)
    return SimpleNamespace(runs=[SimpleNamespace(evaluation=one)])


def test_failures_of_one_reason_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    damaged = [result(f"s{number}", "a.jpg is damaged") for number in range(6)]
    assert _report_failures([result("fine", status="complete"), *damaged, result("t", status="partial")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "Failed: net on s0, net on s1, net on s2, net on s3 and 2 more: a.jpg is damaged", "Failed: net on t: partial",
    ]  # fmt: skip
    assert _report_failures([result("fine", status="complete")]) == 0
