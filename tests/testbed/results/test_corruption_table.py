"""The report on common corruptions: rows, means, marks and baselines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.laboratory import Lab

from testbed.metrics.corruption import COMMON, EXTRA, RELATIVE
from testbed.results import Precision
from testbed.results.corruption import corruption_grids
from testbed.results.corruption_choice import ON_DISK
from testbed.results.corruption_record import report_record
from testbed.results.corruption_report import MEAN, ON_COMMON, CorruptionReport, corruption_report
from testbed.store.store import Store

N = 40
CLEAN = np.arange(N) < 36


@pytest.fixture
def big(lab: Any) -> Any:
    lab.num_samples = N
    return lab


def put(
    lab: Any, model: str, names: Any, lost: int, clean: Any = CLEAN, severities: Any = range(1, 6), **seeds: int
) -> None:
    """Of the images right when clean `lost` more are wrong at each severity."""
    lab.put(model, "toy", clean, **seeds)
    for name in names:
        for severity in severities:
            right = clean & (np.arange(N) >= lost * severity)
            lab.put(model, f"toy-c.{name}.{severity}_in-memory", right, **seeds)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """'net' and 'base' under all of the 15, the first under the other four, too: errors of 4 + s and 4 + 2 s of 40."""
    with Store.open(tmp_path_factory.mktemp("whole") / "lab.sqlite") as store:
        lab = Lab(store, num_samples=N)
        put(lab, "net", (*COMMON, *EXTRA), 1)
        put(lab, "base", COMMON, 2)
        yield lab


def report(lab: Any, precision: Precision | None = None, **asked: Any) -> CorruptionReport:
    (found,) = corruption_grids(lab.store, precision or Precision())
    made = corruption_report(found, precision or Precision(), **asked)
    assert made is not None
    return made


def test_rows_are_in_order_and_over_the_severities_that_are_there(big: Any) -> None:
    put(big, "net", ("zebra", "saturate", "fog", "snow"), 2)
    put(big, "net", ("frost",), 2, severities=(2,))
    found = report(big)
    assert dict(found.rows) == {"snow": [1, 2, 3, 4, 5], "frost": [2], "fog": [1, 2, 3, 4, 5],
                                "saturate": [1, 2, 3, 4, 5], "zebra": [1, 2, 3, 4, 5]}  # fmt: skip
    assert found.averaged == ["snow", "frost", "fog"]
    (column,) = found.columns
    assert column.relative["fog"].value == pytest.approx(100 * (1 - 6 / 36))
    assert column.relative["frost"].value == pytest.approx(100 * (1 - 4 / 36))
    assert column.mean[RELATIVE].value == pytest.approx(100 * (1 - (2 * 30 + 4) / (11 * 36)))
    assert found.not_compared == "there is one model"


def test_without_any_of_the_15_the_mean_is_over_all_that_are_there(big: Any) -> None:
    put(big, "net", EXTRA[:2], 2)
    assert report(big).averaged == list(EXTRA[:2])


def test_models_are_marked_and_compared_on_what_both_have_right(big: Any) -> None:
    put(big, "net-a", ("fog",), 1)
    put(big, "net-b", ("fog",), 5, clean=np.arange(N) < 20)
    found = report(big)
    assert found.marks["fog"] == found.marks[MEAN] == ["best", ""]
    a, b = (column.mean for column in found.columns)
    assert a[RELATIVE].value == pytest.approx(100 * (1 - 3 / 36))
    assert (a[ON_COMMON].value, a[ON_COMMON].n) == (pytest.approx(100 * (1 - 3 / 20)), 20)
    assert b[ON_COMMON].value == b[RELATIVE].value == pytest.approx(30)


def test_a_row_is_over_the_same_severities_for_all_models(big: Any) -> None:
    put(big, "net-a", ("fog", "snow"), 1)
    put(big, "net-b", ("fog",), 1, severities=(1, 2, 3, 4))
    put(big, "net-b", ("snow",), 1)
    found = report(big)
    b = found.columns[1]
    assert (b.relative["fog"].value, b.relative["fog"].reason) == (None, "severity 5 of fog missing")
    assert b.relative["snow"].value is not None
    assert b.mean[RELATIVE].value is None
    assert found.marks["snow"] == ["best", "best"]
    assert found.marks["fog"] == found.marks[MEAN] == ["", ""]


def test_clean_accuracy_needs_no_cell_and_the_same_gap_everywhere_is_told_once(big: Any) -> None:
    put(big, "net-a", COMMON, 1)
    put(big, "net-b", COMMON, 1, severities=(3, 5), clean=np.arange(N) < 30)
    a, b = report(big).columns
    assert [column.mean["clean_accuracy"].value for column in (a, b)] == [90, 75]
    one_sided = report(big, Precision(is_one_sided=True)).columns[1].mean["clean_accuracy"]
    assert b.mean["clean_accuracy"].ci_low < one_sided.ci_low < 75
    reason = "severities 1, 2, 4 of all missing"
    assert {b.mean[name].reason for name in (RELATIVE, ON_COMMON, "corruption_accuracy", "raw_rce")} == {reason}
    assert b.errors["unnormalised_mean_error_15"].reason == reason
    assert b.relative["fog"].reason == "severity 1, 2, 4 of fog missing"
    assert "unnormalised_mean_error_19" not in a.errors


def test_mce_needs_a_baseline_and_all_of_the_15(big: Any) -> None:
    put(big, "net", ("fog",), 1)
    errors = report(big).columns[0].errors
    assert errors["mce"].reason.startswith("no --baseline was named")
    assert errors["unnormalised_mean_error_15"].value is None
    assert "all of gaussian_noise" in errors["unnormalised_mean_error_15"].reason
    errors = report(big, baseline="net").columns[0].errors
    assert "all of gaussian_noise" in errors["mce"].reason


def test_mce_is_by_a_stored_baseline_of_the_same_settings(whole: Lab) -> None:
    """CE is 35 / 50 everywhere, relative CE 15 / 30."""
    found = report(whole, baseline="base")
    base, net = sorted(found.columns, key=lambda column: column.stored.name)
    assert net.errors["mce"].value == pytest.approx(70)
    assert net.errors["relative_mce"].value == pytest.approx(50)
    assert net.errors["mce"].ci_low < 70 < net.errors["mce"].ci_high
    assert net.errors["unnormalised_mean_error_15"].value == pytest.approx(100 * 7 / 40)
    assert net.errors["unnormalised_mean_error_19"].value == pytest.approx(100 * 7 / 40)
    over_19 = base.errors["unnormalised_mean_error_19"]
    assert (over_19.value, over_19.reason) == (
        None, "all of speckle_noise, gaussian_blur, spatter, saturate missing",
    )  # fmt: skip
    assert [value.value for value in net.ces["fog"]] == pytest.approx([70, 50])
    assert base.errors["mce"].value == pytest.approx(100)
    assert (base.errors["mce"].ci_low, base.errors["mce"].reason) == (None, "no interval: it is the baseline")
    alone = report(whole, baseline="base", models=("net",))
    assert [column.stored.name for column in alone.columns] == ["net"]
    assert alone.columns[0].errors["mce"] == net.errors["mce"]


def test_published_alexnet_is_no_baseline_of_other_data(whole: Lab) -> None:
    found = report(whole, baseline="alexnet-published").columns[0].errors["mce"]
    assert (found.value, found.reason) == (
        None, "alexnet-published is of the published files of ImageNet-C, and these are others",
    )  # fmt: skip
    other = report(whole, baseline="nobody").columns[0].errors["mce"]
    assert other.reason == "the baseline nobody was not evaluated on toy"


def test_a_baseline_of_other_samples_is_none(resplit_lab: Any) -> None:
    """Each run evaluates four of ten, which are those of its seed."""
    for model, seed in (("base", 0), ("net", 0), ("other", 1)):
        resplit_lab.put(model, "toy", [1, 1, 1, 0], fit_seed=seed)
        for severity in range(1, 6):
            resplit_lab.put(model, f"toy-c.fog.{severity}_in-memory", [1, 1, 0, 0], fit_seed=seed)
    columns = {column.stored.name: column for column in report(resplit_lab, baseline="base").columns}
    assert [value.value for value in columns["net"].ces["fog"]] == pytest.approx([100, 100])
    assert columns["other"].ces == {}
    for name in ("mce", "relative_mce"):
        found = columns["other"].errors[name]
        assert (found.value, found.reason) == (None, "the baseline base was evaluated on other samples than other")


def test_a_baseline_of_other_settings_is_none(whole: Lab) -> None:
    (found,) = corruption_grids(whole.store, Precision())
    (base,) = (model for model in found.models if model.name == "base")
    (run,) = base.groups["fog", 3]
    changed = replace(run, evaluation=replace(run.evaluation, setting_fingerprint="0" * 64))
    other = replace(base, groups={**base.groups, ("fog", 3): (changed,)})
    models = [other if model is base else model for model in found.models]
    made = corruption_report(replace(found, models=models), Precision(), models=("net",), baseline="base")
    assert made is not None
    mce = made.columns[0].errors["mce"]
    assert (mce.value, mce.reason) == (
        None, "the baseline base was evaluated on other settings than net, such as toy-c.fog.3_in-memory",
    )  # fmt: skip


def test_a_baseline_with_a_limit_is_none_of_whole_models(big: Any) -> None:
    put(big, "net", ("fog",), 1)
    big.put("base", "toy@limit10", CLEAN[:10])
    for severity in range(1, 6):
        big.put("base", f"toy-c.fog.{severity}_in-memory@limit10", np.arange(10) >= severity)
    found = report(big, baseline="base")
    assert [column.stored.name for column in found.columns] == ["net"]
    assert (found.columns[0].ces, found.left_out) == ({}, {"toy@limit10": 5})
    assert found.columns[0].errors["mce"].reason == "the baseline base was not evaluated on toy"
    assert report_record(found)["left_out"] == {"toy@limit10": 5}


def test_runs_show_their_spread(big: Any) -> None:
    for seed, lost in enumerate((1, 2, 3)):
        put(big, "net", ("fog",), lost, fit_seed=seed)
    (column,) = report(big).columns
    assert column.mean[RELATIVE].detail["runs"] == pytest.approx([100 * (1 - 3 * lost / 36) for lost in (1, 2, 3)])
    assert "over 3 runs" in column.mean[RELATIVE].method


def test_wellposedness_is_looked_at_where_it_is_asked_for(big: Any) -> None:
    put(big, "net", ("fog",), 0)
    assert report(big).columns[0].findings is None
    (column,) = report(big, with_wellposed=True).columns
    assert [found.kind for found in column.findings or ()] == ["identical"]
    assert column.recoveries[("fog", 1)].detail["guessing"] == pytest.approx(50)


def test_record_has_every_cell_with_its_interval(big: Any) -> None:
    put(big, "net-a", ("fog", "snow"), 1)
    put(big, "net-b", ("fog", "snow"), 2)
    record = report_record(report(big, baseline="net-b", with_wellposed=True))
    assert (record["dataset"], record["family"], record["averaged_over"]) == (
        "toy",
        "common-corruption",
        ["snow", "fog"],
    )
    assert record["baseline"]["name"] == "net-b"
    assert len(record["missing_of_the_15"]) == 13
    model = record["models"][0]
    assert [(cell["corruption"], cell["severity"]) for cell in model["cells"]] == [
        (name, severity) for name in ("snow", "fog") for severity in range(1, 6)
    ]
    assert model["cells"][5]["eval_setting"] == "toy-c.fog.1_in-memory"
    assert set(model["cells"][0]["metrics"]) == {
        "clean_accuracy",
        "corruption_accuracy",
        RELATIVE,
        "recovery",
        "raw_rce",
    }
    assert model["cells"][0]["metrics"]["recovery"]["detail"]["guessing"] == pytest.approx(50)
    assert model["corruptions"][0]["ce"]["value"] == pytest.approx(70)
    assert model["corruptions"][0]["mark"] == "best"
    assert model["findings"] == []


def test_one_bound_is_asked_of_every_number(whole: Lab) -> None:
    columns = report(whole, Precision(is_one_sided=True), baseline="base").columns
    net = next(column for column in columns if column.stored.name == "net")
    assert net.mean[RELATIVE].ci_high == 100
    assert net.errors["mce"].ci_low in (0, None)
    assert net.errors["mce"].ci_high > 70


def test_on_disk_is_a_report_of_its_own(big: Any) -> None:
    put(big, "net", ("fog",), 1)
    big.pair("net", CLEAN, CLEAN, setting="toy-c.fog.1_on-disk")
    (found,) = corruption_grids(big.store, Precision(), family=ON_DISK)
    made = corruption_report(found, Precision())
    assert made is not None
    assert (made.family, dict(made.rows)) == (ON_DISK, {"fog": [1]})
    assert corruption_report(found, Precision(), models=("other",)) is None
