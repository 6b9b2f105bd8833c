"""What can be read of stored logits that are not all there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.codec import decode
from testbed.errors import DataError
from testbed.logit_policy import NO_LOGITS, keeps_all
from testbed.logit_policy import read_top as decode_top
from testbed.records import IntArray
from testbed.top_logits import TopLogits, top_logits

InSetting = Callable[[NDArray[np.float32]], NDArray[np.float32]]
_REMEDY = "Evaluate it again with --store-logits full to have all logits."


def what_is_kept(codec: str) -> str:
    """The rest of a sentence about an evaluation that lacks logits: what it keeps, and what can be asked of it."""
    policy = codec.removesuffix("+f32")
    what, more = ("the largest logits", "top_logits, ") if policy.startswith("topk") else ("predictions", "")
    return f"keeps {what} only (--store-logits {policy}): ask for {more}predictions or target_ranks. {_REMEDY}"


def read_top(rows: Iterable[Any], targets: IntArray, *, k: int | None, in_setting: InSetting, name: str) -> TopLogits:
    """The k largest logits of all rows, as many as every row has where k is None.

    Args:
        rows: shards with start, stop, codec, num_outputs and payload, in order.
        targets: [n] over the setting's classes.
        in_setting: takes whole rows to the logits of the setting's classes.
        name: of the evaluation, for errors.
    Raises: DataError: a row has none, or fewer than k.
    """
    parts = []
    for row in rows:
        if row.payload is None:
            raise DataError(f"{name} {what_is_kept(NO_LOGITS)}")
        parts.append(_top(row, targets[row.start : row.stop], in_setting))
    available = min(part.values.shape[1] for part in parts)
    wanted = available if k is None else k
    if not 1 <= wanted <= available:
        raise DataError(f"{name} keeps the {available} largest logits of each sample, and {k} were asked for.")
    cut = [part.first(wanted) for part in parts]
    fields = ("values", "classes", "target_logits", "log_normalizers")
    return TopLogits(**{field: np.concatenate([getattr(part, field) for part in cut]) for field in fields})


def _top(row: Any, targets: IntArray, in_setting: InSetting) -> TopLogits:
    if not keeps_all(row.codec):
        return decode_top(row.payload, codec=row.codec, num_outputs=row.num_outputs)
    logits = in_setting(decode(row.payload, codec=row.codec, num_outputs=row.num_outputs))
    return top_logits(logits, targets, k=logits.shape[1])
