"""Frames with several right classes, on classes of several columns: from a data set to its metrics in the store."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.in_process import metrics_of
from tests.miniatures import class_pixels, oracle_model

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from registry import registry
from testbed.metrics.frames import anchored_id, flip_rate, frame_id, pm_k
from testbed.metrics.intervals import clustered_proportion
from testbed.records import Samples

DOG, CAT, CAR = range(3)
COLUMNS = [(110, 220), 330, (440, 550)]  # of the thousand that the oracle answers

# id: what is seen, and which classes are right.
FRAMES = {
    anchored_id("a", 0): (110, (DOG,)),
    anchored_id("a", -1): (220, (DOG,)),
    anchored_id("b", 0): (330, (CAT, DOG)),
    anchored_id("b", 1): (550, (CAT, CAR)),
    anchored_id("c", 0): (330, (CAT,)),
    anchored_id("c", 1): (440, (CAT,)),
}
VIDEO = {frame_id("x", frame): (seen, (DOG,)) for frame, seen in enumerate((110, 220, 330, 110))}


def load(rows: dict[str, Any], split: str) -> Samples:
    return Samples(
        dataset="clips",
        split=split,
        items=np.stack([class_pixels(seen) for seen, _ in rows.values()]),
        targets=np.array([labels[0] for _, labels in rows.values()], np.int32),
        label_sets=tuple(labels for _, labels in rows.values()),
        sample_ids=tuple(rows),
        class_names=("dog", "cat", "car"),
        fingerprint=repr(rows).encode().hex()[:64],
    )


def setting(name: str, rows: dict[str, Any], patch: pytest.MonkeyPatch, **fields: Any) -> str:
    """A setting of its own data set, both registered while the test lasts."""
    dataset = Dataset(name=f"{name}-data", loader=partial(load, rows), derives=False)
    found = EvalSetting(name=name, dataset=StandardDataset(name=dataset.name), class_sublist=COLUMNS, **fields)
    for table, value in ((registry._datasets, dataset), (registry._settings, found)):
        patch.setitem(table.values, value.name, value)
        patch.setitem(table.sources, value.name, None)
    return name


def test_frames_with_label_sets_on_groups_of_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    around = setting("around", FRAMES, monkeypatch, metrics_fn=pm_k)
    video = setting("video", VIDEO, monkeypatch, metrics_fn=flip_rate)
    found = metrics_of(oracle_model(), [around, video, f"{around}@limit3"], tmp_path, monkeypatch)
    anchored, flipping, limited = found
    assert anchored["top1"].value == pytest.approx(100 * 5 / 6)
    assert (anchored["pm0"].value, anchored["pm0"].n) == (100.0, 3)
    assert (anchored["pm1"].value, anchored["pm1"].n) == (pytest.approx(100 * 2 / 3), 3)
    assert anchored["pm1"].detail["source"] == "metrics_fn"
    of_sequences = clustered_proportion([1, 1, 1, 1, 1, 0], clusters=[0, 0, 1, 1, 2, 2])
    assert anchored["top1"].ci_low == 100 * of_sequences.low
    assert anchored["balanced_accuracy"].ci_low is None, "frames are no independent samples"
    assert flipping["flip_rate"].value == pytest.approx(100 * 2 / 3)
    assert (limited["top1"].n, limited["pm0"].n) == (2, 1), "a limit takes whole sequences"
