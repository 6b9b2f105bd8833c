"""The ancestor's way to evaluate one model on one setting: `engine.py` starts this anew for every pair.

    python tests/benchmarks/one_pair.py DEFINITIONS MODEL DATA SETTING OUTPUT

A minimal form of the ImageNet Testbed's inference, without its database, its registry of 200 models and its second
process per device, all of which make it slower: it imports what it needs, builds the model, decodes and transforms the
images with a DataLoader, perturbs each on the CPU, runs the forward pass and saves the logits.

DATA is a folder of class folders or an .npz; SETTING is 'clean', 'noise:EPSILON' or 'NAME:SEVERITY' of the package
`imagecorruptions`.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor
from torchvision.transforms import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from models.model_base import Model
from registry import registry
from testbed.signatures import argument_names

Perturb = Callable[[Image.Image], Tensor]


class Images(torch.utils.data.Dataset[Tensor]):
    """The images of a folder or an .npz, transformed and perturbed one by one."""

    def __init__(self, data: Path, model: Model, perturb: Perturb) -> None:
        self.model, self.perturb = model, perturb
        if data.is_dir():
            self.items: Any = [path for path, _ in torchvision.datasets.ImageFolder(str(data)).samples]
        else:
            self.items = np.load(data)["x"]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Tensor:
        item = self.items[index]
        image = Image.open(item).convert("RGB") if isinstance(item, str) else Image.fromarray(item.squeeze())
        transform = self.model.transform
        return self.perturb(image if transform is None else transform.to_pixels(image))  # type: ignore[attr-defined]


def perturbation(setting: str) -> Perturb:
    """From a name to a function of one image."""
    name, _, level = setting.partition(":")
    if name == "clean":
        return _unchanged
    if name == "noise":
        return partial(_noise, float(level))
    from imagecorruptions.corruptions import __dict__ as functions

    return partial(_corrupted, functions[name], int(level))


def load(name: str) -> tuple[Model, torch.nn.Module]:
    """A model's definition and its network, once the file that defines it has been run."""
    model = registry.model(name, registry.label_spaces(name)[0])
    given = {"seed": 0, "weights": model.weights_file()}
    network = model.classifier_loader(**{k: given[k] for k in argument_names(model.classifier_loader) if k in given})
    return model, network.eval()


def normalized(images: Tensor, model: Model) -> Tensor:
    """What the network is given."""
    if model.normalization is not None:
        images = functional.normalize(images, list(model.normalization.mean), list(model.normalization.std))
    return images


def main() -> None:
    """Evaluates one pair."""
    definitions, name, data, setting, output = sys.argv[1:]
    runpy.run_path(definitions)
    model, network = load(name)
    images = Images(Path(data), model, perturbation(setting))
    loader = torch.utils.data.DataLoader(images, batch_size=model.eval_batch_size)
    with torch.inference_mode():
        logits = torch.cat([network(normalized(batch, model)) for batch in loader])
    torch.save(logits, output)


def _unchanged(image: Image.Image) -> Tensor:
    pixels: Tensor = functional.to_tensor(image)
    return pixels


def _noise(epsilon: float, image: Image.Image) -> Tensor:
    pixels = _unchanged(image)
    low, high = (pixels - epsilon).clamp_(min=0), (pixels + epsilon).clamp_(max=1)
    return low + (high - low) * torch.rand_like(pixels)


def _corrupted(function: Callable[..., Any], severity: int, image: Image.Image) -> Tensor:
    """By the package's own functions: its `corrupt` refuses images below 32 px, which they can do."""
    corrupted = np.uint8(function(image.convert("RGB"), severity))
    return _unchanged(Image.fromarray(corrupted).convert(image.mode))


if __name__ == "__main__":
    main()
