"""Any name shows as text in a figure, as it stands or with a box for what has no form."""

from __future__ import annotations

import pytest
from matplotlib.cbook import is_math_text
from plotting.drawing.style import LONGEST_NAME, new_figure, plain


@pytest.mark.parametrize("name", ["$x_1$", "a$b", "$", "50 $ and 60 $", "x_1 & 100 % of <b>", "a,b;'c' \"d\""])
def test_a_name_is_no_formula(name: str) -> None:
    assert not is_math_text(plain(name))
    assert plain(name).replace(r"\$", "$") == name


def test_a_long_name_keeps_both_ends() -> None:
    name = "".join(chr(97 + position % 26) for position in range(300))
    shown = plain(name)
    assert len(shown) == LONGEST_NAME
    start, end = shown.split("…")
    assert name.startswith(start)
    assert name.endswith(end)
    assert abs(len(start) - len(end)) <= 1
    assert plain(name[:LONGEST_NAME]) == name[:LONGEST_NAME]
    assert plain("abcdefgh", 5) == "ab…gh"


def test_what_has_no_form_is_a_box() -> None:
    """A glyph that the font lacks would warn, a line break would tear the label, a mark of direction would turn it."""
    assert plain("a\U0001f991b") == "a□b"
    assert plain("a\n\x1b\u202e\u200b\ud800b") == "a□□□□□b"
    assert plain("ü中é") == "ü□é"
    with new_figure(height=1.0) as figure:
        figure.subplots().set_title(plain("squid \U0001f991 \x07 中 $\\frac$"))
        figure.draw_without_rendering()


def test_a_name_that_starts_with_an_underscore_is_in_the_legend() -> None:
    with new_figure(height=1.0) as figure:
        axes = figure.subplots()
        axes.plot([1], [1], label=plain("_model"))
        assert axes.get_legend_handles_labels()[1] == ["\u200b_model"]
