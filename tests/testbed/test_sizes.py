"""Sizes in the unit in which they have few digits."""

from __future__ import annotations

import pytest

from testbed.sizes import size_words


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (0, "0 bytes"),
        (999_999, "999,999 bytes"),
        (28_800_128, "28.8 MB"),
        (3_240_000_000, "3.2 GB"),
        (7_526_400_000_000, "7526.4 GB"),
    ],
)
def test_sizes_have_few_digits(num_bytes: int, words: str) -> None:
    assert size_words(num_bytes) == words
