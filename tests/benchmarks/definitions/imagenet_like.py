"""Generated photographs and noise under the data root, and networks with random weights for them.

`photos` has 1,000 classes, as ImageNet has; `plain-00` to `plain-19` are twenty settings of it that change nothing, so
that there is much to evaluate of one decoded set.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model, StandardNormalization, StandardTransform
from registry import registry

NUM_SETTINGS = 20
MEMORY_LIMIT = 3 << 30  # bytes that `hungry` leaves its process on a CUDA device
LARGEST_ON_CPU = 8  # images, where `hungry` only pretends


def resnet(name: str) -> Any:
    """A torchvision network with 1,000 outputs."""
    import torchvision

    return getattr(torchvision.models, name)(weights=None)


def patches() -> Any:
    """A network of hardly any cost: its time is that of reading images."""
    from torch import nn

    return nn.Sequential(nn.Conv2d(3, 16, 32, stride=32), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1000))


def wide_resnet() -> Any:
    """WRN-28-10."""
    from models._wide_resnet import wrn_28_10

    return wrn_28_10()


def hungry() -> Any:
    """A network that takes 7.9 MB for every image, and leaves its process too little for a thousand of them."""
    import torch
    from torch import Tensor, nn

    class Hungry(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 10)

        def forward(self, images: Tensor) -> Tensor:
            if not images.is_cuda and len(images) > LARGEST_ON_CPU:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more than there is.")
            copies = images.repeat(1, 640, 1, 1) if images.is_cuda else images
            features = copies.mean((2, 3)).view(len(images), -1, 3).mean(1)
            logits: Tensor = self.linear(features)
            return logits

    if torch.cuda.is_available():
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, MEMORY_LIMIT / whole))
    return Hungry()


def _add(name: str, loader: Any, *, batch_size: int, label_space: str, is_large: bool = True) -> None:
    registry.add_model(
        Model(
            name=name,
            transform=StandardTransform(img_resize_size=256, img_crop_size=224) if is_large else None,
            normalization=StandardNormalization(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
            classifier_loader=loader,
            eval_batch_size=batch_size,
            label_space=label_space,
            version="1",
        )
    )


registry.add_dataset(
    Dataset(name="photos", path=Path("photos"), label_space="photos", canonical_size=224, corruption_space="model")
)
registry.add_dataset(Dataset(name="noise32", path=Path("noise32.npz"), label_space="noise32"))
for number in range(NUM_SETTINGS):
    registry.add_eval_setting(
        EvalSetting(name=f"plain-{number:02d}", dataset=StandardDataset(name="photos"), version="1")
    )
for name in ("resnet18", "resnet50"):
    _add(f"photos-{name}", partial(resnet, name), batch_size=256, label_space="photos")
_add("photos-patches", patches, batch_size=256, label_space="photos")
_add("noise32-wrn", wide_resnet, batch_size=256, label_space="noise32", is_large=False)
_add("noise32-hungry", hungry, batch_size=1024, label_space="noise32", is_large=False)
