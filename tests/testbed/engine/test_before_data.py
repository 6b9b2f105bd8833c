"""Weights that are missing are told of all models at once, before any data are looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.model_base import Model
from testbed.data import weights
from testbed.data.weights import PublishedWeights, UrlFile
from testbed.engine.before_data import check_weights
from testbed.errors import DataError
from testbed.offline import why_nothing_is_downloaded


def load(weights):
    return weights


def model(name):
    """One whose weights are published."""
    files = [UrlFile(address=f"https://site/{name}.pth")]
    published = PublishedWeights(model=name, names=(name,), files=lambda: files)
    return Model(name=name, transform=None, classifier_loader=load, eval_batch_size=1, version="1", weights=published)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What is asked of a network that does not answer."""
    monkeypatch.setenv("TESTBED_CHECKPOINTS", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD", raising=False)
    addresses: list[str] = []

    def fails(address, target, *, sha256):
        addresses.append(address)
        raise OSError("no route")

    monkeypatch.setattr(weights, "retrieve", fails)
    return addresses


def test_all_missing_weights_are_told_at_once_a_line_each_and_a_network_is_waited_for_once(asked, tmp_path):
    (tmp_path / "there.pth").touch()
    one, there, two = model("one"), model("there"), model("two")
    variants = [replace(one, name="one-smoothed"), replace(two, name="two-smoothed")]
    with pytest.raises(DataError) as caught:
        check_weights([one, there, two, *variants, one])
    first, other = str(caught.value).splitlines()
    assert "Model 'one' has no weights on this machine, and none can be fetched: no route." in first
    assert "Model 'two'" in other
    assert "nothing more is downloaded after a failure. Get https://site/two.pth" in other
    assert asked == ["https://site/one.pth"]
    assert why_nothing_is_downloaded() is None
    check_weights([there])
