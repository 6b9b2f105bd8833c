"""Whatever stands in a name is text wherever it is shown: terminal, figures, tables, report and site."""

from __future__ import annotations

import csv
import json
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.plotting.conftest import EPSILON_MIN, Filler

from testbed.cli import run
from testbed.errors import DataError, DefinitionError
from testbed.store.store import Store
from testbed.visible import visible

SCRIPT, LONG, EMOJI = "<script>alert(1)</script>", "x" * 300, "🦊👩‍🔬 model"
NAMES = (
    SCRIPT, LONG, EMOJI, "$x_1$ & 100% #{a}~^\\textbf{b}", "comma, \"quote\"; 'single'", "_leading [1]*?",
    "</td><img src=x onerror=alert(1)>",
)  # fmt: skip
# What no definition and no imported file may be called, and a database of another program may hold.
STEERING = "a\x1b[31mred\u202egnp\nb"
CLASSES = ("<i>class</i> \u202e $y$", "{{ 7 * 7 }}")
SETTINGS = (
    "val", "imagenetv2-matched-frequency-format-val", "imagenet-sketch", "imagenet-r", "val-on-imagenet-r-classes",
    "<b>setting</b> $z_$",
)  # fmt: skip
NOISY = f"{NAMES[3]} fitted on noise"
EVERYBODY = (*NAMES, *(f"plain-{number}" for number in range(4)))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with models of such names, measured and published."""
    folder = tmp_path_factory.mktemp("hostile")
    with Store.open(folder / "results.sqlite") as store:
        filler = Filler(store, class_names=CLASSES)
        for number, name in enumerate((*NAMES, STEERING)):
            model = filler.model(name)
            filler.runs(model, {0.0: [[90 - number]], EPSILON_MIN: [[80]], 0.01: [[70]]}, is_fitted=False)
            filler.corruptions(model, 90 - number, {("fog", 1): 60, ("fog", 2): 50})
        right = {0.0: [[90]], EPSILON_MIN: [[80]], 0.01: [[70]]}
        filler.runs(filler.model(NOISY, level=0.01), right, is_fitted=False)
    grid = folder / "grid.csv"
    grid.write_text(_grid(EVERYBODY), encoding="utf-8")
    url = f"sqlite:///{folder / 'results.sqlite'}"
    with pytest.raises(SystemExit) as end:
        run(import_module("db").main, ["--db-url", url, "--import-csv", str(grid), "--source", "a&b <u>"])
    assert end.value.code == 0
    return url


def _grid(models: tuple[str, ...]) -> str:
    stream = StringIO()
    rows = [[name, *(60 + 2 * i - 3 * j + (5 * i + 7 * j) % 4 for j in range(len(SETTINGS)))]
            for i, name in enumerate(models)]  # fmt: skip
    csv.writer(stream).writerows([["model", *SETTINGS], *rows])
    return stream.getvalue()


Shown = Callable[..., str]


@pytest.fixture
def shown(url: str, capsys: pytest.CaptureFixture[str]) -> Shown:
    """What a script prints on stdout: `shown('db', '--mscr')`."""

    def print_it(script: str, *arguments: object, codes: tuple[int, ...] = (0,)) -> str:
        with pytest.raises(SystemExit) as end:
            run(import_module(script).main, ["--db-url", url, *map(str, arguments)])
        out, err = capsys.readouterr()
        assert end.value.code in codes, err
        return out

    return print_it


def steers(text: str) -> set[str]:
    """What in a text a terminal would obey, or turns its direction."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"} | ({"\u202e"} & set(text))


def test_definitions_have_plain_names() -> None:
    from models.model_base import Model

    for name in (*NAMES, STEERING):
        with pytest.raises(DefinitionError, match="is not allowed"):
            Model(name=name, transform=None, classifier_loader=list, eval_batch_size=1)


@pytest.mark.parametrize("name", [STEERING, "tab\tname", "\u200fright"])
def test_a_published_file_may_not_steer_a_terminal(name: str, tmp_path: Path) -> None:
    from testbed.data.published import read_published

    (tmp_path / "grid.csv").write_text(_grid((name, "other")), encoding="utf-8")
    with pytest.raises(DataError) as refusal:
        read_published(tmp_path / "grid.csv")
    assert visible(name) in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--list-models-db"], (*NAMES, STEERING)),
        (["--status"], (*NAMES, STEERING)),
        (["--mscr", "--epsilon", "0.01"], (*NAMES, STEERING, CLASSES[0])),
        (["--corruption-report", "--well-posed"], (*NAMES, STEERING)),
        (["--claim", "top1(points) > 1%"], ()),
        (["--print-eval", STEERING, "points"], ()),
        (["--compare", SCRIPT, STEERING, "--eval-settings", "points"], (SCRIPT,)),
        (["--effective-robustness", "val", SETTINGS[-1], "--fit-set", "all", "--with-published", "a&b <u>"], EVERYBODY),
    ],
)  # fmt: skip
def test_the_terminal_shows_names_and_obeys_none(arguments: list[str], names: tuple[str, ...], shown: Shown) -> None:
    out = shown("db", *arguments)
    assert not steers(out)
    assert out
    assert all(visible(name) in out for name in names)


def test_machine_readable_output_keeps_names_as_they_are(shown: Shown, tmp_path: Path) -> None:
    import pandas as pd

    records = json.loads(shown("db", "--mscr", "--epsilon", "0.01", "--json"))["results"]
    assert {record["model"] for record in records} == {*NAMES, NOISY, STEERING}
    shown("db", "--export", tmp_path / "all.csv", "--with-published", "a&b <u>")
    table = pd.read_csv(tmp_path / "all.csv", dtype=str, keep_default_na=False)
    assert set(table["model"]) == {*EVERYBODY, NOISY, STEERING}
    assert SETTINGS[-1] in set(table["eval_setting"])


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Lays figures out without drawing them, which takes most of the time; what matplotlib says of letters fails."""
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    def savefig(figure: Any, part: Path, **how: Any) -> None:
        figure.draw_without_rendering()
        texts = [text.get_text() for text in figure.findobj(Text)]
        assert not [text for text in texts if "$x_1$" in text or "$z_$" in text]  # formulas, else
        part.write_text("drawn")

    monkeypatch.setattr(Figure, "savefig", savefig)
    caplog.set_level(logging.WARNING, logger="matplotlib")
    yield
    assert not [record.getMessage() for record in caplog.records if record.name.startswith("matplotlib")]


PUBLISHED = ("--with-published", "a&b <u>")
FITTED = ("--fit-set", "all", *PUBLISHED)


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("mscr_against_clean", ()),
        ("corruption_heatmap", ("--models", SCRIPT, LONG, NAMES[3], NAMES[4])),
        ("plot_x_vs_y", ("val", SETTINGS[-1], *FITTED, "--highlight", SCRIPT, LONG, EMOJI, NAMES[3], NAMES[5])),
        ("grid", (*PUBLISHED, "--label-space", "")),
        ("model_table", FITTED),
    ],
)
def test_figures_and_their_numbers(script: str, arguments: tuple[str, ...], shown: Shown, tmp_path: Path) -> None:
    files = [Path(line) for line in shown(f"plotting.{script}", *arguments, "--out", tmp_path).splitlines()]
    assert all(file.parent == tmp_path and len(file.name) < 120 for file in files)
    numbers = "\n".join(file.read_text(encoding="utf-8") for file in files if file.suffix == ".csv")
    cells = {cell for row in csv.reader(StringIO(numbers, newline="")) for cell in row}
    assert {SCRIPT, LONG, NAMES[3], NAMES[4]} <= cells
    for file in files:
        if file.suffix == ".tex":
            text = file.read_text(encoding="utf-8")
            assert r"\textbf{b}" not in text
            assert r"\$x\_1\$ \& 100\% \#\{a\}" in text
            assert "U+1F98A" in text


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("script", ["accuracy_matrix", "accuracy_surface"])
def test_figures_of_a_model_and_the_same_fitted_on_noise(script: str, shown: Shown, tmp_path: Path) -> None:
    assert shown(f"plotting.{script}", "--models", NAMES[3], NOISY, "--out", tmp_path)


class Page(HTMLParser):
    """The tags of a page, its attributes and the texts that it shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def is_plain(self) -> bool:
        """Whether nothing of a name has become a part of the page."""
        return not self.tags & {"img", "i", "u", "b"} and not [name for name in self.attributes if name[:2] == "on"]


@pytest.mark.parametrize("name", [SCRIPT, LONG, NAMES[5], STEERING])
def test_the_report(name: str, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plotting.safety_case.noise.noise_pictures", lambda found: [])
    (line,) = shown("plotting.report", "--model", name, "--out", tmp_path).splitlines()
    page = Page(Path(line).read_text(encoding="utf-8").replace('<img src="data:', '<picture src="'))
    assert page.is_plain()
    assert "script" not in page.tags
    everything = "".join(page.texts)
    assert not steers(everything)
    assert visible(name) in everything
    assert visible(CLASSES[0]) in everything or CLASSES[1] in everything
    assert "{{ 7 * 7 }}" in everything or "49" not in everything


def test_the_site(shown: Shown, tmp_path: Path) -> None:
    out = tmp_path / "site"
    shown("plotting.site", "--out", out, *PUBLISHED)
    files = [file for file in out.rglob("*") if file.is_file()]
    assert all(len(file.name) <= 80 and file.name.isascii() for file in files)
    assert len({str(file).lower() for file in files}) == len(files)
    texts = set()
    for file in files:
        if file.suffix == ".html":
            page = Page(file.read_text(encoding="utf-8"))
            assert page.is_plain(), file
            texts |= {text.strip() for text in page.texts}
    assert {SCRIPT, LONG, EMOJI, NAMES[3], NAMES[6]} <= texts
    assert not any(steers(text) for text in texts)
    data = "".join(file.read_text(encoding="utf-8") for file in files if file.suffix == ".js" and "data" in file.parts)
    assert "gnp" in data
    assert not re.search(r"(?<!\\)\\u(202e|001b)", data)
