"""Classifiers for `fashion-mnist`: a small network and its noise-trained twin, a neural ODE and its residual twin.

The last two were trained three times: the run's seed, 0 to 2, says which of the three is evaluated.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from models._checkpoint import load_trained, load_trained_seed
from models.model_base import Model
from registry import registry

WEIGHTS = Path(__file__).parent / "weights"
CNN = "models._small_cnn:small_cnn"
COMMON: dict[str, Any] = {
    "transform": None,
    "eval_batch_size": 250,  # the test set is 40 whole batches
    "label_space": "fashion-mnist",
    "training_data": ("fashion-mnist",),
    "version": "1",
}
CNNS = (
    ("fashion-mnist-cnn", "three convolutions, trained on clean images", None),
    (
        "fashion-mnist-cnn-mscr-linf",
        "the same, trained on uniform noise of radius 81/510, half the class separation",
        "fashion-mnist-cnn",
    ),
)
TWINS = (
    ("fashion-mnist-resnet", "resnet", "weight-tied residual network, 10 blocks; three trainings, --seeds 0 1 2"),
    ("fashion-mnist-odenet", "odenet", "neural ODE, 10 Euler steps; the residual network's twin; --seeds 0 1 2"),
)


def _add(name: str, arch: str, load: Any, description: str, baseline: str | None = None) -> None:
    weights = WEIGHTS / f"{name}.safetensors"
    loader = partial(load, arch, None)
    registry.add_model(
        Model(
            name=name,
            arch=arch,
            classifier_loader=loader,
            weights=weights,
            baseline=baseline,
            description=description,
            **COMMON,
        )
    )


for name, description, baseline in CNNS:
    _add(name, CNN, load_trained, description, baseline)
for name, function, description in TWINS:
    _add(name, f"models._fashion_networks:{function}", load_trained_seed, description)
