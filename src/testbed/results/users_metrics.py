"""Metrics that users' functions compute: the `metrics_fn` of a setting, and those of `registry.add_metric`.

A function names what it needs: `logits` [n, classes], `targets`, `predictions` and `target_ranks` [n], `class_names`
and `sample_ids`, all of one draw and over the setting's classes; see `testbed.store.evaluation`. A `metrics_fn` gets
`logits` and `targets` as tensors, `targets` over the data set's classes (over the setting's where it has samples of
these alone), and may ask for `image_paths` (the sample ids) and `py_model` (the definition) as well. Each returns
numbers, or MetricValues with intervals of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from registry import registry
from testbed.errors import DataError, TestbedError, UnknownNameError
from testbed.metrics.comparison import NETTED
from testbed.records import MetricValue
from testbed.signatures import argument_names
from testbed.store.evaluation import Evaluation
from testbed.store.views import FAILED_METRICS
from testbed.users_code import users_output

Returned = Mapping[str, float | MetricValue]


def metrics_fn_of(evaluation: Evaluation) -> Callable[..., Returned] | None:
    """The setting's own metrics; None where it has none, or is not registered here."""
    try:
        return registry.eval_setting(evaluation.setting).metrics_fn
    except UnknownNameError:
        return None


def setting_metrics(evaluation: Evaluation) -> list[MetricValue]:
    """What the setting's own `metrics_fn` returns; the names it shares with built-in metrics are then its own."""
    if (function := metrics_fn_of(evaluation)) is None:
        return []
    return _mean_over_draws(FAILED_METRICS, evaluation, partial(_call_metrics_fn, function, evaluation))


def metrics_fn_failure(values: Iterable[MetricValue]) -> str:
    """Why the setting's function failed, among the metrics of an evaluation; empty where it did not."""
    return next((value.reason for value in values if value.name == FAILED_METRICS and value.value is None), "")


@users_output()
def _call_metrics_fn(function: Callable[..., Returned], evaluation: Evaluation, draw: int) -> Returned:
    available = _arguments(evaluation, draw) | {
        "logits": lambda: _tensor(evaluation.in_setting(evaluation.logits(draw))),
        "targets": lambda: _tensor(evaluation.folder_targets().astype(np.int64)),
        "image_paths": evaluation.sample_ids,
        "py_model": lambda: registry.model(evaluation.model, evaluation.label_space),  # one from elsewhere has none
    }
    returned = function(**_wanted(function, available))
    if not isinstance(returned, Mapping):
        raise DataError(f"the function returned {type(returned).__name__}, where a dict of numbers is expected")
    found = {str(name): value for name, value in returned.items() if not isinstance(value, str)}  # remarks: 'max'
    if taken := [name for name in found if name in (FAILED_METRICS, *(NETTED if evaluation.shift else ()))]:
        raise DataError(
            f"the function returned '{taken[0]}', the name of a number that is computed here. Name it otherwise"
        )
    return found


def _tensor(array: NDArray[Any]) -> Any:
    import torch  # the ancestor's metric functions take tensors

    return torch.from_numpy(array)


def registered_metrics(evaluation: Evaluation) -> list[MetricValue]:
    """What the registered metrics make of an evaluation."""
    found = []
    for name, function in registry.metrics.items():
        found += _mean_over_draws(name, evaluation, partial(_named_call, name, function, evaluation))
    return found


@users_output()
def _named_call(name: str, function: Callable[..., Any], evaluation: Evaluation, draw: int) -> Returned:
    return {name: function(**_wanted(function, _arguments(evaluation, draw)))}


def _arguments(evaluation: Evaluation, draw: int) -> dict[str, Callable[[], Any]]:
    """What a metric may ask for, read only where it does, and its to change; all of it counts the setting's classes."""
    return {
        "logits": lambda: evaluation.in_setting(evaluation.logits(draw)),
        "targets": evaluation.targets,
        "predictions": lambda: evaluation.predictions()[draw].copy(),
        "target_ranks": lambda: evaluation.target_ranks()[draw].copy(),
        "class_names": lambda: evaluation.class_names,
        "sample_ids": evaluation.sample_ids,
    }


def _wanted(function: Callable[..., Any], available: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    return {name: available[name]() for name in argument_names(function) if name in available}


def _mean_over_draws(source: str, evaluation: Evaluation, call: Callable[[int], Returned]) -> list[MetricValue]:
    """The mean of each number over the draws. A function that raises costs its own numbers only."""
    try:
        draws = [call(draw) for draw in range(evaluation.num_draws)]
        return [_mean(name, [values[name] for values in draws], evaluation.n, source) for name in draws[0]]
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())
        reason = text if isinstance(error, TestbedError) else f"{type(error).__name__}: {text}"
        return [MetricValue(name=source, value=None, n=evaluation.n, reason=reason)]


def _mean(name: str, returned: Sequence[float | MetricValue], n: int, source: str) -> MetricValue:
    """The mean over draws, and of the bounds of their intervals: draws of the same samples make none wider.

    Undefined where it is in a draw, for the reason that it is there.
    """
    draws = [value if isinstance(value, MetricValue) else _number(float(value), n) for value in returned]
    first = next((value for value in draws if value.value is None), draws[0])
    values, lows, highs = ([getattr(draw, field) for draw in draws] for field in ("value", "ci_low", "ci_high"))
    is_defined = first.value is not None
    return MetricValue(
        name=name,
        value=_all_mean(values) if is_defined else None,
        n=first.n,
        ci_low=_all_mean(lows) if is_defined else None,
        ci_high=_all_mean(highs) if is_defined else None,
        method=f"{first.method}; mean over draws" if first.method and len(draws) > 1 else first.method,
        reason=first.reason,
        detail={**first.detail, "source": source},
    )


def _number(value: float, n: int) -> MetricValue:
    is_finite = bool(np.isfinite(value))
    reason = "" if is_finite else f"the function returned {value}"
    return MetricValue(name="", value=value if is_finite else None, n=n, reason=reason)


def _all_mean(numbers: Sequence[float | None]) -> float | None:
    found = [number for number in numbers if number is not None]
    return float(np.mean(found)) if len(found) == len(numbers) else None
