"""Metrics of sequences of frames: whether all frames around an anchor are right, and how often predictions flip.

A sample that is a frame has the id `SEQUENCE#FRAME`. Around an anchor, SEQUENCE is the anchor's path and FRAME the
signed offset from it, `+0` being the anchor; in a sequence from the first frame on, FRAME counts from 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testbed.errors import DataError
from testbed.metrics.accuracy import percent
from testbed.metrics.intervals import clustered_proportion
from testbed.records import MetricValue

_FRAME = re.compile(r"(.+)#([+-]?\d+)")


def anchored_id(anchor: str, offset: int) -> str:
    """Id of the frame `offset` frames after the anchor: `a.jpg#-3`; `a.jpg#+0` is the anchor itself."""
    return f"{anchor}#{offset:+d}"


def frame_id(sequence: str, frame: int) -> str:
    """Id of a frame of a sequence, counted from 0: `video.mp4#7`."""
    return f"{sequence}#{frame:d}"


def split_frame_id(sample_id: str) -> tuple[str, int] | None:
    """The sequence and the frame's offset or number in an id; None for a sample that is no frame."""
    found = _FRAME.fullmatch(sample_id)
    return None if found is None else (found[1], int(found[2]))


def sequences(sample_ids: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """The number of each sample's sequence (0, 1, ... as they come) and its frame; None unless all are frames."""
    if not sample_ids or split_frame_id(sample_ids[0]) is None:  # the others are not looked at for nothing
        return None
    pairs = [split_frame_id(name) for name in sample_ids]
    if None in pairs:
        return None
    numbers: dict[str, int] = {}
    owners = [numbers.setdefault(pair[0], len(numbers)) for pair in pairs if pair]
    return np.array(owners, np.int64), np.array([pair[1] for pair in pairs if pair], np.int64)


def pm_k(target_ranks: ArrayLike, sample_ids: Sequence[str], k: int | None = None) -> dict[str, MetricValue]:
    """Percent of anchors that are right (`pm0`), and of anchors that are right with all frames within k (`pm{k}`).

    An anchor without such frames counts in both by itself. The interval is over sequences.

    Args:
        target_ranks: [n] rank of the target, the best of its labels; 0 is right.
        sample_ids: n ids of `anchored_id`.
        k: the largest distance from the anchor that counts; None for the largest there is. With 0 there is `pm0` alone.
    Returns: by name; None as value where a sequence has no anchor, or has it twice.
    Raises: DataError: a sample is no frame.
    Source: Shankar et al. 2021, "Do image classifiers generalize across time?", section 2.
    """
    owners, offsets = _frames(sample_ids)
    num_sequences = int(owners.max()) + 1
    k = int(np.abs(offsets).max()) if k is None else k
    names = dict.fromkeys(("pm0", f"pm{k}"))
    if (bad := np.count_nonzero(np.bincount(owners[offsets == 0], minlength=num_sequences) != 1)) > 0:
        reason = f"{bad} of {num_sequences} sequences do not have their anchor frame once"
        return {name: MetricValue(name=name, value=None, n=num_sequences, reason=reason) for name in names}
    is_wrong = np.asarray(target_ranks) != 0
    found = {}
    for name, reach in zip(names, (0, k), strict=False):
        within = np.abs(offsets) <= reach
        num_wrong = np.bincount(owners[within], weights=is_wrong[within], minlength=num_sequences)
        right = (num_wrong == 0).astype(np.float64)
        detail = {"num_frames": int(np.count_nonzero(within))}
        found[name] = percent(name, right.mean(), clustered_proportion(right), n=num_sequences, detail=detail)
    return found


def flip_rate(
    predictions: ArrayLike, sample_ids: Sequence[str], reference: Literal["previous", "first"] = "previous"
) -> dict[str, MetricValue]:
    """Percent of the frames after the first whose prediction is not that of the frame they are compared with.

    The mean over sequences of each one's rate. A frame without a prediction (a logit is not finite) counts as flipped,
    and so does the one that is compared with it. The interval is over sequences; frames are draws within them.

    Args:
        predictions: [n] predicted classes; -1 for none.
        sample_ids: n ids of `frame_id`.
        reference: what frames are compared with: the 'previous' one, or the 'first', as where every frame has noise of
            its own.
    Returns: `flip_rate`; None as value where a sequence lacks a frame, has one twice, or has one only.
    Raises: DataError: a sample is no frame, or the reference is another word.
    Source: Hendrycks & Dietterich 2019, "Benchmarking neural network robustness to common corruptions and
        perturbations", section 4.2 (flip probability).
    """
    if reference not in ("previous", "first"):
        raise DataError(f"The reference is {reference!r}. Frames are compared with the 'previous' or the 'first' one.")
    owners, numbers = _frames(sample_ids)
    order = np.lexsort((numbers, owners))
    owners, numbers, predicted = owners[order], numbers[order], np.asarray(predictions)[order]
    lengths = np.bincount(owners)
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(len(owners)) - starts[owners]
    if (bad := len(np.unique(owners[numbers != positions]))) or lengths.min() < 2:
        reason = f"{bad or np.count_nonzero(lengths < 2)} of {len(lengths)} sequences lack frames"
        return {"flip_rate": MetricValue(name="flip_rate", value=None, n=len(lengths), reason=reason)}
    later = np.flatnonzero(positions > 0)
    other = later - 1 if reference == "previous" else starts[owners[later]]
    is_flipped = (predicted[later] != predicted[other]) | (predicted[later] < 0)
    rates = np.bincount(owners[later], weights=is_flipped) / (lengths - 1)
    interval = clustered_proportion(rates, num_draws=int(lengths.min()) - 1)
    detail = {"reference": reference, "num_frames": len(owners), "without_prediction": int((predicted < 0).sum())}
    return {"flip_rate": percent("flip_rate", rates.mean(), interval, n=len(rates), detail=detail)}


def whole_sequences(order: NDArray[np.integer], sample_ids: Sequence[str], limit: int) -> NDArray[np.int64] | None:
    """Positions of whole sequences, in ascending order: those that come first in `order`, up to `limit` samples.

    At least one sequence; None where samples are no frames.

    Args:
        order: positions of all samples, the ones that are wanted most first.
    """
    found = sequences(sample_ids)
    if found is None:
        return None
    owners = found[0]
    _, firsts = np.unique(owners[order], return_index=True)
    ranked = owners[order][np.sort(firsts)]
    num_fitting = np.searchsorted(np.cumsum(np.bincount(owners)[ranked]), limit, side="right")
    return np.flatnonzero(np.isin(owners, ranked[: max(1, int(num_fitting))]))


def _frames(sample_ids: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    found = sequences(sample_ids)
    if found is None:
        other = next((name for name in sample_ids if split_frame_id(name) is None), "")
        raise DataError(f"'{other}' is no frame of a sequence. Name the samples SEQUENCE#FRAME, such as 'a.jpg#+0'.")
    return found
