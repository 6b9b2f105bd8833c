"""Classifiers for `fashion-mnist`: one small network, trained on clean images and, as its twin, on noisy ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from models._checkpoint import load_trained
from models.model_base import Model
from registry import registry

WEIGHTS = Path(__file__).parent / "weights"
ARCH = "models._small_cnn:small_cnn"
NETWORKS = (
    ("fashion-mnist-cnn", "three convolutions, trained on clean images"),
    ("fashion-mnist-cnn-mscr-linf", "the same, trained on uniform noise of radius 81/510, half the class separation"),
)

for name, description in NETWORKS:
    registry.add_model(
        Model(
            name=name,
            arch=ARCH,
            transform=None,
            classifier_loader=partial(load_trained, ARCH, None),
            weights=WEIGHTS / f"{name}.safetensors",
            eval_batch_size=250,  # the test set is 40 whole batches
            label_space="fashion-mnist",
            version="1",
            description=description,
        )
    )
