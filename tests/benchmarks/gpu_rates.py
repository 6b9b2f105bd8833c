"""Steps of `gpu.sh` that tell images per second through `eval.py` beside those of the bare forward loop.

A rate through `eval.py` is that of the work between two runs that differ in nothing but how much they evaluate, which
leaves the start-up of both out; that of a whole command stands beside it.
"""

from __future__ import annotations

import runpy

import torch
from bare_loop import seconds_of
from gpu_step import IMAGENET_LIKE, Step
from measuring import Log
from one_pair import load

TARGET = 0.9  # of the bare loop's images/s


def bank(step: Step) -> None:
    """Decodes the photographs once, by evaluating a network that costs nothing."""
    log = step.evaluate("bank.sqlite", "--models", "photos-patches", "--eval-settings", "plain-00", *limit(step))
    step.number("cold start of a network of no cost", log.seconds, "s")
    step.number("decoding and all else", step.sizes.photos / log.seconds, "images/s")


def resnet50(step: Step) -> None:
    """ResNet-50 at 224 px as PyTorch computes by default."""
    _compare(step, settings=step.sizes.settings, precision=None)


def resnet50_bf16(step: Step) -> None:
    """ResNet-50 at 224 px in bfloat16 and the NHWC layout."""
    _compare(step, settings=step.sizes.bf16_settings, precision="bf16")


def _compare(step: Step, *, settings: int, precision: str | None) -> None:
    """Images per second through eval.py beside those of the bare loop."""
    how = () if precision is None else ("--precision", precision, "--channels-last")
    model = "photos-resnet18" if step.is_dry else "photos-resnet50"
    common = ("--models", model, *limit(step), *how)
    names = [f"plain-{number:02d}" for number in range(settings)]
    few = step.evaluate(f"one-{precision}.sqlite", *common, "--eval-settings", names[0])
    many = step.evaluate(f"many-{precision}.sqlite", *common, "--eval-settings", *names)
    num_images = step.sizes.limit or step.sizes.photos
    _tell_rates(step, few, many, num_images * (settings - 1))
    step.number("whole command, start-up included", num_images * settings / many.seconds, "images/s")
    bare = _bare_rate(step, model, (3, 224, 224), precision=precision)
    step.number("bare loop", bare, "images/s")
    share = _rate_between(few, many, num_images * (settings - 1)) / bare
    if step.is_dry:
        step.skip("share of the bare loop (so few images measure noise)")
    else:
        step.check(f"share of the bare loop, to reach {TARGET}", share >= TARGET, share)


def wrn(step: Step) -> None:
    """WRN-28-10 on images of 32 px under draws of noise, for one seed and for several."""
    seeds, draws = step.sizes.seeds, step.sizes.draws
    common = ("--models", "noise32-wrn", "--eval-settings", "noise32-noise-linf-0.03", "--draws", draws)
    few = step.evaluate("wrn-one.sqlite", *common)
    many = step.evaluate("wrn-many.sqlite", *common, "--seeds", *range(seeds))
    num_images = step.sizes.noise32 * draws
    _tell_rates(step, few, many, num_images * (seeds - 1))
    step.number("whole command, start-up and clean images included", num_images / few.seconds, "images/s")
    bare = _bare_rate(step, "noise32-wrn", (3, 32, 32), precision=None)
    step.number("bare loop, without noise", bare, "images/s")
    step.number("share of the bare loop", _rate_between(few, many, num_images * (seeds - 1)) / bare)


def limit(step: Step) -> tuple[object, ...]:
    """The option that evaluates fewer photographs than there are."""
    return () if step.sizes.limit is None else ("--limit", step.sizes.limit)


def _tell_rates(step: Step, few: Log, many: Log, num_images: int) -> None:
    step.number("seconds of the shorter and of the longer command", f"{few.seconds:.1f} {many.seconds:.1f}")
    step.number("through eval.py", _rate_between(few, many, num_images), "images/s")


def _rate_between(few: Log, many: Log, num_images: int) -> float:
    """Images per second of the work that the longer of two commands had more; NaN where that was too little to tell."""
    longer = many.seconds - few.seconds
    return float(num_images / longer) if longer > 0 else float("nan")


def _bare_rate(step: Step, name: str, shape: tuple[int, ...], *, precision: str | None) -> float:
    """Images per second of forward passes alone, over images that lie on the device."""
    runpy.run_path(str(IMAGENET_LIKE))
    model, network = load(name)
    num_images = step.sizes.limit or 16 * model.eval_batch_size
    images = torch.rand(num_images, *shape, device=step.sizes.device)
    network = network.to(step.sizes.device)
    if precision is not None:
        network = network.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    passes = 1 if step.is_dry else 10
    taken = seconds_of(network, images, batch_size=model.eval_batch_size, passes=passes, precision=precision)
    return num_images * passes / taken
