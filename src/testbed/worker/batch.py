"""One batch of a unit: its images as the bank has them, and what the setting does to them. Imports torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from eval_settings.eval_setting_base import EvalSetting
from testbed.engine.unit import Task, Unit
from testbed.errors import DefinitionError
from testbed.randomness import SampleKeys, seed_globals, stream_key
from testbed.signatures import argument_names
from testbed.worker.asked import as_asked, asked_targets
from testbed.worker.batch_limits import BatchLimits
from testbed.worker.classifier import Classifier
from testbed.worker.device_bank import DeviceBanks, uploaded
from testbed.worker.stopwatch import Stopwatch

CPU = torch.device("cpu")


class Scene:
    """What all batches of a unit share.

    Args:
        task, setting, unit: what is evaluated.
        device: that networks run on.
        banks, limits: of that device.
        stopwatch: of the unit.
        is_keyed_on_cpu: whether perturbations that draw from `keys` are computed on the CPU, since that is cheaper.
    """

    def __init__(
        self,
        task: Task,
        setting: EvalSetting,
        unit: Unit,
        *,
        device: torch.device,
        banks: DeviceBanks,
        limits: BatchLimits,
        stopwatch: Stopwatch,
        is_keyed_on_cpu: bool,
    ) -> None:
        self.task, self.setting, self.unit = task, setting, unit
        self.device, self.banks, self.limits, self.stopwatch = device, banks, limits, stopwatch
        function = setting.perturbation_fn_gpu
        self.arguments = argument_names(function) if function else ()
        self.asks_model = "model" in self.arguments
        is_on_cpu = is_keyed_on_cpu and "keys" in self.arguments and not self.asks_model
        self.perturbs_on = CPU if is_on_cpu else device
        self.reads_to = CPU if is_on_cpu or setting.perturbation_fn_cpu is not None else device
        self.largest_pixel = torch.full((), 255.0, device=self.reads_to)  # CUDA divides exactly by a tensor only

    def seed_globals(self, stream: str, index: int) -> None:
        """Seeds the global generators, for users' code that draws from them, by a sample: not by its batch."""
        stream = f"{stream}/{index}/{self.unit.draw}"
        seed_globals(stream_key(self.unit.noise_seed, purpose="eval", dataset=self.task.dataset, stream=stream))


class Batch:
    """Samples `start` to `stop` of a unit's setting."""

    def __init__(self, scene: Scene, start: int, stop: int) -> None:
        self.scene = scene
        self.indices = scene.task.sample_indices[start:stop]
        self._targets = scene.task.targets[start:stop]
        self._pixels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def depends_on_model(self, classifier: Classifier) -> bool:
        """Whether the perturbed images are for one model alone."""
        attacks_itself = self.scene.setting.adversarial_attack is not None and classifier.attacks_itself
        return self.scene.asks_model or attacks_itself

    def perturbed(self, classifier: Classifier | None, name: str = "") -> Tensor:
        """The images [n, C, H, W] float32 on the device, after the setting's perturbations.

        Args:
            classifier: that they are for; None where they are for all.
            name: of its model.
        """
        what = ("perturbation", self.scene.setting.name, name)
        pieces = self.scene.limits.pieces(
            what, len(self), lambda start, stop: self._perturbed(classifier, slice(start, stop))
        )
        images = [piece for _, piece in pieces]
        return images[0] if len(images) == 1 else torch.cat(images)

    def clean(self, piece: slice) -> Tensor:
        """The images of a piece [n, C, H, W] float32 on the device, before any perturbation."""
        return uploaded(self._clean(piece, is_for_all=False), self.scene.device)

    def _perturbed(self, classifier: Classifier | None, piece: slice) -> Tensor:
        scene, indices = self.scene, self.indices[piece]
        with scene.stopwatch.stage("read"):
            images = self._clean(piece, is_for_all=classifier is None)
        if scene.setting.perturbation_fn_cpu is not None:
            with scene.stopwatch.stage("perturb"):
                pairs = zip(indices, images, strict=True)
                images = torch.stack([self._perturbed_alone(int(index), image) for index, image in pairs])
        is_own_attack = classifier is not None and scene.setting.adversarial_attack and classifier.attacks_itself
        if scene.setting.perturbation_fn_gpu is None or is_own_attack:
            return uploaded(images, scene.device)
        images = uploaded(images, scene.perturbs_on)
        with scene.stopwatch.stage("perturb", is_queued=scene.perturbs_on.type != "cpu"):
            scene.seed_globals("perturbation_fn_gpu", int(indices[0]))
            perturbed = scene.setting.perturbation_fn_gpu(images=images, **self._extras(classifier, piece))
            perturbed = _checked_images(perturbed, "perturbation_fn_gpu", scene.setting).detach()
        return uploaded(perturbed, scene.device)

    def _clean(self, piece: slice, *, is_for_all: bool) -> Tensor:
        """Images in [0, 1] that may be written into, on whatever device they are needed first."""
        scene = self.scene
        if self._pixels is None:
            self._pixels = scene.banks.read(scene.task.bank, self.indices, device=scene.reads_to)
        pixels = self._pixels[piece]
        if pixels.dtype == torch.uint8:
            return pixels.float().div_(scene.largest_pixel)
        if not is_for_all or scene.device.type != "cpu":  # they are needed again: for another model, or a smaller batch
            return pixels.clone()
        self._pixels = None
        return pixels.float()

    def _extras(self, classifier: Classifier | None, piece: slice) -> dict[str, Any]:
        """What the setting's function asks for beside the images."""
        scene = self.scene
        extras: dict[str, Any] = {}
        if "model" in scene.arguments:
            extras["model"] = classifier and as_asked(classifier, scene.setting, self.keys(piece))
        if "targets" in scene.arguments:
            targets = self._targets[piece]
            if classifier is not None:
                targets = asked_targets(targets, classifier, scene.setting)
            extras["targets"] = uploaded(torch.from_numpy(targets).long(), scene.perturbs_on)
        if "keys" in scene.arguments:
            extras["keys"] = self.keys(piece)
        return extras

    def keys(self, piece: slice) -> SampleKeys:
        """What noise of these samples of the batch is drawn from."""
        scene = self.scene
        return SampleKeys(
            seed=scene.unit.noise_seed,
            purpose="eval",
            dataset=scene.task.dataset,
            sample_indices=self.indices[piece],
            draw=scene.unit.draw,
        )

    def _perturbed_alone(self, index: int, image: Tensor) -> Tensor:
        self.scene.seed_globals("perturbation_fn_cpu", index)
        perturbed = self.scene.setting.perturbation_fn_cpu(image=image)  # type: ignore[misc]
        return _checked_images(perturbed, "perturbation_fn_cpu", self.scene.setting)


def _checked_images(images: Any, function: str, setting: EvalSetting) -> Tensor:
    if not isinstance(images, Tensor):
        raise DefinitionError(
            f"{function} of '{setting.name}' returned a {type(images).__name__}. It must return the images."
        )
    return images
