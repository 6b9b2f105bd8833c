"""What the steps of `gpu.sh` share: how much is done, where, and how findings are told and kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from measuring import DEFINITIONS, Log, evaluate

IMAGENET_LIKE = DEFINITIONS / "imagenet_like.py"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is done of everything.

    Args:
        device: that torch computes on.
        photos: images at 224 px, of which `limit` are evaluated.
        settings, bf16_settings: how often the photos are evaluated.
        noise32: images at 32 px.
        draws, seeds: of their noise.
        points: of the separation.
        values: of uniform noise.
        batch: of corruptions.
    """

    device: Literal["cpu", "cuda"]
    photos: int
    limit: int | None
    settings: int
    bf16_settings: int
    noise32: int
    draws: int
    seeds: int
    points: int
    values: int
    batch: int


FULL = Sizes(device="cuda", photos=20_000, limit=None, settings=6, bf16_settings=20, noise32=10_000, draws=10, seeds=3,
             points=60_000, values=150_528, batch=64)  # fmt: skip
DRY = Sizes(device="cpu", photos=1000, limit=16, settings=2, bf16_settings=2, noise32=16, draws=2, seeds=2,
            points=600, values=3072, batch=2)  # fmt: skip


class Step:
    """One step: where it works, how much it does, and what it found.

    Attributes:
        sizes: how much is done of everything.
        work: a folder that all steps share.
    """

    def __init__(self, name: str, *, is_dry: bool, out: Path, work: Path) -> None:
        self.name, self.is_dry, self.work = name, is_dry, work
        self.sizes = DRY if is_dry else FULL
        self.has_failed = False
        self.log = work / "found.jsonl"
        self.output = out / ("gpu-dry-run.json" if is_dry else "gpu.json")

    def number(self, what: str, value: float | str, unit: str = "") -> None:
        """Tells a number that no target is set for."""
        self._tell("number", what, value, unit)

    def check(self, what: str, is_good: bool, value: float | str = "", unit: str = "") -> None:
        """Tells whether something holds."""
        self.has_failed |= not is_good
        self._tell("PASS" if is_good else "FAIL", what, value, unit)

    def skip(self, what: str) -> None:
        """Tells what only a CUDA device can do."""
        self._tell("SKIP", what, "needs CUDA", "")

    def evaluate(self, name: str, *arguments: object) -> Log:
        """`eval.py` with the definitions of these checks, into a new log directory `name`, or `name`.sqlite."""
        device: tuple[object, ...] = ("--workers", 1) if self.is_dry else ("--gpus", 0)
        if "--workers" in arguments:
            device = ()
        common = ("--plugin", IMAGENET_LIKE, "--data-root", self.work)
        return evaluate(*arguments, *device, *common, home=self.work / "home", to=self.work / name)

    def _tell(self, verdict: str, what: str, value: float | str, unit: str) -> None:
        value = "too short to tell" if value != value else value
        shown = value if isinstance(value, str) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        print(f"{verdict:6} {self.name}: {what}: {shown} {unit}".rstrip(": "), flush=True)
        with self.log.open("a") as stream:
            line = {"step": self.name, "verdict": verdict, "what": what, "value": value, "unit": unit}
            stream.write(json.dumps(line) + "\n")
