"""The grid of corruption x severity from a store: what belongs together, joined by sample, and what is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from testbed.errors import DataError, UnknownNameError
from testbed.metrics.corruption import RELATIVE, accuracies
from testbed.records import MetricValue
from testbed.results import Precision, Run
from testbed.results.corruption import DatasetGrids, StoredGrid, corruption_grids, grid_of_runs, outputs_of
from testbed.results.corruption_choice import IN_MEMORY, ON_DISK, family_of, family_words

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
FOG = {1: [1, 1, 1, 1, 1, 0, 1, 0], 2: [1, 1, 1, 0, 0, 0, 0, 0]}


def put(lab: Any, model: str, cells: dict[str, Any], clean: Any = CLEAN, **seeds: int) -> None:
    """Evaluations on `toy-c.NAME_in-memory`, by the rest of the name; those with an ending of their own keep it."""
    for name, right in cells.items():
        setting = f"toy-c.{name}" if "_" in name else f"toy-c.{name}_in-memory"
        lab.pair(model, clean, right, setting=setting, **seeds)


def grids(lab: Any, **asked: Any) -> dict[str, StoredGrid]:
    (found,) = corruption_grids(lab.store, asked.pop("precision", Precision()), **asked)
    return {model.name: model for model in found.models}


def values(stored: StoredGrid, *cells: Any) -> dict[str, float | None]:
    found: dict[str, MetricValue] = accuracies(stored.grid.outcomes(cells or stored.grid.cells))
    return {name: value.value for name, value in found.items()}


def test_cells_have_their_numbers(lab: Any) -> None:
    put(lab, "net", {f"fog.{severity}": right for severity, right in FOG.items()})
    net = grids(lab)["net"]
    assert list(net.groups) == [("fog", 1), ("fog", 2)]
    assert values(net, ("fog", 1)) == pytest.approx(
        {"clean_accuracy": 75, "corruption_accuracy": 75, RELATIVE: 500 / 6, "recovery": 50, "raw_rce": 0}
    )
    assert values(net)[RELATIVE] == pytest.approx(800 / 12)
    assert (net.seeds, net.missing, net.evaluation.n) == ([0], {}, 8)


def test_accuracy_is_what_is_kept_and_recovered_on_every_stored_evaluation(lab: Any) -> None:
    rng = np.random.default_rng(0)
    for seed in range(3):
        cells = {f"{name}.{severity}": rng.random((2, 8)) < 0.6 for name in ("fog", "snow") for severity in (1, 2)}
        put(lab, "net", cells, clean=np.roll(CLEAN, seed), fit_seed=seed, noise_seed=seed)
    net = grids(lab)["net"]
    assert net.grid.clean.shape == (3, 8)
    for cell in net.grid.cells:
        found = {name: value / 100 for name, value in values(net, cell).items() if value is not None}
        kept = found["clean_accuracy"] * found[RELATIVE] + (1 - found["clean_accuracy"]) * found["recovery"]
        assert found["corruption_accuracy"] == pytest.approx(kept, abs=1e-12)


def test_in_memory_and_on_disk_are_never_mixed(lab: Any) -> None:
    put(lab, "net", {"fog.1": FOG[1], "fog.1_on-disk": FOG[2], "fog.1_on-disk-resized": CLEAN})
    assert values(grids(lab)["net"])[RELATIVE] == pytest.approx(500 / 6)
    assert values(grids(lab, family=ON_DISK)["net"])[RELATIVE] == 50
    assert values(grids(lab, family=f"{ON_DISK}-resized")["net"])[RELATIVE] == 100


@pytest.mark.parametrize("kind", ["in-memory", "on-disk"])
def test_a_variant_is_asked_for_by_what_the_names_end_in(lab: Any, kind: str) -> None:
    put(lab, "net", {f"fog.1_{kind}": FOG[1], f"fog.1_{kind}-jpeg85": FOG[2], f"fog.1_{kind}-mnist28-jpeg85": CLEAN})
    is_on_disk = kind == "on-disk"
    found = {
        variant: values(grids(lab, family=family_of(is_on_disk=is_on_disk, variant=variant))["net"])[RELATIVE]
        for variant in ("", "jpeg85", "mnist28-jpeg85")
    }
    assert found == pytest.approx({"": 500 / 6, "jpeg85": 50, "mnist28-jpeg85": 100})
    other = "read from disk" if is_on_disk else "simulated in memory"
    with pytest.raises(UnknownNameError) as refused:
        grids(lab, family=family_of(is_on_disk=is_on_disk, variant="jpeg58"))
    assert str(refused.value) == (
        f"No complete evaluation is of variant 'jpeg58' of corruptions {other}. Did you mean jpeg85? Stored: the plain "
        "ones, --variant jpeg85, --variant mnist28-jpeg85."
    )
    assert corruption_grids(lab.store, Precision(), family=family_of(is_on_disk=not is_on_disk)) == []


def test_where_only_variants_are_stored_the_plain_ones_are_refused(lab: Any) -> None:
    put(lab, "net", {"fog.1_in-memory-uint8": FOG[1], "fog.1_on-disk": FOG[1]})
    with pytest.raises(UnknownNameError, match=r"the plain settings without a variant .* Stored: --variant uint8\."):
        corruption_grids(lab.store, Precision())


def test_families_are_told_in_words() -> None:
    families = (IN_MEMORY, ON_DISK, f"{IN_MEMORY}-uint8", f"{ON_DISK}-resized")
    assert [family_words(family).partition(", variant ")[::2] for family in families] == [
        ("simulated in memory", ""), ("read from disk", ""), ("simulated in memory", "uint8"),
        ("read from disk", "resized"),
    ]  # fmt: skip


def limited(lab: Any, model: str, limit: int, right: Any, corruption: str = "fog.1") -> None:
    """A trial on the first samples."""
    lab.put(model, f"toy@limit{limit}", CLEAN[:limit])
    lab.put(model, f"toy-c.{corruption}_in-memory@limit{limit}", right)


def sets(lab: Any, **asked: Any) -> dict[str, tuple[list[str], Any]]:
    """By data set the models, and what is left out."""
    found: list[DatasetGrids] = corruption_grids(lab.store, Precision(), **asked)
    return {one.dataset: ([model.name for model in one.models], one.left_out) for one in found}


def test_trials_with_a_limit_are_left_out_and_counted(lab: Any) -> None:
    put(lab, "net-a", {"fog.1": FOG[1]})
    for model in ("net-a", "net-b"):
        limited(lab, model, 4, [1, 1, 1, 0])
    limited(lab, "net-b", 4, [1, 1, 1, 0], "snow.1")
    assert sets(lab) == {"toy": (["net-a"], {"toy@limit4": 2})}
    assert values(grids(lab)["net-a"])[RELATIVE] == pytest.approx(500 / 6)
    assert sets(lab, datasets=("toy@limit4",)) == {"toy@limit4": (["net-a", "net-b"], {})}
    assert sets(lab, datasets=("t*",)) == sets(lab)


def test_where_all_are_limited_the_largest_limit_is_reported_under_its_name(lab: Any) -> None:
    put(lab, "net-a", {"fog.1": FOG[1]})
    limited(lab, "net-b", 4, [1, 1, 1, 0])
    limited(lab, "net-b", 2, [1, 1])
    limited(lab, "net-a", 2, [1, 1])
    assert sets(lab, models=("net-b",)) == {"toy@limit4": (["net-b"], {"toy@limit2": 1})}
    (net,) = grids(lab, models=("net-b",)).values()
    assert (net.grid.n, values(net)[RELATIVE]) == (4, 75)


def test_a_limit_of_all_samples_is_another_setting_and_not_the_whole_one(lab: Any) -> None:
    limited(lab, "net", 8, FOG[2])
    put(lab, "net", {"fog.1": FOG[1]})
    assert sets(lab) == {"toy": (["net"], {"toy@limit8": 1})}
    assert values(grids(lab)["net"])[RELATIVE] == pytest.approx(500 / 6)


def fake(setting: str, ids: str, right: list[int]) -> Any:
    """An evaluation of samples that are named by a letter each."""
    return SimpleNamespace(
        model="net", setting=setting, n=len(ids), test_fraction=None, sample_ids=lambda: list(ids),
        target_ranks=lambda: np.where([right], 0, 1), has_samples_of=lambda other: other.sample_ids() == list(ids),
        sequences=lambda: None,
    )  # fmt: skip


def test_cells_are_joined_by_sample_id() -> None:
    """In the order of the first: a and c are right when clean, b and c in fog, a in snow."""
    clean = fake("toy", "dcba", [0, 1, 0, 1])
    fog, snow = fake("fog", "abc", [0, 1, 1]), fake("snow", "cab", [0, 1, 0])
    runs = {(one.setting, 1): [[Run(seed=0, evaluation=one, clean=clean)]] for one in (fog, snow)}
    found = grid_of_runs(runs, Precision())
    assert found.clean.tolist() == [[1, 0, 1]]
    assert {cell: right.tolist() for cell, right in found.cells.items()} == {
        ("fog", 1): [[False, True, True]], ("snow", 1): [[True, False, False]],
    }  # fmt: skip
    for ids in ("abd", "ab"):
        runs["snow", 1] = [[Run(seed=0, evaluation=fake("snow", ids, [0] * len(ids)), clean=clean)]]
        with pytest.raises(DataError, match="'snow' and 'fog' of 'net' are not of the same samples"):
            grid_of_runs(runs, Precision())


def test_noise_is_no_corruption(lab: Any) -> None:
    lab.pair("net", CLEAN, CLEAN)
    assert corruption_grids(lab.store, Precision()) == []


def test_corruption_runs_of_one_model_are_draws_and_fitted_models_are_runs(lab: Any) -> None:
    for seed in (0, 1):
        put(lab, "pooled", {"fog.1": FOG[1 + seed]}, noise_seed=seed)
        put(lab, "fitted", {"fog.1": FOG[1 + seed]}, fit_seed=seed, noise_seed=seed)
    found = grids(lab)
    assert (found["pooled"].grid.clean.shape, found["pooled"].grid.num_draws) == ((1, 8), {("fog", 1): 2})
    assert (found["fitted"].grid.clean.shape, found["fitted"].grid.num_draws) == ((2, 8), {("fog", 1): 1})
    assert (
        values(found["pooled"])[RELATIVE] == pytest.approx(values(found["fitted"])[RELATIVE]) == pytest.approx(800 / 12)
    )
    assert found["fitted"].seeds == [0, 1]


def test_what_another_model_has_is_missing(lab: Any) -> None:
    put(lab, "net-a", {"fog.1": FOG[1], "snow.1": FOG[1]})
    put(lab, "net-b", {"fog.1": FOG[1]})
    assert grids(lab)["net-b"].missing == {"toy-c.snow.1_in-memory": (0,)}
    assert grids(lab, models=("net-b",))["net-b"].missing == {}


def test_a_cell_without_all_runs_is_missing_and_not_averaged(lab: Any) -> None:
    for seed in (0, 1):
        put(lab, "net", {"fog.1": FOG[1]}, fit_seed=seed)
    put(lab, "net", {"snow.1": FOG[1]}, fit_seed=0)
    net = grids(lab)["net"]
    assert (list(net.groups), net.missing) == ([("fog", 1)], {"toy-c.snow.1_in-memory": (0, 1)})
    put(lab, "odd", {"fog.1": FOG[1]}, fit_seed=0)
    put(lab, "odd", {"snow.1": FOG[1]}, fit_seed=1)
    with pytest.raises(DataError, match="all 2 runs of 'odd', which have the seeds 0, 1"):
        grids(lab)


def test_models_and_data_sets_are_chosen(lab: Any) -> None:
    put(lab, "net-a", {"fog.1": FOG[1]})
    put(lab, "net-b", {"fog.1": FOG[1]})
    assert list(grids(lab, models=("*-a",))) == ["net-a"]
    assert list(grids(lab, datasets=("t*",))) == ["net-a", "net-b"]
    assert corruption_grids(lab.store, Precision(), datasets=("other",)) == []
    with pytest.raises(UnknownNameError, match=r"'net-c' has no complete evaluation .* Did you mean net-"):
        grids(lab, models=("net-c",))


def test_other_numerics_are_other_models(lab: Any) -> None:
    put(lab, "net", {"fog.1": FOG[1]})
    lab.put("net", "toy", CLEAN, threads=2)
    lab.put("net", "toy-c.fog.1_in-memory", FOG[2], threads=2)
    assert {name: values(one)[RELATIVE] for name, one in grids(lab).items()} == pytest.approx(
        {"net (threads 1)": 500 / 6, "net (threads 2)": 50}
    )


def test_without_a_clean_evaluation_nothing_is_reported(lab: Any) -> None:
    lab.put("net", "toy-c.fog.1_in-memory", FOG[1])
    assert corruption_grids(lab.store, Precision()) == []


def test_clusters_are_those_of_the_samples(lab: Any) -> None:
    put(lab, "net", {"fog.1": FOG[1]})
    labels = {f"test/{index}": str(index // 4) for index in range(8)}
    found = grids(lab, precision=Precision(cluster_by="patient", clusters=labels))["net"]
    assert found.grid.factors.clusters == ["0"] * 4 + ["1"] * 4


def test_outputs_of_the_clean_images_are_recognized(lab: Any) -> None:
    put(lab, "net", {"fog.1": CLEAN, "fog.2": FOG[2], "snow.1": [CLEAN, FOG[2]]})
    found = outputs_of(grids(lab)["net"])
    assert {cell: one.identical for cell, one in found.items()} == {
        ("fog", 1): "logits", ("fog", 2): None, ("snow", 1): None,
    }  # fmt: skip


def test_guessing_is_over_what_is_wrong_in_each_fitted_model(lab: Any) -> None:
    """Two classes in turn; a model that is right everywhere has no say."""
    put(lab, "net", {"fog.1": FOG[1]}, fit_seed=0)
    put(lab, "net", {"fog.1": FOG[1]}, clean=np.ones(8, bool), fit_seed=1)
    (outputs,) = outputs_of(grids(lab)["net"]).values()
    assert outputs.guessing == pytest.approx(1 / 2)
