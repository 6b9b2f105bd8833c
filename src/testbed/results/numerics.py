"""The numerics of stored evaluations in words, and which of them two evaluations have to share."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from sqlalchemy import false, func, select

from testbed.store import digests
from testbed.store.database import pieces
from testbed.store.evaluation import Evaluation
from testbed.store.reader import Reader
from testbed.store.schema import evaluations, model_versions, setting_versions

Numerics = Mapping[str, Any]

ARITHMETIC = ("dtype", "tf32", "device", "channels_last", "compiled")  # how networks compute, whatever they are asked
PERTURBED_ON = "perturbed_on"  # the one fact that belongs to a setting
NOTHING: Mapping[Hashable, Sequence[Numerics]] = MappingProxyType({})


def numerics_key(evaluation: Evaluation) -> str:
    """What makes two evaluations of a model on a setting of the same numerics."""
    return _text(dict(evaluation.numerics))


def network_key(evaluation: Evaluation) -> str:
    """What makes two evaluations of a model on different settings of the same numerics, such as a clean one.

    Where the perturbation was computed is no part of it: the clean images have none.
    """
    return _text({name: value for name, value in evaluation.numerics.items() if name != PERTURBED_ON})


def arithmetic_key(numerics: Numerics) -> str:
    """What makes two models compute in the same way; how many images they take at once is each one's own."""
    return _text({name: numerics.get(name) or False for name in ARITHMETIC})


def arithmetic_words(numerics: Numerics) -> str:
    """How networks computed, such as 'float32 on cpu', or 'bfloat16, channels last, compiled, on cuda'."""
    facts = [str(numerics.get("dtype", ""))]
    facts += ["TF32" if numerics["tf32"] is True else f"TF32 in {numerics['tf32']}"] if numerics.get("tf32") else []
    facts += ["channels last"] if numerics.get("channels_last") else []
    facts += ["compiled"] if numerics.get("compiled") else []
    facts = [fact for fact in facts if fact]
    device = str(numerics.get("device", ""))
    where = device if device in ("", "elsewhere") else f"on {device}"
    return f"{', '.join(facts)}{',' if len(facts) > 1 and where else ''} {where}".strip()


def other_facts(numerics: Numerics, others: Sequence[Numerics]) -> list[str]:
    """What tells numerics from others, beside how networks computed: 'batch size 32'."""
    names = dict.fromkeys(name for facts in (numerics, *others) for name in facts if name not in ARITHMETIC)
    differing = [name for name in names if any(other.get(name) != numerics.get(name) for other in others)]
    return [f"{name.replace('_', ' ')} {numerics[name]}" for name in differing if name in numerics]


def _on_setting(evaluation: Evaluation) -> Hashable:
    return evaluation.model_fingerprint, evaluation.setting_fingerprint


def names_with_numerics(
    found: Sequence[Evaluation],
    *,
    beside: Mapping[Hashable, Sequence[Numerics]] = NOTHING,
    twin_key: Callable[[Evaluation], Hashable] = _on_setting,
) -> dict[int, str]:
    """By the id of each evaluation the name of its model, with what tells it from others of a table.

    How networks computed is named beside all models where it is not the same for all; any other fact of the numerics,
    such as the batch size, where a model was evaluated on one setting with several.

    Args:
        found: of the table.
        beside: by twin key, more numerics that are stored, as `several_numerics` finds them.
        twin_key: what evaluations share that are to be told apart; the definitions of the model and the setting.
    """
    twins: dict[Hashable, list[Numerics]] = {}
    for one in found:
        twins.setdefault(twin_key(one), []).append(one.numerics)
    for key, own in twins.items():
        own.extend(beside.get(key, ()))
    differ = len({arithmetic_key(numerics) for own in twins.values() for numerics in own}) > 1
    names = {}
    for one in found:
        facts = [arithmetic_words(one.numerics)] if differ else []
        facts += other_facts(one.numerics, twins[twin_key(one)])
        told = ", ".join(filter(None, facts))
        names[one.id] = f"{one.model} ({told})" if told else one.model
    return names


def several_numerics(store: Reader) -> dict[Hashable, list[Numerics]]:
    """By the fingerprints of a model and a setting the numerics of their complete evaluations, where there are several.

    One query, however many evaluations there are.
    """
    mine = evaluations.c
    is_shown = (mine.status == "complete") & (mine.hidden == false())
    pair = (mine.model_version_id, mine.setting_version_id)
    several = (
        select(*pair).where(is_shown).group_by(*pair).having(func.count(mine.numerics_fingerprint.distinct()) > 1)
    ).subquery()
    is_among = (mine.model_version_id == several.c[0]) & (mine.setting_version_id == several.c[1])
    wanted = (
        select(model_versions.c.fingerprint, setting_versions.c.fingerprint, mine.numerics)
        .select_from(evaluations)
        .join(several, is_among)
        .join(model_versions, mine.model_version_id == model_versions.c.id)
        .join(setting_versions, mine.setting_version_id == setting_versions.c.id)
        .where(is_shown)
        .order_by(mine.id)
    )
    found: dict[Hashable, list[Numerics]] = {}
    with store.reading() as connection:
        digests.check_evaluations(connection, wanted.with_only_columns(mine.id).order_by(None))
        for model, setting, numerics in connection.execute(wanted):
            found.setdefault((model, setting), []).append(numerics)
    return found


def stored_places(store: Reader, settings: Collection[str]) -> dict[str, Literal["device", "cpu"]]:
    """By the fingerprint of a setting where it was perturbed for networks on a GPU, in most of its evaluations.

    Args: settings: fingerprints; those that were not evaluated there are left out.
    """
    counts: dict[str, Counter[Literal["device", "cpu"]]] = defaultdict(Counter)
    for (_, setting, *_), numerics in stored_numerics(store, settings):
        if numerics.get("device") == "cuda":
            counts[setting]["cpu" if numerics.get(PERTURBED_ON) == "cpu" else "device"] += 1
    return {setting: found.most_common(1)[0][0] for setting, found in counts.items()}


def stored_numerics(store: Reader, settings: Collection[str]) -> Iterator[tuple[tuple[str, str, int, int], Numerics]]:
    """The numerics of evaluations on settings of which some is stored, each after (model, setting, fit and noise seed).

    Args: settings: fingerprints, as are those of models and settings that are returned.
    """
    mine = evaluations.c
    key = (model_versions.c.fingerprint, setting_versions.c.fingerprint, mine.fit_seed, mine.noise_seed)
    wanted = (
        select(*key, mine.numerics)
        .select_from(evaluations)
        .join(model_versions, mine.model_version_id == model_versions.c.id)
        .join(setting_versions, mine.setting_version_id == setting_versions.c.id)
        .where(mine.status.in_(("running", "complete")) & (mine.hidden == false()))
        .order_by(mine.id)
    )
    with store.reading() as connection:
        for some in pieces(sorted(settings)):
            of_some = wanted.where(setting_versions.c.fingerprint.in_(some))
            digests.check_evaluations(connection, of_some.with_only_columns(mine.id).order_by(None))
            for *found, numerics in connection.execute(of_some):
                yield tuple(found), numerics


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)
