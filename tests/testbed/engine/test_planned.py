"""What is stored stands for what is asked for only if it was computed in the same way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from testbed.engine.planned import _has_complete_parent

OURS = {"dtype": "float32", "device": "cpu", "batch_size": 32}


@pytest.mark.parametrize(("stored", "stands_for"), [
    (OURS, True), ({**OURS, "channels_last": True}, False), ({**OURS, "dtype": "bfloat16"}, False),
    ({**OURS, "batch_size": 64}, False),
])  # fmt: skip
def test_a_parent_in_other_numerics_stands_for_nobody(stored: dict[str, Any], stands_for: bool) -> None:
    store: Any = SimpleNamespace(list_evaluations=lambda **criteria: [SimpleNamespace(numerics=stored)])
    ready: Any = SimpleNamespace(
        setting=SimpleNamespace(name="child", parent_eval_setting="parent"),
        pairing=SimpleNamespace(model=SimpleNamespace(name="net", label_space="x")),
        key=SimpleNamespace(fit_seed=0, numerics=OURS),
    )
    assert _has_complete_parent(store, ready) == stands_for
