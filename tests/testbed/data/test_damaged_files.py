"""Every kind of file that comes from outside, damaged at random: it is read, or refused in one line."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval_settings.cifar_reproductions import read_entries
from eval_settings.openimages import single_classes
from eval_settings.svhn import read_cropped_digits
from models._checkpoint import read_state
from testbed.data.array_files import mapped_array
from testbed.data.cifar import read_cifar
from testbed.data.class_order import class_map
from testbed.data.decoding import decode
from testbed.data.idx import read_idx
from testbed.data.npz import npz_class_map, npz_holds_rows, npz_samples
from testbed.data.parquet import EncodedImages
from testbed.data.published import read_rows
from testbed.data.sequences import num_frames, read_frames
from testbed.errors import TestbedError
from testbed.store.logit_files import read_index

NUM_DAMAGES = 300
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 8), np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def _write_npz(path: Path) -> None:
    np.savez(path, x_train=IMAGES, y_train=LABELS, x_test=IMAGES, y_test=LABELS, class_names=np.array(list("abc")))


def _write_compressed(path: Path) -> None:
    np.savez_compressed(path, x=IMAGES, y=np.array(["é", "b", "c"] * 2))


def _read_npz(path: Path) -> None:
    npz_holds_rows(path)
    npz_class_map(path, order=None, label_space=None)
    npz_samples(path, "test", dataset="mine", order=None, label_space=None)


def _write_idx(path: Path) -> None:
    content = bytes((0, 0, 8, 3)) + b"".join(size.to_bytes(4, "big") for size in IMAGES.shape) + IMAGES.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def _write_matlab(path: Path) -> None:
    from scipy.io import savemat

    images = np.zeros((32, 32, 3, 6), np.uint8)
    savemat(path, {"X": images, "y": np.arange(1, 7, dtype=np.uint8)[:, None]}, do_compression=True)


def _write_parquet(path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    write_table(pyarrow.table({"image": [{"bytes": b"image", "path": "a.png"}] * 6, "label": LABELS}), path)


def _write_state(path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    state = {"head.weight": torch.ones(3, 5), "head.bias": torch.zeros(3), "steps": torch.tensor(7)}
    save_file(state, path) if path.suffix == ".safetensors" else torch.save({"state_dict": state}, path)


def _write_logits(path: Path) -> None:
    np.savez(path.with_name("net.npz"), logits=np.ones((2, 6, 3), np.float32), targets=LABELS,
             sample_ids=np.array([f"test/{index}" for index in range(6)]), label_sets=LABELS[:, None])  # fmt: skip
    entry = {"model": "net", "eval_setting": "data", "file": "net.npz", "fit_seed": 1, "numerics": {"dtype": "float32"}}
    path.with_name("index.json").write_text(json.dumps({"format": 1, "models": [entry]}))


def _read_logits(path: Path) -> None:
    for file in read_index(path.parent):
        file.arrays()
        file.label_sets()
        assert all(draw.shape == file.shape()[1:] for draw in file.draws())


def _write_video(path: Path) -> None:
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as video:
        stream = video.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 32
        for shade in range(5):
            frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 40 * shade, np.uint8), format="rgb24")
            video.mux(stream.encode(frame))
        video.mux(stream.encode(None))


def _write_image(path: Path) -> None:
    from PIL import Image

    Image.fromarray(IMAGES[0]).save(path)


def _pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps({"data": np.zeros((6, 3072), np.uint8), "labels": LABELS.tolist()}, protocol=2))


def _dictionary(path: Path) -> None:
    entries: Any = {"images": np.zeros((6, 32, 32, 3), np.uint8), "labels": LABELS}
    np.save(path, np.array(entries, object), allow_pickle=True)


def _text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content, encoding="utf-8")


def _read_class_order(path: Path) -> None:
    class_map(["é", "b"], order=path, label_space=None, where="here")


# Name of the file -> what writes it whole, and what reads it.
KINDS: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "set.npz": (_write_npz, _read_npz),
    "compressed.npz": (_write_compressed, _read_npz),
    "fog.npy": (lambda path: np.save(path, IMAGES), lambda path: mapped_array(path).sum()),
    "images.idx": (_write_idx, lambda path: read_idx(path, num_dimensions=3)),
    "images.gz": (_write_idx, lambda path: read_idx(path, num_dimensions=3)),
    "digits.mat": (_write_matlab, lambda path: read_cropped_digits([path])),
    "test.parquet": (_write_parquet, lambda path: [EncodedImages([path]).labels]),
    "net.safetensors": (_write_state, read_state),
    "net.pt": (_write_state, read_state),
    "net.npz": (_write_logits, _read_logits),
    "index.json": (_write_logits, _read_logits),
    "clip.mp4": (_write_video, lambda path: (num_frames(path), read_frames(path))),
    "photo.png": (_write_image, lambda path: decode(path, color_mode="RGB")),
    "photo.jpg": (_write_image, lambda path: decode(path, color_mode="RGB")),
    "photo.tif": (_write_image, lambda path: decode(path, color_mode="RGB")),
    "batch": (_pickled, lambda path: read_cifar([path], labels="labels")),
    "again.npy": (_dictionary, lambda path: read_entries([path])),
    "grid.csv": (_text('model,"a, b",c\nné,1.5,2\nother,3,4\n'), read_rows),
    "labels.csv": (_text("ImageID,LabelName,Confidence\n" + "one,/m/01c648,1\n" * 3), single_classes),
    "classes.txt": (_text("é\nb\nc\n"), _read_class_order),
}


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with bits turned, a stretch set to one byte, cut off, left out or doubled, at random places."""
    start = chance.randrange(len(content))
    stop = min(len(content), start + chance.choice((1, 2, 8, 64, 512)))
    kind = chance.randrange(5)
    if kind == 0:
        turned = bytearray(content)
        for _ in range(chance.choice((1, 3, 10))):
            turned[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        return bytes(turned)
    same = bytes([chance.choice((0, 255, 0x28, 0x5B))]) * (stop - start)
    middle = {1: same, 2: b"", 3: b"", 4: 2 * content[start:stop]}[kind]
    return content[:start] + middle + (b"" if kind == 2 else content[stop:])


@pytest.mark.parametrize("name", KINDS)
def test_a_whole_file_is_read(tmp_path: Path, name: str) -> None:
    write, read = KINDS[name]
    write(tmp_path / name)
    read(tmp_path / name)


@pytest.mark.attack
@pytest.mark.filterwarnings("ignore")  # of libraries about what is damaged
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path, name: str) -> None:
    write, read = KINDS[name]
    path = tmp_path / name
    write(path)
    whole, chance, refused = path.read_bytes(), random.Random(name), []
    for _ in range(NUM_DAMAGES):
        path.unlink()  # and not written over, which would change what is mapped
        path.write_bytes(damaged(whole, chance))
        try:
            read(path)
        except TestbedError as error:
            refused.append(str(error))
    assert len(refused) > NUM_DAMAGES // 10
    assert not [message for message in refused if "\n" in message]
