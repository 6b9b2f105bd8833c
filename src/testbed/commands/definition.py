"""Actions of `db.py` that show one model or setting: its definition, what is known of it, and its results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from testbed.commands.action import Options, definitions, print_json, reading
from testbed.commands.places import DEFAULT_DATABASE
from testbed.errors import UnknownNameError
from testbed.store.evaluation import Evaluation
from testbed.store.views import StoredModel, StoredSetting


def show_model(options: Options) -> None:
    """Prints a model: what the registry knows of it, and what is stored of it."""
    from testbed.commands.model_card import model_cards

    name, registry = options["show_model"], definitions(options)
    known, stored = model_cards(registry, name), _stored_models(options, name)
    if not known and not stored:
        registry.model(name)  # which says what there is instead
    spaces = dict.fromkeys((*known, *stored))
    _show(options, [{**known.get(space, {}), **stored.get(space, {"evaluations": []})} for space in spaces])


def _stored_models(options: Options, name: str) -> dict[str, dict[str, Any]]:
    """By label space, the cards of stored models of a name; none where there is no database, and none was named."""
    if not _has_database(options):
        return {}
    with reading(options) as store:
        found = [one for one in store.list_models() if one.name == name]
        return {
            one.label_space: _card(one, store.list_evaluations(model=name, label_space=one.label_space))
            for one in found
        }


def show_setting(options: Options) -> None:
    """Prints a setting: what the registry knows of it and its data, and what is stored of it."""
    from testbed.commands.setting_card import setting_card

    name, registry = options["show_setting"], definitions(options)
    stored = _stored_settings(options, name)
    try:
        known = setting_card(registry, registry.eval_setting(name), data_root=options["data_root"])
    except UnknownNameError:
        if not stored:
            raise
        known = {}
    _show(options, [{**known, **card} for card in stored] or [{**known, "evaluations": []}])


def _stored_settings(options: Options, name: str) -> list[dict[str, Any]]:
    """The cards of stored settings of a name; none where there is no database, and none was named."""
    if not _has_database(options):
        return []
    with reading(options) as store:
        found = [one for one in store.list_settings() if one.name == name]
        return [_card(one, store.list_evaluations(setting=name)) for one in found]


def _has_database(options: Options) -> bool:
    return bool(options["logdir"] or options["db_url"] or DEFAULT_DATABASE.exists())


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
    told = {name: value for name, value in card.items() if name != "evaluations" and value not in (None, "", [], {})}
    lines = [f"{name}: {_value(value)}" for name, value in told.items()]
    for one in card["evaluations"]:
        top1 = "" if one["top1"] is None else f", top-1 {one['top1']:.2f} %"
        stale = ", stale" if one["is_stale"] else ""
        lines.append(f"  {one['label']} on {one['eval_setting']}, seed {one['seed']}: {one['status']}{stale}{top1}")
    return "\n".join(lines)


def _value(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else str(value)
