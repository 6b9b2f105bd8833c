"""Generated photographs in a folder `photos` under the data root, and four MobileNetV3-Small with random weights.

As with ImageNet, corruptions are simulated at 224 px, after a model's resize and crop.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from eval_settings.dataset_base import Dataset
from models.model_base import Model, StandardNormalization, StandardTransform
from registry import registry

NUM_CLASSES = 20


def mobile_network(weights_seed: int) -> Any:
    """The network with the weights of a seed, and with batch norms that have seen random images, so that it tells
    images apart."""
    import torch
    from torchvision.models import mobilenet_v3_small

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(weights_seed)
        network = mobilenet_v3_small(num_classes=NUM_CLASSES)
        network(torch.randn(16, 3, 224, 224))
    return network.eval()


registry.add_dataset(
    Dataset(name="photos", path=Path("photos"), label_space="photos", canonical_size=224, corruption_space="model")
)
for seed in range(4):
    registry.add_model(
        Model(
            name=f"mobile-{seed}",
            transform=StandardTransform(img_resize_size=256, img_crop_size=224),
            normalization=StandardNormalization(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
            classifier_loader=partial(mobile_network, seed),
            eval_batch_size=64,
            label_space="photos",
            version="1",
        )
    )
