"""Classifiers that are fitted in every run, on any data set with a split to fit them on; and, by name, the same
fitted on noisy copies: `random-forest-noise-linf-0.01`, `1-nn-mscr-linf`, each also `-shared`.

Source: Siedel et al. 2022, section 4 (random forest of 100 trees, 1-NN; ten noisy copies of every training point).
"""

from __future__ import annotations

import re
from dataclasses import replace

from models._estimators import classify, linear, nearest_neighbour, random_forest
from models.model_base import FitNoise, Model
from registry import ANY_LABEL_SPACE, registry
from testbed.errors import DefinitionError
from testbed.perturbations.levels import noise_level

BATCH_SIZE = 1024  # a forest's time is per call: its trees are asked one by one
_NAME = re.compile(
    r"(?P<base>.+)-(?:mscr-(?P<separation_norm>linf|l2|l1)|noise-(?P<norm>linf|l2|l1)-(?P<level>.+?))"
    r"(?P<shared>-shared)?"
)


class NoiseTrained:
    """`M-mscr-NORM` and `M-noise-NORM-EPS`, each also `-shared`: the model M fitted on noisy copies of its samples."""

    suits_families = False

    def base_name(self, name: str) -> str | None:
        match = _NAME.fullmatch(name)
        return match["base"] if match else None

    def build(self, base: Model, name: str) -> Model:
        match = _NAME.fullmatch(name)
        if match is None or not base.is_fitted:
            raise DefinitionError(
                f"Model '{name}' would be '{base.name}' fitted on noisy samples, but that is not fitted in a run. "
                "Train a network on noise with train.py --noise."
            )
        level = match["level"]
        noise = FitNoise(
            norm=match["separation_norm"] or match["norm"],  # type: ignore[arg-type]
            epsilon=None if level is None else noise_level(level, where=f"Model '{name}'"),
            is_shared=match["shared"] is not None,
        )
        return replace(
            base, name=name, fit_noise=noise, baseline=base.name, description=f"{base.description}, on noisy copies"
        )


MODELS = (
    ("random-forest", random_forest, "random forest, 100 trees, fitted in every run"),
    ("1-nn", nearest_neighbour, "nearest neighbour in L2, fitted in every run"),
    ("linear-pixels", linear, "ridge regression of the classes on the pixels, fitted in every run"),
)
for name, loader, description in MODELS:
    registry.add_model(
        Model(
            name=name,
            transform=None,
            classifier_loader=loader,
            eval_batch_size=BATCH_SIZE,
            classify=classify,
            label_space=ANY_LABEL_SPACE,
            is_differentiable=False,
            version="1",
            description=description,
        )
    )
registry.add_model_variants(NoiseTrained())
