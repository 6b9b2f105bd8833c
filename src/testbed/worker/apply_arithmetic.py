"""How networks compute, put into effect: flags, precision, layout and compilation. Imports torch."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from testbed.engine.arithmetic import Arithmetic

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
_TF32: dict[str | None, tuple[bool, bool]] = {None: (False, True), "tf32": (True, True)}  # products, convolutions
_COMPILERS = ("torch._dynamo", "torch._inductor", "torch._functorch")
_MOST_COMPILED = 1 << 14  # networks and batch sizes in one process


def set_flags(arithmetic: Arithmetic) -> None:
    """Sets for the whole process where float32 may be computed as TF32; None is what PyTorch does by itself.

    Whatever definitions have set, also by `fp32_precision`, is undone: it would not be what is recorded.
    """
    in_products, in_convolutions = _TF32.get(arithmetic.precision, (False, False))
    for backend in (torch.backends, torch.backends.mkldnn, torch.backends.cudnn):  # flags that are off defer to these
        backend.fp32_precision = "none"  # type: ignore[attr-defined]
    torch.set_float32_matmul_precision("highest")  # on the CPU as well
    torch.backends.cuda.matmul.allow_tf32 = in_products
    torch.backends.cudnn.allow_tf32 = in_convolutions
    torch.backends.cudnn.benchmark = False  # what is fastest, and so the last bits, can differ between two workers


def adapted(network: Any, arithmetic: Arithmetic) -> Any:
    """The network in the layout that is asked for, and compiled where that is; anything but a module as it is."""
    if not isinstance(network, nn.Module):
        return network
    if arithmetic.channels_last:
        network = network.to(memory_format=torch.channels_last)
    if arithmetic.is_compiled:
        _prepare_compiler()
        network.compile(dynamic=False)  # in place: the names of its parameters stay
    return network


def _prepare_compiler() -> None:
    """PyTorch counts all networks of a class as one, and runs all but the first eight uncompiled, without an error.

    On the CPU it would start a process per core for its compiler, in every worker, whatever --threads says.
    """
    if not torch.cuda.is_available():
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(torch.get_num_threads()))  # read at the import
    from torch._dynamo import config

    config.recompile_limit = config.accumulated_recompile_limit = _MOST_COMPILED


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
