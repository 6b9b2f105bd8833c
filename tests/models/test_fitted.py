"""Models that are fitted in every run, on any data set, with and without noise on what they are fitted on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from eval_settings.dataset_base import Dataset
from models.model_base import FitNoise, Model
from registry import ANY_LABEL_SPACE, registry
from testbed.data.arrays import array_samples
from testbed.data.imagebank import Bank
from testbed.definitions import load_definitions
from testbed.engine.identity import model_version
from testbed.engine.unit import Task
from testbed.errors import DefinitionError
from testbed.perturbations.noise import UniformNoise
from testbed.randomness import SampleKeys
from testbed.records import Samples
from testbed.run_split import RunSplit
from testbed.worker.fitting import fit_samples

NUM_POINTS = 50
POINTS = np.random.default_rng(0).uniform(size=(NUM_POINTS, 2))


@pytest.fixture(autouse=True)
def _definitions() -> None:
    load_definitions()
    if "fit-points" not in registry.datasets:
        registry.add_dataset(
            Dataset(
                name="fit-points",
                loader=_load,
                splits=("all",),
                eval_split="all",
                test_fraction=0.2,
                domain="numbers",
            )
        )


def _load(split: str) -> Samples:
    targets = (POINTS[:, 0] > 0.5).astype(np.int32)
    return array_samples(POINTS, targets, dataset="fit-points", split=split, class_names=("left", "right"))


def _fitted(name: str, *, seed: int = 0, epsilon_min: float = 0.1) -> Samples:
    fit_indices = RunSplit(test_fraction=0.2).fit_indices(NUM_POINTS, seed=seed)
    bank = Bank(path="", shape=(NUM_POINTS, 2), dtype="float32", fingerprint="")
    task = Task(
        setting="fit-points", dataset="fit-points", label_space=None, bank=bank, sample_indices=np.arange(2),
        targets=np.zeros(2, np.int32), num_classes=2, fit_indices=fit_indices,
        fit_epsilons={"linf": epsilon_min, "l2": epsilon_min},
    )  # fmt: skip
    found = fit_samples(registry.model(name), task, seed=seed, data_root=Path())
    assert found is not None
    return found


def _offsets(samples: Samples, *, seed: int = 0) -> np.ndarray:
    """Noise of each copy of each point, [copies, points, 2]."""
    own = POINTS[RunSplit(test_fraction=0.2).fit_indices(NUM_POINTS, seed=seed)].astype(np.float32)
    return np.asarray(samples.items).reshape(-1, len(own), 2) - own


def test_a_run_fits_on_the_part_that_it_does_not_test() -> None:
    chosen = RunSplit(test_fraction=0.2).fit_indices(NUM_POINTS, seed=3)
    np.testing.assert_array_equal(_fitted("1-nn", seed=3).items, POINTS[chosen])


def test_every_point_is_replaced_by_ten_noisy_copies_with_its_label() -> None:
    clean, noisy = _fitted("random-forest"), _fitted("random-forest-noise-linf-0.05")
    assert len(noisy) == 10 * len(clean)
    np.testing.assert_array_equal(noisy.targets, np.tile(clean.targets, 10))
    assert np.abs(_offsets(noisy)).max() < 0.05 + 1e-6
    assert np.abs(_offsets(noisy)).max() > 0.045


def test_independent_noise_differs_between_points_and_copies() -> None:
    offsets = _offsets(_fitted("random-forest-noise-linf-0.05"))
    assert len(np.unique(offsets.reshape(-1, 2), axis=0)) == 10 * 40


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_shared_noise_is_ten_offsets_for_all_points(norm: str) -> None:
    offsets = _offsets(_fitted(f"random-forest-noise-{norm}-0.05-shared"))
    np.testing.assert_allclose(offsets, np.broadcast_to(offsets[:, :1], offsets.shape), atol=1e-6)
    assert len(np.unique(offsets[:, 0].round(6), axis=0)) == 10


def test_shared_noise_is_the_same_unit_offsets_at_every_level() -> None:
    small, large = (_offsets(_fitted(f"1-nn-noise-linf-{level}-shared")) for level in ("0.01", "0.02"))
    np.testing.assert_allclose(2 * small, large, atol=1e-6)


def test_noise_at_the_separation_has_the_level_that_the_plan_found() -> None:
    exact = _fitted("1-nn-mscr-linf", epsilon_min=0.05)
    np.testing.assert_array_equal(exact.items, _fitted("1-nn-noise-linf-0.05").items)


def test_another_seed_gives_other_noise() -> None:
    first, second = (_offsets(_fitted("1-nn-noise-linf-0.05", seed=seed), seed=seed) for seed in (0, 1))
    assert not np.allclose(first, second)


def test_shared_offsets_are_those_of_the_test_also_for_colours() -> None:
    """Pixels are stored channels last and perturbed channels first: an offset belongs to a pixel's channel."""
    grey = np.full((4, 5, 2, 3), 0.5, dtype=np.float32)
    samples = array_samples(grey, np.array([0, 1, 0, 1]), dataset="fit-colours", split="train", class_names=("a", "b"))
    registry.add_dataset(Dataset(name="fit-colours", loader=lambda split: samples, splits=("train", "test"),
                                 fit_split="train"))  # fmt: skip
    bank = Bank(path="", shape=(4, 3, 5, 2), dtype="float32", fingerprint="")
    task = Task(setting="fit-colours", dataset="fit-colours", label_space=None, bank=bank, sample_indices=np.arange(2),
                targets=np.zeros(2, np.int32), num_classes=2)  # fmt: skip
    noisy = fit_samples(registry.model("1-nn-noise-linf-0.1-shared"), task, seed=5, data_root=Path())
    keys = SampleKeys(seed=5, purpose="eval", dataset="fit-colours", sample_indices=np.array([2]), draw=0)
    tested = UniformNoise(norm="linf", epsilon=0.1, is_shared=True)(torch.full((1, 3, 5, 2), 0.5), keys=keys)
    assert noisy is not None
    np.testing.assert_array_equal(noisy.items[0], tested[0].permute(1, 2, 0).numpy())


def test_names_say_what_a_variant_is_fitted_with() -> None:
    assert registry.model("random-forest-noise-l2-0.01-shared").fit_noise == FitNoise(
        norm="l2", epsilon=0.01, is_shared=True
    )
    assert registry.model("1-nn-mscr-l1").fit_noise == FitNoise(norm="l1", epsilon=None)
    assert registry.model("digits-1nn-noise-linf-0.1", "digits").fit_noise == FitNoise(norm="linf", epsilon=0.1)
    assert registry.model("random-forest").label_space == ANY_LABEL_SPACE


@pytest.mark.parametrize("level", ["0.010", "1e-2", "nought", "-1", "inf", "1e-05-shared-shared"])
def test_a_level_has_one_spelling(level: str) -> None:
    with pytest.raises(DefinitionError, match="noise level"):
        registry.model(f"random-forest-noise-linf-{level}")


def test_a_network_has_no_such_variant() -> None:
    with pytest.raises(DefinitionError, match=r"train\.py --noise"):
        registry.model("digits-resnet-noise-linf-0.1", "digits")


def test_fit_noise_without_a_fit_is_refused() -> None:
    with pytest.raises(DefinitionError, match="takes `dataset`"):
        Model(name="net", transform=None, classifier_loader=lambda: None, eval_batch_size=1,
              fit_noise=FitNoise(norm="linf", epsilon=0.1))  # fmt: skip


def test_the_noise_is_part_of_what_a_model_is() -> None:
    names = ("1-nn", "1-nn-noise-linf-0.01", "1-nn-noise-linf-0.01-shared", "1-nn-mscr-linf")
    versions = [model_version(registry.model(name)) for name in names]
    assert len({version.fingerprint for version in versions}) == 4
    assert "fit_noise" not in versions[0].spec
    assert versions[3].spec["fit_noise"] == {"norm": "linf", "epsilon": None, "is_shared": False, "num_copies": 10}


def test_the_file_of_a_variant_is_that_of_the_model_it_is_made_from() -> None:
    """A definition without a version is known by its file, and so are its variants."""
    source = registry.model_source(registry.model("1-nn"))
    assert source is not None
    assert source.name == "fitted.py"
    assert registry.model_source(registry.model("1-nn-noise-linf-0.1-shared")) == source
