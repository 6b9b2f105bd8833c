"""Lists of models' types: the ImageNet Testbed's and timm's, every row as it stands, and nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from testbed.data.model_types import is_list_of_types, read_types
from testbed.errors import DataError

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_both_lists_are_told_by_their_columns(tmp_path: Path) -> None:
    types = write(tmp_path / "a.csv", "model,type", "net,STANDARD", "net_adv,LP_ADV")
    pretrained = write(tmp_path / "b.csv", "model,pretrain", "net,in21k", "other,in1k-dist")
    grid = write(tmp_path / "c.csv", "model,val", "net,76.1")
    assert [is_list_of_types(path) for path in (types, pretrained, grid, tmp_path / "none")] == [
        True,
        True,
        False,
        False,
    ]
    assert [(one.source, one.model, one.model_type) for one in read_types(types)] == [
        ("imagenet-testbed", "net", "STANDARD"), ("imagenet-testbed", "net_adv", "LP_ADV"),
    ]  # fmt: skip
    assert [(one.source, one.model, one.model_type) for one in read_types(pretrained, source="mine")] == [
        ("mine", "net", "MORE_DATA"), ("mine", "other", "STANDARD"),
    ]  # fmt: skip
    assert {len(one.source_sha256) for one in read_types(types)} == {64}


@pytest.mark.parametrize(
    ("header", "row", "told"),
    [
        ("model,type", "net,STANDARD\nnet,LP_ADV", "the model 'net' stands there twice"),
        ("model,type", ",STANDARD", "the model '' is missing in a row"),
        ("model,type", "net,", "'net' has '' under 'type', which tells no type"),
        ("model,pretrain", "net,in2k", "'net' has 'in2k' under 'pretrain', .* Known: in1k, "),
        ("model,type", "net", "row 2 has 1 cells"),
    ],
)
def test_a_wrong_row_is_told(tmp_path: Path, header: str, row: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        read_types(write(tmp_path / "a.csv", header, row))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published lists are not in shared/data")
def test_the_published_lists_are_read_as_a_whole() -> None:
    found = Counter(one.model_type for one in read_types(SHARED / "imagenet-testbed" / "model_types.csv"))
    assert found == {
        "STANDARD": 87, "ROBUST_INTV": 70, "MORE_DATA": 43, "LP_ADV": 16, "LOW_ACCURACY_CNN": 8, "LINEAR_PIXELS": 1,
        "NEAREST_NEIGHBORS": 1, "RANDOM_FEATURES": 1, "RANDOM_FORESTS": 1,
    }  # fmt: skip
    found = Counter(one.model_type for one in read_types(SHARED / "timm-results" / "model_metadata-in1k.csv"))
    assert found == {"STANDARD": 382 + 56, "ROBUST_INTV": 9, "LP_ADV": 2, "MORE_DATA": 41 + 5 + 10 + 6 + 4 + 6}
