"""Room for image banks: those not used for the longest time go, and none that was used within the last hour."""

from __future__ import annotations

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from testbed.errors import DataError
from testbed.paths import HOME_VARIABLE
from testbed.sizes import size_words

PROTECTED_SECONDS = 3600.0
_SHARE_OF_DISK = 0.9  # of what is free, and what banks take already
_FOLDER_LOCK = "folder.lock"


@dataclass(frozen=True, kw_only=True)
class KeptBank:
    """A bank on disk, whole or being filled, with its size in bytes and the time of its last use."""

    key: str
    paths: tuple[Path, ...]
    num_bytes: int
    last_used: float

    @property
    def is_whole(self) -> bool:
        """Whether it is filled."""
        return any(path.suffix == ".npy" for path in self.paths)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Held, for moments, by whoever of all processes looks for banks, makes room, or gives a bank its name."""
    lock = FileLock(folder / _FOLDER_LOCK)
    with suppress(OSError):  # a folder that cannot be written, with whole banks in it, needs no lock
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def kept_banks(folder: Path) -> list[KeptBank]:
    """The banks in a folder, the one unused for the longest time first."""
    files: dict[str, dict[Path, os.stat_result]] = defaultdict(dict)
    for path in folder.iterdir() if folder.exists() else ():
        if path.name != _FOLDER_LOCK:
            with suppress(FileNotFoundError):
                files[path.name.split(".")[0]][path] = path.stat()
    banks = [
        KeptBank(
            key=key,
            paths=tuple(found),
            num_bytes=sum(status.st_size for status in found.values()),
            last_used=max(status.st_mtime for status in found.values()),
        )
        for key, found in files.items()
    ]
    return sorted(banks, key=lambda bank: bank.last_used)


def make_room(folder: Path, num_bytes: int, *, limit: int | None) -> None:
    """Removes banks until one of `num_bytes` fits. The caller holds the folder's lock.

    Args:
        limit: bytes that all banks together may take; None for nine tenths of what is free or banks already.
    Raises: DataError: it does not fit, even without all banks that may go.
    """
    kept = kept_banks(folder)
    total, free = sum(bank.num_bytes for bank in kept), shutil.disk_usage(folder).free
    allowed = int(_SHARE_OF_DISK * (free + total)) if limit is None else limit
    oldest_to_keep = time.time() - PROTECTED_SECONDS
    for bank in kept:
        if (total + num_bytes <= allowed and num_bytes <= free) or bank.last_used > oldest_to_keep:
            break
        if _remove(bank, folder):
            total, free = total - bank.num_bytes, free + bank.num_bytes
    _check_room(folder, num_bytes, free=min(free, shutil.disk_usage(folder).free), total=total, allowed=allowed)


def touch(path: Path) -> None:
    """Notes that a bank is in use; nothing where it cannot be noted."""
    with suppress(OSError):
        os.utime(path)


def _remove(bank: KeptBank, folder: Path) -> bool:
    """Removes a bank, unless a process is filling it."""
    try:
        with FileLock(folder / f"{bank.key}.lock", timeout=0):
            for path in (*bank.paths, folder / f"{bank.key}.lock"):
                path.unlink(missing_ok=True)
    except Timeout:
        return False
    return True


def _check_room(folder: Path, num_bytes: int, *, free: int, total: int, allowed: int) -> None:
    needed = f"The decoded images need {size_words(num_bytes)}"
    if num_bytes > free:
        raise DataError(
            f"{needed} but {folder} has {size_words(free)} free. Free some space, set {HOME_VARIABLE} to a folder on "
            "another disk, or decode images whenever they are needed (--bank off)."
        )
    if total + num_bytes > allowed:
        raise DataError(
            f"{needed}, and those in {folder} that were used within the last hour take {size_words(total)}: together "
            f"more than the {size_words(allowed)} that are allowed. Raise --bank-limit, set {HOME_VARIABLE} to a "
            "folder on a larger disk, or decode images whenever they are needed (--bank off)."
        )
