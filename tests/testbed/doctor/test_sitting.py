"""Images are made once for all changes that leave the transform as it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from PIL.Image import Image
from tests.miniatures import Oracle, class_pixels
from torch import Tensor
from torchvision.transforms import functional

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model, StandardNormalization
from testbed.data.arrays import array_samples
from testbed.doctor.finding import Truth
from testbed.doctor.sitting import Sitting
from testbed.worker.classifier import load_classifier

NUM_IMAGES = 20
SAMPLES = array_samples(
    np.stack([class_pixels(number, 16) for number in range(NUM_IMAGES)]),
    np.arange(NUM_IMAGES),
    dataset="colours",
    split="test",
    class_names=tuple(map(str, range(1000))),
)


@dataclass(frozen=True)
class Counted:
    """A transform that changes nothing, and counts its images by name."""

    name: str
    counts: Counter[str] = field(compare=False)

    def to_pixels(self, image: Image) -> Image:
        self.counts[self.name] += 1
        return image

    def __call__(self, image: Image) -> Tensor:
        tensor: Tensor = functional.to_tensor(self.to_pixels(image))
        return tensor


def _sitting(model: Model) -> Sitting:
    dataset = Dataset(name="colours", loader=lambda split: SAMPLES)
    return Sitting(
        model=model,
        classifier=load_classifier(model, device="cpu", fit_seed=0, fit_samples=None),
        setting=EvalSetting(name="colours", dataset=StandardDataset(name="colours")),
        dataset=dataset,
        samples=SAMPLES,
        sample_indices=np.arange(NUM_IMAGES),
        truth=Truth(SAMPLES.targets[:, None], SAMPLES.class_names),
        batch_size=8,
        device="cpu",
    )


def test_images_are_made_once_for_all_changes_that_leave_the_transform() -> None:
    counts: Counter[str] = Counter()
    own, other = (Counted(name, counts) for name in ("own", "other"))
    model = Model(name="oracle", classifier_loader=Oracle, transform=own, eval_batch_size=8, label_space="colours")
    sitting = _sitting(model)
    plain = sitting.logits(sitting.view)
    for mean in (0.1, 0.2):
        changed = replace(model, normalization=StandardNormalization((mean,) * 3, (1.0,) * 3))
        assert not np.array_equal(sitting.logits(replace(sitting.view, model=changed)), plain)
    assert counts == {"own": NUM_IMAGES}

    found = replace(sitting.view, model=replace(model, transform=other))  # a change that was kept
    options = sitting.hypotheses(found)
    counts.clear()
    for option in options:
        if option.view.model.transform is other:
            sitting.logits(option.view)
    assert not counts
