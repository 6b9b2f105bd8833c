"""timm's models on four natural shifts: all four in one figure, a model of the user's among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plotting.timm_shifts import SHIFTS
from tests.laboratory import Lab, lab
from tests.plotting.conftest import draw_figure

from testbed.errors import UnknownNameError
from testbed.records import PublishedResult
from testbed.shift_pairs import SHIFT_PAIRS

__all__ = ["lab"]

PAIRS = [SHIFT_PAIRS[name] for name in SHIFTS]
STANDARD = {f"resnet{number}.a1_in1k": 80.0 + 1.5 * number for number in range(12)}
MORE = {"vit.fb_in22k_ft_in1k": 90.0, "vit.ap_in1k": 91.0}


def fill(lab: Lab, source: str = "timm") -> None:
    """Published models whose shifted accuracy is 20 points below the other; and one of the user's, 7 and 6 of 8."""
    content: dict[str, Any] = {"source": source, "source_sha256": "0" * 64, "metric": "top1", "protocol": "timm"}
    results = {(model, setting): value - drop for model, value in (STANDARD | MORE).items()
               for pair in PAIRS for setting, drop in ((pair.x, 0.0), (pair.y, 20.0))}  # fmt: skip
    lab.store.put_published([
        PublishedResult(model=model, eval_setting=setting, value=value, input_size=224, **content)
        for (model, setting), value in results.items()
    ])  # fmt: skip
    for setting, right in {one: count for pair in PAIRS for one, count in ((pair.x, 7), (pair.y, 6))}.items():
        lab.put("mine $x_1$", setting, np.arange(8) < right)


def test_one_command_draws_four_shifts_with_the_users_model(lab: Lab, tmp_path: Path) -> None:
    fill(lab)
    files = draw_figure("timm_shifts", Path(lab.url.removeprefix("sqlite:///")), tmp_path, "--highlight", "mine*")
    assert set(files) == {"pdf", "png", "csv"}
    assert files["png"].stem == "timm-shifts"
    table = pd.read_csv(files["csv"])
    assert table.groupby("shift", sort=False)["entry"].nunique().to_dict() == dict.fromkeys(SHIFTS, 15)
    mine = table[table["is_own"]]
    assert mine["entry"].tolist() == ["mine $x_1$"] * 4
    assert set(zip(mine["x"], mine["y"], strict=True)) == {(87.5, 75.0)}
    assert not mine["is_fit"].any()
    assert set(table.loc[table["is_fit"], "entry"]) <= set(STANDARD)
    assert set(table.loc[table["entry"] == "vit.ap_in1k", "model_type"]) == {"ROBUST_INTV"}


def test_without_timms_numbers_the_import_is_asked_for(lab: Lab, tmp_path: Path) -> None:
    fill(lab, source="mine")
    database = Path(lab.url.removeprefix("sqlite:///"))
    with pytest.raises(UnknownNameError, match=r"no published source 'timm'\. Imported: mine"):
        draw_figure("timm_shifts", database, tmp_path)
