"""What the command lines share: options that take several values, and errors as one line with an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from testbed.errors import TestbedError

EXIT_SOME_FAILED = 1
EXIT_INTERRUPTED = 130


class ManyCommand(click.Command):
    """A command whose repeatable options take several values at once: `--models a b` for `--models a --models b`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        repeatable = {
            name
            for option in self.params
            if isinstance(option, click.Option) and option.multiple and option.nargs == 1
            for name in option.opts
        }
        return super().parse_args(ctx, _spread(args, repeatable))


def _spread(args: Sequence[str], repeatable: set[str]) -> list[str]:
    """`args` with the option's name put before every value that follows the first one."""
    spread: list[str] = []
    current: str | None = None
    is_first = False
    for arg in args:
        if arg.startswith("-") and arg != "-":
            name, equals, _ = arg.partition("=")
            current = name if name in repeatable else None
            is_first = current is not None and not equals
        elif current is not None and not is_first:
            spread.append(current)
        else:
            is_first = False
        spread.append(arg)
    return spread


def run(command: click.Command, args: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and exits: 0 done, 1 some evaluation failed, 2 wrong request, 3 database, 130 interrupted."""
    try:
        sys.exit(_exit_code(command, args))
    except BrokenPipeError:  # the reader of our output, such as `head`, has gone
        sys.stderr.close()
        sys.exit(EXIT_SOME_FAILED)


def _exit_code(command: click.Command, args: Sequence[str] | None) -> int:
    try:
        result: Any = command.main(args=args, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TestbedError as error:
        say(f"Error: {error}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("Interrupted. What was stored stays; the same command goes on from there.")
        return EXIT_INTERRUPTED
    return result if isinstance(result, int) else 0


def say(line: str) -> None:
    """Prints a line for people, on stderr: stdout is for results."""
    print(line, file=sys.stderr, flush=True)
