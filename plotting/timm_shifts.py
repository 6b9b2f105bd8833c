#!/usr/bin/env python
"""Draws timm's published models on four natural shifts of ImageNet, with models of the user's among them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from plotting.drawing.command import LOW_ACCURACY_OPTION, figure_of_models

from testbed.cli import run

if TYPE_CHECKING:
    from plotting.drawing.comparison import Comparison

SHIFTS = ("imagenetv2", "imagenet-r", "imagenet-a", "imagenet-sketch")


@figure_of_models
@LOW_ACCURACY_OPTION
def main(comparison: Comparison, out: Path, *, with_low_accuracy: bool) -> list[Path]:
    """Draw models on ImageNet-V2, -R, -A and -Sketch over their accuracy on ImageNet's images of the same classes.

    Shown are timm's published numbers, or those of --with-published, beside what is stored of the user's own models on
    these settings. A published model at several input sizes is as many points. Numbers of timm have three digits behind
    the point and are of each model's own preprocessing.

    \b
    Example:
      python db.py --import-csv results-imagenet*.csv results-sketch.csv
      python plotting/timm_shifts.py --highlight my-model --out figures
    """
    from plotting.drawing.shift_figure import save_panels
    from plotting.drawing.shift_panels import panels_of

    from testbed.data.published import TIMM
    from testbed.shift_pairs import SHIFT_PAIRS

    if not comparison.sources:
        comparison = replace(comparison, sources=(TIMM,))
    found = panels_of(comparison, [SHIFT_PAIRS[name] for name in SHIFTS], with_low_accuracy=with_low_accuracy)
    return save_panels(found, comparison.path(out, "timm-shifts"), title="timm's models on natural shifts")


if __name__ == "__main__":
    run(main)
