#!/usr/bin/env python
"""Draws every figure of the papers that the stored results allow, and says what is missing for the others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from testbed.cli import BEGINS_ANEW, ManyCommand, run, teller


@click.command(cls=ManyCommand, interrupted=BEGINS_ANEW)
@click.option("--db-url", "urls", multiple=True, envvar="TESTBED_DB", metavar="URL...",
              help="One database, or several. [default: results/testbed.sqlite]")  # fmt: skip
@click.option("--logdir", type=click.Path(path_type=Path), help="Use the database of this log directory instead.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results/figures"),
    show_default=True,
    help="Folder for the figures; those of a published source go into one of its name below.",
)
@click.option(
    "--with-published",
    "sources",
    multiple=True,
    metavar="SOURCE...",
    help="Draw the numbers that were imported under these names. [default: all, each source by itself]",
)
@click.option("--highlight", multiple=True, metavar="NAME...", help="Label these models, by name or glob.")
@click.option("--figures", "patterns", multiple=True, metavar="NAME...", help="Only these scripts, by name or glob.")
@click.option("--quiet", is_flag=True, help="No line per figure before it is drawn.")
def main(
    *, urls: Sequence[str], logdir: Path | None, out: Path, sources: Sequence[str], highlight: Sequence[str],
    patterns: Sequence[str], quiet: bool,
) -> int:  # fmt: skip
    """Draw the figures of the papers from stored and imported results.

    Each figure that cannot be drawn gets one line: what is missing, and a command that would store it.

    \b
    Examples:
      plotting/paper_plots.sh
      plotting/paper_plots.sh --db-url sqlite:///mine.sqlite sqlite:///published.sqlite --out figures
    """
    from plotting.drawing.paper_drawing import draw_all

    tell = teller(is_quiet=quiet)
    return draw_all(urls, logdir, out, sources=sources, highlight=highlight, patterns=patterns, tell=tell)


if __name__ == "__main__":
    run(main)
