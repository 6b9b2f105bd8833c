"""The data sets `cifar10` and `cifar100`: 50,000 train and 10,000 test photos, 32 x 32 RGB.

Found in the published folders, of either format, under the data root; else downloaded by torchvision. Their corrupted
copies, CIFAR-10-C and CIFAR-100-C, likewise; an archive of these has 2.9 GB. CIFAR-10-C-bar is made by its authors'
script, and not downloaded.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from eval_settings.dataset_base import CorruptedCopies, Dataset
from eval_settings.source_base import DataSource
from registry import registry
from testbed.data.cifar import read_cifar
from testbed.data.class_order import LABEL_SPACES
from testbed.data.corrupted import COMMON_CORRUPTIONS
from testbed.data.corrupted_arrays import load_severity_block
from testbed.data.published_files import Format, PublishedFiles, load_arrays

# name; what torchvision calls it; folder, train files and test file, pickled and (with `.bin`) binary; labels
SETS = (
    ("cifar10", "CIFAR10", ("cifar-10-batches-py", "cifar-10-batches-bin"),
     tuple(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "labels"),
    ("cifar100", "CIFAR100", ("cifar-100-python", "cifar-100-binary"), ("train",), "test", "fine_labels"),
)  # fmt: skip
# corrupted copies of each: title, where they are published, MD5 of the archive
COPIES = {
    "cifar10": ("CIFAR-10-C", "https://zenodo.org/records/2535967", "56bf5dcef84df0e2308c6dcbcbbd8499"),
    "cifar100": ("CIFAR-100-C", "https://zenodo.org/records/3555552", "11f0ed0f1191edbf9fa23466ae6021d3"),
}
HOMEPAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
C_BAR = (
    "blue_noise_sample", "brownish_noise", "checkerboard_cutout", "circular_motion_blur", "inverse_sparkles", "lines",
    "pinch_and_twirl", "ripple", "sparkles", "transverse_chromatic_abberation",
)  # fmt: skip
C_BAR_SOURCE = DataSource(
    title="CIFAR-10-C-bar",
    homepage="https://github.com/facebookresearch/augmentation-corruption",
    licence="MIT for the code; the photos are CIFAR-10's",
    get="Make it with imagenet_c_bar/make_cifar10_c_bar.py of that repository.",
    places=("CIFAR-10-C-Bar", "cifar10/CIFAR-10-C-Bar", "cifar10-c-bar/CIFAR-10-C-Bar", "cifar10-c-bar"),
    layout="CORRUPTION.npy uint8 [50000, 32, 32, 3], five severities one after the other, and labels.npy [50000]",
    citation="Mintun et al., On Interaction Between Augmentations and Corruptions in Natural Corruption Robustness, "
    "NeurIPS 2021",
)


def _download(folder: Path, split: str, *, class_name: str) -> None:
    """Fetches and unpacks torchvision's archive, of all splits; its class would also load what it downloads."""
    from torchvision import datasets
    from torchvision.datasets.utils import download_and_extract_archive

    published = getattr(datasets, class_name)
    download_and_extract_archive(published.url, folder, filename=published.filename, md5=published.tgz_md5)


def corrupted_copies(name: str) -> CorruptedCopies:
    """CIFAR-10-C or CIFAR-100-C: `fog.npy` with 10,000 images per severity, `labels.npy` with as many labels."""
    title, source, md5 = COPIES[name]
    origin = DataSource(
        title=title,
        homepage=source,
        licence=f"CC BY 4.0; the photos are those of {name.upper()}",
        get=f"Nothing: it is downloaded when it is asked for. Or unpack {title}.tar.",
        places=(title, f"{name}/{title}", f"{name}-c/{title}", f"{name}-c"),
        layout="CORRUPTION.npy uint8 [50000, 32, 32, 3], five severities one after the other, and labels.npy [50000]",
        citation="Hendrycks & Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and "
        "Perturbations, ICLR 2019",
    )
    form = Format(
        folders=origin.places,
        files={corruption: (f"{corruption}.npy", "labels.npy") for corruption in COMMON_CORRUPTIONS},
    )
    files = PublishedFiles(
        dataset=f"{name}-c",
        formats=(form,),
        source=source,
        download=partial(_download_copies, archive=f"{title}.tar", source=source, md5=md5),
    )
    return CorruptedCopies(
        title=title, severities=COMMON_CORRUPTIONS, load=partial(load_severity_block, files=files), origin=origin
    )


def c_bar_copies() -> CorruptedCopies:
    """CIFAR-10-C-bar, in the format of CIFAR-10-C."""
    source = C_BAR_SOURCE
    form = Format(folders=source.places, files={name: (f"{name}.npy", "labels.npy") for name in C_BAR})
    files = PublishedFiles(
        dataset="cifar10-c-bar", formats=(form,), source=f"{source.homepage} (made by make_cifar10_c_bar.py)"
    )
    return CorruptedCopies(
        title=source.title,
        severities=dict.fromkeys(C_BAR, (1, 2, 3, 4, 5)),
        load=partial(load_severity_block, files=files),
        suffix="c-bar",
        origin=source,
    )


def _download_copies(folder: Path, corruption: str, *, archive: str, source: str, md5: str) -> None:
    """Fetches and unpacks the archive, of all corruptions."""
    from torchvision.datasets.utils import download_and_extract_archive

    url = f"{source}/files/{archive}"
    download_and_extract_archive(url, folder, filename=archive, md5=md5, remove_finished=True)


for name, class_name, folders, train_files, test_file, labels in SETS:
    formats = tuple(
        Format(
            folders=(f"{name}/{folder}", folder, name),
            files={"train": tuple(file + suffix for file in train_files), "test": (test_file + suffix,)},
        )
        for folder, suffix in zip(folders, ("", ".bin"), strict=True)
    )
    files = PublishedFiles(
        dataset=name,
        formats=formats,
        source=HOMEPAGE,
        download=partial(_download, class_name=class_name),
    )
    registry.add_dataset(
        Dataset(
            name=name,
            loader=partial(
                load_arrays, files=files, read=partial(read_cifar, labels=labels), class_names=LABEL_SPACES[name]
            ),
            label_space=name,
            splits=("train", "test"),
            fit_split="train",
            canonical_size=32,
            corrupted=(corrupted_copies(name), *((c_bar_copies(),) if name == "cifar10" else ())),
            source=DataSource(
                title=name.upper().replace("CIFAR", "CIFAR-"),
                homepage=HOMEPAGE,
                licence="none is stated; its author asks to be cited",
                get="Nothing: it is downloaded when it is asked for.",
                places=tuple(dict.fromkeys(folder for form in formats for folder in form.folders)),
                layout=f"{', '.join((*train_files, test_file))} in the Python or (.bin) the binary version",
                citation="A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
                num_samples={"train": 50_000, "test": 10_000},
            ),
            description=f"60,000 photos in {len(LABEL_SPACES[name])} classes, 32 x 32 RGB; 50000 train, 10000 test",
        )
    )
