"""Batches in pieces."""

from __future__ import annotations

import pytest
import torch

from testbed.perturbations.corruptions.chunks import chunks


@pytest.mark.parametrize(("n", "side", "most"), [(0, 8, 0), (1, 8, 1), (100, 32, 42), (5, 224, 1), (3, 1000, 1)])
def test_pieces_are_the_batch_in_its_order_and_small(n: int, side: int, most: int) -> None:
    parts = list(chunks(torch.empty(n, 3, side, side)))
    assert [index for part in parts for index in range(part.start, part.stop)] == list(range(n))
    assert max((part.stop - part.start for part in parts), default=0) == most


def test_other_devices_take_all_at_once() -> None:
    assert list(chunks(torch.empty(1000, 3, 224, 224, device="meta"))) == [slice(0, 1000)]
