"""The numbers of the accuracy matrix: by hand, and against those that the authors published."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plotting.drawing.matrix import accuracy_cells, best_of, mscr_cells, paired_p_value, published_spread
from plotting.drawing.published import compared, joint_picture, read_published

from testbed.errors import DataError

PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "expected" / "mscr_2d_B_Linf.csv"
HEADER = "test_eps,train_eps,acc_percent,std_percent,ci95_percent\n"


def series(*values: float) -> pd.Series[float]:
    return pd.Series(list(values), index=pd.Index(range(len(values)), name="seed"))


def rows(training: float, epsilon: float, clean: list[float], noisy: list[float]) -> pd.DataFrame:
    """Runs of one cell, as `plotting.drawing.stored.Stored` has them."""
    return pd.DataFrame({
        "training_epsilon": training, "epsilon": epsilon, "is_separation": epsilon == 0.004, "seed": range(len(clean)),
        "accuracy": noisy, "clean_accuracy": clean,
    })  # fmt: skip


def test_spread_is_the_published_one_with_n_in_the_denominator() -> None:
    sd, half_width = published_spread([90, 92, 94, 96])
    assert sd == pytest.approx(5**0.5)
    assert half_width == pytest.approx(1.96 * 5**0.5 / 2)


def test_published_half_widths_are_1_96_deviations_over_the_root_of_1200_runs() -> None:
    """Siedel et al. 2022, set B, L-infinity, no noise: 0.2513 gives 0.01421863601944059."""
    sample = np.tile([-1.0, 1.0], 600) * 0.2513
    assert published_spread(sample) == pytest.approx((0.2513, 0.01421863601944059), rel=1e-12)


def test_one_run_has_no_spread() -> None:
    assert np.isnan(published_spread([90.0])).all()


def test_mscr_is_the_ratio_of_the_means_and_its_spread_that_of_the_differences() -> None:
    row = mscr_cells(rows(0.0, 0.004, clean=[90, 92, 94, 96], noisy=[80, 82, 84, 90])).iloc[0]
    assert row["mscr_percent"] == pytest.approx(-100 * 9 / 93)
    assert row["std_percent"] == pytest.approx(3**0.5)  # of -10, -10, -10, -6
    assert row["ci95_percent"] == pytest.approx(1.96 * 3**0.5 / 2)
    assert row["runs"] == 4


def student_p_value(t: float) -> float:
    """Two-sided, with three degrees of freedom, in closed form."""
    angle = math.atan(t / 3**0.5)
    return 1 - 2 / math.pi * (angle + math.sin(angle) * math.cos(angle))


def test_paired_p_value_is_students() -> None:
    """Differences 1, 2, 3, 4 have the mean 2.5 and the variance 5/3."""
    assert paired_p_value(series(1, 2, 3, 4)) == pytest.approx(student_p_value(2.5 / (5 / 3 / 4) ** 0.5))


def test_resplits_are_less_sure_than_independent_runs() -> None:
    """20 % tested and 80 % fitted: a quarter of the variance is added, Nadeau & Bengio 2003."""
    p_value = paired_p_value(series(1, 2, 3, 4), resplit=0.25)
    assert p_value == pytest.approx(student_p_value(2.5 / (5 / 3 * (1 / 4 + 1 / 4)) ** 0.5))


def test_runs_that_one_side_lacks_are_left_out() -> None:
    assert paired_p_value(series(1, 2, 3, 4) - series(0, 0, 0)) == paired_p_value(series(1, 2, 3))


@pytest.mark.parametrize(("differences", "p_value"), [((0, 0, 0), 1.0), ((2, 2, 2), 0.0)])
def test_differences_without_spread_decide(differences: tuple[float, ...], p_value: float) -> None:
    assert paired_p_value(series(*differences)) == p_value


def test_best_are_the_largest_mean_and_all_that_holm_does_not_tell_from_it() -> None:
    """Against the first p is 0.0305 for the others: each alone would be told from it, but not both."""
    best, other, worst = series(5, 6, 7, 8), series(4, 4, 4, 4), series(0, 1, 2, 3)
    assert best_of({0.0: best, 0.1: other}) == {0.0}
    assert best_of({0.0: best, 0.1: other, 0.2: other}) == {0.0, 0.1, 0.2}
    assert best_of({0.0: best, 0.2: worst}) == {0.0}


def test_with_one_run_nothing_but_the_largest_is_best() -> None:
    assert best_of({0.0: series(5), 0.1: series(5.1), 0.2: series(4)}) == {0.1}


def test_cells_are_ordered_by_test_and_training_level() -> None:
    table = pd.concat([rows(t, e, [90, 92], [90, 94]) for t in (0.01, 0.0) for e in (0.004, 0.0)])
    cells = accuracy_cells(table)
    assert cells[["test_eps", "train_eps"]].to_numpy().tolist() == [[0, 0], [0, 0.01], [0.004, 0], [0.004, 0.01]]
    assert cells["acc_percent"].tolist() == [92.0] * 4


def test_z_has_both_standard_errors(tmp_path: Path) -> None:
    """Ours 93 with the standard error sqrt(5) / 2, theirs 92 with 1: z = 1 / sqrt(1.25 + 1); half the separation is
    published as a float32."""
    file = tmp_path / "published.csv"
    file.write_text(f"{HEADER}0,0,92,4,1.96\n0.0040000002,0,84,2,1.96\nMSCR,0,-10,1,0.98\n")
    runs = [rows(0.0, 0.0, [90, 92, 94, 96], [90, 92, 94, 96]), rows(0.0, 0.004, [90, 92, 94, 96], [80, 82, 84, 90])]
    theirs, their_mscr = read_published(file)
    cells = compared(accuracy_cells(pd.concat(runs)), theirs, "acc_percent")
    mscr = compared(mscr_cells(pd.concat(runs)), their_mscr, "mscr_percent")
    assert cells["z"].tolist() == pytest.approx([1 / 2.25**0.5, 0.0])
    assert cells["std_ratio"].tolist() == pytest.approx([5**0.5 / 4, 14**0.5 / 2])
    assert mscr["z"].tolist() == pytest.approx([10 - 900 / 93])  # standard errors sqrt(3) / 2 and 1/2
    assert joint_picture(cells, mscr).splitlines() == [
        "2 of 2 cells compared, worst |z| 0.67 (test 0, train 0)",
        "Standard deviation of a run, ours / published: median 1.215, 0.559 to 1.871",
        "MSCR: 1 of 1 cells compared, worst |z| 0.32 (train 0)",
    ]


def test_cells_without_a_published_deviation_are_not_compared(tmp_path: Path) -> None:
    file = tmp_path / "published.csv"
    file.write_text(f"{HEADER}0,0,92,,\n")
    theirs, their_mscr = read_published(file)
    cells = compared(accuracy_cells(rows(0.0, 0.0, [90, 92], [90, 92])), theirs, "acc_percent")
    mscr = compared(mscr_cells(rows(0.0, 0.004, [90, 92], [90, 92])), their_mscr, "mscr_percent")
    assert cells["z"].isna().all()
    assert joint_picture(cells, mscr).splitlines() == [
        "none of 1 cells has a published mean with a deviation to compare with",
        "MSCR: none of 1 cells has a published mean with a deviation to compare with",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("test_eps,train_eps,acc_percent,std,ci95\n0,0,92,4,1\n", "no column std_percent, ci95_percent"),
        (f"{HEADER}0,none,92,4,1\n", "cannot be read: could not convert string to float"),
        (f"{HEADER}0,0,92,4,1\n0,0,92,4,1\n", "has a cell twice"),
    ],
)
def test_a_published_table_that_is_none_is_told(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "published.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_published(tmp_path / "published.csv")


@pytest.mark.skipif(not PUBLISHED.exists(), reason=f"the published matrix is not there: {PUBLISHED}")
def test_the_published_matrix_equals_itself() -> None:
    """Siedel et al. 2022, set B, L-infinity: 81 cells and nine values of MSCR."""
    cells, mscr = read_published(PUBLISHED)
    compared_cells, compared_mscr = compared(cells, cells, "acc_percent"), compared(mscr, mscr, "mscr_percent")
    assert (compared_cells["z"] == 0).sum() == 81
    assert (compared_mscr["z"] == 0).sum() == 9
    assert (compared_cells["std_ratio"] == 1).all()
