"""ObjectNet: 113 kinds by their folders, each the largest of its ImageNet classes' logits, without the red border."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.in_process import top1_of
from tests.miniatures import class_pixels, oracle_model

from eval_settings._objectnet_classes import OBJECTNET
from eval_settings.objectnet import CutBorder
from models.model_base import StandardTransform
from registry import registry
from testbed.data.datasets import load_samples
from testbed.definitions import load_definitions
from testbed.errors import DataError

load_definitions()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))


def write(images: Path, *, border: int, renamed: dict[str, str] | None = None) -> None:
    """A photo of every kind in the last of its classes, with a red border; also of kinds that ImageNet lacks."""
    for folder, _, columns in OBJECTNET:
        pixels = np.pad(class_pixels(columns[-1], 32), ((border, border), (border, border), (0, 0)))
        pixels[[*range(border), *range(-border, 0)]] = (255, 0, 0)
        pixels[:, [*range(border), *range(-border, 0)]] = (255, 0, 0)
        path = images / (renamed or {}).get(folder, folder) / "a.png"
        path.parent.mkdir(parents=True)
        Image.fromarray(pixels).save(path)
    for other in ("air_freshener", "zip_bag"):
        (images / other).mkdir()
        Image.fromarray(class_pixels(1)).save(images / other / "a.png")


def test_it_has_113_kinds_and_125_classes_of_imagenet_each_once() -> None:
    columns = [column for _, _, of_kind in OBJECTNET for column in of_kind]
    assert len({folder for folder, _, _ in OBJECTNET}) == len({name for _, name, _ in OBJECTNET}) == 113
    assert len(columns) == len(set(columns)) == 125


def test_the_classes_are_named_like_the_kinds() -> None:
    """Where a kind has one class of a similar name; the indices come from the names, so a slip of one would show."""
    from torchvision.models._meta import _IMAGENET_CATEGORIES as categories

    similar = [
        (name, categories[columns[0]]) for _, name, columns in OBJECTNET
        if name.lower().split(" (")[0] in categories[columns[0]].lower()
    ]  # fmt: skip
    assert len(similar) > 70
    by_name = {name: [categories[column] for column in columns] for _, name, columns in OBJECTNET}
    assert by_name["Chair"] == ["barber chair", "folding chair", "rocking chair"]
    assert by_name["Pen"] == ["ballpoint", "quill", "fountain pen"]
    assert by_name["Helmet"] == ["football helmet", "crash helmet"]


def test_an_oracle_that_sees_whole_photos_is_right_on_the_published_form_without_the_border(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "objectnet-1.0" / "images", border=2)
    write(tmp_path / "objectnet-1.0-beta", border=1)
    oracle = replace(oracle_model(), transform=StandardTransform(32, 32))
    names = ["objectnet-1.0", "objectnet-1.0-beta_border-1px"]
    assert top1_of(oracle, names, tmp_path, monkeypatch) == [100.0, 100.0]
    (left,) = top1_of(oracle, ["objectnet-1.0_border-1px"], tmp_path, monkeypatch)
    assert left is not None
    assert left < 50, "a pixel of red is left on each side"


def test_the_border_is_cut_off_each_side() -> None:
    image = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8))
    assert np.asarray(CutBorder(2)(image)).tolist() == [[18, 19, 20, 21], [26, 27, 28, 29]]


def test_folders_go_by_the_sets_own_file_where_it_is_there(tmp_path: Path) -> None:
    write(tmp_path / "objectnet-1.0" / "images", border=1, renamed={"tv": "television_set"})
    with pytest.raises(DataError, match="lacks 1 of the 113 kinds that ImageNet has, such as tv"):
        load_samples(registry.dataset("objectnet-1.0"), "test", data_root=tmp_path)
    named = {("television_set" if folder == "tv" else folder): name for folder, name, _ in OBJECTNET}
    mappings = tmp_path / "objectnet-1.0" / "mappings"
    mappings.mkdir()
    (mappings / "folder_to_objectnet_label.json").write_text(json.dumps({**named, "air_freshener": "Air freshener"}))
    samples = load_samples(registry.dataset("objectnet-1.0"), "test", data_root=tmp_path)
    kind = samples.class_names[int(samples.targets[samples.sample_ids.index("television_set/a.png")])]
    assert (len(samples), kind) == (113, "TV")
    (mappings / "folder_to_objectnet_label.json").write_text("{}")
    with pytest.raises(DataError, match="names no folder of"):
        load_samples(registry.dataset("objectnet-1.0"), "test", data_root=tmp_path)


def test_both_sizes_are_told() -> None:
    sizes = {name: registry.eval_setting(name).size for name in ("objectnet-1.0-beta", "objectnet-1.0")}
    assert sizes == {"objectnet-1.0-beta": 18_514, "objectnet-1.0": 18_574}
