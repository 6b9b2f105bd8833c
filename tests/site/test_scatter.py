"""The scatter page in the browser: its line is Python's, and names, choices and keys do what they should."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from plotting.pages.data import SiteData
from tests.site.conftest import SKETCH, SOURCE, V2, Scatter

from testbed.results.effective import effective_robustness

if TYPE_CHECKING:
    from playwright.sync_api import Page

NUMBER = r"([−\d.]+)"


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace("+", ""))


def _told(page: Page) -> str:
    return page.locator("#told").inner_text()


def _rho(page: Page) -> dict[str, float]:
    """The effective robustness of all models, from the table under the plot."""
    if not page.locator("#points").evaluate("details => details.open"):
        page.locator("#points summary").click()
        page.locator("#points[open]").wait_for()
        page.evaluate("new Promise((done) => setTimeout(done))")  # until it is filled
    code = "rows => rows.map(row => [row.cells[0].textContent, Number(row.cells[5].dataset.value)])"
    return dict(page.locator("#listed tbody tr").evaluate_all(code))


def _state(page: Page) -> dict[str, str]:
    found: dict[str, str] = page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    return found


def hover(page: Page, name: str) -> str:
    """What is shown at a model when the mouse is on its point."""
    code = """(name) => {
        const plot = document.getElementById('plot');
        for (const trace of plot.data) {
            const at = trace.rows?.findIndex((row) => row.name === name) ?? -1;
            if (at < 0) continue;
            const { _fullLayout: layout } = plot, box = plot.getBoundingClientRect();
            return [box.left + layout.xaxis._offset + layout.xaxis.l2p(trace.x[at]),
                    box.top + layout.yaxis._offset + layout.yaxis.l2p(trace.y[at])];
        }
    }"""
    page.locator("#plot").scroll_into_view_if_needed()
    page.mouse.move(0, 0)  # off the point that an earlier test may have left it on
    page.locator(".hovertext").wait_for(state="detached")
    x, y = page.evaluate(code, name)
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.locator(".hovertext").wait_for()
    return page.locator(".hovertext").first.text_content() or ""


@pytest.mark.parametrize("scale", ["logit", "probit", "linear"])
def test_line_and_rho_are_those_of_the_package(scatter: Scatter, site_data: SiteData, scale: str) -> None:
    expected = effective_robustness(site_data.points, "val", V2, scale=scale)
    unit = 100 if scale == "linear" else 1  # the page writes a line of percentages, the package of fractions
    page = scatter(scale=scale)
    match = re.search(rf"through (\d+) standard models: .* = {NUMBER} .* ([−+]) {NUMBER},", _told(page))
    assert match is not None
    assert int(match[1]) == expected.lines[0].n == 12
    assert _number(match[2]) == pytest.approx(expected.lines[0].slope, abs=1e-4)
    assert _number(match[3] + match[4]) == pytest.approx(unit * expected.lines[0].intercept, abs=1e-4)
    assert _rho(page) == pytest.approx(expected.table.set_index("entry")["rho"].to_dict(), abs=2e-3)


def test_own_models_are_held_against_the_line_of_published_ones(scatter: Scatter, site_data: SiteData) -> None:
    points = site_data.points.copy()
    points["is_own"] = points["is_own"] | points["entry"].isin(["standard-2", "standard-11"])
    expected = effective_robustness(points, "val", V2)
    page = scatter(fit="all")
    own = [place for place, entry in enumerate(site_data.entries) if entry.name in ("standard-2", "standard-11")]
    mark = "([own, is]) => own.forEach((place) => { TESTBED_POINTS.entries.own[place] = is; })"
    page.evaluate(mark, [own, 1])
    page.locator("#fit").select_option("standard")
    told, rho = _told(page), _rho(page)
    page.evaluate(mark, [own, 0])  # the page is shared
    assert f"through {expected.lines[0].n} standard models" in told
    assert expected.lines[0].n == 10
    assert rho == pytest.approx(expected.table.set_index("entry")["rho"].to_dict(), abs=2e-3)


def test_a_model_shows_its_name_intervals_and_rho_under_the_mouse(scatter: Scatter, site_data: SiteData) -> None:
    row = site_data.effective["imagenetv2"].table.set_index("entry").loc["more-data"]
    page = scatter()
    shown = hover(page, "more-data")
    assert shown.startswith("more-data")
    assert f"{row['y']:.2f} % [{row['y_low']:.2f}, {row['y_high']:.2f}], n = 10,000" in shown
    rho = f"+{row['rho']:.2f} points [+{row['rho_low']:.2f}, +{row['rho_high']:.2f}]"
    assert rho in shown
    assert "0 of the line's 12 models are as far from it" in shown
    page.locator("#point a").click()
    page.wait_for_url("**/model/more-data-*")


def test_settings_are_chosen_by_keyboard_and_kept_in_the_address(scatter: Scatter) -> None:
    page = scatter()
    page.locator("#y").click()
    page.keyboard.type("sketch")
    assert page.locator("#y-list [role='option']").count() == 1
    page.keyboard.press("Enter")
    assert _state(page) == {"x": "val", "y": SKETCH, "scale": "logit", "fit": "standard", "bars": "1"}
    page.locator("#swap").press("Enter")
    page.locator("#scale").select_option("probit")
    page.locator("#fit").select_option("all")
    assert _state(page) == {"x": SKETCH, "y": "val", "scale": "probit", "fit": "all", "bars": "1"}
    told = _told(page)
    page.reload()
    page.locator("body[data-state='drawn']").wait_for()
    assert _told(page) == told
    assert page.locator("#x").input_value() == SKETCH


def test_escape_and_leaving_keep_the_setting_that_was_chosen(scatter: Scatter) -> None:
    page = scatter()
    page.locator("#x").click()
    page.keyboard.type("no such setting")
    assert page.get_by_text("Nothing has these words").is_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.locator("#x").input_value() == "val"
    assert page.locator("#x").get_attribute("aria-expanded") == "false"


def test_a_known_pair_sets_both_settings(scatter: Scatter) -> None:
    page = scatter(x="points", y="points")
    assert page.locator("#pair").input_value() == "-1"
    page.locator("#pair").select_option(label="ImageNet-Sketch")
    assert (page.locator("#x").input_value(), page.locator("#y").input_value()) == ("val", SKETCH)


@pytest.mark.parametrize("scale", ["cubic", "toString"])  # the second is a name that every object has
def test_what_an_address_asks_for_that_is_not_there_is_left_as_it_is(scatter: Scatter, scale: str) -> None:
    page = scatter(x="nothing", scale=scale, find="<b>x</b>")
    assert "16 models have both settings." in _told(page)
    assert 'No model here fits "<b>x</b>".' in _told(page)


def test_a_search_rings_the_models_that_it_finds(scatter: Scatter) -> None:
    page = scatter()
    page.locator("#find").fill(f"standard-1 {SOURCE}")
    page.get_by_text("3 found.").wait_for()
    names = page.evaluate("document.getElementById('plot').data.at(-1).rows.map((row) => row.name)")
    assert names == ["standard-1", "standard-10", "standard-11"]
    assert _state(page)["find"] == f"standard-1 {SOURCE}"


def test_models_of_low_accuracy_are_hidden_until_asked_for_and_do_not_widen_the_axes(scatter: Scatter) -> None:
    page = scatter()
    page.evaluate("""() => {
        const { entries, kinds, columns } = TESTBED_POINTS;
        const low = entries.name.indexOf('robust');
        [window.kept, entries.kind[low]] = [entries.kind[low], kinds.findIndex((kind) => kind.is_low)];
        for (const column of columns) if (column.entry.includes(low)) column.value[column.entry.indexOf(low)] = 2;
    }""")
    look = """() => { const plot = document.getElementById('plot'), trace = plot.data.find(({ isLow }) => isLow);
        return [trace.name, trace.visible, Fits.scales.logit.percent(plot.layout.xaxis.range[0])]; }"""
    page = scatter(find="")
    assert "Not shown: 1 of low accuracy" in _told(page)
    name, visible, least = page.evaluate(look)
    assert (name, visible) == ("low accuracy (1)", "legendonly")
    assert least > 50
    page.locator(".legend .traces", has_text="low accuracy").locator(".legendtoggle").click()
    page.locator("#low:checked").wait_for()
    page.locator("body[data-state='drawn']").wait_for()
    _, visible, least = page.evaluate(look)
    assert visible is True
    assert least < 2
    assert _state(page)["low"] == "1"
    assert "Not shown" not in _told(page)
    page.locator("#low").uncheck()
    page.locator("#find").fill("robust")  # what is searched for is shown
    page.get_by_text("1 found.").wait_for()
    assert page.evaluate(look)[1] is True
    page.goto("about:blank")  # without the changed points


def test_arrow_keys_go_from_model_to_model_by_accuracy(scatter: Scatter) -> None:
    page = scatter()
    page.locator("#plot").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#point").inner_text().startswith("standard-0\n")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**/model/standard-1-*")


def test_two_settings_without_a_common_model_say_so(scatter: Scatter) -> None:
    page = scatter(x="points", y="val")
    assert _told(page).startswith("0 models have both settings. Choose two")


def test_a_line_needs_three_models(scatter: Scatter) -> None:
    page = scatter(x="points", y="points-noise-0.01")
    assert "No line: fewer than three standard models have both." in _told(page)


def test_ticks_stand_at_the_percentages_that_they_name(scatter: Scatter) -> None:
    page = scatter()
    code = "(({ tickvals, ticktext }) => tickvals.map((at, i) => [at, ticktext[i]]))"
    ticks = page.evaluate(f"{code}(document.getElementById('plot').layout.xaxis)")
    assert len(ticks) >= 3
    for place, text in ticks:
        assert page.evaluate("place => Fits.scales.logit.percent(place)", place) == pytest.approx(float(text))
