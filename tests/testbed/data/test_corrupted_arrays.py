"""CIFAR-10-C, CIFAR-100-C and MNIST-C: severities in blocks, and each image that of the test split with the same id."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.corrupted_copies import save, write_cifar_c, write_mnist_c
from tests.published import Pixels, md5, serving, write_cifar, write_idx

from eval_settings import cifar, mnist
from registry import registry
from testbed.data.corrupted import COMMON_CORRUPTIONS, corrupted_samples
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError, DefinitionError, UnknownNameError
from testbed.records import Samples

load_definitions()
TITLES = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}


def clean_cifar(root: Path, name: str = "cifar10") -> tuple[Samples, Pixels, list[int]]:
    images, targets = write_cifar(root / name, dataset=name, is_binary=True, per_file=3)["test"]
    return load_samples(registry.dataset(name), "test", data_root=root), images, targets


def clean_mnist(root: Path) -> tuple[Samples, Pixels, list[int]]:
    images, targets = write_idx(root / "mnist", is_compressed=False)["test"]
    return load_samples(registry.dataset("mnist"), "test", data_root=root), images, targets


def copies(clean: Samples, corruption: str, severity: int | None, root: Path) -> Samples:
    return corrupted_samples(registry.dataset(clean.dataset), clean, corruption, severity, data_root=root)


@pytest.mark.parametrize("place", ["{title}", "{name}/{title}", "{name}-c/{title}", "{name}-c"])
@pytest.mark.parametrize("name", TITLES)
def test_block_s_of_a_file_is_the_test_split_at_severity_s(name: str, place: str, tmp_path: Path) -> None:
    """`labels.npy` has 50,000 labels; only those of the block count, and one corruption loads without the others."""
    clean, images, targets = clean_cifar(tmp_path, name)
    blocks = write_cifar_c(tmp_path / place.format(name=name, title=TITLES[name]), images, targets)
    for severity in range(1, 6):
        samples = copies(clean, "fog", severity, tmp_path)
        assert np.array_equal(samples.items, blocks[severity - 1])
        assert samples.sample_ids == clean.sample_ids == ("test/0", "test/1", "test/2")
        assert (samples.targets.tolist(), samples.class_names) == (targets, clean.class_names)
        assert (samples.dataset, samples.split) == (name, f"{TITLES[name]}/fog.{severity}")


def test_severities_are_data_of_their_own(tmp_path: Path) -> None:
    clean, images, targets = clean_cifar(tmp_path)
    write_cifar_c(tmp_path / "CIFAR-10-C", images, targets)
    prints = {copies(clean, "fog", severity, tmp_path).fingerprint for severity in range(1, 6)} | {clean.fingerprint}
    assert len(prints) == 6


def test_a_corruption_that_changed_nothing_is_refused(tmp_path: Path) -> None:
    clean, images, targets = clean_cifar(tmp_path)
    write_cifar_c(tmp_path / "CIFAR-10-C", images, targets, strength=0)
    with pytest.raises(
        DataError, match=r"CIFAR-10-C \(fog\.2\): all 3 images equal the clean ones, so nothing was corr"
    ):
        copies(clean, "fog", 2, tmp_path)
    changed = write_cifar_c(tmp_path / "CIFAR-10-C", images, targets, strength=0)
    changed[1, 2, 0, 0, 0] ^= 1
    save(tmp_path / "CIFAR-10-C" / "fog.npy", changed.reshape(-1, 32, 32, 3))
    assert len(copies(clean, "fog", 2, tmp_path)) == 3


@pytest.mark.parametrize(("fault", "message"), [
    ("one severity", r"fog\.npy has 3 rows, but five severities of the 3 images of 'cifar10' \(test\) are 15"),
    ("training set", r"labels\.npy has 50 rows, but five severities"),
    ("other labels", r"labels in .*labels\.npy differ from those of 'cifar10' \(test\) for 1 of 3 .* first at 2"),
    ("by image", r"labels\.npy differ .* for 2 of 3 images"),
    ("floats", r"fog\.npy has images of type float64 and shape \[3, 32, 32, 3\], but those of 'cifar10'"),
    ("channels first", r"of type uint8 and shape \[3, 3, 32, 32\]"),
    ("truncated", r"Cannot read .*fog\.npy as an array"),
])  # fmt: skip
def test_files_of_anything_else_are_refused(fault: str, message: str, tmp_path: Path) -> None:
    clean, images, targets = clean_cifar(tmp_path)
    folder = tmp_path / "CIFAR-10-C"
    blocks = write_cifar_c(folder, images, targets).reshape(-1, 32, 32, 3)
    labels = np.tile(targets, 5)
    match fault:
        case "one severity":
            save(folder / "fog.npy", blocks[:3])
        case "training set":
            save(folder / "labels.npy", np.zeros(50, np.uint8))
        case "other labels":
            save(folder / "labels.npy", np.where(np.arange(15) == 5, labels + 1, labels))
        case "by image":
            save(folder / "labels.npy", np.repeat(targets, 5))
        case "floats":
            save(folder / "fog.npy", blocks / 255)
        case "channels first":
            save(folder / "fog.npy", blocks.transpose(0, 3, 1, 2))
        case "truncated":
            (folder / "fog.npy").write_bytes((folder / "fog.npy").read_bytes()[:-1])
    with pytest.raises(DataError, match=message):
        copies(clean, "fog", 2, tmp_path)


def test_what_is_missing_says_what_where_and_whence(tmp_path: Path) -> None:
    clean, images, targets = clean_cifar(tmp_path)
    write_cifar_c(tmp_path / "CIFAR-10-C", images, targets)
    with pytest.raises(DataError) as caught:
        copies(clean, "snow", 2, tmp_path)
    assert str(caught.value) == (
        f"Data set 'cifar10-c' (snow) is not under {tmp_path} (--data-root), where it may be snow.npy and labels.npy "
        f"in CIFAR-10-C, cifar10/CIFAR-10-C, cifar10-c/CIFAR-10-C, cifar10-c; {tmp_path}/CIFAR-10-C lacks snow.npy. "
        "Downloads are forbidden (--no-download, TESTBED_NO_DOWNLOAD): get it from https://zenodo.org/records/2535967 "
        "and put it there, or allow them."
    )


def test_mnist_c_has_a_folder_per_corruption(tmp_path: Path) -> None:
    clean, images, targets = clean_mnist(tmp_path)
    for corruption, severity in (("fog", 5), ("zigzag", None), ("shear", 2)):
        inverted = write_mnist_c(tmp_path / "mnist_c", images, targets, corruption=corruption)
        samples = copies(clean, corruption, severity, tmp_path)
        assert np.array_equal(samples.items, inverted)
        assert (samples.sample_ids, samples.color_mode) == (clean.sample_ids, "L")


def test_mnist_c_comes_at_one_severity(tmp_path: Path) -> None:
    clean, images, targets = clean_mnist(tmp_path)
    write_mnist_c(tmp_path / "mnist_c", images, targets, corruption="fog")
    with pytest.raises(DefinitionError, match=r"MNIST-C has no 'fog' at severity 3\. It has mnist-c\.fog\.5_on-disk\."):
        copies(clean, "fog", 3, tmp_path)
    with pytest.raises(DefinitionError, match=r"no 'zigzag' at severity 1\. It has mnist-c\.zigzag_on-disk\."):
        copies(clean, "zigzag", 1, tmp_path)
    with pytest.raises(UnknownNameError, match=r"MNIST-C has no corruption 'zigzak'\. Did you mean zigzag\?"):
        copies(clean, "zigzak", None, tmp_path)


def test_all_19_corruptions_are_published_at_five_severities() -> None:
    assert len(COMMON_CORRUPTIONS) == 19
    assert set(COMMON_CORRUPTIONS.values()) == {(1, 2, 3, 4, 5)}


@pytest.mark.filterwarnings("ignore:Python 3.14:DeprecationWarning")  # torchvision unpacks without a filter
def test_the_archive_of_cifar_10_c_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean, images, targets = clean_cifar(tmp_path / "data")
    blocks = write_cifar_c(tmp_path / "CIFAR-10-C", images, targets)
    (tmp_path / "files").mkdir()
    archive = tmp_path / "files" / "CIFAR-10-C.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(tmp_path / "CIFAR-10-C", arcname="CIFAR-10-C")
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    with serving(tmp_path) as address:
        monkeypatch.setitem(cifar.COPIES, "cifar10", ("CIFAR-10-C", address, md5(archive)))
        load = cifar.corrupted_copies("cifar10").load
        samples = load(clean=clean, corruption="fog", severity=3, data_root=tmp_path / "data")
    assert np.array_equal(samples.items, blocks[2])
    assert [path.name for path in (tmp_path / "data" / "cifar10-c").iterdir()] == ["CIFAR-10-C"]


def test_the_archive_of_mnist_c_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean, images, targets = clean_mnist(tmp_path / "data")
    inverted = write_mnist_c(tmp_path / "mnist_c", images, targets, corruption="fog")
    (tmp_path / "files").mkdir()
    archive = tmp_path / "files" / "mnist_c.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in (tmp_path / "mnist_c").rglob("*.npy"):
            packed.write(file, file.relative_to(tmp_path))
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    with serving(tmp_path) as address:
        monkeypatch.setattr(mnist, "MNIST_C_SOURCE", address)
        monkeypatch.setattr(mnist, "MNIST_C_MD5", md5(archive))
        load = mnist.mnist_c().load
        samples = load(clean=clean, corruption="fog", severity=5, data_root=tmp_path / "data")
    assert np.array_equal(samples.items, inverted)
