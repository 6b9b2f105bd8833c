"""What every corruption promises, at every size, severity and number of channels, whatever it does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from tests.corruption_images import keys, photo

from testbed.metrics.corruption import COMMON as COMMON_OF_METRICS
from testbed.metrics.corruption import EXTRA
from testbed.perturbations.corruptions.builtin import CORRUPTIONS
from testbed.perturbations.corruptions.corrupt import Corrupt
from testbed.perturbations.corruptions.corruption import NUM_SEVERITIES, TABLES, Corruption

COMMON = {
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
}  # fmt: skip
OTHERS = {"speckle_noise", "gaussian_blur", "spatter", "saturate", "greyscale"}
SIZES = [(8, 8), (28, 28), (32, 32), (64, 64), (96, 160), (224, 224)]
# Those that no random number decides; all others differ between seeds.
FIXED = {"defocus_blur", "zoom_blur", "gaussian_blur", "brightness", "contrast", "saturate", "pixelate",
         "jpeg_compression", "greyscale"}  # fmt: skip
EACH = pytest.mark.parametrize("corruption", CORRUPTIONS, ids=[row.name for row in CORRUPTIONS])


def each_severity(corruption: Corruption, table: str | None = None) -> Iterator[Corrupt]:
    levels = range(1, NUM_SEVERITIES + 1) if corruption.has_severities else (None,)
    return (Corrupt(corruption=corruption, severity=level, table=table) for level in levels)


def test_the_15_and_the_4_are_there_in_their_order() -> None:
    names = {row.name: row for row in CORRUPTIONS}
    assert names.keys() == COMMON | OTHERS
    assert set(COMMON_OF_METRICS) == COMMON
    assert {*EXTRA, "greyscale"} == OTHERS
    assert {name for name, row in names.items() if not row.is_random} == FIXED
    assert all(set(row.parameters) == set(TABLES) for row in CORRUPTIONS if row.has_severities)


@EACH
@pytest.mark.parametrize("channels", [1, 3])
def test_shape_range_and_input_are_kept(corruption: Corruption, channels: int) -> None:
    for height, width in SIZES[:-1] if corruption.has_severities else SIZES:
        images = photo(height, width, channels, n=2)
        before = images.clone()
        for corrupt in each_severity(corruption):
            corrupted = corrupt(images, keys=keys(2))
            assert corrupted.shape == images.shape
            assert corrupted.dtype == torch.float32
            assert 0 <= corrupted.min() <= corrupted.max() <= 1
            assert torch.equal(images, before)
            assert corrupted.data_ptr() != images.data_ptr()


@EACH
def test_largest_images_keep_shape_and_range(corruption: Corruption) -> None:
    for corrupt in each_severity(corruption):
        corrupted = corrupt(photo(224, 224, 3, n=1), keys=keys(1))
        assert corrupted.shape == (1, 3, 224, 224)
        assert 0 <= corrupted.min() <= corrupted.max() <= 1


@EACH
@pytest.mark.parametrize(("height", "width"), [(8, 8), (32, 32), (40, 24)])
def test_same_bits_for_batches_of_1_7_and_64_in_any_order(corruption: Corruption, height: int, width: int) -> None:
    images = photo(height, width, 3, n=64)
    for corrupt in list(each_severity(corruption))[::2]:
        whole = corrupt(images, keys=keys(64))
        for size in (1, 7):
            starts = range(0, 64, size) if size > 1 else range(0, 64, 9)
            for start in starts:
                stop = min(start + size, 64)
                part = corrupt(images[start:stop], keys=keys(stop - start, start=start))
                assert torch.equal(part, whole[start:stop])


@EACH
def test_same_bits_for_any_number_of_threads(corruption: Corruption) -> None:
    images, corrupt = photo(64, 64, 3, n=9), list(each_severity(corruption))[-1]
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(corrupt(images, keys=keys(9)))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


@EACH
def test_random_ones_differ_between_seeds_draws_and_samples_and_no_others(corruption: Corruption) -> None:
    images = photo(32, 32, 3, n=1).expand(2, -1, -1, -1)
    corrupt = list(each_severity(corruption))[-1]
    first = corrupt(images, keys=keys(2))
    is_random = corruption.name not in FIXED
    assert torch.equal(first, corrupt(images, keys=keys(2)))
    assert torch.equal(first[0], first[1]) != is_random
    assert torch.equal(first, corrupt(images, keys=keys(2, seed=1))) != is_random
    assert torch.equal(first, corrupt(images, keys=keys(2, draw=1))) != is_random


@EACH
def test_every_severity_changes_a_photo_and_none_destroys_its_size(corruption: Corruption) -> None:
    """Known as the fault of a corruption that silently does nothing; see CIFAR's glass blur at severity 1."""
    images = photo(32, 32, 3, n=2)
    for corrupt in each_severity(corruption):
        assert (corrupt(images, keys=keys(2)) - images).abs().max() > 1 / 255


@EACH
def test_output_in_8_bits_is_cut_and_jpeg_is_near_it(corruption: Corruption) -> None:
    images, last = photo(64, 64, 3, n=2), list(each_severity(corruption))[-1]
    as_float = last(images, keys=keys(2))
    as_bytes, as_jpeg = (
        Corrupt(corruption=corruption, severity=last.severity, output=output)(images, keys=keys(2))
        for output in ("uint8", "jpeg85")
    )
    levels = 255 * as_bytes.double()
    assert (levels - levels.round()).abs().max() < 1e-4
    assert -1 / 255 - 1e-6 < (as_bytes - as_float).min() <= (as_bytes - as_float).max() < 1e-5
    assert 0 < (as_jpeg - as_bytes).abs().mean() < 0.2
