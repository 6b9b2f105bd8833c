"""Evaluations in the process of the test: from a plan to the store, as `eval.py` runs them, without its start-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from models.model_base import Model
from registry import registry
from testbed.definitions import Sources
from testbed.engine.devices import choose_devices
from testbed.engine.evaluate import run_evaluations
from testbed.engine.place import Place
from testbed.engine.plan import Request
from testbed.engine.planned import plan_evaluations
from testbed.progress import PlanProgress
from testbed.records import MetricValue
from testbed.store.store import Store


def miniature(name: str, patch: pytest.MonkeyPatch) -> str:
    """The setting `name`, of however many samples while the test lasts; returns the name."""
    table, setting = registry._settings, registry.eval_setting(name)
    patch.setitem(table.values, name, replace(setting, size=None))
    patch.setitem(table.sources, name, table.sources.get(name))
    return name


def metrics_of(
    model: Model, settings: Sequence[str], data_root: Path, patch: pytest.MonkeyPatch
) -> list[dict[str, MetricValue]]:
    """The metrics by name of a model on each of the settings; it is registered while the test lasts."""
    patch.setitem(registry._models.values, (model.name, model.label_space), model)
    patch.setitem(registry._models.sources, (model.name, model.label_space), None)
    found = evaluate((model.name,), settings, data_root, home=data_root)
    return [found[model.name, name] for name in settings]


def evaluate(
    models: Sequence[str], settings: Sequence[str], data_root: Path, *, home: Path
) -> dict[tuple[str, str], dict[str, MetricValue]]:
    """The metrics by (model, setting), also of clean parents; the store is `home/store.sqlite`."""
    place = Place(
        devices=choose_devices(gpus=None, workers=0),
        threads=1,
        sources=Sources(),
        data_root=data_root,
        cache_root=home / "cache",
    )
    with Store.open(home / "store.sqlite") as store:
        planned = plan_evaluations(Request(models=models, eval_settings=settings), store, place, is_quiet=True)
        with PlanProgress(total=planned.num_samples, is_quiet=True) as progress:
            failed = run_evaluations(planned, store, place, progress=progress)
        assert not failed, failed
        complete = store.list_evaluations(status="complete")
        return {(one.model, one.setting): {value.name: value for value in one.metrics()} for one in complete}


def top1_of(model: Model, settings: Sequence[str], data_root: Path, patch: pytest.MonkeyPatch) -> list[float | None]:
    """The accuracies in percent on each of the settings, of however many samples."""
    names = [miniature(name, patch) for name in settings]
    return [metrics["top1"].value for metrics in metrics_of(model, names, data_root, patch)]
