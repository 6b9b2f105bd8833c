"""Where the testbed looks for data and keeps its caches, and how a file is written so that nobody sees half of it."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import DataError

HOME_VARIABLE = "TESTBED_HOME"
DATA_VARIABLE = "TESTBED_DATA"


def cache_root() -> Path:
    """The folder of caches: TESTBED_HOME, else `robustness-testbed` in the platform's folder for caches."""
    if home := os.environ.get(HOME_VARIABLE):
        return Path(home).expanduser()
    variable, default = {"darwin": ("", "~/Library/Caches"), "win32": ("LOCALAPPDATA", "~/AppData/Local")}.get(
        sys.platform, ("XDG_CACHE_HOME", "~/.cache")
    )
    return Path(os.environ.get(variable) or default).expanduser() / "robustness-testbed"


def data_root() -> Path:
    """The folder that holds data sets: TESTBED_DATA, else `data` in the current folder."""
    return Path(os.environ.get(DATA_VARIABLE) or "data").expanduser()


def cache_folder(root: Path, name: str) -> Path:
    """The folder `root/name`, made if need be.

    Raises: DataError: it cannot be made.
    """
    folder = root / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"Cannot make the cache folder {folder} ({error.strerror}). Set {HOME_VARIABLE} to a folder you can write."
        ) from error
    return folder


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that takes its place in one step if the block succeeds, and goes if not.

    Any number of processes may write the same target at once: a reader finds a whole file or none.
    """
    temporary = target.with_name(f"{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
