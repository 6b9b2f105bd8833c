"""Options that take several values, and errors as exit codes."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from testbed.cli import AMOUNT, BATCH_SIZE, ManyCommand, data_root_option, run
from testbed.errors import DataError, StoreError
from testbed.interruption import Terminated
from testbed.paths import data_root as data_root_of_paths


@click.command(cls=ManyCommand)
@click.option("--models", multiple=True)
@click.option("--gpus", multiple=True, type=int)
@click.option("--pair", nargs=2)
@click.option("--flag", is_flag=True)
def show(**options: Any) -> None:
    print(options)


@pytest.mark.parametrize(
    ("line", "models", "gpus"),
    [
        ("--models a b --gpus 0 1", ("a", "b"), (0, 1)),
        ("--models=a --models b c", ("a", "b", "c"), ()),
        ("--models=a b", ("a", "b"), ()),
        ("--models a --flag --gpus 3", ("a",), (3,)),
        ("--pair x y --models a b --flag", ("a", "b"), ()),
        ("", (), ()),
    ],
)
def test_values_may_follow_one_another(line: str, models: tuple[str, ...], gpus: tuple[int, ...]) -> None:
    options = show.make_context("show", line.split()).params
    assert (options["models"], options["gpus"]) == (models, gpus)


def test_an_argument_that_an_option_has_swallowed_is_asked_for_before_it() -> None:
    arguments = [click.Argument(["x"]), click.Option(["--models"], multiple=True)]
    result = CliRunner().invoke(ManyCommand("body", params=arguments), ["--models", "a", "val"])
    assert result.exit_code == 2
    assert "Missing argument 'X'. Give it before the options" in result.output
    assert "before" not in CliRunner().invoke(ManyCommand("body", params=arguments), []).output


def test_an_option_without_a_value_is_refused() -> None:
    with pytest.raises(click.BadOptionUsage):
        show.make_context("show", ["--models"])
    with pytest.raises(click.UsageError, match="unexpected extra argument"):
        show.make_context("show", ["--flag", "stray"])


@click.command()
@click.option("--limit", type=AMOUNT, metavar="GB")
@click.option("--batch-size", type=BATCH_SIZE)
def ask(**options: Any) -> None:
    print(options)


@pytest.mark.parametrize("word", ["5GB", "nan", "inf", "0", "-3", ""])
def test_an_amount_is_a_finite_number_above_0(word: str) -> None:
    with pytest.raises(click.BadParameter, match=f"'{word}' is not a number of GB above 0"):
        ask.make_context("ask", [f"--limit={word}"])
    assert ask.make_context("ask", ["--limit", "0.5"]).params["limit"] == 0.5


def test_a_batch_size_is_a_number_or_auto() -> None:
    for word, size in (("8", 8), ("auto", "auto")):
        assert ask.make_context("ask", ["--batch-size", word]).params["batch_size"] == size
    with pytest.raises(click.BadParameter, match="'big' is neither a number of images nor 'auto'"):
        ask.make_context("ask", ["--batch-size", "big"])
    with pytest.raises(click.BadParameter, match="not in the range"):
        ask.make_context("ask", ["--batch-size=-1"])


def _command(error: BaseException | None, result: int = 0) -> click.Command:
    def body() -> int:
        if error is not None:
            raise error
        return result

    return click.Command("body", callback=body)


@pytest.mark.parametrize(
    ("error", "result", "code"),
    [
        (None, 0, 0),
        (None, 1, 1),
        (DataError("no such folder"), 0, 2),
        (click.UsageError("no such option"), 0, 2),
        (StoreError("locked"), 0, 3),
        (KeyboardInterrupt(), 0, 130),
        (Terminated(), 0, 143),
    ],
)
def test_exit_codes_tell_what_went_wrong(
    error: BaseException | None, result: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run(_command(error, result), [])
    assert left.value.code == code
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "told"),
    [({}, "the same command goes on from there."), ({"interrupted": "Nothing was written."}, "Nothing was written.")],
)
def test_an_interrupted_command_says_what_became_of_its_work(
    given: dict[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def body() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit):
        run(ManyCommand("body", callback=body, **given), [])
    error = capsys.readouterr().err.lstrip()
    assert error.startswith("Interrupted. ")
    assert error.endswith(f"{told}\n")


def test_a_fault_of_the_program_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        run(_command(ZeroDivisionError()), [])


def test_whatever_reads_data_sees_the_data_root_that_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_DATA", "usual")
    seen = click.command()(data_root_option(lambda data_root: print(data_root, data_root_of_paths())))
    assert CliRunner().invoke(seen, []).output == "usual usual\n"
    assert CliRunner().invoke(seen, ["--data-root", "other"]).output == "other other\n"
