"""The settings that every data set has: clean, in its canonical space, and under noise of a given size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import registry
from registry_base import EvalSettingFamily
from testbed.errors import DefinitionError
from testbed.perturbations.levels import noise_level
from testbed.perturbations.noise import Boundary, GaussianNoise, L0Noise, UniformNoise, usual_boundary
from testbed.records import NORMS, Norm

VERSION = "1"  # of the definitions below; a bump makes stored results of these settings stale
NUM_DRAWS = 10  # Siedel et al. 2022, section 4: k = 10 noisy copies of each test point


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
    """`X-mscr-NORM` at half the minimal class separation, and `X-noise-NORM-EPS` at any level; both with a suffix.

    Args:
        norm: of the ball.
        boundary: at 0 and 1, where it is not the usual one; None for the usual one of the domain.
        suffix: what the names end in.
        is_shared: whether all samples of a draw have the same offsets.
    """

    norm: Norm
    boundary: Boundary | None = None
    suffix: str = ""
    is_shared: bool = False

    def names(self, dataset: Dataset) -> Iterable[str]:
        is_protocol = self.is_shared and dataset.domain == "numbers" and dataset.noise_levels  # that of the 2D sets
        if self.suffix and not is_protocol:
            return ()
        levels = (f"noise-{self.norm}-{level:g}" for level in dataset.noise_levels)
        return [f"{dataset.name}-{stem}{self.suffix}" for stem in (f"mscr-{self.norm}", *levels)]

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        if not name.endswith(self.suffix):
            return None
        stem = name.removesuffix(self.suffix)
        if stem == f"{dataset.name}-mscr-{self.norm}":
            return self._setting(dataset, name, kind="mscr", epsilon=None)
        level = _level(stem, f"{dataset.name}-noise-{self.norm}-")
        return None if level is None else self._setting(dataset, name, kind="noise", epsilon=level)

    def _setting(self, dataset: Dataset, name: str, *, kind: str, epsilon: float | None) -> EvalSetting:
        if self.boundary is not None:
            _check_pixels(dataset, name)
        noise = UniformNoise(
            norm=self.norm,
            epsilon=epsilon,
            boundary=self.boundary or usual_boundary(self.norm, dataset.domain),
            is_shared=self.is_shared,
        )
        shift = Shift(
            family=f"uniform-{self.norm}{self.suffix}",
            name=kind,
            norm=self.norm,
            epsilon=epsilon,
            clean_eval_setting=dataset.name,
        )
        level = "half the minimal class separation" if epsilon is None else f"{epsilon:g}"
        shared = ", the same offsets for all samples" if self.is_shared else ""
        return _noise_setting(dataset, name, noise, shift, f"uniform {self.norm} noise at {level}{shared}")


@dataclass(frozen=True)
class WithoutConflictingFamily:
    """`X-mscr-NORM-without-conflicting`: at half the separation of the samples that no sample of another class equals.

    All samples are evaluated, as in the clean setting; only the noise level is that of the others.
    """

    norm: Norm

    def names(self, dataset: Dataset) -> Iterable[str]:
        return ()

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        whole = f"{dataset.name}-mscr-{self.norm}"
        if name != f"{whole}-without-conflicting":
            return None
        setting = UniformNoiseFamily(self.norm).build(dataset, whole)
        if setting is None or setting.shift is None:
            return None
        return replace(
            setting,
            name=name,
            shift=replace(setting.shift, name="mscr-without-conflicting"),
            excludes_conflicting=True,
            description=f"{setting.description} without conflicting samples",
        )


class L0NoiseFamily:
    """`X-noise-l0-FRACTION`: a fraction of the values of each image replaced."""

    def names(self, dataset: Dataset) -> Iterable[str]:
        return ()

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        fraction = _level(name, f"{dataset.name}-noise-l0-")
        if fraction is None:
            return None
        _check_pixels(dataset, name)
        clean = dataset.name
        shift = Shift(family="uniform-l0", name="noise", norm="l0", epsilon=fraction, clean_eval_setting=clean)
        return _noise_setting(
            dataset, name, L0Noise(fraction=fraction), shift, f"{100 * fraction:g} % of the values replaced"
        )


class GaussianNoiseFamily:
    """`X-noise-gaussian-SIGMA`: normal noise on every value."""

    def names(self, dataset: Dataset) -> Iterable[str]:
        return ()

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        sigma = _level(name, f"{dataset.name}-noise-gaussian-")
        if sigma is None:
            return None
        noise = GaussianNoise(sigma=sigma, boundary="clip" if dataset.domain == "pixels" else "none")
        shift = Shift(family="gaussian", name="noise", epsilon=sigma, clean_eval_setting=dataset.name)
        return _noise_setting(dataset, name, noise, shift, f"Gaussian noise of standard deviation {sigma:g}")


def _noise_setting(
    dataset: Dataset, name: str, noise: Callable[..., object], shift: Shift, description: str
) -> EvalSetting:
    return EvalSetting(
        name=name,
        dataset=StandardDataset(name=dataset.name),
        perturbation_fn_gpu=noise,
        shift=shift,
        num_draws=NUM_DRAWS,
        space="canonical",
        version=VERSION,
        description=f"{dataset.name} with {description}",
    )


def _level(name: str, prefix: str) -> float | None:
    """The noise level that follows `prefix` in a setting's name; None for a name that is none of these."""
    if not name.startswith(prefix) or "@" in name:
        return None
    return noise_level(name.removeprefix(prefix), where=f"EvalSetting '{name}'")


def _check_pixels(dataset: Dataset, name: str) -> None:
    if dataset.domain != "pixels":
        raise DefinitionError(
            f"EvalSetting '{name}' is for pixels in [0, 1], but data set '{dataset.name}' has numbers without bounds. "
            f"Use {dataset.name}-noise-linf-EPS, -l2-EPS, -l1-EPS or -gaussian-SIGMA."
        )


# A family without a suffix takes all that follows its norm for a level, so those with one come first.
FAMILIES: tuple[EvalSettingFamily, ...] = (
    Clean(),
    CleanCanonical(),
    *(UniformNoiseFamily(norm, suffix="-shared", is_shared=True) for norm in NORMS),
    UniformNoiseFamily("linf", boundary="clip", suffix="-clip"),
    *(UniformNoiseFamily(norm) for norm in NORMS),
    *(WithoutConflictingFamily(norm) for norm in NORMS),
    L0NoiseFamily(),
    GaussianNoiseFamily(),
)
for family in FAMILIES:
    registry.add_eval_setting_family(family)
