"""Times keyed uniform numbers against torch.rand, interleaved, on one thread: python tests/benchmarks/uniform_noise.py

The work is ten draws of 1,000 samples of 3,072 numbers. `uniform` is to be 3 times as fast as torch.rand on the CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

NUM_SAMPLES, SIZE, NUM_DRAWS, REPEATS = 1000, 3072, 10, 5


def contenders() -> dict[str, Callable[[int], object]]:
    """What is timed, by name: functions of the number of the draw."""
    import torch

    from testbed.perturbations.noise import UniformNoise
    from testbed.randomness import SampleKeys, uniform, uniform_torch

    indices = np.arange(NUM_SAMPLES)
    images = torch.full((NUM_SAMPLES, SIZE), 0.5)
    noise = UniformNoise(norm="linf", epsilon=0.1)

    def add_noise(draw: int) -> object:
        keys = SampleKeys(seed=0, purpose="eval", dataset="cifar10", sample_indices=indices, draw=draw)
        return noise(images, keys=keys)

    return {
        "torch.rand": lambda draw: torch.rand(NUM_SAMPLES, SIZE),
        "uniform": lambda draw: uniform(1, indices, draw=draw, shape=(SIZE,)),
        "uniform, float64": lambda draw: uniform(1, indices, draw=draw, shape=(SIZE,), dtype="float64"),
        "uniform_torch (reference)": lambda draw: uniform_torch(1, indices, draw=draw, shape=(SIZE,)),
        "images + 0.1 (2 torch.rand - 1)": lambda draw: images + 0.1 * (2 * torch.rand(NUM_SAMPLES, SIZE) - 1),
        "UniformNoise, truncated": add_noise,
    }


def main() -> None:
    import torch

    torch.set_num_threads(1)
    functions = contenders()
    for function in functions.values():  # compiles, and touches memory
        function(0)
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(REPEATS):
        for name, function in functions.items():
            start = process_time()
            for draw in range(NUM_DRAWS):
                function(draw)
            seconds[name].append(process_time() - start)
    baseline = median(seconds["torch.rand"])
    print(f"{NUM_SAMPLES} x {SIZE} x {NUM_DRAWS} numbers, CPU seconds on one thread, median of {REPEATS}")
    print(f"{'':34}{'seconds':>9}{'ns/number':>11}{'times as fast as torch.rand':>29}")
    for name, times in seconds.items():
        taken = median(times)
        print(f"{name:34}{taken:9.3f}{taken / (NUM_SAMPLES * SIZE * NUM_DRAWS) * 1e9:11.2f}{baseline / taken:29.2f}")


if __name__ == "__main__":
    main()
