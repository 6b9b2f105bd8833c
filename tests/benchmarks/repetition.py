"""What asking a model again costs, in a run of 10,000 images: `PYTHONPATH=src:. python tests/benchmarks/repetition.py`.

A residual network and a convolutional one on 28 px images, on one CPU thread; the share is of the seconds in forward
passes. Asking takes place when a model is loaded, after every 5,000 images and at the end of a worker's turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from models._architecture import build_architecture
from models.model_base import Model
from testbed.metrics.steadiness import EXACT
from testbed.worker.repetition import EVERY, NUM_KEPT, Repetition

NUM_IMAGES, BATCH = 10_000, 128
NETWORKS = (("models._small_cnn:small_cnn", (1, 28, 28)), ("resnet18", (3, 64, 64)))


def seconds(work: Callable[[], object]) -> float:
    """How long some work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def share(arch: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Seconds of asking again, and of the forward passes of a run."""
    torch.set_num_threads(1)
    network = build_architecture(arch, num_classes=10).eval()
    images = torch.rand(BATCH, *shape)
    model = Model(name="m", transform=None, classifier_loader=object, eval_batch_size=BATCH)

    def ask(some: torch.Tensor) -> NDArray[np.float32]:
        answers: NDArray[np.float32] = network(some).numpy()
        return answers

    with torch.no_grad():
        ask(images)
        asked: list[Repetition] = []
        cost = seconds(lambda: asked.append(Repetition(model, ask, images[:NUM_KEPT], EXACT)))
        for _ in range(NUM_IMAGES // EVERY):
            asked[0]._num_since = 1
            cost += seconds(asked[0].check)
        passes = 10
        whole = seconds(lambda: [ask(images) for _ in range(passes)]) * NUM_IMAGES / (passes * BATCH)
    return cost, whole


if __name__ == "__main__":
    for arch, shape in NETWORKS:
        cost, whole = share(arch, shape)
        print(f"{arch:30} asking {cost:.3f} s, forward {whole:.1f} s: {100 * cost / whole:.2f} %")
