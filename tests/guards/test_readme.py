"""The README says what the program does: its commands, its options and its output are the program's own."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SCRIPTS = ("eval", "db", "train")
FIGURES = tuple(
    f"plotting.{path.stem}" for path in (ROOT / "plotting").glob("*.py") if "\ndef main(" in path.read_text()
)


def _command(script: str) -> click.Command:
    command: click.Command = importlib.import_module(script).main
    return command


def _options(script: str) -> dict[str, click.Option]:
    return {name: p for p in _command(script).params if isinstance(p, click.Option) for name in p.opts}


def options_table(script: str) -> str:
    """The documentation of a script's options, from the options themselves."""
    rows = [f"| `{name}` | {option.help} |" for name, option in _options(script).items()]
    return "\n".join([f"`{script}.py`", "", "| option | what |", "|---|---|", *rows])


def _command_lines() -> list[str]:
    """The README's calls of our scripts, each behind the variables that its block sets before it."""
    found = []
    for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL):
        lines = [part.strip() for line in block.splitlines() for part in line.split("&&")]
        variables = "; ".join(line for line in lines if re.match(r"[A-Z]+=", line))
        found += [f"{variables}; {line}".removeprefix("; ") for line in lines if re.match(r"python \S+\.py", line)]
    return found


def _arguments(line: str) -> list[str]:
    """What a line hands to `python`, after the shell has had its way with it."""
    script = f'python() {{ printf "%s\\0" "$@"; }}; {line}'
    done = subprocess.run(["bash", "-fc", script], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("line", _command_lines())
def test_every_command_of_the_readme_parses(line: str) -> None:
    script, *arguments = _arguments(line)
    command = _command(script.removesuffix(".py").replace("/", "."))
    assert command.make_context(script, arguments, resilient_parsing=False).params


def test_there_are_commands_of_every_script_in_the_readme() -> None:
    called = {_arguments(line)[0].removesuffix(".py").replace("/", ".") for line in _command_lines()}
    assert called >= {*SCRIPTS, *FIGURES}


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_option_has_help_and_stands_in_the_readme(script: str) -> None:
    assert all(option.help for option in _options(script).values())
    assert options_table(script) in README


def test_every_option_that_the_readme_names_exists() -> None:
    known = {name for script in (*SCRIPTS, *FIGURES) for name in _options(script)}
    text = re.sub(r"```bash.*?```", "", README, flags=re.DOTALL)
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) <= known


def test_ci_runs_the_two_commands_of_the_readme(tmp_path: Path) -> None:
    """`.ci/run` with stand-ins for python: it makes an environment and then runs the README's lines, no others."""
    fake = tmp_path / "python3"
    fake.write_text(
        "#!/bin/sh\n"
        'echo "python3 $*" >> "$LOG"\n'
        '[ "$1 $2" = "-m venv" ] && mkdir -p "$3/bin" && touch "$3/bin/activate"\n'
        "exit 0\n"
    )
    fake.chmod(0o755)
    (tmp_path / "python").write_text('#!/bin/sh\necho "python $*" >> "$LOG"\n')
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 0\n")  # the set-up's, and nothing is to be installed here
    (tmp_path / "apt-get").chmod(0o755)
    log = tmp_path / "log"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log)}
    subprocess.run(["bash", str(ROOT / ".ci" / "run")], env=environment, check=True, capture_output=True)
    ran = log.read_text().splitlines()
    commands = [
        part.strip()
        for name in ("first-command", "second-command")
        for part in re.findall(rf"<!-- {name} -->\n```bash\n(.*?)\n```", README)[0].split("&&")
    ]
    assert [line.replace("'", "") for line in ran[1:]] == commands
    assert ran[0].startswith("python3 -m venv ")


def test_the_output_in_the_readme_has_the_names_of_its_command() -> None:
    output = re.findall(r"<!-- output -->\n```text\n(.*?)```", README, re.DOTALL)[0]
    command = re.findall(r"<!-- first-command -->\n```bash\n(.*?)\n```", README)[0]
    models = command.split("--models ")[1].split(" --")[0].split()
    settings = command.split("--eval-settings ")[1].split()
    pairs = [tuple(line.split()[:2]) for line in output.splitlines() if line.startswith("digits-") and "[" in line]
    assert pairs == [(model, setting) for setting in settings for model in models]


if __name__ == "__main__":  # prints the tables for the README
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    print("\n\n".join(options_table(script) for script in SCRIPTS))
