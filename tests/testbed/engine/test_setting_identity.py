"""What makes a setting another one, and so its stored results stale."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from testbed.engine.identity import cut_facts, setting_version
from testbed.fingerprint import setting_fingerprint
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
    ids=["severity", "table", "output", "options", "version", "files"],
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


def test_groups_of_columns_are_another_setting_and_plain_columns_what_they_were() -> None:
    plain = fingerprint(class_sublist=[3, 1, 2])
    assert fingerprint(class_sublist=(3, (1,), np.int64(2))) == plain, "a group of one column is that column"
    assert len({plain, *(fingerprint(class_sublist=groups) for groups in ([3, (1, 2)], [(3, 1), 2]))}) == 3
    content = {"name": "mine", "spec": {}, "dataset": "d", "subset": None, "class_sublist": [3, 1, 2]}
    mark = setting_fingerprint("mine", {}, dataset="d", sample_indices=None, class_sublist=(3, 1, 2))
    assert mark == hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@pytest.mark.parametrize(
    ("sublist", "fields", "facts"),
    [
        (None, {"answers": "votes"}, {}),
        ([0, 1], {"answers": "votes"}, {}),
        ([(0, 1)], {}, {}),
        ([(0, 1)], {"answers": "votes"}, {"sums_votes": True}),
        ([0, 1], {"classify": lambda images, model, class_sublist: images}, {"is_cut_by_model": True}),
        (None, {"classify": lambda images, model, class_sublist: images}, {}),
    ],
)
def test_numerics_tell_how_the_logits_of_classes_are_read(sublist: Any, fields: Any, facts: dict[str, bool]) -> None:
    setting = EvalSetting(name="mine", dataset=StandardDataset(name="photos"), class_sublist=sublist)
    model = Model(name="net", transform=None, classifier_loader=lambda: None, eval_batch_size=1, **fields)
    assert cut_facts(setting, model) == facts
