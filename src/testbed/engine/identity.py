"""Content fingerprints of models and settings, and the numerics that a result depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from registry import registry
from testbed.class_subset import has_groups
from testbed.engine.arithmetic import Arithmetic
from testbed.fingerprint import file_sha256, model_fingerprint, setting_fingerprint
from testbed.records import IntArray, ModelVersion, SettingVersion
from testbed.run_split import RunSplit
from testbed.signatures import argument_names


def model_version(model: Model) -> ModelVersion:
    """The version of a model: its declared `version`, or else the bytes of its file; always its weights file.

    Raises: DataError: the weights file is not there.
    """
    spec = {
        "definition": _definition(model.version, registry.model_source(model)),
        "arch": model.arch,
        "transform": describe(model.transform),
        "normalization": describe(model.normalization),
        "weights": _weights_sha256(model),
        **({"stochastic": True} if model.stochastic else {}),
        **({} if model.adapts is None else {"adapts": model.adapts}),
        **({} if model.weights_key is None else {"weights_key": model.weights_key}),
        **({} if model.fit_noise is None else {"fit_noise": asdict(model.fit_noise)}),
        **({"classify": describe(model.classify)} if hasattr(model.classify, "identity") else {}),
    }
    identity = model_fingerprint(model.name, model.label_space, spec)
    return ModelVersion(name=model.name, label_space=model.label_space, fingerprint=identity, spec=spec)


def setting_version(
    setting: EvalSetting,
    *,
    dataset_fingerprint: str,
    sample_indices: IntArray | None,
    separation: Mapping[str, Any] | None,
    canonical_size: int | None,
    source: Path | None,
    run_split: RunSplit | None = None,
) -> SettingVersion:
    """The version of a setting whose noise level is filled in. Seeds and the number of draws are not part of it.

    Args:
        setting: with its noise level filled in.
        dataset_fingerprint, sample_indices: which samples; None for all.
        separation: that the noise level comes from: which splits, how many points, which pair.
        canonical_size: of the data set, in pixels; it decides what noise is drawn on.
        source: the file of the definition, which is its version where it declares none.
        run_split: how every run splits the data anew; which samples a run has follows from it and the run's seed.
    """
    sublist = setting.columns
    spec = {
        "definition": _definition(setting.version, source),
        "transform": describe(setting.transform),
        "perturbation_fn_cpu": describe(setting.perturbation_fn_cpu),
        "perturbation_fn_gpu": describe(setting.perturbation_fn_gpu),
        "metrics_fn": describe(setting.metrics_fn),
        "adversarial_attack": None if setting.adversarial_attack is None else _parameters(setting.adversarial_attack),
        "shift": describe(setting.shift),
        "space": setting.space,
        "canonical_size": canonical_size,
        "separation": separation,
        **({"keeps_size": True} if setting.keeps_size else {}),
        **({} if run_split is None else {"run_split": asdict(run_split)}),
    }
    identity = setting_fingerprint(
        setting.name, spec, dataset=dataset_fingerprint, sample_indices=sample_indices, class_sublist=sublist
    )
    return SettingVersion(
        name=setting.name,
        fingerprint=identity,
        dataset_fingerprint=dataset_fingerprint,
        spec=spec,
        shift=setting.shift,
        sample_indices=sample_indices,
        class_sublist=sublist,
    )


def _parameters(attack: Mapping[str, Any]) -> dict[str, Any]:
    """An attack's parameters; the order of a norm may be infinite, which JSON has no number for."""
    is_number = {name: not isinstance(value, float) or isfinite(value) for name, value in attack.items()}
    return {name: value if is_number[name] else str(value) for name, value in attack.items()}


_DTYPES: Mapping[str | None, str] = {"bf16": "bfloat16", "fp16": "float16"}  # of autocast


def numerics(*, device: str, batch_size: int, threads: int, arithmetic: Arithmetic) -> dict[str, Any]:
    """What a logit may depend on in its last bits; results of different numerics are different evaluations.

    A fact that earlier versions did not know of is named only where it departs from what they did.

    Args:
        device: 'cpu' or 'cuda:N', of which the kind counts.
        batch_size: images per forward pass.
        threads: CPU threads per worker.
        arithmetic: how networks compute.
    """
    kind = "cpu" if device == "cpu" else "cuda"
    return {
        "dtype": _DTYPES.get(arithmetic.precision, "float32"),
        "tf32": _tf32(kind, arithmetic),
        "device": kind,
        "batch_size": batch_size,
        "threads": threads,
        **({"channels_last": True} if arithmetic.channels_last else {}),
        **({"compiled": True} if arithmetic.is_compiled else {}),
    }


def _tf32(kind: str, arithmetic: Arithmetic) -> bool | str:
    """Where float32 is computed as TF32: PyTorch's own default is convolutions alone."""
    if kind == "cpu" or arithmetic.precision not in (None, "tf32"):
        return False
    return True if arithmetic.precision == "tf32" else "convolutions"


def cut_facts(setting: EvalSetting, model: Model) -> dict[str, bool]:
    """What a reader of the logits must know of a setting that looks at some classes, or at groups of classes.

    `is_cut_by_model`: the model itself picks the setting's columns, so that its logits are of these alone.
    `sums_votes`: a group of columns has the sum of its columns' votes, not the largest logit.
    """
    takes_sublist = model.classify is not None and "class_sublist" in argument_names(model.classify)
    is_cut = setting.class_sublist is not None and takes_sublist
    sums_votes = model.answers == "votes" and has_groups(setting.columns)
    return {name: True for name, holds in (("is_cut_by_model", is_cut), ("sums_votes", sums_votes)) if holds}


def describe(value: object) -> Any:
    """A JSON-able description of a value of a definition; code is covered by the definition's file or version.

    A value with a method `identity()` describes itself.
    """
    if value is None:
        return None
    if (identity := getattr(value, "identity", None)) is not None and not isinstance(value, type):
        return {"type": type(value).__name__, **identity()}
    if is_dataclass(value) and not isinstance(value, type):
        # a field that later versions added keeps stored definitions what they are, as long as it is not used
        unused = {f.name for f in fields(value) if f.metadata.get("is_later") and getattr(value, f.name) == f.default}
        return {"type": type(value).__name__, **{name: v for name, v in asdict(value).items() if name not in unused}}
    function: Callable[..., Any] = value  # type: ignore[assignment]
    return {"code": getattr(function, "__qualname__", type(value).__name__)}


def _definition(version: str | None, source: Path | None) -> str:
    if version is not None:
        return f"version {version}"
    return "in memory" if source is None else f"file {file_sha256(source)}"


def _weights_sha256(model: Model) -> str | None:
    file = model.weights_file()
    if file is None:
        return None
    status = file.stat()
    return _sha256(file, status.st_size, status.st_mtime_ns)


@lru_cache
def _sha256(file: Path, size: int, changed: int) -> str:
    """Of a file in a certain state: a plan asks for the same weights again and again."""
    return file_sha256(file)
