#!/usr/bin/env python
"""Shows one picture under every corruption at every severity: does a simulator look right at this size?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from testbed.cli import BEGINS_ANEW, ManyCommand, run
from testbed.errors import TestbedError


@click.command(cls=ManyCommand, interrupted=BEGINS_ANEW)
@click.option("--dataset", metavar="NAME", help="Show a sample of this data set, as its settings corrupt it.")
@click.option("--sample", type=click.IntRange(min=0), default=0, show_default=True, help="Which one, by position.")
@click.option("--image", type=click.Path(path_type=Path), metavar="FILE", help="Show this picture instead.")
@click.option("--size", metavar="PX|HxW", help="Resize to this side of a square, or height x width. [default: its own]")
@click.option("--corruptions", "patterns", multiple=True, metavar="NAME...", help="Only these, by name or glob.")
@click.option("--table", metavar="NAME", help="Parameters of this table. [default: that of the picture's size]")
@click.option("--output", type=click.Choice(["float", "uint8", "jpeg85"]), default="float", show_default=True,
              help="How corrupted pictures are written.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the run.")
@click.option("--plugin", "plugins", multiple=True, metavar="PATH...", help="Files or folders with more definitions.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("results/figures"), show_default=True,
              help="Folder for the PDF, PNG and CSV; files of the same name are replaced.")  # fmt: skip
def main(
    *, dataset: str | None, sample: int, image: Path | None, size: str | None, patterns: Sequence[str],
    table: str | None, output: Any, seed: int, plugins: Sequence[str], out: Path,
) -> None:  # fmt: skip
    """Show one picture under every corruption (rows) at every severity (columns), the clean one first.

    \b
    Examples:
      python plotting/corruption_sheet.py --dataset digits --sample 3
      python plotting/corruption_sheet.py --image photo.jpg --size 96x160 --corruptions 'glass*' fog
    """
    from matplotlib import rcParams
    from plotting.drawing.picture import file_picture, fit_to, sample_picture
    from plotting.drawing.sheet import caption, chosen, corrupted, draw_sheet, numbers_of, sheet_resolution, sheet_size
    from plotting.drawing.style import new_figure, save

    from registry import registry
    from testbed.commands.action import definitions
    from testbed.store.transfer import slug

    if (dataset is None) == (image is None):
        raise TestbedError("Give --dataset NAME or --image FILE, one of the two.")
    definitions({"plugins": plugins})
    fit = fit_to(size) if size else None
    if image is not None:
        picture = file_picture(image, fit, seed=seed)
    else:
        picture = sample_picture(str(dataset), sample, fit, seed=seed)
    corruptions = chosen(registry.corruptions, patterns)
    rows = [corrupted(picture, corruption, table=table, output=output) for corruption in corruptions]
    numbers = numbers_of(picture, rows)
    parts = ["corruption-sheet", picture.name, "x".join(map(str, picture.size)), table, output.removeprefix("float")]
    path = out / slug("-".join(filter(None, parts)))
    width, height = sheet_size(picture, len(rows))
    with new_figure(width=width, height=height) as figure:
        rcParams["savefig.dpi"] = sheet_resolution(picture, width)  # of this figure alone
        draw_sheet(figure.subplots(), picture, rows)
        words = caption(picture, numbers, is_by_size=table is None, seed=seed)
        for written in save(figure, numbers, path, caption=words):
            print(written)


if __name__ == "__main__":
    run(main)
