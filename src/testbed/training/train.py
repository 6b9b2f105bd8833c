"""Training a registered network on a data set: a recipe, a seed, and which epoch is kept.

Only the data set's fit split is learned from, and the split that is evaluated is counted once, at the end: it decides
nothing. On a CPU the same recipe and seed give the same network: one thread, and keyed draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from eval_settings.dataset_base import Dataset
from models._architecture import build_architecture, find_architecture
from models.model_base import Model
from testbed.data.datasets import load_samples
from testbed.errors import DataError, DefinitionError, DeviceError, TestbedError
from testbed.randomness import seeded_globals, stream_key
from testbed.records import Samples
from testbed.training.batches import Batches, images_tensor
from testbed.training.holdout import Learning, learning_samples
from testbed.training.recipe import Recipe
from testbed.training.steps import Steps

if TYPE_CHECKING:
    from torch import nn

NUM_THREADS = 1  # sums over several threads would depend on their number
SCORE_BATCH_SIZE = 256


@dataclass(frozen=True, kw_only=True)
class Score:
    """How many of a split's clean images a network has right, and its mean cross-entropy on them in nats."""

    correct: int
    n: int
    loss: float

    @property
    def top1(self) -> float:
        """Percent right."""
        return 100 * self.correct / self.n


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The network after the epoch that is kept.

    Args:
        network: on the CPU, in evaluation mode, without its normalization.
        epoch: the kept one, counted from 1.
        num_fitted: how many images were learned from.
        validation: its score on what decided; None where the last epoch is kept.
        test: its score on the split that settings evaluate.
        fingerprints: of the splits that were used, by name.
    """

    network: nn.Module
    epoch: int
    num_fitted: int
    validation: Score | None
    test: Score
    fingerprints: dict[str, str]


class OnEpoch(Protocol):
    """Told the mean training loss of every epoch, and the validation score where there is one."""

    def __call__(self, loss: float, validation: Score | None, /) -> None: ...


def check_trainable(model: Model, dataset: Dataset, *, device: str) -> None:
    """Raises a TestbedError if `train` would; opens no data and builds no network."""
    if model.arch is None:
        raise DefinitionError(
            f"Model '{model.name}' cannot be trained: its definition names no network (arch). Models of scikit-learn "
            "are fitted in every run and need no training."
        )
    if model.transform is not None or model.classify is not None:
        raise DefinitionError(
            f"Model '{model.name}' cannot be trained: it has a transform or classify of its own. Only networks that "
            "take a data set's images as they are can be."
        )
    if dataset.label_space not in (None, model.label_space):
        raise DefinitionError(
            f"Model '{model.name}' is for the label space {model.label_space}, data set '{dataset.name}' has the "
            f"classes of {dataset.label_space}. Choose another of the two."
        )
    if dataset.fit_split is None or dataset.fit_split == dataset.eval_split:
        raise DataError(
            f"Data set '{dataset.name}' has the splits {', '.join(dataset.splits)}. Training needs a fit_split to "
            f"learn from, apart from '{dataset.eval_split}', which is evaluated."
        )
    find_architecture(model.arch)
    _check_device(device)


def train(
    model: Model, dataset: Dataset, recipe: Recipe, *,
    seed: int, device: str = "cpu", data_root: Path | None = None, on_epoch: OnEpoch | None = None,
) -> Trained:  # fmt: skip
    """The model's network, trained from scratch, as it was after the epoch that the recipe keeps.

    The best epoch is that of the best clean validation accuracy; equal ones are told apart by the lower validation
    loss, then by the earlier epoch.

    Args:
        model: with `arch`, and without a transform.
        dataset: with a fit split, held as arrays.
        recipe: see `Recipe`.
        seed: of the first parameters, the order of the images, their shifts, flips and noise.
        device: 'cpu', 'cuda' or 'cuda:N'.
        data_root: folder that holds data sets.
        on_epoch: told after every epoch.
    Raises: TestbedError: see `check_trainable`; data that cannot be loaded; or a loss that is no longer finite.
    """
    check_trainable(model, dataset, device=device)
    learning = learning_samples(dataset, recipe, data_root=data_root)
    test = load_samples(dataset, dataset.eval_split, data_root=data_root)
    used = [part for part in (learning.fit, learning.validation, test) if part is not None]
    with _one_thread(), seeded_globals(stream_key(seed, purpose="train", dataset=dataset.name, stream="init")):
        network = _with_normalization(model, num_classes=len(test.class_names)).to(device)
        steps = Steps(network, _batches(learning, recipe, seed=seed, device=device))
        epoch, best = _fit(network, steps, recipe, learning.validation, on_epoch)
        reached = score(network, test)  # before the network leaves its device
        return Trained(
            network=network[-1].cpu(),
            epoch=epoch,
            num_fitted=len(learning.fit),
            validation=best,
            test=reached,
            fingerprints={part.split: part.fingerprint for part in used},
        )


def score(network: nn.Module, samples: Samples) -> Score:
    """The network's score on the clean images of a split; the network is left in evaluation mode."""
    import torch
    from torch.nn.functional import cross_entropy

    device = next(network.parameters()).device
    targets = torch.from_numpy(samples.targets).long().to(device)
    network.eval()
    with torch.inference_mode():
        images = images_tensor(samples).to(device)
        starts = range(0, len(images), SCORE_BATCH_SIZE)
        logits = torch.cat([network(images[start : start + SCORE_BATCH_SIZE]) for start in starts])
        correct = int((logits.argmax(dim=1) == targets).sum())
        return Score(correct=correct, n=len(targets), loss=float(cross_entropy(logits, targets)))


def _fit(
    network: nn.Module, steps: Steps, recipe: Recipe, validation: Samples | None, on_epoch: OnEpoch | None
) -> tuple[int, Score | None]:
    """Trains `network` in place, leaves it at the epoch that is kept, and returns that and its validation score."""
    best, best_epoch, best_state = None, recipe.epochs, network.state_dict()
    for epoch in range(1, recipe.epochs + 1):
        loss = steps.run_epoch(epoch)
        reached = None if validation is None else score(network, validation)
        for value in (loss, reached.loss if reached else 0.0):
            if not math.isfinite(value):
                raise TestbedError(f"The loss is {value} after epoch {epoch}. Lower the learning rate.")
        if reached is not None and (best is None or (reached.correct, -reached.loss) > (best.correct, -best.loss)):
            best, best_epoch = reached, epoch
            best_state = {name: value.clone() for name, value in network.state_dict().items()}
        if on_epoch is not None:
            on_epoch(loss, reached)
    network.load_state_dict(best_state)
    return best_epoch, best


def _with_normalization(model: Model, *, num_classes: int) -> nn.Sequential:
    from torch import nn

    from testbed.worker.classifier import Normalize

    normalize = Normalize(model.normalization) if model.normalization else nn.Identity()
    return nn.Sequential(normalize, build_architecture(model.arch or "", num_classes=num_classes))


def _batches(learning: Learning, recipe: Recipe, *, seed: int, device: str) -> Batches:
    import torch

    return Batches(
        images=images_tensor(learning.fit).to(device),
        targets=torch.from_numpy(learning.fit.targets).long().to(device),
        sample_indices=learning.indices,
        recipe=recipe,
        seed=seed,
        dataset=learning.fit.dataset,
    )


def _check_device(device: str) -> None:
    import torch

    kind, _, index = device.partition(":")
    if kind not in ("cpu", "cuda") or (index and not index.isdecimal()):
        raise DeviceError(f"Unknown device '{device}'. Use cpu, cuda or cuda:N.")
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise DeviceError(f"Device '{device}' was asked for, but {torch.cuda.device_count()} CUDA devices are present.")


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(NUM_THREADS)
    try:
        yield
    finally:
        torch.set_num_threads(before)
