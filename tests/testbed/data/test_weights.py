"""Parameters that do not come with the testbed: where they are found, in which order, and what is said without them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from testbed.data.weights import FoundWeights, HubFile
from testbed.errors import DataError

HUB = HubFile(repository="owner/net", revision="0" * 40)
WEIGHTS = FoundWeights(model="net", label_space="toy", hub=HUB)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder of checkpoints."""
    monkeypatch.setenv("TESTBED_CHECKPOINTS", str(tmp_path))
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD", raising=False)
    return tmp_path


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that gives a file, or raises `hub.error`; it counts how often it was asked."""

    class Hub:
        def __init__(self):
            self.error, self.asked = None, []

        def hf_hub_download(self, repository, name, *, revision, local_files_only):
            self.asked.append((repository, name, revision, local_files_only))
            if self.error or local_files_only:
                raise self.error or FileNotFoundError("not in the cache")
            (tmp_path / "cached.bin").touch()
            return str(tmp_path / "cached.bin")

    hub = Hub()
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    return hub


@pytest.mark.parametrize("ending", [".safetensors", ".pt", ".pth", ".bin"])
def test_a_file_under_checkpoints_goes_before_the_hub(folder, hub, ending):
    (folder / f"net-toy{ending}").touch()
    assert WEIGHTS() == folder / f"net-toy{ending}"
    assert hub.asked == []


def test_weights_of_another_label_space_are_not_taken(folder, hub):
    for name in ("net.pt", "net-other.pt"):
        (folder / name).touch()
    assert WEIGHTS() == folder / "cached.bin"


def test_the_hub_is_asked_for_one_commit_so_that_its_file_never_changes(folder, hub):
    assert WEIGHTS() == folder / "cached.bin"
    assert hub.asked == [("owner/net", "pytorch_model.bin", "0" * 40, False)]


def test_without_weights_three_ways_to_get_them_are_named(folder, hub):
    hub.error = ConnectionError("no route\nto the hub. And much more.")
    with pytest.raises(DataError) as caught:
        WEIGHTS()
    message = str(caught.value)
    assert "Model 'net' (label space toy) has no weights." in message
    assert "--weights net=FILE" in message
    assert f"{folder / 'net-toy'}.safetensors" in message
    assert "fetched from the hub; but 'owner/net' cannot be fetched: no route to the hub." in message


def test_forbidden_downloads_are_not_tried_but_the_hubs_cache_is_looked_at(hub, monkeypatch):
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", "1")
    with pytest.raises(DataError, match=r"downloads are forbidden \(TESTBED_NO_DOWNLOAD\)"):
        WEIGHTS()
    assert [local_files_only for *_, local_files_only in hub.asked] == [True]


def test_without_the_hubs_client_the_other_ways_are_still_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"--weights net=FILE.*'owner/net' cannot be fetched.*huggingface_hub"):
        WEIGHTS()


def test_weights_that_nobody_publishes_can_be_trained():
    with pytest.raises(DataError, match=r"or train it: python train\.py --model net --dataset toy"):
        FoundWeights(model="net", label_space="toy")()


def test_checkpoints_lie_in_the_current_folder_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("TESTBED_CHECKPOINTS")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "net-toy.pth").touch()
    assert WEIGHTS() == Path("checkpoints/net-toy.pth")
