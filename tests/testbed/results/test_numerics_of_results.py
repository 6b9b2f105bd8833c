"""Evaluations of different numerics are told apart wherever they are shown, and never joined in silence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from testbed.claim_language import parse_claim
from testbed.errors import DataError
from testbed.results import Precision, Run, evaluation_record, result_of
from testbed.results.claims import claim_rows
from testbed.results.corruption import corruption_grids
from testbed.results.corruption_baseline import baseline_of
from testbed.results.levels import Levels, answers
from testbed.results.numerics import arithmetic_words, names_with_numerics, several_numerics
from testbed.results.pairs import compare_models, pair_record
from testbed.results.records import comparison_records
from testbed.results.stored import complete_evaluations, model_names, stored_groups

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
LOST = np.array([1, 1, 1, 0, 0, 0, 0, 0], bool)
FP32 = {"dtype": "float32", "tf32": False, "device": "cpu", "batch_size": 32}
BF16 = {**FP32, "dtype": "bfloat16"}
FOG = "toy-c.fog.1_in-memory"


def names(lab: Any) -> list[str]:
    return list(model_names(stored_groups(lab.store, complete_evaluations(lab.store), lambda one: True)).values())


@pytest.mark.parametrize(("numerics", "words"), [
    (FP32, "float32 on cpu"),
    ({"dtype": "float32", "tf32": "convolutions", "device": "cuda"}, "float32, TF32 in convolutions, on cuda"),
    ({"dtype": "float32", "tf32": True, "device": "cuda"}, "float32, TF32, on cuda"),
    ({**BF16, "channels_last": True, "compiled": True}, "bfloat16, channels last, compiled, on cpu"),
    ({"device": "elsewhere"}, "elsewhere"),
    ({"device": "elsewhere", "dtype": "float32"}, "float32 elsewhere"),
    ({}, ""),
])  # fmt: skip
def test_numerics_in_words(numerics: dict[str, Any], words: str) -> None:
    assert arithmetic_words(numerics) == words


def test_one_arithmetic_is_not_named(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **FP32)
    lab.put("b", "toy", CLEAN, **{**FP32, "batch_size": 64})  # each model has a batch size of its own
    assert names(lab) == ["a", "b"]


def test_several_arithmetics_are_named_beside_all_models(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **FP32)
    lab.put("a", "toy", CLEAN, **BF16)
    lab.put("b", "toy", CLEAN, **FP32)
    assert names(lab) == ["a (float32 on cpu)", "a (bfloat16 on cpu)", "b (float32 on cpu)"]


def test_other_numerics_are_named_where_they_tell_two_results_apart(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **FP32)
    lab.put("a", "toy", CLEAN, **{**FP32, "batch_size": 64})
    lab.put("b", "toy", CLEAN, **FP32)
    assert names(lab) == ["a (batch size 32)", "a (batch size 64)", "b"]


def test_what_is_stored_beside_a_result_is_told_apart_from_it(lab: Any) -> None:
    shown = lab.put("a", "toy", CLEAN, **FP32)
    assert several_numerics(lab.store) == {}
    lab.put("a", "toy", CLEAN, **FP32, noise_seed=1)  # another run of the same numerics
    lab.put("b", "toy", CLEAN, **BF16)
    assert several_numerics(lab.store) == {}
    lab.put("a", "toy", CLEAN, **BF16)
    found = several_numerics(lab.store)
    assert [one["dtype"] for own in found.values() for one in own] == ["float32", "float32", "bfloat16"]
    assert names_with_numerics([shown], beside=found) == {shown.id: "a (float32 on cpu)"}
    assert names_with_numerics([shown]) == {shown.id: "a"}


def test_records_carry_the_numerics(lab: Any) -> None:
    shifted, clean = lab.pair("a", CLEAN, LOST, **BF16)
    assert evaluation_record(shifted)["numerics"] == {**BF16, "threads": 1}
    result = result_of([Run(seed=0, evaluation=shifted, clean=clean)])
    assert {one["numerics"]["dtype"] for one in comparison_records(result)} == {"bfloat16"}
    assert (result.name, replace(result, label="a (bfloat16 on cpu)").name) == ("a", "a (bfloat16 on cpu)")


def test_models_are_compared_arithmetic_by_arithmetic(lab: Any) -> None:
    for numerics, right in ((FP32, CLEAN), (BF16, LOST)):
        lab.put("a", "toy", right, **numerics)
        lab.put("b", "toy", CLEAN, **{**numerics, "batch_size": 64})
    lab.put("b", "toy", CLEAN, **{**FP32, "dtype": "float16"})  # which the other model does not have
    rows = compare_models(lab.store, ("a", "b"), Precision(), settings=(), datasets=())
    assert [(row.arithmetic, row.contrast.values) for row in rows] == [
        ("float32 on cpu", (75.0, 75.0)), ("bfloat16 on cpu", (37.5, 75.0)),
    ]  # fmt: skip
    assert [one["dtype"] for one in pair_record(rows[1])["numerics"]] == ["bfloat16", "bfloat16"]


def test_models_in_different_arithmetics_are_compared_only_where_there_are_no_others(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **FP32)
    lab.put("b", "toy", CLEAN, **BF16)
    (row,) = compare_models(lab.store, ("a", "b"), Precision(), settings=(), datasets=())
    assert row.arithmetic == "float32 on cpu and bfloat16 on cpu"
    lab.put("b", "toy", CLEAN, **{**FP32, "dtype": "float16"})
    with pytest.raises(DataError, match="'b' was evaluated on 'toy' with several numerics"):
        compare_models(lab.store, ("a", "b"), Precision(), settings=(), datasets=())


def test_a_perturbation_on_the_cpu_has_the_clean_parent_of_its_network(lab: Any) -> None:
    clean = lab.put("a", "toy", CLEAN, **FP32)
    lab.put("a", "toy", LOST, **BF16)
    lab.put("a", "toy-mscr-linf", LOST, **FP32, perturbed_on="cpu")
    ((run,),) = answers(lab.store, Levels()).groups
    assert run.clean.id == clean.id


def test_corruptions_perturbed_on_two_devices_are_one_model_under_them(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **FP32)
    lab.put("a", FOG, LOST, **FP32)
    lab.put("a", "toy-c.snow.1_in-memory", LOST, **FP32, perturbed_on="cpu")
    (found,) = corruption_grids(lab.store, Precision())
    assert [(model.name, len(model.groups)) for model in found.models] == [("a", 2)]
    lab.put("a", FOG, CLEAN, **FP32, perturbed_on="cpu")
    with pytest.raises(DataError, match=r"has 'toy-c.fog.1_in-memory' twice, with its perturbation computed on the"):
        corruption_grids(lab.store, Precision())


def test_grids_of_one_model_are_told_apart_whatever_cells_they_have(lab: Any) -> None:
    for numerics, setting in ((FP32, FOG), (BF16, "toy-c.snow.1_in-memory")):
        lab.put("a", "toy", CLEAN, **numerics)
        lab.put("a", setting, LOST, **numerics)
    lab.put("a", "toy", CLEAN, **{**FP32, "batch_size": 64})
    lab.put("a", "toy-c.frost.1_in-memory", LOST, **{**FP32, "batch_size": 64})
    (found,) = corruption_grids(lab.store, Precision())
    assert {model.name for model in found.models} == {
        "a (float32 on cpu, batch size 32)", "a (bfloat16 on cpu, batch size 32)", "a (float32 on cpu, batch size 64)"
    }  # fmt: skip


def test_each_model_is_measured_by_the_baseline_in_its_own_arithmetic(lab: Any) -> None:
    def put(model: str, **numerics: Any) -> None:
        lab.put(model, "toy", CLEAN, **numerics)
        lab.put(model, FOG, LOST, **numerics)

    for name, numerics in (("base", FP32), ("base", BF16), ("net", FP32), ("net", {**BF16, "batch_size": 64}),
                           ("net", {**FP32, "dtype": "float16"})):  # fmt: skip
        put(name, **numerics)
    (found,) = corruption_grids(lab.store, Precision())
    base = baseline_of(found, "base")
    assert base.errors is not None
    assert base.errors.source.endswith("in each model's own numerics")
    own = {model.evaluation.numerics["dtype"]: base.of(model) for model in found.models
           if model.evaluation.model == "net"}  # fmt: skip
    for dtype in ("float32", "bfloat16"):
        assert [one.evaluation.numerics["dtype"] for one in own[dtype].stored] == [dtype]
        assert own[dtype].errors is not None
    assert own["float16"].errors is None
    assert "base was evaluated with several numerics, none of them those of net (float16" in own["float16"].reason
    (itself,) = [
        model for model in found.models if model.evaluation.fingerprint == base.stored[1].evaluation.fingerprint
    ]
    assert base.of(itself).stored == (itself,)


def test_a_claim_is_answered_arithmetic_by_arithmetic(lab: Any) -> None:
    for numerics, right in ((FP32, CLEAN), (BF16, LOST)):
        lab.put("a", "toy", CLEAN, **numerics)
        lab.put("a", "toy-mscr-linf", right, **numerics)
    rows = claim_rows(lab.store, parse_claim("loss(toy-mscr-linf) <= 60%"), (), Precision(), per_class=False)
    assert [row.answers[""].value for row in rows] == [0.0, 0.5]
    assert [row.evaluation.numerics["dtype"] for row in rows] == ["float32", "bfloat16"]


def test_a_difference_is_within_one_arithmetic(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **FP32)
    lab.put("a", "toy-mscr-linf", LOST, **FP32)
    lab.put("a", "toy-mscr-l2", LOST, **BF16)
    claim = parse_claim("top1(toy-mscr-linf) - top1(toy-mscr-l2) <= 1%")
    with pytest.raises(Exception, match="in the same way"):
        claim_rows(lab.store, claim, (), Precision(), per_class=False)


def test_a_claim_on_a_perturbation_of_two_devices_is_refused(lab: Any) -> None:
    lab.put("a", "toy", CLEAN, **FP32)
    for facts in ({}, {"perturbed_on": "cpu"}):
        lab.put("a", "toy-mscr-linf", LOST, **FP32, **facts)
    with pytest.raises(DataError, match="computed on the device and on the CPU"):
        claim_rows(lab.store, parse_claim("top1(toy-mscr-linf) >= 1%"), (), Precision(), per_class=False)
