"""The options by which a user says which shifts, and which models, a figure of effective robustness shows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click
from plotting.drawing.command import LOW_ACCURACY_OPTION

from testbed.shift_pairs import SHIFT_PAIRS

MEASURES = ("effective-robustness", "accuracy")


class Choice(NamedTuple):
    """Which shifts and models the user asks for.

    Args:
        names: of `SHIFT_PAIRS`; empty for those of a default that are stored.
        own: pairs of settings of the user's.
        with_low_accuracy: also models that were trained on few images or on simple features.
    """

    names: Sequence[str] = ()
    own: Sequence[tuple[str, str]] = ()
    with_low_accuracy: bool = False

    @property
    def is_made(self) -> bool:
        """Whether the user names any shift."""
        return bool(self.names or self.own)


def shift_options(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a `Choice`, which `draw` gets as `choice`."""

    @functools.wraps(draw)
    def command(
        *args: Any, names: Sequence[str], own: Sequence[tuple[str, str]], with_low_accuracy: bool, **given: Any
    ) -> Any:
        return draw(*args, choice=Choice(names, own, with_low_accuracy), **given)

    for option in (
        LOW_ACCURACY_OPTION,
        click.option("--pair", "own", nargs=2, multiple=True, metavar="X Y",
                     help="Also the shift from setting X to setting Y; may be given again."),
        click.option("--shifts", "names", multiple=True, metavar="NAME...",
                     help=f"These shifts: {', '.join(SHIFT_PAIRS)}. [default: those of the paper that are stored]"),
    ):  # fmt: skip
        command = option(command)
    return command


def against_option(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--against`: which number of the synthetic shift the x axis shows."""
    return click.option(
        "--against", type=click.Choice(MEASURES), default=MEASURES[0], show_default=True,
        help="The number on the x axis, of the synthetic shift.",
    )(draw)  # fmt: skip
