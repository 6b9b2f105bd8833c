"""Whether anything may be downloaded: one switch for a program and the workers that it starts."""

from __future__ import annotations

import os

NO_DOWNLOAD_VARIABLE = "TESTBED_NO_DOWNLOAD"
HUB_OFFLINE_VARIABLE = "HF_HUB_OFFLINE"


def forbid_downloads() -> None:
    """From here on, in this process and those that it starts, whatever would be downloaded is an error."""
    os.environ[NO_DOWNLOAD_VARIABLE] = "1"


def downloads_are_forbidden() -> bool:
    """Whether TESTBED_NO_DOWNLOAD is set, to anything but 0; `--no-download` sets it."""
    return os.environ.get(NO_DOWNLOAD_VARIABLE, "") not in ("", "0")


def why_hub_is_offline() -> str | None:
    """What forbids the Hugging Face hub: our own switch, or the hub's HF_HUB_OFFLINE; None where nothing does."""
    if downloads_are_forbidden():
        return f"downloads are forbidden (--no-download, {NO_DOWNLOAD_VARIABLE})"
    if os.environ.get(HUB_OFFLINE_VARIABLE, "").upper() in ("1", "ON", "YES", "TRUE"):
        return f"the hub is switched off ({HUB_OFFLINE_VARIABLE})"
    return None
