"""Each planted fault is named with its fix, and a sound run raises no alarm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.miniatures import Oracle, class_pixels
from torch import Tensor, nn

from eval_settings.dataset_base import Dataset
from eval_settings.digits import load_digits_split
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model, StandardNormalization, StandardTransform
from registry import registry
from testbed.data.arrays import array_samples
from testbed.definitions import load_definitions
from testbed.doctor.examination import Examination, examine
from testbed.doctor.finding import Truth
from testbed.doctor.hypotheses import Hypothesis, View
from testbed.doctor.sitting import Sitting
from testbed.metrics.steadiness import Tolerance
from testbed.records import Samples
from testbed.worker.classifier import load_classifier

Change = Callable[[Any], Any]
NUM_IMAGES = 160
PERMUTED = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]


class Around(nn.Module):
    """A network whose input and output are changed."""

    def __init__(self, network: nn.Module, before: Change, after: Change) -> None:
        super().__init__()
        self.network, self.before, self.after = network, before, after

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.after(self.network(self.before(images)))
        return logits


def _same(values: Any) -> Any:
    return values


def _sitting(model: Model, samples: Samples, dataset: Dataset) -> Sitting:
    torch.set_num_threads(1)
    return Sitting(
        model=model,
        classifier=load_classifier(model, device="cpu", fit_seed=0, fit_samples=None),
        setting=EvalSetting(name=dataset.name, dataset=StandardDataset(name=dataset.name)),
        dataset=dataset,
        samples=samples,
        sample_indices=np.arange(len(samples))[:NUM_IMAGES],
        truth=Truth(samples.targets[:NUM_IMAGES, None], samples.class_names),
        batch_size=100,
        device="cpu",
    )


def _digits(before: Change = _same, after: Change = _same, **fields: Any) -> Sitting:
    """The digits before a trained network: it sees and says something else."""
    load_definitions()
    model = registry.model("digits-resnet", "digits")

    def load(weights: Any) -> nn.Module:
        return Around(model.classifier_loader(weights=weights), before, after)

    changed = replace(model, classifier_loader=load, **fields)
    return _sitting(changed, load_digits_split("test"), registry.dataset("digits"))


def _colours(before: Change = _same, after: Change = _same, **fields: Any) -> Sitting:
    """Images of one colour each before a network that reads its class in it, of a thousand."""
    numbers = np.random.default_rng(0).permutation(1000)[:NUM_IMAGES]
    images = np.stack([class_pixels(int(number), 16) for number in numbers])
    names = tuple(map(str, range(1000)))
    samples = array_samples(images, numbers, dataset="colours", split="test", class_names=names)
    fields = {"transform": None, "eval_batch_size": 100, "label_space": "colours"} | fields
    model = Model(name="oracle", classifier_loader=lambda: Around(Oracle(), before, after), **fields)
    return _sitting(model, samples, Dataset(name="colours", loader=lambda split: samples))


def _trained_on(mean: float, std: float) -> Change:
    """What a network sees of normalized images that was trained on others: it takes the normalization back."""
    return lambda images: images * std + mean


def _in_order(order: list[int]) -> Change:
    return lambda logits: logits[:, torch.tensor(order)]


GREY = StandardNormalization((0.1307,), (0.3081,))
HALF = StandardNormalization((0.5,), (0.25,))
FAULTS: dict[str, tuple[Callable[..., Sitting], dict[str, Any], str, str]] = {
    "missing normalization": (
        _digits, {"before": _trained_on(0.5, 0.5)}, "missing normalization", "mean=(0.5,), std=(0.5,)",
    ),
    "double normalization": (_digits, {"normalization": HALF}, "double normalization", "normalization=None"),
    "mean of 0 to 255": (
        _digits,
        {"before": _trained_on(0.1, 0.3), "normalization": StandardNormalization((25.5,), (76.5,))},
        "pixel range",
        "mean=(0.1,), std=(0.3,)",
    ),
    "0 to 255": (_digits, {"before": lambda images: images / 255}, "pixel range", "std=(0.003922,)"),
    "inverted": (_digits, {"before": lambda images: 1 - images}, "inverted pixels", "255 - x"),
    "transposed": (_digits, {"before": lambda images: images.transpose(2, 3)}, "transposed images", "axes"),
    "crop": (_digits, {"transform": StandardTransform(13, 8)}, "crop or size", "transform=None"),
    "permuted": (_digits, {"after": _in_order(PERMUTED)}, "class order", "[3, 1, 6, 0, 2, 4, 7, 9, 8, 5]"),
    "two exchanged": (
        _digits, {"after": _in_order([0, 1, 2, 4, 3, 5, 6, 7, 8, 9])}, "class order", "[0, 1, 2, 4, 3, 5, 6, 7, 8, 9]",
    ),
    "one too late": (_digits, {"after": lambda logits: logits.roll(1, 1)}, "class order", "[1, 2, 3, 4, 5, 6"),
    "dropout": (_digits, {"before": nn.functional.dropout}, "training mode", ".eval()"),
    "batch statistics": (
        _digits, {"before": lambda images: images - images.mean(0)}, "training mode", ".eval()",
    ),
    "constant": (_digits, {"after": lambda logits: torch.zeros_like(logits)}, "constant answers", "weights"),
    "not finite": (_digits, {"after": lambda logits: logits * torch.nan}, "answers that are no numbers", "weights"),
    "BGR": (_colours, {"before": lambda images: images.flip(1)}, "channel order", "input_space='BGR'"),
    "a thousand sorted as text": (
        _colours, {"after": _in_order(sorted(range(1000), key=str))}, "class order", "1000 outputs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named_with_its_fix(name: str) -> None:
    make, planted, fault, fix = FAULTS[name]
    found = examine(make(**planted))
    assert [finding.fault for finding in found.findings] == [fault]
    finding = found.findings[0]
    assert fix in finding.fix
    if finding.p_value is not None:
        assert finding.before is not None
        assert finding.after is not None
        assert finding.after.value > 95  # type: ignore[operator]
        assert finding.p_value < 1e-2


def test_two_faults_at_once_are_both_named() -> None:
    found = examine(_digits(before=_trained_on(0.5, 0.5), after=_in_order(PERMUTED)))
    assert {finding.fault for finding in found.findings} == {"missing normalization", "class order"}


def test_a_network_in_training_mode_within_a_users_object_is_put_right() -> None:
    """The testbed calls eval() on a network, but not on one that something else holds."""

    class Held:
        def __init__(self) -> None:
            self.network = nn.Sequential(nn.BatchNorm2d(3, momentum=0.0), Oracle())
            self.network[0].eval()(torch.zeros(2, 3, 4, 4))
            self.network.train()

    def classify(images: Tensor, model: Held) -> Tensor:
        logits: Tensor = model.network(images)
        return logits

    held = replace(_colours(), model=replace(_colours().model, classify=classify, classifier_loader=Held))
    sitting = replace(held, classifier=load_classifier(held.model, device="cpu", fit_seed=0, fit_samples=None))
    finding = examine(sitting).findings[0]
    assert (finding.fault, finding.after.value) == ("training mode", 100)  # type: ignore[union-attr]
    assert finding.before.value < 50  # type: ignore[operator, union-attr]


@pytest.mark.parametrize("model", ["digits-resnet", "digits-linear"])
def test_sound_models_raise_no_alarm(model: str) -> None:
    sound = replace(_digits(), model=registry.model(model, "digits"))
    classifier = load_classifier(sound.model, device="cpu", fit_seed=0, fit_samples=None)
    found = examine(replace(sound, classifier=classifier))
    assert not found.findings
    assert found.accuracy.value > 95  # type: ignore[operator]


def test_a_sound_network_behind_its_own_normalization_raises_no_alarm() -> None:
    found = examine(_digits(before=_trained_on(0.1307, 0.3081), normalization=GREY))
    assert not found.findings


NONE_AT_ALL = Tolerance(of_spread=0.0, of_size=0.0)


@dataclass
class Answers:
    """A patient whose answers are given, and that cannot be shown images otherwise."""

    given: np.ndarray
    truth: Truth
    tolerance: Tolerance = NONE_AT_ALL
    view: View = field(default_factory=lambda: View(model=Model(
        name="m", transform=None, classifier_loader=object, eval_batch_size=1)))  # fmt: skip

    def hypotheses(self, view: View) -> list[Hypothesis]:
        return []

    def logits(self, view: View, positions: Any = None, *, batch_size: int | None = None) -> np.ndarray:
        return self.given if positions is None else self.given[positions]

    def evaluation_mode(self) -> bool:
        return False


def _examined(outputs: np.ndarray, targets: np.ndarray, num_classes: int) -> Examination:
    truth = Truth(targets[:, None], tuple(f"class {index:04}" for index in range(num_classes)))
    return examine(Answers(np.eye(num_classes, dtype=np.float32)[outputs], truth))


def test_weak_models_with_lopsided_confusions_raise_hardly_an_alarm() -> None:
    """At most one in a hundred of sound models may be called permuted; these confuse some classes often."""
    chance, alarms = np.random.default_rng(1), 0
    for _ in range(100):
        targets = chance.integers(0, 10, 300)
        confused = (targets + chance.integers(1, 10, 10)[targets]) % 10
        share = chance.uniform(0.2, 0.45, 10)[targets]  # of the answers that are the class it is confused with
        outputs = np.where(chance.random(300) < share, confused, targets)
        alarms += bool(_examined(outputs, targets, 10).findings)
    assert alarms <= 1


def test_a_class_that_is_taken_for_one_without_images_does_not_make_another_order() -> None:
    """As one photo of an Egyptian cat, which a network takes for a tabby, among crops of few other photos."""
    targets = np.repeat(np.arange(6), 50)
    outputs = np.where(targets == 2, 7, targets)
    assert _examined(outputs, targets, 10).findings == ()


def test_images_that_were_chosen_because_models_fail_do_not_make_another_order() -> None:
    """As in ImageNet-A: right nowhere, and a class is taken for the same other one in a sixth of its images."""
    chance = np.random.default_rng(2)
    targets = chance.integers(0, 40, 600)
    usual = (np.arange(40) + 7) % 40
    outputs = np.where(chance.random(600) < 1 / 6, usual[targets], (targets + chance.integers(1, 40, 600)) % 40)
    faults = [finding.fault for finding in _examined(outputs, targets, 40).findings]
    assert faults == ["no better than chance"]
