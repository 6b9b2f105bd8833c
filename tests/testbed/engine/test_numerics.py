"""What a result depends on in its last bits is part of what it is, and what is stored stays what it was."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from testbed.engine.arithmetic import Arithmetic
from testbed.engine.identity import numerics

PLAIN = Arithmetic()
ALL = [
    PLAIN,
    Arithmetic(precision="fp32"),
    Arithmetic(precision="tf32"),
    Arithmetic(precision="bf16"),
    Arithmetic(precision="fp16"),
    Arithmetic(channels_last=True),
    Arithmetic(is_compiled=True),
]


def of(arithmetic: Arithmetic, device: str = "cpu") -> dict[str, object]:
    return numerics(device=device, batch_size=32, threads=1, arithmetic=arithmetic)


def test_evaluations_on_the_cpu_keep_the_numerics_they_were_stored_under() -> None:
    expected = {"dtype": "float32", "tf32": False, "device": "cpu", "batch_size": 32, "threads": 1}
    assert of(PLAIN) == expected
    assert list(of(PLAIN)) == list(expected)


def test_fp32_is_what_the_cpu_does_anyway() -> None:
    assert of(Arithmetic(precision="fp32")) == of(PLAIN)


def test_every_other_arithmetic_is_another_evaluation() -> None:
    assert all(of(one, "cuda:0") != of(other, "cuda:0") for one, other in combinations(ALL, 2))
    for one, other in combinations([one for one in ALL if one.precision not in ("fp32", "tf32")], 2):
        assert of(one) != of(other)


def test_which_of_equal_devices_was_used_does_not_count() -> None:
    assert of(PLAIN, "cuda:0") == of(PLAIN, "cuda:3") != of(PLAIN)


@pytest.mark.parametrize(("arithmetic", "dtype", "tf32"), [
    (PLAIN, "float32", "convolutions"), (Arithmetic(precision="fp32"), "float32", False),
    (Arithmetic(precision="tf32"), "float32", True), (Arithmetic(precision="bf16"), "bfloat16", False),
    (Arithmetic(precision="fp16"), "float16", False),
])  # fmt: skip
def test_numerics_name_what_a_card_does(arithmetic: Arithmetic, dtype: str, tf32: object) -> None:
    found = of(arithmetic, "cuda:0")
    assert (found["dtype"], found["tf32"]) == (dtype, tf32)


def test_pytorch_itself_uses_tf32_in_convolutions_alone() -> None:
    """Which is what its default is recorded as. In a fresh process, since others may have set the flags."""
    code = "import torch; print(torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
