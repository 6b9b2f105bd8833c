"""SVHN: the published files of Matlab, with 10 for the digit 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torchvision
from scipy.io import savemat
from tests.published import md5, random_images, serving

from eval_settings.svhn import read_cropped_digits
from registry import registry
from testbed.data.datasets import load_samples
from testbed.errors import DataError

IMAGES = random_images(3, 32, 32, 3)


def write_mat(
    path: Path, *, images: object = IMAGES.transpose(1, 2, 3, 0), labels: object = ((1,), (10,), (9,))
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {"X": images, "y": np.array(labels, dtype=np.uint8)}, do_compression=True)
    return path


@pytest.mark.parametrize("place", ["svhn", ".", "SVHN"])
def test_the_published_files_are_read_where_they_lie(place: str, tmp_path: Path) -> None:
    write_mat(tmp_path / place / "test_32x32.mat")
    samples = load_samples(registry.dataset("svhn"), "test", data_root=tmp_path)
    assert np.array_equal(samples.items, IMAGES)
    assert samples.targets.tolist() == [1, 0, 9]
    assert (samples.class_names, samples.sample_ids[2]) == (tuple("0123456789"), "test/2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": IMAGES}, r"has no array X of uint8 \[32, 32, 3, n\]"),
        ({"images": IMAGES.transpose(1, 2, 3, 0) / 255}, r"has no array X of uint8 \[32, 32, 3, n\]"),
        ({"labels": [[1], [2]]}, "has 3 images, but not as many labels"),
    ],
)
def test_other_arrays_say_what_is_wrong(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_cropped_digits([write_mat(tmp_path / "test_32x32.mat", **changes)])


@pytest.mark.parametrize("kept", [0, 100, 4000])
def test_a_truncated_file_says_what_is_wrong(kept: int, tmp_path: Path) -> None:
    path = write_mat(tmp_path / "test_32x32.mat")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataError, match=r"test_32x32\.mat (as a file of Matlab|has no array X)"):
        read_cropped_digits([path])


def test_torchvision_downloads_the_split_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = write_mat(tmp_path / "origin.mat")
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    with serving(tmp_path) as address:
        published = [f"{address}/origin.mat", "test_32x32.mat", md5(origin)]
        monkeypatch.setitem(torchvision.datasets.SVHN.split_list, "test", published)
        assert len(load_samples(registry.dataset("svhn"), "test", data_root=tmp_path / "data")) == 3
    assert [path.name for path in (tmp_path / "data" / "svhn").iterdir()] == ["test_32x32.mat"]
