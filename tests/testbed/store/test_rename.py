"""A rename changes the label, and the identity to that of an equal definition under the new label."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from testbed.errors import DefinitionError, UnknownNameError
from testbed.fingerprint import model_fingerprint, setting_fingerprint
from testbed.records import DatasetVersion, ModelVersion, SettingVersion, Shift
from testbed.store.rename import rename_model, rename_setting
from testbed.store.store import Store

SPEC = {"definition": "version 1", "arch": None, "sizes": [1, 2.5]}


def model(name: str, spec: dict[str, Any] = SPEC) -> ModelVersion:
    return ModelVersion(name=name, label_space="three", fingerprint=model_fingerprint(name, "three", spec), spec=spec)


def setting(name: str, dataset: DatasetVersion, clean: str | None = None, **changes: Any) -> SettingVersion:
    """As `testbed.engine.identity` makes them, which a test in tests/testbed/engine compares."""
    shift = None if clean is None else Shift(family="noise", name="noise", clean_eval_setting=clean)
    described = None if shift is None else {"type": "Shift", "name": "noise", "clean_eval_setting": clean}
    spec = {"definition": "version 1", "shift": described}
    indices, sublist = changes.get("sample_indices"), changes.get("class_sublist")
    identity = setting_fingerprint(
        name, spec, dataset=dataset.fingerprint, sample_indices=indices, class_sublist=sublist
    )
    return SettingVersion(
        name=name, fingerprint=identity, dataset_fingerprint=dataset.fingerprint, spec=spec, shift=shift, **changes
    )


def completed(store: Store, samples: Any, model: ModelVersion, setting: SettingVersion) -> int:
    store.put_model(model)
    store.put_dataset(samples.dataset())
    store.put_setting(setting)
    state = samples.take_up(store, samples.key(model, setting))
    samples.fill(store, state)
    store.complete_evaluation(state.id, [])
    return int(state.id)


def test_a_renamed_model_finds_its_results_when_its_definition_is_renamed_too(store: Store, samples: Any) -> None:
    data = setting("data", samples.dataset())
    id_ = completed(store, samples, model("before"), data)
    rename_model(store, "before", "after")
    assert store.evaluation("after", "data").id == id_
    state = store.find_evaluation(samples.key(model("after"), data))
    assert state is not None
    assert (state.id, state.status) == (id_, "complete")
    store.put_model(model("after"))
    assert not store.evaluation_by_id(id_).is_stale


def test_a_definition_that_keeps_its_old_name_is_another_model(store: Store, samples: Any) -> None:
    data = setting("data", samples.dataset())
    completed(store, samples, model("before"), data)
    rename_model(store, "before", "after")
    assert store.find_evaluation(samples.key(model("before"), data)) is None
    completed(store, samples, model("before"), data)
    assert [found.name for found in store.list_models()] == ["after", "before"]
    assert [found.model for found in store.list_evaluations()] == ["after", "before"]


def test_another_content_under_the_new_name_makes_the_results_stale(store: Store, samples: Any) -> None:
    id_ = completed(store, samples, model("before"), setting("data", samples.dataset()))
    rename_model(store, "before", "after")
    samples.supersede(store, model("after", {**SPEC, "arch": "wider"}))
    assert store.evaluation_by_id(id_).is_stale


def test_all_versions_and_label_spaces_are_renamed(store: Store, samples: Any) -> None:
    for version in (model("before"), model("before", {**SPEC, "arch": "wider"})):
        store.put_model(version)
    store.put_model(replace(model("before"), label_space="other", fingerprint="f" * 64))
    rename_model(store, "before", "after")
    assert {(found.name, found.label_space, found.num_versions) for found in store.list_models()} == {
        ("after", "three", 2), ("after", "other", 1)
    }  # fmt: skip
    assert model("after").fingerprint != model("before").fingerprint
    store.put_model(model("after"))
    assert sum(found.num_versions for found in store.list_models()) == 3


@pytest.mark.parametrize("changes", [{}, {"sample_indices": np.array([3, 1, 2])}, {"class_sublist": (2, 0)}])
def test_a_renamed_setting_is_found_by_its_renamed_definition(store: Store, samples: Any, changes: Any) -> None:
    store.put_dataset(samples.dataset())
    store.put_setting(setting("before", samples.dataset(), **changes))
    rename_setting(store, "before", "after")
    store.put_setting(setting("after", samples.dataset(), **changes))
    (found,) = store.list_settings()
    assert (found.name, found.num_versions) == ("after", 1)


def test_a_renamed_clean_setting_stays_the_parent_of_its_shifted_ones(store: Store, samples: Any) -> None:
    data = samples.dataset()
    store.put_dataset(data)
    store.put_setting(setting("clean", data))
    store.put_setting(setting("noisy", data, clean="clean"))
    rename_setting(store, "clean", "pure")
    noisy, pure = store.list_settings()
    assert (pure.name, noisy.shift and noisy.shift.clean_eval_setting) == ("pure", "pure")
    store.put_setting(setting("noisy", data, clean="pure"))
    assert [found.num_versions for found in store.list_settings()] == [1, 1]


def test_an_identity_that_is_not_made_of_what_is_stored_stays(store: Store, samples: Any) -> None:
    imported = replace(model("before"), fingerprint="a" * 64)
    store.put_model(imported)
    rename_model(store, "before", "after")
    (found,) = store.list_models()
    assert (found.name, found.fingerprint) == ("after", "a" * 64)


def test_a_taken_an_unknown_and_an_impossible_name_are_refused(store: Store, samples: Any) -> None:
    for name in ("one", "two"):
        store.put_model(model(name))
    with pytest.raises(DefinitionError, match=r"has a model 'two' already.*never mixed"):
        rename_model(store, "one", "two")
    with pytest.raises(UnknownNameError, match="no model 'three'"):
        rename_model(store, "three", "four")
    for name in ("'; drop table models;--", "../../x", "x" * 300, "a b", "🦆", ""):
        with pytest.raises(DefinitionError, match="is not allowed"):
            rename_model(store, "one", name)
    assert [found.name for found in store.list_models()] == ["one", "two"]


@pytest.mark.parametrize("name", ["'; drop table models;--", "../../x", "100%", "🦆", "x" * 300])
def test_a_strange_name_can_be_given_a_good_one(store: Store, samples: Any, name: str) -> None:
    for other in ("a/b", "a_b", name):
        store.put_model(model(other))
    rename_model(store, name, "good")
    assert [found.name for found in store.list_models()] == ["a/b", "a_b", "good"]
