"""Flip rates of CIFAR-10-P and ImageNet-P in their published formats: arrays of frames, videos, folders of frames."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.corrupted_copies import save
from tests.miniatures import class_pixels
from tests.oracle_runs import evaluated, oracles
from tests.published import binary_batch, write

from models.model_base import StandardTransform
from registry import registry
from testbed.data.datasets import load_samples
from testbed.data.sequences import read_frames
from testbed.definitions import load_definitions
from testbed.errors import DataError

load_definitions()
CLASSES = (3, 7)  # of the two images of the test set
# classes that the frames of the two sequences look like
FRAMES = ((3, 3, 5, 5), (7, 7, 7, 7))
WNID = "n01440764"  # class 0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def write_cifar_p(root: Path) -> None:
    """Two images of CIFAR-10's test set, and four frames of each under two perturbations."""
    images = np.stack([class_pixels(index) for index in CLASSES])
    write(root / "cifar-10-batches-bin/test_batch.bin", binary_batch(images, CLASSES))
    frames = np.stack([[class_pixels(index) for index in sequence] for sequence in FRAMES])
    for name in ("tilt", "gaussian_noise_2"):
        save(root / "CIFAR-10-P" / f"{name}.npy", frames)


def write_imagenet_p(root: Path, *, as_videos: bool = False) -> None:
    """The sequence of class 0 that looks like class 0, 1, 1, in a folder; and in a video, as classes 0 and 0."""
    folder = root / "ImageNet-P/snow" / WNID
    for number, index in enumerate((0, 1, 1)):
        path = folder / "ILSVRC2012_val_00000293" / f"frame{number + 9}.png"  # 9, 10, 11: not in the order of text
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(class_pixels(index, 48)).save(path)
    if as_videos:
        write_video(folder / "ILSVRC2012_val_00002138.mp4", [class_pixels(0, 48)] * 3)


def write_video(path: Path, frames: list[np.ndarray]) -> None:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=Fraction(15))
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for pixels in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


def test_frames_have_the_test_sets_labels_and_are_numbered_from_0(tmp_path: Path) -> None:
    write_cifar_p(tmp_path)
    samples = load_samples(registry.dataset("cifar10-p"), "tilt", data_root=tmp_path)
    assert samples.sample_ids[3:5] == ("test/0#3", "test/1#0")
    assert samples.targets.tolist() == [3, 3, 3, 3, 7, 7, 7, 7]
    assert np.array_equal(samples.items[2], class_pixels(5))


def test_noise_is_compared_with_the_first_frame_and_the_rest_with_the_previous(tmp_path: Path) -> None:
    write_cifar_p(tmp_path)
    models = oracles((3, 7), label_space="cifar10", num_classes=10, transform=None)
    names = ("cifar10-p.tilt", "cifar10-p.gaussian_noise_2")
    found = evaluated(names, tmp_path, tmp_path / "home", models)
    # one flip in three from frame to frame, two of three against the first; the other sequence has none
    rates = {name: found["oracle", name]["flip_rate"] for name in names}
    assert rates[names[0]].value == pytest.approx(100 / 6)
    assert rates[names[1]].value == pytest.approx(100 / 3)
    assert (rates[names[0]].n, rates[names[1]].detail["reference"]) == (2, "first")
    assert found["oracle", names[0]]["top1"].value == 75
    # labels do not count: exchanged classes flip as often
    assert found["exchanging", names[0]]["flip_rate"].value == rates[names[0]].value
    assert found["exchanging", names[0]]["top1"].value == 0


def test_flips_need_no_labels_and_accuracies_without_them_are_undefined(tmp_path: Path) -> None:
    write_cifar_p(tmp_path)
    shutil.rmtree(tmp_path / "cifar-10-batches-bin")
    samples = load_samples(registry.dataset("cifar10-p"), "tilt", data_root=tmp_path)
    assert (samples.sample_ids[4], set(samples.targets.tolist()), samples.class_names[3]) == ("test/1#0", {-1}, "cat")
    models = oracles((3, 7), label_space="cifar10", num_classes=10, transform=None)
    found = evaluated(("cifar10-p.tilt",), tmp_path, tmp_path / "home", models)["oracle", "cifar10-p.tilt"]
    assert found["flip_rate"].value == pytest.approx(100 / 6)
    for name in ("top1", "top5", "balanced_accuracy", "worst_class_accuracy"):
        assert (found[name].value, found[name].reason) == (None, "the samples have no labels")


def test_frames_in_folders_are_read_by_number_and_not_resized(tmp_path: Path) -> None:
    write_imagenet_p(tmp_path)
    samples = load_samples(registry.dataset("imagenet-p"), "snow", data_root=tmp_path)
    assert samples.sample_ids == tuple(f"{WNID}/ILSVRC2012_val_00000293#{number}" for number in range(3))
    assert [int(frame[0, 0, 2]) for frame in samples.items] == [class_pixels(index)[0, 0, 2] for index in (0, 1, 1)]
    models = oracles((0, 2), transform=StandardTransform(64, 48))
    found = evaluated(("imagenet-p.snow",), tmp_path, tmp_path / "home", models)
    assert found["oracle", "imagenet-p.snow"]["flip_rate"].value == 50
    assert found["oracle", "imagenet-p.snow"]["top1"].value == pytest.approx(100 / 3)
    assert found["exchanging", "imagenet-p.snow"]["top1"].value == 0


def test_videos_are_read_beside_folders(tmp_path: Path) -> None:
    pytest.importorskip("av")
    write_imagenet_p(tmp_path, as_videos=True)
    samples = load_samples(registry.dataset("imagenet-p"), "snow", data_root=tmp_path)
    assert samples.sample_ids[3:] == tuple(f"{WNID}/ILSVRC2012_val_00002138#{number}" for number in range(3))
    difference = samples.items[4].astype(int) - class_pixels(0, 48)
    assert np.abs(difference).max() <= 4
    damaged = tmp_path / "ImageNet-P/snow" / WNID / "ILSVRC2012_val_00002138.mp4"
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(DataError, match=r"ILSVRC2012_val_00002138\.mp4"):
        load_samples(registry.dataset("imagenet-p"), "snow", data_root=tmp_path)


def test_without_the_package_a_video_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with pytest.raises(DataError, match=r"needs the package 'av' \(pip install av\)\. .*or unpack every video"):
        read_frames(tmp_path / "some.mp4")


def test_what_does_not_belong_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'imagenet-p' is not under .*or in blur, .*noise.* there.*Get the archives"):
        load_samples(registry.dataset("imagenet-p"), "snow", data_root=tmp_path)
    write_imagenet_p(tmp_path)
    (tmp_path / "ImageNet-P/snow/cats/a").mkdir(parents=True)
    with pytest.raises(DataError, match=r"snow/cats is none of the 1000 classes"):
        load_samples(registry.dataset("imagenet-p"), "snow", data_root=tmp_path)
    write_cifar_p(tmp_path)
    save(tmp_path / "CIFAR-10-P/tilt.npy", np.zeros((3, 4, 32, 32, 3), np.uint8))
    with pytest.raises(DataError, match=r"tilt\.npy has frames .*\[3, 4, 32, 32, 3\].*should be uint8 \[2, frames, 32"):
        load_samples(registry.dataset("cifar10-p"), "tilt", data_root=tmp_path)
    with pytest.raises(DataError, match=r"snow\.npy in CIFAR-10-P.*Get it from https://zenodo\.org/records/2535967"):
        load_samples(registry.dataset("cifar10-p"), "snow", data_root=tmp_path)


def test_each_set_has_twenty_perturbations() -> None:
    for name in ("cifar10-p", "cifar100-p", "imagenet-p"):
        settings = [registry.eval_setting(one) for one in registry.expand("eval-setting", [f"{name}.*"])]
        assert len(settings) == 20
        assert all(setting.keeps_size == (name == "imagenet-p") for setting in settings)
        noisy = [one for one in settings if getattr(one.metrics_fn, "keywords", {}) == {"reference": "first"}]
        assert {one.name.split(".")[1].removesuffix("_2").removesuffix("_3") for one in noisy} == {
            "gaussian_noise", "shot_noise", "speckle_noise",
        }  # fmt: skip
