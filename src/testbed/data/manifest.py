"""Content of many files by SHA-256, read again only where a file's size or time of change is another."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.cache_files import read_cached, write_cached
from testbed.errors import reading
from testbed.fingerprint import file_sha256
from testbed.paths import cache_folder, cache_root

ManifestRow = tuple[str, int, str]
_Known = dict[str, tuple[int, int, str]]


def manifest(root: Path, relative_paths: Sequence[str]) -> list[ManifestRow]:
    """(relative path, size in bytes, SHA-256) of each file, in the given order.

    The result depends on the content alone, so a copy of the folder has the same manifest. Hashes are remembered in the
    cache folder by absolute path, size and time of change.

    Raises: DataError: a file cannot be read.
    """
    remembered_in = _remembered_in(root)
    known = _load(remembered_in)
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        rows = list(pool.map(lambda path: _row(root, path, known), relative_paths))
    fresh = dict(zip(relative_paths, rows, strict=True))
    if any(known.get(path) != row for path, row in fresh.items()):
        write_cached(remembered_in, {**known, **fresh})
    return [(path, size, sha256) for path, (size, _, sha256) in fresh.items()]


def _row(root: Path, relative_path: str, known: _Known) -> tuple[int, int, str]:
    with reading(root / relative_path, kind="a file", remedy="Check its permissions."):
        status = (root / relative_path).stat()
        remembered = known.get(relative_path)
        if remembered is not None and remembered[:2] == (status.st_size, status.st_mtime_ns):
            return remembered
        return status.st_size, status.st_mtime_ns, file_sha256(root / relative_path)


def _remembered_in(root: Path) -> Path:
    key = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:32]
    return cache_folder(cache_root(), "hashes") / f"{key}.json"


def _load(path: Path) -> _Known:
    """What is remembered; nothing where there is no such file, or none that is whole."""
    return {name: (row[0], row[1], row[2]) for name, row in (read_cached(path) or {}).items()}
