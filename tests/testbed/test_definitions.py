"""Files of definitions: found, imported one by one, and harmless to each other when broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.definitions import load_definitions, plugin_paths
from testbed.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
from registry import registry
from models.model_base import Model
registry.add_model(Model(name='from-a-plugin', transform=None, classifier_loader=lambda: None, eval_batch_size=1))
"""
BROKEN = {
    "syntax.py": ("def f(:\n", "SyntaxError"),
    "missing.py": ("import a_package_that_is_not_there\n", "ModuleNotFoundError"),
    "leaves.py": ("raise SystemExit(3)\n", "SystemExit"),
    "half.py": (GOOD.replace("from-a-plugin", "half") + "1 / 0\n", "ZeroDivisionError: division by zero, line 5"),
}


def _load(*plugins: Path) -> str:
    """Names and failures of a fresh process that loads the plugins."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
from testbed.definitions import Sources, load_definitions, plugin_paths
from registry import registry
load_definitions(Sources(plugins=plugin_paths({[str(path) for path in plugins]!r})))
print(' '.join(registry.model_names()))
for failure in registry.failures: print('failed', failure)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_broken_files_are_reported_and_harm_nothing(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    for name, (text, _) in BROKEN.items():
        (tmp_path / name).write_text(text)
    output = _load(tmp_path)
    assert "from-a-plugin" in output
    assert "digits-resnet" in output
    assert "half" not in output.splitlines()[0].split()
    for name, (_, reason) in BROKEN.items():
        assert f"failed {name} ({reason}" in output


def test_files_marked_as_something_else_are_skipped(tmp_path: Path) -> None:
    for name in ("_private.py", "thing_base.py", "_folder/inner.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1 / 0\n")
    assert "failed" not in _load(tmp_path)


def test_a_folder_is_searched_below_and_one_file_is_itself(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "_named.py").write_text(GOOD)
    assert "from-a-plugin" not in _load(tmp_path)
    assert "from-a-plugin" in _load(tmp_path / "below" / "_named.py")


def test_two_files_with_one_name_are_both_told(tmp_path: Path) -> None:
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text(GOOD)
    output = _load(tmp_path)
    assert str(tmp_path / "first.py") in output
    assert str(tmp_path / "second.py") in output


def test_the_built_in_definitions_all_import() -> None:
    assert load_definitions() == []


def test_plugin_paths_come_from_flag_and_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    monkeypatch.setenv("TESTBED_PLUGINS", os.pathsep.join([str(two), str(one)]))
    assert plugin_paths([str(one)]) == (one, two)
    with pytest.raises(DataError, match="three' does not exist"):
        plugin_paths([str(tmp_path / "three")])


def test_a_file_of_definitions_is_a_module_like_any_other() -> None:
    load_definitions()
    import models

    assert vars(models)["digits"] is sys.modules["models.digits"]


def test_files_of_the_ancestors_folders_may_import_one_another_and_own_what_they_register(tmp_path: Path) -> None:
    """`models/a.py` imports a helper, a package and `models/z.py`, as files of one source tree do."""
    texts = {
        "models/_helper.py": "SIZE = 3\n",
        "models/nets/__init__.py": "",
        "models/nets/small.py": "DEPTH = 2\n",
        "models/z.py": GOOD.replace("from-a-plugin", "of-z") + "MADE = []\n",
        "models/a.py": GOOD.replace("from-a-plugin", "of-a")
        + "from models._helper import SIZE\nfrom models.nets.small import DEPTH\nfrom models.z import MADE\n"
        + "from eval_settings.attack import attack\nimport models.model_base\nMADE.append(SIZE * DEPTH * attack())\n",
        "eval_settings/attack.py": "def attack():\n    return 7\n",
        "models/imagenet.py": GOOD.replace("from-a-plugin", "called-as-one-of-ours"),
        "more/models/z.py": GOOD.replace("from-a-plugin", "called-as-another"),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in ("models", "eval_settings", "more")]
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
from testbed.definitions import Sources, load_definitions, plugin_paths
from registry import registry
assert not load_definitions(Sources(plugins=plugin_paths({paths!r}))), registry.failures
for name in ('of-a', 'of-z', 'called-as-one-of-ours', 'called-as-another', 'resnet50'):
    print(registry.model_source(registry.model(name, 'imagenet-1k')))
assert sys.modules['models.z'].MADE == [42]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = ("models/a.py", "models/z.py", "models/imagenet.py", "more/models/z.py")
    own = [str(tmp_path / file) for file in files]
    assert done.stdout.split() == [*own, str(ROOT / "src/models/imagenet.py")]
