"""A model within a unit: runs on batch after batch and collects the logits. Imports torch."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from testbed.data.imagetransforms import transform_on_tensor
from testbed.worker.answer import Answer
from testbed.worker.batch import Batch, Scene
from testbed.worker.loaded_models import Loaded


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
            for size, logits in self._scene.limits.pieces(self._what, len(images), run):
                self._logits.append(logits)
                self._largest_batch = max(self._largest_batch, size)

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
        """All that is kept of the model when the unit is done."""
        return Answer(
            model=self.loaded.model,
            takes_class_sublist=self.classifier.takes_class_sublist,
            weights_sha256=self.loaded.weights_sha256,
            num_bytes=self.classifier.num_bytes,
            logits=tuple(self._logits),
            largest_batch=self._largest_batch,
        )
