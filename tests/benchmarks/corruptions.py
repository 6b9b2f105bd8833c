"""Times every corruption against the reference package, image by image: python tests/benchmarks/corruptions.py

The reference is `imagecorruptions` (pip install imagecorruptions-imaug==1.1.5), one call per 8-bit image; ours takes a
batch of the same images as float. Both run interleaved on one thread, at severities 1, 3 and 5, and are compared by the
least CPU time per image. To reach: a geometric mean over the 15 common corruptions of 8 at 32 px and of 3 at 224 px.
With --device cuda our images per second stand alone, at 224 px.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

SEVERITIES, REPEATS = (1, 3, 5), 5
BATCH = {32: 128, 224: 8}  # images per call of ours
PER_REPEAT = {32: 16, 224: 2}  # images of the reference per repeat


def least_seconds(
    calls: Sequence[Callable[[], object]], clock: Callable[[], float], repeats: int = REPEATS
) -> list[float]:
    """The least time of each call, over repeats in which all take turns; each is called once before."""
    for call in calls:
        call()
    least = [float("inf")] * len(calls)
    for _ in range(repeats):
        for position, call in enumerate(calls):
            start = clock()
            call()
            least[position] = min(least[position], clock() - start)
    return least


def compare(size: int) -> dict[str, tuple[float, float]]:
    """By corruption, milliseconds per image of the reference and of ours: the mean over the severities."""
    import imagecorruptions
    from tests.corruption_images import keys, photo

    from testbed.perturbations.corruptions.builtin import CORRUPTIONS
    from testbed.perturbations.corruptions.corrupt import Corrupt

    images = photo(size, size, 3, n=BATCH[size])
    pixels = [(255 * image).byte().permute(1, 2, 0).numpy() for image in images[: PER_REPEAT[size]]]
    found = {}
    for row in CORRUPTIONS:
        if not row.has_severities:
            continue
        totals = np.zeros(2)
        for severity in SEVERITIES:
            corrupt = Corrupt(corruption=row, severity=severity, table="imagenet224")  # the reference has no other

            def reference(name: str = row.name, severity: int = severity) -> None:
                for one in pixels:
                    imagecorruptions.corrupt(one, corruption_name=name, severity=severity)

            def ours(corrupt: Corrupt = corrupt) -> None:
                corrupt(images, keys=keys(len(images)))

            seconds = least_seconds((reference, ours), process_time)
            totals += np.divide(seconds, (len(pixels), len(images)))
        found[row.name] = tuple(1000 * totals / len(SEVERITIES))
    return found


def rates(device: str, *, batch: int = 64, repeats: int = REPEATS) -> dict[str, list[float]]:
    """By corruption, images per second of a batch at 224 px, at each severity."""
    import torch
    from tests.corruption_images import keys, photo

    from testbed.perturbations.corruptions.builtin import CORRUPTIONS
    from testbed.perturbations.corruptions.corrupt import Corrupt

    images = photo(224, 224, 3, n=batch).to(device)
    wait = torch.cuda.synchronize if images.is_cuda else lambda: None
    found: dict[str, list[float]] = {}
    for row in CORRUPTIONS:
        found[row.name] = []
        for severity in SEVERITIES if row.has_severities else (None,):
            corrupt = Corrupt(corruption=row, severity=severity)

            def call(corrupt: Corrupt = corrupt) -> None:
                corrupt(images, keys=keys(batch))
                wait()

            found[row.name].append(batch / least_seconds([call], perf_counter, repeats)[0])
    return found


def main() -> None:
    import torch

    from testbed.metrics.corruption import COMMON

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the reference's own
    if device != "cpu":
        for name, of_severities in rates(device).items():
            print(f"{name:20}" + "".join(f"{rate:12.0f}" for rate in of_severities) + "  images/s")
        return
    for size in BATCH:
        found = compare(size)
        print(f"\n{size} px, CPU ms per image, one thread, mean over severities {SEVERITIES}, least of {REPEATS}")
        print(f"{'':20}{'reference':>12}{'ours':>10}{'ratio':>8}")
        for name, (theirs, ours) in found.items():
            mark = "" if name in COMMON else "  (not of the 15)"
            print(f"{name:20}{theirs:12.3f}{ours:10.3f}{theirs / ours:8.1f}{mark}")
        ratios = [theirs / ours for name, (theirs, ours) in found.items() if name in COMMON]
        print(f"geometric mean over the {len(ratios)}: {np.exp(np.mean(np.log(ratios))):.1f}", flush=True)


if __name__ == "__main__":
    main()
