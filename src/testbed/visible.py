"""Text that a terminal or a page can only show: what would steer it, or turn its direction, stands as an escape."""

from __future__ import annotations

import unicodedata

_LINES = frozenset("\n\t")
# Marks that turn the direction of the text behind them, also of text that is not theirs.
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_STEERING = frozenset(("Cc", "Cs", "Zl", "Zp"))  # control characters, halves of one, ends of lines and paragraphs


def visible(text: str, *, in_one_line: bool = True) -> str:
    r"""The text with its control characters and marks of direction as escapes such as `\x1b` and `\u202e`.

    Args: in_one_line: ends of lines and tabs are escapes, too.

    >>> visible("a\x1b[31m b")
    'a\\x1b[31m b'
    """
    if text.isprintable():  # most are; spaces apart, nothing that steers is
        return text
    kept: frozenset[str] = frozenset() if in_one_line else _LINES
    return "".join(_escaped(letter) if _steers(letter) and letter not in kept else letter for letter in text)


def _steers(letter: str) -> bool:
    return letter in _DIRECTIONS or unicodedata.category(letter) in _STEERING


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
