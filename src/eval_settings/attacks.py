"""Settings under attacks that see the model and its gradients: FGSM and PGD, for every data set of images.

`X-fgsm-linf-EPS`, `X-pgd-linf-EPS` and `X-pgd-l2-EPS` attack the true class and stay in [0, 1]; EPS is in [0, 1] pixel
units, or a number of grey levels as in `cifar10-pgd-linf-8/255`. PGD starts at random and takes 40 steps of 2.5 EPS /
40, the length that Madry et al. 2018 advise. Images are attacked where they would be corrupted: in the data set's
canonical space, through the model's own resize, but ImageNet's at the size that the model takes.

`pgd.linf.eps0.5`, `pgd.linf.eps2`, `pgd.l2.eps0.1` and `pgd.l2.eps0.5` are those of the ImageNet Testbed (Taori et al.
2020): on its validation images, against the class that the model itself predicts when clean, from a random start, 100
steps, not clipped to [0, 1]. An L-infinity radius is in grey levels; an L2 radius is that of images 224 px high.

The result is the last image of the attack. It shows how much accuracy an attack takes, and no bound on what a stronger
one would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eval_settings._subsets import tenth
from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import registry
from testbed.errors import DefinitionError
from testbed.perturbations.attacks import AttackNorm, Fgsm, Pgd
from testbed.perturbations.levels import noise_level
from testbed.records import ADVERSARIAL

VERSION = "1"  # of the definitions below; a bump makes stored results of these settings stale
NUM_STEPS, STEPS_THROUGH = 40, 2.5  # together the steps are 2.5 radii long
GREY_LEVELS = 255
ORDERS: dict[AttackNorm, float] = {"linf": math.inf, "l2": 2}  # of the norms, as numpy has them
# method, norm; radii that listings show: any other can be asked for as well
ATTACKS: tuple[tuple[str, AttackNorm, tuple[str, ...]], ...] = (
    ("fgsm", "linf", ("8/255",)),
    ("pgd", "linf", ("2/255", "8/255")),
    ("pgd", "l2", ("0.5",)),
)
# name; norm; radius; step; what the radius is, for people
TESTBED_ATTACKS: tuple[tuple[str, AttackNorm, float, float, str], ...] = (
    ("pgd.linf.eps0.5", "linf", 0.5 / 255, 0.015 / 255, "0.5 grey levels"),
    ("pgd.linf.eps2", "linf", 2 / 255, 0.06 / 255, "2 grey levels"),
    ("pgd.l2.eps0.1", "l2", 0.1, 0.01, "0.1 at 224 px"),
    ("pgd.l2.eps0.5", "l2", 0.5, 0.05, "0.5 at 224 px"),
)
TESTBED_STEPS, TESTBED_SIDE = 100, 224


@dataclass(frozen=True)
class AttackFamily:
    """`X-METHOD-NORM-EPS`: a data set of images under an attack of any radius.

    Args:
        method: 'fgsm' or 'pgd'.
        norm: of the ball.
        listed: radii that listings show.
    """

    method: str
    norm: AttackNorm
    listed: tuple[str, ...]

    def names(self, dataset: Dataset) -> Iterator[str]:
        if dataset.domain == "pixels":
            yield from (f"{dataset.name}-{self.method}-{self.norm}-{radius}" for radius in self.listed)

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        prefix = f"{dataset.name}-{self.method}-{self.norm}-"
        if not name.startswith(prefix) or "@" in name:
            return None
        if dataset.domain != "pixels":
            raise DefinitionError(
                f"EvalSetting '{name}' attacks images, but data set '{dataset.name}' has numbers without bounds. Use "
                f"{dataset.name}-noise-{self.norm}-EPS."
            )
        radius = name.removeprefix(prefix)
        epsilon = _epsilon(radius, where=f"EvalSetting '{name}'")
        if self.norm == "linf" and epsilon > 1:
            raise DefinitionError(
                f"EvalSetting '{name}' has the radius {radius}, but pixels lie in [0, 1]. Grey levels are written as "
                f"in {prefix}8/255."
            )
        attack = (
            Fgsm(epsilon=epsilon)
            if self.method == "fgsm"
            else Pgd(norm=self.norm, epsilon=epsilon, step_size=STEPS_THROUGH * epsilon / NUM_STEPS,
                     num_steps=NUM_STEPS)
        )  # fmt: skip
        return EvalSetting(
            name=name,
            dataset=StandardDataset(name=dataset.name),
            perturbation_fn_gpu=attack,
            adversarial_attack=_parameters(attack),
            shift=_shift(attack, clean=dataset.corruption_parent or dataset.name),
            space=dataset.corruption_space,
            version=VERSION,
            description=f"{dataset.name} under {self.method.upper()} in {self.norm} of radius {radius}",
        )


def _epsilon(radius: str, *, where: str) -> float:
    """The radius that the end of a name spells, in [0, 1] pixel units. Raises: DefinitionError: it spells none."""
    levels, slash, whole = radius.partition("/")
    if slash and whole == str(GREY_LEVELS):
        return noise_level(levels, where=where) / GREY_LEVELS
    return noise_level(radius, where=where)


def _parameters(attack: Fgsm | Pgd) -> dict[str, Any]:
    """The attack for models that attack themselves, by the names that those of the ImageNet Testbed look for."""
    if isinstance(attack, Fgsm):
        steps = {"norm": ORDERS["linf"], "num_steps": 1, "step_size": attack.epsilon}
    else:
        steps = {"norm": ORDERS[attack.norm], "num_steps": attack.num_steps, "step_size": attack.step_size}
    return {"attack_style": type(attack).__name__.lower(), "eps": attack.epsilon, "targeted": False, **steps}


def _shift(attack: Fgsm | Pgd, *, clean: str) -> Shift:
    norm = attack.norm if isinstance(attack, Pgd) else "linf"
    name = type(attack).__name__.lower()
    return Shift(family=f"{ADVERSARIAL}{norm}", name=name, norm=norm, epsilon=attack.epsilon, clean_eval_setting=clean)


def _testbed_setting(name: str, attack: Pgd, radius: str) -> EvalSetting:
    return EvalSetting(
        name=name,
        dataset=StandardDataset(name="imagenet"),
        size=50_000,
        perturbation_fn_gpu=attack,
        adversarial_attack=_parameters(attack),
        shift=_shift(attack, clean="val"),
        version=VERSION,
        description=f"ImageNet's validation photos under PGD in {attack.norm} of radius {radius}",
    )


for row in ATTACKS:
    registry.add_eval_setting_family(AttackFamily(*row))
for name, norm, epsilon, step_size, radius in TESTBED_ATTACKS:
    attack = Pgd(
        norm=norm,
        epsilon=epsilon,
        step_size=step_size,
        num_steps=TESTBED_STEPS,
        labels="predicted",
        clips=False,
        reference_side=TESTBED_SIDE if norm == "l2" else None,
    )
    setting = _testbed_setting(name, attack, radius)
    registry.add_eval_setting(setting)
    registry.add_eval_setting(tenth(setting))
