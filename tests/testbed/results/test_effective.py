"""Effective robustness of models that are made up: which ones the line is fitted on, marks, notes, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from testbed.errors import DataError, UnknownNameError
from testbed.metrics.effective import fit_line
from testbed.results.effective import Effective, effective_robustness
from testbed.results.points import ENTRY

STANDARD = {f"net{number}": (50.0 + 4 * number, 30.0 + 4 * number + number % 2) for number in range(9)}


def points(models: dict[str, tuple[float, float]], **known: Any) -> pd.DataFrame:
    """Points of models with accuracies on x and y; columns of ENTRY, n, ci_low and ci_high by name."""
    rows = [
        {"model": model, "entry": model, "eval_setting": setting, "value": value, "source": "grid", "is_own": False}
        for model, pair in models.items()
        for setting, value in zip(("clean", "shifted"), pair, strict=True)
    ]
    table = pd.DataFrame(rows).reindex(columns=[*ENTRY, "eval_setting", "value", "ci_low", "ci_high", "n", "flag"])
    return table.assign(**{"model_type": "STANDARD", "n": 10_000, **known}).astype({"input_size": "Int64"})


def measured(*tables: pd.DataFrame, **asked: Any) -> Effective:
    return effective_robustness(pd.concat(tables, ignore_index=True), "clean", "shifted", **asked)


def row(found: Effective, entry: str) -> pd.Series[Any]:
    (one,) = (one for _, one in found.table.iterrows() if one["entry"] == entry)
    return one


def test_rho_is_what_is_above_the_line_of_standard_models_alone() -> None:
    found = measured(points(STANDARD), points({"better": (70.0, 65.0)}, model_type="ROBUST_INTV"))
    line = fit_line(*zip(*STANDARD.values(), strict=True))
    assert [(one.slope, one.intercept, one.n) for one in found.lines] == [
        pytest.approx((line.slope, line.intercept, 9))
    ]
    better = row(found, "better")
    assert better["beta"] == pytest.approx(line.at(70.0))
    assert better["rho"] == pytest.approx(65 - float(line.at(70.0)))
    assert (better["rho_low"], better["rho_high"]) == (65 - better["expected_high"], 65 - better["expected_low"])
    assert better["rho_low"] > 0
    assert not better["is_fit"]
    assert found.table["rho"].is_monotonic_decreasing
    assert row(found, "net3")["rho_low"] < 0 < row(found, "net3")["rho_high"]
    assert found.notes == ()


def test_a_model_measured_on_few_images_gets_a_wide_interval() -> None:
    found = measured(points(STANDARD), points({"few": (70.0, 55.0)}, n=200), points({"many": (70.0, 55.0)}))
    widths = {name: row(found, name)["rho_high"] - row(found, name)["rho_low"] for name in ("few", "many")}
    assert widths["few"] > 2 * widths["many"]


def test_own_results_count_by_the_width_of_their_interval() -> None:
    """Ten draws of 400 images are not 400 images, nor 4,000."""
    half = 1.959964 * 100 * np.sqrt(0.7 * 0.3 / 1500)
    own = points({"own": (70.0, 70.0)}, n=400, is_own=True, source=pd.NA, ci_low=70 - half, ci_high=70 + half)
    same = points({"same": (70.0, 70.0)}, n=1500, model_type="ROBUST_INTV")
    found = measured(points(STANDARD), own.assign(model_type="ROBUST_INTV"), same)
    assert row(found, "own")["rho_low"] == pytest.approx(row(found, "same")["rho_low"])


def test_models_beyond_those_of_the_fit_are_marked() -> None:
    found = measured(points(STANDARD), points({"beyond": (90.0, 80.0)}, model_type="MORE_DATA"))
    assert row(found, "beyond")["is_extrapolated"]
    assert found.table["is_extrapolated"].sum() == 1
    assert found.notes == ("The line is extrapolated for beyond.",)


@pytest.mark.parametrize("name", ["net_aws", "net-BATCH64", "x_subsample_2"])
def test_variants_are_no_standard_models(name: str) -> None:
    found = measured(points({**STANDARD, name: (60.0, 10.0)}))
    assert found.lines[0].n == 9
    assert not row(found, name)["is_fit"]


def test_the_paper_had_fewer_standard_models() -> None:
    later = {"resnet50_swav": (60.0, 10.0), "vit_small_patch16_224": (61.0, 10.0), "resnet50_simsiam": (62.0, 10.0)}
    assert measured(points({**STANDARD, **later}), fit_set="standard-2020").lines[0].n == 9
    assert measured(points({**STANDARD, **later})).lines[0].n == 12


def test_standard_models_below_the_threshold_of_x_are_left_out() -> None:
    table = points(STANDARD).replace({"eval_setting": {"clean": "val"}})
    found = effective_robustness(table, "val", "shifted")
    assert found.lines[0].x_low == 58  # 50 and 54 lie below 55
    assert effective_robustness(table, "val", "shifted", fit_set="all").lines[0].n == 9


def test_the_fit_set_can_be_names_globs_and_files(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("# mine\nnet1\n\nnet2\nnet3\n")
    for asked in (["net1", "net[23]"], [f"@{tmp_path / 'names.txt'}"]):
        assert list(measured(points(STANDARD), fit_set=asked).table.query("is_fit")["model"].sort_values()) == [
            "net1", "net2", "net3"
        ]  # fmt: skip


def test_a_model_of_two_sources_counts_once_for_the_line() -> None:
    again = points({"net3": (62.0, 20.0)}, source="other").assign(entry="net3 (other)")
    found = measured(points(STANDARD), again)
    assert found.lines == measured(points(STANDARD)).lines
    assert found.notes[0].startswith("The line is not fitted on net3 (other): each model counts once")
    assert "Results of several sources are compared: grid, 9 models, 9 of the fit; other, 1 models, 0 of the fit" in (
        " ".join(found.notes)
    )


@pytest.mark.parametrize("fit_set", ["standard", "standard-2020"])
def test_own_models_are_held_against_the_line_of_published_ones(fit_set: str) -> None:
    own = points({"mine": (95.0, 20.0)}, source=pd.NA, is_own=True)
    found = measured(points(STANDARD), own, fit_set=fit_set)
    assert found.lines == measured(points(STANDARD)).lines
    assert not row(found, "mine")["is_fit"]
    assert row(found, "mine")["is_extrapolated"]
    told = f"The line is not fitted on mine: beside published models, '{fit_set}' is of these alone."
    assert found.notes[0] == told
    assert told not in measured(points(STANDARD), own.assign(model_type="MORE_DATA"), fit_set=fit_set).notes


def test_own_models_are_in_the_fit_alone_or_where_they_are_asked_for() -> None:
    own = points({"mine": (95.0, 20.0)}, source=pd.NA, is_own=True)
    for asked in ("all", ["net*", "mine"]):
        assert measured(points(STANDARD), own, fit_set=asked).lines[0].n == 10
    alone = points(STANDARD, source=pd.NA, is_own=True)
    assert measured(alone, own).lines[0].n == 10
    with pytest.raises(DataError, match=r"there are 1 \(theirs\) among 10. Beside published models, own ones are"):
        measured(alone, points({"theirs": (60.0, 41.0)}))


def test_published_numbers_that_are_doubtful_are_told() -> None:
    odd = points({"odd": (70.0, 70.0), "other": (71.0, 40.0)}, model_type="ROBUST_INTV")
    odd["flag"] = odd["flag"].astype(object).mask(odd["value"] == 70, "equals another")
    assert measured(points(STANDARD), odd).notes == (
        "clean is published but doubtful, in whole or in part, for odd: equals another.",
        "shifted is published but doubtful, in whole or in part, for odd: equals another.",
    )


def test_what_has_no_place_on_the_scale_is_told() -> None:
    found = measured(points({**STANDARD, "nothing": (66.0, 0.0), "perfect": (100.0, 80.0)}))
    assert found.lines[0].n == 9
    assert row(found, "nothing")["rho"] == pytest.approx(-row(found, "nothing")["beta"])
    assert "perfect" not in set(found.table["entry"])
    assert "The line is not fitted on nothing: shifted is 0 or 100 %" in found.notes[0]
    assert found.notes[1].startswith("perfect is left out: clean is 0 or 100 %")
    linear = measured(points({**STANDARD, "nothing": (66.0, 0.0), "perfect": (100.0, 80.0)}), scale="linear")
    assert linear.lines[0].n == 11


def test_models_that_err_together_are_told_to() -> None:
    close = {name: (x, x - 20) for name, (x, _) in STANDARD.items()}
    (note,) = measured(points({**close, "odd": (66.0, 46.3)}, n=500)).notes
    assert "Intervals are those of one more model measured on these images." in note


def test_mixed_ways_of_measuring_are_told() -> None:
    table = points(STANDARD, protocol="crop")
    table["input_size"] = [224 if number < 8 else 384 for number in range(len(table))]
    found = measured(table, points({"other": (60.0, 41.0)}, protocol="resize", n=pd.NA))
    text = " ".join(found.notes)
    assert "several protocols: crop, resize." in text
    assert "several input sizes: 224, 384." in text
    assert "How many images stand behind x is unknown for other" in text


def test_notes_on_some_models_are_of_them_and_of_the_line() -> None:
    table = points(STANDARD, input_size=224)
    others = points({"small": (95.0, 80.0)}, model_type="MORE_DATA", source="other", input_size=32, flag="odd")
    found = measured(table, others, points({"off": (66.0, 0.0)}, input_size=32, flag="odd"))
    texts = {
        name: " ".join(found.notes_on(found.table[found.table["entry"] == name])) for name in ("net3", "small", "off")
    }
    for text in texts.values():
        assert "The line is not fitted on off" in text
        assert "Results of several sources are compared" in text
        assert "input sizes" not in text
    assert ["extrapolated for small." in text for text in texts.values()] == [False, True, False]
    assert ["doubtful" in text for text in texts.values()] == [False, True, True]
    assert "off" not in texts["small"].partition("doubtful")[2]
    assert found.notes == found.notes_on(found.table)


def test_the_baselines_y_is_taken_off_for_tau() -> None:
    finer = points({"finer": (70.0, 60.0)}, baseline="net4", model_type="ROBUST_INTV")
    finer = finer.assign(ci_low=finer["value"] - 3, ci_high=finer["value"] + 3)
    found = measured(
        points(STANDARD).assign(ci_low=26.0, ci_high=50.0), finer, points({"lost": (60, 40)}, baseline="x")
    )
    one = row(found, "finer")
    assert one["tau"] == 60 - 46
    assert one["tau_low"] == pytest.approx(14 - np.hypot(3, 50 - 46))
    assert one["tau_high"] == pytest.approx(14 + np.hypot(3, 46 - 26))
    assert found.table["tau"].notna().sum() == 1


def test_a_baseline_of_another_source_is_none() -> None:
    finer = points({"finer": (70.0, 60.0)}, baseline="net4", source="other")
    assert measured(points(STANDARD), finer).table["tau"].isna().all()


def _bent(pivot_y: float = 0.0, *, below: int = 5) -> pd.DataFrame:
    low = {f"low{number}": (80.0 + number + 0.1 * (number % 2), 1 + 0.1 * number) for number in range(below)}
    high = {f"high{number}": (93.0 + number, 10.0 + 9 * number + number % 2) for number in range(5)}
    table = points({**low, **high, "resnet50": (91.86, pivot_y)})
    return table.replace({"eval_setting": {"clean": "val-on-imagenet-a-classes", "shifted": "imagenet-a"}})


def test_imagenet_a_has_a_line_on_either_side_of_resnet50() -> None:
    found = effective_robustness(_bent(0.5), "val-on-imagenet-a-classes", "imagenet-a")
    assert [line.n for line in found.lines] == [5, 5]
    assert found.pivot == 91.86
    assert "The line is not fitted on resnet50" in found.notes[0]
    assert row(found, "resnet50")["beta"] == pytest.approx(float(found.lines[1].at(91.86)))
    assert row(found, "low2")["beta"] == pytest.approx(float(found.lines[0].at(82.0)))
    assert not found.table["is_extrapolated"].any()
    curve = found.curve(50)
    assert curve.groupby("line")["x"].agg(["min", "max", "size"]).to_numpy().tolist() == pytest.approx(
        np.array([[80, 84, 50], [91.86, 97, 50]])
    )


def test_too_few_models_on_a_side_get_one_line_and_a_note() -> None:
    found = effective_robustness(_bent(below=2), "val-on-imagenet-a-classes", "imagenet-a")
    assert [line.n for line in found.lines] == [7]
    assert "2 models of the fit lie below its 91.86 % and 5 above" in found.notes[0]


def test_curve_is_even_on_the_scale_and_within_its_band() -> None:
    curve = measured(points({**STANDARD, "far": (95.0, 90.0)})).curve(41)
    places = np.log(curve["x"] / (100 - curve["x"]))
    assert np.ptp(np.diff(places)) == pytest.approx(0, abs=1e-12)
    assert (curve["x"].iloc[0], curve["x"].iloc[-1]) == pytest.approx((50, 95))
    assert ((curve["y_low"] <= curve["y"]) & (curve["y"] <= curve["y_high"])).all()


def test_families_can_be_drawn_for_the_band() -> None:
    families = {name: f"family {number % 4}" for number, name in enumerate(STANDARD)}
    table = points(STANDARD)
    table["family"] = table["model"].map(families)
    by_model, by_family = measured(table), measured(table, by_family=True)
    assert by_model.lines == by_family.lines
    assert not by_model.curve(5).equals(by_family.curve(5))
    with pytest.raises(DataError, match=r"of 1 families \(one\)"):
        measured(table.assign(family="one"), by_family=True)


def test_the_order_of_points_changes_nothing() -> None:
    table = points({**STANDARD, "other": (60.0, 41.0)})
    shuffled = table.sample(frac=1, random_state=0)
    one, other = (measured(given) for given in (table, shuffled))
    pd.testing.assert_frame_equal(one.table, other.table)
    pd.testing.assert_frame_equal(one.curve(), other.curve())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"fit_set": "standrad"}, "'standrad', which is neither a fit set .* Did you mean standard"),
        ({"fit_set": ["net1", "nett2"]}, "'nett2'.*Did you mean net2"),
        ({"fit_set": ["net1", "net2"]}, r"at least 3 models .* there are 2 \(net1, net2\) among 9"),
        ({"fit_set": "@nowhere.txt"}, "nowhere.txt cannot be read"),
        ({"fit_set": []}, "No model to fit a line on is named"),
        ({"scale": "log"}, "no scale 'log'"),
        ({"confidence": 95}, "Confidence is 95"),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises((DataError, UnknownNameError), match=words):
        measured(points(STANDARD), **asked)


def test_a_setting_against_itself_is_refused() -> None:
    with pytest.raises(DataError, match="X and Y are both 'clean'"):
        effective_robustness(points(STANDARD), "clean", "clean")


def test_nothing_in_common_is_refused_with_what_there_is() -> None:
    table = points(STANDARD)
    apart = pd.concat([table[table["eval_setting"] == "clean"], points({"z": (1, 2)}).iloc[1:]])
    with pytest.raises(UnknownNameError, match="9 have 'clean' and 1 have 'shifted'"):
        measured(apart)


def test_models_without_types_are_told_to_have_none() -> None:
    with pytest.raises(DataError, match="No type of these models is known: --import-csv"):
        measured(points(STANDARD, model_type=pd.NA))
