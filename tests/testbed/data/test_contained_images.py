"""Images of which several lie in a file: found by position, a file read once while its images are asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from testbed.data.contained_images import ContainedImages


def contained(counts: list[int], *, num_kept: int = 1) -> tuple[ContainedImages[int, list[int]], list[int]]:
    """Images whose value is 10 times the number of their container plus their position; and what has been read."""
    read: list[int] = []

    def content(container: int) -> list[int]:
        read.append(container)
        return [10 * container + position for position in range(counts[container])]

    def image(content: list[int], position: int) -> np.ndarray:
        return np.full((2, 2, 3), content[position], np.uint8)

    images = ContainedImages(range(len(counts)), counts, read=content, image=image, num_kept=num_kept)
    return images, read


def test_images_are_counted_through_and_empty_containers_have_none() -> None:
    images, read = contained([2, 0, 3])
    assert [int(image[0, 0, 0]) for image in images] == [0, 1, 20, 21, 22]
    assert [int(image[0, 0, 0]) for image in images[1:4]] == [1, 20, 21]
    with pytest.raises(IndexError):
        images[5]
    assert 1 not in read


def test_a_container_is_read_once_for_images_in_a_row() -> None:
    images, read = contained([3, 3])
    for position in range(6):
        images[position]
    assert read == [0, 1]
    images[0]
    assert read == [0, 1, 0]  # only one was kept


def test_threads_get_their_own_images() -> None:
    images, _ = contained([5] * 8, num_kept=2)
    with ThreadPoolExecutor(max_workers=8) as pool:
        values = list(pool.map(lambda position: int(images[position][0, 0, 0]), range(40)))
    assert values == [10 * (position // 5) + position % 5 for position in range(40)]
