#!/usr/bin/env python
"""Draws how many frames of a video stay right with all their neighbours, over how many are right."""

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
    """Draw pm-10 accuracy, with all frames within 10 of the anchor right, over pm-0 accuracy, of the anchor alone.

    \b
    Example:
      python plotting/pm_k.py --with-published imagenet-testbed --highlight resnet50 --out figures
    """
    from plotting.drawing.shift_figure import save_panels
    from plotting.drawing.shift_panels import panels_of

    from testbed.shift_pairs import SHIFT_PAIRS

    pairs = [SHIFT_PAIRS["vid-robust-pmk"], SHIFT_PAIRS["ytbb-robust-pmk"]]
    found = panels_of(comparison, pairs, with_low_accuracy=with_low_accuracy)
    return save_panels(
        found, comparison.path(out, "pm-k"), title="Frames right with all within 10 of them, over frames right alone"
    )


if __name__ == "__main__":
    run(main)
