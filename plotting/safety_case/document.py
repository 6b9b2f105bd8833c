"""What a report consists of: sections of sentences, tables, figures and commands, as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table.

    Args:
        header, rows: texts.
        num_names: columns of names to the left; the others hold numbers.
        caption: what it shows.
        is_long: whether it may be broken over pages.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    num_names: int = 1
    caption: str = ""
    is_long: bool = False


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure.

    Args:
        uri: its image, as a `data:` address.
        inches: its width.
        alt: what it shows, for those who cannot see it.
        caption: set under it.
    """

    uri: str
    inches: float
    alt: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a report; what is empty is left out.

    Args:
        title: of the section.
        leading: sentences that are to be quoted, set large.
        text: paragraphs.
        points: of a list.
        facts: by name, what is known.
        tables, pictures: in their order.
        commands: lines for a shell.
        notes: small print below.
    """

    title: str
    leading: Sequence[str] = ()
    text: Sequence[str] = ()
    points: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    commands: Sequence[str] = ()
    notes: Sequence[str] = ()
