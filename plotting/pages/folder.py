"""A site's folder: written whole beside its place and then put there, so that nobody sees half of one."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.errors import DataError

MARK = "site.json"  # tells a folder of ours from one that is not to be touched
FORMAT = {"format": "robustness site", "version": 1}
DROPPED = {".DS_Store", "Thumbs.db", "desktop.ini"}  # by file managers that only looked at the folder


def check_folder(folder: Path, *, override: bool) -> None:
    """Raises: DataError: there is something that is no site, or a site that is not to be replaced."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise DataError(f"--out {folder} is no folder. Give another one.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not _is_site(folder):
        raise DataError(
            f"--out {folder} holds other files than those of a site, and a site takes the whole folder. Give a new one."
        )
    if not override:
        raise DataError(f"{folder} holds a site already. Give --override to replace all of it, or another --out.")
    if foreign := sorted({*_names(folder)} - {*_mark(folder).get("holds", ()), MARK, *DROPPED}):
        raise DataError(
            f"The site {folder} holds what it was not written with, which would be lost: {', '.join(foreign[:5])}. "
            "Move it elsewhere, or give another --out."
        )


def write_folder(folder: Path, files: Iterable[tuple[str, bytes]], *, override: bool = False) -> int:
    """Writes the files of a site, in the place of one that is there; returns how many.

    Args:
        folder: does not exist, is empty, or holds a site that is replaced as a whole.
        files: paths relative to the folder, with their contents.
        override: whether a site may be replaced.
    Raises: DataError: the folder is not to be touched, or cannot be written.
    """
    check_folder(folder, override=override)
    beside = folder.absolute().with_name(f".{folder.absolute().name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        beside.mkdir(parents=True)
        number = _write_all(beside, files)
        _write(beside, MARK, (json.dumps(FORMAT | {"holds": _names(beside)}) + "\n").encode())
        _swap(beside, folder, override=override)
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror}. Give another --out.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return number


def _write_all(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    written: set[str] = set()
    for name, content in files:
        if name.lower() in written:
            raise DataError(f"Two files of the site are called {name}. Rename one of the models or settings.")
        written.add(name.lower())
        _write(folder, name, content)
    return len(written)


def _write(folder: Path, name: str, content: bytes) -> None:
    path = folder.joinpath(*PurePosixPath(name).parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _swap(new: Path, folder: Path, *, override: bool) -> None:
    """Puts the new folder into its place; what was there is back in it if that fails."""
    check_folder(folder, override=override)  # once more: the pages took a while
    if not folder.exists():
        new.rename(folder)
        return
    old = new.with_name(f"{new.name}.old")
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _is_site(folder: Path) -> bool:
    return _mark(folder).get("format") == FORMAT["format"]


def _mark(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
