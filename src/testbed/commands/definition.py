"""Actions of `db.py` that show one stored model or setting: its definition, what is known of it, and its results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from testbed.commands.action import Options, print_json, reading
from testbed.errors import UnknownNameError, suggestion
from testbed.store.evaluation import Evaluation
from testbed.store.views import StoredModel, StoredSetting


def show_model(options: Options) -> None:
    """Prints a model."""
    name = options["show_model"]
    with reading(options) as store:
        found = _named(store.list_models(), name, "model")
        cards = [_card(one, store.list_evaluations(model=name, label_space=one.label_space)) for one in found]
    _show(options, cards)


def show_setting(options: Options) -> None:
    """Prints a setting."""
    name = options["show_setting"]
    with reading(options) as store:
        found = _named(store.list_settings(), name, "eval-setting")
        cards = [_card(one, store.list_evaluations(setting=name)) for one in found]
    _show(options, cards)


def _named(known: Sequence[Any], name: str, kind: str) -> list[Any]:
    if found := [one for one in known if one.name == name]:
        return found
    hint = suggestion(name, (one.name for one in known)) or f"List what there is: python db.py --list-{kind}s-db"
    raise UnknownNameError(f"There is no {kind} '{name}' in the store. {hint}")


def _card(found: StoredModel | StoredSetting, evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """All that is stored of a definition, and a line for each evaluation of it, also of earlier versions."""
    from testbed.results.numerics import names_with_numerics

    names = names_with_numerics(evaluations)
    return {
        **asdict(found),
        "created_at": found.created_at.isoformat(),
        "evaluations": [
            {
                "model": one.model,
                "eval_setting": one.setting,
                "status": one.status,
                "is_stale": one.is_stale,
                "seed": max(one.fit_seed, one.noise_seed),
                "n": one.n,
                "num_draws": one.num_draws,
                "numerics": dict(one.numerics),
                "label": names[one.id],
                "top1": next((value.value for value in one.metrics() if value.name == "top1"), None),
            }
            for one in evaluations
        ],
    }


def _show(options: Options, cards: Sequence[Mapping[str, Any]]) -> None:
    if options["as_json"]:
        print_json(cards[0] if len(cards) == 1 else list(cards))
    else:
        print("\n\n".join(map(_text, cards)))


def _text(card: Mapping[str, Any]) -> str:
    lines = [f"{name}: {_value(value)}" for name, value in card.items() if name != "evaluations"]
    for one in card["evaluations"]:
        top1 = "" if one["top1"] is None else f", top-1 {one['top1']:.2f} %"
        stale = ", stale" if one["is_stale"] else ""
        lines.append(f"  {one['label']} on {one['eval_setting']}, seed {one['seed']}: {one['status']}{stale}{top1}")
    return "\n".join(lines)


def _value(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else str(value)
