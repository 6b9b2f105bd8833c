"""Means of several settings: which settings they need, with which weights, and what is no mean."""

from __future__ import annotations

import pytest

from testbed.results.aggregates import AGGREGATES, parts_of, settings_of


def test_all_corruptions_are_39_numbers_of_equal_weight() -> None:
    weights = settings_of("avg_corruptions")
    assert len(AGGREGATES["avg_corruptions"]) == 39
    assert len(weights) == 5 * (19 + 18) + 2
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["greyscale"] == weights["stylized_imagenet"] == pytest.approx(1 / 39)
    assert weights["imagenet-c.fog.3_in-memory"] == pytest.approx(1 / 195)
    assert "imagenet-c.glass_blur.1_on-disk" in weights
    assert "imagenet-c.glass_blur.1_in-memory" not in weights


def test_the_attacks_are_four() -> None:
    assert settings_of("avg_pgd") == dict.fromkeys(
        ("pgd.linf.eps0.5", "pgd.linf.eps2", "pgd.l2.eps0.1", "pgd.l2.eps0.5"), 0.25
    )


def test_a_corruption_of_any_data_set_is_the_mean_of_its_severities() -> None:
    assert parts_of("digits-c.gaussian_noise_in-memory") == tuple(
        f"digits-c.gaussian_noise.{severity}_in-memory" for severity in range(1, 6)
    )
    assert parts_of("my.data-c.fog_on-disk-jpeg85@limit50") == ()
    assert parts_of("data-c.fog_on-disk-jpeg85@limit50")[4] == "data-c.fog.5_on-disk-jpeg85@limit50"


def test_all_corruptions_of_any_data_set_are_the_common_fifteen() -> None:
    weights = settings_of("digits-c_in-memory")
    assert len(weights) == 75
    assert list(weights.values()) == pytest.approx([1 / 75] * 75)
    assert not any("speckle" in name for name in weights)


@pytest.mark.parametrize("name", ["val", "digits-c.fog.3_in-memory", "pgd.linf.eps2", "digits_in-memory", "avg"])
def test_a_setting_is_its_own(name: str) -> None:
    assert parts_of(name) == ()
    assert settings_of(name) == {name: 1.0}


def test_published_copies_without_severities_are_settings() -> None:
    name = "mnist-c.fog_on-disk"
    assert settings_of(name, {name}) == {name: 1.0}
    assert len(settings_of(name)) == 5
