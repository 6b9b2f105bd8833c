"""Definitions put into the store unevaluated, and renamed there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from registry import registry
from testbed.definitions import load_definitions
from testbed.engine.data import Data
from testbed.engine.identity import model_version
from testbed.engine.preflight import located
from testbed.engine.register import differences, register_models, register_settings
from testbed.errors import UnknownNameError
from testbed.store.rename import rename_model, rename_setting
from testbed.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    load_definitions()
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def data(store: Store, cache_home: Path) -> Data:
    return Data(store=store, data_root=None, cache_root=cache_home, threads=1, warn=lambda line: None)


def differing(store: Store, data: Data) -> dict[str, str]:
    return {one.name: one.state for one in differences(store, data) if one.state != "registry only"}


def test_what_was_put_is_what_would_be_evaluated(store: Store, data: Data) -> None:
    register_models(store, ["digits-linear", "digits-1nn"])
    register_settings(store, ["digits", "digits-mscr-linf"], data)
    assert [model.name for model in store.list_models()] == ["digits-1nn", "digits-linear"]
    clean, noisy = store.list_settings()
    assert (clean.name, noisy.name, noisy.n) == ("digits", "digits-mscr-linf", 597)
    assert noisy.shift is not None
    assert noisy.shift.epsilon == pytest.approx(111 / 255 / 2, abs=1e-12)
    assert differing(store, data) == {}


def test_a_renamed_version_has_the_identity_of_an_equal_definition_of_the_new_name(store: Store, data: Data) -> None:
    """The store and the engine make fingerprints from the same parts."""
    register_models(store, ["digits-linear"])
    register_settings(store, ["digits", "digits-mscr-linf", "digits@limit40"], data)
    rename_model(store, "digits-linear", "line")
    (model,) = store.list_models()
    assert (
        model.fingerprint == model_version(replace(registry.model("digits-linear", "digits"), name="line")).fingerprint
    )
    for old, new in (("digits-mscr-linf", "noise"), ("digits@limit40", "few")):
        rename_setting(store, old, new)
        renamed = located(replace(registry.eval_setting(old), name=new), data).version
        assert renamed.fingerprint in {setting.fingerprint for setting in store.list_settings()}
    assert differing(store, data) == {"line": "store only", "noise": "store only", "few": "store only"}


def test_an_unknown_name_is_met_with_a_suggestion(store: Store, data: Data) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean digits-linear"):
        register_models(store, ["digits-linaer"])
    with pytest.raises(UnknownNameError):
        register_settings(store, ["digitz"], data)
    assert store.list_models() == store.list_settings() == []
