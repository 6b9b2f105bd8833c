"""Parameters that do not come with the testbed: where they are found, in which order, and what is said without them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from testbed.data import weights
from testbed.data.weights import FoundWeights, HubFile, PublishedWeights, UrlFile
from testbed.errors import DataError

HUB = HubFile(repository="owner/net", revision="0" * 40)
ADDRESS = f"https://hub/owner/net/{'0' * 40}/pytorch_model.bin"
WEIGHTS = FoundWeights(model="net", label_space="toy", hub=HUB)
SAFE = HubFile(repository="owner/net", name="model.safetensors")
URL = UrlFile(address="https://site/net-9f86d081.pth?x=1")  # the SHA-256 of "test" begins so
PUBLISHED = PublishedWeights(model="zoo:net", names=("zoo/net", "other"), files=lambda: [SAFE, HUB, URL])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder of checkpoints."""
    monkeypatch.setenv("TESTBED_CHECKPOINTS", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD", raising=False)
    return tmp_path


class Hub:
    """A hub that gives a file, or raises `error`; it notes what it is asked: for a file in its cache, or for one."""

    def __init__(self, folder):
        self.folder, self.error, self.asked, self.is_cached, self.lacks = folder, None, [], False, ()

    def hf_hub_url(self, repository, name, *, revision):
        return f"https://hub/{repository}/{revision}/{name}"

    def get_hf_file_metadata(self, address, *, timeout):
        self.asked.append(address)
        if self.error:
            raise self.error
        if address.endswith(self.lacks):
            raise EntryNotFoundError(address)

    def hf_hub_download(self, repository, name, *, revision, local_files_only):
        if local_files_only and not self.is_cached:
            raise FileNotFoundError("not in the cache")
        (self.folder / "cached.bin").touch()
        return str(self.folder / "cached.bin")


class EntryNotFoundError(Exception):
    """As the hub's client calls it."""


@pytest.fixture
def hub(tmp_path, monkeypatch):
    hub = Hub(tmp_path)
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


def test_the_hub_is_asked_for_one_commit_so_that_its_file_never_changes(folder, hub, capsys):
    assert WEIGHTS() == folder / "cached.bin"
    assert hub.asked == [ADDRESS]
    assert f"Downloading {ADDRESS}" in capsys.readouterr().err


def test_a_file_in_the_hubs_cache_is_taken_without_asking(folder, hub):
    hub.is_cached = True
    assert WEIGHTS() == folder / "cached.bin"
    assert hub.asked == []


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
    with pytest.raises(DataError, match=r"downloads are forbidden \(--no-download, TESTBED_NO_DOWNLOAD\)"):
        WEIGHTS()
    assert hub.asked == []
    hub.is_cached = True
    assert WEIGHTS().name == "cached.bin"


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


def sent(content):
    """`retrieve` as if an address had sent this."""

    def retrieve(address, target, *, sha256):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        sent.sha256 = sha256

    return retrieve


def test_published_weights_are_looked_for_under_checkpoints_then_in_caches_then_fetched(folder, hub, monkeypatch):
    monkeypatch.setattr(weights, "retrieve", sent("test"))
    hub.lacks = ("model.safetensors", "pytorch_model.bin")
    target = folder / "torch/hub/checkpoints/net-9f86d081.pth"
    assert PUBLISHED() == target  # the hub has neither of its two names
    assert (len(hub.asked), sent.sha256) == (2, "9f86d081")
    assert PUBLISHED() == target
    assert len(hub.asked) == 2
    hub.is_cached = True
    assert PUBLISHED() == folder / "cached.bin"
    (folder / "net-9f86d081.pth").touch()
    assert URL.cached() == folder / "net-9f86d081.pth"
    (folder / "other.pt").touch()
    assert PUBLISHED() == folder / "other.pt"
    (folder / "zoo").mkdir()
    (folder / "zoo/net.safetensors").touch()
    assert PUBLISHED() == folder / "zoo/net.safetensors"


def test_a_network_that_fails_is_tried_once_and_told_in_one_line(folder, hub):
    hub.error = OSError("no route\nto the hub")
    with pytest.raises(DataError) as caught:
        PUBLISHED()
    assert len(hub.asked) == 1
    assert str(caught.value) == (
        "Model 'zoo:net' has no weights on this machine, and none can be fetched: no route to the hub. Get "
        f"https://hub/owner/net/main/model.safetensors and put it at {folder}/zoo/net.safetensors, or name a file "
        "with --weights zoo:net=FILE."
    )


def test_an_address_that_fails_is_told_in_one_line(folder, monkeypatch):
    def fails(address, target, *, sha256):
        raise OSError("Name or service not known")

    monkeypatch.setattr(weights, "retrieve", fails)
    only = PublishedWeights(model="net", names=("net",), files=lambda: [URL])
    with pytest.raises(
        DataError, match=r"fetched: Name or service not known\. Get https://site/.* at .*/net\.pth, or name"
    ):
        only()
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", "1")
    with pytest.raises(DataError, match="downloads are forbidden"):
        only()
    with pytest.raises(DataError, match=r"nobody publishes them\. Put the file at .*/net\.pth, or name"):
        PublishedWeights(model="net", names=("net",), files=list)()


def test_the_hubs_switch_forbids_the_hub_alone(hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match=r"the hub is switched off \(HF_HUB_OFFLINE\)"):
        PUBLISHED()
    monkeypatch.setattr(weights, "retrieve", sent("test"))
    assert PublishedWeights(model="net", names=("net",), files=lambda: [URL])() == URL.target
