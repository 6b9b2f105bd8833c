"""Clean and shifted answers belong together by sample, and runs by the model that gave them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.laboratory import Lab

from testbed.errors import DataError
from testbed.metric_check import verify
from testbed.results import Run, compare_runs, result_of, store_comparison
from testbed.results.levels import Levels, answers
from testbed.results.own import clean_correct
from testbed.store.setting_samples import setting_samples
from testbed.store.store import Store


def _evaluation(setting: str, ids: list[str], right: list[bool]) -> Any:
    ranks = np.where([right], 0, 1)
    return SimpleNamespace(
        setting=setting, sample_ids=lambda: ids, target_ranks=lambda: ranks, has_samples_of=lambda other: False
    )


def test_clean_answers_are_joined_by_sample_id() -> None:
    clean = _evaluation("clean", ["a", "b", "c"], [True, False, True])
    shifted = _evaluation("fog", ["c", "b"], [True, True])
    assert clean_correct(shifted, clean).tolist() == [True, False]
    assert clean_correct(clean, clean).tolist() == [True, False, True]


def test_answers_on_the_same_samples_are_joined_without_their_ids(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        noisy, clean = Lab(store, num_samples=4).pair("net", [1, 1, 0, 1], [1, 0, 0, 1])
        other = Lab(store, num_samples=6).put("net", "toy", [1, 1, 0, 1, 0, 0])
        assert noisy.has_samples_of(clean)
        assert not noisy.has_samples_of(other)


def test_runs_that_split_the_data_anew_have_other_samples(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        lab = Lab(store, num_samples=10, test_fraction=0.4)
        first, again, second = (
            lab.put("net", setting, [1, 1, 0, 1], fit_seed=seed)
            for setting, seed in (("toy", 0), ("toy-mscr-linf", 0), ("toy", 1))
        )
        assert first.has_samples_of(again)
        assert not first.has_samples_of(second)


def test_a_sample_without_a_clean_answer_is_named() -> None:
    clean, shifted = _evaluation("clean", ["a"], [True]), _evaluation("fog", ["b"], [True])
    with pytest.raises(DataError, match="'fog' has the sample b, which its clean setting 'clean' does not have"):
        clean_correct(shifted, clean)


def test_a_model_that_draws_at_random_is_compared_with_its_own_clean_run(tmp_path: Path) -> None:
    """Clean 4/4 and 2/4, shifted 3/4 and 2/4: MSCR of the means is (2.5 - 3) / 3, and no run lost more than one."""
    with Store.open(tmp_path / "s.sqlite") as store:
        lab = Lab(store, num_samples=4)
        clean = [
            lab.put("net", "toy", right, noise_seed=seed) for seed, right in enumerate(([1, 1, 1, 1], [1, 1, 0, 0]))
        ]
        noisy = [
            lab.put("net", "toy-mscr-linf", right, noise_seed=seed)
            for seed, right in enumerate(([1, 1, 1, 0], [1, 1, 0, 0]))
        ]
        found = compare_runs(list(zip(noisy, clean, strict=True)))
    assert found["mscr"].value == pytest.approx(100 * (2.5 - 3) / 3)
    assert found["loss"].value == pytest.approx(100 * 1 / 6)


def test_a_run_without_a_comparison_finds_the_clean_run_of_its_own_noise(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        lab = Lab(store, num_samples=4)
        for seed in (0, 1, 2):
            lab.put("net", "toy", [1, 1, 1, 0], noise_seed=seed)
            lab.put("net", "toy-mscr-linf", [1, 1, 0, 0], noise_seed=seed)
        (group,) = answers(store, Levels()).groups
        assert [run.clean and run.clean.noise_seed for run in group] == [0, 1, 2]


def test_a_comparison_with_other_samples_is_stored_as_undefined(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        clean = Lab(store, num_samples=4).put("net", "toy", [1, 1, 1, 0])
        shifted = Lab(store, num_samples=6).put("net", "toy-mscr-linf", [1, 1, 1, 0, 0, 0])
        store_comparison(store, shifted, clean)
        (values,) = store.evaluation_by_id(shifted.id).comparisons().values()
        assert {value.name: value.value for value in values} == {"mscr": None, "loss": None, "recovery": None}
        assert "test/4, which its clean setting 'toy' does not have" in values[0].reason
        result = result_of([Run(seed=0, evaluation=shifted, clean=clean)])
        assert result.comparisons["mscr"].reason == values[0].reason


@pytest.mark.parametrize(("num_clean", "loss"), [(6, 50.0), (4, None)])
def test_a_comparison_with_more_or_fewer_clean_samples_is_verified_as_it_was_computed(
    tmp_path: Path, num_clean: int, loss: float | None
) -> None:
    """5 photos of each class are compared with the clean setting of all photos, say."""
    with Store.open(tmp_path / "s.sqlite") as store:
        clean = Lab(store, num_samples=num_clean).put("net", "toy", [1, 0, 1, 0, 1, 1][:num_clean])
        num_shifted = 10 - num_clean
        shifted = Lab(store, num_samples=num_shifted).put("net", "toy-mscr-linf", [1, 1, 0, 0, 0, 0][:num_shifted])
        store_comparison(store, shifted, clean)
        assert verify(store).findings == ()
        (values,) = store.evaluation_by_id(shifted.id).comparisons().values()
    assert next(value.value for value in values if value.name == "loss") == loss


def test_logits_cannot_be_imported_where_every_run_has_other_samples(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        Lab(store, num_samples=10, test_fraction=0.4).put("net", "toy", [1, 1, 0, 1])
        with store.reading() as connection, pytest.raises(DataError, match="other samples in every run"):
            setting_samples(connection, "toy")
