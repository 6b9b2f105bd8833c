"""The command lines that figures share: where the results lie, which of them to show, where the files go."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli import BEGINS_ANEW, ManyCommand
from testbed.records import NORMS

if TYPE_CHECKING:
    from testbed.store.store import Store

Draw = Callable[..., Iterable[Path]]
Option = Callable[[Any], Any]

_FILES = (
    click.option("--db-url", envvar="TESTBED_DB", metavar="URL",
                 help="The database. [default: results/testbed.sqlite]"),
    click.option("--logdir", type=click.Path(path_type=Path), help="Use the database of this log directory instead."),
    click.option("--out", type=click.Path(path_type=Path), default=Path("results/figures"), show_default=True,
                 help="Folder for the PDF, PNG and CSV; files of the same name are replaced."),
)  # fmt: skip
_PLACES = (
    *_FILES,
    click.option("--dataset", metavar="NAME", help="The data set, if the database holds several."),
)
_MODELS = click.option("--models", multiple=True, metavar="NAME...", help="Only these models, by name or glob.")
_OF_NOISE = (
    *_PLACES,
    click.option("--norm", type=click.Choice(NORMS), default="linf", show_default=True, help="Norm of the noise."),
    click.option("--shared", "is_shared", is_flag=True,
                 help="Noise whose offsets all samples share, and models fitted on such noise."),
    _MODELS,
    click.option("--samples", "num_samples", type=click.IntRange(min=1), metavar="N",
                 help="Only evaluations of N samples, if the database holds several numbers."),
)  # fmt: skip
_OF_CORRUPTIONS = (
    *_PLACES,
    _MODELS,
    click.option("--on-disk", "is_on_disk", is_flag=True,
                 help="Corrupted images that were read from disk. [default: made in memory]"),
    click.option("--variant", default="", metavar="SUFFIX",
                 help="Settings whose names end in it, such as mnist28-jpeg85. [default: the plain ones]"),
    click.option("--metric", type=click.Choice(["A_rel_c", "A_c", "q"], case_sensitive=False), default="A_rel_c",
                 show_default=True, help="Relative corruption accuracy, corruption accuracy, or recovery."),
)  # fmt: skip
_OF_MODELS = (
    *_FILES,
    click.option("--with-published", "sources", multiple=True, metavar="SOURCE...",
                 help="Show the numbers that were imported under these names too."),
    click.option("--models", multiple=True, metavar="NAME...",
                 help="Show only these models, by name or glob; lines are still fitted to all of --fit-set."),
    click.option("--highlight", multiple=True, metavar="NAME...", help="Label these models, by name or glob."),
    click.option("--fit-set", multiple=True, default=["standard"], show_default=True, metavar="NAME...",
                 help="The models that lines are fitted to: standard, standard-2020, all, names or globs, or @FILE."),
    click.option("--scale", type=click.Choice(["logit", "probit", "linear"]), default="logit", show_default=True,
                 help="Scale of the axes, in which a line is straight."),
    click.option("--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95,
                 show_default=True, help="Of prediction intervals of a line; those of single results are 95 %."),
)  # fmt: skip

LOW_ACCURACY_OPTION: Option = click.option(
    "--with-low-accuracy", is_flag=True,
    help="Also models that were trained on few images or on simple features: lines do not reach them.",
)  # fmt: skip


def figure_command(draw: Draw) -> click.Command:
    """A command that opens the store, calls `draw(stored, out, ...)`, and prints the paths that it returns.

    Args:
        draw: takes what the selection finds (`plotting.drawing.stored.Stored`), the folder for its files, and click
            options of its own; its docstring is the help.
    """

    def found(store: Store, given: dict[str, Any]) -> Any:
        from plotting.drawing.selection import Selection
        from plotting.drawing.stored import stored

        return stored(store, Selection(**{name: given.pop(name) for name in Selection.__dataclass_fields__}))

    return _command(draw, _OF_NOISE, found)


def figure_of_corruptions(draw: Draw) -> click.Command:
    """As `figure_command`, for `draw(grids, out, ...)` of models under common corruptions.

    Args: draw: takes a `plotting.drawing.corruption_table.Corruptions` in the place of what is stored under noise.
    """

    def found(store: Store, given: dict[str, Any]) -> Any:
        from plotting.drawing.corruption_table import corruptions

        asked = ("dataset", "models", "is_on_disk", "variant", "metric")
        return corruptions(store, **{name: given.pop(name) for name in asked})

    return _command(draw, _OF_CORRUPTIONS, found)


def figure_of_models(draw: Draw) -> click.Command:
    """As `figure_command`, for `draw(comparison, out, ...)` of models on settings, published ones beside stored ones.

    Args: draw: takes a `plotting.drawing.comparison.Comparison` in the place of what is stored under noise.
    """

    def found(store: Store, given: dict[str, Any]) -> Any:
        from plotting.drawing.comparison import Comparison

        asked = ("sources", "models", "highlight", "fit_set", "scale", "confidence")
        return Comparison(store=store, **{name: given.pop(name) for name in asked})

    return _command(draw, _OF_MODELS, found)


def _command(
    draw: Draw, options: Sequence[Option], found: Callable[[Store, dict[str, Any]], Any]
) -> click.Command:  # fmt: skip
    """`draw` with the options that figures share; `found` takes those out that say what is asked for."""

    @functools.wraps(draw)  # with the options that were put on it
    def command(*, db_url: str | None, logdir: Path | None, out: Path, **given: Any) -> None:
        from testbed.commands.action import reading

        with reading({"db_url": db_url, "logdir": logdir}) as store:
            for path in draw(found(store, given), out, **given):
                print(path)

    for option in reversed(options):
        command = option(command)
    return click.command(cls=ManyCommand, interrupted=BEGINS_ANEW)(command)
