"""McNemar and Holm against exact counts and published examples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from testbed.errors import DataError
from testbed.metrics.significance import holm, mcnemar_p


def test_models_that_do_the_same_do_not_differ() -> None:
    assert mcnemar_p(np.ones(9), np.ones(9)) == 1


@pytest.mark.parametrize(("wins", "losses"), [(5, 1), (0, 4), (12, 7), (101, 59)])
def test_mcnemar_is_the_binomial_test_of_the_images_with_one_winner(wins: int, losses: int) -> None:
    first = np.repeat([1, 0, 1, 0], [wins, losses, 30, 9]).astype(bool)
    second = np.repeat([0, 1, 1, 0], [wins, losses, 30, 9]).astype(bool)
    for alternative in ("two-sided", "greater", "less"):
        exact = binomtest(wins, wins + losses, alternative=alternative).pvalue
        assert mcnemar_p(first, second, alternative=alternative) == pytest.approx(exact)


def test_holm_multiplies_by_what_is_left_and_never_falls() -> None:
    # 0.01 x 4; 0.02 x 3 = 0.06; 0.03 x 2 = 0.06; 0.5 x 1
    assert holm([0.02, 0.5, 0.01, 0.03]).tolist() == pytest.approx([0.06, 0.5, 0.04, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1, 1]
    assert holm([]).tolist() == []
    with pytest.raises(DataError, match="between 0 and 1"):
        holm([1.2])
