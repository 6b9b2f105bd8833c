"""What was measured on this machine's devices, remembered in a file of the cache: it is measured once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.fingerprint import fingerprint
from testbed.paths import cache_folder, replacing

FILE = "measured.json"


class Measured:
    """Answers by what was asked, in `measured.json` under the cache root; a file that cannot be read is as none.

    Two programs may write at once: one of their answers is then measured again. Nothing depends on the file but time
    and, where the batch size is to be found, which one is found.
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
        with replacing(path) as part:
            part.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            known = json.loads((self._root / "measured" / FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        is_ours = isinstance(known, dict) and all(isinstance(one, dict) for one in known.values())
        return known if is_ours else {}
