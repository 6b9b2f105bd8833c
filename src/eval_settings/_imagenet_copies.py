"""More corrupted copies of ImageNet's validation photos than ImageNet-C: ImageNet-C-bar and ImageNet-3DCC.

Both lie in folders like those of ImageNet-C, and were made of photos resized to 256 px and cropped to 224 px.

Source: Mintun et al., On Interaction Between Augmentations and Corruptions in Natural Corruption Robustness, NeurIPS
2021; Kar et al., 3D Common Corruptions and Data Augmentation, CVPR 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from eval_settings.dataset_base import CorruptedCopies
from eval_settings.source_base import DataSource
from testbed.data.corrupted_folders import CorruptedFolders, load_folder

SEVERITIES = (1, 2, 3, 4, 5)
# corruptions of ImageNet-C-bar, and what its script, unlike the archive, calls the folders of the severities
C_BAR = {
    "blue_noise_sample": ("0.80", "1.60", "2.40", "4.00", "5.60"),
    "brownish_noise": ("1.00", "2.00", "3.00", "4.00", "5.00"),
    "caustic_refraction": ("2.35", "3.20", "4.90", "6.60", "9.15"),
    "checkerboard_cutout": ("2.00", "3.00", "4.00", "5.00", "6.00"),
    "cocentric_sine_waves": ("3.00", "5.00", "8.00", "9.00", "10.00"),
    "inverse_sparkles": ("1.00", "2.00", "4.00", "9.00", "10.00"),
    "perlin_noise": ("4.60", "5.20", "5.80", "7.60", "8.80"),
    "plasma_noise": ("4.75", "7.00", "8.50", "9.25", "10.00"),
    "single_frequency_greyscale": ("1.00", "1.50", "2.00", "4.50", "5.00"),
    "sparkles": ("1.00", "2.00", "3.00", "5.00", "6.00"),
}
THREE_D = (
    "near_focus", "far_focus", "bit_error", "color_quant", "flash", "fog_3d", "h265_abr", "h265_crf", "iso_noise",
    "low_light", "xy_motion_blur", "z_motion_blur",
)  # fmt: skip
NEEDS_VAL = "ImageNet's own val must be there too: the copies are looked up by its photos."
LAYOUT = "CORRUPTION/SEVERITY/WNID/ILSVRC2012_val_*.JPEG, 50,000 in each severity from 1 to 5"
C_BAR_SOURCE = DataSource(
    title="ImageNet-C-bar",
    homepage="https://github.com/facebookresearch/augmentation-corruption",
    licence="MIT for the code; the photos are ImageNet's",
    get=f"Get imagenet_c_bar.tar.gz, which the README there links to, and unpack it. {NEEDS_VAL}",
    places=("ImageNet-C-bar", "imagenet-c-bar", "imagenet_c_bar", "ImageNet-C-Bar", "imagenet/ImageNet-C-bar"),
    layout=LAYOUT,
    citation="Mintun et al., On Interaction Between Augmentations and Corruptions in Natural Corruption Robustness, "
    "NeurIPS 2021",
)
THREE_D_SOURCE = DataSource(
    title="ImageNet-3DCC",
    homepage="https://3dcommoncorruptions.epfl.ch",
    licence="Creative Commons, see LICENSE in its repository; the photos are ImageNet's",
    get="Get the archives of ImageNet-3DCC, one per corruption, from https://datasets.epfl.ch/3dcc, and unpack them. "
    f"{NEEDS_VAL}",
    places=("ImageNet-3DCC", "imagenet-3dcc", "imagenet_3dcc", "imagenet/ImageNet-3DCC"),
    layout=LAYOUT,
    citation="Kar et al., 3D Common Corruptions and Data Augmentation, CVPR 2022",
)


def _copies(
    source: DataSource, address: str, suffix: str, corruptions: tuple[str, ...], names: Mapping[str, tuple[str, ...]]
) -> CorruptedCopies:
    folders = CorruptedFolders(
        title=source.title,
        places=source.places,
        groups=(),
        source=address,
        other_names=names,
    )
    return CorruptedCopies(
        title=source.title,
        severities=dict.fromkeys(corruptions, SEVERITIES),
        load=partial(load_folder, folders=folders),
        cropped_size=224,
        suffix=suffix,
        origin=source,
    )


MORE_COPIES = (
    _copies(C_BAR_SOURCE, C_BAR_SOURCE.homepage, "c-bar", tuple(C_BAR), C_BAR),
    _copies(THREE_D_SOURCE, "https://datasets.epfl.ch/3dcc", "3dcc", THREE_D, {}),
)
