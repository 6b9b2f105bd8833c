"""Looks into the database of evaluations and computes from it: listings, records, metrics, logits as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from testbed.cli import ManyCommand, run


@click.command(cls=ManyCommand, no_args_is_help=True)
@click.option("--list-models-registry", is_flag=True, help="Names of the models that can be evaluated.")
@click.option("--list-eval-settings-registry", is_flag=True, help="Names of the settings that can be evaluated.")
@click.option("--list-models-db", is_flag=True, help="Models with stored evaluations.")
@click.option("--list-eval-settings-db", is_flag=True, help="Settings with stored evaluations.")
@click.option("--recompute", is_flag=True, help="Compute every metric again from the stored logits.")
@click.option(
    "--print-eval", nargs=2, metavar="MODEL SETTING", help="Print the stored evaluations of a model on a setting."
)
@click.option(
    "--save-logits", nargs=2, metavar="SETTING DIR", help="Write the logits of all models on a setting as files."
)
@click.option("--override", is_flag=True, help="Let --save-logits replace files that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print --print-eval as one JSON object.")
@click.option("--db-url", envvar="TESTBED_DB", metavar="URL", help="The database. [default: results/testbed.sqlite]")
@click.option("--logdir", type=click.Path(path_type=Path), help="Use the database of this log directory instead.")
@click.option("--plugin", "plugins", multiple=True, metavar="PATH...", help="Files or folders with more definitions.")
def main(**options: Any) -> int:
    """Look into the database of evaluations. Several actions run in the order of this list and stop at the first error.

    \b
    Example:
      python db.py --print-eval digits-resnet digits-mscr-linf --json
    """
    from testbed.commands.database import database_command

    return database_command(**options)


if __name__ == "__main__":
    run(main)
