"""Files written for the ancestor work as they stand, and what they may rely on holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.conftest import Command

MODEL = """
import torchvision
from registry import registry
from models.model_base import Model, StandardTransform, StandardNormalization

registry.add_model(Model(
    name='my-resnet',
    transform=StandardTransform(img_resize_size=256, img_crop_size=224),
    normalization=StandardNormalization(mean=[0.5, 0.5, 0.5], std=[0.2, 0.2, 0.2]),
    classifier_loader=lambda: torchvision.models.resnet50(),
    eval_batch_size=64,
))
"""
SETTING = """
from registry import registry
from eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk

registry.add_eval_setting(EvalSetting(
    name='my-shift', dataset=StandardDataset(path='photos'), size=1200,
))
"""

# Models that answer from what they see, and settings that check what they are given: whatever is broken of the contract
# fails an evaluation with the line that broke.
CONTRACT = """
import torch
from registry import registry
from models.model_base import Model, StandardNormalization, StandardTransform
from eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk

log = lambda *words: open('log.txt', 'a').write(' '.join(map(str, words)) + chr(10))

class Bright(torch.nn.Module):
    '''Tells the class by the first pixel, which the pictures carry in red: 0, 100, 200.'''
    def forward(self, images):
        value = images[:, 0].amax((1, 2))
        return -torch.stack([(value - level / 255).abs() for level in (0, 100, 200)], 1)

def model(name, **changes):
    fields = dict(transform=StandardTransform(8, 8), classifier_loader=Bright, eval_batch_size=16, label_space='toy')
    registry.add_model(Model(name=name, **{**fields, **changes}))

def setting(name, **changes):
    registry.add_eval_setting(EvalSetting(name=name, dataset=StandardDataset(path='toy'), **changes))

def sees_range(image):
    from PIL import Image
    assert isinstance(image, Image.Image)
    return StandardTransform(8, 8)(image)

class BGR(torch.nn.Module):
    def forward(self, images):
        assert images[:, 0].max() <= 0.5 / 0.25 * 1.01 and images.min() >= -2.01, 'not normalized'
        return Bright()(images.flip(1) * 0.25 + 0.5)

def sublist_aware(images, model, class_sublist, adversarial_attack):
    assert adversarial_attack is None or adversarial_attack == {'eps': 1}
    logits = model(images)
    log('own-classify', class_sublist, adversarial_attack, torch.is_grad_enabled())
    return logits if class_sublist is None else logits[:, class_sublist]

model('bright')
model('bright-bgr', transform=sees_range, classifier_loader=BGR,
      normalization=StandardNormalization([0.5, 0.5, 0.5], [0.25, 0.25, 0.25], 'BGR'))
model('own-classify', classify=sublist_aware)

def darker(image):
    assert image.shape == (3, 8, 8) and 0 <= image.min() and image.max() <= 1
    return image * 0.5

def brighter(images, model):
    assert images.ndim == 4 and images.max() <= 0.5, 'after perturbation_fn_cpu'
    assert not torch.is_grad_enabled()
    assert model(images * 2).shape == (len(images), 3), 'the model answers on [0, 1]'
    return images * 2

def attack(images, model):
    log('attack', len(images), torch.is_grad_enabled())
    images = images.clone().requires_grad_()
    model(images).sum().backward()
    assert images.grad is not None
    return images.detach()

def own_metrics(logits, targets, image_paths, py_model):
    assert len(logits) == len(targets) == len(image_paths) and logits.shape[1] == 2
    targets = torch.tensor([{2: 0, 0: 1}[int(target)] for target in targets])  # the data set's classes, not the list's
    return {'top1': 100 * float((logits.argmax(1) == targets).float().mean()),
            'paths': float(sum('dark' in p for p in image_paths)),
            'name': float(len(py_model.name))}

setting('clean')
setting('both', perturbation_fn_cpu=darker, perturbation_fn_gpu=brighter)
setting('turned', transform=lambda image: image.rotate(180))
setting('attacked', perturbation_fn_gpu=attack, adversarial_attack={'eps': 1})
setting('two-classes', class_sublist=[2, 0], idx_subsample_list=[0, 1, 40, 41, 41], metrics_fn=own_metrics)
setting('child', parent_eval_setting='clean')
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Three classes of 20 pictures, told apart by their red channel."""
    for name, red in (("dark", 0), ("grey", 100), ("light", 200)):
        (tmp_path / "data" / "toy" / name).mkdir(parents=True)
        for i in range(20):
            pixels = np.zeros((8, 8, 3), np.uint8)
            pixels[..., 0] = red
            pixels[0, 0, 1] = i
            Image.fromarray(pixels).save(tmp_path / "data" / "toy" / name / f"{i:02}.png")
    (tmp_path / "contract.py").write_text(CONTRACT)
    return tmp_path


def test_both_files_work_as_they_stand(command: Command, tmp_path: Path) -> None:
    for wnid in ("n01440764", "n02123045"):
        (tmp_path / "data" / "photos" / wnid).mkdir(parents=True)
        for i in range(600):
            colour = (i % 256, i // 256, 7)
            Image.new("RGB", (20, 18), colour).save(tmp_path / "data" / "photos" / wnid / f"{i}.png")
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "my_resnet.py").write_text(MODEL)
    (tmp_path / "plugins" / "my_shift.py").write_text(SETTING)
    (tmp_path / "plugins" / "broken.py").write_text("import a_package_that_is_not_there\n")
    done = command("eval.py", "--models", "my-resnet", "--eval-settings", "my-shift", "--plugin", "plugins",
                   "--limit", 4, "--workers", 0, "--json")  # fmt: skip
    assert done.code == 0, done.err
    (evaluation,) = done.json["evaluations"]
    assert (evaluation["status"], evaluation["n"]) == ("complete", 4)
    assert "broken.py was not imported: ModuleNotFoundError" in done.err


def test_the_contract_of_drop_in_files_holds(command: Command, toy: Path) -> None:
    settings = ["clean", "both", "turned", "attacked", "two-classes"]
    done = command("eval.py", "--models", "bright", "bright-bgr", "own-classify", "--eval-settings", *settings,
                   "--plugin", "contract.py", "--workers", 0, "--db", "--json")  # fmt: skip
    assert done.code == 0, done.err
    found = {(e["eval_setting"], e["model"]): e for e in done.json["evaluations"]}
    for (setting, model), evaluation in found.items():
        assert evaluation["status"] == "complete", (setting, model, evaluation["reason"])
        assert evaluation["metrics"]["top1"]["value"] == 100.0, (setting, model)
    log = (toy / "log.txt").read_text().splitlines()
    # The eval batch of 16 divided by 8, with gradients; the model that attacks itself is given the clean images.
    assert "attack 2 True" in log
    assert "own-classify None {'eps': 1} True" in log
    assert "own-classify [2, 0] None False" in log
    assert "own-classify None None False" in log
    own = found["two-classes", "bright"]["metrics"]
    assert (own["paths"]["value"], own["name"]["value"]) == (2.0, 6.0)
    assert found["two-classes", "bright"]["n"] == 5
    assert "repeats 1 sample" in done.err
    child = command("eval.py", "--models", "bright", "--eval-settings", "child", "--plugin", "contract.py",
                    "--workers", 0, "--db")  # fmt: skip
    assert child.code == 0, child.err
    assert "stands for child" in child.err


def test_weights_by_name_come_from_the_checkpoints_folder(command: Command, tmp_path: Path) -> None:
    (tmp_path / "by_name.py").write_text(
        "import torch\n"
        "from registry import registry\n"
        "from models.model_base import Model\n"
        "from mldb.utils import load_model_state_dict\n"
        "def load():\n"
        "    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))\n"
        "    load_model_state_dict(network, 'mine')\n"
        "    return network\n"
        "registry.add_model(Model(name='mine', transform=None, classifier_loader=load, eval_batch_size=64))\n"
    )
    evaluate = ("eval.py", "--models", "mine", "--eval-settings", "digits", "--plugin", "by_name.py",
                "--workers", 0, "--json")  # fmt: skip
    missing = command(*evaluate)
    assert missing.code == 1
    assert "No weights named 'mine'" in missing.json["evaluations"][0]["reason"]
    import torch

    (tmp_path / "checkpoints").mkdir()
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    torch.save(network.state_dict(), tmp_path / "checkpoints" / "mine.pt")
    assert command(*evaluate).json["evaluations"][0]["status"] == "complete"
