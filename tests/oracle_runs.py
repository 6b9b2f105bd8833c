"""Settings evaluated in this process by the oracle of `tests.miniatures`, and by one that takes two classes for each
other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.in_process import evaluate
from tests.miniatures import Oracle, oracle_model
from torch import Tensor

from models.model_base import Model
from registry import registry
from testbed.definitions import load_definitions
from testbed.records import MetricValue

Metrics = dict[str, MetricValue]


class Exchanging(Oracle):
    """The oracle, but for two classes that it takes for each other."""

    def __init__(self, num_classes: int, exchanged: tuple[int, int]) -> None:
        super().__init__(num_classes)
        self.order = list(range(num_classes))
        one, other = exchanged
        self.order[one], self.order[other] = other, one

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images)[:, self.order]


def oracles(
    exchanged: tuple[int, int], *, label_space: str = "imagenet-1k", num_classes: int = 1_000, **fields: Any
) -> tuple[Model, Model]:
    """The oracle, and the one that exchanges two classes."""
    right = replace(oracle_model(label_space=label_space, num_classes=num_classes), **fields)
    return right, replace(right, name="exchanging", classifier_loader=lambda: Exchanging(num_classes, exchanged).eval())


def evaluated(
    settings: Sequence[str], data_root: Path, home: Path, models: Sequence[Model]
) -> dict[tuple[str, str], Metrics]:
    """The metrics by (model, setting). Declared numbers of samples do not count: the data sets are miniatures."""
    load_definitions()
    with _registered(models):
        return evaluate([model.name for model in models], settings, data_root, home=home)


@contextmanager
def _registered(models: Sequence[Model]) -> Iterator[None]:
    """The models, and all settings without their sizes, until the end of the block."""
    known, tables = registry._settings, (registry._models, registry._settings)
    before = [(dict(table.values), dict(table.sources)) for table in tables]
    for model in models:
        registry.add_model(model)
    for name in list(known.values):
        known.values[name] = replace(known.values[name], size=None)
    try:
        yield
    finally:
        for table, (values, sources) in zip(tables, before, strict=True):
            table.values, table.sources = values, sources
