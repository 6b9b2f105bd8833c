"""Draws a list of figures one after the other; one that cannot be drawn does not keep the others from it."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from io import StringIO
from pathlib import Path

from plotting.drawing.paper_figures import SEPARATION, Job, jobs_of, jobs_without
from plotting.drawing.paper_missing import Missing, Place, database_options, missing_lines

from testbed.cli import Tell, say
from testbed.commands.action import reading
from testbed.errors import TestbedError, UnknownNameError, suggestion
from testbed.offline import without_downloads
from testbed.store.published import list_sources


def draw_all(
    urls: Sequence[str], logdir: Path | None, out: Path, *, sources: Sequence[str], highlight: Sequence[str],
    patterns: Sequence[str], tell: Tell,
) -> int:  # fmt: skip
    """Draws what the databases allow, prints the files, and tells of the rest; the exit code of the program.

    Args: see `plotting/paper_plots.py`; tell: is told of each figure before it is drawn.
    Returns: 0, also where results are missing; 1 where a figure failed for another reason, which is a fault of ours.
    """
    places: list[Place] = [{"db_url": url, "logdir": None} for url in urls]
    if logdir is not None or not urls:
        places = [{"db_url": None, "logdir": logdir}]
    jobs = [(place, job) for place, job in _jobs(places, sources) if _is_chosen(job, patterns)]
    drawn: list[Job] = []
    missing: list[Missing] = []
    failed: list[str] = []
    for number, (place, job) in enumerate(jobs, start=1):
        tell(f"Figure {number} of {len(jobs)}: {job.title}")
        try:
            _draw(place, job, out, highlight)
            drawn.append(job)
            sys.stdout.flush()
        except TestbedError as error:
            missing.append(Missing(place=place, job=job, error=error))
        except Exception:  # the others are drawn all the same
            failed.append(job.title)
            traceback.print_exc()
    say(f"{len(drawn)} of {len(jobs)} figures are drawn in {out}.")
    for line in missing_lines(missing, drawn):
        say(line)
    for title in failed:
        say(f"Failed: {title}. Please report the lines above.")
    return 1 if failed else 0


def _jobs(places: Sequence[Place], asked: Sequence[str]) -> list[tuple[Place, Job]]:
    """The figures of every database, and those of which none has anything.

    Raises: UnknownNameError: no database has a source that is asked for.
    """
    found: list[tuple[Place, Job]] = []
    kinds: set[str] = set()
    imported: set[str] = set()
    url = ""  # of the first
    for place in places:
        with reading(place) as store:
            with store.reading() as connection:
                sources = list_sources(connection)
            imported.update(sources)
            url = url or store.url
            by_kind = jobs_of(store, [name for name in sources if not asked or name in asked])
        kinds.update(kind for kind, jobs in by_kind.items() if jobs)
        found += [(place, job) for jobs in by_kind.values() for job in jobs]
    for name in set(asked) - imported:
        known = f"Imported: {', '.join(sorted(imported)) or 'nothing'}; see db.py --import-csv."
        raise UnknownNameError(f"There is no published source '{name}'. {suggestion(name, imported) or known}")
    return found + [(places[0], job) for job in jobs_without(kinds, url)]


def _is_chosen(job: Job, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(job.figure, pattern.removesuffix(".py")) for pattern in patterns)


def _draw(place: Place, job: Job, out: Path, highlight: Sequence[str]) -> None:
    """Draws a figure and prints its files. Raises: TestbedError: it cannot be drawn."""
    if job.is_missing:
        raise TestbedError(job.is_missing)
    with without_downloads("figures are drawn from what is here"):
        if job.figure == SEPARATION:
            _draw_separation(place, job, out)
        elif job.settings and highlight:
            _draw_highlighted(place, job, out, highlight)
        else:
            _run(place, job, out)


def _run(place: Place, job: Job, out: Path) -> None:
    database = () if job.figure == "corruption_sheet" else database_options(place)
    command = import_module(f"plotting.{job.figure}").main
    command.main([*job.arguments, *database, "--out", str(out / job.folder)], standalone_mode=False)


def _draw_highlighted(place: Place, job: Job, out: Path, names: Sequence[str]) -> None:
    """A figure with some models labelled; without, where it does not show them."""
    try:
        _run(place, replace(job, arguments=(*job.arguments, "--highlight", *names)), out)
    except UnknownNameError as error:
        _run(place, job, out)
        say(f"{job.title} is drawn without --highlight: {error}")


def _draw_separation(place: Place, job: Job, out: Path) -> None:
    from testbed.commands.separation import separation

    _, dataset, _, norm = job.arguments
    options = {
        **place, "separation": dataset, "norm": (norm,), "out": out, "as_json": True, "splits": (), "plugins": (),
        "data_root": None, "canonical_size": None, "exclude_conflicting": False,
    }  # fmt: skip
    with redirect_stdout(StringIO()) as text:
        separation(options)
    print(*json.loads(text.getvalue())[0]["files"], sep="\n")
