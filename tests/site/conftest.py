"""A small site, and one browser that opens its pages from the file system."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import pytest
from plotting.pages.build import site_files
from plotting.pages.data import SiteData, read_site
from plotting.pages.folder import write_folder
from tests.plotting.conftest import EPSILON_MIN, Filler

from testbed.data.model_types import read_types
from testbed.data.published import read_published
from testbed.store.published_models import put_types
from testbed.store.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SOURCE = "imagenet-testbed"
V2, SKETCH = "imagenetv2-matched-frequency-format-val", "imagenet-sketch"
HOSTILE = (
    "<script>window.isHarmed = true</script>",
    '"><img src=x onerror="window.isHarmed = true"> & <b>bold</b> %{x} $x_1$',
    "wide-" + "w" * 295,
    "emoji \N{SNAKE}, 'quoted', 50 %",
)
SLOPE, INTERCEPT = 0.9, -0.5  # of the published line, on the logit scale
NUM_STANDARD = 12
DEFAULT = {"x": "val", "y": V2, "scale": "logit", "fit": "standard", "find": "", "bars": "1"}


@pytest.fixture(scope="session")
def site_data(tmp_path_factory: pytest.TempPathFactory) -> SiteData:
    """Two models of our own under noise and corruptions, hostile ones, and sixteen published ones along a line."""
    folder = tmp_path_factory.mktemp("store")
    with Store.open(folder / "results.sqlite") as store:
        _evaluate(Filler(store))
        _import(store, folder)
        return read_site(store, sources=[SOURCE])


def _evaluate(filler: Filler) -> None:
    for place, name in enumerate(("forest", "oak", *HOSTILE)):
        model = filler.model(name)
        filler.runs(model, {0.0: [[90 - place]], EPSILON_MIN: [[80 - place, 82 - place]], 0.01: [[70]]})
        right = {("fog", severity): 70 - 8 * severity - place for severity in range(1, 6)}
        filler.corruptions(model, 90 - place, right)


def _import(store: Store, folder: Path) -> None:
    rng = np.random.default_rng(0)
    grid, types = folder / "grid.csv", folder / "types.csv"
    names = [f"standard-{place}" for place in range(NUM_STANDARD)] + ["more-data", "robust", "nameless", HOSTILE[0]]
    kinds = ["STANDARD"] * NUM_STANDARD + ["MORE_DATA", "ROBUST_INTV"]
    with open(grid, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["model", "val", V2, SKETCH])
        for place, name in enumerate(names):
            x = 60 + 1.5 * place
            logit = INTERCEPT + SLOPE * np.log(x / (100 - x)) + rng.normal(0, 0.03) + (name == "more-data")
            y = 100 / (1 + np.exp(-logit))
            writer.writerow([name, x, y, "" if place % 2 else y / 2])
    with open(types, "w", newline="") as stream:
        csv.writer(stream).writerows([("model", "type"), *zip(names, kinds, strict=False)])
    store.put_published(read_published(grid))
    with store.writing() as connection:
        put_types(connection, read_types(types))


@pytest.fixture(scope="session")
def site(site_data: SiteData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("out") / "a site with spaces & signs"
    write_folder(folder, site_files(site_data))
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, as the system has it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the site's browser tests need playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("the site's browser tests need Chromium, which is not installed here")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()


def _watched(page: Page, faults: list[str]) -> Page:
    """The page, which writes down what must not happen: console messages, errors, dialogs, requests elsewhere."""
    page.on("console", lambda message: faults.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else faults.append(one.url))
    return page


Open = Callable[..., AbstractContextManager["Page"]]


@pytest.fixture
def open_page(site: Path, browser: Browser) -> Open:
    """Opens a page of the site in a context of its own; what must not happen fails the test."""

    @contextmanager
    def opened(path: str, *, width: int = 1280, faults: list[str] | None = None, **context: Any) -> Iterator[Page]:
        made = browser.new_context(viewport={"width": width, "height": 800}, **context)
        found: list[str] = [] if faults is None else faults
        page = _watched(made.new_page(), found)
        page.goto((site / path).as_uri())
        yield page
        made.close()
        if faults is None:
            assert not found

    return opened


@pytest.fixture(scope="session")
def _scatter(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    faults: list[str] = []
    made = browser.new_context(viewport={"width": 1280, "height": 800})
    yield _watched(made.new_page(), faults), faults
    made.close()


Scatter = Callable[..., "Page"]


@pytest.fixture
def scatter(site: Path, _scatter: tuple[Page, list[str]]) -> Iterator[Scatter]:
    """Shows the scatter page in a state, in one page that is loaded as seldom as can be: `scatter(x="val", y=V2)`."""
    page, faults = _scatter
    address = (site / "scatter.html").as_uri()

    def shown(**state: str) -> Page:
        fragment = urlencode(DEFAULT | state)
        if page.url.partition("#")[0] != address:
            page.goto(f"{address}#{fragment}")
        else:
            code = """part => {
                document.body.dataset.state = 'drawing';
                history.replaceState(null, '', '#' + part);
                dispatchEvent(new Event('hashchange'));
            }"""
            page.evaluate(code, fragment)
        page.locator("body[data-state='drawn']").wait_for()
        return page

    yield shown
    assert not faults
