"""What benchmarks of `eval.py` share: running it as its users do, reading what it stored, and writing tables."""

from __future__ import annotations

import csv
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
DEFINITIONS = Path(__file__).resolve().parent / "definitions"
RESULTS = ROOT / "results" / "benchmarks"

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Log:
    """What `eval.py` wrote, and how long the whole command took, start-up included.

    Args:
        place: a log directory, or an SQLite file.
        seconds: of wall-clock time.
        output: what it printed.
    """

    place: Path
    seconds: float
    output: str

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What its database answers."""
        file = self.place if self.place.suffix == ".sqlite" else self.place / "evaluations.sqlite"
        with closing(sqlite3.connect(file)) as database:
            return database.execute(query, values).fetchall()

    def forward_seconds(self) -> float:
        """Seconds in forward passes, all workers together."""
        return float(self.rows("select sum(seconds) from logit_shards")[0][0])

    def batch_sizes(self) -> list[int]:
        """The sizes of batches that were used, each once."""
        return [size for (size,) in self.rows("select distinct batch_size from logit_shards order by 1")]

    def shards(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """Everything stored of every shard that is its result, by model, setting, draw and start."""
        query = """
            select models.name, eval_settings.name, draw, start, sha256, predictions, target_ranks from logit_shards
            join evaluations on evaluations.id = evaluation_id
            join model_versions on model_versions.id = model_version_id
            join models on models.id = model_id
            join setting_versions on setting_versions.id = setting_version_id
            join eval_settings on eval_settings.id = setting_id
        """
        return {row[:4]: row[4:] for row in self.rows(query)}

    def logits(self, setting: str) -> dict[str, NDArray[np.float32]]:
        """By model, the logits (n, classes) of the first draw, from the files of the log directory."""
        folder = self.place / "logits" / setting
        index = json.loads((folder / "index.json").read_text())
        return {entry["model"]: np.load(folder / entry["file"])["logits"][0] for entry in index["models"]}


class CommandError(Exception):
    """A command did not do what it was asked for."""


def evaluate(
    *arguments: object, home: Path, to: Path, watch: Callable[[subprocess.Popen[bytes]], None] | None = None
) -> Log:
    """Runs `eval.py`, with a cache of its own, to the end.

    Args:
        arguments: of the command line.
        home: of the cache (TESTBED_HOME); a new folder is a cold start.
        to: where its results go: a log directory, or an SQLite file; a new one makes it evaluate everything.
        watch: is called with the started process; the time it takes counts.
    Raises: CommandError: it failed; the end of its output is told.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TESTBED_")}
    environment = {**kept, "TESTBED_HOME": str(home), "TESTBED_NO_DOWNLOAD": "1"}
    place = ("--db-url", f"sqlite:///{to}") if to.suffix == ".sqlite" else ("--logdir", to)
    line = [sys.executable, str(ROOT / "eval.py"), *map(str, (*arguments, *place)), "--quiet"]
    begin = perf_counter()
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(line, env=environment, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        if watch is not None:
            watch(process)
        code = process.wait()
        seconds = perf_counter() - begin
        output.seek(0)
        text = output.read().decode(errors="replace")
    if code:
        raise CommandError(f"{' '.join(line)}\nexited with {code}:\n{text[-3000:]}")
    return Log(place=to, seconds=seconds, output=text)


def write_table(rows: Sequence[Row], output: Path, **facts: object) -> None:
    """Writes rows as `output`.csv, and with facts about the run and the machine as `output`.json."""
    output.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with output.with_suffix(".csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    content = {"machine": machine(), **facts, "rows": list(rows)}
    output.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def print_table(rows: Sequence[Row]) -> None:
    """Prints rows under their columns' names, numbers with three digits."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [columns, *([_shown(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(line[position]) for line in cells) for position in range(len(columns))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def machine() -> dict[str, Any]:
    """What the numbers depend on beside the code."""
    from importlib.metadata import version

    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "torchvision", "numpy", "pillow")},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
