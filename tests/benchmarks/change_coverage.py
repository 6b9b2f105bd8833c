"""Prints how often 95 % intervals of changes, of two models and over runs cover the truth, by simulation:
python tests/benchmarks/change_coverage.py

Three fitted runs: --repeats 2000 --only ", 3 models" "3 fits" "of 3 runs" --output results/benchmarks/few_runs
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from interval_coverage import Array, Rates, Scenario, always, borderline, draws, mixed, print_table

from testbed.metrics.comparison import Outcomes, change_interval
from testbed.metrics.corruption import Grid
from testbed.metrics.factors import Factors, proportion
from testbed.metrics.intervals import Interval
from testbed.metrics.paired import contrast_interval
from testbed.metrics.published import mscr_over_runs

LARGE = 2_000_000  # samples of a population that a truth is computed from


def _interval(name: str, outcomes: Outcomes) -> Interval:
    """The interval of a metric; of the experiments where it is undefined, none."""
    whole = outcomes.parts(name)[1]
    is_defined = whole.sum((-2, -1)) > 0
    if not is_defined.all():
        outcomes = replace(outcomes, clean=outcomes.clean[is_defined], shifted=outcomes.shifted[is_defined])
    return change_interval(name, outcomes)[1]


def change(
    name: str, kind: Callable[[float], Rates], loss: float, *, recovery: float, clean: float = 0.98, n: int = 360
) -> Scenario:
    """A metric of one model; images right when clean flip at rates of a kind, wrong ones recover like borderline."""
    k = 10

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        right = (rng.random((repeats, 1, n)) < clean).astype(np.float64)
        chance = np.where(right == 1, 1 - kind(loss)(rng, right.shape), borderline(recovery)(rng, right.shape))
        return _interval(name, Outcomes(clean=right, shifted=draws(rng, chance, k), factors=Factors(num_draws=k)))

    truth = -clean * loss + (1 - clean) * recovery
    words = f"{name}, clean {clean:.0%}, loss {loss:.1%} ({kind.__name__}), recovery {recovery:.0%}, n {n}, k {k}"
    return Scenario(words, truth if name == "accuracy_change" else truth / clean, simulate)


def under_corruptions(loss: float, *, alike: float, num_cells: int = 15, clean: float = 0.95, n: int = 360) -> Scenario:
    """Loss over all cells (corruptions at severities), 100 less A_rel_c: an image hard in one cell is so in others.

    Args: alike: correlation of what decides two cells of an image; 1 for the same answer in all.
    """
    hardest = NormalDist().inv_cdf(loss)

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        right = (rng.random((repeats, 1, n)) < clean).astype(np.float64)
        shared, cells = np.sqrt(alike) * rng.normal(size=(repeats, 1, n)), {}
        for cell in range(num_cells):
            cells[f"corruption {cell}", 1] = shared + np.sqrt(1 - alike) * rng.normal(size=right.shape) > hardest
        grid = Grid(clean=right, cells=cells, num_draws=dict.fromkeys(cells, 1.0), factors=Factors())
        return _interval("loss", grid.outcomes(cells))

    return Scenario(f"loss over {num_cells} cells, {loss:.1%}, alike {alike:g}, n {n}", loss, simulate)


def relative_error(*, clean: float, loss: float, recovery: float, alike: float, n: int) -> Scenario:
    """Mean error over 25 cells less the clean error, as a relative mCE has it. Args: alike: as `under_corruptions`."""
    hardest, easiest = (NormalDist().inv_cdf(max(rate, 1e-9)) for rate in (loss, recovery))

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        right = (rng.random((repeats, 1, n)) < clean).astype(np.float64)
        shared, cells = np.sqrt(alike) * rng.normal(size=right.shape), {}
        for cell in range(25):
            luck = shared + np.sqrt(1 - alike) * rng.normal(size=right.shape)
            cells[f"corruption {cell}", 1] = np.where(right == 1, luck > hardest, luck < easiest)
        grid = Grid(clean=right, cells=cells, num_draws=dict.fromkeys(cells, 1.0), factors=Factors())
        found = _interval("accuracy_change", grid.weighted(dict.fromkeys(cells, 1 / 25)))
        return Interval(-found.high, -found.low, found.method)

    words = f"relative error over 25 cells, clean {clean:.0%}, loss {loss:.0%}, recovery {recovery:.0%}"
    return Scenario(f"{words}, alike {alike:g}, n {n}", clean * loss - (1 - clean) * recovery, simulate)


def in_clusters(name: str, loss: float, *, clusters: int, size: int) -> Scenario:
    """Images of patients: those of some are harder, easier to lose and easier to recover than others. Sizes differ."""
    sizes = np.maximum(1, size + (np.arange(clusters) % 5 - 2) * size // 4)
    labels = np.repeat(np.arange(clusters), sizes)
    k, clean, recovery = 10, 0.9, 0.2

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        wrong, lost, gained = (
            rng.beta(2 * rate, 2 * (1 - rate), (repeats, clusters))[:, None, labels]
            for rate in (1 - clean, loss, recovery)
        )
        right = (rng.random(wrong.shape) >= wrong).astype(np.float64)
        shifted = draws(rng, np.where(right == 1, 1 - lost, gained), k)
        factors = Factors(num_draws=k, clusters=labels)
        return _interval(name, Outcomes(clean=right, shifted=shifted, factors=factors))

    netted = -loss + recovery * (1 - clean) / clean
    truth = {"loss": loss, "recovery": recovery, "mscr": netted, "accuracy_change": netted * clean}[name]
    return Scenario(f"{name}, clean {clean:.0%}, loss {loss:.1%}, {clusters} clusters of about {size}", truth, simulate)


def two_models(
    name: str,
    losses: tuple[float, float],
    kind: Callable[[float], Rates],
    *,
    clean: float = 0.98,
    share: float,
    n: int = 360,
) -> Scenario:
    """The difference of two models that do the same on a share of the images, and as they like on the others."""
    k, recovery = 10, 0.1

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        return contrast_interval(*(one.parts(name) for one in pair(rng, (repeats, 1, n))), Factors(num_draws=k))[1]

    def pair(rng: np.random.Generator, shape: tuple[int, ...]) -> list[Outcomes]:
        is_same = rng.random(shape) < share
        right = [(rng.random(shape) < clean).astype(np.float64) for _ in losses]
        right[1] = np.where(is_same, right[0], right[1])
        found = []
        for loss, own in zip(losses, right, strict=True):
            chance = np.where(own == 1, 1 - kind(loss)(rng, shape), borderline(recovery)(rng, shape))
            found.append(Outcomes(clean=own, shifted=draws(rng, chance, k)))
        if losses[0] == losses[1]:
            found[1] = replace(found[1], shifted=np.where(is_same, found[0].shifted, found[1].shifted))
        return found

    truth = (losses[0] - losses[1]) * (1 if name == "loss" else -1)
    words = f"{name} of two models, losses {losses[0]:.1%} and {losses[1]:.1%} ({kind.__name__}), same on {share:.0%}"
    return Scenario(f"{words}, n {n}", truth, simulate)


def models_by_runs(
    name: str,
    *,
    clean: float,
    loss: float,
    images: float,
    models: float,
    both: float,
    num_models: int = 3,
    num_runs: int = 3,
) -> Scenario:
    """Fitted models crossed with images, each with several runs of the noise: 3 x 3 runs are 3 models.

    Log odds of being right, and of losing it, vary with the image, the model and the two together, with these
    deviations; `clean` and `loss` are those of the average image in the average model.
    """
    n, k = 360, 10 * num_runs

    def chances(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Array, Array]:
        found = []
        for mean in (clean, 1 - loss):
            odds = np.log(mean / (1 - mean)) + images * rng.normal(size=(*shape[:-2], 1, shape[-1]))
            odds = odds + models * rng.normal(size=(*shape[:-1], 1)) + both * rng.normal(size=shape)
            found.append(1 / (1 + np.exp(-odds)))
        return found[0], found[1]

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        chance, keeps = chances(rng, (repeats, num_models, n))
        right = (rng.random(chance.shape) < chance).astype(np.float64)
        shifted = draws(rng, np.where(right == 1, keeps, 0.2), k)
        if name == "top1":
            return proportion(shifted, np.ones_like(shifted), Factors(num_draws=k))[1]
        return _interval(name, Outcomes(clean=right, shifted=shifted, factors=Factors(num_draws=k)))

    right, keeps = chances(np.random.default_rng(1), (LARGE, 1, 1))
    a, kept = right.mean(), (right * keeps).mean()
    after = kept + 0.2 * (1 - a)
    truth = {"top1": after, "loss": 1 - kept / a, "mscr": after / a - 1, "accuracy_change": after - a}[name]
    words = f"{name}, {num_models} models x {num_runs} runs, clean about {clean:.0%}, loss about {loss:.1%}"
    return Scenario(f"{words}, sd of images {images:g}, models {models:g}, both {both:g}", float(truth), simulate)


def two_fitted_models(name: str, *, num_fits: int, models: float) -> Scenario:
    """Two kinds of model that are alike, each fitted several times: images are common, fits and their noise are not."""
    n, k, clean, keep = 200, 10, 0.9, 0.93

    def fits(rng: np.random.Generator, images: Array) -> Outcomes:
        shape = (*images.shape[:1], num_fits, n)
        chances = []
        for mean in (clean, keep):
            odds = np.log(mean / (1 - mean)) + images + models * rng.normal(size=(*shape[:2], 1))
            chances.append(1 / (1 + np.exp(-odds - 0.5 * rng.normal(size=shape))))
        right = (rng.random(shape) < chances[0]).astype(np.float64)
        shifted = draws(rng, np.where(right == 1, chances[1], 0.2), k)
        return Outcomes(clean=right, shifted=shifted)

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        images = rng.normal(size=(repeats, 1, n))
        return contrast_interval(*(fits(rng, images).parts(name) for _ in range(2)), Factors(num_draws=k))[1]

    return Scenario(f"{name} of two models, {num_fits} fits of each, sd of models {models:g}, n {n}", 0.0, simulate)


def resplits(name: str, *, distance: float, noise: float, num_points: int = 300, num_runs: int = 20) -> Scenario:
    """Re-splits of one data set, 80 % to fit on: two normal classes, and the middle of their means is the model."""
    from scipy.special import ndtr

    k, num_test = 10, num_points // 5
    classes = np.arange(num_points) % 2

    def accuracy(threshold: Array, shift: Array) -> Array:
        return (ndtr(threshold + distance / 2 - shift) + ndtr(distance / 2 - threshold + shift)) / 2

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        x = rng.normal(size=(repeats, num_points)) + distance * (classes - 0.5)
        order = np.argsort(rng.random((repeats, num_runs, num_points)), axis=-1)
        tested, fitted = order[..., :num_test], order[..., num_test:]
        points, own = np.take_along_axis(x[:, None], fitted, -1), classes[fitted]
        means = [(points * (own == c)).sum(-1) / (own == c).sum(-1) for c in (0, 1)]
        threshold = ((means[0] + means[1]) / 2)[..., None]
        points, own = np.take_along_axis(x[:, None], tested, -1), classes[tested]
        right = ((points > threshold) == own).astype(np.float64)
        shifts = rng.uniform(-noise, noise, (repeats, k, 1, num_points)).astype(np.float32)
        shifted = np.mean([(points + np.take_along_axis(one, tested, -1) > threshold) == own
                           for one in shifts.swapaxes(0, 1)], axis=0)  # fmt: skip
        factors = Factors(num_draws=k, samples=tested, num_samples=num_points, resplit=0.25)
        if name == "top1":
            return proportion(right, np.ones_like(right), factors.of(num_draws=1))[1]
        return _interval(name, Outcomes(clean=right, shifted=shifted, factors=factors))

    rng = np.random.default_rng(1)
    threshold = rng.normal(size=LARGE) / np.sqrt(0.8 * num_points)  # sd of the mean of two means of n/2 points each
    clean = accuracy(threshold, np.zeros(1)).mean()
    after = accuracy(threshold, rng.uniform(-noise, noise, LARGE)).mean()
    truth = {"top1": clean, "mscr": after / clean - 1}[name]
    words = f"{name}, {num_runs} re-splits of {num_points}, clean {clean:.1%}, MSCR {after / clean - 1:.2%}"
    return Scenario(words, float(truth), simulate)


def accuracies_alone(*, clean: float, spread: float, num_runs: int) -> Scenario:
    """MSCR from the accuracies of independent runs."""

    def simulate(rng: np.random.Generator, repeats: int) -> Interval:
        before = 100 * clean + spread * rng.normal(size=(repeats, num_runs))
        after = before - 2 + spread * rng.normal(size=(repeats, num_runs))
        found = [mscr_over_runs(*rows)["mscr"] for rows in zip(before, after, strict=True)]
        return Interval(*(np.array([getattr(one, side) for one in found]) / 100 for side in ("ci_low", "ci_high")), "")

    return Scenario(f"mscr from accuracies of {num_runs} runs, sd {spread:g}", -2 / (100 * clean), simulate)


def scenarios() -> Iterator[Scenario]:
    """All scenarios of the table."""
    for kind in (always, borderline, mixed):
        yield change("accuracy_change", kind, 0.002, recovery=0.1)._replace(most=1)
        yield change("accuracy_change", kind, 0.05, recovery=0.1)
    yield change("accuracy_change", borderline, 0.3, recovery=0.2, clean=0.6)
    yield change("accuracy_change", always, 0.3, recovery=0.45, clean=0.6)
    for alike in (0.3, 0.8, 1.0):
        yield under_corruptions(0.25, alike=alike)
        yield under_corruptions(0.01, alike=alike)._replace(most=1)
    for n in (150, 600):
        for alike in (0.3, 0.8):
            yield relative_error(clean=0.95, loss=0.1, recovery=0.0, alike=alike, n=n)._replace(most=1)
            yield relative_error(clean=0.8, loss=0.25, recovery=0.2, alike=alike, n=n)
    for name in ("loss", "recovery", "mscr", "accuracy_change"):
        yield in_clusters(name, 0.1, clusters=60, size=8)
        yield in_clusters(name, 0.3, clusters=100, size=20)
    for name in ("loss", "mscr"):
        for kind in (always, borderline):
            yield two_models(name, (0.002, 0.002), kind, share=0.9)._replace(most=1)
            yield two_models(name, (0.1, 0.05), kind, share=0.9)
        yield two_models(name, (0.3, 0.3), borderline, share=0.5, clean=0.6)
    for name in ("top1", "loss", "mscr", "accuracy_change"):
        yield models_by_runs(name, clean=0.98, loss=0.01, images=1.5, models=0.1, both=0.5)
        yield models_by_runs(name, clean=0.9, loss=0.05, images=1, models=0.3, both=0.5)
        yield models_by_runs(name, clean=0.9, loss=0.05, images=2, models=0, both=2)
        yield models_by_runs(name, clean=0.9, loss=0.05, images=1, models=1, both=0.5, num_runs=1)
        for num_models in (2, 3, 5, 10):
            yield models_by_runs(
                name, clean=0.9, loss=0.05, images=1, models=0.3, both=0.5, num_models=num_models, num_runs=1
            )
    for name in ("loss", "mscr"):
        for num_fits in (2, 3, 5, 10):
            yield two_fitted_models(name, num_fits=num_fits, models=0.3)
    for name in ("top1", "mscr"):
        for runs in (5, 20):
            yield resplits(name, distance=2, noise=1, num_runs=runs)
            yield resplits(name, distance=5, noise=0.5, num_runs=runs)._replace(most=1)
    for runs in (3, 20):
        yield accuracies_alone(clean=0.9, spread=1, num_runs=runs)


def quick_scenarios() -> Iterator[Scenario]:
    """The scenarios that the tests repeat, with fewer experiments."""
    yield change("accuracy_change", always, 0.002, recovery=0.1)._replace(most=1)
    yield change("accuracy_change", borderline, 0.3, recovery=0.2, clean=0.6)
    yield under_corruptions(0.25, alike=0.8)
    yield relative_error(clean=0.95, loss=0.1, recovery=0.0, alike=0.8, n=150)._replace(most=1)
    for name in ("loss", "mscr"):
        yield in_clusters(name, 0.1, clusters=60, size=8)
        yield two_models(name, (0.1, 0.05), borderline, share=0.9)
        yield models_by_runs(name, clean=0.9, loss=0.05, images=1, models=0.3, both=0.5)
    yield models_by_runs("loss", clean=0.9, loss=0.05, images=1, models=1, both=0.5, num_runs=1)
    yield two_fitted_models("mscr", num_fits=3, models=0.3)
    yield resplits("mscr", distance=2, noise=1, num_runs=10)
    yield accuracies_alone(clean=0.9, spread=1, num_runs=3)


if __name__ == "__main__":
    print_table(scenarios(), __doc__)
