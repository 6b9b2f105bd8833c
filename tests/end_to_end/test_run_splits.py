"""A data set that every run splits anew: fitted, evaluated, stored and read back run by run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from tests.conftest import Command

from testbed.store import open_store

NUM_POINTS = 200
LEVEL = 0.05


@pytest.fixture
def points(tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Points of two classes on a grid, so that the separation is known: `data/mscr-2d/A_sep.npz`."""
    side = np.arange(20) / 20
    x = np.stack(np.meshgrid(side, side[:10]), axis=-1).reshape(-1, 2)
    y = (x[:, 0] >= 0.5).astype(np.int64)
    (tmp_path / "data" / "mscr-2d").mkdir(parents=True)
    np.savez(tmp_path / "data" / "mscr-2d" / "A_sep.npz", x=x, y=y)
    return x, y


def test_each_run_is_the_published_protocol_seed_by_seed(
    command: Command, tmp_path: Path, points: tuple[np.ndarray, np.ndarray]
) -> None:
    done = command(
        "eval.py", "--models", "random-forest", "1-nn-noise-linf-0.01-shared", "1-nn-mscr-linf", "--eval-settings",
        "2d-a", "2d-a-mscr-linf-shared", "--seeds", 0, 1, 7, "--workers", 2, "--db-url", "sqlite:///runs.sqlite",
    )  # fmt: skip
    assert done.code == 0, done.err
    x, y = points
    with open_store(str(tmp_path / "runs.sqlite")) as store:
        for seed in (0, 1, 7):
            stored = store.evaluation("random-forest", "2d-a", seed=seed)
            x_fit, x_test, y_fit, y_test = train_test_split(x, y, test_size=0.2, random_state=seed)
            forest = RandomForestClassifier(n_estimators=100, random_state=seed).fit(x_fit, y_fit)
            np.testing.assert_array_equal(stored.targets(), y_test)
            np.testing.assert_array_equal(x[stored.sample_indices()], x_test)
            np.testing.assert_array_equal(stored.predictions()[0], forest.predict(x_test.astype(np.float32)))
            assert stored.test_fraction == 0.2
            assert (stored.n, stored.fit_seed) == (40, seed)
            noisy = store.evaluation("1-nn-noise-linf-0.01-shared", "2d-a-mscr-linf-shared", seed=seed)
            assert noisy.sample_ids() == stored.sample_ids()
            assert noisy.shift is not None
            assert noisy.shift.epsilon == pytest.approx(0.025, abs=1e-15)  # half of the grid's step
            assert "fit_epsilon" not in noisy.numerics
            at_separation = store.evaluation("1-nn-mscr-linf", "2d-a", seed=seed)
            assert at_separation.numerics["fit_epsilon"] == noisy.shift.epsilon
        assert [setting.n for setting in store.list_settings()] == [40, 40]
    verified = command("db.py", "--verify", "--db-url", "sqlite:///runs.sqlite")
    assert verified.code == 0, verified.out
    again = command("db.py", "--recompute", "--db-url", "sqlite:///runs.sqlite")
    assert again.code == 0, again.err


@pytest.mark.usefixtures("points")
def test_a_limit_takes_from_the_runs_own_part(command: Command) -> None:
    arguments = ("--models", "1-nn", "--eval-settings", "2d-a", "--seeds", 3, "--workers", 0)
    done = command("eval.py", *arguments, "--limit", 10, "--json")
    assert done.code == 0, done.err
    assert done.json["evaluations"][0]["n"] == 10
    assert "only 40" in command("eval.py", *arguments, "--limit", 41).err


def test_without_the_file_the_error_says_where_to_put_it(command: Command) -> None:
    done = command("eval.py", "--models", "1-nn", "--eval-settings", "2d-b", "--no-download")
    assert done.code == 2
    assert "B_sep.npz" in done.err


def test_one_name_is_fitted_on_every_data_set_that_it_is_evaluated_on(
    command: Command, points: tuple[np.ndarray, np.ndarray]
) -> None:
    """Two classes and ten in one command, in one worker, with one seed."""
    done = command("eval.py", "--models", "1-nn", "--eval-settings", "2d-a", "digits", "--workers", 0, "--db", "--json")
    assert done.code == 0, done.err
    assert "label space" not in done.err
    assert [one["status"] for one in done.json["evaluations"]] == ["complete", "complete"]
    on_points, on_digits = (one["metrics"]["top1"]["value"] for one in done.json["evaluations"])
    assert on_digits == pytest.approx(100 * 589 / 597)  # as digits-1nn, in the README
    x_fit, x_test, y_fit, y_test = train_test_split(*points, test_size=0.2, random_state=0)
    neighbour = KNeighborsClassifier(n_neighbors=1, algorithm="kd_tree").fit(x_fit, y_fit)
    assert on_points == pytest.approx(100 * neighbour.score(x_test.astype(np.float32), y_test))
