"""Rules of `--precision`, `--channels-last` and `--compile`, as far as a CPU can show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.workbench import NUM_SAMPLES, Sums, Workbench, logits, unit, workbench
from torch import Tensor, nn

from testbed.definitions import Sources
from testbed.engine.arithmetic import Arithmetic
from testbed.records import Shard
from testbed.worker.apply_arithmetic import padded, set_flags

__all__ = ["workbench"]  # a fixture


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(2, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))


@pytest.fixture(autouse=True)
def _flags() -> Iterator[None]:
    yield
    set_flags(Arithmetic())


def _tf32() -> list[bool]:
    """Whether products, convolutions and recurrent layers use TF32, and whether the CPU rounds its products."""
    backends = torch.backends
    flags = (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn, backends.mkldnn.matmul)
    assert (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32) is not None  # mixed flags cannot be read
    return [flag.fp32_precision in ("tf32", "bf16") for flag in flags]


def _by_old_flags() -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True


def _by_no_flags() -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def _by_matmul_precision() -> None:
    torch.set_float32_matmul_precision("medium")


def _by_new_flags() -> None:
    torch.backends.fp32_precision = torch.backends.cudnn.fp32_precision = "tf32"


def _by_newest_flags() -> None:
    torch.backends.cuda.matmul.fp32_precision = torch.backends.cudnn.conv.fp32_precision = "tf32"


ELSEWHERE = (_by_old_flags, _by_no_flags, _by_matmul_precision, _by_new_flags, _by_newest_flags)


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("fp32", [False, False, False, False]),
        ("tf32", [True, True, True, False]),
        ("bf16", [False, False, False, False]),
        ("fp16", [False, False, False, False]),
        (None, [False, True, True, False]),  # what PyTorch does by itself
    ],
)
@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_tf32_is_what_is_recorded_whatever_was_set_elsewhere(precision: Any, expected: Any, elsewhere: Any) -> None:
    elsewhere()
    set_flags(Arithmetic(precision=precision))
    assert _tf32() == expected


def test_algorithms_are_not_chosen_by_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    set_flags(Arithmetic())
    assert not torch.backends.cudnn.benchmark


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_flags_that_a_loader_or_a_plugin_sets_do_not_hold(
    workbench: Workbench, tmp_path: Path, elsewhere: Callable[[], None]
) -> None:
    found = []

    class Watched(Sums):
        def forward(self, images: Tensor) -> Tensor:
            found.append(_tf32())
            return super().forward(images)

    def load() -> nn.Module:
        elsewhere()
        return Watched()

    plugin = tmp_path / "plugin.py"
    plugin.write_text("import torch\ntorch.set_float32_matmul_precision('high')\ntorch.set_num_threads(3)\n")
    model, task = workbench.model("watched", load), workbench.task()
    worker = workbench.worker(arithmetic=Arithmetic(precision="fp32"), sources=Sources(plugins=(plugin,)))
    assert not any(_tf32())
    assert torch.get_num_threads() == 1
    worker.run(unit(task, model))
    assert found == [[False] * 4] * 3


def test_low_precision_is_that_of_the_network_alone_and_logits_are_float32(workbench: Workbench) -> None:
    seen = []

    def perturbed(images: Tensor, model: Any) -> Tensor:
        seen.append((images.dtype, (images @ images).dtype, model(images).dtype))
        return images

    model, task = workbench.model("network", network), workbench.task(perturbation_fn_gpu=perturbed)
    plain = logits(workbench.worker().run(unit(task, model)), model)
    result = workbench.worker(arithmetic=Arithmetic(precision="bf16")).run(unit(task, model))
    low = logits(result, model)
    assert set(seen) == {(torch.float32,) * 3}
    assert low.dtype == np.float32
    assert (low.view(np.uint32) & 0xFFFF == 0).all()  # bfloat16 has no more bits
    assert 0 < np.abs(low - plain).max() < 0.02


def test_channels_last_is_the_layout_of_weights_and_images_and_changes_no_hash(workbench: Workbench) -> None:
    layouts = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def forward(self, images: Tensor) -> Tensor:
            weight = self.network[0].weight
            layouts.append([t.is_contiguous(memory_format=torch.channels_last) for t in (images, weight)])
            return self.network(images)

    model, task = workbench.model("watched", Watched), workbench.task()
    plain = workbench.worker().run(unit(task, model))
    last = workbench.worker(arithmetic=Arithmetic(channels_last=True)).run(unit(task, model))
    assert layouts == [[False, False]] * 3 + [[True, True]] * 3
    assert plain.facts == last.facts
    np.testing.assert_allclose(logits(plain, model), logits(last, model), atol=1e-6)


def test_a_compiled_network_sees_one_size_alone_and_rows_that_fill_it_are_cut(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, options = [], []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def forward(self, images: Tensor) -> Tensor:
            sizes.append(len(images))
            return self.network(images)

    monkeypatch.setattr(nn.Module, "compile", lambda self, **given: options.append(given))
    model, task = workbench.model("watched", Watched), workbench.task()
    worker = workbench.worker(arithmetic=Arithmetic(is_compiled=True))
    whole, probe = worker.run(unit(task, model)), worker.run(unit(task, model, stop=2))
    assert options == [{"dynamic": False}]
    assert sizes == [8] * 4
    assert logits(whole, model).shape == (NUM_SAMPLES, 3)
    assert whole.outcomes[model].batch_size == 8
    np.testing.assert_array_equal(logits(probe, model), logits(whole, model)[:2])


def test_every_network_of_a_class_is_compiled_not_the_first_eight_alone(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, plain = [], nn.Module.compile

    def counted(graph: Any, _: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    def layers(count: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), *[nn.Linear(32, 32) for _ in range(count)], nn.Linear(32, 3))

    monkeypatch.setattr(nn.Module, "compile", lambda self, **given: plain(self, backend=counted, **given))
    names = [workbench.model(f"layers-{count}", partial(layers, count)) for count in range(10)]
    task = workbench.task()
    workbench.worker(arithmetic=Arithmetic(is_compiled=True)).run(unit(task, *names))
    assert len(compiled) == 10


def test_padding_repeats_the_last_image() -> None:
    images = torch.arange(6.0).reshape(2, 3)
    assert padded(images, 4).tolist() == [[0, 1, 2], [3, 4, 5], [3, 4, 5], [3, 4, 5]]
    assert padded(images, 2) is images
    assert padded(images, None) is images


def test_what_torch_compile_cannot_compile_fails_with_a_remedy(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uncompilable(self: nn.Module, **_: Any) -> None:
        self._compiled_call_impl = refuse

    def refuse(*_: Any) -> None:
        raise torch._dynamo.exc.BackendCompilerFailed("inductor", RuntimeError("no C++ compiler"), None)

    monkeypatch.setattr(nn.Module, "compile", uncompilable)
    names = [workbench.model("network", network), workbench.model("function", lambda: None, classify=_three_logits)]
    task = workbench.task()
    result = workbench.worker(arithmetic=Arithmetic(is_compiled=True)).run(unit(task, *names))
    assert "no C++ compiler" in result.outcomes["network"].reason
    assert "Leave --compile out" in result.outcomes["network"].reason
    assert isinstance(result.outcomes["function"], Shard)  # there is nothing to compile


def _three_logits(images: Tensor, model: Any) -> Tensor:
    return images.flatten(1)[:, :3]
