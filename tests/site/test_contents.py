"""What the pages say: the numbers that were stored, worked out by hand, and where they come from."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from plotting.pages.build import site_files
from plotting.pages.data import SiteData, read_site
from plotting.pages.heat import heat_maps
from plotting.pages.model_page import model_page
from plotting.pages.overview import sections
from plotting.pages.setting_page import setting_page
from plotting.pages.sheets import sheet_of
from plotting.pages.tables import Cell, Table
from plotting.site import main
from tests.plotting.conftest import EPSILON_MIN, Filler

from testbed.errors import DataError, UnknownNameError
from testbed.store.store import Store

NOISE = f"points-noise-{EPSILON_MIN:g}"


def _row(table: Table, name: str) -> dict[str, Cell]:
    """The row of a name, by header."""
    row = next(row for row in table.rows if row[0].text == name)
    return dict(zip([column.name for column in table.columns], row, strict=True))


def _values(row: dict[str, Cell]) -> dict[str, float | None]:
    return {name: cell.value for name, cell in row.items()}


def test_mscr_loss_and_recovery_of_a_model_are_those_of_its_counts(site_data: SiteData) -> None:
    # 90 of 100 right when clean; 80 and 82 of these in the two draws of the noise, and no other image
    page = model_page(site_data, site_data.entry("forest"))
    found = _values(_row(page.noise, NOISE))
    assert found["accuracy %"] == pytest.approx(81)
    assert found["MSCR %"] == pytest.approx(100 * (81 - 90) / 90)
    assert found["loss %"] == pytest.approx(10)
    assert found["recovery %"] == pytest.approx(0)
    assert (found["n"], _row(page.noise, NOISE)["draws"].text) == (100, "2")
    assert _row(page.noise, NOISE)["loss %"].interval
    assert page.levels == [
        f"{NOISE}: the level is half of the minimal class separation 0.008 of all 500 samples (all)."
    ]


def test_a_heat_map_has_accuracy_and_the_part_of_the_clean_images_that_stay_right(site_data: SiteData) -> None:
    accuracy, relative = heat_maps(site_data, site_data.entry("forest"))
    fog = [62, 54, 46, 38, 30]  # of 100 images, all of them among the 90 that are right when clean
    assert [cell.value for cell in accuracy.rows[0][1:6]] == fog
    assert accuracy.rows[0][6].value == pytest.approx(46)
    assert [cell.value for cell in relative.shown.rows[0][1:]] == pytest.approx([100 * count / 90 for count in fog])
    assert "95 % interval [" in relative.rows[0][1].title
    assert "n = 90" in relative.rows[0][1].title


def test_an_overview_has_a_table_for_each_clean_setting_and_marks_what_others_published(site_data: SiteData) -> None:
    own, theirs = sections(site_data)
    assert (own.name, theirs.name) == ("points", "val")
    forest = _row(own.table, "forest")
    assert (forest["clean %"].value, forest["n"].value) == (90, 100)
    assert forest["worst corruption"].text == "fog 5"
    assert forest["accuracy there %"].value == pytest.approx(30)
    assert forest["source"].text == "measured here"
    assert _row(theirs.table, "more-data")["source"].text == "imagenet-testbed"


def test_effective_robustness_stands_where_a_line_was_fitted(site_data: SiteData) -> None:
    fit = site_data.effective["imagenetv2"].table.set_index("entry")
    shown = _row(sections(site_data)[1].table, "more-data")["ρ imagenetv2"]
    assert shown.value == pytest.approx(fit.loc["more-data", "rho"])
    assert shown.look == "above"
    page = model_page(site_data, site_data.entry("more-data"))
    assert page.robustness.rows[0][5].text.startswith("above standard models")


def test_a_ranking_goes_from_the_most_accurate_down_with_n(site_data: SiteData) -> None:
    page = setting_page(site_data, site_data.setting("val"))
    values = [
        row[[column.name for column in page.ranking.columns].index("accuracy %")].value for row in page.ranking.rows
    ]
    assert values == sorted(values, key=lambda value: -(value or 0))
    assert _row(page.ranking, "robust")["n"].value == 50_000
    assert dict(page.data)["Licence"] == "for non-commercial research and education; it asks for an account"
    assert page.address == "https://image-net.org"


def test_a_mean_over_severities_is_a_setting_with_links_to_its_parts(site_data: SiteData) -> None:
    page = setting_page(site_data, site_data.setting("points-c.fog_in-memory"))
    assert [part.name for part in page.parts] == [f"points-c.fog.{level}_in-memory" for level in range(1, 6)]
    assert _row(page.ranking, "forest")["accuracy %"].value == pytest.approx(46)


def test_a_model_says_where_it_is_from_and_how_to_make_its_numbers_again(site: Path, site_data: SiteData) -> None:
    entry = site_data.entry("forest")
    page = model_page(site_data, entry)
    assert page.origin is not None
    assert page.origin.model is not None
    text = (site / entry.file).read_text()
    assert page.origin.model.fingerprint in text
    assert [command.split(" --eval-settings ")[0] for command in page.commands] == [
        "python eval.py --models forest --db"
    ]
    assert NOISE in page.commands[0]


def test_every_point_is_in_the_files_that_can_be_downloaded(site: Path, site_data: SiteData) -> None:
    rows = list(csv.DictReader(io.StringIO((site / "data/points.csv").read_text())))
    assert len(rows) == len(site_data.points)
    grid = {row["entry"]: row for row in csv.DictReader(io.StringIO((site / "data/grid.csv").read_text()))}
    assert float(grid["forest"][NOISE]) == pytest.approx(81)
    assert grid["forest"]["val"] == ""


def test_links_of_every_table_to_its_file_hold_the_same_rows(site: Path, site_data: SiteData) -> None:
    page = setting_page(site_data, site_data.setting(NOISE))
    rows = list(csv.reader(io.StringIO((site / page.ranking.csv).read_text())))
    assert [row[0] for row in rows[1:]] == [row[0].text for row in page.ranking.rows]


def test_a_site_is_the_same_bytes_every_time(site: Path, site_data: SiteData) -> None:
    told: list[str] = []
    anew = {name: hashlib.sha256(content).digest() for name, content in site_files(site_data, tell=told.append)}
    assert f"Writing {len(site_data.entries)} model pages." in told
    assert f"Writing {len(site_data.settings)} setting pages." in told
    assert anew == {name: hashlib.sha256((site / name).read_bytes()).digest() for name in anew}


def test_nothing_of_this_machine_is_on_the_pages(site: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    assert not [page.name for page in site.rglob("*.html") if root in page.read_text()]


def test_a_picture_is_shown_clean_and_at_every_severity() -> None:
    sheet = sheet_of("digits", ["fog"])
    strip = sheet.strip("fog")
    assert strip is not None
    assert strip.png.startswith(b"\x89PNG")
    assert (strip.width, strip.height) == (6 * 120 + 5 * 4, 120)
    assert "severities 1 to 5" in strip.alt
    assert sheet.numbers is not None
    assert len(sheet.numbers.rows) == 5


def test_a_data_set_that_is_not_there_has_no_picture_but_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    for dataset in ("imagenet", "cifar10"):  # the second would be downloaded for an evaluation
        sheet = sheet_of(dataset, ["fog"])
        assert not sheet.strips
        assert sheet.reason
        assert str(tmp_path) not in sheet.reason
    assert "Downloading" not in capsys.readouterr().err


@pytest.fixture
def small(tmp_path: Path) -> Path:
    database = tmp_path / "small.sqlite"
    with Store.open(database) as store:
        filler = Filler(store)
        for name in ("oak", "elm"):
            filler.runs(filler.model(name), {0.0: [[90]], 0.01: [[70]]})
    return database


def test_a_site_of_a_few_models_and_settings_holds_no_others(small: Path) -> None:
    with Store.open(small, read_only=True, create=False) as store:
        site = read_site(store, models=["o*"], settings=["points"])
    assert [entry.name for entry in site.entries] == ["oak"]
    assert [setting.name for setting in site.settings] == ["points"]
    assert site.own.changes == {}


@pytest.mark.parametrize("name", ["points", "points-noise-0.01"])
def test_a_site_of_one_setting_has_all_its_pages(small: Path, name: str) -> None:
    with Store.open(small, read_only=True, create=False) as store:
        site = read_site(store, settings=[name])
    pages = {file: content.decode() for file, content in site_files(site) if file.endswith(".html")}
    assert {entry.file for entry in site.entries} | {site.setting(name).file} <= set(pages)
    assert name in pages["overview.html"]


def test_what_is_not_stored_is_told_with_what_there_is(small: Path, tmp_path: Path) -> None:
    with Store.open(small, read_only=True, create=False) as store:
        with pytest.raises(UnknownNameError, match="'ash'"):
            read_site(store, models=["ash"])
        with pytest.raises(UnknownNameError, match=re.escape("Stored: points, points-noise-0.01.")):
            read_site(store, settings=["val"])
        with pytest.raises(UnknownNameError, match="no published source 'timm'"):
            read_site(store, sources=["timm"])
    with Store.open(tmp_path / "empty.sqlite") as store:
        with pytest.raises(UnknownNameError, match=r"python eval\.py --models digits-resnet"):
            read_site(store)


def test_the_command_writes_a_site_and_refuses_a_folder_of_other_files(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    given = ["--db-url", str(small), "--out", str(out), "--models", "oak", "elm", "--eval-settings", "points*"]
    done = CliRunner().invoke(main, given, standalone_mode=False, catch_exceptions=False)
    assert done.stdout.strip() == str(out / "index.html")
    assert done.stderr.splitlines()[0].startswith("Reading ")
    assert "2 models on 2 settings" in (out / "index.html").read_text()
    (out / "site.json").unlink()
    with pytest.raises(DataError, match="other files"):
        CliRunner().invoke(main, [*given, "--override", "--quiet"], standalone_mode=False, catch_exceptions=False)


def test_what_few_fitted_models_do_not_tell_stands_on_the_pages_of_model_and_setting(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.sqlite") as store:
        filler = Filler(store)
        for name, num_runs in (("three", 3), ("five", 5)):
            filler.runs(filler.model(name), {0.0: [[90]] * num_runs, EPSILON_MIN: [[80]] * num_runs})
        site = read_site(store)
    levels = {entry.model: " ".join(model_page(site, entry).levels) for entry in site.entries}
    assert "3 runs tell little" in levels["three"]
    assert "tell little" not in levels["five"]
    assert ["3 runs tell little" in words for words in setting_page(site, site.setting(NOISE)).notes] == [True]
