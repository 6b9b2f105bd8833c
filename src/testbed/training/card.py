"""A trained network on disk: parameters as safetensors, and beside them a card that tells how they were made."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from eval_settings.dataset_base import Dataset
from models.model_base import Model
from testbed.errors import DataError
from testbed.fingerprint import file_sha256
from testbed.paths import replacing
from testbed.training.recipe import Recipe
from testbed.training.train import NUM_THREADS, Score, Trained

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
    trained: Trained, *, model: Model, dataset: Dataset, recipe: Recipe, seed: int, device: str, command: str
) -> dict[str, Any]:
    """All that made a network, as plain values; the same for the same inputs.

    Args:
        trained: of `train`.
        model, dataset, recipe, seed, device: what it was trained with.
        command: the command line that repeats it.
    """
    return {
        "model": model.name,
        "arch": model.arch,
        "num_parameters": sum(parameter.numel() for parameter in trained.network.parameters()),
        "dataset": dataset.name,
        "data_fingerprints": trained.fingerprints,
        "recipe": asdict(recipe),
        "seed": seed,
        "command": command,
        "num_fitted": trained.num_fitted,
        "chosen_epoch": trained.epoch,
        "chosen_by": CHOSEN_BY[recipe.keep],
        "validation": None if trained.validation is None else _score(trained.validation),
        "test": _score(trained.test),
        "device": device,
        "num_threads": NUM_THREADS,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }


def save(trained: Trained, content: dict[str, Any], weights: Path) -> None:
    """Writes the parameters to `weights` and the card beside them; neither is ever seen half-written.

    Raises: DataError: the folder cannot be written.
    """
    from safetensors.torch import save as to_bytes

    try:
        weights.parent.mkdir(parents=True, exist_ok=True)
        with replacing(card_path(weights)) as new_card, replacing(weights) as new_weights:
            new_weights.write_bytes(to_bytes(trained.network.state_dict()))
            text = json.dumps({**content, "sha256": file_sha256(new_weights)}, indent=2, allow_nan=False)
            new_card.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"Cannot write '{weights}' ({error.strerror}). Give another --out.") from error


def _score(score: Score) -> dict[str, Any]:
    return {"top1": round(score.top1, 4), "correct": score.correct, "n": score.n, "loss": round(score.loss, 6)}
