"""Pictures of frost on glass: drawn by the testbed, or read from a folder or an installed package."""

from __future__ import annotations

import importlib.util
import math
import os
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError, reading
from testbed.fingerprint import file_sha256, fingerprint
from testbed.perturbations.corruptions.fog import plasma_fractal, smallest_side
from testbed.randomness import stream_key, uniform, uniform_numpy

TEXTURES_VARIABLE = "TESTBED_FROST_TEXTURES"
NUM_TEXTURES = 6
Picture = NDArray[np.uint8]
_Plane = NDArray[np.float64]
_VERSION = 1  # of the drawings: to be raised with every change of a pixel
_PACKAGE = "imagecorruptions"
_FERN_ANGLE = math.radians(60)  # at which the branches of an ice crystal leave its stem


@dataclass(frozen=True, kw_only=True)
class _Frost:
    """What a drawing looks like; sizes, mean colours and contrasts are those of the published photographs.

    Args:
        size: width and height in pixels.
        colour: mean red, green and blue, 0 to 255.
        contrast: standard deviation of the grey levels.
        length: of the longest crystals, in pixels.
        density: crystals begun per 1000 pixels.
        grain: weight of roughness against that of crystals.
    """

    size: tuple[int, int]
    colour: tuple[int, int, int]
    contrast: float
    length: float
    density: float
    grain: float


_FROSTS = (
    _Frost(size=(900, 600), colour=(78, 149, 166), contrast=18, length=170, density=1.5, grain=0.8),
    _Frost(size=(560, 315), colour=(201, 205, 215), contrast=22, length=120, density=6.0, grain=0.5),
    _Frost(size=(560, 315), colour=(201, 205, 215), contrast=22, length=80, density=8.0, grain=0.5),
    _Frost(size=(527, 350), colour=(138, 153, 165), contrast=29, length=45, density=16.0, grain=0.9),
    _Frost(size=(660, 495), colour=(112, 123, 135), contrast=43, length=85, density=7.0, grain=0.4),
    _Frost(size=(485, 323), colour=(71, 95, 105), contrast=41, length=150, density=4.0, grain=0.5),
)


def frost_texture(number: int, folder: Path | None) -> Picture:
    """Picture `number`, 0 to 5, as (height, width, 3) uint8, red first; not to be written to.

    Args:
        folder: of the files frost1 to frost6 (.png or .jpg); None for the testbed's own drawings.
    Raises: DataError: the picture is not there, or is none.
    """
    return _drawn(number) if folder is None else _read(_file(folder, number))


def textures_fingerprint() -> str:
    """SHA-256 (hex) of what the six pictures in use are. Raises: DataError: one of them is not there."""
    folder = textures_folder()
    if folder is None:
        return fingerprint({"version": _VERSION, "frosts": [asdict(frost) for frost in _FROSTS]})
    return fingerprint([file_sha256(_file(folder, number)) for number in range(NUM_TEXTURES)])


def textures_folder() -> Path | None:
    """Folder of the pictures in use, None for the drawings: what the variable TESTBED_FROST_TEXTURES says.

    It names a folder, or 'imagecorruptions', the package that has the published photographs.

    Raises: DataError: the package is not installed.
    """
    where = os.environ.get(TEXTURES_VARIABLE, "")
    if where != _PACKAGE:
        return Path(where).expanduser() if where else None
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise DataError(
            f"{TEXTURES_VARIABLE} is '{_PACKAGE}', which is not installed. pip install imagecorruptions-imaug==1.1.5, "
            "or unset the variable to use the testbed's own textures."
        )
    return Path(package.submodule_search_locations[0]) / "frost"


def _file(folder: Path, number: int) -> Path:
    for suffix in (".png", ".jpg", ".jpeg"):
        if (file := folder / f"frost{number + 1}{suffix}").is_file():
            return file
    raise DataError(
        f"There is no frost{number + 1}.png or .jpg in {folder}, which {TEXTURES_VARIABLE} names. Put the six textures "
        "there, or unset the variable to use the testbed's own."
    )


@cache
def _read(file: Path) -> Picture:
    from PIL import Image

    with reading(file, kind="an image of frost", remedy="Replace it."), Image.open(file) as picture:
        return np.array(picture.convert("RGB"))


@cache
def _drawn(number: int) -> Picture:
    """Ferns of ice, largest and brightest at the rim, over a rough ground; scaled to the mean colour and contrast.

    Another machine's sine or cosine may round otherwise, which moves a pixel by one grey level at most.
    """
    frost = _FROSTS[number]
    width, height = frost.size
    ground = _clouds(number, "frost/ground", height, width, decay=1.9)
    rough = _clouds(number, "frost/grain", height, width, decay=1.0)
    picture = 0.5 * ground + frost.grain * rough + _ferns(number, frost) * (0.3 + ground + 0.4 * rough)
    picture = (picture - picture.mean()) / picture.std()
    levels = np.array(frost.colour) + frost.contrast * picture[..., None]
    return np.asarray(levels.round().clip(0, 255), dtype=np.uint8)


def _clouds(number: int, stream: str, height: int, width: int, *, decay: float) -> _Plane:
    side = smallest_side(height, width)
    units = uniform(_key(stream), [number], draw=0, shape=(side, side))
    clouds: _Plane = plasma_fractal(units, decay=decay)[0, :height, :width].double().numpy()
    return clouds


def _ferns(number: int, frost: _Frost) -> _Plane:
    """Brightness, 0 to 1, of all crystals, the brightest in front."""
    width, height = frost.size
    canvas = np.zeros((height, width))
    count = round(frost.density * width * height / 1000)
    units = uniform_numpy(_key("frost/ferns"), [number], draw=0, shape=(count, 6), dtype="float64")[0]
    for across, down, turn, size, shade, period in units:
        x, y = across * width, down * height
        rim = 1 - 2 * min(across, 1 - across, down, 1 - down)  # 1 at the rim, 0 in the middle
        inwards = math.atan2(height / 2 - y, width / 2 - x)
        length = frost.length * (0.15 + 0.85 * size * size) * (0.4 + 0.6 * rim)
        _draw_fern(
            canvas, x, y, angle=inwards + 2 * math.pi * (turn - 0.5) * 0.7, length=length, period=3 + 4 * period,
            brightness=(0.3 + 0.7 * shade) * (0.35 + 0.65 * rim),
        )  # fmt: skip
    return canvas


def _draw_fern(
    canvas: _Plane, x: float, y: float, *, angle: float, length: float, period: float, brightness: float
) -> None:
    """Draws a stem from (x, y) with branches to both sides, shorter towards the tip; what is brighter stays."""
    tip_x, tip_y = x + length * math.cos(angle), y + length * math.sin(angle)
    reach = 0.45 * length
    left, right = max(0, round(min(x, tip_x) - reach)), min(canvas.shape[1], round(max(x, tip_x) + reach))
    top, bottom = max(0, round(min(y, tip_y) - reach)), min(canvas.shape[0], round(max(y, tip_y) + reach))
    if left >= right or top >= bottom:
        return
    right_of, below = np.arange(left, right) - x, np.arange(top, bottom)[:, None] - y
    along = right_of * math.cos(angle) + below * math.sin(angle)
    aside = np.abs(below * math.cos(angle) - right_of * math.sin(angle))
    widest = np.minimum(reach * (1 - along / length), along + 1)
    start = along - aside / math.tan(_FERN_ANGLE)  # where on the stem the branch through this pixel begins
    branch = 0.35 + 0.65 * (0.5 + 0.5 * np.cos(2 * math.pi / period * start)) ** 2
    fern = np.maximum(branch * (1 - aside / np.maximum(widest, 1)), np.exp(-(aside**2)))
    fern *= brightness * ((along >= 0) & (aside < widest))
    part = canvas[top:bottom, left:right]
    np.maximum(part, fern, out=part)


@cache
def _key(stream: str) -> int:
    return stream_key(0, purpose="run", dataset="frost-textures", stream=stream)
