"""The figure of a separation shows the stored distribution."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from plotting.drawing.separation import distribution, draw_separation

from testbed.store.views import StoredSeparation

FOUND = StoredSeparation(
    norm="l2", min_distance=2.0, pair=(0, 3), num_points=8, pair_ids=("test/0", "test/3"),
    detail={"distribution": {"start": 2.0, "width": 0.5, "counts": [2, 0, 5, 1]}},
)  # fmt: skip


def test_the_table_has_a_row_per_bin_with_the_share_up_to_its_end() -> None:
    table = distribution(FOUND)
    assert table["distance_from"].tolist() == [2.0, 2.5, 3.0, 3.5]
    assert table["distance_to"].tolist() == [2.5, 3.0, 3.5, 4.0]
    assert table["samples"].tolist() == [2, 0, 5, 1]
    assert table["cumulative_percent"].tolist() == [25.0, 25.0, 87.5, 100.0]


def test_the_figure_marks_half_the_separation_and_writes_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes_module = pytest.importorskip("matplotlib.axes")
    marked: list[float] = []
    axvline = axes_module.Axes.axvline

    def record(self: object, x: float, **look: object) -> object:
        marked.append(x)
        return axvline(self, x, **look)

    monkeypatch.setattr(axes_module.Axes, "axvline", record)
    written = draw_separation(FOUND, tmp_path / "figure", label="L2 distance", caption="Eight samples.")
    assert [path.name for path in written] == ["figure.pdf", "figure.png", "figure.csv"]
    assert marked == [1.0, 1.0]
    pd.testing.assert_frame_equal(pd.read_csv(written[2]), distribution(FOUND))
