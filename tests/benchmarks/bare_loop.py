"""Seconds of forward passes alone, over images that lie in memory: what an engine can reach at most.

    python tests/benchmarks/bare_loop.py DEFINITIONS DATA PASSES START STOP MODEL...

prints `ready`, waits for a line on stdin, runs every model PASSES times over the images START to STOP on one thread,
and prints the seconds. `engine.py` starts one such process per core.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from time import perf_counter

import torch
from one_pair import Images, load, normalized, perturbation
from torch import Tensor, nn

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def seconds_of(
    network: nn.Module, images: Tensor, *, batch_size: int, passes: int = 1, precision: str | None = None
) -> float:
    """Wall-clock seconds of `passes` passes over all images, after some that are not counted.

    Args:
        network, images: on one device.
        batch_size: images per forward pass.
        precision: 'bf16' or 'fp16' for autocast, None for PyTorch's default.
    """
    wait = torch.cuda.synchronize if images.is_cuda else lambda: None
    autocast = torch.autocast(images.device.type, dtype=DTYPES.get(precision or ""), enabled=precision is not None)
    with torch.inference_mode(), autocast:
        for _ in range(3 if images.is_cuda else 1):
            network(images[:batch_size])
        wait()
        begin = perf_counter()
        for _ in range(passes):
            _ = [network(batch) for batch in images.split(batch_size)]
        wait()
        return perf_counter() - begin


def main() -> None:
    """Times the loop, once it is told to begin."""
    definitions, data, passes, start, stop, *names = sys.argv[1:]
    torch.set_num_threads(1)
    runpy.run_path(definitions)
    work = []
    for name in names:
        model, network = load(name)
        images = Images(Path(data), model, perturbation("clean"))
        pixels = torch.stack([images[index] for index in range(int(start), int(stop))])
        work.append((network, normalized(pixels, model), model.eval_batch_size))
    print("ready", flush=True)
    sys.stdin.readline()
    print(sum(seconds_of(network, images, batch_size=size, passes=int(passes)) for network, images, size in work))


if __name__ == "__main__":
    main()
