"""CE, mCE and their relative forms against hand-computed and published values; what is missing is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.metrics.alexnet import ALEXNET_IMAGENET_C
from testbed.metrics.comparison import change
from testbed.metrics.corruption import COMMON, EXTRA, Grid
from testbed.metrics.corruption_error import (
    Errors,
    all_severities,
    corruption_error,
    mean_corruption_error,
    mean_error_difference,
    unnormalised_mean_error,
)
from testbed.metrics.factors import Factors

EXPECTED = Path(__file__).resolve().parents[4] / "shared/expected"
BOTH = ("noise", "blur")


def errors(rows: dict[str, Any], clean: float | None, name: str = "net") -> Errors:
    cells = {(kind, severity): error for kind, row in rows.items() for severity, error in enumerate(row, start=1)}
    return Errors(name=name, source="by hand", cells=cells, clean=clean)


NET = errors({"noise": [0.4, 0.5, 0.6, 0.7, 0.8], "blur": [0.3, 0.35, 0.4, 0.45, 0.5]}, 0.2)
BASE = errors({"noise": [0.6, 0.7, 0.8, 0.9, 1.0], "blur": [0.5, 0.6, 0.7, 0.8, 0.9]}, 0.4, "base")


def grid_of(wanted: Errors, n: int = 100, runs: int = 1, **options: Any) -> Grid:
    """A grid of n images with these errors."""

    def right(error: float) -> Any:
        return np.tile(np.arange(n) >= round(error * n), (runs, 1))

    cells = {cell: right(error) for cell, error in wanted.cells.items()}
    return Grid(clean=right(wanted.clean or 0.0).astype(float), cells=cells, num_draws=dict.fromkeys(cells, 1.0),
                factors=Factors(**options))  # fmt: skip


@pytest.mark.parametrize("subject", [NET, grid_of(NET)], ids=["errors", "images"])
def test_worked_example_is_met_exactly(subject: Errors | Grid) -> None:
    """CE 3/4 and 4/7, mCE 37/56; relative 1 and 2/3, 5/6. With one clean error taken off: 7/9 and 18/31."""
    values = [corruption_error(subject, BASE, name).value for name in BOTH]
    assert values == pytest.approx([75, 400 / 7], abs=1e-10)
    assert mean_corruption_error(subject, BASE, corruptions=BOTH).value == pytest.approx(3700 / 56, abs=1e-10)
    relative = [corruption_error(subject, BASE, name, is_relative=True).value for name in BOTH]
    assert relative == pytest.approx([100, 200 / 3], abs=1e-10)
    found = mean_corruption_error(subject, BASE, corruptions=BOTH, is_relative=True)
    assert found.value == pytest.approx(500 / 6, abs=1e-10)
    assert unnormalised_mean_error(subject, corruptions=BOTH).value == pytest.approx(50, abs=1e-10)
    assert mean_error_difference(subject, corruptions=BOTH).value == pytest.approx(30, abs=1e-10)


def test_worked_example_is_the_shared_one() -> None:
    path = EXPECTED / "metric_worked_examples.json"
    if not path.exists():
        pytest.skip(f"the shared examples are not there ({path.name})")
    shared = json.loads(path.read_text())["corruption_error"]
    assert errors(shared["errors"], shared["clean"]).cells == NET.cells
    assert errors(shared["baseline"], shared["baseline_clean"]).cells == BASE.cells
    assert (shared["mCE"], shared["relative_mCE"]) == ("37/56", "5/6")


def test_published_row_of_alexnet_is_the_shared_one() -> None:
    path = EXPECTED / "alexnet_imagenet_c_errors.json"
    if not path.exists():
        pytest.skip(f"the shared errors are not there ({path.name})")
    shared = json.loads(path.read_text())
    assert ALEXNET_IMAGENET_C.cells == errors(shared["per_severity"], None).cells
    assert ALEXNET_IMAGENET_C.clean == shared["clean_error_published"]
    found = unnormalised_mean_error(ALEXNET_IMAGENET_C).value
    assert found == pytest.approx(100 * shared["unnormalised_mean_15"], abs=1e-9)


def test_a_model_measured_by_itself_is_100() -> None:
    for is_relative in (False, True):
        found = mean_corruption_error(ALEXNET_IMAGENET_C, ALEXNET_IMAGENET_C, is_relative=is_relative)
        assert found.value == pytest.approx(100, abs=1e-10)


def test_names_tell_the_normalised_from_the_unnormalised_and_15_from_19() -> None:
    wanted = Errors(name="", source="", cells=dict.fromkeys(all_severities((*COMMON, *EXTRA)), 0.25), clean=0.1)
    assert unnormalised_mean_error(wanted).name == "unnormalised_mean_error_15"
    assert unnormalised_mean_error(wanted, corruptions=(*COMMON, *EXTRA)).name == "unnormalised_mean_error_19"
    assert mean_corruption_error(wanted, ALEXNET_IMAGENET_C).name == "mce"
    assert mean_corruption_error(wanted, ALEXNET_IMAGENET_C, is_relative=True).name == "relative_mce"


@pytest.mark.parametrize("of_baseline", [False, True])
def test_missing_severity_is_undefined_and_named(of_baseline: bool) -> None:
    less = Errors(name="less", source="", clean=0.2,
                  cells={cell: error for cell, error in NET.cells.items() if cell != ("blur", 3)})  # fmt: skip
    pair = (NET, less) if of_baseline else (less, BASE)
    found = mean_corruption_error(*pair, corruptions=BOTH)
    assert found.value is None
    assert found.reason == f"{'of the baseline less ' if of_baseline else ''}severity 3 of blur missing"
    assert corruption_error(*pair, "noise").value is not None
    assert corruption_error(*pair, "blur").value is None
    assert unnormalised_mean_error(less, corruptions=BOTH).reason == "severity 3 of blur missing"


def test_missing_corruption_and_unknown_clean_error_are_named() -> None:
    assert mean_corruption_error(NET, ALEXNET_IMAGENET_C).reason.startswith(
        "all of gaussian_noise, shot_noise, impulse"
    )
    unknown = Errors(name="", source="", cells=NET.cells, clean=None)
    found = mean_corruption_error(unknown, BASE, corruptions=BOTH, is_relative=True)
    assert (found.value, found.reason) == (None, "the clean error is not known")
    assert mean_corruption_error(unknown, BASE, corruptions=BOTH).value is not None


def test_baseline_that_does_not_err_is_undefined() -> None:
    perfect = errors({"noise": [0.0] * 5, "blur": [0.5] * 5}, 0.5, "perfect")
    found = mean_corruption_error(NET, perfect, corruptions=BOTH)
    assert (found.value, found.reason) == (None, "the baseline perfect does not err under noise")
    relative = mean_corruption_error(NET, perfect, corruptions=BOTH, is_relative=True)
    assert relative.reason == "the baseline perfect does not err more than when clean under noise, blur"


def test_without_images_there_is_no_interval_and_it_is_said() -> None:
    found = mean_corruption_error(NET, BASE, corruptions=BOTH)
    assert (found.ci_low, found.ci_high) == (None, None)
    assert found.reason.startswith("no interval")
    assert found.detail["baseline"] == "base"


@pytest.mark.parametrize("is_relative", [False, True])
def test_interval_is_that_of_the_errors_in_the_units_of_the_baseline(is_relative: bool) -> None:
    """With one baseline error everywhere mCE is the mean error over it."""
    flat, grid = errors({name: [0.8] * 5 for name in BOTH}, 0.4, "flat"), grid_of(NET)
    scale = 1 / (0.4 if is_relative else 0.8)
    found = mean_corruption_error(grid, flat, corruptions=BOTH, is_relative=is_relative)
    plain = (mean_error_difference if is_relative else unnormalised_mean_error)(grid, corruptions=BOTH)
    assert (found.ci_low, found.ci_high) == pytest.approx((plain.ci_low * scale, plain.ci_high * scale))
    assert found.ci_low < found.value < found.ci_high
    assert found.method.endswith("baseline as it is")


def test_error_difference_is_the_raw_one() -> None:
    grid = grid_of(NET)
    accuracy_change = change("accuracy_change", grid.outcomes(grid.cells))
    found = mean_error_difference(grid, corruptions=BOTH)
    assert (found.value, found.ci_low, found.ci_high) == pytest.approx(
        (-accuracy_change.value, -accuracy_change.ci_high, -accuracy_change.ci_low)
    )


def test_upper_bound_alone_is_of_the_error() -> None:
    for is_relative in (False, True):
        found = mean_corruption_error(grid_of(NET, side="upper"), BASE, corruptions=BOTH, is_relative=is_relative)
        assert found.ci_high > found.value
        assert not found.ci_low or found.ci_low < 0


def test_no_error_has_a_width() -> None:
    perfect = grid_of(errors({name: [0.0] * 5 for name in BOTH}, 0.0))
    found = mean_corruption_error(perfect, BASE, corruptions=BOTH)
    assert (found.value, found.ci_low) == (0, 0)
    assert found.ci_high > 3


def test_weighted_intervals_cover() -> None:
    """Images of unlike difficulty in cells whose baselines differ tenfold."""
    rng, n, repeats = np.random.default_rng(3), 150, 300
    base = errors({"noise": [0.1] * 5, "blur": [0.9] * 5}, 0.05)

    def simulate(count: int) -> Grid:
        easiness = rng.normal(1, 2, (1, count))
        cells = {
            (name, s): rng.random((1, count)) < 1 / (1 + np.exp(s / 2 + shift - easiness))
            for name, shift in (("noise", -2), ("blur", 1)) for s in range(1, 6)
        }  # fmt: skip
        return Grid(clean=(easiness > -2).astype(float), cells=cells, num_draws=dict.fromkeys(cells, 1.0),
                    factors=Factors())  # fmt: skip

    for is_relative in (False, True):
        truth = mean_corruption_error(simulate(300_000), base, corruptions=BOTH, is_relative=is_relative).value
        found = [mean_corruption_error(simulate(n), base, corruptions=BOTH, is_relative=is_relative)
                 for _ in range(repeats)]  # fmt: skip
        assert 0.91 <= np.mean([one.ci_low <= truth <= one.ci_high for one in found]) <= 0.99
