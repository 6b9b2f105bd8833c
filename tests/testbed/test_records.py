"""Records are checked when they are built."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.errors import DefinitionError
from testbed.records import NORMS, Shift


def shift(**fields: Any) -> Shift:
    return Shift(family="f", name="s", clean_eval_setting="clean", **fields)


def test_a_shift_may_count_values_but_a_separation_does_not() -> None:
    assert shift(norm="l0", epsilon=0.1).norm == "l0"
    assert "l0" not in NORMS
    with pytest.raises(
        DefinitionError, match=r"Shift 's' in l0 has no epsilon, and no separation gives it one\. Set it"
    ):
        shift(norm="l0")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"severity": 6}, r"Shift 's' has severity 6\. Severities go from 1 to 5"),
        ({"norm": "l3"}, r"Shift 's' has norm 'l3'\. Use one of linf, l2, l1, l0"),
        ({"epsilon": -0.1}, r"Shift 's' has epsilon -0\.1\. It must be 0 or a positive number"),
        ({"epsilon": float("nan")}, "Shift 's' has epsilon nan"),
    ],
)
def test_an_impossible_shift_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        shift(**fields)
