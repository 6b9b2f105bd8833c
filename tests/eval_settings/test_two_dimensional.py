"""The 2D sets: published points, found or fetched, split anew in every run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from eval_settings import two_dimensional
from registry import registry
from testbed.definitions import load_definitions
from testbed.errors import DataError
from testbed.fingerprint import file_sha256
from testbed.offline import NO_DOWNLOAD_VARIABLE
from testbed.perturbations.noise import UniformNoise

PUBLISHED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An .npz of three points, where a server would have it."""
    path = tmp_path / "server" / "A_sep.npz"
    path.parent.mkdir()
    np.savez(path, x=np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]), y=np.array([0, 1, 1]))
    return path


def test_the_points_keep_all_their_digits_and_bear_their_positions(tmp_path: Path, archive: Path) -> None:
    samples = two_dimensional.load_points("all", archive.parent, name="2d-a", file="A_sep.npz", sha256="not asked for")
    assert samples.items[2].tolist() == [0.5, 0.6]  # type: ignore[union-attr]
    assert (samples.split, samples.sample_ids) == ("all", ("all/0", "all/1", "all/2"))
    assert samples.targets.tolist() == [0, 1, 1]


def test_a_missing_file_is_fetched_and_checked(tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NO_DOWNLOAD_VARIABLE, raising=False)
    monkeypatch.setattr(two_dimensional, "ADDRESS", archive.parent.as_uri() + "/")
    load = partial(two_dimensional.load_points, "all", name="2d-a", file="A_sep.npz")
    assert len(load(tmp_path / "data", sha256=file_sha256(archive))) == 3
    assert (tmp_path / "data" / "mscr-2d" / "A_sep.npz").is_file()
    with pytest.raises(DataError, match="A_sep"):
        load(tmp_path / "elsewhere", sha256="0" * 64)
    assert not (tmp_path / "elsewhere" / "mscr-2d" / "A_sep.npz").exists()


def test_without_downloads_the_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NO_DOWNLOAD_VARIABLE, "1")
    with pytest.raises(DataError, match=r"B_sep\.npz"):
        two_dimensional.load_points("all", tmp_path, name="2d-b", file="B_sep.npz", sha256="0" * 64)


def test_their_noise_has_no_bounds_and_their_published_levels_are_listed() -> None:
    load_definitions()
    names = registry.eval_setting_names()
    assert {"2d-b-noise-linf-0.015", "2d-b-noise-linf-0.015-shared", "2d-b-mscr-l2-shared"} <= set(names)
    assert "2d-c-noise-linf-0.002" not in names
    noise = registry.eval_setting("2d-b-noise-linf-0.03-shared").perturbation_fn_gpu
    assert noise == UniformNoise(norm="linf", epsilon=0.03, boundary="none", is_shared=True)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published points are not here")
@pytest.mark.parametrize(("name", "sizes"), [("2d-a", (670, 321)), ("2d-b", (2204, 2470)), ("2d-c", (44483, 4089))])
def test_published_sets_have_the_published_sizes(name: str, sizes: tuple[int, int]) -> None:
    load_definitions()
    loader = registry.dataset(name).loader
    assert loader is not None
    samples = loader("all", data_root=PUBLISHED)
    assert tuple(np.bincount(samples.targets)) == sizes
    assert samples.items.min() >= 0  # type: ignore[union-attr]
    assert samples.items.max() <= 1  # type: ignore[union-attr]
