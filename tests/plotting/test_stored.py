"""Which evaluations a figure takes, by what the store knows of them, and what it says where there are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plotting.drawing.selection import Selection
from plotting.drawing.stored import Stored, stored
from tests.plotting.conftest import EPSILON_MIN, MATRIX, Filler

from testbed.errors import TestbedError
from testbed.store import open_store
from testbed.store.store import Store

LINF = Selection(norm="linf")
ONE_RUN = {0.0: [[90]], EPSILON_MIN: [[80, 82]]}


def accuracies(found: Stored) -> dict[tuple[str, float, int], tuple[float, float]]:
    columns = ["model", "epsilon", "seed", "accuracy", "clean_accuracy"]
    rows = found.table[columns].itertuples(index=False)
    return {(row[0], row[1], row[2]): (row[3], row[4]) for row in rows}


def test_a_row_for_every_run_with_the_clean_accuracy_of_the_same_run(matrix: Path) -> None:
    with open_store(matrix) as store:
        found = stored(store, LINF)
    expected = {
        (model, epsilon, seed): (sum(draws) / len(draws), right[0.0][seed][0])
        for model, right in MATRIX.items()
        for epsilon, runs in right.items()
        for seed, draws in enumerate(runs)
    }
    assert accuracies(found) == expected
    assert found.epsilon_min == EPSILON_MIN


def test_models_come_in_the_order_of_their_training_noise(matrix: Path) -> None:
    with open_store(matrix) as store:
        found = stored(store, LINF)
    assert found.models == ["forest", "forest-mscr", "forest-noise"]
    assert found.model_by_training_level() == {0.0: "forest", EPSILON_MIN: "forest-mscr", 0.01: "forest-noise"}


def test_runs_that_differ_in_their_noise_alone_share_one_clean_evaluation(filler: Filler) -> None:
    filler.runs(filler.model("net"), {0.0: [[90]], EPSILON_MIN: [[80], [82]]}, is_fitted=False)
    found = stored(filler.store, LINF)
    assert accuracies(found) == {
        ("net", 0.0, 0): (90, 90), ("net", EPSILON_MIN, 0): (80, 90), ("net", EPSILON_MIN, 1): (82, 90),
    }  # fmt: skip
    assert [run.clean and run.clean.setting for run in found.runs["net", EPSILON_MIN]] == ["points", "points"]


def test_models_fitted_on_other_noise_are_left_out(filler: Filler) -> None:
    noises: dict[str, dict[str, Any]] = {"other-norm": {"norm": "l2"}, "shared": {"is_shared": True}, "same": {}}
    for name, noise in noises.items():
        filler.runs(filler.model(name, level=0.01, **noise), ONE_RUN)
    assert stored(filler.store, LINF).models == ["same"]


def test_only_models_that_are_asked_for_are_taken(matrix: Path) -> None:
    with open_store(matrix) as store:
        assert stored(store, Selection(norm="linf", models=("*-mscr", "forest"))).models == ["forest", "forest-mscr"]


def test_stale_evaluations_are_left_out(filler: Filler) -> None:
    filler.runs(filler.model("net"), ONE_RUN)
    filler.runs(filler.model("net", level=0.5), {0.0: [[50]], EPSILON_MIN: [[40, 40]]})  # a new version of the model
    found = stored(filler.store, LINF)
    assert accuracies(found) == {("net", 0.0, 0): (50, 50), ("net", EPSILON_MIN, 0): (40, 50)}
    assert len(found.table) == 2


def test_noise_that_is_not_asked_for_is_told_with_the_command_that_adds_it(matrix: Path) -> None:
    with open_store(matrix) as store, pytest.raises(TestbedError) as error:
        stored(store, Selection(norm="l2", is_shared=True, models=("forest*",)))
    assert str(error.value) == (
        f"sqlite:///{matrix} holds no complete evaluation by forest* under uniform-l2-shared noise with its clean "
        "parent. Evaluate some: python eval.py --models 'forest*' --eval-settings points-mscr-l2-shared --db-url "
        f"sqlite:///{matrix} Stored is uniform-linf noise: see --norm and --shared."
    )


def test_an_empty_store_is_told_with_a_command_that_runs(database: Path) -> None:
    Store.open(database).close()
    with (
        open_store(database) as store,
        pytest.raises(TestbedError, match="--models digits-resnet --eval-settings digits-"),
    ):
        stored(store, LINF)


def test_several_data_sets_are_not_mixed(filler: Filler) -> None:
    for dataset in ("points", "more"):
        filler.runs(filler.model("net"), ONE_RUN, dataset=dataset)
    with pytest.raises(TestbedError, match=r"several values of dataset: more, points. Choose one with --dataset"):
        stored(filler.store, LINF)
    assert stored(filler.store, Selection(norm="linf", dataset="more")).dataset == "more"


def test_several_numbers_of_samples_are_not_mixed(filler: Filler) -> None:
    filler.runs(filler.model("net"), ONE_RUN)
    replace(filler, n=50).runs(filler.model("net"), {0.0: [[40]], EPSILON_MIN: [[20, 30]]})
    with pytest.raises(TestbedError, match=r"several values of n: 50, 100. Choose one with --samples"):
        stored(filler.store, LINF)
    found = stored(filler.store, Selection(norm="linf", num_samples=50))
    assert accuracies(found) == {("net", 0.0, 0): (80, 80), ("net", EPSILON_MIN, 0): (50, 80)}


def test_numerics_are_not_mixed(filler: Filler) -> None:
    for numerics in ("float32", "bfloat16"):
        filler.runs(filler.model("net"), ONE_RUN, numerics=numerics)
    with pytest.raises(
        TestbedError, match="net at noise level 0 is stored with several values of numerics_fingerprint"
    ):
        stored(filler.store, LINF)


def test_two_models_of_one_training_level_are_told(filler: Filler) -> None:
    for name in ("forest", "1-nn"):
        filler.runs(filler.model(name), ONE_RUN)
    with pytest.raises(TestbedError, match=r"1-nn and forest were all fitted at noise level 0. .* --models '1-nn\*'"):
        stored(filler.store, LINF).model_by_training_level()


def test_what_is_half_of_the_separation_is_told_where_it_is_missing(filler: Filler) -> None:
    filler.runs(filler.model("net"), {0.0: [[90]], 0.01: [[80]]})
    found = stored(filler.store, LINF)
    with pytest.raises(
        TestbedError, match=r"Evaluate it: python eval.py --models net --eval-settings points-mscr-linf "
    ):
        found.require_separation()


def test_captions_say_n_draws_runs_and_the_separation(filler: Filler) -> None:
    filler = replace(filler, test_fraction=0.2)
    filler.runs(filler.model("net"), {0.0: [[90], [91]], EPSILON_MIN: [[80, 80], [80, 80]], 0.01: [[80]]})
    found = stored(filler.store, LINF)
    assert found.noise_words == "uniform L∞ noise"
    assert found.sample_words == (
        "n = 100 samples, another random 20 % in every run, 1 to 2 draws of the noise, 1 to 2 runs"
    )
    assert found.separation_sentence == (
        " ε$_{min}$ = 0.004 is half of the minimal class separation 0.008 of all 500 samples (all)."
    )
    assert found.unit == "units of the data"
    assert found.resplit == pytest.approx(0.25)
