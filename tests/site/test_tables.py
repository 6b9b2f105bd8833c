"""Tables in the browser: sorting, searching, filtering and walking through them; and without JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.site.conftest import SOURCE, V2, Open

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TABLE = "table.data:has(td:text('standard'))"  # of the overview, with published models


def _column(page: Page, title: str) -> tuple[Locator, int]:
    heads = page.locator(f"{TABLE} thead th")
    titles = [text.strip() for text in heads.all_text_contents()]
    return heads.nth(titles.index(title)), titles.index(title)


def _values(page: Page, column: int, attribute: str = "textContent") -> list[str]:
    value = "cell.dataset.value ?? ''" if attribute == "value" else "cell.textContent.trim()"
    rows = "[...document.querySelectorAll('tbody tr:not([hidden])')].filter(row => row.closest('table') === table)"
    code = f"(table) => {rows}.map(row => {{ const cell = row.cells[{column}]; return {value}; }})"
    found: list[str] = page.locator(TABLE).first.evaluate(code)
    return found


def _clicked(page: Page, title: str) -> tuple[str | None, list[str]]:
    head, column = _column(page, title)
    head.get_by_role("button").click()
    return head.get_attribute("aria-sort"), _values(page, column, "value" if "%" in title or "ρ" in title else "")


def test_numbers_are_sorted_from_the_largest_then_from_the_least(open_page: Open) -> None:
    with open_page("overview.html") as page:
        order, values = _clicked(page, "clean %")
        assert order == "descending"
        assert [float(one) for one in values] == sorted((float(one) for one in values), reverse=True)
        order, values = _clicked(page, "clean %")
        assert order == "ascending"
        assert [float(one) for one in values] == sorted(float(one) for one in values)
        assert page.locator(f"{TABLE} th[aria-sort='ascending']").count() == 1


@pytest.mark.parametrize("clicks", [1, 2])
def test_missing_numbers_come_last_in_both_directions(open_page: Open, clicks: int) -> None:
    with open_page("overview.html") as page:
        for _ in range(clicks):
            _, values = _clicked(page, "ρ imagenet-sketch")
        known = [one for one in values if one]
        assert 0 < len(known) < len(values)
        assert values[: len(known)] == known


def test_texts_are_sorted_as_people_count(open_page: Open) -> None:
    with open_page("overview.html") as page:
        order, values = _clicked(page, "model")
        assert order == "ascending"
        assert values.index("standard-2") < values.index("standard-10")


def test_slash_goes_to_the_search_which_keeps_rows_with_all_words(open_page: Open) -> None:
    with open_page("overview.html") as page:
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.type") == "search"
        page.locator("#content").get_by_label("Search").last.fill(f"standard-1 {SOURCE}")
        assert set(_values(page, 0)) == {"standard-1", "standard-10", "standard-11"}
        assert "3 of 16 rows" in page.locator(".tools .count").last.inner_text()
        page.keyboard.press("Escape")
        assert len(_values(page, 0)) == 16


def test_a_filter_keeps_the_rows_of_a_value(open_page: Open) -> None:
    with open_page("overview.html") as page:
        page.locator("select[name='type']").last.select_option("standard training")
        assert len(_values(page, 0)) == 12
        assert all(name.startswith("standard") for name in _values(page, 0))


def test_arrow_keys_walk_through_cells_and_enter_opens_a_page(open_page: Open) -> None:
    with open_page("overview.html") as page:
        page.locator(f"{TABLE} tbody [tabindex='0']").focus()
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            page.keyboard.press(key)
        assert page.evaluate("[document.activeElement.cellIndex, document.activeElement.parentElement.rowIndex]") == [
            2,
            2,
        ]
        page.keyboard.press("Home")
        name = page.evaluate("document.activeElement.textContent")
        page.keyboard.press("Enter")
        page.wait_for_url("**/model/**")
        assert page.locator("h1").inner_text() == name


def test_arrow_up_from_the_first_row_reaches_the_buttons_that_sort(open_page: Open) -> None:
    with open_page("overview.html") as page:
        page.locator(f"{TABLE} tbody [tabindex='0']").focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        assert page.locator(f"{TABLE} th[aria-sort='ascending']").inner_text().startswith("model")


def test_tables_are_whole_without_javascript(open_page: Open) -> None:
    with open_page("overview.html", java_script_enabled=False) as page:
        assert page.locator(f"{TABLE} tbody tr").count() == 16
        assert page.get_by_role("button").count() == 0
        assert page.get_by_role("searchbox").count() == 0
    with open_page("scatter.html", java_script_enabled=False) as page:
        assert "needs JavaScript" in page.locator("main").inner_text()
        assert page.locator("main input:visible").count() == 0


def test_the_page_of_a_setting_ranks_its_models(open_page: Open) -> None:
    with open_page("settings.html") as page:
        page.get_by_role("link", name=V2, exact=True).click()
        first = page.locator("table.data tbody tr").first
        assert "[" in first.inner_text()
        assert page.locator("table.data tbody tr").count() == 16
