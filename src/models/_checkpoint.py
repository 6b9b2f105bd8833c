"""Reading trained parameters from a file into a network; tensors only, never pickled objects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models._architecture import build_architecture
from testbed.errors import DataError, DefinitionError, reading

if TYPE_CHECKING:
    from torch import Tensor, nn

NESTED_UNDER = ("state_dict", "model_state_dict", "model", "net")
WRAPPER_PREFIXES = ("module.", "_orig_mod.")  # left by DataParallel and by torch.compile
AVERAGING_KEYS = ("n_averaged",)  # beside the parameters in torch's own average of weights
# What training keeps beside the network begins so.
TRAINING_KEYS = ("optim", "lr_sched", "scheduler", "scaler", "amp", "loss", "criterion")
_AVERAGE = re.compile(r"(^|[._])(ema|swa|avg|averaged?|shadow)($|[._])")  # names of averages of weights
DEEPEST = 4  # dicts in dicts that weights are looked for in
SHOWN_KEYS = 3


def load_trained(arch: str, num_classes: int | None, *, weights: Path, weights_key: str | None = None) -> nn.Module:
    """The network `arch` with the parameters in `weights`, in evaluation mode.

    Args:
        arch, num_classes: see `models._architecture.build_architecture`.
        weights, weights_key: see `read_state`.
    Raises: TestbedError: see `build_architecture` and `load_checkpoint`.
    """
    network = build_architecture(arch, num_classes=num_classes)
    return _with_state(network, read_state(weights, weights_key), weights)


def load_trained_seed(arch: str, num_classes: int | None, *, weights: Path, seed: int) -> nn.Module:
    """The network `arch` as it was trained with `seed`, from a file that holds one for each of several seeds.

    Args:
        arch, num_classes: see `models._architecture.build_architecture`.
        weights: as `train.py --seed 0 1 2` writes it: the names of parameters begin with `seed0.`, `seed1.`, ...
        seed: of the run.
    Raises:
        DefinitionError: the file holds none that was trained with this seed; those that it holds are listed.
        TestbedError: as `load_trained`.
    """
    state = read_state(weights)
    prefix = f"seed{seed}."
    of_seed = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
    if not of_seed:
        held = sorted({key.split(".")[0] for key in state if key.startswith("seed")})
        raise DefinitionError(
            f"Checkpoint '{weights}' holds {', '.join(held) or 'no networks by seed'}, not seed{seed}. Use --seeds "
            "with those, or train more with train.py --seed."
        )
    network = build_architecture(arch, num_classes=num_classes)
    return _with_state(network, of_seed, weights)


def load_checkpoint(network: nn.Module, path: Path) -> nn.Module:
    """`network` with the parameters of `path`, in evaluation mode.

    Raises:
        DataError: the file is missing, unreadable, or holds more than tensors.
        DefinitionError: its keys or shapes are not those of the network; they are listed.
    """
    return _with_state(network, read_state(path), path)


def read_state(path: Path, weights_key: str | None = None) -> dict[str, Tensor]:
    """The state dict in a .safetensors file or a file of torch.save, on the CPU.

    A dict nested under 'state_dict', 'model_state_dict', 'model' or 'net' is taken out, and the prefixes 'module.' and
    '_orig_mod.' are removed where every key has them.

    Args:
        path: of the file.
        weights_key: which of several sets of weights, such as 'model_ema'; dots lead into dicts of dicts.
    Raises:
        DataError: the file is missing, unreadable, or holds more than tensors.
        DefinitionError: it holds several sets of weights and none is chosen, or not the one that is chosen.
    """
    check_file(path)
    content = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    sets = dict(_weight_sets(content))
    if weights_key is None:
        weights_key = _only_key(sets, path)
    elif weights_key not in (sets := sets | _by_prefix(sets)):
        held = ", ".join(f"{key or '(the file itself)'} ({len(state)} tensors)" for key, state in sets.items())
        raise DefinitionError(
            f"Checkpoint '{path}' holds no weights under --weights-key {weights_key}, but {held or 'none'}."
        )
    return _bare(sets[weights_key])


def _weight_sets(content: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """The tensors in a checkpoint by the keys that lead to the dict they are in; what an optimizer keeps is no set.

    Plain values beside tensors, such as the decay of an average, are left out; a list of tensors has numbers for names.
    """
    from torch import Tensor

    if isinstance(content, list) and depth:
        content = {str(position): value for position, value in enumerate(content)}
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        return
    inner = {name: value for name, value in content.items() if isinstance(value, Mapping | list)}
    if not inner and (state := {name: value for name, value in content.items() if isinstance(value, Tensor)}):
        yield key, state
    for name, value in inner.items() if depth < DEEPEST else ():
        if not name.startswith(TRAINING_KEYS):
            yield from _weight_sets(value, f"{key}.{name}" if key else name, depth + 1)


def _by_prefix(sets: Mapping[str, Mapping[str, Tensor]]) -> dict[str, dict[str, Tensor]]:
    """The parts of sets whose names begin alike, as in one dict of `model.NAME` and `model_ema.NAME`."""
    parts: dict[str, dict[str, Tensor]] = {}
    for key, state in sets.items():
        for name, value in state.items():
            first, dot, rest = name.partition(".")
            if dot:
                parts.setdefault(f"{key}.{first}" if key else first, {})[rest] = value
    return parts


def _only_key(sets: Mapping[str, Mapping[str, Tensor]], path: Path) -> str:
    """The key of the weights that are meant where none is named."""
    usual = [key for key in sets if set(_parts(key)) <= set(NESTED_UNDER)]
    if not usual:
        choices = f" It has {', '.join(sets)}: choose with --weights-key NAME." if sets else ""
        raise DataError(
            f"Checkpoint '{path}' holds no state dict, on its own or under {', '.join(NESTED_UNDER)}.{choices} "
            "Save one with torch.save(network.state_dict(), FILE)."
        )
    first = min(usual, key=lambda key: [NESTED_UNDER.index(part) for part in _parts(key)])
    state, nested = _bare(sets[first]), _by_prefix({key: other for key, other in sets.items() if key != first})
    others = {key: _bare(other) for key, other in {**sets, **nested}.items() if key != first}
    twins = [key for key, other in others.items() if _is_twin(other, state)]
    averages = [key for key in others if _AVERAGE.search(key)]
    if twins or averages:
        found = dict.fromkeys([first, *twins, *averages])
        meant = [key for key in twins if key in averages] or twins or [first]
        which = " Libraries that keep an average of the weights mean that one." if averages else ""
        raise DefinitionError(
            f"Checkpoint '{path}' holds several sets of the same weights: {', '.join(found)}. Which one is meant, the "
            f"file does not say.{which} Choose with --weights-key {meant[-1]}, or another of them."
        )
    return first


def _is_twin(other: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> bool:
    """Whether a set holds at least half of the same parameters, with other values."""
    from torch import equal

    shared = state.keys() & other.keys()
    return 2 * len(shared) >= len(state) and not all(equal(state[name], other[name]) for name in shared)


def _bare(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return _without_prefixes({key: value for key, value in state.items() if key not in AVERAGING_KEYS})


def _parts(key: str) -> list[str]:
    return key.split(".") if key else []


def _with_state(network: nn.Module, state: dict[str, Tensor], path: Path) -> nn.Module:
    _check_forms(network.state_dict(), state, path)
    _check_fit(network.state_dict(), state, path)
    network.load_state_dict(state, strict=False)  # what may be missing was checked above
    return network.eval()


def check_file(path: Path) -> None:
    """Raises a DataError unless `path` is a file."""
    if not path.is_file():
        raise DataError(f"Checkpoint '{path}' does not exist or is no file. Check the path.")


def _read_safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    with reading(path, kind="a safetensors checkpoint", remedy="Get or save it again."):
        return load_file(path)


def _read_torch(path: Path) -> Any:
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)  # tensors alone: no code of the file is run
    except (MemoryError, PermissionError) as error:  # which say nothing against the file
        raise DataError(f"Checkpoint '{path}' cannot be read ({_first_line(error)}).") from error
    except Exception as error:  # a damaged file fails wherever the reader happens to be in it
        raise DataError(
            f"Checkpoint '{path}' is refused: it is damaged, or holds pickled objects besides tensors, which could run "
            "code when they are loaded. Where you trust it, load it yourself and save network.state_dict(), best with "
            f"safetensors. ({type(error).__name__})"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _without_prefixes(state: dict[str, Tensor]) -> dict[str, Tensor]:
    for prefix in WRAPPER_PREFIXES * 2:  # either may be outside
        if all(key.startswith(prefix) for key in state):
            state = {key.removeprefix(prefix): value for key, value in state.items()}
    return state


def _check_forms(expected: Mapping[str, Tensor], state: Mapping[str, Tensor], path: Path) -> None:
    """Refuses tensors whose values torch does not copy, or copies a part of."""
    if odd := [key for key, value in state.items() if key in expected and _form(value) != _form(expected[key])]:
        raise DefinitionError(
            f"Checkpoint '{path}' does not fit the network: {_listed(odd)} is sparse, nested, quantized, complex or "
            "without values where the network has plain numbers. Save plain tensors."
        )


def _form(tensor: Tensor) -> tuple[object, ...]:
    return tensor.layout, tensor.is_nested, tensor.is_quantized, tensor.is_complex(), tensor.is_meta


def _check_fit(expected: Mapping[str, Tensor], state: Mapping[str, Tensor], path: Path) -> None:
    # BatchNorm's batch counter serves training alone, and old checkpoints lack it
    missing = [key for key in expected if key not in state and not key.endswith("num_batches_tracked")]
    unexpected = [key for key in state if key not in expected]
    misshapen = [
        f"{key} {list(state[key].shape)} for {list(value.shape)}"
        for key, value in expected.items()
        if key in state and state[key].shape != value.shape
    ]
    if faults := key_faults(missing=missing, unexpected=unexpected, misshapen=misshapen):
        raise DefinitionError(
            f"Checkpoint '{path}' does not fit the network, {faults}. "
            "Check the file, its architecture (--arch of local:PATH) and its number of classes (--num-classes)."
        )


def key_faults(*, missing: Sequence[str], unexpected: Sequence[str], misshapen: Sequence[str]) -> str:
    """How many names of parameters do not fit, in which way, and the first of them; an empty string for none.

    Args: misshapen: `NAME SHAPE for SHAPE`, what the file holds for what the network takes.
    """
    kinds = (("missing", missing), ("unexpected", unexpected), ("of another shape", misshapen))
    faults = [f"{len(keys)} {what} ({_listed(keys)})" for what, keys in kinds if keys]
    return f"keys: {'; '.join(faults)}" if faults else ""


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:SHOWN_KEYS]) + (", ..." if len(keys) > SHOWN_KEYS else "")
