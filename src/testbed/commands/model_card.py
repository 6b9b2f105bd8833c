"""What the registry knows of a model, for people: what it is, what it takes, and where its weights are."""

from __future__ import annotations

from typing import Any

from models.model_base import Model
from registry import Registry
from testbed.data.weights import FoundWeights, PublishedWeights
from testbed.engine.identity import describe
from testbed.errors import DataError, UnknownNameError


def model_cards(registry: Registry, name: str) -> dict[str, dict[str, Any]]:
    """By label space, the JSON-able definition of each model of a name; none where there is no such model."""
    try:
        models = [registry.model(name, space) for space in registry.label_spaces(name) or (None,)]
    except UnknownNameError:
        return {}
    return {model.label_space: _card(registry, model) for model in models}


def _card(registry: Registry, model: Model) -> dict[str, Any]:
    file = registry.model_source(model)
    return {
        "name": model.name,
        "label_space": model.label_space,
        "description": model.description,
        "arch": model.arch,
        "num_outputs": model.num_outputs,
        "answers": model.answers,
        "training_data": list(model.training_data),
        "baseline": model.baseline,
        "transform": describe(model.transform),
        "normalization": describe(model.normalization),
        "classify": describe(model.classify),
        "eval_batch_size": model.eval_batch_size,
        "is_fitted": model.is_fitted,
        "version": model.version,
        "file": None if file is None else str(file),
        "weights": _weights(model),
    }


def _weights(model: Model) -> str | None:
    """The file of the weights, or what is to be done for one; nothing is downloaded for a look."""
    if isinstance(weights := model.weights, PublishedWeights | FoundWeights):
        return str(weights.found() or f"Not on this machine. {weights.remedy()}")
    if callable(weights):
        return "found by a function when the model is evaluated"
    try:
        return None if weights is None else str(model.weights_file())
    except DataError as error:
        return f"Not on this machine. {error}"
