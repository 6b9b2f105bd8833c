#!/usr/bin/env python
"""Writes the report on a model and a data set for a safety case: one HTML page, and a PDF of it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from testbed.cli import BEGINS_ANEW, ManyCommand, run


@click.command(cls=ManyCommand, interrupted=BEGINS_ANEW)
@click.option("--db-url", envvar="TESTBED_DB", metavar="URL", help="The database. [default: results/testbed.sqlite]")
@click.option("--logdir", type=click.Path(path_type=Path), help="Use the database of this log directory instead.")
@click.option("--model", required=True, metavar="NAME", help="The model.")
@click.option("--dataset", metavar="NAME", help="The data set, if the model was evaluated on several.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of each bound and interval.",
)
@click.option("--claim", "claims", multiple=True, metavar="TEXT...", help="Claims to decide, see db.py --claim.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results/reports"),
    show_default=True,
    help="Folder for the page; a file of the same name is replaced.",
)
@click.option("--pdf", "is_pdf", is_flag=True, help="Also print it, by a Chromium or Chrome that is installed.")
@click.option("--browser", metavar="PROGRAM", help="The browser that prints. [default: the first that is found]")
def main(
    *, db_url: str | None, logdir: Path | None, model: str, dataset: str | None, confidence: float,
    claims: tuple[str, ...], out: Path, is_pdf: bool, browser: str | None,
) -> None:  # fmt: skip
    """Write a report on a model and a data set that a safety case can quote: bounds, worst cases, what was not tested,
    provenance, and the commands that make it again.

    \b
    Example:
      python plotting/report.py --logdir results/log --model digits-linear --dataset digits --pdf --out reports
    """
    from plotting.safety_case.case import safety_case
    from plotting.safety_case.page import page
    from plotting.safety_case.printing import find_browser, print_pdf
    from plotting.safety_case.sources import data_sources
    from plotting.safety_case.writing import report_name, write_page

    from testbed.commands.action import reading

    program = find_browser(browser) if is_pdf or browser else ""
    with reading({"db_url": db_url, "logdir": logdir}) as store:
        case = safety_case(store, model, dataset, confidence=confidence, claims=claims, source=data_sources())
    path = out / f"{report_name(case)}.html"
    write_page(path, page(case))
    print(path)
    if program:
        print_pdf(path, path.with_suffix(".pdf"), browser=program, date=case.date)
        print(path.with_suffix(".pdf"))


if __name__ == "__main__":
    run(main)
