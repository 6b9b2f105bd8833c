"""How near corruptions on another device come to those on the CPU, and how near is near enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.corruption_images import keys, photo

from testbed.perturbations.corruptions.builtin import CORRUPTIONS
from testbed.perturbations.corruptions.corrupt import Corrupt

MEAN, SHARE = 2e-5, 1e-4
LEVEL = 1.5 / 255  # a value that is rounded to whole grey levels may fall either way


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """Of the values of corrupted images, in [0, 1]: the mean difference, and the share that is off by a grey level."""

    mean: float
    share: float


def disagreement(corrupt: Corrupt, *, size: int, device: str, num_images: int = 4) -> Disagreement:
    """Between the CPU and another device."""
    images = photo(size, size, 3, n=num_images)
    here = corrupt(images, keys=keys(num_images))
    there = corrupt(images.to(device), keys=keys(num_images))
    if there.device.type != device:
        raise AssertionError(f"{corrupt.corruption.name} came back on {there.device}")
    difference = (here - there.cpu()).abs()
    return Disagreement(mean=float(difference.mean()), share=float((difference > LEVEL).float().mean()))


def is_close(found: Disagreement) -> bool:
    """The tolerance of corruptions between devices: 0.005 grey levels in the mean, and that at most one value in
    10,000, which a threshold put on its other side, is off by more than a grey level."""
    return found.mean <= MEAN and found.share <= SHARE


def all_corruptions() -> Iterator[Corrupt]:
    """Every corruption at its lowest, middle and highest severity."""
    for row in CORRUPTIONS:
        for severity in (1, 3, 5) if row.has_severities else (None,):
            yield Corrupt(corruption=row, severity=severity)
