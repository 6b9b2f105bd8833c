"""A model within a unit: runs on batch after batch and collects the logits. Imports torch."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from testbed.data.imagetransforms import transform_on_tensor
from testbed.worker.answer import Answer
from testbed.worker.batch import Batch, Scene
from testbed.worker.classifier import Classifier
from testbed.worker.loaded_models import Loaded
from testbed.worker.repetition import FEWEST, Repetition, tolerance


class ModelRun:
    """A loaded model on its way through a unit."""

    def __init__(self, loaded: Loaded, scene: Scene) -> None:
        self.loaded, self._scene = loaded, scene
        self.classifier = loaded.classifier
        self._what = ("model", loaded.model.name, loaded.model.label_space)
        self._logits: list[Tensor] = []
        self._largest_batch = 0

    def add(self, images: Tensor, batch: Batch, *, others_follow: bool) -> None:
        """Queues the classifier on one perturbed batch, which other models may be given after it.

        Raises: OutOfRoom: the device's memory does not suffice for a single image.
        """
        run = partial(self._run, images, batch, others_follow)
        with self._scene.stopwatch.stage("forward", self.loaded.model.name, is_queued=True):
            if self.classifier.adapts:  # a batch that is tried again in parts would find it changed already
                self._logits.append(run(0, len(images)))
                self._largest_batch = max(self._largest_batch, len(images))
                return
            for size, logits in self._scene.limits.pieces(self._what, len(images), run):
                self._logits.append(logits)
                self._largest_batch = max(self._largest_batch, size)

    def check(self, batch: Batch) -> None:
        """Asks a model that has just been loaded twice about a few images, as they are when clean.

        One that was asked about fewer, as a probe of two samples does, is asked anew. Models that are random or adapt
        by design are believed.

        Raises: UnsteadyError: its answers depend on more than the images.
        """
        model, known = self.loaded.model, self.loaded.repetition
        is_told = model.draws or self.classifier.takes_keys or self.classifier.adapts
        if is_told or len(batch) < FEWEST or (known is not None and known.num_images >= len(batch)):
            return
        scene, network = self._scene, self.classifier.network
        images = batch.clean(slice(None))
        if scene.setting.space == "canonical":
            images = transform_on_tensor(model.transform, images)
        ask = partial(_answers, self.classifier, scene, self._what)
        allowed = tolerance(self.classifier.arithmetic, scene.device, network)
        padded = scene.unit.batch_size if self.classifier.is_compiled else None
        self.loaded.repetition = Repetition(model, ask, images, allowed, padded_size=padded)

    def _run(self, images: Tensor, batch: Batch, others_follow: bool, start: int, stop: int) -> Tensor:
        scene, setting = self._scene, self._scene.setting
        piece = images[start:stop]
        may_write = self.classifier.may_change_images or setting.space == "canonical"
        if may_write and (others_follow or scene.device.type != "cpu"):  # a device may have to run it again, in parts
            piece = piece.clone()
        if setting.space == "canonical":
            piece = transform_on_tensor(self.loaded.model.transform, piece)
        scene.seed_globals("classify", int(batch.indices[start]))
        logits: Tensor = self.classifier(
            piece,
            setting.class_sublist,
            setting.adversarial_attack,
            pads_to=scene.limits.largest(self._what, scene.unit.batch_size) if self.classifier.is_compiled else None,
            keys=batch.keys(slice(start, stop)) if self.classifier.takes_keys else None,
        )
        return logits.detach().to("cpu", non_blocking=True)

    def forget_limit(self) -> None:
        """Tries whole batches again, now that there is more room."""
        self._scene.limits.forget(self._what)

    def answer(self) -> Answer:
        """All that is kept of the model when the unit is done.

        Raises: UnsteadyError: it was asked again, as it is now and then, and its answers have changed.
        """
        if (repetition := self.loaded.repetition) is not None:
            repetition.answered(self._scene.unit.stop - self._scene.unit.start)
            if not self.loaded.is_kept:
                repetition.check()
        return Answer(
            model=self.loaded.model,
            takes_class_sublist=self.classifier.takes_class_sublist,
            weights_sha256=self.loaded.weights_sha256,
            num_bytes=self.classifier.num_bytes,
            logits=tuple(self._logits),
            largest_batch=self._largest_batch,
        )


def _answers(classifier: Classifier, scene: Scene, what: Hashable, images: Tensor) -> NDArray[np.float32]:
    """The logits of images, in batches of the size that the scene's unit has and the device's memory allows."""
    sublist, batch_size, limits = scene.setting.class_sublist, scene.unit.batch_size, scene.limits

    def run(start: int, stop: int) -> Tensor:
        pads_to = limits.largest(what, batch_size) if classifier.is_compiled else None
        logits: Tensor = classifier(images[at : at + batch_size][start:stop].clone(), sublist, pads_to=pads_to)
        return logits

    parts: list[Tensor] = []
    for at in range(0, len(images), batch_size):
        parts += (logits for _, logits in limits.pieces(what, min(batch_size, len(images) - at), run))
    answers: NDArray[np.float32] = torch.cat(parts).detach().cpu().numpy()
    return answers
