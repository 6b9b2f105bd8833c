"""`db.py --show-setting`: what a setting is and where its data are to be had, whether or not it is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import db
import pytest
from tests.in_process import metrics_of, miniature
from tests.miniatures import oracle_model, write_class_image

from registry import registry
from testbed.commands.setting_card import setting_card
from testbed.data.class_order import label_space_names
from testbed.definitions import load_definitions
from testbed.errors import UnknownNameError

load_definitions()
WNIDS = label_space_names("imagenet-1k") or ()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def card(name: str, root: Path) -> dict[str, Any]:
    return setting_card(registry, registry.eval_setting(name), data_root=root)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert not db.main.main(["--show-setting", *arguments], standalone_mode=False)
    return capsys.readouterr().out


def test_a_setting_that_is_not_stored_says_what_to_get_and_where_to_put_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = dict(line.split(": ", 1) for line in shown(capsys, "imagenet-r").splitlines())
    assert lines["licence"] == "MIT"
    assert lines["address"] == "https://github.com/hendrycks/imagenet-r"
    assert "imagenet-r.tar" in lines["get"]
    assert lines["put_in"] == str(tmp_path / "data" / "imagenet-r")
    assert (lines["n"], lines["num_classes"], lines["is_there"]) == ("30000", "200", "False")
    assert not list(tmp_path.iterdir()), "nothing is made"


def test_it_tells_where_the_data_were_found(tmp_path: Path) -> None:
    (tmp_path / "imagenet-r" / "imagenet-r").mkdir(parents=True)
    found = card("imagenet-r", tmp_path)
    assert (found["is_there"], found["found_in"]) == (True, str(tmp_path / "imagenet-r"))


def test_a_place_that_holds_many_data_sets_is_told_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "imagenet").mkdir()
    assert (card("val", tmp_path)["is_there"], card("svhn", tmp_path)["is_there"]) == (False, False)
    (tmp_path / "val").mkdir()
    assert card("val", tmp_path)["found_in"] == str(tmp_path)


def test_it_counts_classes_columns_and_samples(tmp_path: Path) -> None:
    names = ("objectnet-1.0", "val", "val@limit20", "val_subsampled_iid_1_32", "digits-noise-linf-0.1",
             "imagenet-c.fog.3_on-disk")  # fmt: skip
    found = [card(name, tmp_path) for name in names]
    assert [(one["n"], one["num_classes"], one["num_columns"]) for one in found] == [
        (18_574, 113, 125),
        (50_000, 1_000, None),
        (20, 1_000, None),
        (1_562, 1_000, None),
        (597, 10, None),
        (50_000, 1_000, None),
    ]


def test_it_names_the_metrics_and_what_they_are_held_against(tmp_path: Path) -> None:
    metrics = card("imagenet-c.fog.3_in-memory", tmp_path)["metrics"]
    assert {"top1", "top5", "loss (against val)"} <= set(metrics)
    assert "loss (against val)" not in card("val", tmp_path)["metrics"]
    assert "those of flip_rate" in card("cifar10-p.brightness", tmp_path)["metrics"]


def test_it_tells_the_definition_and_leaves_out_what_is_not_used(tmp_path: Path) -> None:
    tenth = card("imagenet-c.fog.3_in-memory_10percent", tmp_path)["definition"]
    assert tenth["samples"] == {"type": "OfEachClass", "count": 5}
    assert tenth["parent_eval_setting"] == "imagenet-c.fog.3_in-memory"
    assert tenth["perturbation_fn_gpu"]["corruption"] == "fog"
    assert "transform" not in tenth
    assert card("objectnet-1.0", tmp_path)["definition"]["transform"] == {"type": "CutBorder", "pixels": 2}
    assert json.dumps(card("imagenet-c.fog.3_on-disk", tmp_path))


def test_a_setting_whose_files_are_missing_is_shown_all_the_same(tmp_path: Path) -> None:
    found = card("imagenet-w", tmp_path)
    assert "SourceHanSerifSC-ExtraLight.otf from imagenet_w/fonts" in found["get"]
    assert "Whac-A-Mole" in found["definition"]["perturbation_fn_gpu"]["missing"]


def test_what_is_stored_is_told_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_class_image(tmp_path / "imagenet" / "val" / WNIDS[6] / "a.png", 6)
    miniature("val", monkeypatch)
    metrics_of(oracle_model(), ["val"], tmp_path, monkeypatch)
    url = ("--db-url", str(tmp_path / "store.sqlite"))
    found = json.loads(shown(capsys, "val", *url, "--json"))
    assert (found["n"], found["licence"].split(";")[0]) == (1, "for non-commercial research and education")
    assert [(one["model"], one["top1"]) for one in found["evaluations"]] == [("oracle", 100.0)]
    assert "  oracle on val, seed 0: complete, top-1 100.00 %" in shown(capsys, "val", *url)


def test_an_unknown_name_has_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean imagenet-a"):
        db.main.main(["--show-setting", "imagenet-aa"], standalone_mode=False)
