"""JSON files of the cache, each with a checksum of its content: one that is damaged is told of, and counts as none.

Whatever decides a number or a name and is read from the cache again is kept so; decoded images have checksums of their
own (`testbed.data.bankfile`). What was downloaded needs none: data sets and parameters of networks are known by their
content, so that changed ones are others. Code that Numba compiled lies beside the sources and is trusted as they are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from testbed.fingerprint import fingerprint
from testbed.paths import replacing


def write_cached(path: Path, content: Any) -> None:
    """Keeps JSON-able content in a file. Raises: OSError: it cannot be written."""
    with replacing(path) as part:
        part.write_text(json.dumps({"sha256": fingerprint(content), "content": content}), encoding="utf-8")


def read_cached(path: Path, *, is_quiet: bool = False, is_earlier: Callable[[Any], bool] = lambda kept: False) -> Any:
    """What a file keeps; None where there is none, or one that is damaged or of an earlier version.

    Args:
        is_quiet: whether nobody is told of damage.
        is_earlier: whether what a file holds is how an earlier version kept the same, which is then believed.
    """
    try:
        kept: Any = json.loads(path.read_text(encoding="utf-8"))
        if is_earlier(kept):
            return kept
        is_whole = fingerprint(kept["content"]) == kept["sha256"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        is_whole = False
    if not is_whole and not is_quiet:
        tell_once(f"{path} is damaged or of an earlier version. What it holds is made again.")
    return kept["content"] if is_whole else None


@cache
def tell_once(line: str) -> None:
    """Says on stderr what is damaged and what is done about it: stdout is for results."""
    print(f"Notice: {line}", file=sys.stderr, flush=True)
