"""Numerics that tell evaluations of one model apart, where a table would mix them otherwise."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from testbed.results.numerics import PERTURBED_ON, Numerics, arithmetic_key, arithmetic_words, other_facts
from testbed.store.reader import Reader
from testbed.store.schema import evaluations

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str]  # a model and its label space

_PRECISION = ("dtype", "tf32")  # results of two precisions are never one model's


def numerics_words(store: Reader, rows: pd.DataFrame) -> list[str]:
    """For each row what its numerics are, in words; empty for a model that has no other ones in the table.

    Precisions are always told apart. What else differs, such as the device, tells two entries only where a model was
    evaluated on one setting with both: else a clean accuracy of one machine could not be set beside a shifted one of
    another.

    Args: rows: with `model`, `label_space`, `eval_setting` and `numerics_fingerprint`.
    """
    model = ["model", "label_space"]
    if not rows[[*model, "numerics_fingerprint"]].drop_duplicates().duplicated(model).any():
        return [""] * len(rows)
    known = _numerics(store)
    settings: dict[Key, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    columns = [*model, "numerics_fingerprint", "eval_setting"]
    keys = list(rows[columns].itertuples(index=False, name=None))
    for name, space, one, setting in keys:
        settings[name, space][one].add(setting)
    words = {
        key: _words({one: known[one] for one in found}, found) for key, found in settings.items() if len(found) > 1
    }
    return [words.get((name, space), {}).get(one, "") for name, space, one, _ in keys]


def _words(found: Mapping[str, Numerics], settings: Mapping[str, set[str]]) -> dict[str, str]:
    """By fingerprint the words of numerics of one model.

    Args: settings: by fingerprint, those that were evaluated so.
    """
    for key_of in (_precision, arithmetic_key, _network, _all):
        groups: dict[str, list[str]] = defaultdict(list)
        for one, numerics in found.items():
            groups[key_of(numerics)].append(one)
        if all(_is_disjoint([settings[one] for one in group]) for group in groups.values()):
            break
    firsts = {key: found[group[0]] for key, group in groups.items()}
    texts = {key: _text(numerics, list(firsts.values()), key_of) for key, numerics in firsts.items()}
    if len(groups) == 1:
        texts = dict.fromkeys(texts, "")
    return {one: texts[key] for key, group in groups.items() for one in group}


def _text(numerics: Numerics, others: Sequence[Numerics], key_of: Callable[[Numerics], str]) -> str:
    if key_of is _precision:
        return arithmetic_words({name: numerics[name] for name in _PRECISION if name in numerics})
    return ", ".join(filter(None, [arithmetic_words(numerics), *other_facts(numerics, others)]))


def _is_disjoint(sets: Sequence[set[str]]) -> bool:
    return len(set().union(*sets)) == sum(map(len, sets))


def _precision(numerics: Numerics) -> str:
    return json.dumps([numerics.get(name) or False for name in _PRECISION])


def _network(numerics: Numerics) -> str:
    return _all({name: value for name, value in numerics.items() if name != PERTURBED_ON})


def _all(numerics: Numerics) -> str:
    return json.dumps(dict(numerics), sort_keys=True)


def _numerics(store: Reader) -> dict[str, Numerics]:
    """All numerics that are stored, by their fingerprints."""
    mine = evaluations.c
    first = select(func.min(mine.id)).group_by(mine.numerics_fingerprint)
    wanted = select(mine.numerics_fingerprint, mine.numerics).where(mine.id.in_(first))
    with store.reading() as connection:
        return dict(map(tuple, connection.execute(wanted)))
