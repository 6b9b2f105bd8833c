"""Pages for everybody: names as text, colours that can be read, narrow screens, paper; and nothing foreign runs."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from plotting.pages.data import SiteData
from tests.site.conftest import HOSTILE, SOURCE, Open, Scatter
from tests.site.test_scatter import hover

if TYPE_CHECKING:
    from playwright.sync_api import Page

LEAST_CONTRAST = 4.5  # WCAG 2.2, level AA, for text
PLAIN = ("index", "overview", "scatter", "settings", "corruptions", "downloads")


def _kinds(site: Path, data: SiteData) -> list[Path]:
    """A page of each kind, and of models also those with hostile names."""
    models = {entry.model: entry.file for entry in data.entries}
    settings = {setting.group: setting.file for setting in data.settings}
    names = ("forest", "more-data", *HOSTILE)
    files = [*(f"{name}.html" for name in PLAIN), *(models[name] for name in names), *settings.values()]
    return [site / file for file in files]


def test_no_page_has_an_error_or_is_wider_than_a_narrow_screen(
    site: Path, site_data: SiteData, open_page: Open
) -> None:
    wide = {}
    with open_page("index.html", width=400) as page:
        for path in _kinds(site, site_data):
            page.goto(path.as_uri())
            if (width := page.evaluate("document.documentElement.scrollWidth")) > 400:
                wide[path.name] = width
    assert not wide


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_shows_as_text(open_page: Open, scatter: Scatter, site_data: SiteData, name: str) -> None:
    entry = next(entry for entry in site_data.entries if entry.model == name)
    with open_page(entry.file) as page:
        assert page.locator("h1").text_content() == entry.name
        assert entry.name in page.title()
        assert not page.evaluate("window.isHarmed")
    page = scatter(x="points", y="points-noise-0.01", find=name.split()[0])
    shown = hover(page, entry.name)
    assert shown.startswith(entry.name[:20])
    assert ("<b>bold</b> %{x} $x_1$" in shown) == ("<b>" in name)
    assert page.locator("#point a").text_content() == entry.name
    assert not page.evaluate("window.isHarmed")


def test_hostile_names_show_as_text_in_the_overview(open_page: Open, site_data: SiteData) -> None:
    with open_page("overview.html") as page:
        shown = page.locator("table.data a").all_text_contents()
        assert {entry.name for entry in site_data.entries if entry.model in HOSTILE} <= set(shown)
        assert page.locator("main script, main img").count() == 0
        assert not page.evaluate("window.isHarmed")


def test_a_published_hostile_name_shows_as_text(scatter: Scatter) -> None:
    page = scatter()
    page.locator("#points").evaluate("one => { one.open = true; }")
    page.locator("#listed table").wait_for()
    assert HOSTILE[0] in "".join(page.locator("#listed tbody th").all_text_contents())
    page.locator("#listed select").last.select_option(SOURCE)
    assert page.locator("#listed tbody tr:visible").count() == 16


def test_nothing_that_is_not_a_file_of_the_site_runs(open_page: Open) -> None:
    faults: list[str] = []
    with open_page("overview.html", faults=faults) as page:
        code = "const made = document.createElement('script'); made.textContent = 'window.isHarmed = true';"
        page.evaluate(f"{code} document.head.append(made)")
        assert not page.evaluate("window.isHarmed")
    assert any("Content Security Policy" in fault for fault in faults)


def _luminance(color: tuple[float, ...]) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _colors(page: Page) -> dict[str, tuple[float, ...]]:
    """What the variables and heat classes of the style sheet are in the present theme, red, green, blue from 0 to 1."""
    code = """(names) => names.map((name) => {
        const made = document.createElement('span'), canvas = document.createElement('canvas').getContext('2d');
        if (/^h[0-9]+$/.test(name)) made.className = name;
        else made.style.backgroundColor = `var(--${name})`;
        document.body.append(made);
        canvas.fillStyle = getComputedStyle(made).backgroundColor;
        canvas.fillRect(0, 0, 1, 1);
        made.remove();
        return [name, [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255)];
    })"""
    names = ["ink", "muted", "link", "good", "bad", "paper", "surface", "raised", "mark", *(f"h{k}" for k in range(21))]
    return {name: tuple(parts) for name, parts in page.evaluate(code, names)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_every_ground(open_page: Open, scheme: Any) -> None:
    with open_page("index.html", color_scheme=scheme) as page:
        colors = _colors(page)
    heat = [f"h{k}" for k in range(21)]
    pairs = [
        *product(("ink", "muted", "link", "good", "bad"), ("paper", "surface")),
        *product(["ink"], ["raised", "mark", *heat]),
    ]
    weak = {pair: _contrast(colors[pair[0]], colors[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < LEAST_CONTRAST} == {}
    assert (_luminance(colors["paper"]) > 0.5) == (scheme == "light")
    assert len({colors[name] for name in heat}) == len(heat)


def test_the_theme_that_a_reader_chooses_stays(open_page: Open) -> None:
    with open_page("overview.html", color_scheme="light") as page:
        background = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(background)
        page.get_by_role("button", name="dark colours").click()
        dark = page.evaluate(background)
        page.reload()
        assert page.evaluate(background) == dark != light
        assert page.get_by_role("button", name="light colours").is_visible()


def test_the_plot_follows_the_theme(scatter: Scatter) -> None:
    page = scatter()
    ground = "document.getElementById('plot').layout.paper_bgcolor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="dark colours").click()
    dark = page.evaluate(ground)
    page.get_by_role("button", name="light colours").click()
    assert page.evaluate(ground) == light != dark


def test_header_and_first_column_stay_in_sight(open_page: Open) -> None:
    with open_page("overview.html", width=400) as page:
        box = page.locator(".scroll:has(td:text('standard'))")
        places = """one => ({
            left: one.querySelector('tbody th').getBoundingClientRect().left,
            top: one.querySelector('thead').getBoundingClientRect().top - one.getBoundingClientRect().top,
        })"""
        before = box.evaluate(places)
        box.evaluate("one => { one.scrollLeft = 200; one.scrollTop = 100; }")
        after = box.evaluate(places)
        assert after["left"] == before["left"]
        assert after["top"] <= before["top"]


def test_paper_shows_whole_tables_and_no_controls(open_page: Open) -> None:
    with open_page("overview.html") as page:
        page.emulate_media(media="print")
        assert page.locator("header nav").is_hidden()
        assert page.locator(".tools").first.is_hidden()
        heights = page.locator(".scroll").last.evaluate("one => [one.clientHeight, one.scrollHeight]")
        assert heights[0] == heights[1]


def test_a_page_can_be_read_from_the_keyboard_alone(open_page: Open) -> None:
    with open_page("overview.html") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").is_visible()
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
