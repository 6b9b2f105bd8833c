"""Sizes of files in words."""

from __future__ import annotations


def size_words(num_bytes: int) -> str:
    """A size in the unit in which it has few digits: 512 bytes, 28.8 MB, 3.2 GB; a unit is 1,000 of the next one."""
    for unit, one in (("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= one:
            return f"{num_bytes / one:.1f} {unit}"
    return f"{num_bytes:,} bytes"
