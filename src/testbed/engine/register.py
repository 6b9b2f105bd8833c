"""Definitions into the store without evaluating them, and how the stored ones differ from the registry's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from models.model_base import Model
from registry import registry
from testbed.engine.data import Data
from testbed.engine.identity import model_version
from testbed.engine.preflight import located
from testbed.errors import TestbedError, UnknownNameError
from testbed.store.store import Store


def register_models(store: Store, names: Iterable[str]) -> None:
    """Puts models, each for all its label spaces.

    Raises: TestbedError: an unknown name, or weights that are missing.
    """
    for name in registry.expand("model", names):
        for model in _of_all_spaces(name):
            store.put_model(model_version(model))


def register_settings(store: Store, names: Iterable[str], data: Data) -> None:
    """Puts settings with their data sets. Raises: TestbedError: an unknown name, or data that are missing."""
    for name in registry.expand("eval-setting", names):
        found = located(registry.eval_setting(name), data)
        store.put_dataset(found.dataset_version)
        store.put_setting(found.version)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A name on which store and registry differ.

    Args:
        kind: 'model' or 'eval-setting'.
        state: 'changed' (its results are stale), 'store only', 'registry only', or 'unknown' with a reason.
    """

    kind: str
    name: str
    state: str
    reason: str = ""


def differences(store: Store, data: Data) -> list[Difference]:
    """How the store's definitions differ from the registry's, models first, each by name."""
    models = {(model.name, model.label_space): model.fingerprint for model in store.list_models() if not model.hidden}
    settings = {setting.name: setting.fingerprint for setting in store.list_settings() if not setting.hidden}
    found = [_compared("model", *key, content, data) for key, content in models.items()]
    found += [_compared("eval-setting", name, None, content, data) for name, content in settings.items()]
    known = {"model": {name for name, _ in models}, "eval-setting": set(settings)}
    named = {"model": registry.model_names(), "eval-setting": registry.eval_setting_names()}
    new = [
        Difference(kind=kind, name=name, state="registry only")
        for kind, names in named.items()
        for name in names
        if name not in known[kind]
    ]
    return sorted((d for d in (*found, *new) if d.state != "equal"), key=lambda d: (d.kind != "model", d.state, d.name))


def _compared(kind: str, name: str, label_space: str | None, content: str, data: Data) -> Difference:
    try:
        if kind == "model":
            today: Any = model_version(registry.model(name, label_space))
        else:
            today = located(registry.eval_setting(name), data).version
    except UnknownNameError:
        return Difference(kind=kind, name=name, state="store only")
    except TestbedError as error:
        return Difference(kind=kind, name=name, state="unknown", reason=str(error))
    return Difference(kind=kind, name=name, state="equal" if today.fingerprint == content else "changed")


def _of_all_spaces(name: str) -> list[Model]:
    return [registry.model(name, space) for space in registry.label_spaces(name) or (None,)]
