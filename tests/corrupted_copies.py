"""Small corrupted copies of data sets in the formats in which the large ones are published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from tests.published import Pixels, random_images


def write_cifar_c(
    folder: Path, images: Pixels, targets: Sequence[int], *, corruption: str = "fog", strength: int = 40
) -> Pixels:
    """Writes `CORRUPTION.npy` [5 n, 32, 32, 3] and `labels.npy` [5 n]; returns the blocks [5, n, 32, 32, 3].

    At severity s every value has `strength` s more, up to 255.
    """
    blocks = np.stack([np.minimum(images.astype(int) + strength * s, 255).astype(np.uint8) for s in range(1, 6)])
    save(folder / f"{corruption}.npy", blocks.reshape(-1, *images.shape[1:]))
    save(folder / "labels.npy", np.tile(np.array(targets, dtype=np.uint8), 5))
    return blocks


def write_mnist_c(folder: Path, images: Pixels, targets: Sequence[int], *, corruption: str) -> Pixels:
    """Writes `CORRUPTION/test_images.npy` [n, 28, 28, 1], every value inverted, and `test_labels.npy` [n]."""
    inverted: Pixels = 255 - images
    save(folder / corruption / "test_images.npy", inverted[..., None])
    save(folder / corruption / "test_labels.npy", np.array(targets, dtype=np.int64))
    return inverted


def write_copies(folder: Path, names: Sequence[str], *, size: int) -> dict[str, Pixels]:
    """Writes an image WNID/STEM.JPEG of random pixels per name; returns the pixels that a decoder finds, by stem."""
    found = {}
    for seed, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random_images(size, size, 3, seed=100 + seed)).save(folder / name, quality=85, optimize=True)
        with Image.open(folder / name) as image:
            found[Path(name).stem] = np.asarray(image)
    return found


def save(path: Path, array: np.ndarray) -> None:
    """Writes a .npy file and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
