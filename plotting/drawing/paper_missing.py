"""What is said of figures that the stored results do not allow: a line each, or one for all that a source lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plotting.drawing.comparison import Comparison
from plotting.drawing.paper_figures import Job

from testbed.commands.action import reading
from testbed.errors import TestbedError
from testbed.masking import masked
from testbed.shift_pairs import SHIFT_PAIRS, ShiftPair, pair_of

Place = Mapping[str, Any]  # a database, as the options of the scripts name it

_NEEDS = {  # the shifts without any of which a script draws nothing
    "pm_k": ("vid-robust-pmk", "ytbb-robust-pmk"),
    "subsampled": ("subsampled",),
    "effective_against_corruptions": ("corruptions",),
    "effective_against_pgd": ("pgd",),
}


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A figure that cannot be drawn. Args: place: the database; error: says why."""

    place: Place
    job: Job
    error: TestbedError


def missing_lines(missing: Sequence[Missing], drawn: Sequence[Job]) -> list[str]:
    """A line per figure, and one per source for all that it has no numbers for while another source has them.

    Args: drawn: the figures that were drawn.
    """
    there = {job.of_any_source for job in drawn if job.source}
    lines: list[str] = []
    lacking: dict[str, dict[str, None]] = {}
    for one in missing:
        titles = _lacking(one) if one.job.of_any_source in there else []
        lacking.setdefault(one.job.source, {}).update(dict.fromkeys(titles))
        if not titles:
            lines.append(f"Not drawn: {one.job.title}: {_one_line(one)}")
    return lines + [
        f"{source} has no numbers for: {', '.join(titles)}." for source, titles in lacking.items() if titles
    ]


def database_options(place: Place) -> list[str]:
    """The options that name a database."""
    given = {"--db-url": place["db_url"], "--logdir": place["logdir"]}
    return [masked(str(part)) for option in given.items() if option[1] for part in option]


def _lacking(one: Missing) -> list[str]:
    """The titles of the shifts that the figure shows, where its source has no number of any of them."""
    pairs = _needs(one.job)
    with reading(one.place) as store:
        is_there = bool(Comparison(store=store, sources=[one.job.source]).stored(pairs))
    return [] if is_there else [pair.title for pair in pairs]


def _needs(job: Job) -> list[ShiftPair]:
    named = pair_of(*job.arguments[:2]) if job.figure == "plot_x_vs_y" else None
    return [named] if named else [SHIFT_PAIRS[name] for name in _NEEDS.get(job.figure, ())]


def _one_line(one: Missing) -> str:
    """What a figure says that it lacks, with a command that would store it."""
    words = " ".join(str(one.error).split())
    if one.job.settings and "python " not in words:
        settings = " ".join(f"'{name}'" if "*" in name else name for name in one.job.settings)
        given = " ".join(database_options(one.place))
        words += f" Evaluate: python eval.py --models MODEL --eval-settings {settings} {given}"
    return words.strip()
