"""Imports go downwards only, nothing happens at import, and there is one registry."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

# From the ground up. A module may import from its own layer and from those before it. A name stands for the module and
# everything below it; the longest name that fits counts.
LAYERS: list[set[str]] = [
    {"testbed", "testbed.errors", "testbed.fingerprint", "testbed.signatures", "testbed.paths", "testbed.philox",
     "testbed.offline", "testbed.cores", "testbed.masking", "testbed.cache_files", "testbed.users_code"},
    {"testbed.records", "testbed.randomness", "testbed.codec", "testbed.class_subset", "testbed.logit_policy",
     "testbed.top_logits", "testbed.run_split", "testbed.claim_language"},
    {"testbed.metrics", "testbed.separation", "testbed.perturbations"},
    {"registry", "registry_base", "models.model_base", "eval_settings.eval_setting_base", "eval_settings.dataset_base",
     "eval_settings.source_base", "models._"},
    {"testbed.data", "testbed.definitions", "testbed.definition_modules", "testbed.names", "testbed.family_names",
     "mldb"},
    {"models", "eval_settings", "models._hub_models", "models._imagenet_heads", "models._timm_models",
     "models._torchvision_models"},
    {"testbed.engine.unit", "testbed.engine.arithmetic", "testbed.engine.cards", "testbed.store"},
    {"testbed.worker", "testbed.training"},
    {"testbed.engine.engine", "testbed.engine.inline", "testbed.engine.process", "testbed.engine.service",
     "testbed.engine.oom_killer"},
    {"testbed.results", "testbed.coverage", "testbed.metric_check", "testbed.report", "testbed.corruption_words",
     "testbed.export", "testbed.tables", "testbed.progress", "testbed.provenance"},
    {"testbed.engine", "testbed.cli", "testbed.streams", "testbed.doctor"},
    {"testbed.commands", "plotting"},
    {"eval", "db", "train"},
]  # fmt: skip
# Two neighbours on one floor that must not know each other, and what the store never sees.
FORBIDDEN = {
    "testbed.store": ("testbed.engine", "testbed.worker", "models", "eval_settings", "torch", "registry"),
    "testbed.worker": ("testbed.store", "sqlalchemy"),
    "testbed.metrics": ("torch", "registry", "sqlalchemy"),
    "models": ("testbed.engine", "testbed.worker", "testbed.store"),
    "eval_settings": ("testbed.engine", "testbed.worker", "testbed.store"),
}


def _modules() -> dict[str, Path]:
    files = {path: path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")}
    named = {".".join(relative.with_suffix("").parts): path for path, relative in files.items()}
    scripts = {path.stem: path for path in ROOT.glob("*.py")}
    drawn = (ROOT / "plotting").rglob("*.py")
    figures = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in drawn}
    return {name.removesuffix(".__init__"): path for name, path in (named | figures).items()} | scripts


MODULES = _modules()


@cache
def _imported(path: Path) -> tuple[str, ...]:
    """Full names of the modules that a file imports, wherever in it; those for type checkers are left out."""
    return tuple(_names(path))


def _names(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else str(node.module) for name in names)


def _layer(module: str) -> int:
    fitting = [
        (len(name), index)
        for index, layer in enumerate(LAYERS)
        for name in layer
        if module == name or module.startswith(f"{name}.") or (name.endswith("_") and module.startswith(name))
    ]
    assert fitting, f"{module} has no layer; give it one in this test"
    return max(fitting)[1]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_downwards_only(module: str) -> None:
    upward = [name for name in _imported(MODULES[module]) if name in MODULES and _layer(name) > _layer(module)]
    assert not upward, f"{module} imports {upward} from a higher layer"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_neighbours_that_must_not_know_each_other_do_not(module: str) -> None:
    for owner, forbidden in FORBIDDEN.items():
        if module == owner or module.startswith(f"{owner}."):
            known = [n for n in _imported(MODULES[module]) if any(n == f or n.startswith(f"{f}.") for f in forbidden)]
            assert not known, f"{module} imports {known}"


def test_sources_are_never_imported_as_src() -> None:
    offenders = [module for module, path in MODULES.items() for n in _imported(path) if n.split(".")[0] == "src"]
    assert not offenders


def test_there_is_one_registry_and_it_is_ours() -> None:
    import registry

    assert Path(registry.__file__).resolve() == SOURCE / "registry.py"
    assert not [name for name in sys.modules if name.endswith(".registry") and name.startswith("src")]


def _run(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_everything_opens_no_connection_and_writes_no_file(tmp_path: Path) -> None:
    names = sorted(name for name, path in MODULES.items() if path.is_relative_to(SOURCE) and "migrations" not in name)
    code = f"""
import importlib, socket, sqlite3, sys
sys.dont_write_bytecode = True
sys.path.insert(0, {str(SOURCE)!r})
def refuse(*arguments, **keywords): raise RuntimeError('at import')
import torch, torchvision, numba, sklearn, scipy, pandas, sqlalchemy, tqdm, click
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
sqlite3.connect = refuse
torch.cuda.init = torch.cuda._lazy_init = refuse
for name in {names!r}: importlib.import_module(name)
print('imported')
"""
    assert _run(code, tmp_path).strip() == "imported"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("script", ["eval.py", "db.py", "train.py"])
def test_help_loads_neither_torch_nor_a_database(script: str, tmp_path: Path) -> None:
    code = f"""
import runpy, sys
sys.argv = [{script!r}, '--help']
try: runpy.run_path({str(ROOT / script)!r}, run_name='__main__')
except SystemExit as end: assert not end.code, end.code
assert not {{'torch', 'sqlalchemy', 'numpy', 'pandas', 'urllib.request'}} & set(sys.modules)
"""
    assert "Options:" in _run(code, tmp_path)


def test_listing_the_registry_does_not_load_torch(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(SOURCE)!r})
from testbed.definitions import load_definitions
from registry import registry
assert not load_definitions(), registry.failures
print(len(registry.model_names()), len(registry.eval_setting_names()))
assert 'torch' not in sys.modules
"""
    assert _run(code, tmp_path).split()
