"""Whether anything may be downloaded: one switch for a program and the workers that it starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

NO_DOWNLOAD_VARIABLE = "TESTBED_NO_DOWNLOAD"
HUB_OFFLINE_VARIABLE = "HF_HUB_OFFLINE"
_reasons: list[str] = []  # why this process downloads nothing for the time being, though the user allows it


def forbid_downloads() -> None:
    """From here on, in this process and those that it starts, whatever would be downloaded is an error."""
    os.environ[NO_DOWNLOAD_VARIABLE] = "1"


@contextmanager
def without_downloads(reason: str) -> Iterator[None]:
    """Within it, this process downloads nothing; whoever misses something is told `reason`."""
    _reasons.append(reason)
    try:
        yield
    finally:
        _reasons.remove(reason)


def downloads_are_forbidden() -> bool:
    """Whether the user forbids downloads: TESTBED_NO_DOWNLOAD is set, to anything but 0; `--no-download` sets it."""
    return os.environ.get(NO_DOWNLOAD_VARIABLE, "") not in ("", "0")


def why_nothing_is_downloaded() -> str | None:
    """What forbids downloads: the user, or else what this process is at; None where nothing does."""
    if downloads_are_forbidden():
        return f"downloads are forbidden (--no-download, {NO_DOWNLOAD_VARIABLE})"
    return _reasons[-1] if _reasons else None


def why_hub_is_offline() -> str | None:
    """What forbids the Hugging Face hub: as for all downloads, or the hub's HF_HUB_OFFLINE; None where nothing does."""
    if (reason := why_nothing_is_downloaded()) is not None:
        return reason
    if os.environ.get(HUB_OFFLINE_VARIABLE, "").upper() in ("1", "ON", "YES", "TRUE"):
        return f"the hub is switched off ({HUB_OFFLINE_VARIABLE})"
    return None
