"""What can be downloaded from a site: all points as a long table and as a grid, and effective robustness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plotting.pages.data import SiteData

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Download:
    """A file.

    Args:
        file: relative to the site's root.
        words: what is in it.
        content: as it is written.
    """

    file: str
    words: str
    content: bytes

    @property
    def size(self) -> str:
        """How large it is, in words."""
        kilobytes = len(self.content) / 1000
        return f"{kilobytes / 1000:.1f} MB" if kilobytes >= 1000 else f"{max(kilobytes, 0.1):.1f} kB"


def downloads(site: SiteData) -> Iterator[Download]:
    """The files that are about all models together."""
    points = site.points.sort_values(["entry", "eval_setting"], kind="stable")
    words = "a row per model and setting: accuracy in percent with its interval, n and method"
    yield Download("data/points.csv", words, _csv(points))
    grid = points.pivot(index="entry", columns="eval_setting", values="value").rename_axis(columns=None).reset_index()
    yield Download("data/grid.csv", "the same accuracies as a grid: a row per model, a column per setting", _csv(grid))
    if (rho := _effective(site)) is not None:
        words = "effective and relative robustness of every model under every shift, with intervals"
        yield Download("data/effective-robustness.csv", words, _csv(rho))


def _effective(site: SiteData) -> pd.DataFrame | None:
    import pandas as pd

    tables = [fit.table.assign(pair=name, x_setting=fit.x, y_setting=fit.y)
              for name, fit in site.robustness.fits.items()]  # fmt: skip
    if not tables:
        return None
    table = pd.concat(tables, ignore_index=True)
    first = ["pair", "x_setting", "y_setting"]
    return table[[*first, *(name for name in table.columns if name not in first)]]


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()
