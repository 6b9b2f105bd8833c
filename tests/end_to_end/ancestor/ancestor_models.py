"""Models in the ways in which model files of the ImageNet Testbed are written. Nothing here knows of this testbed."""

from functools import partial

import numpy as np
import PIL.Image
import torch
import torch.nn as nn
import torchvision.models as torch_models
from mldb.utils import load_model_checkpoint_bytes, load_model_state_dict
from models.model_base import Model, StandardNormalization, StandardTransform
from registry import registry
from sklearn.neighbors import KNeighborsClassifier
from torchvision import transforms


class ReadsColours(nn.Module):
    """The class is in the colour: three digits, 25 grey levels each."""

    def forward(self, x):
        digits = ((x.mean(dim=(2, 3)) * 255 - 12) / 25).round().long()
        index = (digits * torch.tensor([100, 10, 1])).sum(1).clamp(0, 999)
        return nn.functional.one_hot(index, 1000).float()


class FromBGR(ReadsColours):
    def forward(self, x):
        return super().forward((x * 0.25 + 0.5).flip(1))


# A table of parameters and a loop over it; names with a slash; positional transforms and normalizations.
model_params = {
    "oracle/plain": {"arch": "oracle", "mean": [0.0, 0.0, 0.0], "std": [1.0, 1.0, 1.0], "space": "RGB"},
    "oracle/bgr": {"arch": "oracle", "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "space": "BGR"},
}


def gen_classifier_loader(name, d):
    def classifier_loader():
        return ReadsColours() if d["space"] == "RGB" else FromBGR()
    return classifier_loader


for name, d in model_params.items():
    registry.add_model(
        Model(
            name = name,
            arch = d["arch"],
            transform = StandardTransform(40, 32),
            normalization = StandardNormalization(d["mean"], d["std"], d["space"]),
            classifier_loader = gen_classifier_loader(name, d),
            eval_batch_size = 16,
            adversarial_batch_size = d["adversarial_batch_size"] if "adversarial_batch_size" in d else None
        )
    )


# torchvision's own transforms; a network of torchvision; weights by name; arguments bound with partial.
def load_network(name, arch):
    model = torch_models.__dict__[arch]()
    load_model_state_dict(model, name)
    return model


registry.add_model(
    Model(
        name = "small-network",
        transform = transforms.Compose([transforms.Resize(40, interpolation=PIL.Image.BICUBIC),
                                        transforms.CenterCrop(32), transforms.ToTensor()]),
        normalization = StandardNormalization(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        classifier_loader = partial(load_network, "small", "shufflenet_v2_x0_5"),
        eval_batch_size = 8
    )
)


# A classifier of scikit-learn inside a module; its training points come as bytes.
class SklearnCLF(nn.Module):
    def __init__(self, clf):
        super(SklearnCLF, self).__init__()
        self.clf = clf

    def forward(self, x):
        with torch.no_grad():
            return torch.Tensor(self.clf.predict_proba(x.mean(dim=(2, 3)).cpu().numpy()))


def load_neighbours():
    points = np.load(load_model_checkpoint_bytes("colours"))
    return SklearnCLF(KNeighborsClassifier(1).fit(points, np.arange(1000)))


registry.add_model(
    Model(
        name = "colour-neighbours",
        transform = StandardTransform(img_resize_size=32, img_crop_size=32),
        classifier_loader = load_neighbours,
        eval_batch_size = 16,
    )
)


# It counts votes among the classes that it is told to look at, and attacks itself.
class Votes(nn.Module):
    def __init__(self, base, n):
        super().__init__()
        self.base = base
        self.n = n

    def predict_batch(self, x, class_sublist):
        counts = 0
        for _ in range(self.n):
            logits = self.base(x + torch.randn_like(x) * 0.001)
            if class_sublist is not None:
                logits = logits.t()[class_sublist].t()
            counts = counts + nn.functional.one_hot(logits.argmax(1), logits.size(1))
        return counts.float()

    def forward(self, x):
        return self.base(x)


def classify(images, model, class_sublist, adversarial_attack):
    if adversarial_attack:
        images = images + adversarial_attack["eps"]
    return model.predict_batch(images, class_sublist=class_sublist)


registry.add_model(
    Model(
        name = "oracle-votes",
        transform = StandardTransform(40, 32),
        classifier_loader = lambda: Votes(ReadsColours(), 3),
        eval_batch_size = 16,
        classify = classify,
    )
)
