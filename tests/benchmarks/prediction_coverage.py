"""Prints how often 95 % prediction intervals hold a further model: python tests/benchmarks/prediction_coverage.py

Models are simulated with a known line, a known spread that a family shares in part, and accuracies on numbers of images
that differ; then a further model of a further family is measured on its own number of images.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from testbed.metrics.prediction import Expected, fit

Array = NDArray[np.float64]
SLOPE, INTERCEPT = 1.1, -1.5


class World(NamedTuple):
    """Models as they could be.

    Attributes:
        name: what is special.
        models, per_family: how many there are.
        own, family: standard deviations on the logit scale of what is a model's own, and of what its family shares.
        x_n, y_n: the least and most images that models are measured on.
        new_n: images that the further model is measured on, on both axes.
        shared: the part of the measurement's variance that is the same for all models, as on one set of images.
    """

    name: str
    models: int
    per_family: int
    own: float
    family: float
    x_n: tuple[int, int] = (50_000, 50_000)
    y_n: tuple[int, int] = (10_000, 10_000)
    new_n: int = 10_000
    shared: float = 0.0


WORLDS = (
    World("independent models", 80, 1, 0.12, 0.0),
    World("few models", 10, 1, 0.12, 0.0),
    World("families of five", 80, 5, 0.08, 0.1),
    World("families that are nearly alike", 60, 6, 0.02, 0.15),
    World("no spread but that of measurement", 80, 1, 0.0, 0.0, (3_000, 3_000), (2_000, 2_000), 2_000),
    World("numbers of images from 500 to 50,000", 80, 1, 0.08, 0.0, (500, 50_000), (500, 50_000), 10_000),
    World("a further model on 500 images", 80, 1, 0.05, 0.0, new_n=500),
    World("errors that are two thirds shared", 80, 1, 0.0, 0.0, (10_000, 10_000), shared=2 / 3),
)


def covered(world: World, *, repeats: int, seed: int = 0) -> float:
    """The share of simulated further models that lie within their interval."""
    rng = np.random.default_rng(seed)
    return float(np.mean([_is_within(world, rng) for _ in range(repeats)]))


def _is_within(world: World, rng: np.random.Generator) -> bool:
    families = np.append(np.arange(world.models) // world.per_family, -1)
    of_family = rng.normal(0, world.family, world.models + 1)[families]
    u = rng.normal(1, 0.6, len(families))
    v = INTERCEPT + SLOPE * u + of_family + rng.normal(0, world.own, len(families))
    x_n, y_n = (_sizes(rng, bounds, world) for bounds in (world.x_n, world.y_n))
    x, y = (_measured(rng, place, n, world.shared) for n, place in ((x_n, u), (y_n, v)))
    line = fit(x[:-1], y[:-1], x_n=x_n[:-1], y_n=y_n[:-1], families=families[:-1])
    expected = line.expected(x[-1:], x_n[-1:], y_n[-1:])
    return is_within(expected, y[-1:])


def _measured(rng: np.random.Generator, places: Array, n: NDArray[np.int64], shared: float) -> Array:
    if not shared:
        return np.asarray(100 * rng.binomial(n, expit(places)) / n)
    error = np.sqrt(shared) * rng.normal() + np.sqrt(1 - shared) * rng.normal(size=len(places))
    return np.asarray(100 * expit(places + error / np.sqrt(n * expit(places) * expit(-places))))


def _sizes(rng: np.random.Generator, bounds: tuple[int, int], world: World) -> NDArray[np.int64]:
    low, high = np.log(bounds).tolist()
    sizes = np.exp(rng.uniform(low, high, world.models)).round()
    return np.append(sizes, world.new_n).astype(np.int64)


def is_within(expected: Expected, y: Array) -> bool:
    """Whether all accuracies lie within their intervals."""
    return bool(np.all((expected.low <= y) & (y <= expected.high)))


def leaving_one_out(x: Array, y: Array, x_n: Array, y_n: Array, families: NDArray[np.str_]) -> Iterator[bool]:
    """For each model, whether it lies within the interval of a line that is fitted on all others."""
    for index in range(len(x)):
        rest = np.arange(len(x)) != index
        line = fit(x[rest], y[rest], x_n=x_n[rest], y_n=y_n[rest], families=families[rest])
        one = slice(index, index + 1)
        yield is_within(line.expected(x[one], x_n[one], y_n[one]), y[one])


if __name__ == "__main__":
    for found in WORLDS:
        print(f"{found.name:45} {100 * covered(found, repeats=5000):6.2f} %", flush=True)
