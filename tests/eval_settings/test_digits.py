import numpy as np
import pytest
from sklearn.datasets import load_digits

from eval_settings.digits import SPLIT_SIZES, load_digits_split, split_indices
from registry import registry

FINGERPRINTS = {
    "train": "e880692dae38c9779cee4f5ed62e0775aa0051ddbe8ab47d22b6330266ef0aaf",
    "validation": "00cc8482661fa506d06fdabeee1712181409bb1c6b3b9fe104ba989dd7d77ee6",
    "test": "9cd4de90d8c88bfabb3c65e390fd3b4538ebc0fca66d65100e95e07a46765adc",
}


@pytest.fixture(scope="module")
def splits():
    return {split: load_digits_split(split) for split in SPLIT_SIZES}


@pytest.mark.parametrize("split", SPLIT_SIZES)
def test_the_splits_never_move(splits, split):
    assert splits[split].fingerprint == FINGERPRINTS[split]


def test_sizes_and_ids(splits):
    assert {split: len(samples) for split, samples in splits.items()} == {"train": 1000, "validation": 200, "test": 597}
    assert splits["test"].sample_ids[17] == "test/17"
    assert splits["test"].items.shape == (597, 8, 8)
    assert splits["test"].items.dtype == np.uint8
    assert splits["test"].color_mode == "L"


def test_no_image_is_in_two_splits_and_none_is_lost(splits):
    images = np.concatenate([samples.items.reshape(-1, 64) for samples in splits.values()])
    assert len(np.unique(images, axis=0)) == len(images) == 1797


@pytest.mark.parametrize("split", SPLIT_SIZES)
def test_every_class_has_its_share_to_within_one_image(splits, split):
    share = np.bincount(load_digits().target) * SPLIT_SIZES[split] / 1797
    assert np.abs(np.bincount(splits[split].targets) - share).max() < 1


def test_targets_belong_to_their_images(splits):
    digits = load_digits()
    indices = split_indices(digits.target)["test"]
    np.testing.assert_array_equal(splits["test"].targets, digits.target[indices])
    np.testing.assert_array_equal(splits["test"].items, (255 * digits.images[indices].astype(int) + 8) // 16)


def test_the_only_tie_of_the_rounding_goes_up():
    levels = np.arange(17)
    doubled = 2 * 255 * levels
    assert [level for level in levels if doubled[level] % 32 == 16] == [8]
    assert np.rint(255 * 8 / 16) == 128


def test_order_is_shuffled(splits):
    targets = splits["test"].targets
    assert 0.85 < np.mean(targets[1:] != targets[:-1]) < 0.95  # 9 of 10 neighbours differ in a random order


def test_it_is_registered_with_its_label_space():
    dataset = registry.dataset("digits")
    assert (dataset.label_space, dataset.eval_split, dataset.fit_split) == ("digits", "test", "train")
