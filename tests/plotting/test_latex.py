"""LaTeX tables: every character as text, every row as wide as the table, files whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from plotting.drawing.latex import Table, escape, stacked, write_latex

from testbed.errors import DataError, ShapeError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50 % & $x_1$ #2", r"50 \% \& \$x\_1\$ \#2"),
        (r"a\b{c}~^", r"a\textbackslash{}b\{c\}\textasciitilde{}\textasciicircum{}"),
        ("<script>", r"\textless{}script\textgreater{}"),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ("[1]*", "{[}1{]}{*}"),
        ("squid \U0001f991", "squid U+1F991"),
        ("right\u202eleft", "rightU+202Eleft"),
        ("two\nlines\x1b", "two lines "),
        ("Müller ± 2 − ε …", r"Müller $\pm$ 2 $-$ $\varepsilon$ \dots{}"),
    ],
)
def test_text_is_set_as_it_stands(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_no_letter_of_ascii_is_left_a_command() -> None:
    escaped = escape("".join(map(chr, range(32, 127))))
    rest = re.sub(r"\\(?:text\w+\{\}|char\d+\{\}|[{}$&#_%])|\{[][*]\}|\{\}", "", escaped)
    assert not set(rest) & set("\\{}$&#_%~^[]*")


def test_heads_are_broken_behind_spaces_and_marks() -> None:
    assert stacked("Common corruptions") == r"\shortstack[r]{Common \\ corruptions}"
    assert stacked("digits-c.fog_in-memory") == r"\shortstack[r]{digits-c. \\ fog\_in- \\ memory}"
    assert stacked("ImageNet-Vid-Robust") == r"\shortstack[r]{ImageNet- \\ Vid-Robust}"
    assert stacked("ImageNet") == "ImageNet"
    assert stacked("") == ""


TABLE = Table(
    columns="lr", header=[["model", "top-1"]], body=[[["a", "1"], ["b", "2"]], [["c", "3"]]], caption="Some.",
    label="tab:some",
)  # fmt: skip


def test_a_table_has_rules_and_groups() -> None:
    assert TABLE.text() == (
        "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\n\\caption{Some.}\n\\label{tab:some}\n"
        "\\begin{tabular}{lr}\n\\toprule\nmodel & top-1 \\\\\n\\midrule\na & 1 \\\\\nb & 2 \\\\\n\\addlinespace\n"
        "c & 3 \\\\\n\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


@pytest.mark.parametrize("columns", [2, 9])
def test_every_begin_has_its_end(columns: int) -> None:
    cells = ["x"] * columns
    for is_long in (False, True):
        text = Table(
            columns="r" * columns, header=[cells], body=[[cells]], caption="", label="", is_long=is_long
        ).text()
        begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end"))
        assert sorted(begun) == sorted(ended)
        assert text.count(r"\begingroup") == text.count(r"\endgroup") == is_long
        assert (r"\scriptsize" in text) == (columns > 6)


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(ShapeError, match="1 cells, but there are 2 columns"):
        Table(columns="lr", header=[["model", "top-1"]], body=[[["a"]]], caption="", label="")


def test_a_file_is_replaced_or_the_error_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "new" / "table.tex"
    assert write_latex(TABLE, path).read_text() == TABLE.text()
    assert write_latex(TABLE, path) == path
    assert [file.name for file in path.parent.iterdir()] == ["table.tex"]
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match="Give another --out"):
        write_latex(TABLE, path)
