"""What is stored stands for what is asked for only if it was computed in the same way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from testbed.engine.planned import _has_complete_parent

OURS = {"dtype": "float32", "device": "cpu", "batch_size": 32}


def evaluation(**changes: Any) -> Any:
    usual = {"model_fingerprint": "m", "setting_fingerprint": "s", "noise_seed": 0, "fit_seed": 0, "numerics": OURS}
    return SimpleNamespace(**usual | changes)


@pytest.mark.parametrize(("stored", "stands_for"), [
    ({}, True), ({"numerics": {**OURS, "channels_last": True}}, False),
    ({"numerics": {**OURS, "dtype": "bfloat16"}}, False), ({"numerics": {**OURS, "batch_size": 64}}, False),
    ({"model_fingerprint": "before its weights changed"}, False), ({"noise_seed": 1}, False),
    ({"setting_fingerprint": "before its definition changed"}, False),
])  # fmt: skip
def test_a_parent_of_another_model_setting_noise_or_numerics_stands_for_nobody(
    stored: dict[str, Any], stands_for: bool
) -> None:
    store: Any = SimpleNamespace(list_evaluations=lambda **criteria: [evaluation(**stored)])
    ready: Any = SimpleNamespace(
        setting=SimpleNamespace(name="child", parent_eval_setting="parent"),
        pairing=SimpleNamespace(model=SimpleNamespace(name="net", label_space="x")),
        key=evaluation(),
    )
    assert _has_complete_parent(store, ready, lambda name: "s" if name == "parent" else "") == stands_for
