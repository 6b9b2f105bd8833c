"""A change is taken only where it helps beyond chance, among all that were tried."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.doctor.evidence import LEVEL, Try, alike, best, least_images

WRONG = np.zeros(100, bool)


def _right(count: int) -> np.ndarray:
    return np.arange(100) < count


def test_the_p_value_counts_every_try() -> None:
    """12 images gained and none lost: 2^-12 for one try."""
    one = Try(before=WRONG, after=_right(12))
    assert one.p_value(1) == pytest.approx(2.0**-12)
    assert one.p_value(10) == pytest.approx(10 * 2.0**-12)
    assert best([one], num_tries=10) is one
    assert LEVEL < 50 * 2.0**-12
    assert best([one], num_tries=50) is None


@pytest.mark.parametrize(("num_images", "num_tries"), [(100, 1), (100, 26), (100, 32), (100, 33), (1000, 26)])
def test_the_least_gain_that_counts_is_told(num_images: int, num_tries: int) -> None:
    before, least = np.zeros(num_images, bool), least_images(num_images, num_tries=num_tries)
    enough, too_few = (Try(before=before, after=np.arange(num_images) < count) for count in (least, least - 1))
    assert best([enough], num_tries=num_tries) is enough
    assert best([too_few], num_tries=num_tries) is None


def test_a_gain_that_is_too_small_is_none_however_many_images_prove_it() -> None:
    before, after = np.arange(5000) < 2500, np.arange(5000) < 2600
    assert best([Try(before=before, after=after)], num_tries=1) is None
    assert best([Try(before=before, after=after, least_gain=0.01)], num_tries=1) is not None


def test_two_changes_at_once_are_taken_only_where_they_are_better_than_one() -> None:
    single = Try(before=WRONG, after=_right(60))
    hardly = Try(before=WRONG, after=_right(62), num_changes=2)
    much = Try(before=WRONG, after=_right(90), num_changes=2)
    assert best([single, hardly], num_tries=5) is single
    assert best([single, much], num_tries=5) is much


def test_of_changes_that_help_as_much_the_more_plausible_goes_first() -> None:
    own = Try(before=WRONG, after=_right(80), plausibility=0)
    published = Try(before=WRONG, after=_right(79))
    worse = Try(before=WRONG, after=_right(40))
    assert best([own, published, worse], num_tries=5) is published
    assert alike(published, [own, published, worse], num_tries=5) == [own]


def test_what_was_tried_on_half_of_the_images_is_compared_on_these() -> None:
    half = np.arange(0, 100, 2)
    learnt = Try(before=WRONG[half], after=_right(80)[half], images=half, plausibility=-1)
    named = Try(before=WRONG, after=_right(80))
    assert best([learnt, named], num_tries=5) is named
    assert alike(named, [learnt, named], num_tries=5) == [learnt]


def test_a_known_order_stands_for_one_that_was_fitted_where_it_explains_most_of_it() -> None:
    fitted = Try(before=WRONG, after=_right(92), plausibility=-1)
    assert best([fitted, named := Try(before=WRONG, after=_right(80))], num_tries=5) is named
    assert best([fitted, Try(before=WRONG, after=_right(60))], num_tries=5) is fitted
