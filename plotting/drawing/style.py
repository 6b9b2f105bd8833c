"""How figures look, and how they are written: PDF, PNG and the numbers behind them, the same bytes every time."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError, TestbedError
from testbed.paths import replacing
from testbed.tables import write_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import LayoutEngine
    from matplotlib.legend import Legend

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a page, and both
FONT_SIZE = 7.0  # points, readable at that width
SMALL = 6.0
PLACES = 6  # decimals of where axes stand in a figure, whose sides are 1
GAP = 1.2  # letters between the columns of a legend
MAX_TICKS = 8
FEWEST_LETTERS = 20  # in a line of a caption
LONGEST_NAME = 40  # letters of a name in a figure
DODGE = 7.0  # points from the first to the last of the models that stand beside each other

# Okabe & Ito, Color Universal Design, 2008; without their yellow, which white paper swallows. Seven colours and eight
# shapes that advance together tell 56 models apart, neighbours by both.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
THIN = {"P": 1.2, "X": 1.2, "*": 1.7}  # how much larger these are drawn, since the white rim takes most of them
GREY = "#7F7F7F"

_RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 4.0,
    "lines.markeredgewidth": 0.4,
    "legend.handlelength": 1.4,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "mathtext.default": "regular",
    "pdf.fonttype": 42,  # text stays text: found, copied, and accepted by journals
    "savefig.dpi": 300,
}
# Nothing of the moment, the program or its version goes into a file.
_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


@contextmanager
def new_figure(*, width: float = COLUMN, height: float) -> Iterator[Figure]:
    """An empty figure in the house style, whatever the user's own settings are; draw and `save` it in the block.

    Args:
        width, height: inches, without legend and caption: these make the figure higher.
    Raises: TestbedError: matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TestbedError("Figures need matplotlib: pip install matplotlib") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield Figure(figsize=(width, height), layout=_layout())


def shortened(text: str, length: int) -> str:
    """The text, of a longer one both ends with an ellipsis between them."""
    tail = (length - 1) // 2
    return text if len(text) <= length else f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"


def plain(text: str, length: int = LONGEST_NAME) -> str:
    """Any name as text that matplotlib shows as it stands: no formula, no missing glyph, no hidden legend entry.

    Args:
        text: such as the name of a model; whoever gave it may have put anything into it.
        length: of the longest that is shown whole; the middle of a longer one becomes an ellipsis.
    """
    shown = "".join(letter if _is_drawn(letter) else "□" for letter in shortened(text, length)).replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown  # a legend leaves out what starts with _


@cache
def _is_drawn(letter: str) -> bool:
    """Whether a letter has a visible form in the font of the figures; it has none where it only steers others."""
    from matplotlib.font_manager import findfont, get_font

    steers = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    return not steers and get_font(findfont(_RC["font.family"])).get_char_index(ord(letter)) != 0


def looks(names: Sequence[str], *, size: float = 4.0) -> dict[str, dict[str, Any]]:
    """Colour and marker by name, as keyword arguments of matplotlib's `plot` and `errorbar`.

    Args: size: of a round marker, in points.
    """
    return {
        name: {"color": color, "marker": marker, "markersize": size * THIN.get(marker, 1), "markeredgecolor": "white"}
        for name, color, marker in zip(names, cycle(PALETTE), cycle(MARKERS), strict=False)
    }


def light_blues() -> Colormap:
    """Colours of numbers in a table, from light to middle blue: black text can be read on all of them."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("light blues", colormaps["Blues"](np.linspace(0.05, 0.6, 64)))


def bars(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Distances from `value` down to `ci_low` and up to `ci_high`, [2, rows]; NaN where there is no interval."""
    value, low, high = (rows[name].to_numpy(np.float64) for name in ("value", "ci_low", "ci_high"))
    return np.array([value - low, high - value])


def draw_curves(axes: Axes, table: pd.DataFrame, x: str, labels: Mapping[str, str]) -> None:
    """Draws a curve with intervals for every model; they stand a little beside each other, so that none hides another.

    Args:
        table: a row per model and point, with the columns `model`, `x`, `value`, `ci_low` and `ci_high`.
        x: name of the column to draw over.
        labels: names for the legend by model, in the order of the curves.
    """
    from matplotlib.transforms import ScaledTranslation

    steps = np.linspace(-0.5, 0.5, len(labels)) * min(DODGE, 2.0 * (len(labels) - 1))
    for step, (model, look) in zip(steps, looks(list(labels)).items(), strict=True):
        rows = table[table["model"] == model]
        drawn = axes.errorbar(rows[x], rows["value"], yerr=bars(rows), label=labels[model], elinewidth=0.7, **look)
        beside = axes.transData + ScaledTranslation(step / 72, 0, axes.figure.dpi_scale_trans)
        for artist in drawn.get_children():
            artist.set_transform(beside)


def mark_separation(axes: Axes, epsilon_min: float | None) -> None:
    """Marks half the minimal class separation on the axis of noise levels, if it is known."""
    if epsilon_min is None:
        return
    axes.axvline(epsilon_min, color=GREY, linestyle="--", linewidth=0.8, zorder=0)
    axes.annotate(
        "ε$_{min}$", (epsilon_min, 1), xycoords=("data", "axes fraction"), xytext=(2, 0), textcoords="offset points",
        color=GREY, va="top",
    )  # fmt: skip


def log_counts(axes: Axes, label: str, counts: Iterable[int]) -> None:
    """Makes the x axis logarithmic, for `counts` such as draws or runs; each is named, or round ones of many."""
    from matplotlib.ticker import FixedLocator, NullLocator

    named = sorted(set(counts))
    if len(named) > MAX_TICKS:
        named = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(named))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)


def add_legend(figure: Figure) -> None:
    """Puts the labels of the first axes above them, in as many columns as fit; the figure grows by as much."""

    def legend(columns: int) -> Legend:
        return figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=columns,
                             borderaxespad=0.1, columnspacing=GAP)  # fmt: skip

    single = legend(1)
    gap, width = GAP * SMALL / 72, single.get_window_extent().width / figure.dpi
    columns = int((figure.get_figwidth() + gap) / (width + gap))
    single.remove()
    _grow(figure, legend(max(1, min(columns, len(single.get_texts())))).get_window_extent().height / figure.dpi)


def save(figure: Figure, table: pd.DataFrame, path: Path, *, caption: str) -> list[Path]:
    """Writes `path` with the endings .pdf, .png and .csv, and returns the three.

    Args:
        figure: of `new_figure`.
        table: the numbers that the figure shows.
        path: without an ending; folders are made, files of that name replaced.
        caption: what is shown, with n and the kind of interval; it is set under the figure.
    Raises: DataError: a file cannot be written.
    """
    _add_caption(figure, caption)
    written = [path.with_name(f"{path.name}.{ending}") for ending in (*_METADATA, "csv")]
    write_table(table, written[-1], override=True)
    for target, (ending, metadata) in zip(written, _METADATA.items(), strict=False):
        try:
            with replacing(target) as part:
                figure.savefig(part, format=ending, metadata=metadata)
        except OSError as error:
            raise DataError(f"{target} cannot be written: {error.strerror}. Give another --out.") from error
    return written


def _add_caption(figure: Figure, caption: str) -> None:
    caption = caption.replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")
    # letters of DejaVu Sans are 0.53 of their size wide on average; a line of wide ones takes fewer
    letters = int((figure.get_figwidth() - 0.08) * 72 / (0.53 * SMALL))
    text = figure.text(0.04 / figure.get_figwidth(), 0, _wrapped(caption, letters), va="top", fontsize=SMALL,
                       linespacing=1.3)  # fmt: skip
    while text.get_window_extent().x1 > figure.bbox.x1 and letters > FEWEST_LETTERS:
        letters -= 1
        text.set_text(_wrapped(caption, letters))
    height = ((text.get_text().count("\n") + 1) * 1.3 + 0.7) * SMALL / 72
    _grow(figure, height)
    share = height / figure.get_figheight()
    figure.set_layout_engine(_layout(rect=(0, share, 1, 1 - share)))
    text.set_y(share - 0.5 * SMALL / 72 / figure.get_figheight())


def _layout(**given: Any) -> LayoutEngine:
    """matplotlib's constrained layout with rounded places: the last digits that its solver finds differ by run."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    class Rounded(ConstrainedLayoutEngine):
        def execute(self, fig: Figure) -> Any:
            found = super().execute(fig)
            for axes in fig.axes:
                left, bottom, width, height = (round(part, PLACES) for part in axes.get_position(original=True).bounds)
                axes.set_position((left, bottom, width, height), which="original")
                axes.set_in_layout(True)  # which a place that is set takes back
            return found

    return Rounded(**given)


def _wrapped(caption: str, letters: int) -> str:
    return textwrap.fill(caption, letters, break_on_hyphens=False)  # which names are full of


def _grow(figure: Figure, inches: float) -> None:
    figure.set_figheight(figure.get_figheight() + inches)
