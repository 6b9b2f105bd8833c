"""Tables as LaTeX: any text as text, rules of booktabs, whole files."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plotting.drawing.wrapping import wrapped

from testbed.errors import DataError, ShapeError
from testbed.paths import replacing

_ESCAPED = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # an option of the end of the row before, else
    "|": r"\textbar{}", '"': r"\char34{}", "`": r"\char96{}", "'": r"\char39{}",
    "–": r"\textendash{}", "—": r"\textemdash{}", "…": r"\dots{}", "±": r"$\pm$", "×": r"$\times$",
    "\N{MINUS SIGN}": "$-$", "ε": r"$\varepsilon$", "ρ": r"$\rho$", "τ": r"$\tau$", "∞": r"$\infty$",
    "†": r"$^\dagger$",
}  # fmt: skip
NEW_LINE = r" \\ "
DENSE = 6  # columns, beyond which letters are small and columns close
_LAST_LATIN = 0x17F  # every engine sets letters up to here; of others, an emoji say, pdfTeX stops


def escape(text: str) -> str:
    r"""The text so that LaTeX sets it letter by letter, and on one line.

    Dashes and quotes do not grow together. A character that not every engine can set becomes its code point, `U+1F600`;
    white space and what controls a terminal become spaces.

    >>> print(escape("100 % of $x_1$"))
    100 \% of \$x\_1\$
    """
    escaped = "".join(_ESCAPED.get(letter) or _plain(letter) for letter in text)
    for letter in "-,":  # two of them would be set as another sign
        escaped = escaped.replace(letter * 2, f"{letter}{{}}{letter}").replace(letter * 2, f"{letter}{{}}{letter}")
    return escaped


def stacked(text: str, width: int = 12) -> str:
    """The text escaped, and broken behind spaces and marks into lines of so many letters: the head of a column."""
    lines = [escape(line) for line in wrapped(text, width)]
    return rf"\shortstack[r]{{{NEW_LINE.join(lines)}}}" if len(lines) > 1 else lines[0]


def _plain(letter: str) -> str:
    category = unicodedata.category(letter)
    if category == "Cc" or category.startswith("Z"):
        return " "
    return letter if ord(letter) <= _LAST_LATIN and category != "Cf" else f"U+{ord(letter):04X}"


@dataclass(frozen=True, kw_only=True)
class Table:
    r"""A table, its texts and numbers escaped already.

    Args:
        columns: how they are set, such as `lrr`.
        header: rows of cells.
        body: groups of rows of cells; some space stands between two groups.
        caption, label: of the table.
        is_long: it may run over several pages.
    """

    columns: str
    header: Sequence[Sequence[str]]
    body: Sequence[Sequence[Sequence[str]]]
    caption: str
    label: str
    is_long: bool = False

    def __post_init__(self) -> None:
        width = len(self.columns)
        for cells in (*self.header, *(row for group in self.body for row in group)):
            if len(cells) != width:
                raise ShapeError(f"A row of the table has {len(cells)} cells, but there are {width} columns.")

    def text(self) -> str:
        r"""The source, to be read with \input; the first line tells which packages it needs."""
        return "\n".join(self._long() if self.is_long else self._floating()) + "\n"

    def _floating(self) -> list[str]:
        return [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}", r"\centering", *self._dense, *self._captioned(end=""),
            rf"\begin{{tabular}}{{{self.columns}}}", r"\toprule",
            *map(_row, self.header), r"\midrule", *self._rows(), r"\bottomrule",
            r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip

    def _long(self) -> list[str]:
        header = [r"\toprule", *map(_row, self.header), r"\midrule"]
        return [
            r"% needs \usepackage{booktabs,longtable}",
            r"\begingroup", *self._dense, rf"\begin{{longtable}}{{{self.columns}}}",
            *self._captioned(end=r" \\"), *header, r"\endfirsthead", *header, r"\endhead",
            r"\bottomrule", r"\endfoot", *self._rows(),
            r"\end{longtable}", r"\endgroup",
        ]  # fmt: skip

    @property
    def _dense(self) -> list[str]:
        return [r"\scriptsize \setlength{\tabcolsep}{2pt}"] if len(self.columns) > DENSE else []

    def _captioned(self, *, end: str) -> list[str]:
        return [rf"\caption{{{self.caption}}}", rf"\label{{{self.label}}}{end}"]

    def _rows(self) -> list[str]:
        lines: list[str] = []
        for group in self.body:
            lines += [r"\addlinespace"] * bool(lines) + [_row(cells) for cells in group]
        return lines


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def write_latex(table: Table, path: Path) -> Path:
    """Writes the table, a file of that name replaced, and returns the path.

    Raises: DataError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            part.write_text(table.text(), encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}. Give another --out.") from error
    return path
