"""Figures of models on two settings, over published numbers that lie on a known line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from plotting import plot_x_vs_y
from plotting.drawing.comparison import Comparison
from plotting.drawing.shift_panels import Panels, panels_of
from tests.plotting.conftest import Draw, Filler

from testbed.errors import TestbedError, UnknownNameError
from testbed.model_types import PublishedType
from testbed.records import PublishedResult
from testbed.shift_pairs import SHIFT_PAIRS, ShiftPair
from testbed.store.published_models import put_types
from testbed.store.store import Store

HOSTILE = [
    "<script>alert(1)</script>",
    "M" * 300,
    "squid \U0001f991",
    "$x_1$",
    "50 %, a_b & 'c' \"d\"",
    "_under",
    "a\nb",
]
STANDARD = {f"plain{number}": 56.0 + 2 * number for number in range(12)}
OTHERS = {"more": 85.0, "robust": 45.0, "adversarial": 50.0, "tiny": 5.0, "unknown": 60.0, "unknown-low": 3.0}
TYPES = {"more": "MORE_DATA", "robust": "ROBUST_INTV", "adversarial": "LP_ADV", "tiny": "LINEAR_PIXELS"}
SOURCE = "lab"
SKETCH, A = SHIFT_PAIRS["imagenet-sketch"], SHIFT_PAIRS["imagenet-a"]


def on_line(percent: float) -> float:
    """Where the line of slope 0.9 and intercept -0.5 in logit space is."""
    u = 0.9 * np.log(percent / (100 - percent)) - 0.5
    return float(100 / (1 + np.exp(-u)))


def published(model: str, setting: str, value: float) -> PublishedResult:
    return PublishedResult(
        source=SOURCE, source_sha256="0" * 64, model=model, eval_setting=setting, metric="top1",
        protocol="other" if model == "tiny" else "lab", value=value,
    )  # fmt: skip


def filled(store: Store) -> None:
    """Standard models on the line of ImageNet-Sketch, others five points above it, and one at 0 %."""
    accuracies = {**STANDARD, **OTHERS, **{name: 70.0 + 2 * number for number, name in enumerate(HOSTILE)}}
    results = [published(model, "val", x) for model, x in accuracies.items()]
    results += [
        published(model, SKETCH.y, on_line(x) + (0 if model in STANDARD else 5)) for model, x in accuracies.items()
    ]
    results += [published("zero", "val", 60.0), published("zero", SKETCH.y, 0.0)]
    results += [published(model, name, 90.0) for model in ("plain0", "plain1") for name in (A.x, A.y)]
    store.put_published(results)
    types = dict.fromkeys((*STANDARD, *HOSTILE), "STANDARD") | TYPES | dict.fromkeys(HOSTILE, "ROBUST_INTV")
    with store.writing() as connection:
        put_types(connection, [
            PublishedType(source=SOURCE, source_sha256="0" * 64, model=model, model_type=kind)
            for model, kind in types.items()
        ])  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("lab") / "results.sqlite"
    with Store.open(database) as store:
        filled(store)
    return database


Compare = Callable[..., Panels]


@pytest.fixture
def compare(lab: Path) -> Iterator[Compare]:
    """The panels of pairs: `compare(SKETCH, models=['plain*'])`."""
    with Store.open(lab, read_only=True, create=False) as store:

        def panels(*pairs: ShiftPair, more: Sequence[ShiftPair] = (), low: bool = False, **given: Any) -> Panels:
            comparison = Comparison(**{"store": store, "sources": [SOURCE], **given})
            return panels_of(comparison, pairs, more=more, with_low_accuracy=low)

        yield panels


def test_the_caption_tells_the_line_its_models_and_what_is_not_shown(compare: Compare) -> None:
    found = compare(SKETCH)
    assert found.caption.startswith("24 models published by lab. Bars: 95 % intervals of each accuracy. Lines: ")
    assert "through 12 models (standard models) with slope 0.900, intercept −0.500, r = 1.000, dashed" in found.caption
    assert "Not shown: 2 models of low accuracy. Not shown: 1 point at 0 or 100 %" in found.caption
    assert "bands: 95 % from" in found.caption


def test_models_of_low_accuracy_are_shown_when_asked_for_or_highlighted(compare: Compare) -> None:
    assert not {"tiny", "unknown-low"} & set(compare(SKETCH).table["model"])
    assert {"tiny", "unknown-low"} <= set(compare(SKETCH, low=True).table["model"])
    assert "tiny" in set(compare(SKETCH, highlight=["tin?"]).table["model"])
    assert set(compare(SKETCH, models=["tiny"]).table["model"]) == {"tiny"}


def test_models_choose_what_is_shown_and_not_what_the_line_is_fitted_to(compare: Compare) -> None:
    found = compare(SKETCH, models=["r*", "$x_1$"], highlight=["more"])
    assert set(found.table["model"]) == {"robust", "$x_1$", "more"}
    assert "through 12 models" in found.caption
    assert found.table.set_index("model")["rho"].to_numpy() == pytest.approx(5)


def test_the_caption_speaks_of_models_that_are_shown(compare: Compare) -> None:
    assert "Models were measured with several protocols: lab, other." in compare(SKETCH, low=True).caption
    assert "several protocols" not in compare(SKETCH).caption  # the other is a model's of low accuracy


def test_a_fit_set_of_names_is_what_the_line_is_fitted_to(compare: Compare) -> None:
    assert "through 3 models (models named plain0, more, robust)" in compare(
        SKETCH, fit_set=["plain0", "more", "robust"]
    ).caption  # fmt: skip
    with pytest.raises(UnknownNameError, match="names 'plainn'"):
        compare(SKETCH, fit_set=["plainn"])


def test_without_enough_models_for_a_line_the_points_are_shown_and_it_is_said(compare: Compare) -> None:
    both = compare(SKETCH, A)
    assert "No line where fewer than three have both settings, or all one accuracy: ImageNet-A." in both.caption
    assert set(both.table["shift"]) == {"imagenet-sketch", "imagenet-a"}
    alone = compare(A).caption
    assert "No line: fewer than three models to fit one to (standard models) have both settings" in alone
    assert both.panels[1].images("x") == "n = 10,000"


def test_a_pair_that_is_not_stored_is_named_unless_it_is_an_extra(compare: Compare) -> None:
    assert "Not stored: ObjectNet." in compare(SKETCH, SHIFT_PAIRS["objectnet"]).caption
    assert "Not stored" not in compare(SKETCH, more=[SHIFT_PAIRS["objectnet"], SHIFT_PAIRS["pgd"]]).caption


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sources": []}, "Nothing is stored of 'val'. .*add --with-published lab"),
        ({"sources": ["lap"]}, "no published source 'lap'. Did you mean lab"),
        ({"models": ["resnet*"]}, "No model by resnet[*] has results on both settings: .* 0 of 'val'"),
        ({"highlight": ["plain99"]}, "--highlight plain99: no model of that name .*Did you mean"),
    ],
)
def test_mistakes_are_told_with_a_remedy(compare: Compare, given: dict[str, Any], message: str) -> None:
    with pytest.raises(TestbedError, match=message):
        compare(SKETCH, **given)


def test_an_unknown_setting_brings_the_nearest_and_settings_without_a_common_model_their_numbers(
    compare: Compare,
) -> None:
    with pytest.raises(UnknownNameError, match=r"Nothing is stored of 'imagenet-sketsh'. Did you mean imagenet-sketch"):
        compare(ShiftPair(name="", title="", x="val", y="imagenet-sketsh"))
    with pytest.raises(UnknownNameError, match=r"Nothing is stored of 'avg_pgd'\. See db\.py"):  # not: did you mean it
        compare(ShiftPair(name="", title="", x="val", y="avg_pgd"))
    with pytest.raises(TestbedError, match=r"both settings of any of ObjectNet, Greyscale. Of the first: Nothing"):
        compare(SHIFT_PAIRS["objectnet"], SHIFT_PAIRS["greyscale"])


def test_own_results_stand_beside_published_ones(filler: Filler) -> None:
    filled(filler.store)
    filler.put(filler.model("mine"), filler.setting(0.0, dataset="val"), [75], is_fitted=False)
    filler.put(filler.model("mine"), filler.setting(0.0, dataset=SKETCH.y), [40], is_fitted=False)
    found = panels_of(Comparison(store=filler.store, sources=[SOURCE], highlight=["mine"]), [SKETCH])
    own = found.table[found.table["model"] == "mine"].iloc[0]
    assert own["is_own"]
    assert (own["x"], own["y"], own["y_n"]) == (75, 40, 100)
    assert "24 models published by lab, " not in found.caption
    assert "1 model evaluated here, 24 models published by lab" in found.caption
    assert "Black rims: evaluated here." in found.caption


def test_hostile_names_are_text_in_a_figure_whose_bytes_depend_on_results_alone(draw: Draw, lab: Path) -> None:
    given = ["val", SKETCH.y, "--with-published", SOURCE, "--highlight", *HOSTILE]
    files = draw("plot_x_vs_y", lab, *given)
    assert {file.name for file in files.values()} == {
        f"imagenet-sketch-over-val.{ending}" for ending in ("pdf", "png", "csv")
    }
    before = {ending: file.read_bytes() for ending, file in files.items()}
    assert {ending: file.read_bytes() for ending, file in draw("plot_x_vs_y", lab, *given).items()} == before
    table = pd.read_csv(files["csv"])
    assert set(HOSTILE) < set(table["model"])
    assert list(table.columns[:4]) == ["shift", "x_setting", "y_setting", "entry"]
    assert {"x", "x_low", "x_high", "y", "rho", "rho_low", "is_fit", "is_extrapolated"} <= set(table)


def test_natural_shifts_have_a_panel_each(draw: Draw, lab: Path) -> None:
    files = draw("natural_shifts", lab, "--with-published", SOURCE, "--scale", "probit", "--highlight", "more")
    assert set(pd.read_csv(files["csv"])["shift"]) == {"imagenet-sketch", "imagenet-a"}
    assert files["pdf"].read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("figure", ["pm_k", "subsampled"])
def test_what_is_not_stored_is_told(draw: Draw, lab: Path, figure: str) -> None:
    with pytest.raises(TestbedError, match="No model has both settings of any of"):
        draw(figure, lab, "--with-published", SOURCE)


@pytest.mark.parametrize(
    ("y", "axis", "caption"),
    [
        (SKETCH.y, f"ImageNet-Sketch\n{SKETCH.y} (%)\nn = ", f"Accuracy on ImageNet-Sketch, {SKETCH.y}, over val: "),
        (A.x, f"{A.x} (%)\nn = ", f"Accuracy on {A.x} over val: "),
    ],
    ids=["named pair", "any settings"],
)
def test_a_named_pair_is_called_by_its_title_beside_the_setting(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, y: str, axis: str, caption: str
) -> None:
    seen: list[str] = []

    def keep(figure: Figure, table: object, path: Path, *, caption: str) -> list[Path]:
        seen.extend([figure.axes[0].get_ylabel(), caption])
        return []

    monkeypatch.setattr("plotting.drawing.shift_figure.save", keep)
    given = ["val", y, "--db-url", str(lab), "--out", str(tmp_path), "--with-published", SOURCE]
    plot_x_vs_y.main(given, standalone_mode=False)
    assert seen[0].startswith(axis)
    assert seen[1].startswith(caption)
