"""The runs of a model from a store: which are draws, which are models, and which see other samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.metrics.comparison import compare
from testbed.report import sentence
from testbed.results import Run, accuracies_over_runs, compare_runs, result_of
from testbed.results.runs import by_fit

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
DRAWS = np.random.default_rng(0).random((3, 4, 8)) < 0.8


def test_single_run_has_the_numbers_that_are_stored(lab: Any) -> None:
    shifted, clean = lab.pair("net", CLEAN, DRAWS[0])
    assert list(accuracies_over_runs([shifted]).values()) == shifted.metrics()
    stored = {value.name: value for value in shifted.comparisons()[clean.id]}
    assert compare_runs([(shifted, clean)]) == stored


def test_runs_of_one_model_pool_their_draws(lab: Any) -> None:
    pairs = [lab.pair("net", CLEAN, DRAWS[seed], noise_seed=seed) for seed in range(3)]
    assert len({clean.id for _, clean in pairs}) == 1
    assert compare_runs(pairs) == compare(CLEAN, DRAWS.reshape(12, 8))
    found = accuracies_over_runs([shifted for shifted, _ in pairs])
    assert found["top1"].value == pytest.approx(100 * DRAWS.mean())
    assert "runs" not in found["top1"].method
    assert found["worst_class_accuracy"].detail["class"] in ("even", "odd")


def test_three_models_times_three_runs_are_three_models(lab: Any) -> None:
    pairs = [lab.pair("net", CLEAN, DRAWS[fit] ^ (noise > fit), fit_seed=fit, noise_seed=noise)
             for fit in range(3) for noise in range(3)]  # fmt: skip
    fits = by_fit([Run(seed=0, evaluation=shifted, clean=clean) for shifted, clean in pairs])
    assert [len(fit) for fit in fits] == [3, 3, 3]
    found = compare_runs(pairs)
    assert "t over 3 runs" in found["mscr"].method
    assert len(found["mscr"].detail["runs"]) == 3
    assert found["mscr_published_interval"].n == 3
    assert found["mscr_published_interval"].value == pytest.approx(found["mscr"].value)
    assert "t over 3 runs" in accuracies_over_runs([shifted for shifted, _ in pairs])["balanced_accuracy"].method


def test_asking_for_a_run_twice_changes_nothing(lab: Any) -> None:
    shifted, clean = lab.pair("net", CLEAN, DRAWS[0])
    assert compare_runs([(shifted, clean)] * 3) == compare_runs([(shifted, clean)])


def test_resplits_are_compared_run_by_run_on_their_own_samples(resplit_lab: Any) -> None:
    """Right when clean: 4 and 2 of four; under the shift 3 and 2 in the one draw, of which one recovered."""
    first = resplit_lab.pair("net", [1, 1, 1, 1], [[1, 1, 1, 0]], fit_seed=0, noise_seed=0)
    second = resplit_lab.pair("net", [1, 1, 0, 0], [[1, 0, 1, 0]], fit_seed=2, noise_seed=2)
    assert first[0].sample_ids() != second[0].sample_ids()
    found = compare_runs([first, second])
    assert found["mscr"].value == pytest.approx(100 * (5 - 6) / 6)
    assert found["loss"].value == pytest.approx(100 * 2 / 6)
    assert found["recovery"].value == pytest.approx(100 * 1 / 2)
    assert found["mscr"].n == len({*first[0].sample_ids(), *second[0].sample_ids()})
    assert "Nadeau-Bengio" in found["loss"].method
    accuracies = accuracies_over_runs([first[0], second[0]])
    assert accuracies["top1"].value == pytest.approx(100 * 5 / 8)
    # of class 1, one of the first run's samples and two of the second's: 0 + 1 are right
    assert [evaluation.targets().tolist() for evaluation in (first[0], second[0])] == [[0, 0, 0, 1], [0, 1, 1, 0]]
    assert accuracies["worst_class_accuracy"].value == pytest.approx(100 / 3)


def test_a_sentence_about_resplits_tells_distinct_samples_from_those_of_a_run(resplit_lab: Any) -> None:
    first = resplit_lab.pair("net", [1, 1, 1, 1], [[1, 1, 1, 0]], fit_seed=0, noise_seed=0)
    second = resplit_lab.pair("net", [1, 1, 0, 0], [[1, 0, 1, 0]], fit_seed=2, noise_seed=2)
    distinct = len({*first[0].sample_ids(), *second[0].sample_ids()})
    assert distinct > 4
    runs = [
        Run(seed=seed, evaluation=one, clean=clean) for seed, (one, clean) in zip((0, 2), (first, second), strict=True)
    ]
    assert f"on {distinct} distinct samples (4 in each run) of " in sentence(result_of(runs), None)
    assert "on 4 samples of " in sentence(result_of(runs[:1]), None)


def test_nothing_is_said_of_a_run_that_is_not_complete(lab: Any) -> None:
    shifted, clean = lab.pair("net", CLEAN, DRAWS[0])
    pending = lab.store.evaluation_by_id(lab._start("net", "toy-mscr-linf", DRAWS[1], {"fit_seed": 0, "noise_seed": 5,
                                                                                      "threads": 1}))  # fmt: skip
    runs = [Run(seed=0, evaluation=shifted, clean=clean), Run(seed=5, evaluation=pending, clean=clean)]
    result = result_of(runs)
    assert (result.accuracies, result.comparisons) == ({}, {})
    assert result_of(runs[:1]).comparisons["loss"].value is not None
