"""Names and titles broken into short lines."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^-\s_./]*[-\s_./]?")  # with the space or mark behind it


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many letters, broken behind spaces and the marks - _ . and /; a longer word is one line.

    >>> wrapped("digits-c.fog_in-memory", 12)
    ['digits-c.', 'fog_in-', 'memory']
    """
    lines = [""]
    for word in _WORD.findall(text):
        if lines[-1] and len(lines[-1] + word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return [line.strip() for line in lines]
