"""A data set that is decoded while models run: with a bank or without, killed and resumed, the same stored bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.conftest import ROOT, Command, environment
from tests.end_to_end.test_same_bytes import Shards, shards

PLUGIN = """
import os
import time

import numpy as np
import torch

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model
from registry import registry

WEIGHTS = torch.arange(360.0).reshape(36, 10).sin()

def slowly_turned(image):
    '''Writes down which image it was given: its first two pixels tell.'''
    pixels = np.asarray(image)
    handle = os.open('decoded.txt', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f'{256 * int(pixels[0, 0]) + int(pixels[0, 1])}\\n'.encode())
    os.close(handle)
    time.sleep(0.001)
    return image.transpose(1)

registry.add_eval_setting(EvalSetting(name='turned', dataset=StandardDataset(name='many'), transform=slowly_turned))
registry.add_model(Model(
    name='linear', transform=None, classifier_loader=lambda: None, label_space='unknown', eval_batch_size=64,
    classify=lambda images, model: images.flatten(1) @ WEIGHTS, version='1',
))
"""
NUM_SAMPLES = 4_200  # more than are decoded before any model is run
BLOCK = 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_many(tmp_path)
    return tmp_path


def make_many(folder: Path) -> None:
    """Puts a data set of images, each told by its first two pixels, and a plugin into a folder."""
    images = np.random.default_rng(0).integers(0, 256, (NUM_SAMPLES, 6, 6), dtype=np.uint8)
    images[:, 0, 0], images[:, 0, 1] = np.arange(NUM_SAMPLES) // 256, np.arange(NUM_SAMPLES) % 256
    (folder / "data").mkdir()
    np.savez(folder / "data" / "many.npz", x_test=images, y_test=np.arange(NUM_SAMPLES) % 10)
    (folder / "plugin.py").write_text(PLUGIN)


def arguments(database: str, *more: object) -> list[str]:
    line = ["--models", "linear", "--eval-settings", "turned", "--plugin", "plugin.py", "--quiet", "--workers", 1]
    return [str(argument) for argument in (*line, "--db-url", f"sqlite:///{database}", *more)]


def decoded(folder: Path) -> Counter[int]:
    log = folder / "decoded.txt"
    return Counter(map(int, log.read_text().split())) if log.exists() else Counter()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    folder = tmp_path_factory.mktemp("undisturbed")
    make_many(folder)
    line = [sys.executable, str(ROOT / "eval.py"), *arguments("one.sqlite")]
    done = subprocess.run(line, cwd=folder, env=environment(folder / "home"), capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {count for index, count in decoded(folder).items() if index} == {1}
    return shards(folder / "one.sqlite")


def test_with_and_without_a_bank_the_same_bytes_are_stored(command: Command, folder: Path, undisturbed: Shards) -> None:
    home = folder / "home-without"
    done = command("eval.py", *arguments("two.sqlite", "--bank", "off"), TESTBED_HOME=str(home))
    assert done.code == 0, done.err
    assert shards(folder / "two.sqlite") == undisturbed
    assert not (home / "bank").exists()


def test_a_killed_run_is_resumed_with_the_blocks_that_are_missing(
    command: Command, folder: Path, undisturbed: Shards
) -> None:
    home = folder / "home-killed"
    started = subprocess.Popen([sys.executable, str(ROOT / "eval.py"), *arguments("three.sqlite")], cwd=folder,
                               env=environment(home), start_new_session=True, stderr=subprocess.DEVNULL)  # fmt: skip
    while len(decoded(folder)) < NUM_SAMPLES // 2:
        assert started.poll() is None
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    before = decoded(folder)
    assert len(before) < NUM_SAMPLES
    done = command("eval.py", *arguments("three.sqlite"), TESTBED_HOME=str(home))
    assert done.code == 0, done.err
    assert shards(folder / "three.sqlite") == undisturbed
    twice = [index for index, count in decoded(folder).items() if count > 1 and index]
    cores = len(os.sched_getaffinity(0))
    assert len(twice) <= cores * BLOCK, "only the blocks in work are decoded again"
    assert sum(decoded(folder).values()) <= NUM_SAMPLES + 1 + cores * BLOCK
    (whole,) = (home / "bank").glob("*.npy")
    whole.unlink()
    before = decoded(folder)
    done = command("eval.py", *arguments("three.sqlite"), TESTBED_HOME=str(home))
    assert done.code == 0, done.err
    assert decoded(folder) - before == Counter([0]), "what is stored needs no decoding, but of one sample for its shape"
    assert {path.suffix for path in (home / "bank").iterdir()} == {".lock", ".checksums"}


def test_damage_far_inside_fails_the_evaluation_and_names_all_damaged_files_with_their_indices(
    command: Command, folder: Path
) -> None:
    for name in "ab":
        (folder / "data" / "photos" / name).mkdir(parents=True)
    good = folder / "data" / "photos" / "a" / "0000.png"
    Image.fromarray(np.arange(36, dtype=np.uint8).reshape(6, 6)).save(good)
    for index in range(1, NUM_SAMPLES):
        os.link(good, folder / "data" / "photos" / "ab"[index % 2] / f"{index:04d}.png")
    for name in ("b/3999.png", "b/4001.png"):
        (folder / "data" / "photos" / name).unlink()
        (folder / "data" / "photos" / name).write_bytes(b"<html>")
    plugin = PLUGIN.replace("name='turned', dataset", "name='photos', dataset").replace("'many'", "'photos'")
    plugin = plugin.replace("transform=slowly_turned", "size=None")
    plugin = plugin.replace("images.flatten(1) @", "images[:, 0].flatten(1) @").replace("(36, 10)", "(36, 2)")
    (folder / "plugin.py").write_text(plugin.replace("360.0", "72.0"))
    line = ["--models", "linear", "--eval-settings", "photos", "--plugin", "plugin.py", "--workers", 1, "--db"]
    done = command("eval.py", *line, TESTBED_HOME=str(folder / "home"))
    assert done.code == 1, done.err
    assert "2 of the 4200 files of data set 'photos' (test) cannot be decoded" in done.err
    for part in ("Index 4099: Cannot decode", "b/3999.png: it is not an image", "b/4001.png: it is not an image"):
        assert part in done.err
