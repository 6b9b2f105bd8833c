"""The search on a CUDA device: every distance, in blocks, with the result of the other searches to the bit.

Distances of 8-bit images are whole numbers that the floating type used holds exactly, in whatever order it adds. Floats
are rounded, so the device only tells which few references can be the nearest; their distances are those of
`exact_distances`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from testbed.errors import DefinitionError, DeviceError
from testbed.records import Norm
from testbed.separation.points import Points, Rows, exact_distances
from testbed.separation.search import NOBODY, Found, Progress, nothing_found
from testbed.separation.trees import MOST_DIMENSIONS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Device = Literal["auto", "cpu", "cuda"]

QUERIES, REFERENCES = 1 << 10, 1 << 13  # of a block
_COLUMNS = 1 << 12  # values added at a time: as 8-bit ones at most 255 * 2^12, exact in float32
_LONG = 1 << 34  # compared values from which a device is worth its start
_SLACK, _TINY = 1 + 1e-9, 1e-300  # for the rounding of float64 sums on the device
_VALUES_PER_LOOK = 1 << 23
_POWERS = {"linf": float("inf"), "l2": 2.0, "l1": 1.0}


def is_on_cuda(device: Device, queries: Points, references: Points) -> bool:
    """Whether a search is to be done on a CUDA device; 'auto' asks for one only where the search is long.

    Raises: DefinitionError: no such kind of device. DeviceError: 'cuda', where there is none.
    """
    if device not in get_args(Device):
        raise DefinitionError(f"Separation is asked for on '{device}'. Use one of {', '.join(get_args(Device))}.")
    is_long = queries.rows.shape[1] > MOST_DIMENSIONS and len(queries) * references.rows.size >= _LONG
    if device == "cpu" or (device == "auto" and not is_long):
        return False
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise DeviceError("Separation is asked for on 'cuda', but no CUDA device is there. Use 'auto' or 'cpu'.")
    return torch.cuda.is_available()


def search_device(
    queries: Points, references: Points, norm: Norm, *, device: str = "cuda", progress: Progress | None = None
) -> Found:
    """The nearest reference of another class for every query.

    Args:
        device: that torch computes on.
    """
    found = nothing_found(queries, references)
    for first in range(0, len(queries), QUERIES):
        rows = np.arange(first, min(first + QUERIES, len(queries)))
        block = queries.take(rows)
        for start in range(0, len(references), REFERENCES):
            others = references.take(np.arange(start, min(start + REFERENCES, len(references))))
            distances = _distances(block, others, norm, device)
            if not (block.is_whole and others.is_whole):
                distances = _exact(distances, found.best[rows], block, others, norm)
            found.lower(rows, _nearest(distances, start, nothing_found(block, others)))
        if progress is not None:
            progress(int(rows[-1]) + 1, len(queries))
    return found


def _distances(queries: Points, references: Points, norm: Norm, device: str) -> Tensor:
    """(queries, references) float64 distances (l2: squared), infinite for those of one class."""
    import torch

    is_whole = queries.is_whole and references.is_whole
    kind = torch.float32 if is_whole and norm != "l2" else torch.float64
    total = torch.zeros((len(queries), len(references)), dtype=torch.float64, device=device)
    for start in range(0, queries.rows.shape[1], _COLUMNS):
        ours, theirs = (_columns(points.rows, start, kind, device) for points in (queries, references))
        if is_whole and norm == "l2":
            squares = ours.square().sum(dim=1)[:, None] + theirs.square().sum(dim=1)
            total += squares - 2 * (ours @ theirs.T)
        else:
            mode = "donot_use_mm_for_euclid_dist"  # that would lose small distances
            part = torch.cdist(ours, theirs, p=_POWERS[norm], compute_mode=mode).double()
            total = torch.maximum(total, part) if norm == "linf" else total + (part.square() if norm == "l2" else part)
    classes = [torch.tensor(points.classes, device=device) for points in (queries, references)]
    return total.masked_fill_(classes[0][:, None] == classes[1], float("inf"))


def _columns(rows: Rows, start: int, kind: torch.dtype, device: str) -> Tensor:
    import torch

    return torch.tensor(rows[:, start : start + _COLUMNS], device=device).to(kind)


def _exact(distances: Tensor, known: Rows, queries: Points, references: Points, norm: Norm) -> Tensor:
    """The exact distances of those that can be the smallest of their row and below `known`; infinite for the others."""
    import torch

    best = torch.minimum(distances.amin(dim=1), torch.tensor(known, device=distances.device))
    is_near = torch.isfinite(distances) & (distances <= best[:, None] * _SLACK + _TINY)
    ours, theirs = (positions.cpu().numpy() for positions in is_near.nonzero(as_tuple=True))
    exact = torch.full(distances.shape, float("inf"), dtype=torch.float64)
    step = max(1, _VALUES_PER_LOOK // queries.rows.shape[1])
    for start in range(0, len(ours), step):
        first, second = ours[start : start + step], theirs[start : start + step]
        exact[first, second] = torch.tensor(exact_distances(queries.rows[first], references.rows[second], norm))
    return exact


def _nearest(distances: Tensor, start: int, nothing: Found) -> Found:
    """`nothing` with the smallest of each row, the first place of it, counted from `start`, and their number."""
    import torch

    best = distances.amin(dim=1)
    is_best = distances == best[:, None]
    places = torch.arange(start, start + distances.shape[1], device=distances.device)
    nearest = torch.where(is_best, places, NOBODY).amin(dim=1)
    rows = torch.isfinite(best).nonzero().ravel().cpu().numpy()
    smallest, nearest, ties = (each.cpu().numpy()[rows] for each in (best, nearest, is_best.sum(dim=1)))
    nothing.best[rows], nothing.nearest[rows], nothing.ties[rows] = smallest, nearest, ties
    return nothing
