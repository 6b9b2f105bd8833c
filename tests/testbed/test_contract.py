"""Everything that is registered works: one test for all models, settings and data sets, so a new one is tested too."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from eval_settings.eval_setting_base import EvalSetting
from models.imagenet import NETWORKS
from models.model_base import Model
from registry import registry
from testbed.data.data_check import source_of
from testbed.data.datasets import load_samples
from testbed.data.weights import PublishedWeights
from testbed.definitions import load_definitions
from testbed.errors import DataError
from testbed.randomness import SampleKeys
from testbed.signatures import argument_names
from testbed.training.batches import images_tensor
from testbed.worker.classifier import load_classifier

load_definitions()
MODELS = [
    (name, space)
    for name in registry.model_names()
    for space in registry.label_spaces(name)
    if registry.model(name, space).training_data != ("imagenet-1k",)  # published weights, tested as definitions below
]
NAMES = registry.eval_setting_names()  # now: other tests register settings of their own
SHIFTED = [name for name in NAMES if registry.eval_setting(name).shift is not None]
PERTURBED = [name for name in SHIFTED if registry.eval_setting(name).perturbation_fn_gpu is not None]
SETTINGS = [
    name
    for name in PERTURBED
    if (setting := registry.eval_setting(name)).adversarial_attack is None
    and setting.parent_eval_setting is None  # part of another that is tested
]
DATASETS = sorted(registry.datasets)


@pytest.mark.parametrize(("name", "space"), MODELS)
def test_a_model_answers_one_row_of_finite_numbers_per_image(name: str, space: str) -> None:
    digits = registry.dataset("digits")  # also for models of any label space
    dataset = next((found for found in registry.datasets.values() if found.label_space == space), digits)
    try:
        test = load_samples(dataset, dataset.eval_split)
        fit = load_samples(dataset, dataset.fit_split) if dataset.fit_split else None
        classifier = load_classifier(registry.model(name, space), device="cpu", fit_seed=0, fit_samples=fit)
    except DataError as error:  # data or weights that do not come with the testbed; downloads are off in tests
        if dataset is digits:
            raise
        pytest.skip(str(error))
    images = images_tensor(test)[:7]
    with torch.no_grad():
        logits = classifier(images)
        alone = classifier(images[3:4])
    assert logits.shape == (7, len(test.class_names))
    assert torch.isfinite(logits).all()
    assert not classifier.training
    torch.testing.assert_close(alone[0], logits[3], atol=1e-5, rtol=1e-5)


def test_every_published_model_is_a_sound_definition() -> None:
    """All of timm and torchvision, and the ImageNet Testbed's names: one loop, a list of what is wrong."""
    bare = [registry.model(name, "imagenet-1k") for name, _, _, _ in NETWORKS]
    models = [*(registry.model(name) for name in registry.family_model_names()), *bare]
    assert len(models) > 1_400
    assert [fault for model in models for fault in _faults(model)] == []
    photo = Image.effect_noise((320, 240), 80).convert("RGB")
    transforms = {(model.transform, model.eval_batch_size) for model in models}
    for transform, _ in transforms:
        size = getattr(transform, "crop_size", None) or (transform.img_crop_size,) * 2
        assert transform.to_pixels(photo).size == size[::-1], transform
    assert all(batch_size * max(getattr(t, "crop_size", (0,))) <= 20_000 for t, batch_size in transforms)


def _faults(model: Model) -> list[str]:
    """What a definition of published weights lacks."""
    mean, std = (model.normalization.mean, model.normalization.std) if model.normalization else ((), ())
    tells = {
        "label space": model.label_space == "imagenet-1k",
        "outputs": model.num_outputs == 1_000,
        "normalization": len(mean) == len(std) == 3 and all(0 <= value <= 1 for value in (*mean, *std)),
        "weights": isinstance(model.weights, PublishedWeights) and bool(model.weights.files()),
        "loader": "weights" in argument_names(model.classifier_loader),
        "architecture": bool(model.arch) and bool(model.version) and bool(model.description),
        "head": model.classify is None or "to imagenet-1k" in str(model.version),
    }
    return [f"{model.name}: {what}" for what, is_sound in tells.items() if not is_sound]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_shift_keeps_shape_and_range_and_its_input_and_depends_on_its_keys(name: str) -> None:
    setting = registry.eval_setting(name)
    if setting.needs_separation:
        setting = setting.at_epsilon(0.2)
    assert setting.perturbation_fn_gpu is not None
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    kept = images.clone()
    keys = [SampleKeys(seed=0, purpose="eval", dataset="toy", sample_indices=np.arange(5), draw=d) for d in (0, 1)]
    given = [{"keys": key} if "keys" in argument_names(setting.perturbation_fn_gpu) else {} for key in keys]
    try:
        first, again, other = (setting.perturbation_fn_gpu(images, **extras) for extras in (given[0], *given))
    except DataError as error:  # a font that does not come with the testbed
        pytest.skip(str(error))
    assert torch.equal(images, kept)
    assert first.shape == images.shape
    assert first.dtype == torch.float32
    if registry.dataset(str(setting.dataset.name)).domain == "pixels":
        assert 0 <= first.min() <= first.max() <= 1
    assert torch.equal(first, again)
    assert torch.equal(first, other) != getattr(setting.perturbation_fn_gpu, "is_random", True)


def test_a_shift_that_changes_no_image_is_on_disk() -> None:
    """Published copies are read as they are; all other shifts have a perturbation."""
    assert {name for name in SHIFTED if name not in PERTURBED} == {name for name in SHIFTED if "_on-disk" in name}


def test_every_setting_tells_where_its_data_are_to_be_had() -> None:
    """What it is, its terms and address, what to get, where that belongs, and how much it must be."""
    settings = [registry.eval_setting(name) for name in NAMES]
    assert [setting.name for setting in settings if _lacks_source(setting)] == []
    assert [name for name in DATASETS if not registry.dataset(name).description] == []


def _lacks_source(setting: EvalSetting) -> bool:
    source = source_of(registry.dataset(str(setting.dataset.name)), setting)
    return source is None or not all((source.title, source.homepage, source.licence, source.get, source.layout))


@pytest.mark.parametrize("name", DATASETS)
def test_a_data_set_has_distinct_ids_and_its_splits_share_no_sample(name: str) -> None:
    dataset = registry.dataset(name)
    try:
        splits = [load_samples(dataset, split) for split in dataset.splits]
    except DataError as error:  # downloads are off in tests
        if name == "digits":
            raise
        pytest.skip(str(error))
    ids = [sample_id for split in splits for sample_id in split.sample_ids]
    assert len(set(ids)) == len(ids)
    assert len({split.class_names for split in splits}) == 1
    assert all(set(split.targets) == set(range(len(split.class_names))) for split in splits)
