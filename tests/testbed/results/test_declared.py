"""Sizes that settings declare are known whatever else of the definitions was imported before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src"


def test_sizes_are_known_where_a_part_of_the_definitions_is_imported_already() -> None:
    code = "import eval_settings.digits; from testbed.results.declared import declared_sizes as f; print(f(['val']))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "{'val': 50000}"
