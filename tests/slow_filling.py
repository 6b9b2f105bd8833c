"""A program that fills a bank of `SIZE` samples slowly: python slow_filling.py CACHE LOG SIZE SECONDS [THREADS]

Every sample that is decoded is a line of LOG: its index. The program is killed by tests, or waits for another of it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from testbed.data.arrays import array_samples
from testbed.data.filling import BankFiller
from testbed.data.imagepipeline import Pipeline


def images(size):
    """[size, 2, 6, 3] images that tell their index in their first pixel."""
    pixels = np.random.default_rng(0).integers(0, 256, (size, 2, 6, 3), dtype=np.uint8)
    pixels[:, 0, 0] = np.stack([np.arange(size) // 256, np.arange(size) % 256, np.full(size, 9)], axis=1)
    return pixels


class Slow:
    """A transform that takes its time, and writes down what it was given."""

    __module__ = "tests.slow_filling"  # also in the program, so that a test and the program mean the same bank

    def __init__(self, log, seconds):
        self.log, self.seconds = log, seconds

    def __call__(self, image):
        high, low, _ = image.getpixel((0, 0))
        handle = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(handle, f"{high * 256 + low}\n".encode())
        os.close(handle)
        time.sleep(self.seconds)
        return image

    def __repr__(self):
        return "Slow"


def slow_pipeline(log, size, seconds):
    """The pipeline that the program fills a bank from."""
    samples = array_samples(
        images(size), np.zeros(size, np.int64), dataset="made", split="test", class_names=("a", "b")
    )
    return Pipeline(samples=samples, canonical_size=None, setting_transform=Slow(log, seconds), model_transform=None)


def main():
    cache, log, size, seconds, *threads = sys.argv[1:]
    filler = BankFiller(Path(cache), num_threads=int(threads[0]) if threads else 1)
    bank = filler.plan(slow_pipeline(log, int(size), float(seconds)), transform_identity="slow")
    filler.finish(bank)
    print(bank.path)


if __name__ == "__main__":
    main()
