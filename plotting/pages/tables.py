"""Tables of a site: the same rows as HTML, which a template makes of them, and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from testbed.records import MetricValue

Kind = Literal["text", "number"]
HEAT_STEPS = 20  # colours from 0 to 100 %


class Column(NamedTuple):
    """A column.

    Args:
        name: its header.
        kind: of its cells.
        title: its header in a few more words, shown when it is pointed at.
        filter: what it can be filtered by; empty for no filter.
        has_interval: whether its numbers have intervals, which a CSV file has in columns of their own.
    """

    name: str
    kind: Kind = "number"
    title: str = ""
    filter: str = ""
    has_interval: bool = False


class Cell(NamedTuple):
    """A cell.

    Args:
        text: what is read; empty for a missing number.
        value: what is sorted by and written into a CSV file; None for a text or a missing number.
        interval: as it is read; may be empty.
        low, high: ends of the interval; None where there is none.
        href: where a link goes, relative to the site's root.
        look: classes for the style sheet.
        title: more words, shown when it is pointed at.
    """

    text: str = ""
    value: float | None = None
    interval: str = ""
    low: float | None = None
    high: float | None = None
    href: str = ""
    look: str = ""
    title: str = ""


MISSING = Cell()


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table.

    Args:
        name: what is in it, for a caption and the name of its CSV file.
        columns: the first is the header of the rows.
        rows: of as many cells.
        look: classes of the table beside `data`.
        csv: where the same numbers are as a file, relative to the site's root; empty for nowhere.
    """

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    look: str = ""
    csv: str = ""

    @property
    def shown(self) -> Table:
        """The table as a page has it: without empty columns, and with n in its name where that is the same for all."""
        return self._without_empty()._with_one_n()

    def _without_empty(self) -> Table:
        return self._of([place for place in range(len(self.columns)) if place == 0 or self._has_text(place)])

    def _with_one_n(self) -> Table:
        place = next((place for place, column in enumerate(self.columns) if column.name == "n"), None)
        if place is None or len({row[place] for row in self.rows}) > 1 or len(self.rows) < 2:
            return self
        found = self._of([other for other in range(len(self.columns)) if other != place])
        return replace(found, name=f"{self.name}, n = {self.rows[0][place].text}")

    def _has_text(self, place: int) -> bool:
        return any(row[place].text or row[place].title for row in self.rows)

    def _of(self, places: Sequence[int]) -> Table:
        """The table with the columns at these places."""
        columns = [self.columns[place] for place in places]
        return replace(self, columns=columns, rows=[[row[place] for place in places] for row in self.rows])

    def as_csv(self) -> str:
        """The table as CSV: numbers with all their digits, a missing one empty, intervals in columns of their own."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self._header())
        writer.writerows(self._csv_row(row) for row in self.rows)
        return text.getvalue()

    def _header(self) -> Iterable[str]:
        for column in self.columns:
            yield column.name
            if column.has_interval:
                yield from (f"{column.name} (low)", f"{column.name} (high)")

    def _csv_row(self, row: Sequence[Cell]) -> Iterable[Any]:
        for column, cell in zip(self.columns, row, strict=True):
            yield cell.text if column.kind == "text" else _digits(cell.value)
            if column.has_interval:
                yield from (_digits(cell.low), _digits(cell.high))


def text_cell(text: Any, *, href: str = "", title: str = "") -> Cell:
    """A cell of words; an absent value is an empty one."""
    return Cell(text="" if is_missing(text) else str(text), href=href, title=title)


def count_cell(count: Any) -> Cell:
    """A cell with a whole number; missing where there is none."""
    return MISSING if is_missing(count) else Cell(text=f"{int(count):,}", value=int(count))


def number_cell(
    value: Any, low: Any = None, high: Any = None, *, is_signed: bool = False, title: str = "", look: str = "",
    mark: str = "", digits: int = 2,
) -> Cell:  # fmt: skip
    """A cell with a number and its interval; missing where there is none, with the reason as its title.

    Args: mark: behind the number.
    """
    if is_missing(value):
        return Cell(title=title)
    form = f"{'+' if is_signed else ''}.{digits}f"
    has_interval = not (is_missing(low) or is_missing(high))
    return Cell(
        text=_shown(value, form) + mark,
        value=float(value),
        interval=f"[{_shown(low, form)}, {_shown(high, form)}]" if has_interval else "",
        low=float(low) if has_interval else None,
        high=float(high) if has_interval else None,
        title=title,
        look=look,
    )


def metric_cell(metric: MetricValue | None) -> Cell:
    """A metric with its interval; missing where it is undefined, with the reason as the cell's title."""
    if metric is None:
        return MISSING
    title = metric.reason if metric.value is None else ""
    return number_cell(metric.value, metric.ci_low, metric.ci_high, title=title)


def heat_cell(value: Any, low: Any = None, high: Any = None, *, title: str = "", mark: str = "") -> Cell:
    """A percentage on a coloured ground."""
    if is_missing(value):
        return MISSING
    look = f"h{min(HEAT_STEPS, max(0, math.floor(float(value) * HEAT_STEPS / 100)))}"
    cell = number_cell(value, low, high, digits=1, mark=mark)
    words = ". ".join(filter(None, [title, f"95 % interval {cell.interval}" if cell.interval else ""]))
    return cell._replace(interval="", look=look, title=words)


def is_missing(value: Any) -> bool:
    """Whether there is no value: None, NaN, or the NA of a table."""
    return value is None or value is _NA() or value != value


def _NA() -> Any:
    import pandas as pd

    return pd.NA


def _shown(value: Any, form: str) -> str:
    """A number as it is read, with a true minus sign; never -0.00."""
    text = format(float(value), form)
    zero = text.lstrip("+-").strip("0.") == ""
    return text.lstrip("+-") if zero else text.replace("-", "−")


def _digits(value: float | None) -> str:
    return "" if value is None else repr(value)
