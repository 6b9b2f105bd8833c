#!/usr/bin/env python
"""Draws models on parts of ImageNet's classes and of its images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import LOW_ACCURACY_OPTION, figure_of_models

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.comparison import Comparison

PARTS = {2: "a half", 4: "a quarter", 8: "an eighth", 16: "a sixteenth", 32: "a 32nd"}


@figure_of_models
@LOW_ACCURACY_OPTION
def main(comparison: Comparison, out: Path, *, with_low_accuracy: bool) -> list[Path]:
    """Draw accuracy on an eighth of the classes, of ImageNet and of ImageNet-V2, and on random images where stored.

    Fewer classes are easier to tell apart; random images change nothing but how much chance there is in an accuracy.

    \b
    Example:
      python plotting/subsampled.py --with-published imagenet-testbed --highlight resnet50 --out figures
    """
    from plotting.drawing.shift_figure import save_panels
    from plotting.drawing.shift_panels import panels_of

    from testbed.shift_pairs import SHIFT_PAIRS, ShiftPair

    def pairs(kind: str, what: str) -> dict[int, ShiftPair]:
        return {
            parts: ShiftPair(
                name=f"{kind}_1_{parts}", title=f"ImageNet, {share} of the {what}", x="val",
                y=f"val_subsampled_{kind}_1_{parts}",
            )
            for parts, share in PARTS.items()
        }  # fmt: skip

    classes, images = pairs("class", "classes"), pairs("iid", "images")
    published = [classes.pop(8), SHIFT_PAIRS["subsampled"]]
    found = panels_of(
        comparison, published, more=[*classes.values(), *images.values()], with_low_accuracy=with_low_accuracy
    )
    return save_panels(found, comparison.path(out, "subsampled"), title="Accuracy on parts of the classes or images")


if __name__ == "__main__":
    run(main)
