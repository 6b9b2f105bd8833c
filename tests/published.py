"""Small data sets in the formats in which the large ones are published, made of random pixels."""

from __future__ import annotations

import gzip
import hashlib
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
WNIDS = ("n01443537", "n02124075")
PUBLISHED_LABELS = {"cifar10": "labels", "cifar100": "fine_labels"}


def random_images(count: int, *shape: int, seed: int = 0) -> Pixels:
    """[count, *shape] uint8."""
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def python2_batch(images: Pixels, targets: Sequence[int], *, labels: str = "labels") -> bytes:
    """A batch of CIFAR as Python 2 pickled it: images [n, 32, 32, 3] under `data`, targets under `labels`."""
    data = images.transpose(0, 3, 1, 2).tobytes()
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = b"J" + struct.pack("<i", len(images)) + b"M\x00\x0c\x86"
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01" + shape + dtype
        + b"\x89T" + struct.pack("<i", len(data)) + data + b"tb"
    )  # fmt: skip
    numbers = b"](" + b"".join(b"K" + bytes((target,)) for target in targets) + b"e"
    name = b"U" + bytes((len(labels),)) + labels.encode()
    return b"\x80\x02}(U\x0bbatch_labelU\x04testU\x04data" + array + name + numbers + b"u."


def binary_batch(images: Pixels, targets: Sequence[int], *, labels: str = "labels") -> bytes:
    """A batch of CIFAR in the binary format; the coarse labels of CIFAR-100 are all 19."""
    coarse = b"\x13" if labels == "fine_labels" else b""
    pixels = images.transpose(0, 3, 1, 2)
    return b"".join(coarse + bytes((target,)) + image.tobytes() for target, image in zip(targets, pixels, strict=True))


def write_cifar(
    folder: Path, *, dataset: str, is_binary: bool, per_file: int = 2
) -> dict[str, tuple[Pixels, list[int]]]:
    """Writes the batches of `cifar10` or `cifar100`; returns images and targets by split."""
    train = ("train",) if dataset == "cifar100" else tuple(f"data_batch_{number}" for number in range(1, 6))
    test = ("test",) if dataset == "cifar100" else ("test_batch",)
    labels = PUBLISHED_LABELS[dataset]
    written = {}
    for seed, (split, names) in enumerate({"train": train, "test": test}.items()):
        images = random_images(per_file * len(names), 32, 32, 3, seed=seed)
        targets = [(7 * index + 3 + seed) % (100 if dataset == "cifar100" else 10) for index in range(len(images))]
        for number, name in enumerate(names):
            part = slice(number * per_file, (number + 1) * per_file)
            batch = (binary_batch if is_binary else python2_batch)(images[part], targets[part], labels=labels)
            write(folder / (name + ".bin" * is_binary), batch)
        written[split] = (images, targets)
    return written


def idx_bytes(array: Pixels) -> bytes:
    """An array of bytes as an idx file."""
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder: Path, *, is_compressed: bool, count: int = 3) -> dict[str, tuple[Pixels, list[int]]]:
    """Writes the four files of MNIST and its relatives; returns images and targets by split."""
    written = {}
    for seed, (split, start) in enumerate({"train": "train", "test": "t10k"}.items()):
        images, targets = random_images(count, 28, 28, seed=seed), [(3 * index + seed) % 10 for index in range(count)]
        parts = {"images-idx3": images, "labels-idx1": np.array(targets, dtype=np.uint8)}
        for name, array in parts.items():
            content = idx_bytes(array)
            compressed = gzip.compress(content, mtime=0) if is_compressed else content
            write(folder / f"{start}-{name}-ubyte{'.gz' * is_compressed}", compressed)
        written[split] = (images, targets)
    return written


def write_tiny_imagenet(folder: Path) -> dict[str, dict[str, int]]:
    """Writes Tiny-ImageNet of two classes; returns the class index of each image by split and relative path."""
    write(folder / "wnids.txt", b"n02124075\nn01443537\n")  # not sorted, as published
    train = {f"train/{wnid}/images/{wnid}_{i}.JPEG": k for k, wnid in enumerate(WNIDS) for i in range(2)}
    val = {f"val/images/val_{index}.JPEG": index % 2 for index in range(3)}
    write_jpegs(folder, [*train, *val, "test/images/test_0.JPEG"], size=64)
    for wnid in WNIDS:
        write(folder / "train" / wnid / f"{wnid}_boxes.txt", f"{wnid}_0.JPEG\t0\t10\t63\t58\n".encode())
    lines = [f"{Path(name).name}\t{WNIDS[target]}\t0\t32\t44\t62\n" for name, target in val.items()]
    write(folder / "val" / "val_annotations.txt", "".join(lines).encode())
    return {"train": train, "val": val}


def write_jpegs(folder: Path, names: Sequence[str], *, size: int) -> None:
    """Writes an image of random pixels under each name."""
    for seed, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random_images(size, size, 3, seed=seed)).save(folder / name, format="JPEG")


def write(path: Path, content: bytes) -> Path:
    """Writes a file and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def md5(path: Path) -> str:
    """MD5 of a file, which is how torchvision checks what it downloads."""
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server of this machine's own that gives the files of a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass
