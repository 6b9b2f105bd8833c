"""What `db.py --show-model` tells of models that nobody has evaluated yet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.model_base import Model, StandardNormalization
from registry import registry
from testbed.commands.definition import show_model
from testbed.data import weights
from testbed.definitions import load_definitions
from testbed.errors import UnknownNameError


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    load_definitions()
    monkeypatch.chdir(tmp_path)  # where no database is
    options = {"db_url": None, "logdir": None, "as_json": True, "plugins": ()}

    def run(name: str) -> Any:
        show_model({**options, "show_model": name})
        return json.loads(capsys.readouterr().out)

    return run


def test_a_model_that_is_not_stored_is_shown_as_it_is_registered(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry._models, "values", dict(registry._models.values))
    registry.add_model(
        Model(
            name="shown", transform=None, classifier_loader=lambda: None, eval_batch_size=3, label_space="toy",
            normalization=StandardNormalization(mean=[0.5], std=[0.25]), num_outputs=7, training_data=("toy", "more"),
            baseline="plain", weights=Path("nowhere.pt"),
        )
    )  # fmt: skip
    card = show("shown")
    assert (card["label_space"], card["num_outputs"], card["eval_batch_size"]) == ("toy", 7, 3)
    assert (card["training_data"], card["baseline"]) == (["toy", "more"], "plain")
    assert card["normalization"]["mean"] == [0.5]
    assert card["evaluations"] == []
    assert "needs its weights at nowhere.pt" in card["weights"]


def test_a_name_of_several_label_spaces_is_shown_for_each_and_where_its_weights_belong(show: Any) -> None:
    cards = {card["label_space"]: card for card in show("resnet18")}
    assert set(cards) >= {"imagenet-1k", "cifar10"}
    assert "checkpoints/resnet18-cifar10" in cards["cifar10"]["weights"]


def test_nothing_is_downloaded_for_a_look_and_a_download_is_not_said_to_be_forbidden(
    show: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(weights, "retrieve", lambda *_, **__: pytest.fail("downloaded"))
    said = show("alexnet")["weights"]
    assert said.startswith(
        "Not on this machine. It is fetched when the model is evaluated, if that is allowed. Or: Get"
    )
    assert str(tmp_path / "checkpoints/alexnet-imagenet-1k.pth") in said
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/alexnet-imagenet-1k.pth").touch()
    assert show("alexnet")["weights"] == "checkpoints/alexnet-imagenet-1k.pth"


def test_an_unknown_model_is_an_error_that_names_near_ones(show: Any) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean digits-resnet"):
        show("digits-resnett")
