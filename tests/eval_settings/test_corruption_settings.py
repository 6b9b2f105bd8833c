"""Corruption settings by name: which corruption, parameters and output they stand for, and names that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from eval_settings.corruptions import InMemory, OnDisk
from eval_settings.dataset_base import CorruptedCopies, Dataset
from eval_settings.derived import FAMILIES
from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import Registry
from testbed.definitions import load_definitions
from testbed.errors import DefinitionError, UnknownNameError
from testbed.perturbations.corruptions.corrupt import Corrupt
from testbed.perturbations.corruptions.corruption import Corruption, severities


def shaded(images: Tensor, *, gain: float) -> Tensor:
    return images * gain


def mirrored(images: Tensor) -> Tensor:
    return images.flip(3)


GAINS = severities("gain", 0.9, 0.8, 0.7, 0.6, 0.5)
SHADE = Corruption(
    name="half_shade", group="digital", function=shaded, parameters={"cifar32": GAINS, "mnist28": GAINS[::-1]}
)
MIRROR = Corruption(name="mirror", group="digital", function=mirrored)
COPIES = CorruptedCopies(
    title="Photos-C", severities={"half_shade": (1, 3), "rain": ()},
    load=lambda clean, corruption, severity, data_root: clean,
)  # fmt: skip
PHOTOS = Dataset(name="photos", path=Path("photos"), corrupted=COPIES)
LARGE = Dataset(
    name="large", path=Path("large"), corruption_space="model", corruption_parent="val",
    corrupted=CorruptedCopies(title="Large-C", severities={"half_shade": (1,)}, load=COPIES.load, cropped_size=224),
)  # fmt: skip
POINTS = Dataset(name="points", path=Path("points.npz"), domain="numbers")


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = Registry()
    for dataset in (PHOTOS, LARGE, POINTS):
        registry.add_dataset(dataset)
    for corruption in (SHADE, MIRROR):
        registry.add_corruption(corruption)
    for family in (*FAMILIES, InMemory(registry), OnDisk(registry)):
        registry.add_eval_setting_family(family)
    return registry


@pytest.mark.parametrize(("name", "choices", "shift"), [
    ("half_shade.3_in-memory", {}, ("common-corruption", "half_shade", 3)),
    ("mirror_in-memory", {"corruption": MIRROR, "severity": None}, ("common-corruption", "mirror", None)),
    ("half_shade.1_in-memory-uint8", {"severity": 1, "output": "uint8"}, ("common-corruption-uint8", "half_shade", 1)),
    ("half_shade.3_in-memory-jpeg85", {"output": "jpeg85"}, ("common-corruption-jpeg85", "half_shade", 3)),
    ("half_shade.3_in-memory-mnist28", {"table": "mnist28"}, ("common-corruption-mnist28", "half_shade", 3)),
    ("half_shade.3_in-memory-cifar32-uint8", {"table": "cifar32", "output": "uint8"},
     ("common-corruption-cifar32-uint8", "half_shade", 3)),
])  # fmt: skip
def test_a_name_stands_for_a_corruption_and_its_choices(
    registry: Registry, name: str, choices: dict[str, Any], shift: tuple[str, str, int | None]
) -> None:
    setting = registry.eval_setting(f"photos-c.{name}")
    assert setting.perturbation_fn_gpu == Corrupt(**{"corruption": SHADE, "severity": 3} | choices)
    family, shift_name, severity = shift
    assert setting.shift == Shift(family=family, name=shift_name, severity=severity, clean_eval_setting="photos")
    assert (setting.dataset, setting.num_draws) == (StandardDataset(name="photos"), 1)
    assert (setting.space, setting.keeps_size) == ("canonical", False)


def test_a_data_set_may_have_its_corruptions_in_the_models_space(registry: Registry) -> None:
    setting = registry.eval_setting("large-c.half_shade.3_in-memory")
    assert setting.space == "model"
    assert setting.shift is not None
    assert setting.shift.clean_eval_setting == "val"


def test_copies_on_disk_are_read_and_not_simulated(registry: Registry) -> None:
    setting = registry.eval_setting("photos-c.half_shade.3_on-disk")
    assert setting.dataset == StandardDataset(name="photos", corrupted=("half_shade", 3))
    assert setting.perturbation_fn_gpu is None
    assert setting.shift == Shift(
        family="common-corruption-on-disk", name="half_shade", severity=3, clean_eval_setting="photos"
    )
    assert (setting.space, setting.keeps_size) == ("model", False)
    without = registry.eval_setting("photos-c.rain_on-disk")  # which nothing here simulates
    assert without.dataset == StandardDataset(name="photos", corrupted=("rain", None))


def test_copies_that_were_cropped_keep_their_size_unless_the_name_says_otherwise(registry: Registry) -> None:
    kept, resized = (registry.eval_setting(f"large-c.half_shade.1_on-disk{end}") for end in ("", "-resized"))
    assert (kept.keeps_size, resized.keeps_size) == (True, False)
    families = [setting.shift.family for setting in (kept, resized) if setting.shift is not None]
    assert families == ["common-corruption-on-disk", "common-corruption-on-disk-resized"]


def test_listings_show_the_plain_names_of_image_data(registry: Registry) -> None:
    names = registry.expand("eval-setting", ["*-c.*"])
    simulated = [*(f"half_shade.{severity}" for severity in range(1, 6)), "mirror"]
    expected = {f"{dataset}-c.{name}_in-memory" for dataset in ("photos", "large") for name in simulated}
    on_disk = {"photos-c.half_shade.1", "photos-c.half_shade.3", "photos-c.rain", "large-c.half_shade.1"}
    assert names == sorted(expected | {f"{name}_on-disk" for name in on_disk})
    assert all(registry.eval_setting(name).name == name for name in names)


@pytest.mark.parametrize(("name", "message"), [
    ("photos-c.half_shade.6_in-memory", r"has severity '6'.*from 1 to 5\. Did you mean photos-c\.half_shade\.5_in-mem"),
    ("photos-c.half_shade.0_in-memory", r"has severity '0'.*Did you mean photos-c\.half_shade\.1_in-memory\?"),
    ("photos-c.half_shade.03_in-memory", r"has severity '03'"),
    ("photos-c.half_shade.7_on-disk", r"has severity '7'.*Did you mean photos-c\.half_shade\.5_on-disk\?"),
    ("photos-c.half_shade_in-memory", r"half_shade comes at severities 1 to 5\. Did you mean photos-c\.half_shade\.3"),
    ("photos-c.mirror.2_in-memory", r"mirror has no severities\. Did you mean photos-c\.mirror_in-memory\?"),
    ("photos-c.half_shade.1_in-memory-unit8", r"ends in '-unit8', which has no place there\. Did you mean uint8"),
    ("photos-c.half_shade.1_in-memory-uint8-cifar32", r"'-cifar32', which .* one of cifar32, mnist28 and one of uint8"),
    ("photos-c.half_shade.1_in-memory-imagenet224", r"'-imagenet224', which has no place there"),
    ("photos-c.mirror_in-memory-cifar32", r"'-cifar32', .*It may end in one of uint8, jpeg85"),
    ("photos-c.half_shade.2_on-disk", r"Photos-C has no 'half_shade' at severity 2\. It has photos-c\.half_shade\.1"),
    ("photos-c.rain.1_on-disk", r"Photos-C has no 'rain' at severity 1\. It has photos-c\.rain_on-disk\."),
    ("photos-c.half_shade.3_on-disk-resized", r"ends in '-resized', which means nothing\. End it in '_on-disk'\."),
    ("large-c.half_shade.1_on-disk-uint8", r"End it in '_on-disk-resized' or '_on-disk'\."),
    ("points-c.mirror_in-memory", r"is for images, but data set 'points' has numbers"),
    ("points-c.mirror_on-disk", r"no published .* copies\. Simulate the corruption: points-c\.mirror_in-memory\."),
])  # fmt: skip
def test_a_name_that_nearly_is_one_is_corrected(registry: Registry, name: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        registry.eval_setting(name)


@pytest.mark.parametrize("name", ["photos-c.half_shad.3_in-memory", "photos-c.half_shad.3_on-disk"])
def test_an_unknown_corruption_is_unknown_with_a_suggestion(registry: Registry, name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"Unknown eval-setting '{name}'.* Did you mean photos-c.half_shade.3_"):
        registry.eval_setting(name)
    with pytest.raises(UnknownNameError, match=r"Photos-C has no corruption 'mirror'\. It has half_shade, rain"):
        registry.eval_setting("photos-c.mirror_on-disk")


def test_a_users_setting_may_have_a_name_of_this_kind() -> None:
    """It must not be taken for a corruption that is misspelt."""
    registry = Registry()
    registry.add_dataset(PHOTOS)
    registry.add_eval_setting_family(InMemory(registry))
    own = EvalSetting(name="photos-c.mine.9_in-memory", dataset=StandardDataset(name="photos"))
    registry.add_eval_setting(own)
    assert registry.eval_setting(own.name) is own
    assert registry.notices() == []


class Darker:
    """A corruption whose code says nothing of its strength."""

    def __init__(self, gain: float) -> None:
        self.gain = gain

    def __call__(self, images: Any) -> Any:
        return images * self.gain


def users_setting(path: Path | None, **changes: Any) -> EvalSetting:
    """The setting of a user's corruption that a file registers, or none does."""
    registry, corruption = Registry(), Corruption(name="darker", group="digital", function=Darker(0.5), **changes)
    registry.add_dataset(PHOTOS)
    registry.add_eval_setting_family(InMemory(registry))
    if path is None:
        registry.add_corruption(corruption)
    else:
        with registry.importing(path):
            registry.add_corruption(corruption)
    return registry.eval_setting("photos-c.darker_in-memory")


def test_a_changed_file_of_a_users_corruption_is_another_version(tmp_path: Path) -> None:
    """Else its stored results would never be stale; whatever kind of function it is, and also without a file."""
    found = [users_setting(None)]
    for gain in (0.5, 0.6):
        (tmp_path / "mine.py").write_text(f"registry.add_corruption(... Darker({gain}))")
        found.append(users_setting(tmp_path / "mine.py"))
    assert len({setting.version for setting in found}) == 3


def test_a_declared_version_of_a_users_corruption_stands_for_its_file(tmp_path: Path) -> None:
    path, versions = tmp_path / "mine.py", []
    for text, version in (("a", "1"), ("b", "1"), ("b", "2")):
        path.write_text(text)
        setting = users_setting(path, version=version)
        versions.append((setting.version, setting.perturbation_fn_gpu.identity()["version"]))  # type: ignore[union-attr]
    assert versions[0] == versions[1] != versions[2]


def test_a_copy_needs_a_severity_from_1_to_5() -> None:
    with pytest.raises(DefinitionError, match=r"CorruptedCopies 'X-C': 'fog' has severity 0"):
        CorruptedCopies(title="X-C", severities={"fog": (0, 1)}, load=COPIES.load)
    with pytest.raises(DefinitionError, match=r"CorruptedCopies 'X-C': load has the signature .* lacks clean"):
        CorruptedCopies(title="X-C", severities={}, load=lambda corruption, severity, data_root: None)


def test_the_built_in_data_sets_have_19_corruptions_at_five_severities_and_greyscale() -> None:
    from registry import registry as built_in

    load_definitions()
    for dataset in ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100", "svhn", "tiny-imagenet", "imagenet"):
        assert len(built_in.expand("eval-setting", [f"{dataset}-c.*_in-memory"])) == 19 * 5 + 1
    for dataset, count in {"cifar10": 95, "cifar100": 95, "tiny-imagenet": 95, "imagenet": 95, "mnist": 15}.items():
        assert len(built_in.expand("eval-setting", [f"{dataset}-c.*_on-disk"])) == count
    assert built_in.eval_setting("mnist-c.fog.3_in-memory").num_draws == 1
