"""`db.py --mscr` and `--compare`: what is printed, and what is refused with the command that helps."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.conftest import Command
from tests.laboratory import lab

from testbed.commands.compare import compare
from testbed.commands.mscr import mscr
from testbed.errors import DataError, UnknownNameError
from testbed.records import Separation
from testbed.report import SHARED_DRAWS, clean_parent_words, few_runs_words

__all__ = ["lab"]

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
LOST = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]], bool)


@pytest.fixture
def options(lab: Any) -> dict[str, Any]:
    """The options of db.py for a store with two models."""
    lab.pair("net-a", CLEAN, LOST)
    lab.pair("net-b", CLEAN, np.roll(LOST, 1))
    given = dict.fromkeys(("logdir", "epsilon", "cluster_by", "sample_table", "one_sided", "as_json"))
    return {**given, "db_url": lab.url, "confidence": 0.95, "models": (), "datasets": (), "norm": (),
            "eval_settings": (), "compare": ("net-a", "net-b")}  # fmt: skip


def test_table_has_a_row_per_model_and_says_where_the_level_comes_from(options: Any, capsys: Any) -> None:
    assert mscr(options) is None
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("net-a  ")]
    assert "8 x 2" in rows[0]
    assert "-58.33 [" in rows[0]  # (2.5 - 6) / 6
    assert "'odd' 25.00 [" in rows[1]
    assert "-43.75 [" in rows[1]
    assert "Bonferroni over 2" in out
    assert "epsilon is half of the minimal class separation 51/255" in out


def test_json_has_every_number_with_its_interval(options: Any, capsys: Any) -> None:
    mscr({**options, "as_json": True, "models": ("net-a",)})
    found = json.loads(capsys.readouterr().out)
    (record,) = found["results"]
    assert (record["norm"], record["epsilon"], record["separation"]["min_distance"]) == ("linf", 0.1, 0.2)
    assert list(record["metrics"]) == [
        "clean_accuracy", "robust_accuracy", "worst_class_accuracy", "mscr", "loss", "recovery",
    ]  # fmt: skip
    for number in record["metrics"].values():
        assert number["ci_low"] < number["value"] < number["ci_high"] or number["value"] in (0, 100)
    assert found["correction"] == {"of": "accuracy_change", "method": "Bonferroni", "num_intervals": 1}


def test_one_bound_is_shown_as_one(options: Any, capsys: Any) -> None:
    mscr({**options, "one_sided": True})
    out = capsys.readouterr().out
    assert "58.33 (<= " in out
    assert "-58.33 (>= " in out
    assert "95 % one-sided bounds" in out


def test_level_that_is_not_stored_is_refused_with_the_command_that_fills_it(options: Any) -> None:
    with pytest.raises(UnknownNameError) as refused:
        mscr({**options, "epsilon": 0.07})
    command = "python eval.py --models net-a net-b --eval-settings toy-noise-linf-0.07 --db-url "
    assert command + options["db_url"] in str(refused.value)
    with pytest.raises(UnknownNameError, match=r"--models net-z --eval-settings DATASET-mscr-linf"):
        mscr({**options, "models": ("net-z",)})


def test_what_is_stored_is_answered_beside_what_is_not(options: Any, lab: Any, capsys: Any) -> None:
    lab.pair("net-a", CLEAN, LOST, setting="toy-noise-linf-0.05")
    assert mscr({**options, "epsilon": 0.05}) == 1
    captured = capsys.readouterr()
    assert "net-a" in captured.out
    assert "Not stored: net-b on toy-noise-linf-0.05. Run: python eval.py --models net-b" in captured.err


def test_the_command_that_fills_a_level_has_the_seeds_that_are_stored(options: Any, lab: Any, capsys: Any) -> None:
    for seed in (1, 2):
        lab.pair("fitted", CLEAN, LOST, fit_seed=seed)
    with pytest.raises(UnknownNameError, match=r"--models fitted .* toy-noise-linf-0\.07 --seeds 1 2 --db"):
        mscr({**options, "models": ("fitted",), "epsilon": 0.07})


def test_noise_that_all_samples_share_is_told_where_one_model_is_asked(options: Any, lab: Any, capsys: Any) -> None:
    for model in options["compare"]:
        lab.pair(model, CLEAN, LOST, setting="toy-mscr-linf-shared")
    note = f"toy-mscr-linf-shared: {SHARED_DRAWS}."
    mscr(options)
    assert note in " ".join(capsys.readouterr().out.split())
    compare(options)
    assert note in " ".join(capsys.readouterr().out.split())
    for model in options["compare"]:
        lab.pair(model, CLEAN, LOST, setting="toy-mscr-linf-shared", fit_seed=1)  # their spread is in the interval
    mscr(options)
    assert SHARED_DRAWS not in " ".join(capsys.readouterr().out.split())


def test_a_separation_of_0_is_told_only_where_nothing_answers(options: Any, lab: Any, capsys: Any) -> None:
    """Such as that of the data before a label was mended."""
    for norm in ("linf", "l2"):
        nothing = Separation(norm=norm, min_distance=0.0, pair=(0, 1), num_points=8)
        lab.store.put_separation(nothing, dataset="toy", splits=("test",), data_fingerprint="before", norm=norm,
                                 space="as stored", pair_ids=("test/0", "test/1"))  # fmt: skip
    mscr(options)
    out = capsys.readouterr().out
    assert "toy in L2: MSCR is undefined" in out
    assert "toy in L∞: MSCR is undefined" not in out


@pytest.mark.parametrize(
    ("given", "message"), [("cluster_by", "--sample-table FILE"), ("sample_table", "--cluster-by")]
)
def test_clusters_need_a_table_and_a_column(options: Any, given: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        mscr({**options, given: Path("patients.csv")})


def test_two_models_are_compared_setting_by_setting(options: Any, capsys: Any) -> None:
    compare(options)
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines()[2:6]] == [
        ["toy", "accuracy"], ["toy-mscr-linf", "accuracy"], ["toy-mscr-linf", "MSCR"], ["toy-mscr-linf", "loss"],
    ]  # fmt: skip
    assert "McNemar, exact" in out
    assert "net-a less net-b" in out
    compare({**options, "as_json": True, "one_sided": True, "eval_settings": ("toy",)})
    (record,) = json.loads(capsys.readouterr().out)["results"]
    assert (record["p_value"], record["num_differing"], record["difference"]["ci_high"]) == (1.0, 0, None)


def test_a_model_that_guesses_on_clean_images_is_told_of_beside_what_it_loses(
    options: Any, lab: Any, capsys: Any
) -> None:
    lab.num_samples = 400
    even = np.arange(400) % 2 == 0
    lab.pair("net-b", np.arange(400) < 380, [np.arange(400) < 370])
    lab.pair("net-a", even, [even], setting="toy-mscr-linf")
    asked = {**options, "models": ("net-a",)}
    words = "what it loses tells nothing, since on 'toy' "
    mscr(asked)
    assert f"net-a on toy-mscr-linf: {words}" in " ".join(capsys.readouterr().out.split())
    mscr({**asked, "as_json": True})
    assert "predictions are one class" in json.loads(capsys.readouterr().out)["results"][0]["warning"]
    compare(options)
    out = " ".join(capsys.readouterr().out.split())
    assert f"net-a: {words}" in out
    assert f"net-b: {words}" not in out


def test_commands_are_options_of_db(command: Command, lab: Any, options: Any) -> None:
    done = command("db.py", "--mscr", "--compare", "net-a", "net-b", "--db-url", options["db_url"], "--confidence", 0.9)
    assert done.code == 0, done.err
    assert "90 % intervals" in done.out
    assert "inversion of the interval" in done.out
    refused = command("db.py", "--mscr", "--epsilon", 0.07, "--db-url", options["db_url"])
    assert (refused.code, refused.err.count("eval.py")) == (2, 1)


def test_clean_accuracy_of_another_size_is_named() -> None:
    def run(parent: str) -> Any:
        return SimpleNamespace(evaluation=SimpleNamespace(setting="toy-mscr-linf", dataset="toy"),
                               clean=SimpleNamespace(setting=parent))  # fmt: skip

    assert clean_parent_words([run("toy")]) is None
    assert "accuracy on toy@32px, not on toy" in (clean_parent_words([run("toy@32px")]) or "")


def test_few_fitted_models_are_said_to_tell_little(options: Any, lab: Any, capsys: Any) -> None:
    """Of two runs t(0.975, 1) / sqrt(2) = 8.985, of ten 0.7154: 12.6 times; one model, and five, need no such words."""
    assert "12.6 times" in (few_runs_words(2) or "")
    assert "3.5 times" in (few_runs_words(3) or "")
    assert few_runs_words(1) is few_runs_words(5) is None
    mscr(options)
    assert "tell little" not in capsys.readouterr().out
    for model in options["compare"]:
        lab.pair(model, CLEAN, np.roll(LOST, 1), fit_seed=1)
    for command in (mscr, compare):
        command(options)
        assert "2 runs tell little" in capsys.readouterr().out


def test_noise_that_clipping_shortens_is_said_to_be_shorter(options: Any, lab: Any, capsys: Any) -> None:
    mscr(options)
    assert "is shorter than its level" not in " ".join(capsys.readouterr().out.split())
    lab.pair("net-a", CLEAN, LOST, setting="toy-mscr-l2")
    mscr(options)
    out = " ".join(capsys.readouterr().out.split())
    assert "toy-mscr-l2: the noise is clipped to [0, 1] after it is drawn, so it is shorter than its level" in out
