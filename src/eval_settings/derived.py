"""The settings that every data set has: clean, in its canonical space, and under noise in a norm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import registry
from testbed.errors import DefinitionError
from testbed.perturbations.noise import Boundary, UniformNoise
from testbed.records import Norm

VERSION = "1"  # of the definitions below; a bump makes stored results of these settings stale
NUM_DRAWS = 10  # Siedel et al. 2022, section 4: k = 10 noisy copies of each test point
# Uniform in the box cut to [0, 1] is the paper's noise; a point of a round ball that leaves [0, 1] is moved back to it.
NOISE: tuple[tuple[Norm, Boundary], ...] = (("linf", "truncate"), ("l2", "clip"), ("l1", "clip"))


class Clean:
    """`X`: the data set as it is."""

    def names(self, dataset: Dataset) -> Iterable[str]:
        return (dataset.name,)

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        if name != dataset.name:
            return None
        return EvalSetting(
            name=name, dataset=StandardDataset(name=dataset.name), version=VERSION, description=dataset.description
        )


class CleanCanonical:
    """`X@32px`: clean in the data set's canonical space, the parent of noise for models that resize themselves."""

    def names(self, dataset: Dataset) -> Iterable[str]:
        return (dataset.canonical_setting,)

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        if name != dataset.canonical_setting:
            return None
        return EvalSetting(
            name=name,
            dataset=StandardDataset(name=dataset.name),
            space="canonical",
            version=VERSION,
            description=f"{dataset.name} in the space where its noise is drawn",
        )


@dataclass(frozen=True)
class UniformNoiseFamily:
    """`X-mscr-NORM` at half the minimal class separation, and `X-noise-NORM-EPS` at any level."""

    norm: Norm
    boundary: Boundary

    def names(self, dataset: Dataset) -> Iterable[str]:
        return (f"{dataset.name}-mscr-{self.norm}",)

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        if name == f"{dataset.name}-mscr-{self.norm}":
            return self._setting(dataset, name, kind="mscr", epsilon=None)
        prefix = f"{dataset.name}-noise-{self.norm}-"
        if not name.startswith(prefix) or "@" in name:
            return None
        return self._setting(dataset, name, kind="noise", epsilon=_level(name.removeprefix(prefix), name))

    def _setting(self, dataset: Dataset, name: str, *, kind: str, epsilon: float | None) -> EvalSetting:
        level = "half the minimal class separation" if epsilon is None else f"{epsilon:g}"
        return EvalSetting(
            name=name,
            dataset=StandardDataset(name=dataset.name),
            perturbation_fn_gpu=UniformNoise(norm=self.norm, epsilon=epsilon, boundary=self.boundary),
            shift=Shift(
                family=f"uniform-{self.norm}",
                name=kind,
                norm=self.norm,
                epsilon=epsilon,
                clean_eval_setting=dataset.name,
            ),
            num_draws=NUM_DRAWS,
            space="canonical",
            version=VERSION,
            description=f"{dataset.name} with uniform {self.norm} noise at {level}",
        )


def _level(text: str, name: str) -> float:
    """The noise level in a setting's name, which has one spelling per level."""
    try:
        epsilon = float(text)
    except ValueError:
        raise DefinitionError(f"Setting '{name}' ends in '{text}', which is no noise level: give a number.") from None
    if not 0 < epsilon < float("inf"):
        raise DefinitionError(f"EvalSetting '{name}' has the noise level {text}. It must be a positive number.")
    if f"{epsilon:g}" != text:
        raise DefinitionError(f"EvalSetting '{name}' has the noise level {text}. Write it as {epsilon:g}.")
    return epsilon


registry.add_eval_setting_family(Clean())
registry.add_eval_setting_family(CleanCanonical())
for norm, boundary in NOISE:
    registry.add_eval_setting_family(UniformNoiseFamily(norm, boundary))
