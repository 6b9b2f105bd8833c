"""What the registry knows of a setting, for people: what it is, what it measures, and where its data are to be had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting
from eval_settings.source_base import DataSource
from registry import Registry
from testbed.class_subset import columns_of
from testbed.data.class_order import LABEL_SPACES
from testbed.data.data_check import place_of, published_size, source_of
from testbed.engine.identity import describe
from testbed.errors import DataError
from testbed.metrics.comparison import NETTED
from testbed.paths import data_root as default_root
from testbed.signatures import function_name

# of label spaces whose names are not at hand without a large library or the data
NUM_CLASSES = {"imagenet-1k": 1_000, "tiny-imagenet": 200, "mnist": 10, "svhn": 10}
OWN_METRICS = ("top1", "top5", "balanced_accuracy", "worst_class_accuracy")
TOP5 = "top5"


def setting_card(registry: Registry, setting: EvalSetting, *, data_root: Path | None) -> dict[str, Any]:
    """The definition of a setting, the facts about its data, and the names of its metrics, all JSON-able.

    Args:
        registry: with all definitions.
        setting: of it.
        data_root: folder that holds data sets; TESTBED_DATA, or `data`, if None. Nothing there is opened.
    """
    dataset = registry.datasets.get(setting.dataset.name or "")
    source = None if dataset is None else source_of(dataset, setting)
    num_classes = _num_classes(setting, dataset)
    return {
        "name": setting.name,
        "description": setting.description,
        "dataset": setting.dataset.name or str(setting.dataset.path),
        "split": setting.dataset.split or (None if dataset is None else dataset.eval_split),
        "n": setting.limit or (setting.size if dataset is None else published_size(setting, dataset)),
        "num_classes": num_classes,
        "num_columns": None if setting.columns is None else len(columns_of(setting.columns)),
        "metrics": list(_metrics(registry, setting, num_classes)),
        "definition": _definition(registry, setting),
        **_data(source, data_root),
    }


def _definition(registry: Registry, setting: EvalSetting) -> dict[str, Any]:
    """What the setting does to the images; what is not used is left out."""
    file = registry.setting_source(setting.name)
    facts = {
        "version": setting.version,
        "file": None if file is None else str(file),
        "copies": None if setting.dataset.corrupted is None else list(setting.dataset.corrupted),
        "transform": _described(setting.transform),
        "perturbation_fn_cpu": _described(setting.perturbation_fn_cpu),
        "perturbation_fn_gpu": _described(setting.perturbation_fn_gpu),
        "samples": _described(setting.idx_subsample_list) if callable(setting.idx_subsample_list) else None,
        "clean_eval_setting": setting.shift.clean_eval_setting if setting.shift else None,
        "parent_eval_setting": setting.parent_eval_setting,
        "num_draws": setting.num_draws if setting.num_draws > 1 else None,
        "space": setting.space if setting.perturbation_fn_gpu or setting.perturbation_fn_cpu else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _described(value: object) -> Any:
    """What a function of the setting does; of one whose identity needs a file that is not there, what is missing."""
    try:
        return describe(value)
    except DataError as error:
        return {"type": type(value).__name__, "missing": str(error)}


def _num_classes(setting: EvalSetting, dataset: Dataset | None) -> int | None:
    if setting.columns is not None:
        return len(setting.columns)
    space = (dataset and dataset.label_space) or ""
    return len(LABEL_SPACES[space]) if space in LABEL_SPACES else NUM_CLASSES.get(space)


def _metrics(registry: Registry, setting: EvalSetting, num_classes: int | None) -> Iterator[str]:
    yield from (name for name in OWN_METRICS if name != TOP5 or num_classes is None or num_classes > 5)
    if setting.metrics_fn is not None:
        yield f"those of {function_name(setting.metrics_fn)}"
    yield from registry.metrics
    if setting.shift is not None:
        yield from (f"{name} (against {setting.shift.clean_eval_setting})" for name in NETTED)


def _data(source: DataSource | None, data_root: Path | None) -> dict[str, Any]:
    """Where the data come from and belong; nothing where nobody says it."""
    if source is None:
        return {}
    root = (data_root or default_root()).absolute()
    place = place_of(source, data_root)
    return {
        "title": source.title,
        "address": source.homepage,
        "licence": source.licence,
        "citation": source.citation,
        "get": source.get,
        "put_in": str(root / source.places[0]) if source.places else None,
        "other_places": list(source.places[1:]),
        "layout": source.layout,
        "num_samples": dict(source.num_samples),
        "is_there": None if not source.places else place is not None,
        "found_in": None if place is None else str(place),
    }
