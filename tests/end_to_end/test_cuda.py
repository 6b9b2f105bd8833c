"""Evaluations on a CUDA device, as users run them. Without a device nothing here runs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.conftest import Command

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")

WORK = ("--models", "digits-resnet", "digits-linear", "--eval-settings", "digits-noise-linf-0.1",
        "digits-c.fog.3_in-memory", "--draws", 3)  # fmt: skip
Stored = list[tuple[int, int, str, bytes]]


def evaluate(command: Command, folder: Path, name: str, *more: object) -> Stored:
    done = command("eval.py", *WORK, *more, "--db-url", f"sqlite:///{name}.sqlite", CUDA_VISIBLE_DEVICES="0")
    assert done.code == 0, done.err
    query = "select evaluation_id, draw, start, sha256, predictions from logit_shards order by 1, 2, 3"
    with sqlite3.connect(folder / f"{name}.sqlite") as database:
        return [(row[0], row[1], f"{row[2]} {row[3]}", row[4]) for row in database.execute(query)]


def test_two_workers_on_one_device_store_the_bytes_of_one(command: Command, tmp_path: Path) -> None:
    one, two = (evaluate(command, tmp_path, f"workers-{n}", "--gpus", 0, "--workers-per-gpu", n) for n in (1, 2))
    assert one == two


def test_predictions_are_those_of_the_cpu_but_for_rounding(command: Command, tmp_path: Path) -> None:
    on_cuda = evaluate(command, tmp_path, "cuda", "--gpus", 0, "--precision", "fp32")
    on_cpu = evaluate(command, tmp_path, "cpu", "--workers", 1)
    ours, theirs = (np.concatenate([np.frombuffer(row[3], np.int32) for row in rows]) for rows in (on_cuda, on_cpu))
    assert (ours != theirs).mean() < 0.001
