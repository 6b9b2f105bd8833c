"""Classifiers for `digits`: two deep networks that differ only in their step, a linear one, and two of scikit-learn."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from models._checkpoint import load_trained
from models._estimators import classify, nearest_neighbour, random_forest
from models.model_base import Model
from registry import registry

WEIGHTS = Path(__file__).parent / "weights"
COMMON: dict[str, Any] = {
    "transform": None,
    "eval_batch_size": 128,
    "label_space": "digits",
    "training_data": ("digits",),
    "version": "1",
}


NETWORKS = (
    ("digits-resnet", "resnet", "weight-tied residual network, 10 blocks"),
    ("digits-odenet", "odenet", "neural ODE, 10 Euler steps; the residual network's twin"),
    ("digits-linear", "linear", "linear classifier on the pixels"),
)
ESTIMATORS = (
    ("digits-random-forest", random_forest, "random forest, 100 trees, fitted in every run"),
    ("digits-1nn", nearest_neighbour, "nearest neighbour in L2, fitted in every run"),
)

for name, function, description in NETWORKS:
    arch, weights = f"models._digits_networks:{function}", WEIGHTS / f"{name}.safetensors"
    loader = partial(load_trained, arch, None)
    registry.add_model(
        Model(name=name, arch=arch, classifier_loader=loader, weights=weights, description=description, **COMMON)
    )

for name, fitted, description in ESTIMATORS:
    registry.add_model(
        Model(
            name=name,
            classifier_loader=fitted,
            classify=classify,
            is_differentiable=False,
            description=description,
            **COMMON,
        )
    )
