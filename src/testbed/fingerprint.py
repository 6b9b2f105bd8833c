"""Content fingerprints: what a thing is, whatever it is called."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_CHUNK_BYTES = 1 << 20


def fingerprint(spec: Any) -> str:
    """SHA-256 (hex) of a JSON-able value in canonical form: keys sorted, no spaces, no NaN."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def model_fingerprint(name: str, label_space: str, spec: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a model's definition. The name counts: models of one file may differ in code alone."""
    return fingerprint({"name": name, "label_space": label_space, **spec})


def setting_fingerprint(
    name: str,
    spec: Mapping[str, Any],
    *,
    dataset: str,
    sample_indices: Iterable[int] | None,
    class_sublist: Iterable[int | Iterable[int]] | None,
) -> str:
    """SHA-256 (hex) of a setting's definition. The name counts: settings of one file may differ in code alone.

    Args:
        dataset: fingerprint of its data.
        sample_indices, class_sublist: the samples and classes it uses; None for all. A class may have several columns.
    """
    content = {
        "name": name,
        "spec": spec,
        "dataset": dataset,
        "subset": None if sample_indices is None else [int(index) for index in sample_indices],
        "class_sublist": None if class_sublist is None else [_columns(entry) for entry in class_sublist],
    }
    return fingerprint(content)


def _columns(entry: int | Iterable[int]) -> int | list[int]:
    return [int(column) for column in entry] if isinstance(entry, Iterable) else int(entry)


def file_sha256(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
