"""Names beside points, placed so that none hides another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from plotting.drawing.style import LONGEST_NAME, SMALL, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

DISTANCES = (6, 11, 17, 24, 32, 42, 54)  # points from a point to its label, the nearest that is free is taken
ANGLES = np.deg2rad([-30, 30, 150, 210, 270, 90, 0, 180])  # to the lower right first, where models seldom are
OUTSIDE, COVERED, CROSSED, FAR = 10_000, 1_000, 8, 2  # how many hidden points are as bad; FAR: the next distance
WIDEST = 0.6  # of the axes, that a name may take
MARKER = 3  # points around a named point that no label covers
LINE = "#444444"


class _Places:
    """What there is on the axes, in pixels. Boxes are rows of left, bottom, right, top; leaders lead from points.

    Args:
        frame: box of the axes.
        dots: (dots, 2) all points.
        marks: (marks, 4) boxes around those that are named.
    """

    def __init__(self, frame: Array, dots: Array, marks: Array) -> None:
        self.frame, self.dots, self.marks = frame, dots, marks
        self.labels = np.empty((0, 4))
        self.leaders = np.empty((0, 2, 2))  # from, to

    def take_best(self, boxes: Array, target: Array) -> Array | None:
        """The box, of those from near to far, that does the least harm as the label of a point; it is taken then.

        None where each is outside of the frame, or over a label or a named point.
        """
        leaders = np.stack([np.broadcast_to(target, (len(boxes), 2)), np.clip(target, boxes[:, :2], boxes[:, 2:])], 1)
        inside = np.asarray((boxes[:, :2] >= self.frame[:2]).all(1) & (boxes[:, 2:] <= self.frame[2:]).all(1))
        others = self.marks[~_contains(self.marks, target[None])[:, 0]]
        covered = _overlap(boxes, self.labels).sum(1) + _overlap(boxes, self.marks).sum(1)
        crossed = _cross(leaders, np.concatenate([self.labels, others])).sum(1) + _cross(self.leaders, boxes).sum(0)
        harm = OUTSIDE * ~inside + COVERED * covered + CROSSED * crossed + _contains(boxes, self.dots).sum(1)
        best = int(np.argmin(harm + FAR * (np.arange(len(boxes)) // len(ANGLES))))
        if covered[best] or not inside[best]:
            return None
        self.labels = np.concatenate([self.labels, boxes[best : best + 1]])
        self.leaders = np.concatenate([self.leaders, leaders[best : best + 1]])
        return np.asarray(boxes[best])


def label_points(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    names: Sequence[str],
    *,
    avoid: Array,
    length: int = LONGEST_NAME,
    is_laid_out: bool = False,
) -> int:
    """Writes names beside points within the axes, where they hide neither each other nor, if possible, other points.

    It is called last, when the axes have their final limits and size. A name that finds no free place is left out.

    Args:
        x, y: (names,) places of the points, in the units of the axes.
        names: any text.
        avoid: (points, 2) of all points that are drawn, in the units of the axes.
        length: letters of the longest name that is written whole.
        is_laid_out: the figure was drawn since anything but names was added, which takes time.
    Returns: how many names were left out.
    """
    figure = axes.get_figure(root=True)
    if figure is None:
        return len(names)
    if not is_laid_out:
        figure.draw_without_rendering()  # places are known from here on
    scale = figure.dpi / 72
    places = np.column_stack([np.asarray(x, np.float64), np.asarray(y, np.float64)])
    targets = axes.transData.transform(places)
    dots = axes.transData.transform(np.asarray(avoid, np.float64).reshape(-1, 2))
    marks = np.concatenate([targets - MARKER * scale, targets + MARKER * scale], axis=1)
    there = _Places(np.array(axes.bbox.extents), dots, marks)
    left_out = 0
    for target, place, name in zip(targets, places.tolist(), names, strict=True):
        label = _write(axes, name, place, length)
        size = label.get_window_extent()
        box = there.take_best(_boxes(np.array([size.width, size.height]), target, scale), target)
        if box is None:
            label.remove()
            left_out += 1
            continue
        offset = ((box[:2] + box[2:]) / 2 - target) / scale
        label.set_position((float(offset[0]), float(offset[1])))
    return left_out


def _write(axes: Axes, name: str, place: tuple[float, float], length: int) -> Annotation:
    """A name at a point, not longer than fits the axes."""
    label = axes.annotate(
        plain(name, length), place, xytext=(0, 0), textcoords="offset points", fontsize=SMALL, va="center",
        ha="center", zorder=9, annotation_clip=True,
        arrowprops={"arrowstyle": "-", "color": LINE, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2},
        bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
    )  # fmt: skip
    label.set_in_layout(False)
    if (width := label.get_window_extent().width) > WIDEST * axes.bbox.width:
        label.set_text(plain(name, int(min(length, len(name)) * WIDEST * axes.bbox.width / width)))
    return label


def _boxes(size: Array, target: Array, scale: float) -> Array:
    """(places, 4) boxes of a label of this size around its point, from near to far."""
    directions = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
    steps = (np.array(DISTANCES)[:, None, None] * scale * directions).reshape(-1, 2)
    centres = target + steps + size / 2 * np.sign(np.round(steps, 6))
    return np.concatenate([centres - size / 2, centres + size / 2], axis=1)


def _overlap(boxes: Array, others: Array) -> NDArray[np.bool_]:
    """(boxes, others) whether they have more than an edge in common."""
    below = (boxes[:, None, :2] < others[None, :, 2:]).all(-1)
    return np.asarray(below & (boxes[:, None, 2:] > others[None, :, :2]).all(-1))


def _contains(boxes: Array, points: Array) -> NDArray[np.bool_]:
    """(boxes, points) whether a point lies in a box."""
    return _overlap(boxes, np.concatenate([points, points], axis=1))


def _cross(lines: Array, boxes: Array) -> NDArray[np.bool_]:
    """(lines, boxes) whether a line from one point to another, (lines, 2, 2), passes through a box."""
    start, way = lines[:, None, 0], lines[:, None, 1] - lines[:, None, 0]
    with np.errstate(divide="ignore", invalid="ignore"):  # a line along an axis is in the box at all times or at none
        enter, leave = (boxes[None, :, :2] - start) / way, (boxes[None, :, 2:] - start) / way
    first, last = np.fmin(enter, leave).max(-1), np.fmax(enter, leave).min(-1)
    return np.asarray(np.maximum(first, 0) < np.minimum(last, 1))
