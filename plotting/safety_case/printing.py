"""A page as PDF, by the print of a browser that is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed.errors import DataError, TestbedError
from testbed.paths import replacing

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
SECONDS = 120.0
# Moments that the browser writes into the file, in the form of PDF: D:YYYYMMDDHHmmSS and the zone.
_MOMENT = re.compile(rb"\((D:)\d{14}([+-]\d\d'\d\d'|Z)?\)")


def find_browser(named: str | None) -> str:
    """The program that prints: the one that is named, else the first of the usual ones that is installed.

    Raises: TestbedError: there is none.
    """
    for name in (named,) if named else BROWSERS:
        if found := shutil.which(name):
            return found
    if named:
        raise TestbedError(f"There is no program '{named}'. Give the name or path of Chromium or Chrome to --browser.")
    raise TestbedError(
        "No browser was found that prints the PDF. Install Chromium, name a Chrome with --browser, or leave out --pdf "
        "and print the HTML page yourself."
    )


def print_pdf(page: Path, target: Path, *, browser: str, date: str) -> None:
    """Writes a page as PDF, whole or not at all.

    Args:
        page: an HTML file that needs no other.
        browser: of `find_browser`.
        date: YYYY-MM-DD, in the place of the moment of printing: equal pages give equal files.
    Raises: TestbedError: the browser failed. DataError: the file cannot be written.
    """
    with TemporaryDirectory(prefix="testbed-print-") as folder:
        printed = Path(folder) / "page.pdf"
        _run(browser, page, printed, Path(folder))
        content = _MOMENT.sub(_at(date), printed.read_bytes())
    try:
        with replacing(target) as part:
            part.write_bytes(content)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror}. Give another --out.") from error


def _run(browser: str, page: Path, printed: Path, profile: Path) -> None:
    # its sandbox needs rights that containers and root lack; the page is ours and holds no script
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        f"--user-data-dir={profile / 'profile'}", "--no-pdf-header-footer", f"--print-to-pdf={printed}",
        page.resolve().as_uri(),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False,
            env={**os.environ, "HOME": str(profile)},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TestbedError(f"{browser} did not print {page}: {error}. Print the page yourself.") from error
    if not printed.exists():
        told = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise TestbedError(f"{browser} did not print {page}: {told}. Print it yourself, or try another --browser.")


def _at(date: str) -> bytes:
    """What replaces a moment: of the same length, as the file counts its bytes."""
    digits = date.replace("-", "") if re.fullmatch(r"\d{4}-\d\d-\d\d", date) else "19700101"
    return rb"(\g<1>" + digits.encode() + rb"000000\g<2>)"
