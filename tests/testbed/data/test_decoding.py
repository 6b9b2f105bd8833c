import io

import numpy as np
import pytest
from PIL import Image, ImageFile

from testbed.data.decoding import decode
from testbed.errors import DataError

GREY = np.array([[0, 100, 255]], dtype=np.uint8)
COLORS = np.array([[[255, 0, 0], [0, 255, 0], [10, 20, 30]]], dtype=np.uint8)
# (19595 R + 38470 G + 7471 B + 32768) >> 16, by hand: pure red 76.24, pure green 149.69, (10, 20, 30) 18.15
LUMA = np.array([[76, 150, 18]], dtype=np.uint8)
ALPHA = np.array([[[0], [128], [255]]], dtype=np.uint8)
PALETTE = np.array([[0, 1, 2]], dtype=np.uint8)


def _repeat(grey):
    return np.stack([grey] * 3, axis=-1)


def _encoded(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return io.BytesIO(stream.getvalue())


def _palette_image():
    image = Image.fromarray(PALETTE, "L").convert("P")
    image.putpalette([255, 0, 0, 0, 255, 0, 10, 20, 30])
    image.putdata([0, 1, 2])
    return image


def _rgb_png_16_bit():
    """A 16-bit RGB PNG, which Pillow reads but does not write: one pixel (0x1234, 0xFFFF, 0x0080)."""
    import struct
    import zlib

    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    header = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    row = b"\0" + struct.pack(">HHH", 0x1234, 0xFFFF, 0x0080)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row)) + chunk(b"IEND", b"")
    return io.BytesIO(b"\x89PNG\r\n\x1a\n" + content)


RAMP_16 = np.array([[0, 128, 129, 257, 25700, 65406, 65535]], dtype=np.uint16)
RAMP_8 = np.array([[0, 0, 1, 1, 100, 254, 255]], dtype=np.uint8)

# kind -> (file, expected 'L', expected 'RGB')
GOLDEN = {
    "1-bit png": (
        lambda: _encoded(Image.fromarray(GREY > 50), "PNG"),
        np.array([[0, 255, 255]]),
        _repeat(np.array([[0, 255, 255]])),
    ),
    "grey png": (lambda: _encoded(Image.fromarray(GREY), "PNG"), GREY, _repeat(GREY)),
    "grey-alpha png": (
        lambda: _encoded(Image.fromarray(np.concatenate([GREY[..., None], ALPHA], axis=2), "LA"), "PNG"),
        GREY,
        _repeat(GREY),
    ),
    "grey png with a transparent level": (
        lambda: _encoded(Image.fromarray(GREY), "PNG", transparency=100),
        GREY,
        _repeat(GREY),
    ),
    "palette png": (lambda: _encoded(_palette_image(), "PNG"), LUMA, COLORS),
    "palette png with one transparent index": (
        lambda: _encoded(_palette_image(), "PNG", transparency=1),
        LUMA,
        COLORS,
    ),
    "palette png with alpha per index": (
        lambda: _encoded(_palette_image(), "PNG", transparency=b"\x00\x80\xff"),
        LUMA,
        COLORS,
    ),
    "palette gif": (lambda: _encoded(_palette_image(), "GIF"), LUMA, COLORS),
    "rgb png": (lambda: _encoded(Image.fromarray(COLORS), "PNG"), LUMA, COLORS),
    "rgba png": (
        lambda: _encoded(Image.fromarray(np.concatenate([COLORS, ALPHA], axis=2)), "PNG"),
        LUMA,
        COLORS,
    ),
    "16-bit grey png": (lambda: _encoded(Image.fromarray(RAMP_16), "PNG"), RAMP_8, _repeat(RAMP_8)),
    "16-bit grey tiff": (lambda: _encoded(Image.fromarray(RAMP_16), "TIFF"), RAMP_8, _repeat(RAMP_8)),
    "32-bit integer tiff in the 16-bit range": (
        lambda: _encoded(Image.fromarray(RAMP_16.astype(np.int32)), "TIFF"),
        RAMP_8,
        _repeat(RAMP_8),
    ),
    "16-bit rgb png, high bytes": (_rgb_png_16_bit, np.array([[155]]), np.array([[[0x12, 0xFF, 0x00]]])),
    "cmyk tiff": (
        # Pillow: 255 - min(255, ink + black), so full cyan is (0, 255, 255): luma 178.75
        lambda: _encoded(Image.new("CMYK", (1, 1), (255, 0, 0, 0)), "TIFF"),
        np.array([[179]]),
        np.array([[[0, 255, 255]]]),
    ),
    "ycbcr tiff": (
        lambda: _encoded(Image.new("YCbCr", (1, 1), (77, 128, 128)), "TIFF"),
        np.array([[77]]),
        np.array([[[77, 77, 77]]]),
    ),
    "first frame of an animation": (
        lambda: _encoded(Image.new("L", (2, 1), 7), "GIF", save_all=True, append_images=[Image.new("L", (2, 1), 200)]),
        np.array([[7, 7]]),
        _repeat(np.array([[7, 7]])),
    ),
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_every_kind_of_image_has_its_documented_pixels(kind):
    make, grey, colors = GOLDEN[kind]
    for mode, expected in (("L", grey), ("RGB", colors)):
        image = decode(make(), color_mode=mode)
        assert image.mode == mode
        np.testing.assert_array_equal(np.asarray(image), expected)


def test_all_16_bit_levels_round_to_the_nearest_8_bit_level():
    levels = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    image = decode(_encoded(Image.fromarray(levels), "PNG"), color_mode="L")
    np.testing.assert_array_equal(np.asarray(image), np.rint(levels / 257.0))


def test_exif_orientation_is_applied_only_when_asked_for():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    image = Image.fromarray(np.zeros((2, 5), dtype=np.uint8))
    assert decode(_encoded(image, "JPEG", exif=exif), color_mode="L").size == (5, 2)
    assert decode(_encoded(image, "JPEG", exif=exif), color_mode="L", exif=True).size == (2, 5)


@pytest.mark.parametrize(
    ("array", "kind"), [(np.array([[0.5, 1.0]], dtype=np.float32), "TIFF"), (np.array([[0, 70000]]), "TIFF")]
)
def test_values_of_unknown_range_are_refused(array, kind):
    image = Image.fromarray(array.astype(np.int32) if array.dtype.kind == "i" else array)
    with pytest.raises(DataError, match=r"range|8 or 16 bits"):
        decode(_encoded(image, kind), color_mode="L")


def _noise_image():
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM"])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path, kind):
    content = _encoded(_noise_image(), kind).getvalue()
    path = tmp_path / "cut.jpg"
    path.write_bytes(content[: int(0.9 * len(content))])
    with pytest.raises(DataError, match=r"Cannot decode .*cut\.jpg: "):
        decode(path, color_mode="RGB")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html><html>Not found</html>", "it is not an image; it starts with b'<!DOCTYPE html>"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n%%EndComments\n", "it is not an image"),
    ],
)
def test_a_file_that_is_no_image_says_what_it_is(tmp_path, content, reason):
    path = tmp_path / "page.jpg"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        decode(path, color_mode="RGB")
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gone\.png: the file does not exist"):
        decode(tmp_path / "gone.png", color_mode="L")


@pytest.mark.parametrize("limit", [15, 5])  # above the limit Pillow only warns; above twice the limit it raises
def test_decompression_bombs_are_errors(monkeypatch, limit):
    content = _encoded(Image.new("L", (4, 4)), "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(DataError, match="decompression bombs"):
        decode(content, color_mode="L")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_decompression_bomb_is_an_error_where_warnings_are_ignored(monkeypatch):
    content = _encoded(Image.new("L", (4, 4)), "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 15)
    with pytest.raises(DataError, match="decompression bombs"):
        decode(content, color_mode="L")


def test_truncated_images_are_refused_even_where_pillow_was_told_to_load_them(tmp_path, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    path = tmp_path / "cut.jpg"
    path.write_bytes(_encoded(_noise_image(), "JPEG").getvalue()[:-200])
    with pytest.raises(DataError, match="LOAD_TRUNCATED_IMAGES"):
        decode(path, color_mode="RGB")


def test_one_flipped_bit_in_a_png_is_an_error():
    content = bytearray(_encoded(_noise_image(), "PNG").getvalue())
    content[len(content) // 2] ^= 1
    with pytest.raises(DataError):
        decode(io.BytesIO(bytes(content)), color_mode="RGB")
