"""Faults that people have met in other simulators of corruptions; each named by the report of it."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from tests.corruption_images import keys, photo

from registry import registry
from testbed.definitions import Sources, load_definitions
from testbed.perturbations.corruptions.builtin import CORRUPTIONS
from testbed.perturbations.corruptions.corrupt import Corrupt
from testbed.perturbations.corruptions.corruption import NUM_SEVERITIES, Corruption

BY_NAME = {row.name: row for row in CORRUPTIONS}
WITH_SEVERITIES = [row for row in CORRUPTIONS if row.has_severities]
EACH = pytest.mark.parametrize("corruption", WITH_SEVERITIES, ids=[row.name for row in WITH_SEVERITIES])


def seeded_everywhere(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


@EACH
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_small_images_of_one_colour_keep_their_shape_at_the_strongest(corruption: Corruption, value: float) -> None:
    """imagecorruptions 5: motion_blur failed on (32, 32, 3) zeros at severity 5."""
    images = torch.full((1, 3, 32, 32), value)
    corrupted = Corrupt(corruption=corruption, severity=5)(images, keys=keys(1))
    assert corrupted.shape == images.shape
    assert torch.isfinite(corrupted).all()


@EACH
def test_small_images_do_not_get_the_parameters_of_large_ones(corruption: Corruption) -> None:
    """imagecorruptions 21: CIFAR with ImageNet's parameters left the object barely visible."""
    for height, width, table in ((32, 32, "cifar32"), (64, 64, "tinyimagenet64"), (224, 224, "imagenet224")):
        usual = Corrupt(corruption=corruption, severity=5)
        assert usual.parameters(height, width) == corruption.parameters[table][-1]


@EACH
def test_global_seeds_change_nothing_and_are_left_as_they_are(corruption: Corruption) -> None:
    """imagecorruptions 11 and pull request 27: generators that no seed reached, or only numpy's."""
    images, corrupt = photo(32, 32), Corrupt(corruption=corruption, severity=3)
    seeded_everywhere(0)
    first = corrupt(images, keys=keys(4))
    after = (random.random(), np.random.random(), torch.rand(()).item())  # noqa: NPY002
    seeded_everywhere(1)
    assert torch.equal(corrupt(images, keys=keys(4)), first)
    seeded_everywhere(0)
    assert after == (random.random(), np.random.random(), torch.rand(()).item())  # noqa: NPY002


@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"])
def test_every_sample_and_every_draw_has_noise_of_its_own(name: str) -> None:
    """pytorch 5059, fairseq 1383, lightning 20412: equal draws in every worker, or in every repeat."""
    images = torch.full((20, 1, 16, 16), 0.5)
    corrupt = Corrupt(corruption=BY_NAME[name], severity=5)
    noisy = torch.cat([corrupt(images, keys=keys(20, draw=draw)) for draw in range(3)]).flatten(1)
    assert len(noisy.unique(dim=0)) == 60


def test_the_output_that_files_have_is_another_setting_than_the_simulated_one() -> None:
    """robustness 14 and 16: results from JPEG files and from memory differ, and were compared."""
    load_definitions(Sources())
    names = [f"tiny-imagenet-c.gaussian_noise.3_{kind}" for kind in ("in-memory", "in-memory-jpeg85", "on-disk")]
    shifts = [registry.eval_setting(name).shift for name in names]
    assert len({shift.family for shift in shifts if shift is not None}) == 3
    assert {(shift.name, shift.severity) for shift in shifts if shift is not None} == {("gaussian_noise", 3)}


@pytest.mark.parametrize("dataset", ["tiny-imagenet", "cifar100", "svhn", "digits"])
def test_every_corruption_is_there_at_every_resolution_and_on_any_data_set(dataset: str) -> None:
    """robustness 42 and 65: some were missing at 64 px, some worked on ImageNet alone."""
    load_definitions(Sources())
    names = set(registry.expand("eval-setting", [f"{dataset}-c.*_in-memory"]))
    expected = {f"{dataset}-c.{row.name}.{level}_in-memory" for row in WITH_SEVERITIES for level in range(1, 6)}
    assert names == expected | {f"{dataset}-c.greyscale_in-memory"}
    assert len(expected) == 19 * NUM_SEVERITIES
