"""Models on settings as points: each model once in each way, runs together, means whole or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import select, update
from tests.laboratory import Lab

from testbed.errors import UnknownNameError
from testbed.metrics.intervals import clopper_pearson
from testbed.model_types import PublishedType
from testbed.records import ModelVersion, PublishedResult
from testbed.results import accuracies_over_runs
from testbed.results.entries import Way, entry_labels
from testbed.results.points import ENTRY, POINT, model_points, side_by_side
from testbed.store.published_models import put_types
from testbed.store.schema import evaluations, model_versions

RIGHT = np.array([1, 1, 1, 0] * 2)


def published(model: str, setting: str, value: float | None, **changes: Any) -> PublishedResult:
    content = {"source": "paper", "source_sha256": "0" * 64, "metric": "top1", "protocol": "theirs"} | changes
    return PublishedResult(model=model, eval_setting=setting, value=value, **content)


def put(lab: Lab, *results: PublishedResult) -> None:
    lab.store.put_published(results)


def values(points: pd.DataFrame, setting: str) -> dict[str, float]:
    rows = points[points["eval_setting"] == setting]
    return dict(zip(rows["entry"], rows["value"], strict=True))


def test_a_row_is_a_model_on_a_setting_with_what_is_known_of_both(lab: Lab) -> None:
    lab.put("net", "toy", RIGHT)
    put(lab, published("resnet50.a1_in1k", "val", 80.5, input_size=224, flag="odd"))
    points = model_points(lab.store, ["toy", "val"], sources=["paper"])
    assert tuple(points.columns) == ENTRY + POINT
    own, theirs = points.astype(object).where(points.notna(), None).to_dict("records")
    assert (own["entry"], own["label_space"], own["source"], own["is_own"]) == ("net", "two", None, True)
    assert (own["value"], own["n"], own["method"], own["model_type"]) == (75, 8, "exact and mid-p", None)
    assert own["ci_low"] < 75 < own["ci_high"]
    assert (theirs["entry"], theirs["source"], theirs["input_size"]) == ("resnet50.a1_in1k", "paper", 224)
    assert (theirs["model_type"], theirs["family"], theirs["flag"]) == ("STANDARD", "resnet", "odd")
    low, high, _ = clopper_pearson(0.805 * 50_000, 50_000)
    assert (theirs["n"], theirs["ci_low"], theirs["ci_high"]) == (50_000, pytest.approx(100 * low), 100 * high)


def test_a_setting_that_nobody_declares_has_neither_n_nor_interval(lab: Lab) -> None:
    put(lab, published("a", "their-own-set", 50.0))
    (row,) = model_points(lab.store, ["their-own-set"], sources=["paper"]).to_dict("records")
    assert row["value"] == 50
    assert all(pd.isna(row[name]) for name in ("n", "ci_low", "ci_high", "method"))


def test_attacks_on_a_tenth_of_the_images_have_the_n_of_a_tenth(lab: Lab) -> None:
    put(lab, published("tenth", "pgd.linf.eps2", 12.34), published("all", "pgd.linf.eps2", 12.342))
    points = model_points(lab.store, ["pgd.linf.eps2"], sources=["paper"])
    assert dict(zip(points["entry"], points["n"], strict=True)) == {"tenth": 5_000, "all": 50_000}


def test_corruptions_on_a_tenth_of_the_images_have_the_n_of_a_tenth_at_all_severities(lab: Lab) -> None:
    names = [f"imagenet-c.fog.{severity}_in-memory" for severity in range(1, 6)]
    put(lab, *(published("tenth", name, 50.0 + severity / 50) for severity, name in enumerate(names)))
    put(lab, *(published("by-chance", name, 50.0) for name in names[:4]), published("by-chance", names[4], 50.002))
    put(lab, *(published("few", name, 50.0) for name in names[:4]))

    def sizes(*settings: str) -> dict[str, int]:
        points = model_points(lab.store, settings, sources=["paper"])
        return {str(entry): one.pop() for entry, one in points.groupby("entry")["n"].agg(set).items()}

    assert sizes(*names) == {"tenth": 5_000, "by-chance": 50_000, "few": 50_000}
    assert sizes(names[0]) == sizes(*names)  # whichever others are asked for
    assert sizes("imagenet-c.fog_in-memory") == {"tenth": 5_000, "by-chance": 50_000}


def test_stale_incomplete_and_undefined_numbers_are_no_points(lab: Lab) -> None:
    lab.put("net", "toy", RIGHT)
    lab.put("changed", "toy", RIGHT)
    lab.store.put_model(ModelVersion(name="changed", label_space="two", fingerprint="f" * 64, spec={}))
    today = select(model_versions.c.id).where(model_versions.c.fingerprint == "f" * 64).scalar_subquery()
    elsewhere = lab.put("another", "toy-noise-linf-0.05", RIGHT)
    begun = lab.put("begun", "toy", RIGHT)
    with lab.store.writing() as connection:
        of_today = update(evaluations).where(evaluations.c.id == elsewhere.id).values(model_version_id=today)
        connection.execute(of_today)
        connection.execute(update(evaluations).where(evaluations.c.id == begun.id).values(status="running"))
    put(lab, published("a", "toy", None), published("b", "toy", 50.0))
    assert set(model_points(lab.store, ["toy"], sources=["paper"])["entry"]) == {"net", "b"}


def test_runs_of_a_model_are_one_point_with_the_interval_of_runs(lab: Lab) -> None:
    runs = [lab.put("net", "toy-noise-linf-0.05", right, fit_seed=seed, noise_seed=seed)
            for seed, right in enumerate([RIGHT, np.ones(8), np.roll(RIGHT, 1)])]  # fmt: skip
    (row,) = model_points(lab.store, ["toy-noise-linf-0.05"]).to_dict("records")
    wanted = accuracies_over_runs(runs)["top1"]
    assert (row["value"], row["ci_low"], row["ci_high"], row["method"]) == (
        wanted.value, wanted.ci_low, wanted.ci_high, wanted.method,
    )  # fmt: skip
    assert row["value"] == pytest.approx(100 * (0.75 + 1 + 0.75) / 3)


def test_precisions_are_entries_and_devices_only_where_both_evaluated_a_setting(lab: Lab) -> None:
    lab.put("net", "toy", RIGHT, dtype="float32", device="cpu")
    lab.put("net", "toy-noise-linf-0.05", RIGHT, dtype="float32", device="cuda")
    assert set(model_points(lab.store, ["toy", "toy-noise-linf-0.05"])["entry"]) == {"net"}
    lab.put("net", "toy", np.ones(8), dtype="bfloat16", device="cuda")
    points = model_points(lab.store, ["toy", "toy-noise-linf-0.05"])
    assert values(points, "toy") == {"net (float32)": 75, "net (bfloat16)": 100}
    assert values(points, "toy-noise-linf-0.05") == {"net (float32)": 75}
    lab.put("net", "toy", np.zeros(8), dtype="float32", device="cuda")
    assert values(model_points(lab.store, ["toy"]), "toy") == {
        "net (float32 on cpu)": 75, "net (float32 on cuda)": 0, "net (bfloat16 on cuda)": 100,
    }  # fmt: skip


def test_a_mean_needs_all_its_settings_and_takes_a_part_of_the_images_for_a_gap(lab: Lab) -> None:
    names = ["pgd.linf.eps0.5", "pgd.linf.eps2", "pgd.l2.eps0.1", "pgd.l2.eps0.5"]
    put(lab, *(published("whole", name, value) for name, value in zip(names, (10.001, 20, 30, 40), strict=True)))
    put(lab, *(published("gap", name, 10.001) for name in names[:3]))
    put(
        lab,
        *(published("filled", name, 10.001) for name in names[:3]),
        published("filled", f"{names[3]}_10percent", 50),
    )
    points = model_points(lab.store, ["avg_pgd", *names], sources=["paper"])
    mean = points[points["eval_setting"] == "avg_pgd"].set_index("entry")
    assert mean["value"].to_dict() == {"whole": pytest.approx(25.00025), "filled": pytest.approx(20.00075)}
    assert mean["n"].to_dict() == {"whole": 5_000, "filled": 5_000}
    parts = points[(points["entry"] == "whole") & (points["eval_setting"] != "avg_pgd")]
    assert mean.loc["whole", "ci_low"] == pytest.approx(parts["ci_low"].mean())
    assert mean.loc["whole", "ci_high"] == pytest.approx(parts["ci_high"].mean())
    assert mean.loc["whole", "method"] == "means of the bounds of 4 settings"


def test_a_setting_on_part_of_its_images_goes_by_its_own_name_alone(lab: Lab) -> None:
    put(lab, published("a", "pgd.linf.eps2_10percent", 50), published("a", "val", 90.0))
    with pytest.raises(UnknownNameError, match=r"setting 'pgd.linf.eps2'\. There is 'pgd.linf.eps2_10p.*', on part"):
        model_points(lab.store, ["val", "pgd.linf.eps2"], sources=["paper"])
    put(lab, published("b", "pgd.linf.eps2", 40.0))
    points = model_points(lab.store, ["pgd.linf.eps2", "pgd.linf.eps2_10percent"], sources=["paper"])
    assert points[["entry", "eval_setting"]].to_numpy().tolist() == [
        ["b", "pgd.linf.eps2"], ["a", "pgd.linf.eps2_10percent"],
    ]  # fmt: skip


def test_a_mean_over_severities_of_own_results(lab: Lab) -> None:
    for severity in range(1, 6):
        lab.put("net", f"toy-c.fog.{severity}_in-memory", np.arange(8) < 8 - severity)
    assert values(model_points(lab.store, ["toy-c.fog_in-memory"]), "toy-c.fog_in-memory") == {
        "net": pytest.approx(100 * (7 + 6 + 5 + 4 + 3) / 40)
    }


def test_frames_have_their_accuracy_over_whole_neighbourhoods(lab: Lab) -> None:
    put(lab, published("a", "videos", 70.0), published("a", "videos", 50.0, metric="pm10"),
        published("a", "videos", 30.0, metric="top5"), published("a", "val", 90.0))  # fmt: skip
    points = model_points(lab.store, ["videos", "val"], sources=["paper"])
    assert (values(points, "videos"), values(points, "val")) == ({"a": 50}, {"a": 90})


def test_two_settings_side_by_side_hold_who_has_both(lab: Lab) -> None:
    lab.put("net", "toy", RIGHT)
    lab.put("net", "toy-noise-linf-0.05", np.ones(8))
    lab.put("other", "toy", RIGHT)
    points = model_points(lab.store, ["toy", "toy-noise-linf-0.05"])
    (row,) = side_by_side(points, "toy", "toy-noise-linf-0.05").to_dict("records")
    assert list(row) == [*ENTRY, "x", "x_low", "x_high", "x_n", "y", "y_low", "y_high", "y_n"]
    assert (row["entry"], row["x"], row["y"], row["y_high"], row["x_n"]) == ("net", 75, 100, 100, 8)


def test_a_setting_against_itself_is_a_diagonal(lab: Lab) -> None:
    lab.put("net", "toy", RIGHT)
    (row,) = side_by_side(model_points(lab.store, ["toy"]), "toy", "toy").to_dict("records")
    assert (row["x"], row["y"]) == (75, 75)


def test_labels_say_no_more_than_tells_models_apart() -> None:
    def way(model: str, source: str = "", **changes: Any) -> Way:
        content: dict[str, Any] = {"label_space": "", "protocol": "", "input_size": 0, "numerics": ""} | changes
        return Way(model=model, source=source, **content)

    ways = [
        way("a"), way("b", label_space="digits"), way("b", label_space="letters"), way("a", "paper", input_size=224),
        way("a", "paper", input_size=384), way("c", "paper", input_size=224), way("c", "other", input_size=64),
        way("d", "paper", protocol="x"), way("d", "paper", protocol="y"), way("a (paper, 224 px)"),
    ]  # fmt: skip
    assert entry_labels(ways) == [
        "a", "b (digits)", "b (letters)", "a (paper, 224 px)", "a (paper, 384 px)", "c (paper)", "c (other)", "d (x)",
        "d (y)", "a (paper, 224 px) #2",
    ]  # fmt: skip


def test_models_are_chosen_by_name_label_or_glob_and_keep_their_labels(lab: Lab) -> None:
    put(
        lab, *(published("net", "val", 70.0 + size, input_size=size) for size in (1, 2)), published("x[1]", "val", 50.0)
    )

    def chosen(*models: str) -> list[str]:
        return sorted(model_points(lab.store, ["val"], sources=["paper"], models=models)["entry"])

    assert chosen("net") == ["net (1 px)", "net (2 px)"]
    assert chosen("net (2 px)", "x[[]1]") == ["net (2 px)", "x[1]"]
    assert chosen("x[1]") == ["x[1]"]
    with pytest.raises(UnknownNameError, match=r"of the model 'nett' on these settings\. Did you mean net"):
        chosen("net", "nett")


def test_what_is_not_stored_is_told(lab: Lab) -> None:
    lab.put("net", "toy", RIGHT)
    put(lab, published("a", "pgd.linf.eps2", 1.0))
    with pytest.raises(UnknownNameError, match=r"eps2'\. It was published by paper: add --with-published paper\."):
        model_points(lab.store, ["pgd.linf.eps2"])
    with pytest.raises(UnknownNameError, match=r"Nothing is stored of the setting 'toi'\. Did you mean toy\?"):
        model_points(lab.store, ["toy", "toi"])
    with pytest.raises(
        UnknownNameError, match=r"'avg_pgd' is the mean of 4 settings, but .* of 3 of them, such as 'pgd"
    ):
        model_points(lab.store, ["avg_pgd"], sources=["paper"])
    with pytest.raises(UnknownNameError, match=r"no published source 'papers'\. Did you mean paper\?"):
        model_points(lab.store, ["toy"], sources=["papers"])


def test_a_hostile_name_is_kept_as_it_is(lab: Lab) -> None:
    names = ["<script>alert(1)</script>", "x" * 300, "\N{PILE OF POO}", "$x_1$ %&,\"'\\", "a\nb"]
    put(lab, *(published(name, "val", 50.0) for name in names))
    assert set(model_points(lab.store, ["val"], sources=["paper"])["entry"]) == set(names)


def test_types_of_published_models_come_from_lists_before_names(lab: Lab) -> None:
    put(lab, published("a", "val", 50.0), published("resnet50.a1_in1k", "val", 60.0))
    with lab.store.writing() as connection:
        put_types(connection, [
            PublishedType(source=source, source_sha256="0" * 64, model="resnet50.a1_in1k", model_type=told)
            for source, told in (("paper", "MORE_DATA"), ("another", "LP_ADV"))
        ])  # fmt: skip
    points = model_points(lab.store, ["val"], sources=["paper"]).set_index("entry")
    assert points["model_type"].fillna("").to_dict() == {"a": "", "resnet50.a1_in1k": "MORE_DATA"}
