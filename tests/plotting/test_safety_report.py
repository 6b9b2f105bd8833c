"""The report on a model: its numbers are those of `db.py`, its bounds can be worked out, and it is one file of text."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from plotting.safety_case.case import SafetyCase, safety_case
from plotting.safety_case.document import Picture, Section
from plotting.safety_case.page import page
from scipy.stats import beta
from tests.plotting.conftest import EPSILON_MIN, Filler

from testbed.errors import TestbedError, UnknownNameError
from testbed.fingerprint import fingerprint
from testbed.records import Separation, Shift
from testbed.store.store import Store

MODEL = "<b>forest</b> $x_1$ 100% a&b \u202e🦊"
CLEAN, NOISY = 90, 80  # of 100 samples
FOG: dict[tuple[str, int | None], int] = {("fog", severity): 80 - 10 * severity for severity in range(1, 6)}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a model that loses 10 of its 90 under noise, and at most 60 of them under fog."""
    path = tmp_path_factory.mktemp("template") / "results.sqlite"
    with Store.open(path) as store:
        filler = Filler(store)
        model = filler.model(MODEL)
        filler.runs(model, {0.0: [[CLEAN]], EPSILON_MIN: [[NOISY]], 0.01: [[70]]}, is_fitted=False)
        filler.corruptions(model, CLEAN, FOG)
    return path


@pytest.fixture
def filled(template: Path, database: Path) -> Iterator[Filler]:
    """A copy of it."""
    shutil.copy(template, database)
    with Store.open(database) as store:
        yield Filler(store)


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of the time, and are wanted in the page alone."""
    if "depends_on_results" not in request.node.name:
        shown = Picture(uri="data:,", inches=1.0, alt="", caption="")
        monkeypatch.setattr("plotting.safety_case.noise.noise_pictures", lambda found: [])
        monkeypatch.setattr("plotting.safety_case.corruptions.corruption_picture", lambda grids: shown)


def case_of(filled: Filler, **how: Any) -> SafetyCase:
    return safety_case(filled.store, MODEL, None, **how)


def part(case: SafetyCase, title: str) -> Section:
    return next(section for section in case.sections if section.title.startswith(title))


def upper(events: int, n: int, alpha: float) -> float:
    """The one-sided bound of Clopper and Pearson, in percent."""
    return 100 * float(beta.ppf(1 - alpha, events + 1, n - events))


@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_statements_bound_what_is_lost_by_clopper_and_pearson(filled: Filler, confidence: float) -> None:
    clean, noise, corruptions = part(case_of(filled, confidence=confidence), "Statement").leading
    alpha = 1 - confidence
    assert f"classifies at least {100 - upper(10, 100, alpha):.2f} % of the images" in clean
    assert f"loses at most {upper(10, 90, alpha):.2f} % of the images that it classifies right when clean" in noise
    assert "11.11 % in the sample" in noise
    assert "within 0.0040, half of the minimal class separation 0.008 of all 500 samples" in noise
    assert f"under none of them more than {upper(60, 90, alpha / 5):.2f} %" in corruptions
    assert "it loses most, 66.67 %, under fog at severity 5" in corruptions


def test_what_a_model_loses_that_guesses_on_clean_images_is_not_bounded(filler: Filler) -> None:
    filler.runs(filler.model(MODEL), {0.0: [[12]], EPSILON_MIN: [[12]]}, is_fitted=False)
    case = case_of(filler)
    clean, noise = part(case, "Statement").leading
    assert "classifies at least" in clean
    assert "what it loses tells nothing, since on 'points' top-1 is 12.00 %, no better than chance" in noise
    assert [row[2] for row in part(case, "Statement").tables[0].rows][1:] == ["undecided"]
    (bounds,) = [one for one in part(case, "Noise and attacks").tables if "lost at most, %" in one.header]
    assert bounds.rows[0][2] == "undecided"


def test_a_glance_has_a_row_for_each_statement(filled: Filler) -> None:
    rows = part(case_of(filled), "Statement").tables[0].rows
    assert [row[1] for row in rows] == ["90.00", "11.11", f"{100 * 4 / 9:.2f}", "66.67"]
    assert rows[1][0] == "lost under uniform L∞ noise within 0.0040"
    assert rows[1][2:] == (f"at most {upper(10, 90, 0.05):.2f}", "90 images right when clean")


@pytest.mark.parametrize(
    ("num_right", "words"),
    [(12, "is right for all 12 noisy samples"), (11, "The witness failed"), (None, "No witness is stored")],
)
def test_the_witness_of_the_level_is_told(filled: Filler, num_right: int | None, words: str) -> None:
    witness = {} if num_right is None else {"witness": {"num_points": 12, "num_right": num_right}}
    filled.store.put_separation(
        Separation(norm="linf", min_distance=2 * EPSILON_MIN, pair=(0, 1), num_points=500), dataset="points",
        splits=["all"], data_fingerprint="x", norm="linf", space="as stored", pair_ids=("all/0", "all/1"),
        detail=witness,
    )  # fmt: skip
    assert words in part(case_of(filled), "Statement").leading[1]


def test_what_was_not_tested_is_told_from_what_is_stored(filled: Filler) -> None:
    points = "\n".join(part(case_of(filled), "What was not tested").points)
    assert "half the minimal class separation in L2, L1" in points
    assert "Attacks: what random noise costs is no bound on what an attacker finds" in points
    assert "all of gaussian_noise, shot_noise" in points
    assert "fog" not in points.split("Of the 15")[1].split("\n")[0]
    assert "read from disk" in points
    filled.runs(filled.model("other"), {0.0: [[50]], 0.3: [[40]]}, is_fitted=False)
    assert "of other models alone: points-noise-0.3" in "\n".join(part(case_of(filled), "What was not tested").points)


def test_a_part_of_the_data_is_said_to_be_a_part(filler: Filler) -> None:
    trial = Filler(filler.store, n=50)
    trial.runs(trial.model("some"), {0.0: [[40]], EPSILON_MIN: [[30]]}, is_fitted=False)
    case = safety_case(filler.store, "some", "points")
    assert part(case, "What was not tested").points[0].startswith("Samples: 50 of the 100 of points (all) were left")
    assert "--limit 50" in part(case, "Commands").commands[0]


def test_tables_have_the_numbers_of_db(filled: Filler, database: Path) -> None:
    def printed(*arguments: str) -> Any:
        result = CliRunner().invoke(import_module("db").main, [*arguments, "--json", "--db-url", str(database)])
        return json.loads(result.stdout)["results"]

    case = case_of(filled, confidence=0.9)
    row = next(one for one in part(case, "Noise").tables[0].rows if one[0] == f"points-noise-{EPSILON_MIN:g}")
    (theirs,) = printed("--mscr", "--epsilon", "0.004", "--confidence", "0.9")
    for cell, name in zip(row[2:], ("clean_accuracy", "robust_accuracy", "mscr", "loss", "recovery"), strict=True):
        value = theirs["metrics"][name]
        assert cell == f"{value['value']:.2f} [{value['ci_low']:.2f}, {value['ci_high']:.2f}]"
    kept = part(case, "Common").tables[1].rows
    (report,) = printed("--corruption-report", "--confidence", "0.9")
    (fog,) = report["models"][0]["corruptions"]
    value = fog["relative_corruption_accuracy"]
    assert kept == [("fog", "1-5", f"{value['value']:.2f} [{value['ci_low']:.2f}, {value['ci_high']:.2f}]")]


def test_the_attack_that_costs_most_is_among_the_statements(filled: Filler) -> None:
    clean = filled.setting(0.0)
    for epsilon, right in ((0.01, 60), (0.02, 20)):
        shift = Shift(
            family="adversarial-linf", name="pgd", norm="linf", epsilon=epsilon, clean_eval_setting=clean.name
        )  # fmt: skip
        name = f"points-pgd-linf-{epsilon}"
        attack = replace(clean, name=name, fingerprint=fingerprint(name), shift=shift)
        filled.store.put_setting(attack)
        filled.put(filled.model(MODEL), attack, [right], is_fitted=False)
    case = case_of(filled)
    told = part(case, "Statement").leading
    assert len(told) == 4
    assert f"loses at most {upper(70, 90, 0.05):.2f} % " in told[2]
    assert "under PGD, an attack in L∞ within 0.0200 on points" in told[2]
    assert "Attacks that are stronger than" in "".join(part(case, "What was not tested").points)


def test_claims_are_decided_together(filled: Filler) -> None:
    claims = [f"loss(points-noise-{EPSILON_MIN:g}) <= 19%", "top1(points) < 80%"]
    rows = part(case_of(filled, claims=claims), "Claims").tables[0].rows
    assert [row[2].partition(":")[0] for row in rows] == ["undecided", "refuted"]
    assert f"at most {upper(10, 90, 0.025):.4g}" in rows[0][2]
    assert "further out here than in the statement" in " ".join(part(case_of(filled, claims=claims), "Claims").notes)
    alone = part(case_of(filled, claims=claims[:1]), "Claims")
    assert alone.tables[0].rows[0][2].startswith("supported")
    assert "further out" not in " ".join(alone.notes)


def test_commands_are_commands(filled: Filler) -> None:
    lines = part(case_of(filled, claims=["top1(points) > 80%"], confidence=0.9), "Commands").commands
    for line in lines:
        python, script, *arguments = shlex.split(line)
        command = import_module(script.removesuffix(".py").replace("/", ".")).main
        parsed = command.make_context(script, arguments, resilient_parsing=False).params
        assert python == "python"
        assert MODEL in (parsed.get("model"), *(parsed.get("models") or ()))
    assert "'points-c.fog.*_in-memory'" in lines[0]


def test_fitted_runs_are_told_with_their_seeds(filler: Filler) -> None:
    filler.runs(filler.model("fitted"), {0.0: [[90], [92]], EPSILON_MIN: [[80], [84]]})
    case = safety_case(filler.store, "fitted", "points")
    assert "Student's t over 2 runs" in part(case, "Statement").leading[1]
    assert "--seeds 0 1" in part(case, "Commands").commands[0]
    assert any("2 fitted models" in line for line in part(case, "What was not tested").points)
    assert any("2 runs tell little" in note for note in part(case, "Noise and attacks").notes)


class Reader(HTMLParser):
    """What a page loads, and the texts that it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_one_file_in_which_names_are_text_and_depends_on_results_alone(filled: Filler) -> None:
    reader, text = Reader(), page(case_of(filled))
    assert page(case_of(filled)) == text
    assert str(filled.store.url) not in text
    reader.feed(text)
    assert not reader.tags & {"script", "b", "link", "iframe", "object"}
    assert all(re.match(r"#|data:image/svg\+xml;base64,", one) for one in reader.loaded)
    assert any(one.startswith("data:") for one in reader.loaded)
    assert MODEL.replace("\u202e", r"\u202e") in reader.text
    assert "\u202e" not in reader.text


@pytest.fixture
def report(database: Path, tmp_path: Path) -> Callable[..., list[Path]]:
    """Runs the script; returns the files that it names."""

    def run(*arguments: object) -> list[Path]:
        given = ["--db-url", database, "--out", tmp_path / "reports", *arguments]
        result = CliRunner().invoke(
            import_module("plotting.report").main, list(map(str, given)), standalone_mode=False
        )  # fmt: skip
        if result.exception is not None:
            raise result.exception
        return [Path(line) for line in result.stdout.splitlines()]

    return run


def test_files_have_names_that_any_disk_takes(filler: Filler, report: Callable[..., list[Path]]) -> None:
    for name in ("plain", "x" * 300, "../../etc/passwd", "PLAIN"):
        filler.runs(filler.model(name), {0.0: [[90]], EPSILON_MIN: [[80]]}, is_fitted=False)
    files = [report("--model", name)[0] for name in ("plain", "x" * 300, "../../etc/passwd", "PLAIN")]
    assert files[0].name == "report-plain-points.html"
    assert all(re.fullmatch(r"[\w.-]{1,80}", file.name) and file.exists() for file in files)
    assert len({file.name.lower() for file in files}) == 4
    assert len({file.parent for file in files}) == 1


def test_a_browser_prints_the_page(filler: Filler, report: Callable[..., list[Path]], tmp_path: Path) -> None:
    filler.runs(filler.model("plain"), {0.0: [[90]], EPSILON_MIN: [[80]]}, is_fitted=False)
    browser = tmp_path / "browser"
    browser.write_text(
        '#!/bin/sh\nfor each; do case "$each" in --print-to-pdf=*) file="${each#*=}";; esac; done\n'
        "printf '%%PDF /CreationDate (D:20991231235959+00'\"'00'\"') of %s' \"$each\" > \"$file\"\n"
    )
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    html, pdf = report("--model", "plain", "--pdf", "--browser", browser)
    assert pdf == html.with_suffix(".pdf")
    assert re.match(r"%PDF /CreationDate \(D:20\d{6}000000\+00'00'\) of file:///", pdf.read_text())
    assert "D:2099" not in pdf.read_text()
    assert str(html.name) in pdf.read_text()
    browser.write_text("#!/bin/sh\necho 'no display' >&2\nexit 1\n")
    with pytest.raises(TestbedError, match=r"did not print .* no display"):
        report("--model", "plain", "--pdf", "--browser", browser)


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium is installed")
def test_chromium_prints_the_page(filler: Filler, report: Callable[..., list[Path]]) -> None:
    filler.runs(filler.model("plain"), {0.0: [[90]], EPSILON_MIN: [[80]]}, is_fitted=False)
    content = report("--model", "plain", "--pdf")[1].read_bytes()
    assert content.startswith(b"%PDF")
    assert re.search(rb"CreationDate \(D:20\d{6}000000", content)


def test_one_corruption_is_told_in_the_singular(filled: Filler) -> None:
    filled.corruptions(filled.model("one"), CLEAN, {("fog", 1): 70})
    said = str(part(safety_case(filled.store, "one", None), "Statement"))
    assert "Over the one stored combination of a common corruption and its severity" in said
    assert "Bonferroni" not in said


def test_mistakes_are_told(filled: Filler, report: Callable[..., list[Path]], monkeypatch: pytest.MonkeyPatch) -> None:
    filled.runs(filled.model("both"), {0.0: [[90]], 0.1: [[80]]}, is_fitted=False)
    filled.runs(filled.model("both"), {0.0: [[90]]}, dataset="other", is_fitted=False)
    with pytest.raises(UnknownNameError, match=r"Model 'bothh' has no complete evaluation .* Did you mean both"):
        report("--model", "bothh")
    with pytest.raises(UnknownNameError, match=r"on data set 'poinst', but on other, points\. Did you mean points"):
        report("--model", "both", "--dataset", "poinst")
    with pytest.raises(TestbedError, match=r"other, points. Choose one with --dataset"):
        report("--model", "both")
    with pytest.raises(TestbedError, match=r"no program 'netscape'.*--browser"):
        report("--model", "both", "--dataset", "points", "--pdf", "--browser", "netscape")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TestbedError, match=r"No browser was found.*leave out --pdf"):
        report("--model", "both", "--dataset", "points", "--pdf")


def test_a_model_without_anything_shifted_has_nothing_to_say(filler: Filler, database: Path) -> None:
    filler.runs(filler.model("clean"), {0.0: [[90]]}, is_fitted=False)
    with Store.open(database, read_only=True) as store:
        case = safety_case(store, "clean", None)
    assert "nothing can be said about robustness" in part(case, "Statement").leading[-1]
    assert page(case)
