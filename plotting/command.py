"""The command line that all figures share: where the results lie, which of them to show, where the files go."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from testbed.cli import ManyCommand
from testbed.records import NORMS

OPTIONS = (
    click.option("--db-url", envvar="TESTBED_DB", metavar="URL",
                 help="The database. [default: results/testbed.sqlite]"),
    click.option("--logdir", type=click.Path(path_type=Path), help="Use the database of this log directory instead."),
    click.option("--out", type=click.Path(path_type=Path), default=Path("results/figures"), show_default=True,
                 help="Folder for the PDF, PNG and CSV; files of the same name are replaced."),
    click.option("--dataset", metavar="NAME", help="The data set, if the database holds several."),
    click.option("--norm", type=click.Choice(NORMS), default="linf", show_default=True, help="Norm of the noise."),
    click.option("--shared", "is_shared", is_flag=True,
                 help="Noise whose offsets all samples share, and models fitted on such noise."),
    click.option("--models", multiple=True, metavar="NAME...", help="Only these models, by name or glob."),
    click.option("--samples", "num_samples", type=click.IntRange(min=1), metavar="N",
                 help="Only evaluations of N samples, if the database holds several numbers."),
)  # fmt: skip


def figure_command(draw: Callable[..., Iterable[Path]]) -> click.Command:
    """A command that opens the store, calls `draw(stored, out, ...)`, and prints the paths that it returns.

    Args:
        draw: takes what the selection finds (`plotting.stored.Stored`), the folder for its files, and click options of
            its own; its docstring is the help.
    """

    @functools.wraps(draw)  # with the options that were put on it
    def command(*, db_url: str | None, logdir: Path | None, out: Path, **options: Any) -> None:
        from plotting.selection import Selection
        from plotting.stored import stored

        from testbed.commands.action import reading

        wanted = Selection(**{name: options.pop(name) for name in Selection.__dataclass_fields__})
        with reading({"db_url": db_url, "logdir": logdir}) as store:
            for path in draw(stored(store, wanted), out, **options):
                print(path)

    for option in reversed(OPTIONS):
        command = option(command)
    return click.command(cls=ManyCommand)(command)
