"""A line of text across every image, half transparent, as the watermarks of ImageNet-W.

Source: Li et al., A Whac-A-Mole Dilemma: Shortcuts Come in Multiples Where Mitigating One Amplifies Others, CVPR 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testbed import paths
from testbed.errors import DataError
from testbed.fingerprint import file_sha256

if TYPE_CHECKING:
    from torch import Tensor

SIZES = {224: 36, 384: 62, 512: 82, 518: 84}  # font sizes in pixels by side of the image; others are a 6.22nd part
_OTHERS = 6.22


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """Writes a text on images in the colour white.

    Args:
        text: what is written.
        font: file name of the font, looked for in the folders that `font_places` names.
        opacity: 0 to 1.
        left, top: where the text begins, as parts of the image's width and height.
    """

    text: str = "捷径捷径捷径"
    font: str = "SourceHanSerifSC-ExtraLight.otf"
    opacity: float = 0.5
    left: float = 0.01
    top: float = 0.4

    is_random = False

    def identity(self) -> dict[str, Any]:
        """All that the images depend on: the font's content too. Raises: DataError: there is no such font."""
        choices = {"text": self.text, "opacity": self.opacity, "left": self.left, "top": self.top}
        return {**choices, "font": file_sha256(find_font(self.font))}

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raises: DataError: there is no such font."""
        find_font(self.font)

    def __call__(self, images: Tensor) -> Tensor:
        """The images [n, C, H, W] in [0, 1], brought to 8 bits, with the text on them."""
        import torch

        height, width = images.shape[-2:]
        alpha, table = _coverage(self, str(find_font(self.font)), height, width), _blended()
        levels = torch.from_numpy(table).to(images.device)
        rows = torch.from_numpy(alpha).to(images.device).int().expand(images.shape)
        return levels[rows, (images.clamp(0, 1) * 255).round().int()]


def font_places() -> tuple[Path, ...]:
    """Folders that may hold the font: `imagenet-w` in the data folder, and those of the authors' package."""
    package = find_spec("imagenet_w")
    installed = [Path(place) / "fonts" for place in package.submodule_search_locations or ()] if package else []
    return (paths.data_root().absolute() / "imagenet-w", *installed)


def find_font(name: str) -> Path:
    """The file of a font. Raises: DataError: it is nowhere; the message says where it belongs."""
    places = font_places()
    if (found := next((place / name for place in places if (place / name).is_file()), None)) is not None:
        return found
    raise DataError(
        f"The font {name} is not in {', '.join(map(str, places))}. Get it from the folder imagenet_w/fonts of "
        f"https://github.com/facebookresearch/Whac-A-Mole, and put it in {places[0]}."
    )


@lru_cache(maxsize=8)
def _coverage(mark: Watermark, font: str, height: int, width: int) -> NDArray[np.uint8]:
    """[height, width] how opaque the text is at each pixel, 0 to 255."""
    from PIL import Image, ImageDraw, ImageFont

    side = min(height, width)
    letters = ImageFont.truetype(font, SIZES.get(side, max(1, int(side / _OTHERS))))
    layer = Image.new("RGBA", (width, height), (255, 255, 255, 0))
    fill = (255, 255, 255, round(mark.opacity * 255))
    ImageDraw.Draw(layer).text((mark.left * width, mark.top * height), mark.text, font=letters, fill=fill)
    return np.asarray(layer)[..., 3].copy()


@lru_cache(maxsize=1)
def _blended() -> NDArray[np.float32]:
    """[256, 256] what Pillow makes of white of an opacity (row) over a grey level (column), in [0, 1]."""
    from PIL import Image

    opacity, level = np.indices((256, 256), np.uint8)
    below = np.stack([level, level, level, np.full_like(level, 255)], axis=2)
    above = np.stack([np.full_like(level, 255)] * 3 + [opacity], axis=2)
    mixed = Image.alpha_composite(Image.fromarray(below), Image.fromarray(above))
    return np.asarray(mixed)[..., 0].astype(np.float32) / np.float32(255)
