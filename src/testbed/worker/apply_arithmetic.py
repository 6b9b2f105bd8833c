"""How networks compute, put into effect: flags, precision, layout and compilation. Imports torch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from testbed.engine.arithmetic import Arithmetic

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
_COMPILERS = ("torch._dynamo", "torch._inductor", "torch._functorch")


def set_flags(arithmetic: Arithmetic) -> None:
    """Sets for the whole process whether float32 may be computed as TF32; None leaves PyTorch's own choice."""
    if arithmetic.precision is not None:
        torch.backends.cuda.matmul.allow_tf32 = arithmetic.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = arithmetic.precision == "tf32"


def adapted(network: Any, arithmetic: Arithmetic) -> Any:
    """The network in the layout that is asked for, and compiled where that is; anything but a module as it is."""
    if not isinstance(network, nn.Module):
        return network
    if arithmetic.channels_last:
        network = network.to(memory_format=torch.channels_last)
    if arithmetic.is_compiled:
        network.compile(dynamic=False)  # in place: the names of its parameters stay
    return network


def laid_out(images: Tensor, arithmetic: Arithmetic) -> Tensor:
    """Images [n, C, H, W] in the layout that is asked for; rows of numbers as they are."""
    is_wanted = arithmetic.channels_last and images.ndim == 4
    return images.contiguous(memory_format=torch.channels_last) if is_wanted else images


def autocast(arithmetic: Arithmetic, device: str) -> AbstractContextManager[object]:
    """Within it, products and convolutions run at the precision that is asked for."""
    dtype = _AUTOCAST.get(arithmetic.precision or "")
    return nullcontext() if dtype is None else torch.autocast(device, dtype=dtype)


def padded(images: Tensor, size: int | None) -> Tensor:
    """Images [size, ...]: the last one is repeated where there are fewer, since a network is compiled for one size."""
    missing = 0 if size is None else size - len(images)
    return images if missing <= 0 else torch.cat([images, images[-1:].expand(missing, *images.shape[1:])])


def is_compile_failure(error: BaseException) -> bool:
    """Whether `torch.compile`, and not the network, is what failed."""
    return type(error).__module__.startswith(_COMPILERS)
