"""Names without imports: the same as with them, at once the new ones when anything changed, and never in the way."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.conftest import Command, Done

from testbed import names
from testbed.cache_files import read_cached, write_cached
from testbed.family_names import FOLDER
from testbed.names import Names, registry_names

MODEL = """
from registry import registry
from models.model_base import Model
with open({log!r}, 'a') as log:
    log.write('imported ')
registry.add_model(Model(name={name!r}, transform=None, classifier_loader=lambda: None, eval_batch_size=1))
"""


class Listing:
    """`db.py --list-models-registry` with a folder of plugins, and how often these were imported."""

    def __init__(self, command: Command, folder: Path) -> None:
        self._command, self.home, self._folder = command, folder / "home", folder
        self.plugins, self.log = folder / "plugins", folder / "log.txt"
        self.plugins.mkdir()
        self.add("first.py", "from-first")

    def add(self, file: str, name: str) -> None:
        (self.plugins / file).write_text(MODEL.format(log=str(self.log), name=name))

    def __call__(self, **variables: str) -> Done:
        done = self._command("db.py", "--list-models-registry", "--plugin", "plugins",
                             **{"TESTBED_HOME": str(self.home)} | variables)  # fmt: skip
        assert done.code == 0, done.err
        return done

    @property
    def num_imports(self) -> int:
        return self.log.read_text().count("imported") if self.log.exists() else 0

    @property
    def cache(self) -> Path:
        (file,) = (self.home / "names").iterdir()
        return file


@pytest.fixture
def listing(command: Command, tmp_path: Path, families: Path) -> Listing:
    shutil.copytree(families, tmp_path / "home" / FOLDER)
    return Listing(command, tmp_path)


def test_the_second_listing_is_the_same_and_imports_nothing(listing: Listing) -> None:
    first = listing()
    assert "from-first" in first.out.split()
    assert listing.num_imports == 1
    assert listing() == first
    assert listing.num_imports == 1


def test_a_listing_from_the_cache_loads_neither_database_nor_arrays(listing: Listing, tmp_path: Path) -> None:
    first = listing()
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'sqlalchemy', 'numpy', 'pandas', 'models', 'eval_settings'):\n"
        "            raise RuntimeError(f'{name} was loaded')\n"
        "sys.meta_path.insert(0, Refuse())\n"
    )
    assert listing(PYTHONPATH=str(tmp_path)).out == first.out


def test_a_new_file_is_there_at_once_and_a_deleted_one_is_gone(listing: Listing) -> None:
    listing()
    listing.add("second.py", "from-second")
    assert {"from-first", "from-second"} <= set(listing().out.split())
    (listing.plugins / "first.py").unlink()
    assert "from-first" not in listing().out.split()


def test_a_changed_file_is_noticed_though_its_size_and_date_are_the_same(listing: Listing) -> None:
    listing()
    file = listing.plugins / "first.py"
    before = file.stat()
    listing.add("first.py", "from-other")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    listing()
    assert listing.num_imports == 2, "imported again; what Python's own cache of the file holds is another matter"


def test_a_broken_file_is_told_every_time(listing: Listing) -> None:
    (listing.plugins / "broken.py").write_text("import a_package_that_is_not_there\n")
    first, second = listing(), listing()
    assert "broken.py was not imported: ModuleNotFoundError" in first.err
    assert second == first
    assert listing.num_imports == 1


def test_a_damaged_cache_is_made_again_and_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path))
    found = Names(models=("first",), eval_settings=("second",))
    monkeypatch.setattr(names, "_imported", lambda plugins: found)
    assert registry_names(()) == found
    (cache,) = (tmp_path / "names").iterdir()
    whole = json.loads(cache.read_text())
    another = cache.read_text().replace("first", "worst")
    for damage in ("", "{", "[]", '{"state": 1}', '{"state": "x", "names": {"models": [1]}}', "\0", another):
        cache.write_text(damage)
        assert registry_names(()) == found
        assert json.loads(cache.read_text()) == whole
    out, told = capsys.readouterr()
    assert out == ""
    assert told.count(f"{cache} is damaged") == len(told.splitlines()) == 1


def test_another_state_of_python_or_its_packages_is_another_cache(listing: Listing, tmp_path: Path) -> None:
    listing()
    (tmp_path / "site" / "new_package-1.0.dist-info").mkdir(parents=True)
    listing(PYTHONPATH=str(tmp_path / "site"))
    assert listing.num_imports == 2


def test_without_a_place_for_the_cache_names_are_found_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "file" / "home"))
    found = [Names(models=("first",), eval_settings=()), Names(models=("second",), eval_settings=())]
    left = iter(found)
    monkeypatch.setattr(names, "_imported", lambda plugins: next(left))
    assert [registry_names(()), registry_names(())] == found


def test_two_sets_of_plugins_do_not_take_each_others_cache(listing: Listing, command: Command) -> None:
    listing()
    plain = command("db.py", "--list-models-registry", TESTBED_HOME=str(listing.home))
    assert "from-first" not in plain.out.split()
    listing()
    assert listing.num_imports == 1


def test_an_evaluation_does_not_go_by_the_cache(listing: Listing, command: Command) -> None:
    listing()
    names = {"models": ["ghost"], "eval_settings": ["ghost"], "failures": []}
    write_cached(listing.cache, {**read_cached(listing.cache), "names": names})
    assert listing().out.split() == ["ghost", "local:PATH"], "a listing does, so the cache was one that counts"
    done = command("eval.py", "--models", "ghost", "--eval-settings", "digits", "--plugin", "plugins",
                   TESTBED_HOME=str(listing.home))  # fmt: skip
    assert done.code == 2
    assert "Unknown model 'ghost'" in done.err


def _complete(command: Command, home: Path, words: str) -> list[str]:
    count = str(len(words.split(" ")) - 1)
    done = command("eval.py", _EVAL_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count,
                   TESTBED_HOME=str(home))  # fmt: skip
    assert done.code == 0, done.err
    return [line.partition(",")[2] for line in done.out.splitlines() if line]


def test_completion_offers_the_names_of_the_last_listing(command: Command, tmp_path: Path, families: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(families, home / FOLDER)
    assert _complete(command, home, "eval.py --models digits-r") == [], "nothing was listed yet"
    command("db.py", "--list-models-registry", TESTBED_HOME=str(home))
    models = ["digits-random-forest", "digits-resnet"]
    assert _complete(command, home, "eval.py --models digits-r") == models
    assert _complete(command, home, "eval.py --models digits-1nn digits-r") == models, "also the second value"
    settings = ["digits-mscr-l1", "digits-mscr-l2", "digits-mscr-linf"]
    assert _complete(command, home, "eval.py --models x --eval-settings digits digits-m") == settings
    assert _complete(command, home, "eval.py --store") == ["--store-logits"]
    assert _complete(command, home, "eval.py --models x --db digits") == []
