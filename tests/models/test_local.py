"""Models named `local:PATH`."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from models._local import LocalModelOptions, local_model
from models.model_base import Model, StandardNormalization, StandardTransform
from testbed.engine.identity import model_version
from testbed.errors import DataError, DefinitionError

SOURCE = Path(__file__).resolve().parents[2] / "src"
ARCH_FILE = "from torch import nn\ndef build(num_classes=2):\n    return nn.Linear(3, num_classes)\n"


@pytest.fixture
def arch(tmp_path):
    (tmp_path / "linear_net.py").write_text(ARCH_FILE)
    return f"{tmp_path / 'linear_net.py'}:build"


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "net.safetensors"
    save_file(nn.Linear(3, 5).state_dict(), path)
    return path


def test_checkpoint_is_loaded_into_its_architecture(arch, checkpoint):
    model = local_model(str(checkpoint), LocalModelOptions(arch=arch, num_classes=5))
    assert (model.name, model.weights, model.arch) == (f"local:{checkpoint}", checkpoint, arch)
    assert (model.transform, model.normalization, model.eval_batch_size) == (None, None, 64)
    assert model.classifier_loader(weights=model.weights)(torch.zeros(1, 3)).shape == (1, 5)


def test_input_size_mean_and_std_make_the_usual_preprocessing(arch, checkpoint):
    options = LocalModelOptions(arch=arch, input_size=224, mean=(0.5,), std=(0.2,), batch_size=8, label_space="mine")
    model = local_model(str(checkpoint), options)
    assert model.transform == StandardTransform(256, 224)
    assert model.normalization == StandardNormalization(mean=(0.5,), std=(0.2,))
    assert (model.eval_batch_size, model.label_space) == (8, "mine")


def test_nothing_is_built_before_the_model_is_loaded(tmp_path, checkpoint):
    path = tmp_path / "explosive.py"
    path.write_text("def build():\n    raise RuntimeError('built')\n")
    model = local_model(str(checkpoint), LocalModelOptions(arch=f"{path}:build"))
    with pytest.raises(DefinitionError, match="built"):
        model.classifier_loader(weights=checkpoint)


def test_model_can_be_sent_to_a_worker(arch, checkpoint):
    model = local_model(str(checkpoint), LocalModelOptions(arch=arch, num_classes=5, input_size=8))
    sent = pickle.loads(pickle.dumps(model))
    assert sent.classifier_loader(weights=sent.weights)(torch.zeros(1, 3)).shape == (1, 5)


def test_number_of_classes_is_known_before_the_network_is_built(arch, checkpoint):
    assert local_model(str(checkpoint), LocalModelOptions(arch=arch, num_classes=5)).num_outputs == 5
    assert local_model(str(checkpoint), LocalModelOptions(arch=arch)).num_outputs is None


def test_wrong_number_of_classes_is_told_when_loaded(arch, checkpoint):
    model = local_model(str(checkpoint), LocalModelOptions(arch=arch, num_classes=4))
    with pytest.raises(DefinitionError, match=r"2 of another shape \(weight \[5, 3\] for \[4, 3\], .*--num-classes"):
        model.classifier_loader(weights=checkpoint)


def test_mistakes_are_told_at_once(arch, checkpoint, tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        local_model(str(tmp_path / "none.pt"), LocalModelOptions(arch=arch))
    with pytest.raises(DefinitionError, match=r"needs its architecture\. Give --arch"):
        local_model(str(checkpoint), LocalModelOptions())
    with pytest.raises(DefinitionError, match="Unknown architecture 'resnetX'"):
        local_model(str(checkpoint), LocalModelOptions(arch="resnetX"))
    with pytest.raises(DefinitionError, match="--mean and --std together"):
        LocalModelOptions(mean=(0.5,))
    with pytest.raises(DefinitionError, match="--input-size is 0"):
        LocalModelOptions(input_size=0)


def test_importing_the_definitions_does_not_import_torch():
    code = "import sys, models._local, models.digits; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=SOURCE, check=False).returncode == 0


def test_a_chosen_set_of_weights_is_another_model_and_none_is_the_model_that_it_was(
    checkpoint: Path, arch: str
) -> None:
    plain, chosen = (
        local_model(str(checkpoint), LocalModelOptions(arch=arch, num_classes=5, weights_key=key))
        for key in (None, "model_ema")
    )
    assert "weights_key" not in model_version(plain).spec
    assert model_version(chosen).spec["weights_key"] == "model_ema"
    assert model_version(plain).fingerprint != model_version(chosen).fingerprint


def test_a_loader_that_takes_no_key_of_weights_is_told(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"takes no `weights_key`.*local:PATH"):
        Model(name="m", transform=None, classifier_loader=lambda weights: None, eval_batch_size=1,
              weights=tmp_path, weights_key="ema")  # fmt: skip
