"""Settings in the ways in which setting files of the ImageNet Testbed are written. Nothing here knows of this one."""

import PIL.ImageOps
import torch
from eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk
from registry import registry

class_sublist = [0, 6, 11, 281, 285]
PER_CLASS = 2

registry.add_eval_setting(
    EvalSetting(
        name = "val",
        dataset = StandardDataset(name="val"),
        size = 14,
    )
)

# The classes of a subset, by the positions that they have in the whole of val.
present = [0, 6, 11, 281, 285, 386, 999]
idx_subsample_list = [range(x * PER_CLASS, (x + 1) * PER_CLASS) for x in map(present.index, class_sublist)]
idx_subsample_list = sorted([item for sublist in idx_subsample_list for item in sublist])


def accuracy_topk_subselected(logits, targets):
    targets = torch.tensor([class_sublist.index(x) for x in targets])
    return accuracy_topk(logits, targets)


registry.add_eval_setting(
    EvalSetting(
        name = "val-on-my-classes",
        dataset = StandardDataset(name="val"),
        size = 10,
        class_sublist = class_sublist,
        idx_subsample_list = idx_subsample_list,
        metrics_fn = accuracy_topk_subselected,
    )
)


# A set that has these classes alone; a border cut off the photos; a metric that looks at the files' names.
def crop_image(image, border=2):
    return PIL.ImageOps.crop(image, border=border)


def accuracy_by_folder(logits, targets, image_paths, py_model):
    folders = sorted({path.split("/")[0] for path in image_paths})
    right = [folders[pred] == path.split("/")[0] for pred, path in zip(logits.argmax(dim=1), image_paths)]
    top1 = accuracy_topk(logits, targets, topk=(1,))["top1"]
    return {"top1": top1, "by_folder": 100 * sum(right) / len(right), "name_length": len(py_model.name), "merge_op": "max"}


registry.add_eval_setting(
    EvalSetting(
        name = "my-classes",
        dataset = StandardDataset(path="my-classes"),
        size = 10,
        class_sublist = class_sublist,
        metrics_fn = accuracy_by_folder,
        transform = crop_image,
    )
)


# One image at a time, and a batch with the model that is attacked.
def swap_channels(image):
    return image.flip(0).flip(0)


def attack_with(d):
    def attack(images, model):
        images = images.clone().requires_grad_()
        (gradient,) = torch.autograd.grad((model(images) + images.sum()).sum(), images)
        return (images - d["eps"] * gradient.sign()).detach()
    return attack


registry.add_eval_setting(
    EvalSetting(name = "greyscale-like", dataset = StandardDataset(name="val"), size = 14,
                perturbation_fn_cpu = swap_channels)
)
d = {"eps": 0.01, "norm": 2, "num_steps": 1}
registry.add_eval_setting(
    EvalSetting(
        name = "my-attack",
        dataset = StandardDataset(name="val"),
        size = 14,
        perturbation_fn_gpu = attack_with(d),
        adversarial_attack = d,
    )
)
registry.add_eval_setting(
    EvalSetting(
        name = "my-attack_10percent",
        dataset = StandardDataset(name="val"),
        size = 4,
        perturbation_fn_gpu = attack_with(d),
        adversarial_attack = d,
        idx_subsample_list = [0, 3, 3, 12],
        parent_eval_setting = "my-attack",
    )
)
