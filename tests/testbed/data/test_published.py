"""Published tables: every cell as it stands, empty ones empty, and what is known to be wrong flagged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from testbed.data.published import SAME_AS_CLEAN, TIMM_SETTINGS, read_published
from testbed.errors import DataError

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
GRID = SHARED / "imagenet-testbed" / "robustness_top1s.csv"
TIMM = SHARED / "timm-results"

needs_grid = pytest.mark.skipif(not GRID.is_file(), reason="the published grid is not in shared/data")
needs_timm = pytest.mark.skipif(not TIMM.is_dir(), reason="timm's results files are not in shared/data")


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_grid_gives_every_cell_with_source_and_protocol(tmp_path: Path) -> None:
    grid = write(tmp_path / "grid.csv", "model,val,imagenet-a", "net,76.13,0", "other,,1.5e0")
    found = read_published(grid, source="paper")
    assert [(one.model, one.eval_setting, one.value) for one in found] == [
        ("net", "val", 76.13), ("net", "imagenet-a", 0.0), ("other", "val", None), ("other", "imagenet-a", 1.5),
    ]  # fmt: skip
    assert {(one.source, one.protocol, one.metric, one.input_size) for one in found} == {
        ("paper", "imagenet-testbed", "top1", None)
    }
    assert {len(one.source_sha256) for one in found} == {64}


@pytest.mark.parametrize("lines", [("model,val,imagenet-a", "net,0.565,0", "other,1,"),
                                   ("model,img_size,top1,top5", "net,224,0.9894,0.99")])  # fmt: skip
def test_a_table_that_may_be_in_fractions_asks_for_its_unit(lines: tuple[str, ...], tmp_path: Path) -> None:
    path = write(tmp_path / "results-imagenet.csv", *lines)
    with pytest.raises(DataError, match=r"no number above (1|0\.99).*--unit fraction"):
        read_published(path)
    as_percent = [one.value for one in read_published(path, unit="percent")]
    as_fractions = [one.value for one in read_published(path, unit="fraction")]
    assert as_percent == [
        float(cell) if cell else None for line in lines[1:] for cell in line.split(",")[1:] if cell != "224"
    ]
    expected = {0.565: 56.5, 0.0: 0.0, 1.0: 100.0, None: None, 0.9894: 98.94, 0.99: 99.0}
    assert as_fractions == [expected[value] for value in as_percent]


def test_numbers_above_one_are_no_fractions_and_percent_needs_no_word(tmp_path: Path) -> None:
    grid = write(tmp_path / "grid.csv", "model,val,pgd", "net,76.13,0.4")
    assert [one.value for one in read_published(grid)] == [76.13, 0.4]
    with pytest.raises(DataError, match=r"number 76\.13, which is no fraction"):
        read_published(grid, unit="fraction")


def test_severity_one_in_memory_that_equals_clean_is_flagged_and_nothing_else(tmp_path: Path) -> None:
    columns = ("val", "imagenet-c.fog.1_in-memory", "imagenet-c.fog.2_in-memory", "imagenet-c.fog.1_on-disk")
    grid = write(tmp_path / "grid.csv", ",".join(("model", *columns)), "a,70,70,70,70", "b,70,69,70,70", "c,,70,70,70",
                 "d,,,,")  # fmt: skip
    flagged = [(one.model, one.eval_setting, one.value) for one in read_published(grid) if one.flag]
    assert flagged == [("a", "imagenet-c.fog.1_in-memory", 70.0)]


def test_a_results_file_of_timm_is_keyed_by_model_and_size(tmp_path: Path) -> None:
    path = write(
        tmp_path / "results-imagenet-a-clean.csv",
        "model,img_size,top1,top1_err,top5,top5_err,param_count",
        'net,224,98.940,1.060,99.910,0.090,"1,013.01"',
        "net,288,99.0,1.0,,,3",
    )
    found = read_published(path)
    assert [(one.input_size, one.metric, one.value) for one in found] == [
        (224, "top1", 98.94), (224, "top5", 99.91), (288, "top1", 99.0), (288, "top5", None),
    ]  # fmt: skip
    assert {(one.source, one.eval_setting) for one in found} == {("timm", "val-on-imagenet-a-classes")}
    assert {one.eval_setting for one in read_published(path, eval_setting="mine")} == {"mine"}


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.csv", ["name,val", "net,1"], "neither a grid .* nor a results file of timm .* name, val"),
        ("a.csv", ["model,type", "net,STANDARD"], "'net' has 'STANDARD' under 'type'. It must be a percentage"),
        ("a.csv", ["model,val", "net,101"], "'net' has '101' under 'val'"),
        ("a.csv", ["model,val", "net,nan"], "'net' has 'nan' under 'val'"),
        ("a.csv", ["model,val", "net"], "row 2 has 1 cells, but there are 2 columns"),
        ("a.csv", ["model,val,val", "net,1,2"], "names a column twice"),
        ("a.csv", ["model,val", "net,1", "net,2"], "the model 'net' stands there twice"),
        ("a.csv", ["model,val", ",1"], "the model '' is missing in a row"),
        ("a.csv", [""], "neither a grid"),
        ("a.csv", ["model,img_size,top1,top5", "net,224,1,2"], "does not tell what was evaluated. Give --eval-setting"),
        ("results-sketch.csv", ["model,img_size,top1,top5", "net,big,1,2"], "the img_size 'big'"),
        ("results-sketch.csv", ["model,img_size,top1", "net,224,1"], "neither a grid"),
        ("results-sketch.csv", ["model,img_size,top1,top5", "n,9,1,2", "n,9,1,2"], "'n at 9 px' stands there twice"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, name: str, lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_published(write(tmp_path / name, *lines))


def test_a_missing_and_a_binary_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_published(tmp_path / "none.csv")
    (tmp_path / "image.csv").write_bytes(b"\xff\xd8\xff\x00")
    with pytest.raises(DataError, match="is not a CSV file"):
        read_published(tmp_path / "image.csv")
    grid = write(tmp_path / "grid.csv", "model,val", "net,1")
    with pytest.raises(DataError, match="Leave out --eval-setting val"):
        read_published(grid, eval_setting="val")


@needs_grid
def test_the_published_grid_has_the_known_counts() -> None:
    found = read_published(GRID)
    assert len({one.model for one in found}) == 338
    assert len({one.eval_setting for one in found}) == 213
    assert len(found) == 338 * 213
    assert sum(one.value is None for one in found) == 26220
    assert [(one.model, one.eval_setting) for one in found if one.value == 0] == [("resnet50", "imagenet-a")]
    assert Counter(one.flag for one in found if one.flag) == {SAME_AS_CLEAN: 543}


@needs_timm
def test_every_results_file_of_timm_is_read() -> None:
    files = sorted(TIMM.glob("results-*.csv"))
    assert {path.stem.removeprefix("results-") for path in files} == set(TIMM_SETTINGS)
    for path in files:
        found = read_published(path)
        assert len(found) == 2 * 1556
        sizes = Counter(one.model for one in found if one.metric == "top1")
        assert sum(count == 2 for count in sizes.values()) == 290
        assert max(sizes.values()) == 2
