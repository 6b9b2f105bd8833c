"""What `train.py` does: names to a network, its training under a progress bar, and the files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from models.model_base import Model
from registry import registry
from testbed.cli import EXIT_INTERRUPTED, say
from testbed.data.weights import FoundWeights, checkpoints_root
from testbed.definitions import Sources, load_definitions, plugin_paths
from testbed.training.card import card, check_free, save
from testbed.training.recipe import DEFAULT_RECIPE, Recipe, recipe_named
from testbed.training.train import Score, Trained, check_trainable, train


def run_training(
    *, model: str, dataset: str, seeds: Sequence[int], out: Path | None, override: bool, device: str,
    data_root: Path | None, plugins: Sequence[str], quiet: bool, recipe: str = DEFAULT_RECIPE, **changes: Any,
) -> int:  # fmt: skip
    """Trains, saves and prints one line; returns the exit code.

    Args:
        model, dataset: registered names.
        seeds: one network is trained for each; several are kept in one file.
        device, data_root: see `testbed.training.train`.
        out: file of the weights; if None, under checkpoints/, where a model that looks for its weights finds them.
        override: replace files that exist.
        plugins: files or folders of further definitions.
        quiet: show no progress bar.
        recipe: name of a published or the default recipe.
        changes: values in place of the recipe's own, see `Recipe`; None for none.
    Raises: TestbedError: before anything is trained, where the request is wrong.
    """
    load_definitions(Sources(plugins=plugin_paths(plugins)))
    found = registry.dataset(dataset)
    network = registry.model(model, found.label_space)
    chosen = recipe_named(recipe, **changes)
    weights = out or _default_file(network)
    check_free(weights, override=override)
    check_trainable(network, found, device=device)
    try:
        with tqdm(total=chosen.epochs * len(seeds), unit="epoch", disable=quiet or None, dynamic_ncols=True) as bar:
            trained = {
                seed: train(
                    network, found, chosen, seed=seed, device=device, data_root=data_root, on_epoch=_Progress(bar)
                )
                for seed in seeds
            }
        command = shlex.join(["python", Path(sys.argv[0]).name, *sys.argv[1:]])
        save(
            trained,
            card(trained, model=network, dataset=found, recipe=chosen, device=device, command=command),
            weights,
        )
    except KeyboardInterrupt:
        say("Interrupted. Nothing was written.")
        return EXIT_INTERRUPTED
    for seed, of_seed in trained.items():
        print(f"{model} on {dataset}, seed {seed}: {_summary(of_seed, chosen)}. Wrote {weights}")
    return 0


def _default_file(model: Model) -> Path:
    name = model.weights.name if isinstance(model.weights, FoundWeights) else model.name
    return checkpoints_root() / f"{name}.safetensors"


class _Progress:
    """Moves the bar by one epoch and shows the validation accuracy, or else the training loss."""

    def __init__(self, bar: tqdm[Any]) -> None:
        self._bar = bar

    def __call__(self, loss: float, validation: Score | None, /) -> None:
        shown = f"loss {loss:.3f}" if validation is None else f"validation {validation.top1:.1f} %"
        self._bar.set_postfix_str(shown, refresh=False)
        self._bar.update()


def _summary(trained: Trained, recipe: Recipe) -> str:
    parts = (("validation", trained.validation), ("test", trained.test))
    scores = ", ".join(f"{name} {score.top1:.2f} % ({score.correct}/{score.n})" for name, score in parts if score)
    return f"epoch {trained.epoch} of {recipe.epochs}, {scores}"
