#!/usr/bin/env python
"""Draws models on the natural shifts of the ImageNet Testbed's paper, a panel each."""

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


@figure_of_models
@LOW_ACCURACY_OPTION
def main(comparison: Comparison, out: Path, *, with_low_accuracy: bool) -> list[Path]:
    """Draw the accuracy of models on natural shifts over that on ImageNet's images of the same classes.

    ImageNet-A has two lines, below and above the accuracy of the model that its images were chosen against.

    \b
    Example:
      python plotting/natural_shifts.py --with-published imagenet-testbed --highlight resnet50 --out figures
    """
    from plotting.drawing.shift_figure import save_panels
    from plotting.drawing.shift_panels import panels_of
    from plotting.drawing.shifts import NATURAL

    from testbed.shift_pairs import SHIFT_PAIRS

    found = panels_of(comparison, [SHIFT_PAIRS[name] for name in NATURAL], with_low_accuracy=with_low_accuracy)
    return save_panels(found, comparison.path(out, "natural-shifts"), title="Accuracy on natural shifts")


if __name__ == "__main__":
    run(main)
