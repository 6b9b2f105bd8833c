"""Contact sheets: a picture of each data set under every corruption, as one strip of severities for each."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from plotting.pages.data import SiteData
from plotting.pages.heat import corruption_families
from plotting.pages.names import file_stem
from plotting.pages.settings import Setting
from plotting.pages.tables import Column, Table, number_cell, text_cell

from testbed.errors import TestbedError
from testbed.offline import without_downloads
from testbed.results.corruption_choice import IN_MEMORY
from testbed.results.model_facts import load_if_needed

SIDE = 120  # pixels of a picture in a strip, about
GAP = 4
NO_PICTURE = "The data are not at hand, or are no pictures. The pages of the settings tell where to get them."


@dataclass(frozen=True, kw_only=True)
class Strip:
    """A picture under one corruption, the clean one first, then by severity.

    Args:
        corruption: its name.
        file: of the PNG, relative to the site's root.
        alt: what is seen, in words.
        width, height: in pixels.
        png: its bytes.
    """

    corruption: str
    file: str
    alt: str
    width: int
    height: int
    png: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The corruptions of a data set.

    Args:
        dataset: its name.
        anchor: within the page.
        words: which picture is shown.
        strips: in the order of the benchmark.
        numbers: parameters, and by how much the picture changed.
        reason: why there is none; '' where there is.
    """

    dataset: str
    anchor: str
    words: str = ""
    strips: Sequence[Strip] = ()
    numbers: Table | None = None
    reason: str = ""

    def strip(self, corruption: str) -> Strip | None:
        """The strip of a corruption."""
        return next((strip for strip in self.strips if strip.corruption == corruption), None)


def sheets(site: SiteData) -> list[Sheet]:
    """A sheet for each data set that models were evaluated on under corruptions made in memory."""
    datasets: dict[str, set[str]] = {}
    for (_, family), settings in corruption_families(site).items():
        if family == IN_MEMORY:
            for setting in settings:
                if (dataset := setting.card.get("dataset")) and setting.shift:
                    datasets.setdefault(str(dataset), set()).add(setting.shift.name)
    return [sheet_of(dataset, sorted(names)) for dataset, names in sorted(datasets.items())]


def strip_of(found: Sequence[Sheet], setting: Setting) -> Strip | None:
    """The strip that shows what a setting does to a picture."""
    if setting.shift is None or setting.shift.family != IN_MEMORY:
        return None
    sheet = next((sheet for sheet in found if sheet.dataset == setting.card.get("dataset")), None)
    return None if sheet is None else sheet.strip(setting.shift.name)


def sheet_of(dataset: str, names: Sequence[str]) -> Sheet:
    """A data set's first sample under these corruptions; where it cannot be had, the reason in its place."""
    from plotting.drawing.picture import sample_picture
    from plotting.drawing.sheet import chosen, corrupted, numbers_of

    from registry import registry

    load_if_needed()
    anchor = file_stem(dataset)
    try:
        with without_downloads("pages are written without the network"):
            picture = sample_picture(dataset, 0, None, seed=0)
        corruptions = chosen(registry.corruptions, names)
        rows = [corrupted(picture, corruption, table=None, output="float") for corruption in corruptions]
    except TestbedError:  # whose words name folders of this machine
        return Sheet(dataset=dataset, anchor=anchor, reason=NO_PICTURE)
    strips = [_strip(dataset, picture, row) for row in rows]
    numbers = _numbers(dataset, numbers_of(picture, rows))
    return Sheet(dataset=dataset, anchor=anchor, words=picture.source, strips=strips, numbers=numbers)


def _strip(dataset: str, picture: Any, row: Sequence[tuple[Any, Any]]) -> Strip:
    from PIL import Image

    pictures = [_pixels(pixels) for pixels in (picture.pixels, *(pixels for _, pixels in row))]
    height, width = pictures[0].shape[:2]
    sheet = np.full((height, len(pictures) * (width + GAP) - GAP, 3), 255, np.uint8)
    for place, pixels in enumerate(pictures):
        sheet[:, place * (width + GAP) :][:, :width] = pixels
    stream = io.BytesIO()
    Image.fromarray(sheet).save(stream, "PNG", optimize=True)
    name = row[0][0].corruption.name
    severities = "" if len(row) == 1 else f" at severities 1 to {len(row)}"
    return Strip(
        corruption=name,
        file=f"pictures/{file_stem(f'{dataset}-{name}')}.png",
        alt=f"{picture.source}: clean, then under {name.replace('_', ' ')}{severities}.",
        width=sheet.shape[1],
        height=height,
        png=stream.getvalue(),
    )


def _pixels(batch: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A picture of a batch of one as 8-bit colours, small ones enlarged so that each of their pixels stays a square."""
    pixels = np.round(255 * batch[0].movedim(0, 2).clamp(0, 1).numpy()).astype(np.uint8)
    times = max(1, SIDE // max(pixels.shape[:2]))
    enlarged = pixels.repeat(times, 0).repeat(times, 1)
    return np.broadcast_to(enlarged, (*enlarged.shape[:2], 3))


def _numbers(dataset: str, numbers: Any) -> Table:
    columns = [
        Column("corruption", "text"), Column("group", "text", filter="group"), Column("severity"),
        Column("parameters", "text"), Column("mean change", title="of values from 0 to 1"),
        Column("mean absolute change"), Column("changed %", title="values that moved by half a grey level or more"),
    ]  # fmt: skip
    rows = [
        [
            text_cell(row["corruption"].replace("_", " ")), text_cell(row["group"]),
            number_cell(row["severity"], digits=0), text_cell(row["parameters"]),
            number_cell(row["mean_change"], digits=4, is_signed=True),
            number_cell(row["mean_absolute_change"], digits=4),
            number_cell(row["changed_percent"], digits=1),
        ]
        for row in numbers.to_dict("records")
    ]  # fmt: skip
    return Table(name=f"What the corruptions of {dataset} are", columns=columns, rows=rows,
                 csv=f"data/corruptions-{file_stem(dataset)}.csv")  # fmt: skip


def sheet_files(found: Sequence[Sheet]) -> Iterator[tuple[str, bytes]]:
    """The pictures, and the numbers of the sheets."""
    for sheet in found:
        yield from ((strip.file, strip.png) for strip in sheet.strips)
