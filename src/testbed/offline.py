"""Whether anything may be downloaded: one switch for a program and the workers that it starts."""

from __future__ import annotations

import os

NO_DOWNLOAD_VARIABLE = "TESTBED_NO_DOWNLOAD"


def forbid_downloads() -> None:
    """From here on, in this process and those that it starts, whatever would be downloaded is an error."""
    os.environ[NO_DOWNLOAD_VARIABLE] = "1"


def downloads_are_forbidden() -> bool:
    """Whether TESTBED_NO_DOWNLOAD is set, to anything but 0; `--no-download` sets it."""
    return os.environ.get(NO_DOWNLOAD_VARIABLE, "") not in ("", "0")
