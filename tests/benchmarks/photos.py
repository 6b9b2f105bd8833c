"""Folders of generated JPEGs that cost what photographs cost: crops of two photographs, in class folders."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

SIZE = (500, 375)  # ImageNet's usual width and height
QUALITY = 90


def make_photos(folder: Path, num_images: int, *, num_classes: int, size: tuple[int, int] = SIZE) -> None:
    """Writes images as `folder/class-0000/000000.jpg`, ..., the classes in turn; the same ones every time."""
    for label in range(num_classes):
        (folder / class_name(label)).mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for _ in pool.map(partial(_write, folder, num_classes, size), range(num_images), chunksize=16):
            pass


def link_photos(source: Path, folder: Path, num_images: int) -> None:
    """Fills `folder` with hard links to the images of `source`, again and again in their order, class by class."""
    images = sorted(source.rglob("*.jpg"))
    for name in sorted({image.parent.name for image in images}):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for index in range(num_images):
        image = images[index % len(images)]
        os.link(image, folder / image.parent.name / f"{index:06d}.jpg")


def class_name(label: int) -> str:
    """The folder of a class; in sorted order they are in the order of the classes."""
    return f"class-{label:04d}"


def _write(folder: Path, num_classes: int, size: tuple[int, int], index: int) -> None:
    path = folder / class_name(index % num_classes) / f"{index:06d}.jpg"
    _photo(index, size).save(path, quality=QUALITY)


def _photo(index: int, size: tuple[int, int]) -> Image.Image:
    """A crop at a place, of a size and with a brightness that depend on the index, with some noise."""
    rng = np.random.default_rng(index)
    whole = _photographs()[index % 2]
    scale = rng.uniform(0.4, 1) * min(whole.width / size[0], whole.height / size[1])
    width, height = scale * size[0], scale * size[1]
    left, top = rng.uniform(0, whole.width - width), rng.uniform(0, whole.height - height)
    crop = whole.resize(size, Image.Resampling.BILINEAR, box=(left, top, left + width, top + height))
    levels = np.asarray(crop) * rng.uniform(0.5, 1.2) + rng.normal(0, 4, (size[1], size[0], 1))
    return Image.fromarray(levels.clip(0, 255).astype(np.uint8))


@cache
def _photographs() -> list[Image.Image]:
    return [Image.fromarray(load_sample_image(name)) for name in ("china.jpg", "flower.jpg")]
