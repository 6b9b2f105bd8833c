"""Settings by name: which noise they stand for, which of them listings show, and names that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_settings.dataset_base import Dataset
from eval_settings.derived import FAMILIES
from eval_settings.eval_setting_base import EvalSetting
from registry import Registry
from testbed.engine.identity import describe
from testbed.errors import DefinitionError, UnknownNameError
from testbed.perturbations.noise import GaussianNoise, L0Noise, UniformNoise

PHOTOS = Dataset(name="photos", path=Path("photos"), canonical_size=32)
POINTS = Dataset(name="points", path=Path("points.npz"), domain="numbers", noise_levels=(0.001, 0.02))
ROWS = Dataset(name="rows", path=Path("rows.npz"), domain="numbers")


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = Registry()
    for dataset in (PHOTOS, POINTS, ROWS):
        registry.add_dataset(dataset)
    for family in FAMILIES:
        registry.add_eval_setting_family(family)
    return registry


SETTINGS = [  # name, its noise, the shift's family, name, norm and epsilon
    ("photos-mscr-linf", UniformNoise(norm="linf", epsilon=None), "uniform-linf", "mscr", "linf", None),
    ("photos-noise-linf-0.1", UniformNoise(norm="linf", epsilon=0.1), "uniform-linf", "noise", "linf", 0.1),
    ("photos-noise-l2-1.5", UniformNoise(norm="l2", epsilon=1.5, boundary="clip"), "uniform-l2", "noise", "l2", 1.5),
    ("photos-mscr-l1", UniformNoise(norm="l1", epsilon=None, boundary="clip"), "uniform-l1", "mscr", "l1", None),
    ("photos-noise-linf-1e-05-clip", UniformNoise(norm="linf", epsilon=1e-05, boundary="clip"),
     "uniform-linf-clip", "noise", "linf", 1e-05),
    ("photos-mscr-linf-shared", UniformNoise(norm="linf", epsilon=None, is_shared=True),
     "uniform-linf-shared", "mscr", "linf", None),
    ("photos-noise-l2-2-shared", UniformNoise(norm="l2", epsilon=2.0, boundary="clip", is_shared=True),
     "uniform-l2-shared", "noise", "l2", 2.0),
    ("photos-noise-l0-0.1", L0Noise(fraction=0.1), "uniform-l0", "noise", "l0", 0.1),
    ("photos-noise-gaussian-0.08", GaussianNoise(sigma=0.08), "gaussian", "noise", None, 0.08),
    ("rows-mscr-linf", UniformNoise(norm="linf", epsilon=None, boundary="none"), "uniform-linf", "mscr", "linf", None),
    ("rows-noise-l1-3", UniformNoise(norm="l1", epsilon=3.0, boundary="none"), "uniform-l1", "noise", "l1", 3.0),
    ("rows-noise-linf-0.01-shared", UniformNoise(norm="linf", epsilon=0.01, boundary="none", is_shared=True),
     "uniform-linf-shared", "noise", "linf", 0.01),
    ("rows-noise-gaussian-2", GaussianNoise(sigma=2.0, boundary="none"), "gaussian", "noise", None, 2.0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "noise", "family", "kind", "norm", "epsilon"), SETTINGS, ids=[row[0] for row in SETTINGS]
)
def test_a_name_stands_for_its_noise(
    registry: Registry, name: str, noise: object, family: str, kind: str, norm: str | None, epsilon: float | None
) -> None:
    setting = registry.eval_setting(name)
    shift = setting.shift
    assert setting.perturbation_fn_gpu == noise
    assert shift is not None
    assert (shift.family, shift.name, shift.norm, shift.epsilon) == (family, kind, norm, epsilon)
    assert shift.clean_eval_setting == name.partition("-")[0]
    assert (setting.num_draws, setting.space, setting.needs_separation) == (10, "canonical", kind == "mscr")


def test_listings_show_the_separation_based_settings_and_the_declared_levels(registry: Registry) -> None:
    """Shared offsets, the protocol of the 2D sets, are listed for numbers with declared levels alone."""
    norms = ("linf", "l2", "l1")
    stems = [f"{kind}-{norm}{end}" for norm in norms for kind, end in
             (("mscr", ""), ("noise", "-0.001"), ("noise", "-0.02"))]  # fmt: skip
    expected = {"photos", "photos@32px", *(f"photos-mscr-{norm}" for norm in norms)}
    expected |= {"rows", "rows@canonical", *(f"rows-mscr-{norm}" for norm in norms)}
    expected |= {"points", "points@canonical", *(f"points-{stem}{end}" for stem in stems for end in ("", "-shared"))}
    assert registry.eval_setting_names() == sorted(expected)


def test_every_listed_name_is_a_setting_of_that_name(registry: Registry) -> None:
    for name in registry.eval_setting_names():
        assert registry.eval_setting(name).name == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("photos-noise-linf-much", "EvalSetting 'photos-noise-linf-much' ends in 'much', which is no noise level"),
        ("photos-noise-linf-0.1-sharde", "ends in '0.1-sharde', which is no noise level: give a number"),
        ("photos-noise-l2-0", "has the noise level 0. It must be a positive number"),
        ("photos-noise-gaussian--1", "has the noise level -1. It must be a positive number"),
        ("photos-noise-l1-1e-1", "has the noise level 1e-1. Write it as 0.1"),
        ("photos-noise-linf-.1-shared", "has the noise level .1. Write it as 0.1"),
        ("photos-noise-l0-2", r"L0Noise has fraction 2.0. It must be in \[0, 1\]"),
        (
            "rows-noise-l0-0.1",
            r"'rows-noise-l0-0.1' is for pixels in \[0, 1\], but data set 'rows' has numbers without",
        ),
        ("rows-mscr-linf-clip", "Use rows-noise-linf-EPS, -l2-EPS, -l1-EPS or -gaussian-SIGMA"),
    ],
)
def test_a_level_has_one_spelling_and_suits_the_data(registry: Registry, name: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        registry.eval_setting(name)


@pytest.mark.parametrize(
    "name", ["photos-mscr-l0", "photos-mscr-l2-clip", "photos-noise-l3-0.1", "photos-mscr-linf-0.1"]
)
def test_other_names_are_unknown(registry: Registry, name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"Unknown eval-setting '{name}'"):
        registry.eval_setting(name)


def test_a_limit_keeps_the_noise_and_limits_the_parent(registry: Registry) -> None:
    limited: EvalSetting = registry.eval_setting("photos-noise-l0-0.1@limit20")
    assert (limited.limit, limited.perturbation_fn_gpu) == (20, L0Noise(fraction=0.1))
    assert limited.shift is not None
    assert limited.shift.clean_eval_setting == "photos@limit20"


def test_noise_of_each_samples_own_is_described_as_before_there_was_shared_noise() -> None:
    """Else all that was stored of it would be stale."""
    own, shared = (UniformNoise(norm="linf", epsilon=0.1, is_shared=is_shared) for is_shared in (False, True))
    fields = {"type": "UniformNoise", "norm": "linf", "epsilon": 0.1, "boundary": "truncate"}
    assert describe(own) == fields
    assert describe(shared) == fields | {"is_shared": True}
