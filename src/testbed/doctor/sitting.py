"""A model before the images of a setting: any view of it asked for answers. Imports torch; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from testbed.class_subset import columns_in_subset
from testbed.data.imagepipeline import DamagedFile, Pipeline
from testbed.data.pipelines import setting_pipeline
from testbed.doctor.finding import Truth
from testbed.doctor.hypotheses import Arrangement, Hypothesis, ImageFacts, View, hypotheses
from testbed.doctor.patient import Logits
from testbed.errors import DataError, DefinitionError
from testbed.metrics.steadiness import Tolerance
from testbed.records import IntArray, Samples
from testbed.worker.classifier import Classifier
from testbed.worker.failures import failure
from testbed.worker.repetition import tolerance

_LOOKED_AT = 8  # images whose size before the model's transform is looked at


@dataclass(eq=False, kw_only=True)
class Sitting:
    """A loaded model and the images that it is examined on.

    Args:
        model: its definition.
        classifier: it, loaded, on its device.
        setting, dataset, samples: where the images come from.
        sample_indices: (n,) positions of the images in the data set.
        truth: the right answers to them.
        batch_size: images per pass.
        device: that the classifier is on.
    """

    model: Model
    classifier: Classifier
    setting: EvalSetting
    dataset: Dataset
    samples: Samples
    sample_indices: NDArray[np.int64]
    truth: Truth
    batch_size: int
    device: str
    _kept: tuple[Any, NDArray[Any]] | None = field(default=None, init=False)  # a transform, and the images it makes
    _classifiers: dict[str, Classifier] = field(default_factory=dict, init=False)  # by their normalization

    @property
    def view(self) -> View:
        """How the model is defined to be shown images."""
        return View(model=self.model)

    @property
    def tolerance(self) -> Tolerance:
        """What may differ between two answers to an image."""
        return tolerance(self.classifier.arithmetic, torch.device(self.device), self.classifier.network)

    def hypotheses(self, view: View) -> list[Hypothesis]:
        """What may be wrong with a view; nothing about rows of numbers, which are no images."""
        images = self._keep(view.model)
        if images.ndim != 4 or self.dataset.domain != "pixels":
            return []
        facts = self._facts(images)
        wanted = []
        for option in hypotheses(view, facts):
            if option.view.model.transform is not view.model.transform and self._is_same(view, option.view):
                continue
            wanted.append(option)
        return wanted

    def logits(self, view: View, positions: IntArray | None = None, *, batch_size: int | None = None) -> Logits:
        """Answers (n, classes) to the images at `positions`, over the setting's classes, batch by batch.

        Raises: TestbedError: the view does not work.
        """
        places = np.arange(len(self.sample_indices)) if positions is None else positions
        images = self._images(view.model, places)
        classifier = self._classifier(view.model)
        try:
            with torch.no_grad():
                pieces = [
                    self._answers(classifier, _arranged(images[start : start + size], view.arrangement))
                    for size in (batch_size or self.batch_size,)
                    for start in range(0, len(images), size)
                ]
        except Exception as error:  # whatever a network raises
            raise DefinitionError(f"Model '{self.model.name}' fails: {failure(error).reason}") from error
        return np.concatenate(pieces)

    def evaluation_mode(self) -> bool:
        """Puts parts of the network that are in training mode into evaluation mode. Returns: whether there were any."""
        training = [module for module in _modules(self.classifier.network) if module.training]
        for module in training:
            module.eval()
        return bool(training)

    def _classifier(self, model: Model) -> Classifier:
        """The same network with the normalization of another definition."""
        if model.normalization == self.model.normalization:
            return self.classifier
        key = repr(model.normalization)
        if key not in self._classifiers:
            arithmetic = self.classifier.arithmetic
            self._classifiers[key] = Classifier(
                model, self.classifier.network, device=self.device, arithmetic=arithmetic
            )
        return self._classifiers[key]

    def _answers(self, classifier: Classifier, images: NDArray[Any]) -> Logits:
        tensor = torch.from_numpy(np.ascontiguousarray(images)).to(self.device)
        pixels = tensor.float().div_(255) if tensor.dtype == torch.uint8 else tensor.float()
        columns = self.setting.columns
        logits = classifier(pixels, self.setting.class_sublist)
        found = columns_in_subset(
            logits.cpu().numpy(),
            columns,
            is_cut=classifier.takes_class_sublist,
            sums_votes=self.model.answers == "votes",
        )
        if found.shape[1] != len(self.truth.class_names):
            raise DefinitionError(
                f"it has {found.shape[1]} outputs, and '{self.setting.name}' {len(self.truth.class_names)} classes"
            )
        return np.asarray(found, np.float32)

    def _images(self, model: Model, positions: IntArray) -> NDArray[Any]:
        """Images (n, C, H, W) as the definition's transform makes them: 8 bits, or floats in [0, 1]."""
        transform, images = self._kept or (self.model.transform, self._keep(self.model))
        return images[positions] if model.transform is transform else self._decoded(model, positions)

    def _keep(self, model: Model) -> NDArray[Any]:
        """All images as a definition has them, decoded once for all changes that leave its transform as it is."""
        if self._kept is None or self._kept[0] is not model.transform:
            self._kept = model.transform, self._decoded(model, np.arange(len(self.sample_indices)))
        return self._kept[1]

    def _decoded(self, model: Model, positions: IntArray) -> NDArray[Any]:
        return _stacked(
            setting_pipeline(self.setting, model, self.dataset, self.samples), self.sample_indices[positions]
        )

    def _facts(self, images: NDArray[Any]) -> ImageFacts:
        pixels = images / np.float32(255) if images.dtype == np.uint8 else images
        sizes = set(self._source_sizes()) if images.dtype == np.uint8 else set()
        return ImageFacts(
            height=images.shape[2],
            width=images.shape[3],
            mean=tuple(float(round(value, 4)) for value in pixels.mean(axis=(0, 2, 3), dtype=np.float64)),
            std=tuple(float(round(value, 4)) for value in pixels.std(axis=(0, 2, 3), dtype=np.float64)),
            may_resize=bool(sizes),
            source_size=next(iter(sizes)) if len(sizes) == 1 else None,
            is_square=all(height == width for height, width in sizes),
        )

    def _source_sizes(self) -> Iterator[tuple[int, int]]:
        """(height, width) of the first images as they are before the model's transform."""
        pipeline = Pipeline(
            samples=self.samples, canonical_size=None, setting_transform=self.setting.transform, model_transform=None
        )
        for index in self.sample_indices[:_LOOKED_AT]:
            image = pipeline.sample(int(index))
            if not isinstance(image, DamagedFile):
                yield image.shape[1], image.shape[2]

    def _is_same(self, view: View, other: View) -> bool:
        """Whether another transform makes the same images."""
        first = np.arange(min(_LOOKED_AT, len(self.sample_indices)))
        try:
            found = self._images(other.model, first)
        except (DataError, DefinitionError):
            return True
        return np.array_equal(found, self._images(view.model, first))


def _stacked(pipeline: Pipeline, sample_indices: NDArray[np.int64]) -> NDArray[Any]:
    images: list[NDArray[Any]] = []
    for index in map(int, sample_indices):
        image = pipeline.sample(index)
        if isinstance(image, DamagedFile):
            raise DataError(image.reason)
        if images:
            pipeline.check_same_shape(index, image, int(sample_indices[0]), images[0])
        images.append(image)
    return np.stack(images)


def _arranged(images: NDArray[Any], arrangement: Arrangement) -> NDArray[Any]:
    if arrangement == "inverted":
        return 255 - images if images.dtype == np.uint8 else 1 - images
    return images.swapaxes(2, 3) if arrangement == "transposed" else images


def _modules(network: Any) -> Iterator[nn.Module]:
    """The modules of a network, and those that an object or function of the user's holds."""
    if isinstance(network, nn.Module):
        yield from network.modules()
        return
    function = getattr(network, "__func__", network)
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    owner = getattr(network, "__self__", None)
    held = [*cells, *vars(network).values()] if hasattr(network, "__dict__") else cells
    for value in (*held, *(vars(owner).values() if hasattr(owner, "__dict__") else ())):
        if isinstance(value, nn.Module):
            yield from value.modules()
