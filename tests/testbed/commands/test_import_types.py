"""`db.py --import-csv` of lists of models' types, beside grids and in any order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.commands.exchange import import_csv
from testbed.errors import DataError, StoreError
from testbed.store.store import Store


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "grid.csv").write_text("model,val\nnet,76.1\n")
    (tmp_path / "types.csv").write_text("model,type\nnet,STANDARD\nother,LP_ADV\n")
    (tmp_path / "pretrain.csv").write_text("model,pretrain\nnet,in21k\n")
    given = dict.fromkeys(("logdir", "source", "protocol", "eval_setting", "unit", "override"))
    return {**given, "db_url": f"sqlite:///{tmp_path / 'store.sqlite'}", "folder": tmp_path}


def imported(options: dict[str, Any], *names: str, **more: Any) -> None:
    import_csv({**options, **more, "import_csv": [options["folder"] / name for name in names]})


def test_types_and_numbers_are_imported_together_and_told(options: Any, capsys: pytest.CaptureFixture[str]) -> None:
    imported(options, "grid.csv", "types.csv", "pretrain.csv")
    told = capsys.readouterr().err
    assert "Read the types of 2 models of the source 'imagenet-testbed' from" in told
    assert "Read the types of 1 models of the source 'timm'" in told
    assert "Read 1 cells of" in told
    with Store.open(options["db_url"], read_only=True) as store:
        assert [(one.source, one.model, one.model_type) for one in store.published_types()] == [
            ("imagenet-testbed", "net", "STANDARD"),
            ("imagenet-testbed", "other", "LP_ADV"),
            ("timm", "net", "MORE_DATA"),
        ]


def test_a_type_that_differs_is_replaced_on_request_alone(options: Any) -> None:
    imported(options, "types.csv", source="timm")
    with pytest.raises(StoreError, match="'net': STANDARD, now MORE_DATA"):
        imported(options, "pretrain.csv")
    imported(options, "pretrain.csv", override=True)
    with Store.open(options["db_url"], read_only=True) as store:
        assert [one.model_type for one in store.published_types()] == ["MORE_DATA", "LP_ADV"]


def test_nothing_is_stored_of_a_call_with_a_wrong_file(options: Any) -> None:
    (options["folder"] / "wrong.csv").write_text("model,type\nnet,\n")
    with pytest.raises(DataError, match="tells no type"):
        imported(options, "types.csv", "wrong.csv")
    assert not (options["folder"] / "store.sqlite").exists()
