"""Column types that SQLite and PostgreSQL lack: moments in UTC and arrays of whole numbers; and JSON-able values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import DateTime, Dialect, LargeBinary
from sqlalchemy.types import TypeDecorator

from testbed.errors import StoreError
from testbed.records import IntArray

json_text = partial(json.dumps, allow_nan=False, separators=(",", ":"))  # NaN is not JSON, and no two databases agree


class UtcDateTime(TypeDecorator[datetime]):
    """A moment; handed out with its time zone, which is UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment with its time zone; SQLite keeps none."""
        if value is None or value.tzinfo is not None:
            return value
        return value.replace(tzinfo=UTC)


class Int32Array(TypeDecorator[IntArray]):
    """A one-dimensional array of whole numbers as little-endian int32 bytes."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: IntArray | None, dialect: Dialect) -> bytes | None:
        """The bytes of the array."""
        return None if value is None else int32_bytes(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> NDArray[np.int32] | None:
        """The array, read-only."""
        return None if value is None else np.frombuffer(value, dtype="<i4")


def int32_bytes(values: IntArray) -> bytes:
    """Bytes of `values` ([n] whole numbers) as little-endian int32.

    Raises: StoreError: a value does not fit.
    """
    array = np.asarray(values)
    narrow = array.astype("<i4")
    if array.ndim != 1 or not np.array_equal(narrow, array):
        raise StoreError(f"An array of shape {array.shape} and type {array.dtype} cannot be stored as a row of int32.")
    return narrow.tobytes()


def finite(value: float | None) -> float | None:
    """`value`, or None where it is NaN or infinite: databases do not agree on those."""
    return None if value is None or not math.isfinite(value) else float(value)


def jsonable(value: Any) -> Any:
    """`value` as dictionaries, lists, strings and numbers; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist())
    return finite(value) if isinstance(value, float) else value
