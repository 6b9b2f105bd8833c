"""The README's tables of what is covered are those of the registry.

They are printed by `PYTHONPATH=src python tests/testbed/test_coverage_table.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from registry import registry
from testbed import coverage
from testbed.definitions import load_definitions

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "PYTHONPATH=src python tests/testbed/test_coverage_table.py"


@pytest.fixture(scope="module")
def tables(cache_home: Path, families: Path) -> list[str]:
    """The tables as a process of its own prints them: other tests have registered things in this one."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TESTBED_HOME": str(cache_home)}
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.rstrip("\n").split("\n\n")


def _total(table: str, column: int) -> int:
    cells = [line.split(" | ")[column] for line in table.splitlines()[2:]]
    return sum(int(cell.replace(",", "")) for cell in cells)


def test_every_setting_is_counted_in_one_of_the_tables_once() -> None:
    load_definitions()
    tables = coverage.benchmarks_table(registry), coverage.made_settings_table(registry)
    settings = map(registry.eval_setting, registry.eval_setting_names())
    published = {name for name, dataset in registry.datasets.items() if dataset.source}
    number = sum(setting.dataset.name in published for setting in settings)
    assert _total(tables[0], column=2) + _total(tables[1], column=1) == number > 500


def test_the_tables_of_the_readme_are_current(tables: list[str]) -> None:
    readme = (ROOT / "README.md").read_text()
    benchmarks, made, models = tables
    assert benchmarks in readme, f"put there what `{SCRIPT}` prints"
    assert made in readme, f"put there what `{SCRIPT}` prints"
    named = dict(re.findall(r"published with (\w+) ([\d.]+)", readme))
    assert set(named) == set(coverage.LIBRARIES)
    if all(version(name) == known for name, known in named.items()):  # other versions have other models
        assert models in readme, f"put there what `{SCRIPT}` prints"


@pytest.mark.parametrize(
    ("names", "cell"),
    [
        (["a.eps0.5", "a.eps2"], "`a.epsN`"),
        (["v1-10percent"], "`v1-10percent`"),
        (["b1-x", "b2-x", "b2-y"], "`bN-x`, `b2-y`"),
        ([f"p10.{letter}" for letter in "abcdefg"], "`p10.NAME`"),
        (list("gfedcba"), "`a`, `b`, `c`, `d`, `e`, `f`, `g`"),
    ],
)
def test_names_that_differ_in_numbers_alone_are_one_and_many_are_their_beginning(names: list[str], cell: str) -> None:
    assert coverage._names(names) == cell


if __name__ == "__main__":
    load_definitions()
    made_tables = (coverage.benchmarks_table, coverage.made_settings_table, coverage.models_table)
    print("\n\n".join(table(registry) for table in made_tables))
