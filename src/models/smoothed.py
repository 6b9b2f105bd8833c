"""Smoothed classifiers: `NAME-smoothed-SIGMA` is any model, asked many times under Gaussian noise, by majority vote.

SIGMA is the noise's standard deviation in [0, 1] pixel units, on the image as the model takes it, which is not clipped.
`resnet50-smoothed-0.25` votes 100 times, as in the ImageNet Testbed, and `resnet50-smoothed-0.25-n1000` 1,000 times:
certified radii end where even a unanimous vote says no more. Where a setting looks at some classes only, the votes are
between these. Base models that were trained on such noise do best. An attack on it follows the mean over eight noisy
copies.

Source: Cohen, Rosenfeld & Kolter, ICML 2019.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from models.model_base import Model
from registry import registry
from testbed.class_subset import class_sublist as plain_sublist
from testbed.class_subset import tensor_in_subset
from testbed.errors import DefinitionError
from testbed.perturbations.levels import noise_level
from testbed.signatures import argument_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from testbed.randomness import SampleKeys

VERSION = "1"  # of the votes; a bump makes stored results of smoothed models stale
USUAL_SAMPLES = 100  # that votes are counted from where a name does not say, as in the ImageNet Testbed
COPIES = 8  # noisy copies of a batch that are asked at once, and all that an attack sees; batches are so much smaller
_NAME = re.compile(r"(?P<base>.+)-smoothed-(?P<sigma>\d+(?:\.\d+)?)(?:-n(?P<num_samples>[1-9]\d*))?")


@dataclass(frozen=True)
class Votes:
    """`classify` of a smoothed model: how often the base model chooses each class under noise.

    Args:
        base: the model that is asked.
        sigma: standard deviation of the noise, in [0, 1] pixel units.
        num_samples: votes for each image.
    """

    base: Model
    sigma: float
    num_samples: int

    @property
    def missing_classes(self) -> tuple[int, ...]:
        """Classes that the base model was not trained on."""
        return getattr(self.base.classify, "missing_classes", ())

    def identity(self) -> dict[str, Any]:
        """What the model's fingerprint holds of it, and the store of the meaning of its votes."""
        return {"sigma": self.sigma, "num_samples": self.num_samples}

    def __call__(self, images: Tensor, model: Any, class_sublist: Sequence[Any] | None, keys: SampleKeys) -> Tensor:
        """Counts [n, classes] float32 that add up to `num_samples`; not finite where a logit is not.

        Images that require gradients are answered with logits that have some.

        Args:
            images: [n, C, H, W] as the base model has normalized them.
            model: what the base model's loader returned.
            class_sublist: classes that are voted between; None for all.
            keys: of the n samples, or of the first of them where others only fill the batch.
        """
        import torch

        if images.requires_grad:
            return self._expected(images, model, class_sublist, keys)
        votes: Any = 0
        for start in range(0, self.num_samples, COPIES):
            numbers = range(start, min(start + COPIES, self.num_samples))
            streams = [f"smoothing/{number}" for number in numbers]
            logits = self._logits(images, streams, keys, model, class_sublist)
            vote = torch.nn.functional.one_hot(logits.argmax(dim=2), logits.shape[2])
            vote = vote + 0 * logits.sum(dim=2, keepdim=True)  # infinite and undefined logits spoil the row
            votes = votes + vote.sum(dim=0)
        counts: Tensor = votes
        return counts

    def _expected(self, images: Tensor, model: Any, class_sublist: Sequence[Any] | None, keys: SampleKeys) -> Tensor:
        """What an attack follows in place of votes, which have no gradients: the log of the mean probability of each
        class, up to a constant, over a few noisy copies that are no voters and stay the same from step to step.

        Source: Salman et al., NeurIPS 2019, equation 6.
        """
        streams = [f"smoothing/attack/{number}" for number in range(COPIES)]
        logits = self._logits(images, streams, keys, model, class_sublist)
        return logits.log_softmax(dim=2).logsumexp(dim=0)

    def _logits(
        self, images: Tensor, streams: Sequence[str], keys: SampleKeys, model: Any, sublist: Sequence[Any] | None
    ) -> Tensor:
        """The base model's logits [streams, n, classes] of the classes that are voted between, under noise."""
        import torch

        noisy = torch.cat([self._noisy(images, stream, keys) for stream in streams])
        takes = argument_names(self.base.classify) if self.base.classify else ()
        is_cut = "class_sublist" in takes
        if self.base.classify is None:
            answers = model(noisy)
        else:
            extras = {"class_sublist": sublist, "adversarial_attack": None}
            given = {name: extras[name] for name in takes if name in extras}
            answers = torch.as_tensor(self.base.classify(images=noisy, model=model, **given))
        logits = tensor_in_subset(answers, plain_sublist(sublist), is_cut=is_cut).float().contiguous()
        return logits.view(len(streams), len(images), -1)

    def _noisy(self, images: Tensor, stream: str, keys: SampleKeys) -> Tensor:
        noisy = images.clone()
        noisy[: len(keys)] += self._scale(images) * keys.normal(stream, tuple(images.shape[1:]), images.device)
        return noisy

    def _scale(self, images: Tensor) -> Tensor:
        """The noise's standard deviation per channel, once the base model has normalized the image."""
        import torch

        if self.base.normalization is None:
            return torch.full((), self.sigma, device=images.device)
        deviations = torch.tensor(self.base.normalization.std, dtype=torch.float32, device=images.device)
        return (self.sigma / deviations).view(-1, 1, 1)


class Smoothed:
    """`M-smoothed-SIGMA` and `M-smoothed-SIGMA-nVOTES`: the model M, smoothed."""

    suits_families = True

    def base_name(self, name: str) -> str | None:
        match = _NAME.fullmatch(name)
        return match["base"] if match else None

    def build(self, base: Model, name: str) -> Model:
        match = _NAME.fullmatch(name)
        draws_itself = base.classify is not None and "keys" in argument_names(base.classify)
        if match is None or base.answers == "votes" or draws_itself:
            raise DefinitionError(
                f"Model '{name}' would smooth '{base.name}', which votes already or draws noise of its own. Smooth a "
                "model that answers logits."
            )
        sigma = noise_level(match["sigma"], where=f"Model '{name}'")
        num_samples = int(match["num_samples"] or USUAL_SAMPLES)
        if match["num_samples"] == str(USUAL_SAMPLES):
            raise DefinitionError(
                f"Model '{name}' votes {USUAL_SAMPLES} times, as usual. Call it {name.rpartition('-n')[0]}."
            )
        return replace(
            base,
            name=name,
            classify=Votes(base, sigma, num_samples),
            eval_batch_size=_shared(base.eval_batch_size),
            adversarial_batch_size=base.adversarial_batch_size and _shared(base.adversarial_batch_size),
            answers="votes",
            is_random=True,
            version=base.version and f"{base.version}, smoothed {VERSION}",
            baseline=base.name,
            description=f"{base.description or base.name}, by {num_samples} votes under noise of deviation {sigma:g}",
        )


def _shared(batch_size: int) -> int:
    """Images of which that many copies at once are as many as the base model takes."""
    return max(1, batch_size // COPIES)


registry.add_model_variants(Smoothed())
