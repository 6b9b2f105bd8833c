"""What was measured on this machine's devices, remembered in a file of the cache: it is measured once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.cache_files import read_cached, write_cached
from testbed.fingerprint import fingerprint
from testbed.paths import cache_folder

FILE = "measured.json"


class Measured:
    """Answers by what was asked, in `measured.json` under the cache root; a file that is damaged is as none.

    Two programs may write at once: one of their answers is then measured again. Nothing depends on the file but time
    and, where the batch size is to be found, which one is found. So a file of an earlier version, without a checksum,
    is believed: measured anew, a size may be another, and what is stored would be evaluated again.
    """

    def __init__(self, cache_root: Path) -> None:
        self._root = cache_root

    def get(self, question: Mapping[str, Any]) -> Any:
        """The answer to a question; None where it is not known."""
        return self._read().get(fingerprint(question), {}).get("answer")

    def put(self, question: Mapping[str, Any], answer: int | str) -> None:
        """Remembers an answer. Raises: DataError: the cache cannot be written."""
        path = cache_folder(self._root, "measured") / FILE
        known = {**self._read(), fingerprint(question): {"question": dict(question), "answer": answer}}
        write_cached(path, known)

    def _read(self) -> dict[str, dict[str, Any]]:
        return read_cached(self._root / "measured" / FILE, is_earlier=_has_no_checksum) or {}


def _has_no_checksum(kept: Any) -> bool:
    return isinstance(kept, dict) and all(isinstance(one, dict) and "answer" in one for one in kept.values())
