"""Logits as files that any program can read: one .npz per evaluation and an index, never a half-written file."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError, StoreError
from testbed.fingerprint import file_sha256, fingerprint
from testbed.logit_policy import keeps_all
from testbed.paths import replacing
from testbed.store.evaluation import Evaluation
from testbed.store.payloads import what_is_kept

_LONGEST = 100  # letters of a name in a file name

INDEX = "index.json"
FORMAT = 1


def save_logits(evaluations: Iterable[Evaluation], directory: Path, *, override: bool = False) -> Path:
    """Writes the logits of complete evaluations of one setting; returns the path of the index.

    Each `.npz` holds `logits` (draws, n, classes) float32, `targets` (n,) int32 and `sample_ids` (n,) text, and where
    several classes of a sample are right `label_sets` (n, labels) int32, filled up with -1; all are over the setting's
    classes. `index.json` says which file is what.

    Raises:
        StoreError: there is nothing to write, or a file is there already and `override` is not given.
        DataError: an evaluation keeps a part of its logits only; nothing is written then.
    """
    evaluations = list(evaluations)
    if not evaluations:
        raise StoreError("No complete evaluation of this setting is stored. Run eval.py on it first.")
    for name in (INDEX, *map(file_name, evaluations)):
        if (directory / name).exists() and not override:
            raise StoreError(
                f"{directory / name} is there already. Give --override to replace it, or another directory."
            )
    if lacking := [evaluation for evaluation in evaluations if not evaluation.keeps_all_logits]:
        kept = what_is_kept(next(codec for codec in lacking[0].logit_codecs if not keeps_all(codec)))
        raise DataError(
            f"{len(lacking)} of {len(evaluations)} evaluation(s) have not all logits, so none were written. The first, "
            f"{lacking[0].model} on {lacking[0].setting}, {kept}"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        entries = [_save(evaluation, directory / file_name(evaluation)) for evaluation in evaluations]
        write_whole(directory / INDEX, json.dumps({"format": FORMAT, "models": entries}, indent=1).encode())
    except OSError as error:
        raise StoreError(f"Cannot write under {directory}: {error.strerror}. Choose another directory.") from error
    return directory / INDEX


def file_name(evaluation: Evaluation) -> str:
    """A file name that is distinct for distinct evaluations, whatever characters their model's name has."""
    identity = [
        evaluation.model_fingerprint,
        evaluation.setting_fingerprint,
        evaluation.fit_seed,
        evaluation.noise_seed,
        dict(evaluation.numerics),
    ]
    return f"{slug(evaluation.model)}-{fingerprint(identity)[:8]}.npz"


def slug(name: str) -> str:
    """`name` as a plain file name: other characters and a full stop at its start become `_`.

    It has at most 100 letters; of a longer name the end gives way to a part of its hash, so that two stay two.
    """
    plain = re.sub(r"^\.|[^A-Za-z0-9._-]", "_", name)
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 9]}-{fingerprint(name)[:8]}"


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, even if the program is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part, open(part, "wb") as stream:
        stream.write(content)
        _sync(stream)


def _save(evaluation: Evaluation, path: Path) -> dict[str, Any]:
    with replacing(path) as part, open(part, "wb") as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            _write_array(archive, "targets", evaluation.targets())
            _write_array(archive, "sample_ids", np.array(evaluation.sample_ids()))
            if (label_sets := evaluation.label_sets()) is not None:
                _write_array(archive, "label_sets", label_sets)
            num_classes = _write_logits(archive, evaluation)
        _sync(stream)
    return {
        "model": evaluation.model,
        "label_space": evaluation.label_space,
        "eval_setting": evaluation.setting,
        "file": path.name,
        "sha256": file_sha256(path),
        "fit_seed": evaluation.fit_seed,
        "noise_seed": evaluation.noise_seed,
        "num_draws": evaluation.num_draws,
        "n": evaluation.n,
        "stored_as": list(evaluation.logit_codecs),
        "num_classes": num_classes,
        "class_names": list(evaluation.class_names),
        "numerics": dict(evaluation.numerics),
        "model_fingerprint": evaluation.model_fingerprint,
        "setting_fingerprint": evaluation.setting_fingerprint,
    }


def _write_logits(archive: zipfile.ZipFile, evaluation: Evaluation) -> int:
    """Writes the logits shard by shard, so that no more than one of them is in memory; returns their width."""
    num_classes = len(evaluation.class_names)
    shape = (evaluation.num_draws, evaluation.n, num_classes)
    with archive.open("logits.npy", "w", force_zip64=True) as member:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        for draw in range(evaluation.num_draws):
            for _, logits in evaluation.logit_shards(draw):
                member.write(np.ascontiguousarray(evaluation.in_setting(logits), "<f4").tobytes())
    return num_classes


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)


def _sync(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())
