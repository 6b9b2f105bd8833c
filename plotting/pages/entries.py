"""The models of a site: one for each label that a table of points has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plotting.drawing.scatter import KINDS
from plotting.pages.names import file_stem

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    "entry", "model", "label_space", "source", "protocol", "input_size", "model_type", "family", "baseline", "is_own",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A model as a site shows it.

    Args:
        name: its label, unique within the site.
        model: its name.
        file: of its page, relative to the site's root.
        label_space, source, protocol, model_type, family, baseline: as the points have them; '' where they have none.
        input_size: side of its images in pixels, where a source tells it.
        is_own: whether it was evaluated here, and not published by others.
    """

    name: str
    model: str
    file: str
    label_space: str = ""
    source: str = ""
    protocol: str = ""
    input_size: int | None = None
    model_type: str = ""
    family: str = ""
    baseline: str = ""
    is_own: bool = True

    @property
    def kind(self) -> str:
        """What it was trained on or for, in the words of the figures; '' where that is not known."""
        return next((kind.words for kind in KINDS if self.model_type in kind.types), "")

    @property
    def where_from(self) -> str:
        """Who measured it, in a word or two."""
        return "measured here" if self.is_own else self.source


def entries_of(points: pd.DataFrame) -> Sequence[Entry]:
    """The models of a table of points, our own first, then by source and label."""
    rows = points[list(_COLUMNS)].drop_duplicates("entry").astype(object)
    found = [_entry(dict(zip(_COLUMNS, row, strict=True))) for row in rows.where(rows.notna(), None).to_numpy()]
    return sorted(found, key=lambda entry: (not entry.is_own, entry.source, entry.name.lower(), entry.name))


def _entry(row: dict[str, Any]) -> Entry:
    name, size, is_own = row.pop("entry"), row.pop("input_size"), row.pop("is_own")
    words = {key: "" if value is None else str(value) for key, value in row.items()}
    stem = file_stem(name)
    return Entry(name=name, file=f"model/{stem}.html", input_size=None if size is None else int(size),
                 is_own=bool(is_own), **words)  # fmt: skip
