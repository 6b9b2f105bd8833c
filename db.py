#!/usr/bin/env python
"""Looks into and after the database of evaluations: listings, records, metrics, files, repairs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from testbed.cli import ManyCommand, data_root_option, no_download_option, run


@click.command(cls=ManyCommand, no_args_is_help=True)
@click.option("--upgrade", is_flag=True, help="Bring the database to this version's schema, after a backup.")
@click.option("--release-lock", is_flag=True, help="Free the database from a program that no longer runs.")
@click.option("--merge", metavar="URL", help="Take over what another database holds; nothing is overwritten.")
@click.option("--add-model", multiple=True, metavar="NAME...", help="Put models into the database unevaluated.")
@click.option("--add-eval-setting", multiple=True, metavar="NAME...", help="Put settings into the database.")
@click.option("--import-logits", metavar="DIR", help="Store logits computed elsewhere, as models of their own.")
@click.option(
    "--import-csv",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE...",
    help="Store published numbers and types of models: the ImageNet Testbed's files, or timm's.",
)
@click.option(
    "--rename-model", nargs=2, metavar="OLD NEW", help="Rename a stored model; an equally renamed definition finds it."
)
@click.option("--rename-eval-setting", nargs=2, metavar="OLD NEW", help="Rename a stored setting in the same way.")
@click.option("--remove-model", multiple=True, metavar="NAME...", help="Hide models with all their evaluations.")
@click.option("--remove-eval-setting", multiple=True, metavar="NAME...", help="Hide settings with their evaluations.")
@click.option("--remove-evaluation", nargs=2, metavar="MODEL SETTING", help="Hide the evaluations of one pair.")
@click.option(
    "--restore",
    multiple=True,
    metavar="NAME...",
    help="Undo the removal of models, settings and their evaluations.",
)
@click.option("--purge", is_flag=True, help="With --override: delete for good what was removed.")
@click.option("--verify", is_flag=True, help="Check all checksums and references, and that stored is what was planned.")
@click.option("--recompute", is_flag=True, help="Compute every metric again from the stored logits.")
@click.option("--separation", metavar="DATASET", help="Find, store and print a data set's minimal class separation.")
@click.option("--mscr", is_flag=True, help="What noise costs stored models, and whether that is more than chance.")
@click.option("--corruption-report", is_flag=True, help="What common corruptions cost stored models, in one table.")
@click.option("--precision-report", is_flag=True, help="How many predictions change with the precision, against fp32.")
@click.option(
    "--effective-robustness", nargs=2, metavar="X Y",
    help="How far models lie above or below the line of standard models on two settings.",
)  # fmt: skip
@click.option("--compare", nargs=2, metavar="MODEL MODEL", help="How two stored models differ on the same samples.")
@click.option("--claim", metavar="TEXT", help="Supported, refuted or undecided: 'loss(digits-mscr-linf) <= 1%'.")
@click.option("--list-models-registry", is_flag=True, help="Names of the models that can be evaluated.")
@click.option("--list-eval-settings-registry", is_flag=True, help="Names of the settings that can be evaluated.")
@click.option("--list-parent-eval-settings-registry", is_flag=True, help="Settings that others are compared with.")
@click.option("--list-models-db", is_flag=True, help="Models with stored evaluations.")
@click.option("--list-eval-settings-db", is_flag=True, help="Settings with stored evaluations.")
@click.option("--diff-registry", is_flag=True, help="Definitions that differ between the database and the registry.")
@click.option("--status", is_flag=True, help="What is complete, partial, failed, running, interrupted or stale.")
@click.option("--show-model", metavar="NAME", help="A model: definition, weights, what it was trained on, evaluations.")
@click.option("--show-setting", metavar="NAME", help="A setting: definition, data and where to get them, evaluations.")
@click.option(
    "--check-data", multiple=True, metavar="NAME...",
    help="Whether what settings or data sets need lies on disk as it should be.",
)  # fmt: skip
@click.option(
    "--print-eval", nargs=2, metavar="MODEL SETTING", help="Print the stored evaluations of a model on a setting."
)
@click.option(
    "--save-logits", nargs=2, metavar="SETTING DIR", help="Write the logits of all models on a setting as files."
)
@click.option(
    "--export", type=click.Path(path_type=Path), metavar="FILE", help="Write all results to a .csv, .json or .parquet."
)
@click.option("--paths", is_flag=True, help="Where the database, its backups, caches and data lie, with sizes.")
@click.option("--compact", is_flag=True, help="Give the space of what was deleted back to the disk.")
@click.option("--repair", is_flag=True, help="Of --verify: take out damaged pieces, for eval.py to compute again.")
@click.option("--dry-run", is_flag=True, help="Of --merge: report what would be done, and write nothing.")
@click.option(
    "--models", multiple=True, metavar="NAME...",
    help="Of --mscr, --corruption-report, --precision-report, --effective-robustness, --claim: names or globs. "
    "[default: all]",
)  # fmt: skip
@click.option(
    "--eval-settings", multiple=True, metavar="NAME...",
    help="Of --precision-report, --compare: settings, by name or glob. [default: all]",
)  # fmt: skip
@click.option(
    "--dataset", "datasets", multiple=True, metavar="NAME...",
    help="Of --mscr, --corruption-report, --precision-report, --compare: data sets. [default: all]",
)  # fmt: skip
@click.option("--baseline", metavar="MODEL", help="Of --corruption-report: what mCE is by; or alexnet-published.")
@click.option("--on-disk", is_flag=True, help="Of --corruption-report: published files. [default: made in memory]")
@click.option(
    "--variant", default="", metavar="SUFFIX",
    help="Of --corruption-report: settings whose names end in it, such as mnist28-jpeg85. [default: the plain ones]",
)  # fmt: skip
@click.option("--well-posed", is_flag=True, help="Of --corruption-report: also what speaks against a simulator.")
@click.option("--epsilon", type=float, help="Of --mscr: a noise level. [default: half the minimal class separation]")
@click.option(
    "--confidence", type=float, default=0.95,
    help="Of --mscr, --corruption-report, --precision-report, --effective-robustness, --compare, --claim. "
    "[default: 0.95]",
)  # fmt: skip
@click.option(
    "--one-sided", is_flag=True,
    help="Of --mscr, --corruption-report, --compare: one bound, accuracy at least and loss at most.",
)  # fmt: skip
@click.option(
    "--cluster-by", metavar="COLUMN",
    help="Of --mscr, --corruption-report, --compare, --claim: what samples belong together by.",
)  # fmt: skip
@click.option(
    "--sample-table", type=click.Path(path_type=Path), metavar="FILE", help="Of --cluster-by: a CSV with sample_id."
)
@click.option("--per-class", is_flag=True, help="Of --claim: ask it of every class.")
@click.option(
    "--norm", multiple=True, type=click.Choice(["linf", "l2", "l1"]),
    help="Of --separation and --mscr. [default: linf, and all that are stored]",
)  # fmt: skip
@click.option("--splits", multiple=True, metavar="NAME...", help="Of --separation: parts that are searched together.")
@click.option("--exclude-conflicting", is_flag=True, help="Of --separation: leave out equals of other classes.")
@click.option("--canonical-size", type=click.IntRange(min=1), metavar="PX", help="Of --separation: size of all images.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Of --separation: draw figures there.")
@click.option("--source", metavar="NAME", help="Of --import-csv: name to import under. [default: the format's]")
@click.option("--protocol", metavar="NAME", help="Of --import-csv: how they were made. [default: the format's]")
@click.option("--eval-setting", metavar="NAME", help="Of --import-csv: what a results file of timm evaluates.")
@click.option(
    "--unit", type=click.Choice(["percent", "fraction"]),
    help="Of --import-csv: what its accuracies are in. [default: percent, where some are above 1]",
)  # fmt: skip
@click.option("--wide", is_flag=True, help="Of --export: a grid of top-1, a row per model and a column per setting.")
@click.option(
    "--with-published", multiple=True, metavar="SOURCE...",
    help="Of --export, --effective-robustness: these imported numbers as well; of --corruption-report: these alone.",
)  # fmt: skip
@click.option(
    "--fit-set", multiple=True, metavar="NAME...",
    help="Of --effective-robustness: standard-2020, all, names or globs of models, or @FILE. [default: standard]",
)  # fmt: skip
@click.option(
    "--scale", type=click.Choice(["logit", "probit", "linear"]), default="logit",
    help="Of --effective-robustness: what the line is straight on. [default: logit]",
)  # fmt: skip
@click.option("--by-family", is_flag=True, help="Of --effective-robustness: draw families of models for intervals.")
@click.option(
    "--override", is_flag=True,
    help="Let --save-logits, --export, --import-csv replace, --purge delete, --release-lock trust you.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what is shown as JSON.")
@click.option("--db-url", envvar="TESTBED_DB", metavar="URL", help="The database. [default: results/testbed.sqlite]")
@click.option("--logdir", type=click.Path(path_type=Path), help="Use the database of this log directory instead.")
@click.option("--plugin", "plugins", multiple=True, metavar="PATH...", help="Files or folders with more definitions.")
@data_root_option
@no_download_option
def main(**options: Any) -> int:
    """Look into and after the database of evaluations.

    Several actions of one call run in the order of this list, and stop at the first that fails.

    \b
    Example:
      python db.py --print-eval digits-resnet digits-mscr-linf --json
    """
    from testbed.commands.database import database_command

    return database_command(**options)


if __name__ == "__main__":
    run(main)
