"""`db.py --effective-robustness`: the line, the table and its marks, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.laboratory import lab

from testbed.commands.effective import effective_robustness
from testbed.errors import DataError, UnknownNameError
from testbed.records import PublishedResult

__all__ = ["lab"]

MODELS = {f"net{number}": (60.0 + 2.5 * number, 40.0 + 2.5 * number + number % 2) for number in range(8)}
OTHERS = {"better": (70.0, 62.0), "beyond": (88.0, 70.0), "<b>, %_$x$": (66.0, 30.0)}


def _result(model: str, setting: str, value: float) -> PublishedResult:
    return PublishedResult(source="grid", source_sha256="0" * 64, model=model, eval_setting=setting, metric="top1",
                           protocol="resized", value=value)  # fmt: skip


@pytest.fixture
def options(lab: Any) -> dict[str, Any]:
    """The options of db.py for a store with published models."""
    settings = ("val", "imagenetv2-matched-frequency")
    rows = [
        _result(model, setting, value)
        for model, pair in {**MODELS, **OTHERS}.items()
        for setting, value in zip(settings, pair, strict=True)
    ]
    lab.store.put_published(rows)
    given: dict[str, Any] = dict.fromkeys(("logdir", "as_json", "by_family"))
    given |= {"db_url": lab.url, "models": (), "with_published": ("grid",), "fit_set": ("net*",)}
    return {**given, "effective_robustness": settings, "scale": "logit", "confidence": 0.95}


def test_line_and_a_row_per_model_from_the_most_robust(options: Any, capsys: Any) -> None:
    effective_robustness(options)
    head, table, notes = capsys.readouterr().out.split("\n\n")
    assert head.startswith("logit(y) = ")
    assert "the line through 8 models (fit set: net*) of 60.00 to 77.50 % on x" in " ".join(head.split())
    rows = table.splitlines()
    assert rows[0].split("  ")[0] == "model"
    assert rows[2].split()[:8] == ["better", "above", "50000,", "10000", "70.00", "62.00", "50.22", "+11.78"]
    assert [row.split()[1:3] for row in rows if row.startswith("beyond")] == [["below,", "extrapolated"]]
    assert rows[-1].startswith("<b>, %_$x$  below")
    assert len(rows) == 2 + 11
    assert "tau" not in rows[0]
    assert "x: val; y: imagenetv2-matched-frequency; line: y of the line at x" in notes
    assert "The line is extrapolated for beyond." in notes


def test_models_that_are_shown_do_not_change_the_line(options: Any, capsys: Any) -> None:
    effective_robustness({**options, "as_json": True})
    every = json.loads(capsys.readouterr().out)
    effective_robustness({**options, "as_json": True, "models": ("better", "net[12]")})
    some = json.loads(capsys.readouterr().out)
    assert some["lines"] == every["lines"]
    assert [row["model"] for row in some["results"]] == ["better", "net1", "net2"]
    assert some["results"] == [row for row in every["results"] if row["model"] in ("better", "net1", "net2")]


def test_notes_on_models_are_on_those_that_are_shown(options: Any, capsys: Any) -> None:
    lab_notes = {}
    for models in ((), ("better",)):
        effective_robustness({**options, "as_json": True, "models": models})
        lab_notes[models] = json.loads(capsys.readouterr().out)["notes"]
        effective_robustness({**options, "models": models})
        assert ("extrapolated for" in capsys.readouterr().out) == (not models)
    assert "The line is extrapolated for beyond." in lab_notes[()]
    assert lab_notes[("better",)] == [note for note in lab_notes[()] if "extrapolated" not in note]


def test_json_has_bounds_of_the_line_and_null_for_what_is_missing(options: Any, capsys: Any) -> None:
    effective_robustness({**options, "as_json": True, "scale": "probit"})
    found = json.loads(capsys.readouterr().out)
    (line,) = found["lines"]
    assert line["slope_ci"][0] <= line["slope"] <= line["slope_ci"][1]
    assert (line["n"], line["x_low"], line["x_high"]) == (8, 60.0, 77.5)
    assert (found["scale"], found["fit_set"], found["pivot"], found["by_family"]) == ("probit", "net*", None, False)
    better = found["results"][0]
    assert (better["model"], better["tau"], better["label_space"]) == ("better", None, None)
    assert (better["is_fit"], better["is_extrapolated"]) == (False, False)
    assert better["rho"] == pytest.approx(better["y"] - better["beta"])


def test_what_is_not_there_is_refused_with_what_is_near(options: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"No model 'bettr' has results on both settings. Did you mean better"):
        effective_robustness({**options, "models": ("bettr",)})
    with pytest.raises(UnknownNameError, match="vall"):
        effective_robustness({**options, "effective_robustness": ("vall", "val")})
    with pytest.raises(DataError, match=r"of 1 families \(net\).*leave out --by-family"):
        effective_robustness({**options, "by_family": True})
    with pytest.raises(DataError, match=r"at least 3 models.*--import-csv takes a file of types"):
        effective_robustness({**options, "fit_set": ()})
