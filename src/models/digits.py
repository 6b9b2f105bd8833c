"""Classifiers for `digits`: two deep networks that differ only in their step, a linear one, and two of scikit-learn."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from models._estimators import FittedEstimator, classify, fit
from models.model_base import Model
from registry import registry
from testbed.records import Samples

WEIGHTS = Path(__file__).parent / "weights"
COMMON: dict[str, Any] = {"transform": None, "eval_batch_size": 128, "label_space": "digits", "version": "1"}


def _trained(arch: str, weights: Path) -> Any:
    from models._architecture import build_architecture
    from models._checkpoint import load_checkpoint

    return load_checkpoint(build_architecture(arch), weights)


def _random_forest(seed: int, dataset: Samples) -> FittedEstimator:
    from sklearn.ensemble import RandomForestClassifier

    return fit(RandomForestClassifier(n_estimators=100, n_jobs=1, random_state=seed), dataset)


def _nearest_neighbour(dataset: Samples) -> FittedEstimator:
    from sklearn.neighbors import KNeighborsClassifier

    # a tree, not 'brute': its distances are sums of their own, so that they cannot depend on the batch
    return fit(KNeighborsClassifier(n_neighbors=1, algorithm="kd_tree", n_jobs=1), dataset)


NETWORKS = (
    ("digits-resnet", "resnet", "weight-tied residual network, 10 blocks"),
    ("digits-odenet", "odenet", "neural ODE, 10 Euler steps; the residual network's twin"),
    ("digits-linear", "linear", "linear classifier on the pixels"),
)
ESTIMATORS = (
    ("digits-random-forest", _random_forest, "random forest, 100 trees, fitted in every run"),
    ("digits-1nn", _nearest_neighbour, "nearest neighbour in L2, fitted in every run"),
)

for name, function, description in NETWORKS:
    arch, weights = f"models._digits_networks:{function}", WEIGHTS / f"{name}.safetensors"
    loader = partial(_trained, arch, weights)
    registry.add_model(
        Model(name=name, arch=arch, classifier_loader=loader, weights=weights, description=description, **COMMON)
    )

for name, fitted, description in ESTIMATORS:
    registry.add_model(Model(name=name, classifier_loader=fitted, classify=classify, description=description, **COMMON))
