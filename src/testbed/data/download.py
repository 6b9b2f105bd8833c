"""Files from the network: told on stderr, checked before anybody sees them, never fetched where that is forbidden."""

from __future__ import annotations

import shutil
import sys
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from http.client import HTTPException
from pathlib import Path

from testbed.errors import DataError, MissingDataError
from testbed.fingerprint import file_sha256
from testbed.offline import downloads_are_forbidden, why_nothing_is_downloaded
from testbed.paths import replacing

_TIMEOUT = 60  # seconds without a byte
_FAILURES = (OSError, RuntimeError, EOFError, HTTPException, tarfile.TarError, zipfile.BadZipFile, zlib.error)


def fetch(url: str, target: Path, *, sha256: str) -> Path:
    """`target`, downloaded unless it is there; either way its content is the one that was asked for.

    Args:
        url: where it comes from.
        target: the file to be; its folder is made if need be.
        sha256: of the content, in hex; its first digits suffice, and none checks nothing.
    Raises: DataError: forbidden, failed, or another content.
    """
    if not target.is_file():
        with downloading(url, target, missing=f"{target} is not there."):
            retrieve(url, target, sha256=sha256)
    _check(target, sha256, what=str(target), remedy="Delete it, and it is downloaded again.")
    return target


def retrieve(url: str, target: Path, *, sha256: str) -> None:
    """Downloads `url` to `target`, for use within `downloading`.

    Raises: DataError: another content, which is not kept. Besides, whatever urllib raises.
    """
    from tqdm import tqdm

    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as response, open(temporary, "wb") as stream:
            size = int(response.headers.get("Content-Length") or 0) or None
            with tqdm.wrapattr(stream, "write", total=size, desc=target.name, disable=None) as written:
                shutil.copyfileobj(response, written)
        _check(temporary, sha256, what=f"What {url} sent", remedy="It is not kept. Try again later.")


@contextmanager
def downloading(source: str, target: Path, *, missing: str) -> Iterator[None]:
    """Around a download: tells of it in a line on stderr, and makes one line of whatever goes wrong.

    What is printed meanwhile goes to stderr too: stdout is for results.

    Args:
        source: an address, for people.
        target: the file or folder to be.
        missing: the sentence that says what is not there.
    Raises: DataError: forbidden, or failed.
    """
    if (reason := why_nothing_is_downloaded()) is not None:
        otherwise = "allow them" if downloads_are_forbidden() else "let an evaluation fetch it"
        raise MissingDataError(
            f"{missing} {reason[0].upper()}{reason[1:]}: get it from {source} and put it there, or {otherwise}."
        )
    print(f"Downloading {source} to {target}", file=sys.stderr, flush=True)
    try:
        with redirect_stdout(sys.stderr):
            yield
    except _FAILURES as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise MissingDataError(
            f"{missing} Downloading it failed ({reason}). Get it from {source} and put it there, or try again."
        ) from error


def _check(path: Path, sha256: str, *, what: str, remedy: str) -> None:
    found = file_sha256(path)
    if not found.startswith(sha256):
        raise DataError(f"{what} is damaged or another file: its SHA-256 is {found}, not {sha256}. {remedy}")
