"""The steps of `gpu.sh`, one a call: python tests/benchmarks/gpu_checks.py STEP [--dry-run] --out DIR --work DIR"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_step import Step
    from measuring import Log

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parents[1])]

NEEDED = ("numpy", "torch", "torchvision", "PIL", "sklearn", "scipy", "numba", "pandas", "sqlalchemy", "alembic",
          "click", "tqdm", "safetensors", "matplotlib", "timm")  # fmt: skip


def imports(step: Step) -> None:
    """Whether the device is there."""
    import torch

    if not step.is_dry and not torch.cuda.is_available():
        sys.exit(f"{sys.executable} has torch {torch.__version__}, which finds no CUDA device. See --dry-run.")
    device = "CPU, dry run" if step.is_dry else torch.cuda.get_device_name()
    step.number("device", f"{device}, {len(os.sched_getaffinity(0))} cores, torch {torch.__version__}")


def photos(step: Step) -> None:
    """Makes the images of all steps."""
    import numpy as np
    from photos import SIZE, make_photos

    begin = perf_counter()
    size = (64, 48) if step.is_dry else SIZE
    make_photos(step.work / "photos", step.sizes.photos, num_classes=1000, size=size)
    step.number(f"{step.sizes.photos} JPEGs made", perf_counter() - begin, "s")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (step.sizes.noise32, 32, 32, 3), np.uint8)
    np.savez(step.work / "noise32.npz", x=pixels, y=np.arange(len(pixels)) % 10)


def workers(step: Step) -> None:
    """Whether two workers on one device store what one stores."""
    common = ("--models", "noise32-wrn", "--eval-settings", "noise32-noise-linf-0.03", "--draws", 2)
    option = "--workers" if step.is_dry else "--workers-per-gpu"
    one, two = (step.evaluate(f"workers-{number}.sqlite", *common, option, number) for number in (1, 2))
    used = {name for (name,) in two.rows("select distinct worker from logit_shards")}
    step.check("two workers took part", len(used) == 2 or step.is_dry, ", ".join(sorted(used)))
    step.check("same stored bytes of one and two workers", one.shards() == two.shards(), len(one.shards()), "shards")


def noise(step: Step) -> None:
    """Whether uniform numbers are the CPU's to the bit, and how fast they are."""
    import numpy as np
    import torch

    from testbed.randomness import uniform, uniform_numpy, uniform_torch

    key, device = 2**63 + 5, step.sizes.device
    for count, shape in ((3, (7,)), (5, (3, 17, 13)), (1, ()), (64, (3, 224, 224))):
        indices = 2**40 + np.arange(count)
        for dtype in ("float32", "float64"):
            here = uniform_numpy(key, indices, draw=3, shape=shape, dtype=dtype)
            there = uniform_torch(key, indices, draw=3, shape=shape, dtype=dtype, device=device)
            step.check(f"{dtype} {count} x {shape} has the CPU's bits", np.array_equal(here, there.cpu().numpy()))
    many, values = np.arange(4 if step.is_dry else 512), step.sizes.values
    ours = _rate(step, lambda: uniform(key, many, draw=0, shape=(values,), device=device))
    theirs = _rate(step, lambda: torch.rand(len(many), values, device=device))
    step.number("uniform", len(many) * values * ours / 1e9, "G values/s")
    step.number("torch.rand", len(many) * values * theirs / 1e9, "G values/s")
    step.number("uniform of torch.rand, to reach 0.3", ours / theirs)


def memory(step: Step) -> None:
    """Whether a batch that does not fit is halved until it does, and the answers stay."""
    import numpy as np

    asked, fitting = (16, 4) if step.is_dry else (1024, 64)
    common = ("--models", "noise32-hungry", "--eval-settings", "noise32", "--store-logits", "full")
    halved = step.evaluate("halved", *common, "--batch-size", asked)
    small = step.evaluate("small", *common, "--batch-size", fitting)
    step.check("memory ran out and batches were halved", max(halved.batch_sizes()) < asked, str(halved.batch_sizes()))
    step.check("all samples are stored", _samples(halved) == step.sizes.noise32, _samples(halved))
    ours, theirs = (log.logits("noise32")["noise32-hungry"] for log in (halved, small))
    step.check("same logits as in small batches", np.allclose(ours, theirs, atol=1e-5), float(abs(ours - theirs).max()))
    if step.is_dry:
        step.skip("memory of a device that truly runs out (here the network says so)")


def corruptions(step: Step) -> None:
    """How fast every corruption is at 224 px."""
    from corruptions import rates

    for name, found in rates(step.sizes.device, batch=step.sizes.batch, repeats=1 if step.is_dry else 5).items():
        step.number(f"{name} at severity 1, 3, 5", " ".join(f"{rate:,.0f}" for rate in found), "images/s")


def agreement(step: Step) -> None:
    """Whether corruptions on the device are those of the CPU."""
    from tests.device_agreement import all_corruptions, disagreement, is_close

    for size in (32,) if step.is_dry else (32, 224):
        found = {f"{each.corruption.name}.{each.severity}": disagreement(each, size=size, device=step.sizes.device)
                 for each in all_corruptions()}  # fmt: skip
        far = [f"{name} (mean {one.mean:.1e}, share {one.share:.1e})" for name, one in found.items()
               if not is_close(one)]  # fmt: skip
        worst = f"mean {max(one.mean for one in found.values()):.1e}, share {max(o.share for o in found.values()):.1e}"
        step.check(
            f"corruptions at {size} px are the CPU's", not far, ", ".join(far) or f"{len(found)}, at most {worst}"
        )
    if step.is_dry:
        step.skip("the forms of corruptions for CUDA (both sides ran on the CPU)")


def separation(step: Step) -> None:
    """The search on the device: as long as 60,000 images of 32 px in colour take, with the result of the CPU."""
    import numpy as np

    from testbed.records import NORMS
    from testbed.separation import device, minimal_class_separation
    from testbed.separation.points import checked_sets
    from testbed.separation.search import search_all

    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (step.sizes.points, 3072)).astype(np.uint8), np.arange(step.sizes.points) % 10
    few = checked_sets((images[:300], labels[:300]), (images[300:600], labels[300:600]), "l2")
    for norm in NORMS:
        here, there = search_all(*few, norm), device.search_device(*few, norm, device=step.sizes.device)
        is_same = all(np.array_equal(getattr(here, name), getattr(there, name)) for name in ("best", "nearest", "ties"))
        step.check(f"{norm} has the CPU's bits", is_same)
        begin = perf_counter()
        minimal_class_separation(images, labels, norm=norm, device=step.sizes.device)
        step.number(f"{norm} of {step.sizes.points:,} x 3,072", perf_counter() - begin, "s")


def summary(step: Step) -> None:
    """Writes all that the steps found, and ends with 1 where something failed."""
    found = [json.loads(line) for line in step.log.read_text().splitlines()]
    step.output.parent.mkdir(parents=True, exist_ok=True)
    step.output.write_text(json.dumps(found, indent=1) + "\n")
    failed = [f"{row['step']}: {row['what']}" for row in found if row["verdict"] == "FAIL"]
    verdict = "\n  ".join(["Failed:", *failed]) if failed else "Nothing failed."
    print(f"{verdict}\nWritten to {step.output}.")
    sys.exit(1 if failed else 0)


def _samples(log: Log) -> int:
    return int(log.rows("select sum(stop - start) from logit_shards")[0][0])


def _rate(step: Step, work: Callable[[], object], repeats: int = 10) -> float:
    """Calls per second, after two that are not counted."""
    import torch

    wait = torch.cuda.synchronize if step.sizes.device == "cuda" else lambda: None
    for _ in range(2):
        work()
    wait()
    begin = perf_counter()
    for _ in range(repeats):
        work()
    wait()
    return repeats / (perf_counter() - begin)


def steps() -> dict[str, Callable[[Step], None]]:
    """By name, what `gpu.sh` calls."""
    from gpu_rates import bank, resnet50, resnet50_bf16, wrn

    return {
        "imports": imports, "photos": photos, "bank": bank, "resnet50": resnet50, "resnet50-bf16": resnet50_bf16,
        "wrn": wrn, "workers": workers, "noise": noise, "memory": memory, "corruptions": corruptions,
        "agreement": agreement, "separation": separation, "summary": summary,
    }  # fmt: skip


def main() -> None:
    """Runs one step; `failed STEP REASON` only notes that it did not come to its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step")
    parser.add_argument("details", nargs="*")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        sys.exit(
            f"{sys.executable} has no {', '.join(missing)}. Set PYTHON to one that has requirements.txt installed."
        )
    from gpu_step import Step

    options.work.mkdir(parents=True, exist_ok=True)
    name = options.details[0] if options.step == "failed" else options.step
    step = Step(name, is_dry=options.dry_run, out=options.out, work=options.work)
    if options.step == "failed":
        step.check("to the end", False, options.details[1])
        return
    try:
        steps()[options.step](step)
    except Exception as error:  # the other steps go on
        step.check("to the end", False, f"{type(error).__name__}: {str(error)[-600:]}")
    sys.exit(1 if step.has_failed else 0)


if __name__ == "__main__":
    main()
