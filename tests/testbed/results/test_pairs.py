"""Two models from a store: only where they saw the same samples, draws and seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.errors import DataError, UnknownNameError
from testbed.results import Precision
from testbed.results.pairs import compare_models, pair_record

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
OTHER = np.array([1, 1, 1, 1, 0, 0, 1, 0], bool)
LOST = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]], bool)
KEPT = np.array([[1, 1, 1, 1, 0, 0, 1, 0], [1, 1, 1, 1, 0, 0, 0, 0]], bool)


def compared(lab: Any, first: str = "a", second: str = "b", **asked: Any) -> list[Any]:
    precision = asked.pop("precision", Precision())
    return compare_models(lab.store, (first, second), precision, **{"settings": (), "datasets": (), **asked})


def test_accuracy_mscr_and_loss_are_compared_on_common_settings(lab: Any) -> None:
    lab.pair("a", CLEAN, LOST)
    lab.pair("b", OTHER, KEPT)
    lab.pair("a", CLEAN, LOST, setting="toy-mscr-l2")
    rows = compared(lab)
    assert [(row.evaluation.setting, row.contrast.difference.name) for row in rows] == [
        ("toy", "accuracy"), ("toy-mscr-linf", "accuracy"), ("toy-mscr-linf", "mscr"), ("toy-mscr-linf", "loss"),
    ]  # fmt: skip
    accuracy, _, mscr, loss = (row.contrast for row in rows)
    assert accuracy.test == "McNemar, exact"
    assert accuracy.values == pytest.approx((75, 62.5))
    assert mscr.values == pytest.approx((100 * (2.5 - 6) / 6, 100 * (4.5 - 5) / 5))
    assert loss.difference.value == pytest.approx(100 * (3.5 / 6 - 0.5 / 5))
    assert pair_record(rows[2])["models"] == ["a", "b"]
    assert [row.evaluation.setting for row in compared(lab, settings=("toy",))] == ["toy"]


def test_a_setting_is_corrected_for_once_and_not_for_each_metric(lab: Any) -> None:
    """Two settings have accuracies and one has MSCR and loss: the smaller p of accuracy counts twice, all else once."""
    lab.num_samples = 60
    images = np.arange(60)
    lab.pair("a", images < 60, np.stack([images < 58] * 2))
    lab.pair("b", images < 52, np.stack([images < 40] * 2))
    first, second, mscr, loss = compared(lab)
    assert [row.contrast.difference.name for row in (first, second)] == ["accuracy", "accuracy"]
    assert second.contrast.p_value < first.contrast.p_value
    assert second.holm == pytest.approx(2 * second.contrast.p_value)
    assert first.holm == first.contrast.p_value
    assert [row.holm for row in (mscr, loss)] == [row.contrast.p_value for row in (mscr, loss)]


def test_same_store_gives_the_same_p_values(lab: Any) -> None:
    lab.num_samples = 60
    rng = np.random.default_rng(0)
    lab.pair("a", rng.random(60) < 0.9, rng.random((4, 60)) < 0.7)
    lab.pair("b", rng.random(60) < 0.9, rng.random((4, 60)) < 0.6)
    first, again = compared(lab), compared(lab)
    assert [row.contrast.p_value for row in first] == [row.contrast.p_value for row in again]


def test_other_seeds_are_refused(lab: Any) -> None:
    lab.pair("a", CLEAN, LOST, noise_seed=1)
    lab.pair("b", OTHER, KEPT, noise_seed=2)
    with pytest.raises(DataError, match=r"other seeds: 1 and 2\..*--seeds 1 2"):
        compared(lab)


def test_other_draws_are_refused(lab: Any) -> None:
    lab.pair("a", CLEAN, LOST)
    lab.pair("b", OTHER, KEPT[:1])
    with pytest.raises(DataError, match=r"2 and 1 draws .*--draws 2"):
        compared(lab)


def test_other_samples_are_refused(resplit_lab: Any) -> None:
    """A setting's samples are part of it, but runs of one seed may have split the data with another."""
    resplit_lab.put("a", "toy", [1, 1, 1, 0], fit_seed=0, noise_seed=1)
    resplit_lab.put("b", "toy", [1, 1, 0, 0], fit_seed=1, noise_seed=1)
    with pytest.raises(DataError, match="other samples in seed 1"):
        compared(resplit_lab)


def test_what_draws_nothing_stands_beside_every_run(lab: Any) -> None:
    lab.put("a", "toy", CLEAN)
    for seed in range(3):
        lab.put("b", "toy", np.roll(OTHER, seed), fit_seed=seed)
    (row,) = compared(lab)
    assert len(row.runs) == 3
    assert row.contrast.values == pytest.approx((75, 62.5))
    assert row.contrast.p_value == row.holm > 0.05
    assert "t over 3 runs" in row.contrast.difference.method


def test_resplits_are_paired_run_by_run(resplit_lab: Any) -> None:
    for seed in range(3):
        resplit_lab.pair("a", [1, 1, 1, 0], [[1, 1, 0, 0]], fit_seed=seed, noise_seed=seed)
        resplit_lab.pair("b", [1, 1, 1, 0], [[1, 1, 1, 0]], fit_seed=seed, noise_seed=seed)
    *_, loss = compared(resplit_lab, settings=("toy-mscr-linf",))
    assert loss.contrast.difference.value == pytest.approx(100 / 3)
    assert "Nadeau-Bengio" in loss.contrast.difference.method


def test_several_numerics_are_refused(lab: Any) -> None:
    lab.put("a", "toy", CLEAN)
    lab.put("a", "toy", CLEAN, threads=2)
    lab.put("b", "toy", OTHER)
    with pytest.raises(DataError, match="several numerics"):
        compared(lab)


def test_models_that_are_not_there_or_share_nothing_are_named(lab: Any) -> None:
    lab.put("net-a", "toy", CLEAN)
    lab.pair("b", OTHER, KEPT)
    with pytest.raises(UnknownNameError, match=r"'net-x' has no complete evaluation.*Did you mean net-a"):
        compared(lab, "net-x", "b")
    lab.put("c", "toy-mscr-l2", KEPT)
    with pytest.raises(UnknownNameError, match=r"No setting was evaluated with both 'net-a' \(toy\) and 'c'"):
        compared(lab, "net-a", "c")


def test_a_model_that_was_not_evaluated_there_is_told_where_it_was(lab: Any) -> None:
    lab.pair("a", CLEAN, LOST)
    lab.pair("b", CLEAN, LOST)
    with pytest.raises(UnknownNameError, match=r"on nowhere\. It has some on toy, toy-mscr-linf"):
        compare_models(lab.store, ("a", "b"), Precision(), settings=("nowhere",), datasets=())
    with pytest.raises(UnknownNameError, match="'c' has no complete evaluation"):
        compare_models(lab.store, ("c", "b"), Precision(), settings=(), datasets=())
