"""Where evaluations are listed, joined or drawn, those of different numerics stay apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plotting.drawing.run_table import run_table
from tests.laboratory import lab

from testbed.commands import exchange
from testbed.commands.definition import show_model
from testbed.commands.inspection import print_eval
from testbed.commands.overview import status
from testbed.errors import UnknownNameError
from testbed.results import store_comparison
from testbed.results.records import table

__all__ = ["lab"]

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
LOST = np.array([1, 1, 1, 0, 0, 0, 0, 0], bool)
FP32 = {"dtype": "float32", "tf32": False, "device": "cuda"}
BF16 = {**FP32, "dtype": "bfloat16"}
SEEDS = {"fit_seed": 0, "noise_seed": 0}


@pytest.fixture
def options(lab: Any) -> dict[str, Any]:
    return {"db_url": lab.url, "logdir": None, "as_json": False, "plugins": ()}


def test_unfinished_evaluations_of_several_arithmetics_are_told_apart(lab: Any, options: Any, capsys: Any) -> None:
    lab._start("a", "toy", np.atleast_2d(CLEAN), {**SEEDS, **FP32})
    status(options)
    assert "interrupted: a on toy" in capsys.readouterr().out
    lab._start("a", "toy", np.atleast_2d(CLEAN), {**SEEDS, **BF16})
    status(options)
    out = capsys.readouterr().out
    assert "interrupted: a (float32 on cuda) on toy" in out
    assert "interrupted: a (bfloat16 on cuda) on toy" in out


def test_what_is_shown_of_a_model_tells_its_arithmetics_apart(lab: Any, options: Any, capsys: Any) -> None:
    for numerics in (FP32, BF16):
        lab.put("a", "toy", CLEAN, **numerics)
    show_model({**options, "show_model": "a"})
    assert "a (bfloat16 on cuda) on toy, seed 0: complete" in capsys.readouterr().out
    print_eval({**options, "print_eval": ("a", "toy")})
    out = capsys.readouterr().out
    assert "computed in float32 on cuda" in out
    assert "computed in bfloat16 on cuda" in out


def test_two_batch_sizes_of_one_arithmetic_are_told_apart(lab: Any, options: Any, capsys: Any) -> None:
    for batch_size in (32, 64):
        lab.put("a", "toy", CLEAN, **FP32, batch_size=batch_size)
        lab._start("a", "toy-mscr-linf", np.atleast_2d(CLEAN), {**SEEDS, **FP32, "batch_size": batch_size})
    print_eval({**options, "print_eval": ("a", "toy")})
    status(options)
    out = capsys.readouterr().out
    for batch_size in (32, 64):
        assert f"computed in float32 on cuda, batch size {batch_size}\n" in out
        assert f"interrupted: a (batch size {batch_size}) on toy-mscr-linf\n" in out


class Nothing:
    """A registry that knows no model: all evaluations come from elsewhere."""

    def model(self, *names: str) -> Any:
        raise UnknownNameError("no such model")


def test_what_is_taken_over_is_compared_in_its_own_numerics(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **FP32, channels_last=True)
    shifted = lab.put("a", "toy-mscr-linf", LOST, **FP32, perturbed_on="cpu")
    exchange._compare_one(shifted, lab.store, Nothing())
    assert shifted.comparisons() == {}
    clean = lab.put("a", "toy", CLEAN, **FP32)
    exchange._compare_one(shifted, lab.store, Nothing())
    assert list(shifted.comparisons()) == [clean.id]


def test_a_perturbation_on_the_cpu_is_drawn_with_its_clean_evaluation(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **BF16)
    clean = lab.put("a", "toy", CLEAN, **FP32)
    shifted = lab.put("a", "toy-mscr-linf", LOST, **FP32, perturbed_on="cpu")
    store_comparison(lab.store, shifted, clean)
    found = run_table(table(lab.store), "uniform-linf").sort_values("epsilon")
    assert list(found["accuracy"]) == [75, 37.5]
    assert list(found["clean_accuracy"]) == [75, 75]
