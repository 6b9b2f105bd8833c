"""Whether a change makes answers better beyond chance: paired on the same images, corrected for all that was tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.metrics.significance import mcnemar_p
from testbed.records import IntArray

LEVEL = 0.01  # of one examination: chance of any alarm on a sound run
LEAST_GAIN = 0.03  # of accuracy: what is smaller is no fault, however many images prove it
_ALIKE = 0.05
_MOST = 0.8


@dataclass(frozen=True, kw_only=True, eq=False)
class Try:
    """A change that was tried on some images.

    Args:
        before, after: (n,) bool, whether the answer to each image is right without and with it.
        images: (n,) positions of those images, where they are not all.
        likelihood: mean logarithm of what the answers give the targets, for changes that are right equally often.
        least_gain: accuracy that it has to gain.
        num_changes: that it consists of.
        plausibility: what goes first among those that help as much, beyond chance; below 0 for what was fitted.
        what: is for the caller.
    """

    before: NDArray[np.bool_]
    after: NDArray[np.bool_]
    images: IntArray | None = None
    likelihood: float = 0.0
    least_gain: float = LEAST_GAIN
    num_changes: int = 1
    plausibility: int = 1
    what: Any = field(default=None, repr=False)

    @property
    def gain(self) -> float:
        """Of accuracy, as a fraction."""
        return float(np.mean(self.after) - np.mean(self.before))

    def p_value(self, num_tries: int) -> float:
        """Chance of such a gain by one of as many tries if none of them changed anything (McNemar, Bonferroni)."""
        return min(1.0, num_tries * mcnemar_p(self.after, self.before, alternative="greater"))

    def counts(self, num_tries: int) -> bool:
        """Whether it helps beyond chance, and as much as it must."""
        return self.gain >= self.least_gain and self.p_value(num_tries) <= LEVEL


def least_images(num_images: int, *, num_tries: int) -> int:
    """How many images more a change must have right to count, with none more wrong.

    >>> least_images(300, num_tries=26), least_images(1000, num_tries=26)
    (12, 30)
    """
    return max(math.ceil(math.log2(num_tries / LEVEL)), math.ceil(LEAST_GAIN * num_images))


def best(tries: Sequence[Try], *, num_tries: int) -> Try | None:
    """The change that helps most, of those that help beyond chance; None where none does.

    One of several changes at once is taken only where it is better beyond chance than the best single one.

    Args:
        num_tries: all that were made, also those that were given up early.
    """
    proven = [one for one in tries if one.counts(num_tries)]
    found: Try | None = None
    for num_changes in sorted({one.num_changes for one in proven}):
        rivals = [one for one in proven if one.num_changes == num_changes]
        leader = max(rivals, key=_merit)
        if leader.plausibility < 0:
            leader = max((one for one in rivals if _may_stand_for(one, leader)), key=_merit, default=leader)
        rival = max(
            (leader, *alike(leader, rivals, num_tries=num_tries)), key=lambda one: (one.plausibility, _merit(one))
        )
        if found is None or _is_better(rival, found, num_tries):
            found = rival
    return found


def alike(chosen: Try, tries: Sequence[Try], *, num_tries: int) -> list[Try]:
    """Other changes that help beyond chance and not less than the chosen one, beyond chance; the best first."""
    others = [one for one in tries if one is not chosen and one.num_changes == chosen.num_changes]
    proven = (one for one in others if one.p_value(num_tries) <= LEVEL)
    return sorted((one for one in proven if _is_alike(one, chosen)), key=_merit, reverse=True)


def _may_stand_for(one: Try, fitted: Try) -> bool:
    """Whether a change explains most of what one that was fitted to the images gains from chance too."""
    return one.plausibility >= 0 and one.gain >= _MOST * fitted.gain


def _merit(one: Try) -> tuple[float, float]:
    return one.gain, one.likelihood


def _is_alike(one: Try, other: Try) -> bool:
    return mcnemar_p(*_on_common_images(one, other)) > _ALIKE


def _is_better(rival: Try, found: Try, num_tries: int) -> bool:
    return num_tries * mcnemar_p(*_on_common_images(rival, found), alternative="greater") <= LEVEL


def _on_common_images(one: Try, other: Try) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of two tries, of which one may be of some images only, which answers are right with each."""
    own, others = one.after, other.after
    if one.images is not None and other.images is None:
        others = others[one.images]
    elif one.images is None and other.images is not None:
        own = own[other.images]
    return own, others
