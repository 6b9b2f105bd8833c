"""The headline numbers of settings, measured here and published: one row per model and setting, runs taken together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from testbed.metrics.intervals import clopper_pearson
from testbed.results.aggregates import severities_of
from testbed.results.declared import declared_sizes, sizes_of_parts
from testbed.results.point_numerics import numerics_words
from testbed.results.runs import accuracies_over_runs
from testbed.store.reader import Reader
from testbed.store.schema import metrics
from testbed.store.table import own_metrics, published_numbers

if TYPE_CHECKING:
    import pandas as pd

# Of every row. A text that there is not is empty here, so that rows can be told apart by all of them.
_COLUMNS = (
    "model", "label_space", "source", "protocol", "input_size", "numerics", "is_own", "eval_setting",
    "value", "ci_low", "ci_high", "n", "method", "flag",
)  # fmt: skip
_RUNS = ["model_fingerprint", "setting_fingerprint", "numerics_fingerprint"]  # what the runs of a model share
_NEIGHBOURHOODS = r"pm[1-9]\d*"  # pm-k accuracies over more than the frame itself
_WHOLE = 2e-3  # published percentages are rounded to single precision
_RANKS = {"top1": 1, "flip_rate": 2}  # of the metrics that may be a setting's headline, behind those


def own_rows(store: Reader, settings: Collection[str]) -> pd.DataFrame:
    """A row per model, setting and numerics of what was measured here: complete, and of today's definitions."""
    with store.reading() as connection:
        found = own_metrics(connection, settings, where=metrics.c.name.in_(_RANKS) | metrics.c.name.like("pm%"))
    rows = _headline(found[(found["status"] == "complete") & ~found["is_stale"].astype(bool)])
    rows = rows.assign(source="", protocol="", input_size=0, flag="", is_own=True)
    single = rows.drop_duplicates(_RUNS).copy()
    for _, runs in rows[rows.duplicated(_RUNS, keep=False)].groupby(_RUNS, sort=False):
        single.loc[runs.index[0], ["value", "ci_low", "ci_high", "n", "method"]] = _over_runs(store, runs)
    return _typed(single.assign(numerics=numerics_words(store, single)))


def published_rows(store: Reader, settings: Collection[str], sources: Sequence[str]) -> pd.DataFrame:
    """A row per model and setting of what the sources published, with the interval at the declared number of samples.

    Where others ran an attack or a corruption on part of the images, its numbers do not tell so. They are taken to be
    of the part where they are whole numbers of its images: one of an attack, those of all severities of a corruption.
    Of a tenth this is true by chance of one in ten attacks on all images, whose interval is then too wide, and of next
    to no corruption.

    Raises: UnknownNameError: nothing was imported under the name of a source.
    """
    together = {one for name in settings for one in (name, *severities_of(name))}
    with store.reading() as connection:
        rows = _headline(published_numbers(connection, sources, together))
    rows = rows.assign(label_space="", numerics="", is_own=False, input_size=rows["input_size"].fillna(0))
    rows["n"] = _num_samples(rows)
    rows = rows[rows["eval_setting"].isin(settings)].copy()
    is_known = rows["n"].notna()
    n = rows.loc[is_known, "n"].astype("float64")
    found = clopper_pearson((rows.loc[is_known, "value"] / 100 * n).clip(upper=n), n)
    rows.loc[is_known, "ci_low"], rows.loc[is_known, "ci_high"] = 100 * found.low, 100 * found.high
    rows["method"] = is_known.map({True: found.method, False: ""})
    return _typed(rows)


def _num_samples(rows: pd.DataFrame) -> pd.Series[Any]:
    """How many samples each published number is of, missing where no setting tells it."""
    settings = set(rows["eval_setting"])
    names = rows["eval_setting"].astype(object)
    whole, part = (names.map(sizes(settings)).astype("float64") for sizes in (declared_sizes, sizes_of_parts))
    right = rows["value"] / 100 * part
    siblings = {name: severities_of(name) or (name,) for name in settings}
    told = rows[["source", "model", "protocol", "input_size"]].assign(
        corruption=names.map({name: found[0] for name, found in siblings.items()}),
        num_severities=names.map({name: len(found) for name, found in siblings.items()}),
        is_whole=(right - right.round()).abs() < _WHOLE,
    )
    groups = told.groupby(["source", "model", "protocol", "input_size", "corruption"])["is_whole"]
    return whole.mask(groups.transform("sum") == told["num_severities"], part)


def _headline(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the metric of each setting that stands for it, where that has a value."""
    rank = rows["metric"].map(_RANKS).mask(rows["metric"].str.fullmatch(_NEIGHBOURHOODS), 0)
    rows = rows[rank.notna() & rows["value"].notna()].assign(rank=rank)
    return rows[rows["rank"] == rows.groupby("eval_setting")["rank"].transform("min")]


def _over_runs(store: Reader, runs: pd.DataFrame) -> list[Any]:
    """Value, bounds, n and method of several runs of a model on a setting."""
    evaluations = store.evaluations_by_id(runs["evaluation_id"].tolist())
    together = accuracies_over_runs([evaluations[one] for one in runs["evaluation_id"]]).get(runs["metric"].iloc[0])
    if together is None or together.value is None:
        return [runs["value"].mean(), None, None, runs["n"].iloc[0], f"mean of {len(runs)} runs"]
    return [together.value, together.ci_low, together.ci_high, together.n, together.method]


def _typed(rows: pd.DataFrame) -> pd.DataFrame:
    types = {"input_size": "Int64", "n": "Int64", "value": "float64", "ci_low": "float64", "ci_high": "float64"}
    return rows[list(_COLUMNS)].astype(types).reset_index(drop=True)
