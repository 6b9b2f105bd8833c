"""How much of the logits is kept: the policies that users name, what each leaves of a shard, and what it takes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed import top_logits
from testbed.codec import encode, fits_half, lossless_codec
from testbed.errors import DefinitionError, StoreError
from testbed.records import FloatArray, IntArray
from testbed.top_logits import TopLogits

POLICIES = ("full", "lossless", "float16", "topk:K", "predictions")
NO_LOGITS = "predictions"  # the codec of a shard without a payload
LABEL_BYTES = 8  # prediction and target rank of a sample, exact under every policy
_TOP = re.compile(r"topk:([1-9][0-9]{0,8})(\+f32)?")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What is kept of a shard's logits: bytes, the name of their encoding, and how many columns were encoded."""

    payload: bytes
    codec: str
    num_outputs: int


def check_policy(policy: str, *, where: str) -> str:
    """`policy` itself. Raises: DefinitionError: there is none of that name; `where` it was given."""
    if isinstance(policy, str) and (policy in POLICIES[:3] or policy == NO_LOGITS or _top_k(policy, is_policy=True)):
        return policy
    raise DefinitionError(
        f"{where} is {policy!r}. Use one of {', '.join(POLICIES)}, where K is a number such as in topk:20."
    )


def keep(policy: str, logits: NDArray[np.float32], *, in_setting: FloatArray, targets: IntArray) -> Kept:
    """What a policy keeps of a shard.

    Args:
        logits: [n, num_outputs] float32 as the model gave them.
        in_setting: [n, classes] those of the setting's classes, of which 'topk:K' keeps the largest.
        targets: [n] over the setting's classes; -1 for a class that is not among them.
    """
    width = logits.shape[1]
    if policy == NO_LOGITS:
        return Kept(payload=b"", codec=NO_LOGITS, num_outputs=width)
    if (k := _top_k(policy)) is not None:
        num_classes = in_setting.shape[1]
        top = top_logits.top_logits(in_setting, targets, k=k)
        payload, is_half = top_logits.encode_top(top, num_classes=num_classes)
        return Kept(payload=payload, codec=f"topk:{k}" + "+f32" * (not is_half), num_outputs=num_classes)
    if policy == "float16":
        codec = "f16" if fits_half(logits) else "f32"
    else:
        codec = "f32" if policy == "full" else lossless_codec()
    return Kept(payload=encode(logits, codec=codec), codec=codec, num_outputs=width)


def keeps_all(codec: str) -> bool:
    """Whether a shard with this codec has every logit."""
    return codec != NO_LOGITS and _top_k(codec) is None


def read_top(payload: bytes, *, codec: str, num_outputs: int) -> TopLogits:
    """The logits of a shard whose codec is 'topk:K' or 'topk:K+f32'. Raises: StoreError: it is another."""
    k = _top_k(codec)
    if k is None:
        raise StoreError(f"The codec '{codec}' is not one of the largest logits.")
    return top_logits.decode_top(payload, k=k, is_half=not codec.endswith("+f32"), num_classes=num_outputs)


def detail(name: str) -> tuple[int, int]:
    """How much a policy or a codec keeps, to be compared: the larger one keeps more."""
    if name == NO_LOGITS:
        return 0, 0
    if (k := _top_k(name)) is not None:
        return 1, k
    return (2 if name in ("f16", "float16") else 3), 0


def bytes_per_sample(policy: str, num_outputs: int) -> int:
    """What a sample takes at most: its logits as the policy keeps them, its prediction and its target's rank.

    The lossless policy is counted without its compression, which nobody knows before; 'float16' and 'topk:K' without
    the shards whose numbers are too large for half precision.
    """
    if policy == NO_LOGITS:
        return LABEL_BYTES
    if (k := _top_k(policy)) is not None:
        return top_logits.bytes_per_sample(k, num_outputs) + LABEL_BYTES
    return num_outputs * (2 if policy == "float16" else 4) + LABEL_BYTES


def _top_k(name: str, *, is_policy: bool = False) -> int | None:
    found = _TOP.fullmatch(name)
    return None if found is None or (is_policy and found[2]) else int(found[1])
