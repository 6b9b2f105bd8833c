"""Training: what it depends on, what it must not look at, and what it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

import eval_settings.digits
import models.cifar
import models.digits  # noqa: F401  (registers the models)
from models._architecture import build_architecture
from models._checkpoint import load_checkpoint, load_trained_seed
from registry import registry
from testbed.commands import train as training_run
from testbed.errors import DataError, DefinitionError, DeviceError, TestbedError
from testbed.fingerprint import file_sha256
from testbed.randomness import SampleKeys
from testbed.training import card as training_card
from testbed.training.batches import Batches, flipped, images_tensor, shifted
from testbed.training.recipe import Recipe
from testbed.training.train import Score, check_trainable, score, train

LINEAR = registry.model("digits-linear", "digits")
DIGITS = registry.dataset("digits")
SHORT = Recipe(epochs=2, noise="uniform-linf", epsilon=0.2, max_shift=1)


def digits_with(changed_split, change):
    """`digits` with the pixels of one split changed."""

    def loader(split):
        samples = eval_settings.digits.load_digits_split(split)
        return replace(samples, items=change(samples.items)) if split == changed_split else samples

    return replace(DIGITS, loader=loader)


def state_of(trained):
    return torch.cat([value.flatten() for value in trained.network.state_dict().values()])


def batches(recipe, num_images=23, seed=0):
    images = images_tensor(eval_settings.digits.load_digits_split("train"))[:num_images]
    positions = np.arange(num_images)
    return Batches(
        images=images, targets=torch.arange(num_images), sample_indices=positions, recipe=recipe, seed=seed,
        dataset="digits",
    )  # fmt: skip


def epoch_in_sample_order(recipe, epoch, **options):
    parts = list(batches(recipe, **options).of_epoch(epoch))
    images, targets = (torch.cat(column) for column in zip(*parts, strict=True))
    return images[targets.argsort()]


# what it depends on


def test_same_network_for_the_same_seed_and_another_for_another():
    first, again, other = (state_of(train(LINEAR, DIGITS, SHORT, seed=seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_global_generators_and_threads_are_left_as_they_were():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    train(LINEAR, DIGITS, Recipe(epochs=1), seed=0)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


def test_only_the_fit_split_is_learned_from():
    one_epoch = Recipe(epochs=1)
    reference = state_of(train(LINEAR, DIGITS, one_epoch, seed=0))
    for split, is_learned in (("train", True), ("validation", False), ("test", False)):
        changed = state_of(train(LINEAR, digits_with(split, lambda items: 255 - items), one_epoch, seed=0))
        assert torch.equal(changed, reference) != is_learned


def test_test_images_decide_nothing():
    recipe = Recipe(epochs=8)
    usual = train(LINEAR, DIGITS, recipe, seed=0)
    hidden = train(LINEAR, digits_with("test", np.zeros_like), recipe, seed=0)
    assert usual.epoch == hidden.epoch
    assert torch.equal(state_of(usual), state_of(hidden))
    assert hidden.test.top1 < 20 < usual.test.top1


@pytest.mark.parametrize(
    ("learning_rate", "epochs", "other"),
    [(0.1, 8, lambda score: -score.loss), (0.05, 12, lambda score: score.correct)],
    ids=["not the lowest loss", "not the first of equal accuracies"],
)
def test_network_is_that_of_the_best_validation_epoch(learning_rate, epochs, other):
    seen: list[Score] = []
    recipe = Recipe(epochs=epochs, learning_rate=learning_rate)
    trained = train(LINEAR, DIGITS, recipe, seed=0, on_epoch=lambda loss, validation: seen.append(validation))
    best = max(seen, key=lambda reached: (reached.correct, -reached.loss))
    assert seen.index(max(seen, key=other)) != seen.index(best) < epochs - 1
    assert (trained.epoch, trained.validation) == (seen.index(best) + 1, best)
    assert score(trained.network, eval_settings.digits.load_digits_split("validation")) == best


def test_score_counts_and_averages_by_hand():
    class Constant(torch.nn.Linear):
        def forward(self, images):
            return torch.tensor([[1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]).expand(len(images), 10)

    validation = eval_settings.digits.load_digits_split("validation")
    zeros = int((validation.targets == 0).sum())
    expected = np.log(np.e + 9) - zeros / 200
    assert score(Constant(1, 1), validation) == Score(correct=zeros, n=200, loss=pytest.approx(expected, rel=1e-5))


# batches


def test_every_image_once_per_epoch_in_another_order_each_time():
    orders = [torch.cat([targets for _, targets in batches(Recipe()).of_epoch(epoch)]) for epoch in (1, 2)]
    assert all(order.sort().values.tolist() == list(range(23)) for order in orders)
    assert not torch.equal(*orders)


@pytest.mark.parametrize("noise", ["uniform-linf", "gaussian"])
def test_augmented_images_do_not_depend_on_the_batch_size(noise):
    recipe = Recipe(noise=noise, max_shift=1, flip=True)
    small, large = (epoch_in_sample_order(replace(recipe, batch_size=size), epoch=1) for size in (7, 23))
    assert torch.equal(small, large)
    assert not torch.equal(small, epoch_in_sample_order(recipe, epoch=2))


def test_an_image_is_augmented_alike_with_and_without_others_held_out():
    recipe = Recipe(noise="gaussian", max_shift=1, flip=True)
    whole = batches(recipe)
    rest = replace(whole, images=whole.images[9:], targets=whole.targets[9:], sample_indices=np.arange(9, 23))
    images, targets = (torch.cat(column) for column in zip(*rest.of_epoch(1), strict=True))
    assert torch.equal(images[targets.argsort()], epoch_in_sample_order(recipe, epoch=1)[9:])


def test_noise_level_is_the_recipes():
    clean = batches(Recipe()).images
    noisy = epoch_in_sample_order(Recipe(noise="uniform-linf", epsilon=0.25), epoch=1, num_images=23)
    assert 0.24 < (noisy.double() - clean.double()).abs().max() <= 0.25
    assert torch.equal(epoch_in_sample_order(Recipe(noise="gaussian", sigma=0.0), epoch=1), clean)


def test_training_noise_is_never_test_noise():
    noisy = epoch_in_sample_order(Recipe(noise="gaussian", sigma=0.1), epoch=1)
    keys = SampleKeys(seed=0, purpose="eval", dataset="digits", sample_indices=np.arange(23), draw=1)
    drawn = keys.normal("gaussian", (1, 8, 8))
    inside = (noisy > 0) & (noisy < 1)
    used = (noisy - batches(Recipe()).images) / 0.1
    assert abs(np.corrcoef(used[inside], drawn[inside])[0, 1]) < 0.1


def test_shifts_move_whole_images_uniformly_and_zeros_move_in():
    images = torch.rand(900, 1, 4, 5) + 0.1
    keys = SampleKeys(seed=0, purpose="train", dataset="toy", sample_indices=np.arange(900), draw=0)
    padded = functional.pad(images, [1, 1, 1, 1])
    candidates = [padded[:, :, row : row + 4, column : column + 5] for row in range(3) for column in range(3)]
    moved = shifted(images, keys, max_shift=1)
    counts = [int((moved == candidate).flatten(1).all(dim=1).sum()) for candidate in candidates]
    assert sum(counts) == 900
    assert min(counts) > 70  # 100 expected, standard deviation 9.4


def test_half_of_the_images_are_mirrored_left_to_right():
    images = torch.rand(900, 1, 4, 5)
    keys = SampleKeys(seed=0, purpose="train", dataset="toy", sample_indices=np.arange(900), draw=0)
    after = flipped(images, keys)
    is_mirrored = (after == torch.fliplr(images.permute(2, 3, 0, 1)).permute(2, 3, 0, 1)).flatten(1).all(dim=1)
    is_kept = (after == images).flatten(1).all(dim=1)
    assert torch.equal(is_mirrored, ~is_kept)
    assert abs(int(is_mirrored.sum()) - 450) < 60  # standard deviation 15


def test_images_are_flipped_where_the_recipe_says_so():
    plain, after = batches(Recipe()).images, epoch_in_sample_order(Recipe(flip=True), epoch=1)
    is_kept, is_mirrored = ((after == images).flatten(1).all(dim=1) for images in (plain, plain.flip(3)))
    assert (is_kept | is_mirrored).all()
    assert is_kept.any()
    assert is_mirrored.any()


def test_noise_comes_after_shift_and_flip_so_that_no_pixel_stays_black():
    recipe = Recipe(max_shift=4, flip=True, noise="uniform-linf", epsilon=0.1)
    assert (epoch_in_sample_order(recipe, epoch=1) > 0).all()


def test_colour_and_float_images_are_taken_too():
    samples = eval_settings.digits.load_digits_split("test")
    colour = replace(samples, items=np.repeat(samples.items[..., None], 3, axis=3) / 255, color_mode="RGB")
    torch.testing.assert_close(images_tensor(colour), images_tensor(samples).expand(-1, 3, -1, -1))


def test_rows_of_numbers_are_refused():
    samples = replace(eval_settings.digits.load_digits_split("test"), items=np.zeros((597, 2)))
    with pytest.raises(DataError, match="does not hold its images as one array"):
        images_tensor(samples)


# refusals


@pytest.mark.parametrize(
    ("model", "dataset", "device", "error", "message"),
    [
        (registry.model("digits-random-forest"), DIGITS, "cpu", DefinitionError, r"names no network \(arch\)"),
        (replace(LINEAR, transform=lambda image: image), DIGITS, "cpu", DefinitionError, "transform or classify"),
        (replace(LINEAR, label_space="cifar10"), DIGITS, "cpu", DefinitionError, "label space cifar10.*of digits"),
        (LINEAR, replace(DIGITS, fit_split=None), "cpu", DataError, "needs a fit_split"),
        (LINEAR, replace(DIGITS, fit_split="test"), "cpu", DataError, "apart from 'test'"),
        (replace(LINEAR, arch="resnetX"), DIGITS, "cpu", DefinitionError, "Unknown architecture"),
        (LINEAR, DIGITS, "tpu", DeviceError, "Unknown device 'tpu'"),
        (LINEAR, DIGITS, "cuda:99", DeviceError, "'cuda:99' was asked for"),
    ],
)
def test_what_cannot_be_trained_is_told(model, dataset, device, error, message):
    with pytest.raises(error, match=message):
        check_trainable(model, dataset, device=device)


def test_divergence_is_an_error():
    with pytest.raises(TestbedError, match="Lower the learning rate"):
        train(LINEAR, DIGITS, Recipe(epochs=1, learning_rate=1e38), seed=0)


# what is written


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs train.py's function with tiny values; definitions are registered already."""
    monkeypatch.setattr(training_run, "load_definitions", lambda sources: [])
    monkeypatch.chdir(tmp_path)

    def run(**changes):
        options = {"model": "digits-linear", "dataset": "digits", "seeds": [0], "out": None, "override": False,
                   "device": "cpu", "data_root": None, "plugins": (), "quiet": True, "epochs": 1}  # fmt: skip
        return training_run.run_training(**{**options, **changes})

    return run


def test_weights_and_card_are_written_and_described(command, tmp_path, capsys):
    assert command(noise="gaussian", sigma=0.2) == 0
    weights = tmp_path / "checkpoints" / "digits-linear.safetensors"
    card = json.loads(weights.with_suffix(".json").read_text())
    network = load_checkpoint(build_architecture(card["arch"]), weights)
    tested = score(network, eval_settings.digits.load_digits_split("test"))
    assert card["test"]["correct"] == tested.correct
    assert card["sha256"] == file_sha256(weights)
    assert card["recipe"] == {**card["recipe"], "epochs": 1, "noise": "gaussian", "sigma": 0.2}
    assert set(card["data_fingerprints"]) == {"train", "validation", "test"}
    assert (card["num_parameters"], card["seed"], card["num_threads"]) == (650, 0, 1)
    out = capsys.readouterr().out
    assert out.startswith("digits-linear on digits, seed 0: epoch 1 of 1, validation ")
    assert f"({tested.correct}/597). Wrote checkpoints" in out


def test_several_seeds_train_a_network_each_into_one_file(command, tmp_path):
    command(seeds=[2, 5])
    weights = tmp_path / "checkpoints" / "digits-linear.safetensors"
    card, arch = json.loads(weights.with_suffix(".json").read_text()), "models._digits_networks:linear"
    assert [one["seed"] for one in card["networks"]] == [2, 5]
    for position, seed in enumerate((2, 5)):
        alone = train(LINEAR, DIGITS, Recipe(epochs=1), seed=seed)
        network = load_trained_seed(arch, None, weights=weights, seed=seed)
        assert torch.equal(network[1].weight, alone.network[1].weight)
        assert card["networks"][position]["test"]["correct"] == alone.test.correct
    with pytest.raises(DefinitionError, match="holds seed2, seed5, not seed0"):
        load_trained_seed(arch, None, weights=weights, seed=0)


def test_default_file_is_where_a_model_that_looks_for_its_weights_finds_them():
    wide = registry.model("wrn-28-10", "cifar100")
    assert training_run._default_file(wide) == Path("checkpoints/wrn-28-10-cifar100.safetensors")
    assert training_run._default_file(LINEAR) == Path("checkpoints/digits-linear.safetensors")


def test_published_recipe_trains_and_keeps_the_last_epoch(command, tmp_path, capsys):
    assert command(recipe="mscr-cifar10", epochs=3, max_shift=1) == 0
    card = json.loads((tmp_path / "checkpoints" / "digits-linear.json").read_text())
    assert (card["chosen_epoch"], card["chosen_by"], card["validation"]) == (3, "the last one", None)
    assert (card["recipe"]["optimizer"], card["recipe"]["max_shift"], card["num_fitted"]) == ("sgd", 1, 1000)
    assert "epoch 3 of 3, test " in capsys.readouterr().out


def test_existing_weights_are_kept_unless_told_otherwise(command, monkeypatch):
    command()
    monkeypatch.setattr(training_run, "train", None)  # the refusal must come before any training
    with pytest.raises(DataError, match=r"exists\. Give --override"):
        command()


def test_override_replaces_weights(command, tmp_path):
    command()
    before = (tmp_path / "checkpoints" / "digits-linear.safetensors").read_bytes()
    command(override=True, seeds=[1])
    assert (tmp_path / "checkpoints" / "digits-linear.safetensors").read_bytes() != before


def test_weights_are_safetensors_alone(command, tmp_path):
    with pytest.raises(DataError, match="as safetensors"):
        command(out=tmp_path / "weights.pt")


def test_unwritable_folder_is_told(command, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="Give another --out"):
        command(out=tmp_path / "file" / "net.safetensors")


@pytest.mark.parametrize(("module", "name"), [(training_run, "train"), (training_card, "file_sha256")])
def test_interruption_leaves_no_file(command, tmp_path, monkeypatch, capsys, module, name):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, interrupted)
    assert command() == 130
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert "Nothing was written" in capsys.readouterr().err
