#!/usr/bin/env python
"""Writes a site: one folder of pages that opens from the file system, without a server and without a network."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from testbed.cli import ManyCommand, run, teller


@click.command(cls=ManyCommand, interrupted="Nothing was written.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the site; it takes all of it.")
@click.option("--db-url", envvar="TESTBED_DB", metavar="URL", help="The database. [default: results/testbed.sqlite]")
@click.option("--logdir", type=click.Path(path_type=Path), help="Use the database of this log directory instead.")
@click.option("--with-published", "sources", multiple=True, metavar="SOURCE...",
              help="Show these imported results, too, under the names of their sources.")  # fmt: skip
@click.option("--models", multiple=True, metavar="NAME...",
              help="Only these models, by name or glob; lines are fitted to them alone.")  # fmt: skip
@click.option("--eval-settings", "settings", multiple=True, metavar="NAME...", help="Only these, by name or glob.")
@click.option("--override", is_flag=True, help="Replace a site that is there, as a whole.")
@click.option("--quiet", is_flag=True, help="No line per step.")
def main(
    *, out: Path, db_url: str | None, logdir: Path | None, sources: Sequence[str], models: Sequence[str],
    settings: Sequence[str], override: bool, quiet: bool,
) -> None:  # fmt: skip
    """Write pages to explore what is stored: an overview, scatter plots, a page per model and setting, downloads.

    \b
    Examples:
      python plotting/site.py --out site
      python plotting/site.py --out site --with-published imagenet-testbed timm --override
    """
    from plotting.pages.build import site_files
    from plotting.pages.data import read_site
    from plotting.pages.folder import check_folder, write_folder

    from testbed.commands.action import reading

    tell = teller(is_quiet=quiet)
    check_folder(out, override=override)
    with reading({"db_url": db_url, "logdir": logdir}) as store:
        tell(f"Reading {store.url}.")
        site = read_site(store, sources=sources, models=models, settings=settings, tell=tell)
        write_folder(out, site_files(site, tell=tell), override=override)
    print(out / "index.html")


if __name__ == "__main__":
    run(main)
