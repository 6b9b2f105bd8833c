"""How long a site of 400 models on 500 settings takes to write and to open: `python tests/benchmarks/site_pages.py`."""

from __future__ import annotations

import csv
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

import numpy as np
from plotting.pages.build import site_files
from plotting.pages.data import read_site
from plotting.pages.folder import write_folder
from tests.benchmarks.measuring import RESULTS, print_table, write_table

from testbed.data.published import read_published
from testbed.store.store import Store

MODELS, SETTINGS, REPEATS = 400, 500, 5
FIRST = ("val", "imagenetv2-matched-frequency-format-val")


def grid(path: Path) -> None:
    """A grid of every model on every setting, along lines in logit space."""
    rng = np.random.default_rng(0)
    x = rng.normal(1.0, 0.6, MODELS)[:, None]
    y = rng.uniform(0.4, 1.5, SETTINGS) * x + rng.normal(-1, 1, SETTINGS) + rng.normal(0, 0.1, (MODELS, SETTINGS))
    names = [*FIRST, *(f"shift-{place}" for place in range(SETTINGS - len(FIRST)))]
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["model", *names])
        rows = np.round(1 / (1 + np.exp(-y)), 5).tolist()
        writer.writerows([f"model-{place}", *row] for place, row in enumerate(rows))


def write(folder: Path) -> list[dict[str, Any]]:
    """Writes the site of a grid into `folder`/site; returns what was measured."""
    grid(folder / "grid.csv")
    with Store.open(folder / "store.sqlite") as store:
        store.put_published(read_published(folder / "grid.csv"))
        begin, cpu = time.perf_counter(), time.process_time()
        site = read_site(store, sources=["imagenet-testbed"])
        read = time.perf_counter() - begin
        write_folder(folder / "site", site_files(site))
    taken = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}
    sizes = {path.relative_to(folder / "site"): path.stat().st_size for path in (folder / "site").rglob("*.html")}
    largest = max(sizes, key=lambda path: sizes[path])
    return [
        {"what": "read", "seconds": read},
        {"what": f"read and write {len(sizes)} pages", **taken, "kilobytes": sum(sizes.values()) / 1000},
        {"what": f"largest page: {largest}", "kilobytes": sizes[largest] / 1000},
    ]


def opened(site: Path) -> list[dict[str, Any]]:
    """Opens a page of each kind in headless Chromium: seconds until it is ready, the scatter page until it is drawn.

    The CPU seconds are those of the page's main thread, which depend little on what else the machine does.
    """
    from playwright.sync_api import sync_playwright

    pages = ["overview.html", "settings.html", "scatter.html"]
    pages += [str(next(iter(sorted((site / kind).glob("*.html")))).relative_to(site)) for kind in ("model", "setting")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        found = {name: [_open(browser, site / name) for _ in range(REPEATS)] for name in pages}
        browser.close()
    return [
        {
            "what": f"open {name.partition('/')[0]}",
            "seconds": statistics.median(wall for wall, _ in times),
            "cpu_seconds": statistics.median(cpu for _, cpu in times),
        }
        for name, times in found.items()
    ]


def _open(browser: Any, file: Path) -> tuple[float, float]:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    begin = time.perf_counter()
    page.goto(file.as_uri())
    if file.name == "scatter.html":
        page.locator("body[data-state='drawn']").wait_for()
    wall = time.perf_counter() - begin
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    page.context.close()
    return wall, metrics["TaskDuration"]


def main() -> None:
    """Prints the table, and writes it with facts about the machine into results/benchmarks."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [*write(Path(folder)), *opened(Path(folder) / "site")]
    print_table(rows)
    write_table(rows, RESULTS / "site_pages", models=MODELS, settings=SETTINGS, repeats=REPEATS)


if __name__ == "__main__":
    main()
