"""mCE of published models: a baseline belongs to its protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.data.published import read_published
from testbed.errors import UnknownNameError
from testbed.metrics.corruption import COMMON
from testbed.records import PublishedResult
from testbed.results.corruption_published import published_rows
from testbed.store.store import Store

GRID = Path(__file__).resolve().parents[4] / "shared/data/imagenet-testbed/robustness_top1s.csv"

# By the published AlexNet row, and by the grid's own alexnet. The papers have 76.7, 65.3, 53.6 and 69.3: the grid
# resizes the files that the baseline was measured on as they are.
PUBLISHED = {
    "resnet50": (78.20, 76.51),
    "resnet50_augmix": (67.13, 65.65),
    "resnet50_deepaugment_augmix": (56.54, 55.24),
    "resnet50_trained_on_SIN_and_IN": (70.91, 69.34),
}


def result(model: str, setting: str, value: float | None, source: str = "grid") -> PublishedResult:
    return PublishedResult(source=source, source_sha256="0" * 64, model=model, eval_setting=setting, metric="top1",
                           protocol="resized", value=value)  # fmt: skip


def put(store: Any, model: str, error: float, *, without: str = "", source: str = "grid") -> None:
    names = [f"imagenet-c.{name}.{severity}_on-disk" for name in COMMON for severity in range(1, 6)]
    in_memory = [name.replace("on-disk", "in-memory") for name in names]
    rows = [result(model, name, None if name == without else 100 - error, source) for name in names]
    rows += [result(model, name, 0.0, source) for name in in_memory] + [result(model, "val", 100 - error / 2, source)]
    store.put_published(rows)


def test_errors_on_disk_are_divided_by_those_of_the_source(lab: Any) -> None:
    put(lab.store, "net", 30)
    put(lab.store, "alexnet", 60)
    rows = {row.errors.name: row for row in published_rows(lab.store, ["grid"])}
    mce, relative = rows["net"].mces["alexnet"]
    assert (mce.value, relative.value) == pytest.approx((50, 50))
    assert rows["net"].mean_error.value == pytest.approx(30)
    assert mce.detail["of_baseline"] == "grid, protocol resized"
    assert mce.ci_low is None
    other = published_rows(lab.store, ["grid"], models=["n*"], baseline="net")
    assert [pair[0].value for row in other for pair in row.mces.values()][1] == pytest.approx(100)


def test_a_missing_cell_is_undefined_and_named(lab: Any) -> None:
    put(lab.store, "net", 30, without="imagenet-c.fog.3_on-disk")
    put(lab.store, "alexnet", 60)
    (row,) = published_rows(lab.store, ["grid"], models=["net"])
    assert row.mces["alexnet"][0].reason == "severity 3 of fog missing"
    assert row.mean_error.value is None


def test_a_source_without_the_baseline_has_its_published_mce(lab: Any) -> None:
    put(lab.store, "net", 30)
    put(lab.store, "alexnet", 60)
    put(lab.store, "other", 30, source="more")
    rows = {row.errors.name: row.mces for row in published_rows(lab.store, ["grid", "more"])}
    assert rows["net"]["alexnet"][0].value == pytest.approx(50)
    assert rows["other"]["alexnet-published"][0].value == rows["net"]["alexnet-published"][0].value
    assert [(value.value, value.reason) for value in rows["other"]["alexnet"]] == [
        (None, "the baseline alexnet is not in 'more'")
    ] * 2
    (row,) = published_rows(lab.store, ["grid", "more"], models=["other"], baseline="net")
    assert row.mces["net"][0].reason == "the baseline net is not in 'more'"


def test_a_source_without_corruptions_is_refused(lab: Any) -> None:
    lab.store.put_published([result("net", "val", 70.0)])
    with pytest.raises(UnknownNameError, match="No model has errors on ImageNet-C's files in 'grid'"):
        published_rows(lab.store, ["grid"])


def test_unknown_names_are_refused(lab: Any) -> None:
    put(lab.store, "net", 30)
    with pytest.raises(UnknownNameError, match=r"'nest' has no errors on ImageNet-C's files in 'grid'. Did you"):
        published_rows(lab.store, ["grid"], baseline="nest")
    with pytest.raises(UnknownNameError, match=r"'nett' has no errors .* Did you mean net"):
        published_rows(lab.store, ["grid"], models=["nett"], baseline="net")
    with pytest.raises(UnknownNameError, match="no published source 'timm'"):
        published_rows(lab.store, ["timm"])
    (row,) = published_rows(lab.store, ["grid"], baseline="alexnet-published")
    assert list(row.mces) == ["alexnet-published"]


def test_published_models_have_their_mce(tmp_path: Path) -> None:
    if not GRID.exists():
        pytest.skip(f"the published grid is not there ({GRID.name})")
    wanted = [one for one in read_published(GRID) if one.model in {*PUBLISHED, "alexnet"}]
    with Store.open(tmp_path / "published.sqlite") as store:
        store.put_published(wanted)
        rows = published_rows(store, ["imagenet-testbed"], models=list(PUBLISHED))
    found = {row.errors.name: tuple(round(mce.value or 0, 2) for mce, _ in row.mces.values()) for row in rows}
    assert found == PUBLISHED
