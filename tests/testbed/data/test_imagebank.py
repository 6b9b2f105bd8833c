import pickle
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torchvision import transforms

from models.model_base import StandardTransform
from testbed.data import eviction, imagepipeline
from testbed.data.arrays import array_samples
from testbed.data.filling import BankFiller
from testbed.data.imagebank import Bank
from testbed.data.imagepipeline import Pipeline
from testbed.errors import DataError, DefinitionError
from testbed.records import Samples

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (5, 6, 7), dtype=np.uint8)
COLORS = RNG.integers(0, 256, (5, 6, 7, 3), dtype=np.uint8)
MANY = RNG.integers(0, 256, (70, 6, 7, 3), dtype=np.uint8)  # more than two blocks


def _in_memory(x):
    return array_samples(x, np.zeros(len(x), np.int64), dataset="made", split="test", class_names=("a", "b"))


def _on_disk(folder, images, color_mode="RGB"):
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{index}.png" for index in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image).save(path)
    return Samples(
        dataset="made",
        split="test",
        items=paths,
        targets=np.zeros(len(paths), np.int32),
        sample_ids=tuple(path.name for path in paths),
        class_names=("a", "b"),
        fingerprint="0" * 64,
        color_mode=color_mode,
    )


@pytest.fixture
def build(tmp_path):
    def make(samples, *, num_threads=1, transform_identity="", shown=None, **transforms) -> Bank:
        none = {"setting_transform": None, "model_transform": None, "canonical_size": None}
        options = {} if shown is None else {"shown": shown}
        filler = BankFiller(tmp_path / "cache", num_threads=num_threads, **options)
        pipeline = Pipeline(samples=samples, **{**none, **transforms})
        return filler.plan(pipeline, transform_identity=transform_identity)

    return make


def names_beside(bank):
    return {path.name for path in Path(bank.path).parent.iterdir()}


def _to_tensor(image):
    return transforms.functional.to_tensor(image)


def _normalized(image):
    return transforms.functional.to_tensor(image) * 2 - 1


def _integers(image):
    return transforms.functional.pil_to_tensor(image)


def _failing(image):
    raise KeyError("size")


def test_arrays_without_transform_are_kept_exactly(build):
    grey, colors = build(_in_memory(IMAGES)), build(_in_memory(COLORS))
    assert (grey.shape, grey.dtype) == ((5, 1, 6, 7), "uint8")
    np.testing.assert_array_equal(grey.open()[:], IMAGES[:, None])
    np.testing.assert_array_equal(colors.open()[:], np.moveaxis(COLORS, 3, 1))


def test_rows_and_float_images_are_float32(build):
    rows = np.array([[1e3, -2.0], [0.1, 0.2]])
    bank = build(_in_memory(rows))
    assert (bank.shape, bank.dtype) == ((2, 2), "float32")
    np.testing.assert_array_equal(bank.open()[:], rows.astype(np.float32))
    np.testing.assert_array_equal(build(_in_memory(IMAGES / 255)).open()[:][:, 0], (IMAGES / 255).astype(np.float32))


def test_files_in_order_for_any_number_of_threads(build, tmp_path):
    samples = _on_disk(tmp_path / "set", MANY)
    for num_threads in (1, 3):
        bank = build(samples, num_threads=num_threads, canonical_size=None)
        np.testing.assert_array_equal(bank.open()[:], np.moveaxis(MANY, 3, 1))
        Path(bank.path).unlink()


def test_color_mode_decides_the_channels(build, tmp_path):
    assert build(_on_disk(tmp_path / "set", IMAGES)).shape == (5, 3, 6, 7)
    assert build(_on_disk(tmp_path / "set", IMAGES, color_mode="L")).shape == (5, 1, 6, 7)


def test_a_standard_transform_ends_in_the_same_pixels_as_its_tensor(build, tmp_path):
    transform = StandardTransform(5, 4)
    bank = build(_on_disk(tmp_path / "set", COLORS), model_transform=transform)
    assert (bank.shape, bank.dtype) == ((5, 3, 4, 4), "uint8")
    expected = np.stack([transform(Image.fromarray(image)).numpy() for image in COLORS])
    np.testing.assert_array_equal(bank.open()[:].astype(np.float32) / 255, expected)


def test_another_transform_is_float32(build, tmp_path):
    compose = transforms.Compose([transforms.Resize((4, 4)), transforms.ToTensor()])
    bank = build(_on_disk(tmp_path / "set", COLORS), model_transform=compose)
    assert (bank.shape, bank.dtype) == ((5, 3, 4, 4), "float32")
    np.testing.assert_array_equal(bank.open()[2], compose(Image.fromarray(COLORS[2])).numpy())


def test_transforms_come_in_the_order_canonical_setting_model(build, tmp_path):
    sizes = []

    def setting(image):
        sizes.append(image.size)
        return image.resize((9, 9))

    bank = build(
        _on_disk(tmp_path / "set", COLORS),
        canonical_size=4,
        setting_transform=setting,
        model_transform=StandardTransform(3, 2),
    )
    assert set(sizes) == {(4, 4)}
    assert bank.shape == (5, 3, 2, 2)


def test_a_bank_is_built_once_and_progress_counts_all_samples(build, tmp_path, monkeypatch):
    samples = _on_disk(tmp_path / "set", MANY)
    told = []
    first = build(samples, shown=lambda what: nullcontext(lambda done, total: told.append((what, done, total))))
    assert len(told) == 3
    assert told[-1] == ("Decoding 70 samples.", 70, 70)
    monkeypatch.setattr(imagepipeline, "decode", lambda *a, **k: pytest.fail("decoded twice"))
    assert build(samples) == first


def test_every_ingredient_has_its_own_bank(build, tmp_path):
    samples = _on_disk(tmp_path / "set", RNG.integers(0, 256, (2, 8, 8, 3), dtype=np.uint8))
    banks = [
        build(samples),
        build(samples, canonical_size=4),
        build(samples, model_transform=StandardTransform(8, 4)),
        build(samples, model_transform=StandardTransform(6, 4)),
        build(samples, setting_transform=lambda image: image),
        build(samples, model_transform=_to_tensor),
        build(samples, model_transform=_to_tensor, transform_identity="another source"),
        build(samples, model_transform=transforms.Compose([transforms.ToTensor()])),
        build(_on_disk(tmp_path / "set", IMAGES, color_mode="L")),
        build(_in_memory(IMAGES)),
    ]
    assert len({bank.fingerprint for bank in banks}) == len(banks)
    same = build(samples, model_transform=StandardTransform(8, 4), transform_identity="another source")
    assert same == banks[2]


def test_an_incomplete_cache_file_is_built_again(build):
    bank = build(_in_memory(IMAGES))
    content = Path(bank.path).read_bytes()
    for damaged in (b"", content[:40], content[:-10]):
        Path(bank.path).write_bytes(damaged)
        np.testing.assert_array_equal(build(_in_memory(IMAGES)).open()[:], IMAGES[:, None])


def test_builders_at_once_agree_and_leave_one_file(build, tmp_path):
    samples = _on_disk(tmp_path / "set", COLORS)
    banks = []
    threads = [threading.Thread(target=lambda: banks.append(build(samples))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert banks == [banks[0]] * 4
    key = banks[0].fingerprint
    assert names_beside(banks[0]) == {f"{key}.npy", f"{key}.checksums", "folder.lock"}
    np.testing.assert_array_equal(banks[0].open()[:], np.moveaxis(COLORS, 3, 1))


def test_a_bank_is_a_plain_read_only_value(build):
    bank = build(_in_memory(IMAGES))
    array = pickle.loads(pickle.dumps(bank)).open()
    assert isinstance(array[:], np.memmap)
    assert not array[:].flags.writeable


def test_damaged_files_of_all_blocks_are_counted_and_named_and_nothing_is_kept(build, tmp_path):
    samples = _on_disk(tmp_path / "set", MANY)
    (tmp_path / "set" / "1.png").write_bytes(b"")
    (tmp_path / "set" / "64.png").write_bytes(b"<html>")
    with pytest.raises(DataError, match=r"2 of the 70 files of data set 'made' \(test\) cannot be decoded") as caught:
        build(samples)
    for part in ("Index 1: Cannot decode", "1.png: the file is empty", "Index 64", "64.png: it is not an image"):
        assert part in str(caught.value)
    assert [path.name for path in (tmp_path / "cache" / "bank").iterdir()] == ["folder.lock"]


def test_files_that_are_all_damaged_are_told_as_well(build, tmp_path):
    samples = _on_disk(tmp_path / "set", COLORS)
    for path in samples.items:
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"5 of the 5 files .* Index 2: .* \.\.\. Replace"):
        build(samples)


def test_different_sizes_name_two_files_and_the_remedy(build, tmp_path):
    samples = _on_disk(tmp_path / "set", [COLORS[0], COLORS[1], COLORS[2][:, :4]])
    with pytest.raises(DataError) as caught:
        build(samples)
    for part in ("0.png has 7 x 6 px", "2.png has 4 x 6 px", "--canonical-size PX", "canonical_size= in add_dataset"):
        assert part in str(caught.value)
    assert build(samples, canonical_size=4).shape == (3, 3, 4, 4)
    with pytest.raises(DefinitionError, match="gives different sizes"):
        build(samples, model_transform=_to_tensor)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (_normalized, r"made values from -.* of .*0\.png.*normalization belongs in Model"),
        (_integers, r"made uint8 of shape \(3, 6, 7\) of .*0\.png"),
        (_failing, r"failed on .*0\.png \(KeyError: 'size'\)"),
    ],
)
def test_transforms_that_break_the_contract_name_the_first_file(build, tmp_path, transform, message):
    with pytest.raises(DefinitionError, match=message):
        build(_on_disk(tmp_path / "set", COLORS), model_transform=transform)


def test_a_setting_transform_must_return_an_8_bit_image(build):
    with pytest.raises(DefinitionError, match="turned test/0 into 'F'"):
        build(_in_memory(IMAGES), setting_transform=lambda image: image.convert("F"))


def test_numbers_cannot_pass_image_transforms(build):
    with pytest.raises(DefinitionError, match="rows of numbers, which cannot pass a transform"):
        build(_in_memory(np.zeros((2, 2))), model_transform=StandardTransform(8, 4))
    with pytest.raises(DataError, match=r"float images of shape .* canonical size of 4 px"):
        build(_in_memory(IMAGES / 255), canonical_size=4)


def test_a_disk_too_small_is_an_error_before_writing(build, monkeypatch):
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr(eviction.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DataError, match=r"need 210 bytes but .* has 10 bytes free.*TESTBED_HOME"):
        build(_in_memory(IMAGES))
