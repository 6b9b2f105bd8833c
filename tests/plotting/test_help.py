"""`--help` of every script in plotting/: at once, and with every option that its kind of figure has."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(path.stem for path in (ROOT / "plotting").glob("*.py"))
HEAVY = ("torch", "sqlalchemy", "matplotlib", "pandas", "jinja2", "plotly")
PLACES = ("--db-url", "--logdir", "--out")
OF_NOISE = (*PLACES, "--dataset", "--norm", "--shared", "--models", "--samples")
OF_CORRUPTIONS = (*PLACES, "--dataset", "--models", "--on-disk", "--variant", "--metric")
OF_MODELS = (*PLACES, "--with-published", "--models", "--highlight", "--fit-set", "--scale", "--confidence")
OPTIONS = {
    **dict.fromkeys(("accuracy_matrix", "accuracy_over_noise", "accuracy_surface", "convergence", "effect_of_k",
                     "mscr_against_clean"), OF_NOISE),
    **dict.fromkeys(("corruption_curves", "corruption_heatmap"), OF_CORRUPTIONS),
    "corruption_sheet": ("--dataset", "--out"),
    "paper_plots": (*PLACES, "--with-published", "--highlight", "--figures"),
    "report": (*PLACES, "--model", "--dataset", "--confidence", "--claim", "--pdf", "--browser"),
    "site": (*PLACES, "--with-published", "--models", "--eval-settings", "--override"),
}  # fmt: skip


def test_no_script_loads_anything_heavy_before_it_draws(tmp_path: Path) -> None:
    code = f"""
import runpy, sys
for name in {SCRIPTS}:
    sys.argv = [f'{{name}}.py', '--help']
    try: runpy.run_path(f'{ROOT / "plotting"}/{{name}}.py', run_name='__main__')
    except SystemExit as end: assert not end.code, (name, end.code)
    assert not (loaded := set({HEAVY}) & set(sys.modules)), (name, loaded)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_names_every_option(script: str) -> None:
    shown = CliRunner().invoke(import_module(f"plotting.{script}").main, ["--help"]).stdout
    assert [option for option in OPTIONS.get(script, OF_MODELS) if option not in shown] == []
    assert "Example" in shown
