"""Figures over what `eval.py` stored: the numbers are those that it printed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.conftest import Command


def test_figures_show_what_eval_printed(command: Command, tmp_path: Path) -> None:
    done = command(
        "eval.py", "--models", "digits-linear", "digits-1nn", "--eval-settings", "digits-mscr-linf",
        "digits-noise-linf-0.3", "--limit", 40, "--draws", 2, "--seeds", 0, 1, "--json", "--quiet", "--logdir", "log",
        "--workers", 0,
    )  # fmt: skip
    assert done.code == 0, done.err
    printed = {(row["model"], row["eval_setting"]): row for row in done.json["comparisons"] if row["metric"] == "mscr"}

    drawn = command("plotting/mscr_against_clean.py", "--logdir", "log", "--out", "figures")
    assert drawn.code == 0, drawn.err
    assert [Path(line).name for line in drawn.out.splitlines()] == [
        f"mscr-against-clean-digits-linf.{ending}" for ending in ("pdf", "png", "csv")
    ]
    table = pd.read_csv(tmp_path / "figures" / "mscr-against-clean-digits-linf.csv")
    for row in table[table["metric"] == "mscr"].to_dict("records"):
        same = printed[row["model"], "digits-mscr-linf@limit40"]
        names = ("value", "ci_low", "ci_high", "n")
        assert [row[name] for name in names] == pytest.approx([same[name] for name in names])
        assert row["epsilon"] == same["epsilon"]
    assert len(table) == 4

    refused = command("plotting/accuracy_over_noise.py", "--logdir", "log", "--models", "digits-resnet")
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("Error: ")
    assert "python eval.py --models digits-resnet --eval-settings digits-mscr-linf --db-url" in refused.err
