"""A trained network on disk: parameters as safetensors, and beside them a card that tells how they were made."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_settings.dataset_base import Dataset
from models.model_base import Model
from testbed.errors import DataError
from testbed.fingerprint import file_sha256
from testbed.paths import replacing
from testbed.training.recipe import Recipe
from testbed.training.train import NUM_THREADS, Score, Trained

if TYPE_CHECKING:
    from torch import Tensor

PACKAGES = ("torch", "numpy")
CHOSEN_BY = {"best": "validation top1, then lower validation loss, then earlier epoch", "last": "the last one"}


def card_path(weights: Path) -> Path:
    """Where the card of a file of weights lies."""
    return weights.with_suffix(".json")


def check_free(weights: Path, *, override: bool) -> None:
    """Raises a DataError if `weights` has a wrong ending, or it or its card exists and may not be overwritten."""
    if weights.suffix != ".safetensors":
        raise DataError(f"Weights are written as safetensors, not to '{weights}'. Give --out a name.safetensors.")
    if not override and (taken := [path for path in (weights, card_path(weights)) if path.exists()]):
        raise DataError(f"'{taken[0]}' exists. Give --override to replace it, or another --out.")


def card(
    trained: Mapping[int, Trained], *, model: Model, dataset: Dataset, recipe: Recipe, device: str, command: str
) -> dict[str, Any]:
    """All that made the networks of a file, as plain values; the same for the same inputs.

    Args:
        trained: of `train`, by seed. What several networks do not share stands under "networks".
        model, dataset, recipe, device: what they were trained with.
        command: the command line that repeats it.
    """
    each = [_facts(seed, of_seed) for seed, of_seed in trained.items()]
    any_of_them = next(iter(trained.values()))
    return {
        "model": model.name,
        "arch": model.arch,
        "num_parameters": sum(parameter.numel() for parameter in any_of_them.network.parameters()),
        "dataset": dataset.name,
        "data_fingerprints": any_of_them.fingerprints,
        "recipe": asdict(recipe),
        "command": command,
        "num_fitted": any_of_them.num_fitted,
        "chosen_by": CHOSEN_BY[recipe.keep],
        **(each[0] if len(each) == 1 else {"networks": each}),
        "device": device,
        "num_threads": NUM_THREADS,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }


def save(trained: Mapping[int, Trained], content: dict[str, Any], weights: Path) -> None:
    """Writes the parameters to `weights` and the card beside them; neither is ever seen half-written.

    Those of several networks have the name `seedN.` before their own, see `models._checkpoint.load_trained_seed`.

    Raises: DataError: the folder cannot be written.
    """
    from safetensors.torch import save as to_bytes

    try:
        weights.parent.mkdir(parents=True, exist_ok=True)
        with replacing(card_path(weights)) as new_card, replacing(weights) as new_weights:
            new_weights.write_bytes(to_bytes(_state(trained)))
            text = json.dumps({**content, "sha256": file_sha256(new_weights)}, indent=2, allow_nan=False)
            new_card.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"Cannot write '{weights}' ({error.strerror}). Give another --out.") from error


def _facts(seed: int, trained: Trained) -> dict[str, Any]:
    return {
        "seed": seed,
        "chosen_epoch": trained.epoch,
        "validation": None if trained.validation is None else _score(trained.validation),
        "test": _score(trained.test),
    }


def _state(trained: Mapping[int, Trained]) -> dict[str, Tensor]:
    states = {seed: of_seed.network.state_dict() for seed, of_seed in trained.items()}
    if len(states) == 1:
        return next(iter(states.values()))
    return {f"seed{seed}.{name}": value for seed, state in states.items() for name, value in state.items()}


def _score(score: Score) -> dict[str, Any]:
    return {"top1": round(score.top1, 4), "correct": score.correct, "n": score.n, "loss": round(score.loss, 6)}
