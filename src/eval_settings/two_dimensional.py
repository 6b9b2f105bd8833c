"""The data sets `2d-a`, `2d-b` and `2d-c`: points in the unit square, two classes, made for the study of noise.

Every run splits a set anew, 80 % to fit and 20 % to test. Distances are those of the whole set. The noise levels are
the published ones.

Source: Siedel et al. 2022; the points lie in the authors' repository.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from eval_settings.dataset_base import Dataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed import paths
from testbed.data.download import fetch
from testbed.data.npz import npz_samples
from testbed.records import Samples

SPLIT = "all"
TEST_FRACTION = 0.2
ADDRESS = (
    "https://raw.githubusercontent.com/Georgsiedel/minimal-separation-corruption-robustness/"
    "bb3e1e79a414894f88871df1bd8073c81336e984/2d/data_2d/"
)
LEVELS = (0.001, 0.002, 0.007, 0.01, 0.015, 0.02, 0.03)
# name; file; its SHA-256; noise levels; how many points
SETS = (
    ("2d-a", "A_sep.npz", "0f0d1843303f014be24813349379ae13791de17dac84b293c9e964c60a772874", LEVELS, "991"),
    ("2d-b", "B_sep.npz", "e1296abe338ec40c2bfd1d7884e0591aeb08923a70c465ba0c153a815d6c6fe2", LEVELS, "4,674"),
    ("2d-c", "C_sep.npz", "56bbd120405b832d0c2d5db4962b402ddd6b6cd78246ef76bbf8c9ce423eb941",
     (0.001, 0.004, *LEVELS[2:]), "48,572"),
)  # fmt: skip
FOLDER = "mscr-2d"


def load_points(split: str, data_root: Path | None = None, *, name: str, file: str, sha256: str) -> Samples:
    """All points of a set, [n, 2] float64, and their classes 0 and 1.

    Args:
        split: 'all'.
        data_root: folder that holds data sets.
        name: of the set.
        file: its file, in the folder `mscr-2d` of the data root, or in the data root; else it is downloaded.
        sha256: of the file that is downloaded.
    Raises: DataError: it is not there and cannot be downloaded.
    """
    root = (data_root or paths.data_root()).absolute()
    places = (root / FOLDER / file, root / file)
    found = next((path for path in places if path.is_file()), None)
    samples = npz_samples(
        found or fetch(ADDRESS + file, places[0], sha256=sha256), "test", dataset=name, order=None, label_space=None
    )
    ids = tuple(f"{split}/{position}" for position in range(len(samples)))
    return replace(samples, split=split, sample_ids=ids)


for name, file, sha256, levels, num_points in SETS:
    registry.add_dataset(
        Dataset(
            name=name,
            loader=partial(load_points, name=name, file=file, sha256=sha256),
            splits=(SPLIT,),
            eval_split=SPLIT,
            test_fraction=TEST_FRACTION,
            domain="numbers",
            noise_levels=levels,
            source=DataSource(
                title=f"Two-dimensional set {name.removeprefix('2d-').upper()}",
                homepage="https://github.com/Georgsiedel/minimal-separation-corruption-robustness",
                licence="none stated",
                get=f"{file} is downloaded when it is asked for.",
                places=(FOLDER, "."),
                layout=file,
                shown_by=file,
                citation="Siedel et al., 2022",
                num_samples={SPLIT: int(num_points.replace(",", ""))},
                sha256={file: sha256},
            ),
            description=f"{num_points} points in the unit square, 2 classes; 20 % tested in each run",
        )
    )
