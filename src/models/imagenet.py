"""ImageNet classifiers by the names that the ImageNet Testbed gave them: torchvision's networks and first weights.

The weights are looked for under checkpoints/ and in torch.hub's cache, and are downloaded where that is allowed. Resize
and crop are the ImageNet Testbed's; those of the weights themselves are under `torchvision:NAME.IMAGENET1K_V1`.

Source: Taori et al., Measuring Robustness to Natural Distribution Shifts in Image Classification, NeurIPS 2020.
"""

from __future__ import annotations

from functools import partial

from models._published import BATCH_SIZE
from models._torchvision_models import load_torchvision, torchvision_weights
from models.model_base import Model, StandardNormalization, StandardTransform
from registry import registry

WEIGHTS = "IMAGENET1K_V1"
NORMALIZATION = StandardNormalization(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
NETWORKS: tuple[tuple[str, str, int, int], ...] = (  # name, torchvision's name, resize and crop in pixels
    ("alexnet", "alexnet", 256, 224),
    ("densenet121", "densenet121", 256, 224),
    ("densenet161", "densenet161", 256, 224),
    ("densenet169", "densenet169", 256, 224),
    ("densenet201", "densenet201", 256, 224),
    ("googlenet/inceptionv1", "googlenet", 256, 224),
    ("inceptionv3", "inception_v3", 341, 299),
    ("mnasnet0_5", "mnasnet0_5", 256, 224),
    ("mnasnet1_0", "mnasnet1_0", 256, 224),
    ("mobilenet_v2", "mobilenet_v2", 256, 224),
    ("resnet18", "resnet18", 256, 224),
    ("resnet34", "resnet34", 256, 224),
    ("resnet50", "resnet50", 256, 224),
    ("resnet101", "resnet101", 256, 224),
    ("resnet152", "resnet152", 256, 224),
    ("resnext50_32x4d", "resnext50_32x4d", 256, 224),
    ("resnext101_32x8d", "resnext101_32x8d", 256, 224),
    ("shufflenet_v2_x0_5", "shufflenet_v2_x0_5", 256, 224),
    ("shufflenet_v2_x1_0", "shufflenet_v2_x1_0", 256, 224),
    ("squeezenet1_0", "squeezenet1_0", 256, 224),
    ("squeezenet1_1", "squeezenet1_1", 256, 224),
    ("vgg11", "vgg11", 256, 224),
    ("vgg11_bn", "vgg11_bn", 256, 224),
    ("vgg13", "vgg13", 256, 224),
    ("vgg13_bn", "vgg13_bn", 256, 224),
    ("vgg16", "vgg16", 256, 224),
    ("vgg16_bn", "vgg16_bn", 256, 224),
    ("vgg19", "vgg19", 256, 224),
    ("vgg19_bn", "vgg19_bn", 256, 224),
    ("wide_resnet50_2", "wide_resnet50_2", 256, 224),
    ("wide_resnet101_2", "wide_resnet101_2", 256, 224),
)

for name, arch, resize, crop in NETWORKS:
    registry.add_model(
        Model(
            name=name,
            arch=arch,
            transform=StandardTransform(resize, crop),
            normalization=NORMALIZATION,
            classifier_loader=partial(load_torchvision, arch, WEIGHTS),
            weights=torchvision_weights(name, arch, WEIGHTS),
            eval_batch_size=BATCH_SIZE,
            num_outputs=1_000,
            training_data=("imagenet-1k",),
            version="1",
            description=f"torchvision's {arch} with its first ImageNet weights",
        )
    )
