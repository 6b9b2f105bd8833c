"""Figures and tables of effective robustness, over published numbers that lie on known lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plotting.drawing.latex import escape
from tests.plotting.conftest import Draw

from testbed.errors import DataError, TestbedError, UnknownNameError
from testbed.metrics.intervals import clopper_pearson
from testbed.model_types import PublishedType
from testbed.records import PublishedResult
from testbed.shift_pairs import SHIFT_PAIRS
from testbed.store.published_models import put_types
from testbed.store.store import Store

SOURCE = "lab"
V2 = SHIFT_PAIRS["imagenetv2"].y
SHIFTS = {"imagenet-sketch": 2.0, "stylized": -3.0, "imagenetv2": 0.5}  # how far off the line interventions are
HOSTILE = ["<script>alert(1)</script>", "M" * 300, "squid \U0001f991", "$x_1$", "50 %, a_b & 'c' \"d\"", "a\nb\u202ec"]
PLAIN = {f"net{number}": 56.0 + 2 * number for number in range(14)}  # standard models
MORE = {f"net{number}_augmix": 57.0 + 2 * number for number in range(0, 14, 2)} | {
    name: 60.0 + number for number, name in enumerate(HOSTILE)
}


def on_line(percent: float) -> float:
    """Where a line of slope 1 and intercept -0.5 in logit space is."""
    return float(100 / (1 + np.exp(0.5) * (100 / percent - 1)))


def wobble(number: int) -> float:
    """A departure of standard models from their line, in percentage points, with mean 0 over four of them."""
    return (0.4, -0.4, -0.4, 0.4)[number % 4]


def filled(store: Store) -> None:
    def put(model: str, setting: str, value: float) -> PublishedResult:
        return PublishedResult(source=SOURCE, source_sha256="0" * 64, model=model, eval_setting=setting, metric="top1",
                               protocol="lab", value=value)  # fmt: skip

    results = [put(model, "val", value) for model, value in {**PLAIN, **MORE, "tiny": 4.0}.items()]
    for shift, off in SHIFTS.items():
        setting, step = SHIFT_PAIRS[shift].y, 3 if shift == "imagenetv2" else 1
        results += [put(name, setting, on_line(x) + wobble(place)) for place, (name, x) in enumerate(PLAIN.items())]
        results += [
            put(name, setting, on_line(x) + off + place * step % 5) for place, (name, x) in enumerate(MORE.items())
        ]
        results.append(put("tiny", setting, on_line(4.0)))
    store.put_published(results)
    types = dict.fromkeys(PLAIN, "STANDARD") | dict.fromkeys(MORE, "ROBUST_INTV") | {"tiny": "LINEAR_PIXELS"}
    with store.writing() as connection:
        put_types(connection, [
            PublishedType(source=SOURCE, source_sha256="0" * 64, model=model, model_type=kind)
            for model, kind in types.items()
        ])  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("effective") / "results.sqlite"
    with Store.open(database) as store:
        filled(store)
    return database


GIVEN = ("--with-published", SOURCE)


@pytest.mark.usefixtures("_undrawn")
def test_a_panel_has_every_model_with_both_shifts_and_its_distance_from_both_lines(draw: Draw, lab: Path) -> None:
    files = draw("effective_against_corruptions", lab, *GIVEN, "--of", "stylized", "--highlight", *HOSTILE)
    table = pd.read_csv(files["csv"])
    assert set(table["shift"]) == {"imagenet-sketch", "imagenetv2"}
    assert set(table["model"]) == {*PLAIN, *MORE}
    for place, name in enumerate(MORE):
        rows = table[table["model"] == name].set_index("shift")
        assert rows["x"].to_numpy() == pytest.approx(SHIFTS["stylized"] + place % 5, abs=0.05)
        assert rows["y"]["imagenet-sketch"] == pytest.approx(SHIFTS["imagenet-sketch"] + place % 5, abs=0.05)
    assert (table["x_low"] < table["x"]).all()
    assert (table["y"] < table["y_high"]).all()
    assert set(table[["shift", "x_n", "y_n"]].itertuples(index=False, name=None)) == {
        ("imagenet-sketch", 50_000, 50_889), ("imagenetv2", 50_000, 10_000)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("few", "marked", "words"),
    [(99, (), "; bars of ρ: those of single models."), (1, ("net1",), "; bars of ρ: those of the large ones."),
     (1, (), "prediction intervals.")],
)  # fmt: skip
def test_the_caption_tells_of_bars_only_where_there_are_any(
    few: int, marked: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace

    from plotting.drawing import shifts

    monkeypatch.setattr(shifts, "FEW", few)
    found = SimpleNamespace(
        table=pd.DataFrame({"entry": ["net1", "net2"]}), highlighted=marked, comparison=SimpleNamespace(confidence=0.95)
    )
    told = vars(shifts.Robustness)["band_words"].fget(found)
    assert told.endswith(words)


@pytest.mark.usefixtures("_undrawn")
def test_the_x_axis_may_show_accuracy_under_the_synthetic_shift(draw: Draw, lab: Path) -> None:
    given = (*GIVEN, "--of", "stylized", "--against", "accuracy", "--shifts", "imagenetv2")
    table = pd.read_csv(draw("effective_against_pgd", lab, *given)["csv"]).set_index("model")
    assert table["x"]["net3"] == pytest.approx(on_line(PLAIN["net3"]) + wobble(3))


def test_models_of_low_accuracy_are_left_out_unless_asked_for(draw: Draw, lab: Path) -> None:
    for more, count in (((), 27), (("--with-low-accuracy",), 28)):
        assert set(pd.read_csv(draw("correlation_table", lab, *GIVEN, *more)["csv"])["n"]) == {count}


def test_pairs_are_all_pairs_and_the_same_bytes_again(draw: Draw, lab: Path) -> None:
    first = draw("effective_pairs", lab, *GIVEN, "--highlight", *HOSTILE)
    before = {ending: file.read_bytes() for ending, file in first.items()}
    again = draw("effective_pairs", lab, *GIVEN, "--highlight", *HOSTILE)
    assert {ending: file.read_bytes() for ending, file in again.items()} == before
    table = pd.read_csv(first["csv"])
    pairs = {tuple(sorted(pair)) for pair in zip(table["x_shift"], table["y_shift"], strict=True)}
    assert pairs == {("imagenet-sketch", "imagenetv2")}  # stylized is no natural shift, and there is no mean of PGD


@pytest.mark.usefixtures("_undrawn")
def test_relative_robustness_is_what_a_model_has_more_than_its_baseline(draw: Draw, lab: Path) -> None:
    files = draw("relative_against_effective", lab, *GIVEN, "--shifts", "imagenet-sketch", "--highlight", "net0_augmix")
    table = pd.read_csv(files["csv"]).set_index("model")
    assert set(table.index) == {name for name in MORE if name.endswith("_augmix")}
    theirs, base = on_line(65.0) + 2 + 2, on_line(64.0) + wobble(4)  # net4_augmix is the third of them
    assert table["baseline"]["net4_augmix"] == "net4"
    assert table["y"]["net4_augmix"] == pytest.approx(theirs - base)
    assert table["x"]["net4_augmix"] == pytest.approx(4, abs=0.05)
    assert table["y_low"]["net4_augmix"] < theirs - base < table["y_high"]["net4_augmix"]


@pytest.mark.usefixtures("_undrawn")
def test_a_file_may_name_baselines(draw: Draw, lab: Path, tmp_path: Path) -> None:
    path = tmp_path / "baselines.csv"
    path.write_text("model,baseline\n$x_1$,net1\n")
    files = draw("relative_against_effective", lab, *GIVEN, "--models", "$x_1$", "net1", "--baselines", path)
    table = pd.read_csv(files["csv"])
    assert set(zip(table["model"], table["baseline"], strict=True)) == {("$x_1$", "net1")}


def test_correlations_are_those_of_the_numbers_drawn(draw: Draw, lab: Path) -> None:
    whole = pd.read_csv(draw("model_table", lab, *GIVEN, "--effective-robustness")["csv"])
    rho = whole[(whole["measure"] == "effective robustness") & (whole["model"] != "tiny")]
    drawn = rho.pivot(index="model", columns="eval_setting", values="value")
    files = draw("correlation_table", lab, *GIVEN)
    table = pd.read_csv(files["csv"])
    row = table[(table["first"] == "imagenetv2") & (table["second"] == "imagenet-sketch")].set_index("kind")
    assert row["value"]["pearson"] == pytest.approx(np.corrcoef(drawn[V2], drawn["imagenet-sketch"])[0, 1])
    assert row["n"]["spearman"] == len(drawn) == len(PLAIN) + len(MORE)
    assert len(table) == 2 * 3  # V2, Sketch and stylized
    text = files["tex"].read_text()
    assert f"{row['value']['pearson']:.2f}".replace("-", "$-$") in text
    low, high = (f"{row[name]['pearson']:.2f}".replace("-", "$-$") for name in ("ci_low", "ci_high"))
    assert f"[{low}, {high}]" in text
    assert row["num_groups"]["pearson"] < 2 + len(HOSTILE) + 1  # plain nets and changed ones, and each of no family
    assert "over 27 models" in text


def test_a_table_of_models_has_intervals_and_marks(draw: Draw, lab: Path) -> None:
    files = draw("model_table", lab, *GIVEN, "--effective-robustness")
    table = pd.read_csv(files["csv"])
    val = table[(table["eval_setting"] == "val")].set_index("model")
    exact = clopper_pearson(0.82 * 50_000, 50_000)
    assert (val["ci_low"]["net13"], val["ci_high"]["net13"]) == pytest.approx((100 * exact.low, 100 * exact.high))
    assert set(val.index[val["is_best"]]) == {"net13"}
    assert "net12_augmix" not in set(val.index[val["is_among_best"]])  # 81 %, and the best has 82 %
    rho = table[(table["measure"] == "effective robustness") & (table["eval_setting"] == "imagenet-sketch")]
    assert rho.set_index("model")["value"]["net4_augmix"] == pytest.approx(4, abs=0.05)
    assert (rho["is_best"] == (rho["ci_low"] > 0)).all()
    assert set(rho["model"][rho["is_extrapolated"]]) == {"tiny"}  # of less than what any model of the line has
    text = files["tex"].read_text()
    assert text.count(r"$^\dagger$") == int(table["is_extrapolated"].sum()) + 1 > 1  # and in the caption
    assert table["model"].iloc[0] == "net13"  # by the first column, from the largest


def test_names_are_text_in_latex_whatever_they_hold(draw: Draw, lab: Path) -> None:
    given = (*GIVEN, "--eval-settings", "val", "--highlight", "net1")
    text = draw("model_table", lab, *given)["tex"].read_text()
    assert "\n\\textbf{net1} & 58.00 {\\tiny [" in text
    rows = [
        line for line in text.splitlines() if line.endswith(r" \\") and "caption" not in line and "label" not in line
    ]
    assert len(rows) == len(PLAIN) + len(MORE) + 1 + 1  # tiny, and the head
    for name in HOSTILE:
        if len(name) < 60:
            assert sum(row.startswith(f"{escape(name)} & ") for row in rows) == 1
    assert sum(row.startswith("M" * 30 + r"\dots{}" + "M" * 29 + " & ") for row in rows) == 1
    assert "\U0001f991" not in text
    assert all(row.replace(r"\&", "").count("&") == 1 for row in rows)


@pytest.mark.parametrize(
    ("figure", "arguments", "error", "words"),
    [
        ("effective_pairs", ["--shifts", "imagenetv3", "stylized"], UnknownNameError, "Did you mean imagenetv2"),
        ("effective_pairs", ["--shifts", "stylized"], DataError, "compares 2 shifts, and there is stylized"),
        ("effective_against_corruptions", ["--of", "corruption"], UnknownNameError, "Did you mean corruptions"),
        ("effective_against_corruptions", ["--of", "stylized", "--fit-set", "net1", "net2"], DataError, "at least 3"),
        ("effective_against_corruptions", ["--of", "stylized", "--highlight", "nit3"], UnknownNameError, "net3"),
        ("relative_against_effective", ["--models", "net1"], DataError, "--baselines FILE"),
        ("model_table", ["--eval-settings", "vol"], UnknownNameError, "val"),
        ("correlation_table", ["--highlight", "nit3"], UnknownNameError, "net3"),
        ("model_table", ["--highlight", "nit3"], UnknownNameError, "net3"),
        ("correlation_table", ["--pair", "val", "imagenet-r"], TestbedError, "imagenet-r"),
    ],
)
def test_mistakes_say_what_to_do(
    draw: Draw, lab: Path, figure: str, arguments: list[str], error: type[TestbedError], words: str
) -> None:
    with pytest.raises(error, match=words):
        draw(figure, lab, *GIVEN, *arguments)


def test_a_store_without_shifts_says_how_to_add_some(draw: Draw, lab: Path) -> None:
    with pytest.raises(TestbedError, match="--with-published SOURCE, or compare two stored settings with --pair X Y"):
        draw("effective_pairs", lab)
