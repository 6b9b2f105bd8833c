"""What lies in the folder of a site: every link leads somewhere, and nothing leads out of it unasked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from plotting.pages.scatter_data import PLOTLY


class _Links(HTMLParser):
    """The addresses and anchors of a page, and attributes that would run a script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value or "")
            elif name == "id":
                self.anchors.add(value or "")
            elif name.startswith("on") or name == "style":
                self.handlers.append(f"{tag} {name}")


@cache
def _page(path: Path) -> _Links:
    return _Links(path.read_text(encoding="utf-8"))


def _pages(site: Path) -> Iterator[Path]:
    yield from sorted(site.rglob("*.html"))


def test_every_link_leads_to_a_file_and_an_anchor_that_are_there(site: Path) -> None:
    broken = []
    for page in _pages(site):
        for link in _page(page).links:
            parts = urlsplit(link)
            if parts.scheme in ("https", "data"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            is_there = not parts.scheme and target.is_file() and target.is_relative_to(site.resolve())
            if not is_there or (parts.fragment and parts.fragment not in _page(target).anchors):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_no_page_has_inline_handlers_or_styles(site: Path) -> None:
    assert not [(page.name, _page(page).handlers) for page in _pages(site) if _page(page).handlers]


def test_plotly_is_there_once_and_loaded_by_the_scatter_page_alone(site: Path) -> None:
    loading = [page.name for page in _pages(site) if any("plotly" in link for link in _page(page).links)]
    assert loading == ["scatter.html"]
    assert [path.relative_to(site).as_posix() for path in site.rglob("*plotly*")] == [PLOTLY]
