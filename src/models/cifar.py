"""Classifiers for CIFAR-10 and CIFAR-100: the Wide ResNet of Siedel et al. 2022, and ResNets for 32 px.

None of them comes with its parameters: `--weights NAME=FILE`, or a file NAME-LABELSPACE under checkpoints/, as
`train.py` writes it; those of ResNet-50 are also on the hub.
"""

from __future__ import annotations

from functools import partial

from models._checkpoint import load_trained
from models.model_base import Model, StandardNormalization
from registry import registry
from testbed.data.weights import FoundWeights, HubFile

BATCH_SIZE = 250  # a test set of 10,000 images is 40 whole batches
NUM_CLASSES = {"cifar10": 10, "cifar100": 100}
NORMALIZATIONS = {  # that the checkpoints on the hub were trained with
    "cifar10": StandardNormalization(mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010)),
    "cifar100": StandardNormalization(mean=(0.5071, 0.4867, 0.4408), std=(0.2675, 0.2565, 0.2761)),
}
HUB = {
    ("resnet50", "cifar10"): HubFile(
        repository="edadaltocg/resnet50_cifar10", revision="057f6b2e8bfe5330818f3478389e87d7721bbb3a"
    ),
    ("resnet50", "cifar100"): HubFile(
        repository="edadaltocg/resnet50_cifar100", revision="c68206ceb14f46ebd7a88cebeea8e3a58ae765db"
    ),
}
NETWORKS: tuple[tuple[str, str, dict[str, StandardNormalization], str], ...] = (
    ("resnet18", "models._resnet_32px:resnet18", NORMALIZATIONS, "ResNet-18 for 32 px"),
    ("resnet34", "models._resnet_32px:resnet34", NORMALIZATIONS, "ResNet-34 for 32 px"),
    ("resnet50", "models._resnet_32px:resnet50", NORMALIZATIONS, "ResNet-50 for 32 px"),
    ("wrn-28-10", "models._wide_resnet:wrn_28_10", {}, "Wide ResNet-28-10 of Siedel et al. 2022, no normalization"),
)

for label_space, num_classes in NUM_CLASSES.items():
    for name, arch, normalizations, description in NETWORKS:
        registry.add_model(
            Model(
                name=name,
                arch=arch,
                transform=None,
                normalization=normalizations.get(label_space),
                classifier_loader=partial(load_trained, arch, num_classes),
                weights=FoundWeights(model=name, label_space=label_space, hub=HUB.get((name, label_space))),
                eval_batch_size=BATCH_SIZE,
                label_space=label_space,
                training_data=(label_space,),
                version="1",
                description=description,
            )
        )
