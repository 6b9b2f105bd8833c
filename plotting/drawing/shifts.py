"""Effective robustness of models on several shifts side by side: what figures and tables of it are made from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from plotting.drawing.counts import span
from plotting.drawing.shift_choice import Choice
from plotting.drawing.shift_panels import is_low_accuracy
from plotting.drawing.style import plain

from testbed.errors import DataError, TestbedError, UnknownNameError, suggestion
from testbed.results.fit_sets import fit_set_named
from testbed.shift_pairs import SHIFT_PAIRS, ShiftPair, pair_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray
    from plotting.drawing.comparison import Comparison

    from testbed.results.effective import Effective

NATURAL = (
    "imagenetv2", "objectnet", "imagenet-sketch", "imagenet-r", "imagenet-a", "vid-robust", "ytbb-robust",
)  # fmt: skip
MOST_NAMES = 6  # in a caption
FEW = 30  # models, whose bars do not hide each other; of more only those of highlighted ones are drawn
SYNTHETIC = ("corruptions", "pgd", "stylized")
RHO = "effective robustness ρ (pp)"


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """The models that are shown, on several shifts.

    Args:
        pairs: the shifts, in the order of the figure.
        effective: the line of each, by the name of the pair.
        comparison: that they were made from.
        with_low_accuracy: see `Choice`.
        without_line: titles of shifts that are stored, but have too few models to fit a line on.
    """

    pairs: Sequence[ShiftPair]
    effective: Mapping[str, Effective]
    comparison: Comparison
    with_low_accuracy: bool
    without_line: Sequence[str] = ()

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per shift and model: the columns of `testbed.results.effective.Effective.table` behind `shift`."""
        table = self._whole[~self._is_hidden].reset_index(drop=True)
        if table.empty:
            raise TestbedError("No model is left to show. Add --with-low-accuracy, or name others with --models.")
        return table[["shift", *(name for name in table if name != "shift")]]

    @cached_property
    def _whole(self) -> pd.DataFrame:
        import pandas as pd

        return pd.concat(
            [self.comparison.shown(found.table).assign(shift=name) for name, found in self.effective.items()],
            ignore_index=True,
        )

    @cached_property
    def _is_hidden(self) -> NDArray[np.bool_]:
        """For each row of the whole, whether it is of low accuracy and was not asked for."""
        if self.with_low_accuracy or self.comparison.models:
            return np.zeros(len(self._whole), np.bool_)
        low = [is_low_accuracy(rows) for _, rows in self._whole.groupby("shift", sort=False)]
        return np.concatenate(low) & ~self.comparison.is_highlighted(self._whole)

    @property
    def num_hidden(self) -> int:
        """Models of low accuracy that are not shown."""
        return int(self._whole["entry"][self._is_hidden].nunique())

    def of(self, name: str) -> pd.DataFrame:
        """The rows of one shift."""
        return self.table[self.table["shift"] == name].reset_index(drop=True)

    def against(self, first: str, second: str, *, of: str = "rho") -> pd.DataFrame:
        """A row per model that has both shifts, as a scatter of effective robustness takes it.

        Args:
            first, second: the shifts on the axes x and y.
            of: what of the first: 'rho', or 'y', the accuracy under that shift.
        Returns: the columns that tell of the model, then x, x_low, x_high, x_n, y, y_low, y_high, y_n (the images
            under each shift), and `is_extrapolated` where either line is.
        """
        there, here = self.of(first), self.of(second)
        told = [name for name in here.columns[: list(here.columns).index("x")] if name != "shift"]
        columns = [of, f"{of}_low", f"{of}_high", "y_n", "is_extrapolated"]
        there = there[["entry", *columns]].set_axis(["entry", "x", "x_low", "x_high", "x_n", "is_far"], axis=1)
        here = here[[*told, "rho", "rho_low", "rho_high", "y_n", "is_extrapolated", "is_fit"]]
        table = here.rename(columns={"rho": "y", "rho_low": "y_low", "rho_high": "y_high"}).merge(there, on="entry")
        table["is_extrapolated"] = table["is_extrapolated"].astype(bool) | table.pop("is_far").astype(bool)
        is_drawn = np.isfinite(table[["x", "y"]].to_numpy(np.float64)).all(1)
        drawn: pd.DataFrame = table[is_drawn].reset_index(drop=True)
        return drawn

    def half_width(self, name: str) -> float:
        """Half the prediction interval of a standard model's effective robustness, the median of those in the fit."""
        rows = self.effective[name].table
        rows = rows[rows["is_fit"].astype(bool)]
        return float((rows["rho_high"] - rows["rho_low"]).astype(float).median() / 2)

    def check_highlight(self) -> None:
        """Raises: UnknownNameError: a model that is to be named in the figure is not in it."""
        self.comparison.check_highlight(self.table)

    @cached_property
    def highlighted(self) -> frozenset[str]:
        """Labels of the models that are to be named in the figure. Raises: UnknownNameError: a name fits none."""
        self.check_highlight()
        return frozenset(self.table["entry"][self.comparison.is_highlighted(self.table)])

    # Words for captions

    @property
    def line_words(self) -> str:
        """What effective robustness is, and which models its lines are fitted to."""
        counts = [sum(line.n for line in found.lines) for found in self.effective.values()]
        words = plain(fit_set_named(self.comparison.fit_set).words, 80)
        return (
            f"ρ is the accuracy under the shift less that of the line through {words} ({span(counts)} models, "
            f"{self.comparison.scale} scale), in percentage points (pp)."
        )

    @property
    def band_words(self) -> str:
        """What the grey bands are, and bars of effective robustness where there are any."""
        bars = "; bars of ρ: those of single models" if self.table["entry"].nunique() <= FEW else ""
        if not bars and self.highlighted:
            bars = "; bars of ρ: those of the large ones"
        return (
            f"Grey: within which {100 * self.comparison.confidence:g} % of models like those of the line lie, the "
            f"median of their prediction intervals{bars}."
        )

    @property
    def image_words(self) -> str:
        """How many images stand behind the accuracies, by shift."""
        words = []
        for pair in self.pairs:
            counts = self.of(pair.name)["y_n"].dropna().astype(int).tolist()
            words.append(f"{plain(pair.title)} {span(counts)}")
        return f"Images: {', '.join(words)}."

    @property
    def highlight_words(self) -> str:
        """Which models have large markers, where a figure has no room for their names; empty without any."""
        names = sorted(self.highlighted)
        if not names:
            return ""
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return f" Large: {', '.join(map(plain, names[:MOST_NAMES]))}{more}."

    def model_words(self, table: pd.DataFrame) -> str:
        """How many models a figure shows, from where, which are the user's own, and what is not shown."""
        said = [f"{self.comparison.source_words(table)}."]
        if table["is_own"].any() and not table["is_own"].all():
            said.append("Black rims: evaluated here.")
        if self.num_hidden:
            said.append(f"Not shown: {self.num_hidden:,} of low accuracy.")
        if self.without_line:
            said.append(f"No line could be fitted for {', '.join(map(plain, self.without_line))}.")
        return " ".join(said)


def robustness(
    comparison: Comparison, choice: Choice, default: Sequence[str], *, also: str | None = None
) -> Robustness:
    """Where the models stand to the lines of the shifts.

    Args:
        default: names of the shifts to show where the user names none.
        also: name of another shift that the figure needs.
    Raises:
        UnknownNameError: a name is no shift's.
        TestbedError: nothing is stored of a shift that was asked for, or of any.
    """
    needed = [] if also is None else [_named(also)]
    pairs = list({pair.name: pair for pair in (*chosen_pairs(comparison, choice, default), *needed)}.values())
    comparison.stored(pairs)  # which reads the results of all at once
    found: dict[str, Effective] = {}
    failures: dict[str, DataError] = {}
    for pair in pairs:
        try:
            found[pair.name] = comparison.effective(pair.x, pair.y)
        except DataError as error:  # too few models to fit a line on
            failures[pair.title] = error
            if choice.is_made or pair in needed:
                raise
    if not found:
        raise next(iter(failures.values()))
    return Robustness(
        pairs=[pair for pair in pairs if pair.name in found], effective=found, comparison=comparison,
        with_low_accuracy=choice.with_low_accuracy, without_line=tuple(failures),
    )  # fmt: skip


def chosen_pairs(comparison: Comparison, choice: Choice, default: Sequence[str]) -> list[ShiftPair]:
    """The shifts that the user asks for, or those of a default that the store has. Raises: as `robustness`."""
    named = [_named(name) for name in choice.names]
    own = [pair_of(x, y) or ShiftPair(name=f"{x} -> {y}", title=y, x=x, y=y) for x, y in choice.own]
    if choice.is_made:
        return [*named, *own]
    stored = comparison.stored([SHIFT_PAIRS[name] for name in default])
    if not stored:
        raise TestbedError(
            f"{comparison.store.url} holds no model with both settings of any of the shifts {', '.join(default)}. "
            "Add published numbers with --with-published SOURCE, or compare two stored settings with --pair X Y."
        )
    return stored


def _named(name: str) -> ShiftPair:
    if name not in SHIFT_PAIRS:
        near = suggestion(name, SHIFT_PAIRS) or f"There are {', '.join(SHIFT_PAIRS)}."
        raise UnknownNameError(f"There is no shift '{name}'. {near} Name two settings with --pair X Y.")
    return SHIFT_PAIRS[name]


def need(count: int, pairs: Collection[ShiftPair]) -> None:
    """Raises: DataError: fewer shifts than a figure compares."""
    if len(pairs) < count:
        names = ", ".join(pair.name for pair in pairs) or "none"
        raise DataError(f"The figure compares {count} shifts, and there is {names}. Add one with --shifts or --pair.")
