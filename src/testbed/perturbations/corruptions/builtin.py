"""The corruptions that come with the testbed: Hendrycks and Dietterich's 15 and 4 more, and greyscale."""

from __future__ import annotations

from dataclasses import replace

from testbed.perturbations.corruptions import blur, colour, digital, elastic, fog, frost, glass, noise, snow, spatter
from testbed.perturbations.corruptions.corruption import Corruption

VERSION = "1"  # of what the corruptions compute; a bump makes stored results of them stale
FAMILIES = (noise, blur, glass, snow, frost, fog, colour, elastic, digital, spatter)
CORRUPTIONS: tuple[Corruption, ...] = tuple(
    replace(row, version=VERSION) for family in FAMILIES for row in family.CORRUPTIONS
)
