"""`eval.py --weights NAME=FILE`: how it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.commands.evaluate import _user_weights
from testbed.errors import DataError


def test_name_and_file_are_read_with_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a=b.pt").touch()
    assert _user_weights("resnet50=a=b.pt") == ("resnet50", tmp_path / "a=b.pt")


@pytest.mark.parametrize("given", ["resnet50", "resnet50=", "=net.pt"])
def test_another_form_is_refused_with_an_example(given):
    with pytest.raises(DataError, match=f"--weights {given} is not of the form NAME=PATH.*--weights resnet50="):
        _user_weights(given)


def test_a_file_that_is_not_there_is_told_before_anything_is_loaded():
    with pytest.raises(DataError, match=r"none\.pt' does not exist"):
        _user_weights("resnet50=none.pt")
