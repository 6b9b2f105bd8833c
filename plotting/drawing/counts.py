"""How many there are of something, in the words of a caption: one number, or from the smallest to the largest."""

from __future__ import annotations

from collections.abc import Iterable


def span(counts: Iterable[float]) -> str:
    """From the smallest to the largest; what nobody told is said to be that.

    >>> span([1000, 5]), span([5, 5]), span([])
    ('5 to 1,000', '5', 'not told')
    """
    known = [int(count) for count in counts]
    if not known:
        return "not told"
    low, high = min(known), max(known)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def counted(counts: Iterable[float], noun: str) -> str:
    """So many of something.

    >>> counted([1], "run"), counted([1, 3], "run")
    ('1 run', '1 to 3 runs')
    """
    known = list(counts)
    return f"{span(known)} {noun}{'' if max(known, default=0) == 1 else 's'}"
