"""The figures over a store whose numbers are written down: their CSV is worked out by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.plotting.conftest import EPSILON_MIN, Draw, Filler

from testbed.errors import StoreError, TestbedError

ROOT = Path(__file__).resolve().parents[2]
FIGURES = (
    "accuracy_over_noise", "mscr_against_clean", "accuracy_matrix", "accuracy_surface", "effect_of_k", "convergence",
)  # fmt: skip


def one(table: pd.DataFrame, **where: object) -> pd.Series[float]:
    """The only row with these values."""
    for name, value in where.items():
        table = table[table[name] == value]
    assert len(table) == 1, table
    return table.iloc[0]


def test_accuracy_over_noise_has_a_point_for_every_model_and_level(drawn: Draw) -> None:
    table = pd.read_csv(drawn("accuracy_over_noise")["csv"])
    assert len(table) == 9
    row = one(table, model="forest", epsilon=EPSILON_MIN)
    assert row["value"] == pytest.approx(84)
    assert (row["n"], row["num_draws"], row["runs"]) == (100, 2, 4)
    assert (table["ci_low"] < table["value"]).all()
    assert (table["value"] < table["ci_high"]).all()


def test_curves_may_be_named_by_training_noise(matrix: Path, draw: Draw) -> None:
    table = pd.read_csv(draw("accuracy_over_noise", matrix, "--by-training-noise")["csv"])
    assert table.groupby("model")["training_epsilon"].first().to_dict() == {
        "forest": 0.0, "forest-mscr": EPSILON_MIN, "forest-noise": 0.01,
    }  # fmt: skip


def test_mscr_is_the_ratio_of_means_beside_the_clean_accuracy(drawn: Draw) -> None:
    table = pd.read_csv(drawn("mscr_against_clean")["csv"])
    assert one(table, model="forest", metric="top1")["value"] == pytest.approx(93)
    assert one(table, model="forest", metric="mscr")["value"] == pytest.approx(-100 * 9 / 93)
    assert table[["ci_low", "ci_high"]].notna().all(axis=None)


def test_matrix_has_the_published_columns_and_the_best_of_each_row(drawn: Draw) -> None:
    files = drawn("accuracy_matrix")
    cells, mscr = pd.read_csv(files["csv"]), pd.read_csv(files["mscr"])
    assert list(cells.columns) == [
        "test_eps", "train_eps", "acc_percent", "std_percent", "ci95_percent", "runs", "is_best",
    ]  # fmt: skip
    cell = one(cells, test_eps=EPSILON_MIN, train_eps=0.0)
    assert cell["acc_percent"] == pytest.approx(84)
    assert cell["std_percent"] == pytest.approx(14**0.5)  # of 80, 82, 84, 90
    assert cell["ci95_percent"] == pytest.approx(1.96 * 14**0.5 / 2)
    assert cell["runs"] == 4
    best = cells[cells["is_best"]]
    assert list(zip(best["test_eps"], best["train_eps"], strict=True)) == [
        (0.0, 0.0), (0.0, EPSILON_MIN),  # 93 and 93.25, differences -1 to 1
        (EPSILON_MIN, EPSILON_MIN),  # 93 against 84 and 80
        (0.01, 0.0), (0.01, 0.01),  # 70 and 71.5, differences 0 to 3
    ]  # fmt: skip
    assert list(mscr.columns) == ["train_eps", "mscr_percent", "std_percent", "ci95_percent", "runs"]
    assert mscr["mscr_percent"].tolist() == pytest.approx([-100 * 9 / 93, -100 * 0.25 / 93.25, 0.0])
    assert mscr["std_percent"].tolist() == pytest.approx([3**0.5, 0.6875**0.5, 0.0])


def test_a_matrix_of_single_runs_has_the_intervals_of_the_samples(filler: Filler, database: Path, draw: Draw) -> None:
    filler.runs(filler.model("net"), {0.0: [[90]], EPSILON_MIN: [[80, 82, 84]]})
    cells = pd.read_csv(draw("accuracy_matrix", database)["csv"])
    assert cells["ci95_percent"].isna().all()
    assert (cells["ci_low"] < cells["acc_percent"]).all()
    assert (cells["acc_percent"] < cells["ci_high"]).all()


def test_published_values_give_z_and_are_not_written(matrix: Path, draw: Draw, tmp_path: Path) -> None:
    published = tmp_path / "published.txt"
    published.write_text(
        "test_eps,train_eps,acc_percent,std_percent,ci95_percent\n0,0,92.125,4,1.96\nMSCR,0,-10,1,0.98\n"
    )
    files = draw("accuracy_matrix", matrix, "--published", published)
    cells, mscr = pd.read_csv(files["csv"]), pd.read_csv(files["mscr"])
    assert one(cells, test_eps=0.0, train_eps=0.0)["z"] == pytest.approx((93 - 92.125) / 1.5)
    assert cells["z"].isna().sum() == 8
    assert one(mscr, train_eps=0.0)["z"] == pytest.approx(10 - 900 / 93)
    assert list(cells.columns)[-2:] == ["is_best", "z"]
    assert "92.125" not in files["csv"].read_text()


def test_effect_of_k_takes_the_first_k_draws(drawn: Draw) -> None:
    table = pd.read_csv(drawn("effect_of_k")["csv"])
    assert sorted(set(table["k"])) == [1, 2]
    first, both = (one(table, model="forest", k=k, metric="top1") for k in (1, 2))
    assert (first["value"], both["value"]) == pytest.approx((82, 84))  # of 78, 80, 82, 88, and with 82, 84, 86, 92
    assert both["sd"] == pytest.approx((56 / 3) ** 0.5)  # of 80, 82, 84, 90
    assert one(table, model="forest", k=1, metric="mscr")["value"] == pytest.approx(-100 * 11 / 93)


def test_effect_of_k_in_a_single_run_has_the_interval_of_the_samples(
    filler: Filler, database: Path, draw: Draw
) -> None:
    filler.runs(filler.model("net"), {0.0: [[90]], EPSILON_MIN: [[80, 82, 84]]})
    table = pd.read_csv(draw("effect_of_k", database)["csv"])
    assert one(table, k=3, metric="top1")["value"] == pytest.approx(82)
    assert one(table, k=2, metric="mscr")["value"] == pytest.approx(-10)
    assert table["sd"].isna().all()
    assert (table["ci_low"] < table["value"]).all()


def test_effect_of_k_tells_which_spread_its_bars_show() -> None:
    from plotting.effect_of_k import bar_words

    assert bar_words(pd.DataFrame({"runs": [1, 1]})) == "Bars are 95 % intervals, over samples"
    assert bar_words(pd.DataFrame({"runs": [3, 4]})).endswith("spread of the runs (Student's t)")
    assert bar_words(pd.DataFrame({"runs": [1, 4]})).endswith("(Student's t), over samples where there is a single run")


def test_convergence_has_students_interval_over_the_first_runs(drawn: Draw) -> None:
    table = pd.read_csv(drawn("convergence")["csv"])
    assert sorted(set(table["runs"])) == [3, 4]
    row = one(table, model="forest", runs=3, metric="top1")  # of 80, 82, 84
    half_width = 4.302652729911275 * 2 / 3**0.5
    assert (row["value"], row["ci_low"], row["ci_high"]) == pytest.approx((82, 82 - half_width, 82 + half_width))
    assert one(table, model="forest", runs=3, metric="mscr")["value"] == pytest.approx(-100 * 10 / 92)
    assert one(table, model="forest", runs=4, metric="mscr")["value"] == pytest.approx(-100 * 9 / 93)


def test_a_second_run_gives_the_same_bytes(matrix: Path, drawn: Draw, tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from tests.plotting.conftest import draw_figure
for figure in {FIGURES!r}: draw_figure(figure, Path({str(matrix)!r}), Path({str(tmp_path)!r}))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "5", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    first = [file for figure in FIGURES for file in drawn(figure).values()]
    assert len(first) == 3 * len(FIGURES) + 1
    assert [file.name for file in first if file.read_bytes() != (tmp_path / file.name).read_bytes()] == []


NEEDS = {
    "mscr_against_clean": ({0.0: [[90]], 0.01: [[80]]}, "--eval-settings points-mscr-linf --db-url"),
    "accuracy_matrix": ({0.0: [[90]], 0.01: [[80]]}, "--eval-settings points-mscr-linf --db-url"),
    "effect_of_k": ({0.0: [[90]], EPSILON_MIN: [[80]]}, "--eval-settings points-mscr-linf --draws 50 --db-url"),
    "convergence": (
        {0.0: [[90]] * 2, EPSILON_MIN: [[80]] * 2},
        "-mscr-linf --seeds 0 1 2 3 4 5 6 7 8 9 --db-url",
    ),
}


@pytest.mark.parametrize("figure", NEEDS)
def test_what_is_missing_is_told_with_the_command_that_adds_it(
    figure: str, filler: Filler, database: Path, draw: Draw
) -> None:
    right, command = NEEDS[figure]
    filler.runs(filler.model("net"), right)
    with pytest.raises(TestbedError, match=f"python eval.py --models net .*{command} sqlite:///{database}"):
        draw(figure, database)


def test_a_database_that_is_not_there_is_an_error_of_the_database(draw: Draw, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"absent.sqlite"):
        draw("convergence", tmp_path / "absent.sqlite")
