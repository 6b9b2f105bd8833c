"""MSCR over runs against the published tables: rows from matrices, the papers' intervals from their deviations."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from testbed.errors import ShapeError
from testbed.metrics.published import mscr_of_means, mscr_over_runs

README = (Path(__file__).resolve().parents[3] / "README.md").read_text()
EXPECTED = Path(__file__).resolve().parents[4] / "shared" / "expected"

# Siedel et al. 2022, CIFAR-10, WRN-28-10: accuracy clean and at 0.1059, and MSCR, by training noise.
CIFAR10 = {0: (91.681, 59.261, -35.362), 0.01: (91.932, 60.696, -33.977), 0.1059: (86.051, 88.194, 2.490)}


def expected(name: str) -> Any:
    path = EXPECTED / name
    if not path.exists():
        pytest.skip(f"the shared tables are not there ({name})")
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("level", CIFAR10)
def test_published_values_follow_from_published_accuracies(level: float) -> None:
    clean, shifted, mscr = CIFAR10[level]
    assert float(mscr_of_means(clean, shifted)) == pytest.approx(mscr, abs=5e-4)


def test_published_cifar10_row_follows_from_the_matrix() -> None:
    """To 0.001, from the cells of the CSV, looked up by their level."""
    table, published = expected("mscr_cifar10.csv"), expected("mscr_cifar10_published.json")
    cells = {(row["test_eps"], float(row["train_eps"])): float(row["acc_percent"]) for row in table}
    level = next(name for name, _ in cells if name[:6] == "0.1058")
    trained = published["train_eps"]
    row = mscr_of_means([cells["0", eps] for eps in trained], [cells[level, eps] for eps in trained])
    assert len(row) == 8
    assert row == pytest.approx(published["mscr_percent"], abs=1e-3)
    assert row == pytest.approx([cells["MSCR", eps] for eps in trained], abs=1e-3)


@pytest.mark.parametrize("norm", ["Linf", "L2"])
@pytest.mark.parametrize("dataset", ["A", "B", "C"])
def test_published_2d_rows_follow_from_the_matrices(dataset: str, norm: str) -> None:
    """To 1e-9: the sheets formed their row from the means that they show."""
    sheet = expected("mscr_2d_published.json")[dataset][norm]
    accuracies = np.array(sheet["acc_percent_rows_test_cols_train"])
    row = mscr_of_means(accuracies[0], accuracies[sheet["eps_min_index"]])
    assert row == pytest.approx(sheet["mscr_percent"], abs=1e-9)


CLEAN, SHIFTED = np.array([90.0, 92.0, 94.0]), np.array([88.0, 91.0, 92.0])


def test_value_is_the_ratio_of_the_means() -> None:
    for value in mscr_over_runs(CLEAN, SHIFTED).values():
        assert value.value == pytest.approx(100 * (271 - 276) / 276)
        assert value.n == 3


def test_our_interval_is_students_of_the_linearised_ratio() -> None:
    value = mscr_over_runs(CLEAN, SHIFTED)["mscr"]
    residuals = 100 * (SHIFTED - CLEAN * 271 / 276) / 92
    half_width = t.ppf(0.975, 2) * residuals.std(ddof=1) / np.sqrt(3)
    assert value.ci_high - value.value == pytest.approx(half_width)
    assert value.value - value.ci_low == pytest.approx(half_width)


def test_resplits_are_corrected_for_common_images() -> None:
    """Nadeau and Bengio: 1/3 + 1/4 in the place of 1/3."""
    plain, corrected = mscr_over_runs(CLEAN, SHIFTED)["mscr"], mscr_over_runs(CLEAN, SHIFTED, resplit=0.25)["mscr"]
    factor = (corrected.ci_high - corrected.value) / (plain.ci_high - plain.value)
    assert factor == pytest.approx(np.sqrt((1 / 3 + 1 / 4) / (1 / 3)))


def test_published_intervals_are_of_differences_and_of_ratios() -> None:
    found = mscr_over_runs(CLEAN, SHIFTED)
    differences, ratios = SHIFTED - CLEAN, 100 * (SHIFTED - CLEAN) / CLEAN
    for name, of in (("", differences), ("_of_ratios", ratios)):
        value = found[f"mscr_published_interval{name}"]
        half_width = 1.96 * np.sqrt(np.mean((of - of.mean()) ** 2)) / np.sqrt(3)
        assert (value.ci_high - value.value, value.value - value.ci_low) == pytest.approx((half_width, half_width))


def test_papers_half_widths_follow_from_their_deviations() -> None:
    """Runs with the published deviation have the published interval: of differences in 2D, of ratios in CIFAR-10."""
    sheet = expected("mscr_2d_published.json")["B"]["Linf"]
    signs = np.where(np.arange(1200) % 2, 1, -1)
    for deviation, half_width in zip(sheet["std_diff_mscr"], sheet["ci95_mscr"], strict=True):
        value = mscr_over_runs(np.full(1200, 99.5), 99.4 + deviation * signs)["mscr_published_interval"]
        assert value.ci_high - value.value == pytest.approx(half_width, abs=3e-6)
    cifar = expected("mscr_cifar10_published.json")
    for deviation, half_width in zip(cifar["mscr_std_fraction"], cifar["mscr_ci95_fraction"], strict=True):
        shifted = 90 * (0.9 + deviation * signs[:20])
        value = mscr_over_runs(np.full(20, 90.0), shifted)["mscr_published_interval_of_ratios"]
        assert value.ci_high - value.value == pytest.approx(100 * half_width, abs=3e-3)


def test_undefined_without_an_accuracy_above_0() -> None:
    assert np.isnan(mscr_of_means([0, 50], [10, 25])).tolist() == [True, False]
    for value in mscr_over_runs([0, 0], [1, 2]).values():
        assert (value.value, value.reason) == (None, "no image is right when clean")
    one_run_lost = mscr_over_runs([0, 90], [1, 80])
    assert one_run_lost["mscr_published_interval_of_ratios"].ci_low is None
    assert one_run_lost["mscr"].ci_low is not None


@pytest.mark.parametrize("runs", [([90.0], [80.0]), ([90.0, 90.0], [80.0, 80.0])])
def test_no_interval_of_zero_width(runs: tuple[list[float], list[float]]) -> None:
    value = mscr_over_runs(*runs)["mscr"]
    assert value.value == pytest.approx(-100 / 9)
    assert value.ci_low is value.ci_high is None
    assert "no interval" in value.reason


def test_other_runs_are_refused() -> None:
    with pytest.raises(ShapeError, match="twice"):
        mscr_over_runs([1, 2], [1, 2, 3])


@pytest.mark.parametrize(
    ("runs", "resplit", "times"), [(2, None, "9 times"), (100, 0.25, "5 times"), (1200, 0.25, "17")]
)
def test_readme_says_how_much_narrower_the_published_interval_is(runs: int, resplit: float | None, times: str) -> None:
    signs = np.resize([-1.0, 1.0], runs)
    found = mscr_over_runs(np.full(runs, 90.0), 80 + signs, resplit=resplit)
    ours, papers = (found[name] for name in ("mscr", "mscr_published_interval_of_ratios"))
    widths = [(one.ci_high or 0) - (one.ci_low or 0) for one in (ours, papers)]
    assert f"{widths[0] / widths[1]:.0f}" == times.split()[0]
    assert f"{times}" in README[README.index("papers' own 1.96") :].split("\n\n")[0]
