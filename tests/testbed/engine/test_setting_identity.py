"""What makes a setting another one, and so its stored results stale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.engine.identity import setting_version
from testbed.perturbations.corruptions.builtin import CORRUPTIONS
from testbed.perturbations.corruptions.corrupt import Corrupt

ZOOM = next(row for row in CORRUPTIONS if row.name == "zoom_blur")
USUAL = Corrupt(corruption=ZOOM, severity=3)


def fingerprint(corrupt: Corrupt = USUAL, **changes: Any) -> str:
    fields: dict[str, Any] = {"name": "mine", "dataset": StandardDataset(name="photos"), "version": "1"}
    setting = EvalSetting(**{**fields, "perturbation_fn_gpu": corrupt, **changes})
    return setting_version(
        setting, dataset_fingerprint="d", sample_indices=None, separation=None, canonical_size=32, source=None
    ).fingerprint


@pytest.mark.parametrize(
    "changes",
    [{"severity": 4}, {"table": "mnist28"}, {"output": "uint8"}, {"options": {"ends": "exclusive"}},
     {"corruption": replace(ZOOM, version="2")}, {"corruption": replace(ZOOM, files=lambda: "other files")}],
    ids=str,
)  # fmt: skip
def test_another_corruption_is_another_setting(changes: Mapping[str, Any]) -> None:
    assert fingerprint(replace(USUAL, **changes)) != fingerprint()


def test_a_changed_table_is_another_setting() -> None:
    rows = {**ZOOM.parameters, "cifar32": ZOOM.parameters["imagenet224"]}
    assert fingerprint(replace(USUAL, corruption=replace(ZOOM, parameters=rows))) != fingerprint()


def test_the_same_corruption_made_anew_is_the_same_setting() -> None:
    assert fingerprint(Corrupt(corruption=replace(ZOOM), severity=3)) == fingerprint()


def test_images_that_keep_their_size_are_another_setting() -> None:
    assert fingerprint(keeps_size=True) != fingerprint()
