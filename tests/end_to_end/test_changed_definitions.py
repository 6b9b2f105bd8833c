"""A definition that changed is another evaluation, the old one is kept as stale, and equal-looking code is not one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Command

from testbed.store.evaluation import Evaluation
from testbed.store.store import Store

# Models and settings of one factory: their functions have the same text and the same byte code.
PLUGIN = """
import torch
from PIL import Image
from registry import registry
from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models.model_base import Model

def shrink(image):
    pixels = torch.frombuffer(bytearray(image.resize(({size}, {size})).tobytes()), dtype=torch.uint8)
    return pixels.reshape(1, {size}, {size}).float() / 255

def of_class(k):
    return lambda images, model: torch.nn.functional.one_hot(torch.full((len(images),), k), 10).float()

def brighter(amount):
    return lambda images: (images + amount).clamp(0, 1)

for k in (0, 1):
    registry.add_model(Model(name=f'always-{k}', transform=shrink, classifier_loader=lambda: None, classify=of_class(k),
                             eval_batch_size=64, label_space='digits'))
    registry.add_eval_setting(EvalSetting(
        name=f'brighter-{k}', dataset=StandardDataset(name='digits'), perturbation_fn_gpu=brighter(k / 10)))
""".replace("{k}", "{{k}}")


@pytest.fixture
def evaluate(command: Command, tmp_path: Path):  # type: ignore[no-untyped-def]
    """Writes the plugin with a size, evaluates its models on its settings, and returns what the command said."""

    def run(*, size: int) -> str:
        (tmp_path / "plugin.py").write_text(PLUGIN.format(size=size))
        done = command("eval.py", "--models", "always-*", "--eval-settings", "brighter-*", "--plugin", "plugin.py",
                       "--db", "--workers", 0, "--quiet", "--limit", 100)  # fmt: skip
        assert done.code == 0, done.err
        return str(done.err)

    return run


def stored(tmp_path: Path) -> dict[tuple[str, str], list[Evaluation]]:
    found: dict[tuple[str, str], list[Evaluation]] = {}
    with Store.open(tmp_path / "results" / "testbed.sqlite", read_only=True) as store:
        for evaluation in store.list_evaluations():
            found.setdefault((evaluation.model, evaluation.setting), []).append(evaluation)
            evaluation.predictions()
    return found


def test_a_changed_definition_is_evaluated_anew_and_its_old_results_are_stale(
    evaluate,
    command: Command,
    tmp_path: Path,  # type: ignore[no-untyped-def]
) -> None:
    assert "stored already" not in evaluate(size=8)
    assert "400 of 400 samples are stored already" in evaluate(size=8)
    first = stored(tmp_path)
    assert [len(group) for group in first.values()] == [1, 1, 1, 1]

    # Closures of one factory differ in nothing that a look at their code shows, and must not stand for each other.
    models = {evaluation.model_fingerprint for group in first.values() for evaluation in group}
    settings = {evaluation.setting_fingerprint for group in first.values() for evaluation in group}
    assert (len(models), len(settings)) == (2, 2)
    predicted = {model: set(group[0].predictions().ravel().tolist()) for (model, _), group in first.items()}
    assert predicted == {"always-0": {0}, "always-1": {1}}

    assert "stored already" not in evaluate(size=6)
    for pair, group in stored(tmp_path).items():
        old, new = sorted(group, key=lambda evaluation: evaluation.id)
        assert (old.is_stale, new.is_stale) == (True, False)
        assert old.id == first[pair][0].id
        assert old.model_fingerprint != new.model_fingerprint
        assert [value.name for value in old.metrics()] == [value.name for value in new.metrics()]
    shown = command("db.py", "--print-eval", "always-0", "brighter-0@limit100")
    assert shown.code == 0, shown.err
    assert shown.out.count("top1") == 1, "one version, not a mixture"
