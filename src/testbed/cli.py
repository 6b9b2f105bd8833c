"""What the command lines share: options that take several values, and errors as one line with an exit code."""

from __future__ import annotations

import errno
import io
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NoReturn

import click
from click.shell_completion import CompletionItem

from testbed.errors import TestbedError
from testbed.interruption import Terminated
from testbed.masking import masked_text
from testbed.offline import NO_DOWNLOAD_VARIABLE, forbid_downloads
from testbed.paths import DATA_VARIABLE
from testbed.streams import standard_streams
from testbed.visible import visible

EXIT_SOME_FAILED = 1
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


_ANY_REMEDY = "Check that path and its permissions, and run the same command again."
_REMEDIES = {
    errno.EMFILE: "Raise the limit (ulimit -n 1024) and run the same command again.",
    errno.ENFILE: "Close other programs and run the same command again.",
    errno.ENOSPC: "Free space on that disk and run the same command again.",
}
_LAST_OPTION = "testbed.last_option"

# What an interrupted command says of what it has done so far.
GOES_ON = "What was stored stays; the same command goes on from there."
BEGINS_ANEW = "The files whose names were printed are whole; the same command begins anew."


class ManyCommand(click.Command):
    """A command whose repeatable options take several values at once: `--models a b` for `--models a --models b`.

    Args: interrupted: what is said of what was done where it is interrupted.
    """

    def __init__(self, *args: Any, interrupted: str = GOES_ON, **given: Any) -> None:
        super().__init__(*args, **given)
        self.interrupted = interrupted

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        repeatable = {
            name
            for option in self.params
            if isinstance(option, click.Option) and option.multiple and option.nargs == 1
            for name in option.opts
        }
        spread = _spread(args, repeatable)
        ctx.meta[_LAST_OPTION] = next((arg for arg in reversed(spread) if arg.startswith("-") and arg != "-"), None)
        may_swallow = not repeatable.isdisjoint(spread)  # asked now, as the parser empties the list
        try:
            return super().parse_args(ctx, spread)
        except click.MissingParameter as error:
            if not (isinstance(error.param, click.Argument) and may_swallow):
                raise
            remedy = "Give it before the options: what follows one of several values belongs to it."
            raise click.MissingParameter(remedy, ctx, error.param) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completions of `incomplete`: also for the second and later values of an option."""
        if not incomplete.startswith("-"):
            for option in self.params:
                if isinstance(option, click.Option) and option.multiple and ctx.meta.get(_LAST_OPTION) in option.opts:
                    return option.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


def _spread(args: Sequence[str], repeatable: set[str]) -> list[str]:
    """`args` with the option's name put before every value that follows the first one."""
    spread: list[str] = []
    current: str | None = None
    is_first = False
    for arg in args:
        if arg.startswith("-") and not _is_number(arg) and arg != "-":
            name, equals, _ = arg.partition("=")
            current = name if name in repeatable else None
            is_first = current is not None and not equals
        elif current is not None and not is_first:
            spread.append(current)
        else:
            is_first = False
        spread.append(arg)
    return spread


def complete_names(kind: Literal["models", "eval_settings"]) -> Callable[..., list[str]]:
    """A `shell_complete` callback for names, as the last listing found them: nothing is imported for it."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from testbed.definitions import plugin_paths
        from testbed.names import kept_names

        with suppress(TestbedError):
            kept = kept_names(plugin_paths(context.params.get("plugins") or ()))
            return [name for name in getattr(kept, kind, ()) if name.startswith(incomplete)]
        return []

    return complete


def no_download_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--no-download`: this process and its workers then take only data that lies there."""
    return click.option(
        "--no-download", is_flag=True, expose_value=False, callback=_forbid_downloads,
        help=f"Data that is not there is an error, and never downloaded; also {NO_DOWNLOAD_VARIABLE}=1.",
    )(command)  # fmt: skip


def _forbid_downloads(context: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    if is_given:
        forbid_downloads()


def data_root_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--data-root`, which whatever is read from the folder of data sets then sees, in workers too."""
    return click.option(
        "--data-root", type=click.Path(path_type=Path), envvar=DATA_VARIABLE, callback=_use_data_root,
        help="Where data sets lie. [default: data]",
    )(command)  # fmt: skip


def _use_data_root(context: click.Context, parameter: click.Parameter, root: Path | None) -> Path | None:
    if root is not None:
        os.environ[DATA_VARIABLE] = str(root)
    return root


class _BatchSize(click.IntRange):
    """A number of images, or the word `auto`."""

    name = "batch size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "auto":
            return value
        if not str(value).removeprefix("-").isdecimal():
            self.fail(f"'{value}' is neither a number of images nor 'auto'.", param, ctx)
        return super().convert(value, param, ctx)


BATCH_SIZE = _BatchSize(min=1)


class _Amount(click.FloatRange):
    """A finite number above 0, of the unit that the option's metavar names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            is_amount = 0 < float(value) < math.inf
        except ValueError:
            is_amount = False
        if not is_amount:
            unit = f" of {param.metavar}" if param is not None and param.metavar else ""
            self.fail(f"'{value}' is not a number{unit} above 0.", param, ctx)
        return float(value)


AMOUNT = _Amount(min=0, min_open=True)


def _is_number(arg: str) -> bool:
    """Whether an argument that starts with a dash is a number, and no option."""
    return arg[1:2].isdigit() or arg[1:2] == "."


def run(command: click.Command, args: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and exits: 0 done, 1 some evaluation failed, 2 wrong request, 3 database, 130 interrupted, 143
    terminated."""
    signal.signal(signal.SIGTERM, _terminate)
    with standard_streams():
        code = _exit_code(command, args)
    sys.exit(code)


def _exit_code(command: click.Command, args: Sequence[str] | None) -> int:
    try:
        result: Any = command.main(args=args, standalone_mode=False, complete_var=_complete_variable())
        sys.stdout.flush()
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        say(shown.getvalue().rstrip("\n"))
        return error.exit_code
    except TestbedError as error:
        say(f"Error: {error}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        say(f"Interrupted. {command.interrupted if isinstance(command, ManyCommand) else GOES_ON}")
        return interrupted_code(error)
    except BrokenPipeError:  # the reader of our output, such as `head`, has gone
        return EXIT_SOME_FAILED
    except (OSError, UnicodeEncodeError) as error:
        if (sentence := _system_sentence(error)) is None:
            raise
        say(f"Error: {sentence}")
        return TestbedError.exit_code
    return result if isinstance(result, int) else 0


def _system_sentence(error: OSError | UnicodeEncodeError) -> str | None:
    """What the system refused, and what to do; None for a fault of the program."""
    if isinstance(error, UnicodeEncodeError):
        if "surrogates" not in error.reason:
            return None
        return f"The name '{error.object}' is not UTF-8. Rename the file or folder, or give another one."
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}. {_REMEDIES.get(error.errno or 0, _ANY_REMEDY)}"


def interrupted_code(error: BaseException) -> int:
    """The exit code of a program that was interrupted by Ctrl-C or by SIGTERM."""
    cause = error.__cause__ or error  # click puts an Abort in the place of an interruption
    return EXIT_TERMINATED if isinstance(cause, Terminated) else EXIT_INTERRUPTED


def _complete_variable() -> str:
    """What asks a script for its shell completion: `_EVAL_COMPLETE` for eval.py."""
    return f"_{Path(sys.argv[0]).stem.upper()}_COMPLETE"


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


def say(line: str) -> None:
    """Prints a line for people, on stderr: stdout is for results."""
    print(visible(masked_text(line), in_one_line=False), file=sys.stderr, flush=True)


Tell = Callable[[str], None]


def teller(*, is_quiet: bool) -> Tell:
    """What tells how far a command is: `say`, or nothing at all."""
    return tell_nothing if is_quiet else say


def tell_nothing(line: str) -> None:
    """Takes a line and keeps it."""
