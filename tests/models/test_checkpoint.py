"""Parameters from a file: what is accepted, what is refused, and how a misfit is told."""

from __future__ import annotations

import pickle
import random

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from models._checkpoint import load_checkpoint, read_state
from testbed.errors import DataError, DefinitionError


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (type(self.marker).touch, (self.marker,))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def fresh():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def same(one, other):
    return all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_safetensors_round_trip_in_evaluation_mode(network, tmp_path):
    save_file(network.state_dict(), tmp_path / "net.safetensors")
    loaded = load_checkpoint(fresh(), tmp_path / "net.safetensors")
    assert same(network, loaded)
    assert not loaded.training


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": state},
        lambda state: {"model_state_dict": state},
        lambda state: {"model": {"state_dict": state}},
        lambda state: {f"module.{name}": value for name, value in state.items()},
        lambda state: {f"module._orig_mod.{name}": value for name, value in state.items()},
        lambda state: {f"_orig_mod.module.{name}": value for name, value in state.items()},
        lambda state: {name: value for name, value in state.items() if "num_batches" not in name},
    ],
)
def test_the_usual_wrappings_are_taken_off(network, tmp_path, wrap):
    torch.save(wrap(network.state_dict()), tmp_path / "net.pt")
    assert same(network, load_checkpoint(fresh(), tmp_path / "net.pt"))


def averaged(network):
    other = fresh()
    other.load_state_dict(network.state_dict())
    nn.init.ones_(other[0].weight)
    return other


def swa(ema):
    return {"n_averaged": torch.tensor(3), **{f"module.{name}": value for name, value in ema.items()}}


def shadow(ema):
    return {"decay": 0.99, "shadow": {name: value for name, value in ema.items() if "running" not in name}}


def prefixed(prefix, state):
    return {f"{prefix}.{name}": value for name, value in state.items()}


SEVERAL = {
    "timm": (lambda raw, ema: {"state_dict": raw, "state_dict_ema": ema}, "state_dict", "state_dict_ema"),
    "deit": (lambda raw, ema: {"model_ema": ema, "model": raw}, "model", "model_ema"),
    "torch's average": (lambda raw, ema: {"model": raw, "swa": swa(ema)}, "model", "swa"),
    "parameters alone": (lambda raw, ema: {"net": raw, "ema": shadow(ema)}, "net", "ema.shadow"),
    "a decay beside the average": (
        lambda raw, ema: {"state_dict": raw, "ema_state_dict": {"decay": 0.99, "num_updates": 3, **ema}},
        "state_dict",
        "ema_state_dict",
    ),
    "two networks in the average": (
        lambda raw, ema: {
            "model": raw,
            "ema": {"step": torch.tensor(3), **prefixed("online", raw), **prefixed("ema_model", ema)},
        },
        "model",
        "ema.ema_model",
    ),
    "neither under a usual name": (lambda raw, ema: {"params": raw, "params_ema": ema}, "params", "params_ema"),
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_sets_of_weights_are_refused_until_one_is_chosen(network, tmp_path, kind):
    make, plain, average = SEVERAL[kind]
    torch.save(make(network.state_dict(), averaged(network).state_dict()), tmp_path / "net.pt")
    with pytest.raises((DataError, DefinitionError), match=f"{average}.*--weights-key|--weights-key.*{average}"):
        read_state(tmp_path / "net.pt")
    assert torch.equal(read_state(tmp_path / "net.pt", plain)["0.weight"], network[0].weight)
    assert torch.equal(read_state(tmp_path / "net.pt", average)["0.weight"], torch.ones(4, 3))


def test_an_average_without_names_is_refused_with_what_can_be_chosen(network, tmp_path):
    state = network.state_dict()
    torch.save({"model": state, "ema": {"decay": 0.9, "shadow_params": list(state.values())}}, tmp_path / "net.pt")
    with pytest.raises(DefinitionError, match=r"ema\.shadow_params.*Choose with --weights-key model,"):
        read_state(tmp_path / "net.pt")
    assert read_state(tmp_path / "net.pt", "model").keys() == state.keys()


def test_equal_sets_and_parts_of_one_dict_by_their_prefix_are_no_riddle(network, tmp_path):
    state, average = network.state_dict(), averaged(network).state_dict()
    torch.save({"model": state, "best_model": state}, tmp_path / "equal.pt")
    assert same(network, load_checkpoint(fresh(), tmp_path / "equal.pt"))
    torch.save(prefixed("model", state) | prefixed("model_ema", average), tmp_path / "flat.pt")
    assert torch.equal(read_state(tmp_path / "flat.pt", "model_ema")["0.weight"], torch.ones(4, 3))


def test_an_unknown_key_of_weights_is_told_with_those_that_there_are(network, tmp_path):
    torch.save({"model": network.state_dict()}, tmp_path / "net.pt")
    with pytest.raises(DefinitionError, match=r"no weights under --weights-key model_ema, but model \(9 tensors\)"):
        read_state(tmp_path / "net.pt", "model_ema")


def test_what_training_keeps_beside_the_weights_is_no_set_of_them(network, tmp_path):
    state = network.state_dict()
    kept = {"exp_avg": dict(state)}
    torch.save({"model": state, "optimizer": kept, "head": {"weight": torch.ones(2)}, "epoch": 3}, tmp_path / "net.pt")
    assert same(network, load_checkpoint(fresh(), tmp_path / "net.pt"))


def test_pickled_objects_are_refused_and_not_run(tmp_path):
    marker = tmp_path / "marker"
    torch.save({"state_dict": Trap(marker)}, tmp_path / "net.pt")
    with pytest.raises(DataError, match=r"is refused.*pickled objects"):
        read_state(tmp_path / "net.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Trap(marker), protocol=2))
    with pytest.raises(DataError, match="is refused"):
        read_state(tmp_path / "plain.pt")
    assert not marker.exists()


@pytest.mark.parametrize("name", ["net.pt", "net.safetensors"])
@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"PK\x03\x04 half a file"])
def test_damaged_files_are_refused_by_name(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        read_state(tmp_path / name)


@pytest.mark.filterwarnings("ignore")  # what torch thinks of a file is no part of the rule
@pytest.mark.parametrize("is_zip", [True, False])
def test_whatever_is_wrong_with_a_file_is_told_in_a_sentence(network, tmp_path, is_zip):
    torch.save(network.state_dict(), tmp_path / "net.pt", _use_new_zipfile_serialization=is_zip)
    sound, rng = (tmp_path / "net.pt").read_bytes(), random.Random(0)
    num_told = 0
    for _ in range(300):
        damaged = bytearray(sound)
        for _ in range(3):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / "net.pt").write_bytes(damaged)
        try:
            read_state(tmp_path / "net.pt")
        except DataError:
            num_told += 1
    assert num_told > 100


@pytest.mark.parametrize("error", [MemoryError("no room for 9 GB"), PermissionError(13, "Permission denied")])
def test_a_file_that_cannot_be_read_is_not_called_damaged(network, tmp_path, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    torch.save(network.state_dict(), tmp_path / "net.pt")
    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(DataError, match=r"cannot be read \(.*(no room for 9 GB|Permission denied)"):
        read_state(tmp_path / "net.pt")


def test_missing_file_is_told(tmp_path):
    with pytest.raises(DataError, match=r"none\.pt' does not exist"):
        read_state(tmp_path / "none.pt")


@pytest.mark.parametrize("content", [{"epoch": 3}, {}, [torch.ones(2)], {"state_dict": {"a": 1}}])
def test_a_file_without_a_state_dict_is_told(tmp_path, content):
    torch.save(content, tmp_path / "net.pt")
    with pytest.raises(DataError, match="holds no state dict"):
        read_state(tmp_path / "net.pt")


FORMS = {
    "sparse": lambda weight: weight.to_sparse(),
    "complex": lambda weight: weight.to(torch.complex64),
    "without values": lambda weight: weight.to("meta"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about sparse tensors
@pytest.mark.parametrize("form", FORMS)
def test_tensors_that_are_no_plain_numbers_are_refused_by_name(network, tmp_path, form):
    state = network.state_dict()
    torch.save({**state, "0.weight": FORMS[form](state["0.weight"])}, tmp_path / "odd.pt")
    with pytest.raises(DefinitionError, match=r"odd\.pt' does not fit the network: 0\.weight is .*Save plain tensors"):
        load_checkpoint(fresh(), tmp_path / "odd.pt")


def test_keys_that_do_not_fit_are_listed_and_counted(network, tmp_path):
    state = network.state_dict()
    state["head.bias"] = state.pop("2.bias")
    state["0.weight"] = torch.zeros(4, 5)
    for index in range(5):
        state[f"extra.{index}"] = torch.zeros(1)
    torch.save(state, tmp_path / "net.pt")
    with pytest.raises(DefinitionError) as caught:
        load_checkpoint(fresh(), tmp_path / "net.pt")
    message = str(caught.value)
    assert "1 missing (2.bias)" in message
    assert "6 unexpected (head.bias, extra.0, extra.1, ...)" in message
    assert "1 of another shape (0.weight [4, 5] for [4, 3])" in message
    assert "--num-classes" in message
