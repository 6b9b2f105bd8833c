"""All files of a site."""

from __future__ import annotations

from collections.abc import Iterator

from plotting.drawing.counts import counted
from plotting.pages.data import SiteData
from plotting.pages.downloads import downloads
from plotting.pages.model_page import model_page
from plotting.pages.overview import sections
from plotting.pages.render import FOLDER, render
from plotting.pages.scatter_data import scatter_files
from plotting.pages.setting_page import setting_page, settings_table
from plotting.pages.sheets import sheet_files, sheets, strip_of
from plotting.pages.tables import Table

from testbed.cli import Tell, tell_nothing

Files = Iterator[tuple[str, bytes]]


def site_files(site: SiteData, *, tell: Tell = tell_nothing) -> Files:
    """The files, each with its path relative to the site's folder. Args: tell: is told of every step."""
    yield from _assets()
    tell("Drawing the pictures of corruptions.")
    pictures = sheets(site)
    tell("Writing the overview, the scatter page and the downloads.")
    found = list(downloads(site))
    yield "index.html", render("index.html", path="index.html", site=site)
    yield from ((download.file, download.content) for download in found)
    yield "downloads.html", render("downloads.html", path="downloads.html", downloads=found)
    yield "corruptions.html", render("corruptions.html", path="corruptions.html", sheets=pictures)
    yield from sheet_files(pictures)
    yield from _csv(*(sheet.numbers for sheet in pictures if sheet.numbers))
    yield from scatter_files(site)
    yield from _overview(site)
    tell(f"Writing {counted([len(site.entries)], 'model page')}.")
    for entry in site.entries:
        page = model_page(site, entry)
        yield entry.file, render("model.html", path=entry.file, model=page)
        yield from _csv(page.points)
    tell(f"Writing {counted([len(site.settings)], 'setting page')}.")
    for setting in site.settings:
        ranking = setting_page(site, setting)
        strip = strip_of(pictures, setting)
        yield setting.file, render("setting.html", path=setting.file, found=ranking, strip=strip)
        yield from _csv(ranking.ranking)


def _overview(site: SiteData) -> Files:
    found, settings = sections(site), settings_table(site)
    yield "overview.html", render("overview.html", path="overview.html", sections=found)
    yield "settings.html", render("settings.html", path="settings.html", table=settings)
    yield from _csv(settings, *(section.table for section in found))


def _csv(*tables: Table) -> Files:
    yield from ((table.csv, table.as_csv().encode()) for table in tables if table.csv)


def _assets() -> Files:
    for path in sorted((FOLDER / "assets").iterdir()):
        if path.is_file():
            yield f"assets/{path.name}", path.read_bytes()
