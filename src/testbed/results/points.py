"""Models on settings as points: what figures, tables and pages that set models side by side are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from testbed.errors import UnknownNameError, suggestion
from testbed.results.aggregates import TENTH, settings_of
from testbed.results.entries import with_entries
from testbed.results.model_facts import model_facts
from testbed.results.point_rows import own_rows, published_rows
from testbed.results.stored import is_named
from testbed.store.reader import Reader

if TYPE_CHECKING:
    import pandas as pd

# What tells one entry from another, and what is known of it.
ENTRY = (
    "entry", "model", "label_space", "source", "protocol", "input_size", "model_type", "family", "baseline", "is_own",
)  # fmt: skip
POINT = ("eval_setting", "value", "ci_low", "ci_high", "n", "method", "flag")
_NUMBERS = ["value", "ci_low", "ci_high"]


def model_points(
    store: Reader, settings: Sequence[str], *, sources: Sequence[str] = (), models: Sequence[str] = ()
) -> pd.DataFrame:
    """A row per model and setting: the columns of `ENTRY`, and then those of `POINT`.

    An entry is a model as it was measured or published in one way: its label is the model's name, and where that is not
    enough also the source, label space, input size, protocol or numerics. Own evaluations are the complete ones of
    today's definitions, all runs together. The number is a setting's headline: accuracy over whole neighbourhoods where
    it has that (pm-k), else top-1, else the flip rate. Values and bounds are percent, with n samples; those of
    published numbers are Clopper and Pearson's at the number of samples that the setting declares.

    The mean of several settings (see `testbed.results.aggregates`) needs all of them; where one lacks, the one on part
    of its images stands in, but never for a setting that is asked for itself. Its bounds are the means of theirs:
    no narrower than those of the mean however they depend on each other. Its n is the smallest of theirs.

    Args:
        settings: names of settings, and of means of several.
        sources: published numbers to add.
        models: names and globs of models or entries; all without any.
    Raises: UnknownNameError: nothing is stored of a setting, source or model.
    """
    import pandas as pd

    stored = stored_settings(store, sources)
    weights = {name: settings_of(name, stored) for name in dict.fromkeys(settings)}
    _check_settings(store, weights, stored)
    wanted = {one for name, parts in weights.items() for part in parts for one in _in_place_of(part, name)} & stored
    rows = with_entries(pd.concat([own_rows(store, wanted), published_rows(store, wanted, sources)], ignore_index=True))
    rows = _with_facts(store, _of_models(rows, models))
    places = rows.groupby("eval_setting").indices
    by_setting = {str(name): rows.iloc[there] for name, there in places.items()}
    found = [_of_setting(by_setting, name, parts) for name, parts in weights.items()]
    return pd.concat([rows.iloc[:0], *found], ignore_index=True)[[*ENTRY, *POINT]]


def side_by_side(points: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """A row per entry that has both: `ENTRY`, then x, x_low, x_high, x_n, y, y_low, y_high, y_n.

    Args:
        points: of `model_points`.
        x, y: settings, or means of several.
    """
    columns = [*_NUMBERS, "n"]
    names = {axis: [axis, f"{axis}_low", f"{axis}_high", f"{axis}_n"] for axis in "xy"}
    of_x = points.loc[points["eval_setting"] == x, [*ENTRY, *columns]].set_axis([*ENTRY, *names["x"]], axis=1)
    of_y = points.loc[points["eval_setting"] == y, ["entry", *columns]].set_axis(["entry", *names["y"]], axis=1)
    return of_x.merge(of_y, on="entry")


def stored_settings(store: Reader, sources: Sequence[str] = ()) -> set[str]:
    """Names of the settings that there are results of, measured or published by one of the sources."""
    from testbed.store.published import list_published_settings
    from testbed.store.queries import settings_with_results

    with store.reading() as connection:
        return {*settings_with_results(connection), *list_published_settings(connection, sources)}


def _check_settings(store: Reader, weights: Mapping[str, Mapping[str, float]], stored: Set[str]) -> None:
    """Raises: UnknownNameError: a setting is not stored, or one that a mean needs."""
    for name, parts in weights.items():
        missing = [part for part in parts if stored.isdisjoint(_in_place_of(part, name))]
        if missing and list(parts) == [name]:
            tenth = f"There is '{name}{TENTH}', on part of its images." if f"{name}{TENTH}" in stored else ""
            near = tenth or _publishers(store, name) or suggestion(name, stored)
            near = near or "db.py --list-eval-settings-db lists what was evaluated here."
            raise UnknownNameError(f"Nothing is stored of the setting '{name}'. {near}")
        if missing:
            raise UnknownNameError(
                f"'{name}' is the mean of {len(parts)} settings, but nothing is stored of {len(missing)} of them, such "
                f"as '{missing[0]}'. Evaluate them, or name another source of published numbers."
            )


def _in_place_of(part: str, name: str) -> tuple[str, ...]:
    """The settings that can be this part of what is asked for: itself, and in a mean the one on part of its images."""
    return (part,) if part == name else (part, f"{part}{TENTH}")


def _publishers(store: Reader, setting: str) -> str:
    """How to show what others published of a setting; nothing where nobody did."""
    from testbed.store.published import list_published_settings, list_sources

    with store.reading() as connection:
        names = [name for name in list_sources(connection) if setting in list_published_settings(connection, [name])]
    return f"It was published by {' and '.join(names)}: add --with-published {' '.join(names)}." if names else ""


def _of_models(rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    if not models:
        return rows
    for pattern in models:
        if not any(is_named(name, [pattern]) for name in {*rows["model"], *rows["entry"]}):
            near = suggestion(pattern, {*rows["model"], *rows["entry"]})
            raise UnknownNameError(f"Nothing is stored of the model '{pattern}' on these settings. {near}".rstrip())
    names = zip(rows["model"], rows["entry"], strict=True)
    return rows[[is_named(model, models) or is_named(entry, models) for model, entry in names]]


def _with_facts(store: Reader, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with type, family and baseline of their models."""
    import pandas as pd

    facts = model_facts(store)
    keys = rows[["entry", "model", "label_space", "source"]].drop_duplicates("entry")
    columns = zip(keys["model"], keys["label_space"], keys["source"], strict=True)
    known = [facts.of(model, label_space=space or None, source=source or None) for model, space, source in columns]
    told = {
        name: pd.array([getattr(one, name) for one in known], "string") for name in ("model_type", "family", "baseline")
    }
    found = rows.merge(keys[["entry"]].assign(**told), on="entry")
    texts = ["entry", "model", "label_space", "source", "protocol", "eval_setting", "method", "flag"]
    found[texts] = found[texts].astype("string").replace("", pd.NA)
    return found.assign(input_size=found["input_size"].mask(found["input_size"] == 0))


def _of_setting(by_setting: Mapping[str, pd.DataFrame], name: str, weights: Mapping[str, float]) -> pd.DataFrame | None:
    """The points of one setting, or of the mean of several; None where there is none."""
    if list(weights) == [name]:
        return by_setting.get(name)
    parts = [
        by_setting[one].assign(eval_setting=part)
        for ending in ("", TENTH)
        for part in weights
        if (one := f"{part}{ending}") in by_setting
    ]
    return _mean(parts, name, weights) if parts else None


def _mean(rows: Sequence[pd.DataFrame], name: str, weights: Mapping[str, float]) -> pd.DataFrame:
    """Args: rows: of the parts, and then of what stands in for them."""
    import pandas as pd

    parts = pd.concat(rows).drop_duplicates(["entry", "eval_setting"])
    order = dict.fromkeys(parts["entry"])
    has_all = parts.groupby("entry")["eval_setting"].transform("size") == len(weights)
    parts = parts[has_all].sort_values(["entry", "eval_setting"], kind="stable")  # sums depend on their order
    by_entry = parts[_NUMBERS].mul(parts["eval_setting"].map(dict(weights)), axis=0).groupby(parts["entry"])
    found = parts.drop_duplicates("entry").set_index("entry")
    found[_NUMBERS] = by_entry.sum(min_count=len(weights))
    found["n"] = parts.groupby("entry")["n"].min()
    found["flag"] = parts.groupby("entry")["flag"].max()
    found = found.assign(eval_setting=name, method=f"means of the bounds of {len(weights)} settings")
    return found.reindex([entry for entry in order if entry in found.index]).reset_index()
