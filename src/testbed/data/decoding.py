"""Image files to 8-bit pixels: one conversion for every kind of image, by Pillow alone.

========================  =============================================================================================
kind of image             becomes
========================  =============================================================================================
1 bit                     0 or 255
8-bit grey, RGB           itself
16-bit grey               round(v / 257): 65535 becomes 255; never clipped
32-bit integer            as 16-bit grey; a value outside 0..65535 is an error, for its range is unknown
32-bit float              an error, for the same reason
16-bit RGB or RGBA        the high byte of each value (Pillow reads no more), within one level of round(v / 257)
palette                   the palette's colours
with transparency         the colours as stored; alpha is dropped, not composited, as the usual loaders of ImageNet do
CMYK, YCbCr               Pillow's conversion to RGB; embedded colour profiles are not applied
Lab                       an error: Pillow has no conversion
animated                  the first frame
EXIF orientation          ignored, as ImageNet's usual loaders do; applied with `exif=True`
========================  =============================================================================================

Grey from colour is ITU-R 601-2 luma, (19595 R + 38470 G + 7471 B + 32768) >> 16. Colour from grey repeats it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from testbed.errors import DataError

DECODING_VERSION = 1  # raise it when the table above changes: decoded pixels are cached under it

# Only formats that Pillow decodes by itself: some others start programs (EPS) or read other files.
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
SUFFIXES = frozenset(
    ".jpg .jpeg .jpe .jfif .png .bmp .gif .tif .tiff .webp .ppm .pgm .pbm .pnm .jp2 .avif".split()  # noqa: SIM905
)
# Images that people have as well and that `decode` does not take: told of where they lie among others.
_UNREAD = """
.heic .heif .hif .avifs .jxl .jxr .wdp .hdp .jpf .jpx .j2k .j2c .jpc .jpm .svg .psd .psb .xcf .ico .icns .tga .dds .exr
.hdr .pcx .sgi .dib .apng .pjpeg .pjp .dcm .pfm .xbm .xpm .bpg .flif .qoi .dng .cr2 .cr3 .crw .nef .nrw .arw .srf .sr2
.orf .rw2 .rwl .raf .pef .raw .srw .x3f .3fr .fff .iiq .kdc .dcr .k25 .mrw .erf .mef .mos .gpr
"""
UNREAD_SUFFIXES = frozenset(_UNREAD.split())

ColorMode = Literal["L", "RGB"]


def decode(source: Path | BinaryIO, *, color_mode: ColorMode, exif: bool = False) -> Image.Image:
    """An 8-bit image in mode 'L' or 'RGB', converted as the table at the top of this file says.

    Args:
        source: an image file, or an open stream of one.
        color_mode: 'L' for one channel, 'RGB' for three.
        exif: turn the image as its EXIF orientation says.
    Raises: DataError: not an image, a damaged or truncated one, one too large to be safe, or one whose range of values
        is unknown; names the file and the reason.
    """
    try:
        if ImageFile.LOAD_TRUNCATED_IMAGES:
            raise _Refused("LOAD_TRUNCATED_IMAGES of Pillow is on, which hides damage. Find the import that sets it")
        with Image.open(source, formats=_available_formats()) as image:
            _check_size(image)
            turned = ImageOps.exif_transpose(image) if exif else image
            pixels = _to_8_bit(turned)
            pixels.load()  # `convert` would copy pixels that are as they should be, and let no other thread run
            return pixels if pixels.mode == color_mode else pixels.convert(color_mode)
    except MemoryError:
        raise
    except Exception as error:  # damaged files make Pillow raise nearly anything
        raise DataError(f"Cannot decode {_name(source)}: {_reason(error, source)}.") from error


def is_image(path: Path) -> bool:
    """Whether a file begins like an image that `decode` takes; its pixels, which may be damaged, are not read."""
    try:
        with Image.open(path, formats=_available_formats()):
            return True
    except MemoryError:
        raise
    except Exception:  # damaged files make Pillow raise nearly anything
        return False


class _Refused(Exception):
    """An image that Pillow would decode, but to something nobody asked for."""


def _available_formats() -> tuple[str, ...]:
    """Those of FORMATS that this build of Pillow knows; Pillow fails on a name that it does not."""
    if not set(FORMATS) <= set(Image.OPEN):
        Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _check_size(image: Image.Image) -> None:
    limit, pixels = Image.MAX_IMAGE_PIXELS, image.width * image.height
    if limit is not None and pixels > limit:
        raise Image.DecompressionBombError(f"{pixels} pixels")


def _to_8_bit(image: Image.Image) -> Image.Image:
    """The image in mode '1', 'L' or 'RGB'."""
    if image.mode in ("1", "L", "RGB"):
        return image
    return _CONVERSIONS.get(image.mode, _unknown)(image)


def _scaled_16_bit(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.int64)
    if values.size and not 0 <= values.min() <= values.max() <= 65535:
        raise _Refused(
            f"its integers go from {values.min()} to {values.max()}, outside the 16-bit range 0..65535. "
            "Rescale it to 8 or 16 bits"
        )
    return Image.fromarray(((values + 128) // 257).astype(np.uint8))


def _colors(image: Image.Image) -> Image.Image:
    # By way of RGBA: Pillow warns when a palette with transparency goes to RGB, though the colours are the same.
    return image.convert("RGBA" if image.mode in ("P", "PA", "RGBa") else "RGB").convert("RGB")


def _grey(image: Image.Image) -> Image.Image:
    return image.convert("LA").convert("L")


def _unknown(image: Image.Image) -> Image.Image:
    raise _Refused(f"it is of Pillow's mode '{image.mode}', whose range is unknown. Convert it to 8-bit grey or RGB")


_CONVERSIONS: dict[str, Callable[[Image.Image], Image.Image]] = {
    **dict.fromkeys(("I", "I;16", "I;16L", "I;16B", "I;16N"), _scaled_16_bit),
    **dict.fromkeys(("P", "PA", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr"), _colors),
    **dict.fromkeys(("LA", "La"), _grey),
}


def _name(source: Path | BinaryIO) -> str:
    return str(source) if isinstance(source, Path) else str(getattr(source, "name", "an image in memory"))


def _reason(error: Exception, source: Path | BinaryIO) -> str:
    if isinstance(error, (Image.DecompressionBombError, Image.DecompressionBombWarning)):
        return (
            f"it has more than {Image.MAX_IMAGE_PIXELS} pixels, the limit that guards against decompression bombs. "
            "Scale it down, or raise PIL.Image.MAX_IMAGE_PIXELS if you trust it"
        )
    if isinstance(error, UnidentifiedImageError):
        head = _first_bytes(source)
        return f"it is not an image; it starts with {head!r}" if head else "the file is empty"
    if isinstance(error, FileNotFoundError):
        return "the file does not exist"
    return str(error) or type(error).__name__


def _first_bytes(source: Path | BinaryIO) -> bytes:
    if isinstance(source, Path):
        with open(source, "rb") as stream:
            return stream.read(24)
    source.seek(0)
    return source.read(24)
