"""Is the loss real: the rows of a store, corrected for their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.errors import DataError
from testbed.metrics.comparison import compare
from testbed.records import Separation
from testbed.results import Precision
from testbed.results.levels import Levels, answers
from testbed.results.mscr import mscr_record, mscr_rows, undefined_levels

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
LOST = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]], bool)


@pytest.fixture
def big(lab: Any) -> Any:
    """Of 400 samples: 'lossy' loses 30 of 390, 'gaining' recovers 30, 'steady' flips as many both ways."""
    lab.num_samples = 400
    clean = np.arange(400) < 350
    lab.pair("lossy", clean, [np.arange(400) < 320] * 2)
    lab.pair("gaining", clean, [np.arange(400) < 380] * 2)
    lab.pair("steady", clean, [(np.arange(400) >= 4) & (np.arange(400) < 354)] * 2)
    return lab


def rows_of(lab: Any, precision: Precision | None = None, **asked: Any) -> dict[str, Any]:
    rows = mscr_rows(answers(lab.store, Levels(**asked)).groups, precision or Precision())
    return {row.evaluation.model: row for row in rows}


def test_values_are_those_of_the_metrics(lab: Any) -> None:
    shifted, clean = lab.pair("net", CLEAN, LOST)
    row = rows_of(lab)["net"]
    for name, value in compare(CLEAN, LOST).items():
        assert row.metrics[name] == value
    top1 = {value.name: value for value in (*clean.metrics(), *shifted.metrics())}
    assert row.metrics["clean_accuracy"].value == pytest.approx(75)
    assert row.metrics["robust_accuracy"].value == pytest.approx(top1["top1"].value)
    assert row.metrics["robust_accuracy"].ci_low == pytest.approx(top1["top1"].ci_low)
    worst = row.metrics["worst_class_accuracy"]
    assert (worst.value, worst.detail["class"], worst.n) == (pytest.approx(25), "odd", 4)
    assert row.accuracy_change.value == pytest.approx(100 * (5 / 16 - 6 / 8))
    assert row.num_fits == 1


def test_verdict_is_what_the_interval_excludes(big: Any) -> None:
    rows = rows_of(big)
    assert {name: row.verdict for name, row in rows.items()} == {
        "lossy": "loss", "gaining": "gain", "steady": "not shown",
    }  # fmt: skip
    assert rows["lossy"].accuracy_change.ci_high < 0 < rows["gaining"].accuracy_change.ci_low


def test_intervals_of_the_change_hold_together(big: Any) -> None:
    """With exact tails: the corrected level alone would not do."""
    alone = rows_of(big, Precision(confidence=1 - 0.05 / 3), models=("steady",))["steady"]
    together = rows_of(big)["steady"]
    assert together.accuracy_change.ci_low == pytest.approx(alone.accuracy_change.ci_low, abs=0.5)
    assert "exact" in together.accuracy_change.method
    assert "exact" not in alone.accuracy_change.method
    assert together.metrics["mscr"].ci_low > alone.metrics["mscr"].ci_low  # each for itself


def test_one_sided_has_the_bound_that_matters(big: Any) -> None:
    row = rows_of(big, Precision(is_one_sided=True))["lossy"]
    assert row.metrics["loss"].ci_low == 0
    assert row.metrics["mscr"].ci_high is None
    assert row.metrics["clean_accuracy"].ci_high == 100
    assert row.verdict == "loss"
    assert rows_of(big, Precision(is_one_sided=True))["gaining"].verdict == "not shown"  # asks for a loss alone


def test_clusters_widen_what_they_share(big: Any) -> None:
    patients = {f"test/{index}": f"p{index // 10}" for index in range(400)}
    plain = rows_of(big)["lossy"].metrics["loss"]
    clustered = rows_of(big, Precision(cluster_by="patient", clusters=patients))["lossy"].metrics["loss"]
    assert clustered.value == pytest.approx(plain.value)
    assert clustered.ci_high - clustered.ci_low > 1.5 * (plain.ci_high - plain.ci_low)


def test_no_image_right_is_undefined_with_a_reason(lab: Any) -> None:
    lab.pair("net", np.zeros(8), LOST)
    row = rows_of(lab)["net"]
    assert row.metrics["mscr"].value is None
    assert row.metrics["mscr"].reason == "no image is right when clean"
    assert row.verdict == "not shown"


def test_runs_that_fit_a_model_have_the_published_interval(lab: Any) -> None:
    for seed in range(3):
        lab.pair("net", CLEAN, LOST ^ (np.arange(8) == seed), fit_seed=seed, noise_seed=seed)
    row = rows_of(lab)["net"]
    assert (row.num_fits, len(row.runs)) == (3, 3)
    assert row.metrics["mscr_published_interval"].value == pytest.approx(row.metrics["mscr"].value)
    assert mscr_record(row, None)["num_fitted_models"] == 3


def test_other_numerics_are_other_rows(lab: Any) -> None:
    lab.pair("net", CLEAN, LOST)
    lab.put("net", "toy", CLEAN, threads=2)
    lab.put("net", "toy-mscr-linf", LOST, threads=2)
    groups = answers(lab.store, Levels()).groups
    assert [len(group) for group in groups] == [1, 1]
    assert [group[0].clean.numerics["threads"] for group in groups] == [1, 2]


def test_models_data_sets_and_norms_are_chosen(lab: Any) -> None:
    lab.pair("net-a", CLEAN, LOST)
    lab.pair("net-b", CLEAN, LOST, setting="toy-mscr-l2")
    assert list(rows_of(lab, models=("net-*",))) == ["net-a", "net-b"]
    assert list(rows_of(lab, models=("*-a",))) == ["net-a"]
    assert list(rows_of(lab, norms=("l2",))) == ["net-b"]
    assert list(rows_of(lab, datasets=("other",))) == []


def test_another_level_is_answered_where_it_is_stored(lab: Any) -> None:
    lab.pair("net", CLEAN, LOST)
    lab.pair("net", CLEAN, LOST, setting="toy-noise-linf-0.05")
    assert rows_of(lab, epsilon=0.05)["net"].evaluation.setting == "toy-noise-linf-0.05"
    assert rows_of(lab, epsilon=0.1)["net"].evaluation.setting == "toy-mscr-linf"  # the same level under another name
    assert answers(lab.store, Levels(epsilon=0.05)).missing == {}


def test_another_level_that_is_not_stored_is_missing_by_setting(lab: Any) -> None:
    lab.pair("net-a", CLEAN, LOST)
    lab.pair("net-b", CLEAN, LOST, setting="toy-mscr-l2")
    lab.put("net-c", "toy", CLEAN)
    lab.pair("net-d", CLEAN, LOST, setting="toy-noise-linf-0.05")
    found = answers(lab.store, Levels(epsilon=0.05))
    assert [group[0].evaluation.model for group in found.groups] == ["net-d"]
    assert found.missing == {"toy-noise-linf-0.05": ["net-a", "net-c"], "toy-noise-l2-0.05": ["net-b"]}
    assert answers(lab.store, Levels(epsilon=0.05, norms=("l1",), models=("net-d",))).missing == {
        "toy-noise-l1-0.05": ["net-d"]
    }


def test_a_level_is_missing_in_the_kind_of_noise_and_the_runs_that_are_stored(lab: Any) -> None:
    for seed in (0, 3):
        lab.pair("net", CLEAN, LOST, setting="toy-mscr-linf-shared", fit_seed=seed)
    found = answers(lab.store, Levels(epsilon=0.05))
    assert found.missing == {"toy-noise-linf-0.05-shared": ["net"]}
    assert found.seeds == (0, 3)


def test_without_a_clean_evaluation_nothing_is_compared(lab: Any) -> None:
    lab.put("net", "toy-mscr-linf", LOST)
    found = answers(lab.store, Levels())
    assert (found.groups, found.missing) == ([], {"toy-mscr-linf": ["net"]})


@pytest.mark.parametrize(
    ("level", "message"), [(0.0, "positive"), (-1.0, "positive"), (0.12345678, "Ask for 0.123457")]
)
def test_levels_that_have_no_name_are_refused(level: float, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Levels(epsilon=level)


def test_separation_of_0_leaves_mscr_undefined(lab: Any) -> None:
    lab.store.put_separation(
        Separation(norm="l2", min_distance=0.0, pair=(2, 5), num_points=8), dataset="toy", splits=("test",), norm="l2",
        data_fingerprint="f", space="as stored", pair_ids=("test/2", "test/5"),
    )  # fmt: skip
    (found,) = undefined_levels(lab.store)
    assert (found["dataset"], found["norm"]) == ("toy", "l2")
    assert "is 0: test/2 and test/5 are equal" in found["reason"]
