"""How much faster this engine is than a fresh process per pair, and how near it comes to the bare forward loop.

    python tests/benchmarks/engine.py [--quick] [--output results/benchmarks/engine]

Four ways do the same work on the same images, one after the other, with the same number of cores:

    a  the ancestor's design (`one_pair.py`): a new process per model and setting, which decodes the images itself; as
       many at a time as there are cores, one thread each. Corruptions are those of the package
       `imagecorruptions-imaug`, image by image.
    b  `eval.py`, with empty caches and an empty store
    c  `eval.py`, with the decoded images in its cache, and an empty store
    d  the forward passes alone, on images in memory, one process with one thread per core (`bare_loop.py`)

Times of a, b and c are of whole commands, start-up included. Before anything is timed each of them runs once on a small
part, so that programs and libraries come from memory. Targets: a / c of 10 with 28-px models and of 2.5 with mobile
networks at 224 px. The clean logits of a, b and c must be the same predictions. The machine should be idle.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from measuring import DEFINITIONS, RESULTS, ROOT, CommandError, Log, evaluate, print_table, write_table
from numpy.typing import NDArray
from photos import make_photos

HERE = Path(__file__).resolve().parent
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow",
    "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
EPSILONS = (0.02, 0.05, 0.1, 0.15, 0.2)
SEVERITY = 3
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
CLOSE = 1e-4  # of logits: batches of another size round differently


@dataclass(frozen=True, kw_only=True)
class Case:
    """Models, images and settings that all four ways evaluate.

    Args:
        name: of the row.
        definitions: file of the models.
        models: their names.
        data: a folder of class folders, or an .npz.
        label_space: of the models.
        settings: by name in `eval.py`, the same for `one_pair.py`.
        num_images: in `data`.
        target: of a / c.
    """

    name: str
    definitions: Path
    models: tuple[str, ...]
    data: Path
    label_space: str
    settings: dict[str, str]
    num_images: int
    target: float

    @property
    def num_samples(self) -> int:
        """Images that go through a network."""
        return self.num_images * len(self.models) * len(self.settings)


def main() -> None:
    """Prints and writes the table; the exit status is 1 where answers differ or, unless --quick, a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few models, settings and images; ratios mean little then")
    parser.add_argument("--output", type=Path, default=RESULTS / "engine", help="of the table, .csv and .json")
    parser.add_argument("--images", type=int, nargs=2, metavar=("28PX", "224PX"), help="of the two cases")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")
    options = parser.parse_args()
    if importlib.util.find_spec("imagecorruptions") is None:
        sys.exit("The baseline needs its corruptions: python -m pip install imagecorruptions-imaug==1.1.5")
    images = options.images or ((64, 64) if options.quick else (1000, 256))
    rows: list[dict[str, Any]] = []
    faults: list[str] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for case in (small_case(Path(folder), images[0]), mobile_case(Path(folder), images[1])):
            row = measure(quick(case) if options.quick else case, Path(folder) / case.name, options.cores, faults)
            rows.append(row)
            print_table([row])
            print(flush=True)
    write_table(rows, options.output, cores_used=options.cores, is_quick=options.quick, faults=faults)
    missed = [] if options.quick else [f"below the target: {r['case']}" for r in rows if r["a/c"] < r["target"]]
    print("\n".join([*faults, *missed]) or "Same answers.")
    sys.exit(1 if faults or missed else 0)


def small_case(folder: Path, num_images: int) -> Case:
    """Fashion-MNIST's first test images, or random ones where it is not installed, and the four shipped networks."""
    data, definitions = folder / "small.npz", ROOT / "src" / "models" / "fashion_mnist.py"
    pixels, labels = _fashion_mnist(num_images)
    np.savez(data, x=pixels, y=labels)
    noise = {f"small-noise-linf-{epsilon:g}": f"noise:{epsilon:g}" for epsilon in EPSILONS}
    return Case(
        name="28 px",
        definitions=definitions,
        models=("fashion-mnist-cnn", "fashion-mnist-cnn-mscr-linf", "fashion-mnist-resnet", "fashion-mnist-odenet"),
        data=data,
        label_space="fashion-mnist",
        settings={"small": "clean", **noise, **_corrupted("small", CORRUPTIONS[:10])},
        num_images=num_images,
        target=10,
    )


def mobile_case(folder: Path, num_images: int) -> Case:
    """Generated photographs and four MobileNetV3-Small."""
    make_photos(folder / "photos", num_images, num_classes=20)
    return Case(
        name="mobile, 224 px",
        definitions=DEFINITIONS / "mobile.py",
        models=tuple(f"mobile-{seed}" for seed in range(4)),
        data=folder / "photos",
        label_space="photos",
        settings={"photos": "clean", **_corrupted("photos", CORRUPTIONS)},
        num_images=num_images,
        target=2.5,
    )


def quick(case: Case) -> Case:
    """Two of its models and three of its settings."""
    return replace(case, models=case.models[:2], settings=dict(list(case.settings.items())[::6]))


def measure(case: Case, folder: Path, cores: int, faults: list[str]) -> dict[str, Any]:
    """The row of a case; what is wrong with the answers is added to `faults`."""
    folder.mkdir()
    warm_up(case, folder)
    first, (a, pairs) = next(iter(case.settings)), one_process_per_pair(case, folder / "pairs", cores)
    cold = engine(case, home=folder / "home", to=folder / "cold", cores=cores)
    warm = engine(case, home=folder / "home", to=folder / "warm", cores=cores)
    d = bare_loop(case, cores)
    for log in (cold, warm):
        faults += differences(case, pairs, log.logits(first))
    seconds = {"a": a, "b": cold.seconds, "c": warm.seconds, "d": d}
    return {
        "case": case.name,
        "models": len(case.models),
        "settings": len(case.settings),
        "images": case.num_images,
        **{f"{way} s": round(taken, 2) for way, taken in seconds.items()},
        **{f"{way} images/s": round(case.num_samples / taken, 1) for way, taken in seconds.items()},
        "a/b": round(a / cold.seconds, 2),
        "a/c": round(a / warm.seconds, 2),
        "target": case.target,
        "d/c": round(d / warm.seconds, 3),
    }


def warm_up(case: Case, folder: Path) -> None:
    """Runs both designs on one pair, so that neither is the first to read the libraries from the disk."""
    few = replace(case, models=case.models[:1], settings=dict(list(case.settings.items())[-1:]))
    one_process_per_pair(few, folder / "first", cores=1)
    engine(few, "--limit", 16, home=folder / "first home", to=folder / "first log", cores=1)


def one_process_per_pair(case: Case, folder: Path, cores: int) -> tuple[float, dict[str, Path]]:
    """Seconds of all pairs, and by model the file of its clean logits."""
    folder.mkdir()
    pairs = [(model, setting) for model in case.models for setting in case.settings.values()]
    files = {pair: folder / f"{number}.pt" for number, pair in enumerate(pairs)}

    def run(pair: tuple[str, str]) -> None:
        line = [HERE / "one_pair.py", case.definitions, pair[0], case.data, pair[1], files[pair]]
        done = subprocess.run([sys.executable, *map(str, line)], env=ONE_THREAD, capture_output=True, text=True)
        if done.returncode:
            raise CommandError(f"{pair}: {done.stderr[-2000:]}")

    begin = perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(run, pairs))
    return perf_counter() - begin, {model: file for (model, name), file in files.items() if name == "clean"}


def engine(case: Case, *more: object, home: Path, to: Path, cores: int) -> Log:
    """The same by `eval.py`, with one worker of one thread per core."""
    plugin = [] if case.definitions.is_relative_to(ROOT / "src") else ["--plugin", case.definitions]
    if case.data.is_dir():
        data = ["--data-root", case.data.parent]
    else:
        data = ["--dataset", f"{case.data.stem}={case.data}", "--label-space", case.label_space]
    work = ["--models", *case.models, "--eval-settings", *case.settings, "--draws", 1, "--workers", cores]
    return evaluate(*work, *plugin, *data, *more, home=home, to=to)


def bare_loop(case: Case, cores: int) -> float:
    """Seconds of the slowest of the processes, which share the images and begin together."""
    edges = np.linspace(0, case.num_images, cores + 1).astype(int)
    line = [sys.executable, HERE / "bare_loop.py", case.definitions, case.data, len(case.settings)]
    started = [
        subprocess.Popen([*map(str, (*line, start, stop)), *case.models], text=True, stdin=-1, stdout=-1,
                         stderr=subprocess.DEVNULL, env=ONE_THREAD)
        for start, stop in pairwise(edges)
    ]  # fmt: skip
    for process in started:
        process.stdout.readline()  # type: ignore[union-attr]
    for process in started:
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    return max(float(process.communicate()[0]) for process in started)


def differences(case: Case, pairs: dict[str, Path], logits: dict[str, NDArray[np.float32]]) -> list[str]:
    """Sentences on models whose clean answers differ between the ancestor's design and the engine."""
    import torch

    found = []
    for model, file in pairs.items():
        theirs, ours = torch.load(file, weights_only=True).numpy(), logits[model]
        changed, farthest = int((theirs.argmax(1) != ours.argmax(1)).sum()), float(np.abs(theirs - ours).max())
        if changed or farthest > CLOSE * np.abs(theirs).max():
            found.append(f"{case.name}: {model} differs in {changed} predictions, in logits by {farthest:.2g}")
    return found


def _corrupted(dataset: str, names: tuple[str, ...]) -> dict[str, str]:
    return {f"{dataset}-c.{name}.{SEVERITY}_in-memory": f"{name}:{SEVERITY}" for name in names}


def _fashion_mnist(num_images: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (n, 28, 28, 1) and labels."""
    if not FASHION_MNIST.is_dir():
        rng = np.random.default_rng(0)
        return rng.integers(0, 256, (num_images, 28, 28, 1), np.uint8), np.arange(num_images) % 10
    images = gzip.decompress((FASHION_MNIST / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((FASHION_MNIST / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:]
    pixels = np.frombuffer(images, np.uint8).reshape(-1, 28, 28, 1)[:num_images]
    return pixels, np.frombuffer(labels, np.uint8)[:num_images].astype(np.int64)


if __name__ == "__main__":
    main()
