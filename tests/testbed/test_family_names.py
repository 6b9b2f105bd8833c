"""Names that come from libraries are listed once for every version of these."""

from __future__ import annotations

from importlib import metadata

import pytest

from testbed import family_names as module
from testbed.errors import DataError
from testbed.family_names import FOLDER, family_names


class Counted:
    """A family that counts how often it is asked."""

    def __init__(self, packages=("timm",)):
        self.packages, self.num_asked = packages, 0

    def names(self):
        self.num_asked += 1
        return ["b", "a"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path))
    return tmp_path


def test_names_are_asked_for_once():
    first, second = Counted(), Counted()
    assert family_names({"x": first}) == family_names({"x": second}) == ["x:a", "x:b"]
    assert (first.num_asked, second.num_asked) == (1, 0)


def test_another_version_of_the_library_or_no_library_is_asked_again(monkeypatch):
    family_names({"x": Counted()})
    free = Counted(packages=())
    for _ in range(2):
        family_names({"y": free})
    assert free.num_asked == 2
    monkeypatch.setattr(module.metadata, "version", lambda package: metadata.__name__)
    again = Counted()
    family_names({"x": again})
    assert again.num_asked == 1


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"state": "x", "names": [1]}'])
def test_a_damaged_file_is_made_again(home, damage):
    family_names({"x": Counted()})
    (home / FOLDER / "x.json").write_text(damage)
    again = Counted()
    assert family_names({"x": again}) == ["x:a", "x:b"]
    assert again.num_asked == 1


def test_a_family_that_fails_is_named_in_one_line():
    class Failing(Counted):
        def names(self):
            raise ValueError("no list")

    for packages in ((), ("timm",)):
        with pytest.raises(DataError, match=r"family of models 'x' failed in .*\(ValueError: no list, line"):
            family_names({"x": Failing(packages)})


def test_without_a_place_for_the_file_there_are_names(home, monkeypatch):
    (home / "file").touch()
    monkeypatch.setenv("TESTBED_HOME", str(home / "file" / "home"))
    assert family_names({"x": Counted()}) == ["x:a", "x:b"]
