"""`db.py --separation` from its command line: what it prints, stores, draws and refuses."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import Command

DIGITS = """\
Minimal class separation of digits in L∞ (8 px), 1,797 samples (train + validation + test):
  minimum       111/255 = 0.435294
  epsilon_min   0.217647, half of it
  attained by   2 pairs: train/483 ('1') and test/546 ('8'); validation/31 ('5') and validation/112 ('6')
  between       train-train 112/255, train-validation 112/255, train-test 111/255, validation-validation 111/255, \
validation-test 112/255, test-test 127/255
  distribution  1 % 127/255, 25 % 159/255, 50 % 175/255, 75 % 191/255, 99 % 223/255, 100 % 239/255; mean 0.699194
  duplicates    none
  witness       the nearest neighbour is right for all 514 noisy samples within epsilon_min
"""
ALL = ("--separation", "digits")


def stored_rows(folder: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "results" / "testbed.sqlite")) as connection:
        return connection.execute("select splits, norm, space, created_at from separations order by id").fetchall()


@pytest.fixture
def conflicting(tmp_path: Path) -> Path:
    """Images of one grey level each: 0, 100 and 50, of two classes; another 50 of the wrong one."""
    levels, labels = np.array([0, 100, 50, 50], np.uint8), np.array([0, 1, 0, 1])
    np.savez(tmp_path / "made.npz", x=np.repeat(levels, 9).reshape(4, 3, 3), y=labels)
    return tmp_path


def without_matplotlib(folder: Path) -> dict[str, str]:
    """The environment of an installation without matplotlib."""
    (folder / "none").mkdir()
    (folder / "none" / "matplotlib.py").write_text("raise ImportError('there is none')\n")
    return {"PYTHONPATH": str(folder / "none")}


def test_digits_are_searched_once_and_printed_for_people(command: Command, tmp_path: Path) -> None:
    first = command("db.py", *ALL, **without_matplotlib(tmp_path))
    assert (first.code, first.out, first.err) == (0, DIGITS, "")
    rows = stored_rows(tmp_path)
    assert [row[:3] for row in rows] == [("train+validation+test", "linf", "8 px")]
    assert command("db.py", *ALL).out == DIGITS
    assert stored_rows(tmp_path) == rows


def test_an_evaluation_and_the_action_share_what_is_stored(command: Command, tmp_path: Path) -> None:
    evaluated = command(
        "eval.py", "--models", "digits-linear", "--eval-settings", "digits-mscr-linf", "--limit", 20, "--workers", 0,
        "--quiet", "--db",
    )  # fmt: skip
    assert evaluated.code == 0, evaluated.err
    rows = stored_rows(tmp_path)
    assert command("db.py", *ALL).out == DIGITS
    assert stored_rows(tmp_path) == rows


def test_norms_and_splits_as_json(command: Command, tmp_path: Path) -> None:
    done = command("db.py", *ALL, "--norm", "l1", "l2", "--splits", "test", "--json")
    l1, l2 = done.json
    assert (l1["norm"], l1["splits"], l1["num_points"]) == ("l1", ["test"], 597)
    assert l1["min_distance"] == 1418 / 255
    assert l1["epsilon_min"] == 709 / 255
    assert l2["min_distance"] == pytest.approx(1.42601, abs=5e-6)
    assert l2["pair_ids"] == l2["pairs"][0]
    assert len(set(l2["pair_classes"])) == 2
    assert sum(l2["distribution"]["counts"]) == 597
    assert l2["witness"]["num_right"] == l2["witness"]["num_points"]
    assert [row[:2] for row in stored_rows(tmp_path)] == [("test", "l1"), ("test", "l2")]


def test_figures_are_drawn_from_what_is_stored_and_are_the_same_bytes(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    names = [f"separation-digits-test-linf.{ending}" for ending in ("pdf", "png", "csv")]
    first = command("db.py", *ALL, "--splits", "test", "--out", "figures")
    assert first.out.splitlines()[-1] == f"  figures       {', '.join(f'figures/{name}' for name in names)}"
    again = command("db.py", *ALL, "--splits", "test", "--out", "again", "--json")
    assert again.json[0]["files"] == [f"again/{name}" for name in names]
    for name in names:
        assert (tmp_path / "figures" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_figures_without_matplotlib_are_refused_in_one_line(command: Command, tmp_path: Path) -> None:
    done = command("db.py", *ALL, "--out", "figures", **without_matplotlib(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.err == "Error: Figures need matplotlib: pip install matplotlib\n"
    assert not (tmp_path / "results").exists()


def test_conflicting_samples_are_listed_and_can_be_left_out(command: Command, conflicting: Path) -> None:
    whole = command("db.py", "--separation", "made", "--data-root", ".")
    assert whole.code == 0
    assert "  minimum       0, of equal samples of different class\n" in whole.out
    assert "2 samples conflict with an equal one of another class, 1 pair: test/2 ('0') and test/3 ('1')\n" in whole.out
    assert "the nearest neighbour is wrong for 4 of 8 noisy samples: look at 2 pairs: test/2" in whole.out
    assert whole.err.startswith("Warning: equal samples of 'made' bear different labels, so made-mscr-linf is refused.")
    rest = command("db.py", "--separation", "made", "--data-root", ".", "--exclude-conflicting")
    assert (rest.code, rest.err) == (0, "")
    title, minimum = rest.out.splitlines()[:2]
    assert title.endswith("(as stored), 2 samples (test) without 2 that equal one of another class:")
    assert minimum == "  minimum       100/255 = 0.392157"
    assert [row[2] for row in stored_rows(conflicting)] == ["as stored", "as stored, without conflicting"]


def test_images_of_different_sizes_need_one_size(command: Command, tmp_path: Path) -> None:
    small, large = np.zeros((2, 3, 3), np.uint8), np.full((2, 6, 6), 90, np.uint8)
    np.savez(tmp_path / "sizes.npz", x_train=small, y_train=[0, 1], x_test=large, y_test=[0, 1])
    done = command("db.py", "--separation", "sizes", "--data-root", ".", "--splits", "train", "test")
    assert done.code == 2
    assert "'train' has 8-bit samples of shape (1, 3, 3), 'test' has 8-bit samples of shape (1, 6, 6)" in done.err
    done = command("db.py", "--separation", "sizes", "--data-root", ".", "--canonical-size", 3)
    assert done.code == 0
    assert "in L∞ (3 px), 4 samples (train + test)" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--separation", "digitz"), "Did you mean digits"),
        ((*ALL, "--splits", "trian"), "has no split 'trian'. Its splits: train, validation, test."),
        ((*ALL, "--norm", "l3"), "'l3' is not one of 'linf', 'l2', 'l1'"),
    ],
)
def test_what_is_not_there_is_refused(command: Command, arguments: tuple[str, ...], message: str) -> None:
    done = command("db.py", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
