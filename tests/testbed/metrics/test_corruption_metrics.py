"""Accuracies under common corruptions: the published fractions, sums over cells, and intervals over images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.errors import ShapeError
from testbed.metrics.comparison import Outcomes
from testbed.metrics.corruption import (
    COMMON,
    EXTRA,
    RELATIVE,
    Grid,
    accuracies,
    among,
    common_correct,
    in_order,
    incomparable,
    missing_words,
    relative_corruption_accuracy,
    severities_of,
)
from testbed.metrics.factors import Factors, proportion

EXAMPLES = Path(__file__).resolve().parents[4] / "shared/expected/metric_worked_examples.json"
NAMES = {"A_cl": "clean_accuracy", "A_c": "corruption_accuracy", "A_rel_c": RELATIVE,
         "recovered_rate_q": "recovery", "raw_rCE": "raw_rce"}  # fmt: skip


def one_cell(clean: Any, corrupted: Any, **options: Any) -> Outcomes:
    return Outcomes.of_runs([(clean, corrupted)], Factors(**options))


def grid(clean: Any, cells: dict[Any, Any], **options: Any) -> Grid:
    """A grid of one run with one draw per cell."""
    rows = {cell: np.atleast_2d(np.asarray(right, np.float64)) for cell, right in cells.items()}
    return Grid(clean=np.atleast_2d(np.asarray(clean, np.float64)), cells=rows, num_draws=dict.fromkeys(rows, 1.0),
                factors=Factors(**options))  # fmt: skip


def examples() -> Sequence[dict[str, Any]]:
    if not EXAMPLES.exists():
        pytest.skip(f"the shared examples are not there ({EXAMPLES.name})")
    found: Sequence[dict[str, Any]] = json.loads(EXAMPLES.read_text())["relative_accuracy"]
    return found


@pytest.mark.parametrize("index", range(6))
def test_worked_examples_are_met_exactly(index: int) -> None:
    example = examples()[index]
    clean, corrupted = (np.equal(example["y"], example[f"pred_{kind}"]) for kind in ("clean", "corrupt"))
    found = accuracies(one_cell(clean, corrupted))
    for key, name in NAMES.items():
        expected, value = example[key], found[name].value
        assert (value is None) == (expected is None), name
        assert value is None or value == pytest.approx(float(100 * Fraction(expected["fraction"])), abs=1e-12), name
    assert found[RELATIVE].n == clean.sum()


def test_no_image_right_when_clean_has_a_reason() -> None:
    found = accuracies(one_cell([0, 0], [1, 0]))
    assert found[RELATIVE].value is None
    assert found[RELATIVE].reason == "no image is right when clean"
    assert found["recovery"].value == 50
    assert found["raw_rce"].value == -50


@pytest.mark.parametrize("seed", range(5))
def test_accuracy_is_what_is_kept_and_what_is_recovered(seed: int) -> None:
    """A_c = A_cl A_rel_c + (1 - A_cl) q, also over cells, draws and runs."""
    rng = np.random.default_rng(seed)
    clean, cells = rng.random((3, 50)) < 0.7, {("fog", s): rng.integers(0, 4, (3, 50)) / 3 for s in range(1, 6)}
    both = Grid(clean=clean.astype(float), cells=cells, num_draws=dict.fromkeys(cells, 3.0), factors=Factors())
    found = {name: value.value / 100 for name, value in accuracies(both.outcomes(cells)).items() if value.value}
    kept = found["clean_accuracy"] * found[RELATIVE] + (1 - found["clean_accuracy"]) * found["recovery"]
    assert found["corruption_accuracy"] == pytest.approx(kept, abs=1e-12)
    assert found["raw_rce"] == pytest.approx(found["clean_accuracy"] - found["corruption_accuracy"], abs=1e-12)


def test_cells_and_draws_are_summed_and_no_ratio_is_averaged() -> None:
    """Runs with 3 and 1 images right: (3 + 0) / (3 + 1), where the mean of the ratios would be 1 / 2."""
    clean = np.array([[1.0, 1, 1, 0], [1, 0, 0, 0]])
    cells = {("fog", 1): np.array([[1.0, 1, 1, 0], [0, 0, 0, 0]])}
    found = relative_corruption_accuracy(
        Grid(clean=clean, cells=cells, num_draws={("fog", 1): 1.0}, factors=Factors()).outcomes(cells)
    )
    assert found.value == 75
    assert found.detail["runs"] == [100, 0]
    drawn = relative_corruption_accuracy(one_cell([1, 1, 0], [[1, 0, 0], [1, 1, 1], [0, 0, 0]]))
    assert drawn.value == pytest.approx(50)  # 3 of 2 x 3
    over = grid([1, 1, 0], {("fog", 1): [1, 1, 0], ("fog", 2): [1, 0, 1]})
    assert relative_corruption_accuracy(over.outcomes(over.cells)).value == 75


def test_cells_of_one_image_are_no_further_images() -> None:
    """Images that are right in all cells or in none: five cells say no more than one."""
    right = [1] * 30 + [0] * 10
    cells = {("fog", severity): right for severity in range(1, 6)}
    whole = grid([1] * 40, cells)
    one, five = (relative_corruption_accuracy(whole.outcomes(some)) for some in ([("fog", 1)], cells))
    assert five.value == one.value == 75
    assert five.ci_high - five.ci_low > 0.9 * (one.ci_high - one.ci_low)


def test_draws_count_by_what_their_cells_weigh() -> None:
    """As many alike draws as have the same variance: 4^2 / (3^2 / 1 + 1^2 / 2) for weights 3 and 1."""
    cells = {("fog", 1): np.ones((1, 3)), ("fog", 2): np.zeros((1, 3))}
    whole = Grid(clean=np.ones((1, 3)), cells=cells, num_draws={("fog", 1): 1.0, ("fog", 2): 2.0}, factors=Factors())
    found = whole.weighted({("fog", 1): 3.0, ("fog", 2): 1.0})
    assert found.shifted.tolist() == [[0.75] * 3]
    assert found.factors.num_draws == pytest.approx(16 / 9.5)


def test_clusters_are_the_units_where_there_are_any() -> None:
    right = np.repeat([1, 1, 1, 0], 25)
    plain, clustered = (
        relative_corruption_accuracy(grid([1] * 100, {("fog", 1): right}, **given).outcomes([("fog", 1)]))
        for given in ({}, {"clusters": np.arange(100) // 5})
    )
    assert clustered.ci_high - clustered.ci_low > 1.5 * (plain.ci_high - plain.ci_low)


def test_one_bound_is_on_the_side_that_matters() -> None:
    whole = grid([1] * 50, {("fog", 1): [1] * 40 + [0] * 10})
    lower, upper = (accuracies(whole.outcomes(whole.cells, side=side)) for side in ("lower", "upper"))
    assert (lower[RELATIVE].ci_high, upper[RELATIVE].ci_low) == (100, 0)
    assert lower["raw_rce"].ci_low < 20 < upper["raw_rce"].ci_high
    assert (lower["raw_rce"].ci_high, upper["raw_rce"].ci_low) == (100, -100)


def test_intervals_cover_over_cells_that_depend_on_the_image() -> None:
    """15 cells of unlike difficulty on images of unlike difficulty: 93 to 97 % of the intervals have the truth."""
    rng, repeats, n = np.random.default_rng(7), 1500, 200
    hardness = np.linspace(-2, 3, 15)

    def images(shape: tuple[int, ...]) -> tuple[Any, Any]:
        easiness = rng.normal(1.5, 2, shape)
        clean = rng.random(shape) < 1 / (1 + np.exp(-easiness - 2))
        cells = {
            ("fog", index): rng.random(shape) < 1 / (1 + np.exp(hard - easiness)) for index, hard in enumerate(hardness)
        }
        return clean.astype(float), cells

    clean, cells = images((1, 400_000))
    truth = np.mean([(right & (clean > 0)).sum() / clean.sum() for right in cells.values()])
    clean, cells = images((repeats, 1, n))
    simulated = Grid(clean=clean, cells=cells, num_draws=dict.fromkeys(cells, 1.0), factors=Factors())
    outcomes = simulated.outcomes(cells)
    interval = proportion(outcomes.clean * outcomes.shifted, outcomes.clean, outcomes.factors)[1]
    assert 0.93 <= np.mean((interval.low <= truth) & (truth <= interval.high)) <= 0.97


def test_models_share_the_images_that_all_have_right() -> None:
    first = grid([1, 1, 1, 0], {("fog", 1): [1, 0, 1, 1]})
    second = grid([0, 1, 1, 1], {("fog", 1): [1, 1, 0, 1]})
    common = common_correct([first, second])
    assert common.tolist() == [[0, 1, 1, 0]]
    values = [relative_corruption_accuracy(among(one.outcomes(one.cells), common)) for one in (first, second)]
    assert [value.value for value in values] == [50, 50]
    assert [value.n for value in values] == [2, 2]
    runs = relative_corruption_accuracy(among(first.outcomes(first.cells), np.array([[0, 1, 1, 0], [1, 1, 0, 0]])))
    assert runs.detail["runs"] == [50, 50]  # a single run on what is shared with each of two


def test_a_single_run_stands_beside_several_and_other_numbers_do_not_compare() -> None:
    one, three, two = (Grid(clean=np.ones((runs, 4)), cells={}, num_draws={}, factors=Factors()) for runs in (1, 3, 2))
    assert common_correct([one, three]).shape == (3, 4)
    assert incomparable([three, two]) == "they have 2, 3 runs that fit a model each"
    other = replace(one, clean=np.ones((1, 5)))
    assert incomparable([one, other]) == "they have other numbers of images"
    split = replace(three, factors=Factors(samples=np.zeros((3, 4), int), num_samples=4, resplit=1.0))
    assert incomparable([three, split]) == "their runs are of other images"
    with pytest.raises(ShapeError, match="other numbers of images"):
        common_correct([one, other])


def test_cells_of_other_images_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"fog at severity 2 has outcomes of shape \(1, 3\)"):
        grid([1, 1], {("fog", 2): [1, 1, 1]})


def test_corruptions_are_in_the_order_of_hendrycks() -> None:
    assert in_order({"saturate", "zebra", "fog", "snow", "greyscale"}) == [
        "snow",
        "fog",
        "saturate",
        "greyscale",
        "zebra",
    ]
    assert (len(COMMON), len(EXTRA), len({*COMMON, *EXTRA})) == (15, 4, 19)
    assert severities_of([("fog", 3), ("snow", 1), ("fog", 1)], "fog") == [1, 3]


def test_missing_cells_are_named() -> None:
    wanted = [(name, severity) for name in ("fog", "snow", "frost") for severity in (1, 2, 3)]
    assert missing_words(wanted, wanted) == ""
    there = [("fog", 1), ("fog", 3)]
    assert missing_words(there, wanted) == "severity 2 of fog and all of snow, frost"
    there.append(("snow", 1))
    assert missing_words(there, wanted) == "severity 2 of fog, severity 2, 3 of snow and all of frost"
    assert missing_words([], [("greyscale", None)]) == "all of greyscale"
