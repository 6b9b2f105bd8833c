"""One network under two names is told: it would count twice in any comparison of models."""

from __future__ import annotations

from pathlib import Path

from testbed.commands.evaluate import same_weights
from testbed.records import ModelVersion
from testbed.store.store import Store


def test_models_of_equal_weights_are_grouped_and_others_left_out(tmp_path: Path) -> None:
    weights = {"a": "1", "b": "2", "c": "1", "forest": None, "trees": None, "elsewhere": "2"}
    with Store.open(tmp_path / "store.sqlite") as store:
        for name, digest in weights.items():
            store.put_model(ModelVersion(name=name, label_space="x", fingerprint=name.ljust(64), spec={}))
            sha256 = None if digest is None else digest * 64
            store.set_model_facts(name.ljust(64), weights_sha256=sha256, num_outputs=3)
        assert same_weights(store, ["a", "b", "c", "forest", "trees"]) == [["a", "c"]]
        assert same_weights(store, ["a", "b"]) == []


def test_a_network_that_is_asked_in_another_way_is_another_model(tmp_path: Path) -> None:
    specs = {"a": {}, "a-smoothed-0.1": {"classify": {"type": "Smoothing", "sigma": 0.1}}}
    with Store.open(tmp_path / "store.sqlite") as store:
        for name, spec in specs.items():
            store.put_model(ModelVersion(name=name, label_space="x", fingerprint=name.ljust(64), spec=spec))
            store.set_model_facts(name.ljust(64), weights_sha256="1" * 64, num_outputs=3)
        assert same_weights(store, list(specs)) == []
