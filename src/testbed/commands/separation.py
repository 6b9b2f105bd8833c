"""The action of `db.py` that finds, stores, shows and draws the minimal class separation of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import StandardDataset
from testbed.cli import say
from testbed.commands.action import Options, definitions, print_json, store_url
from testbed.cores import available_cores
from testbed.engine.data import Data
from testbed.engine.separations import Searched, find_separation, low_level, searched_samples
from testbed.paths import cache_root
from testbed.report import NORM_SYMBOLS
from testbed.store.store import Store
from testbed.store.views import StoredSeparation

SHOWN = 10  # pairs of a list
QUANTILES = {"0.01": "1 %", "0.25": "25 %", "0.5": "50 %", "0.75": "75 %", "0.99": "99 %", "1.0": "100 %"}


def separation(options: Options) -> None:
    """Prints the separation in each norm that is asked for, from the store or found and stored; draws it with `--out`.

    Raises: DataError: the samples have no separation. TestbedError: figures cannot be drawn here.
    """
    if options["out"] is not None:
        _check_drawing()
    definitions(options)
    shown: list[dict[str, Any]] = []
    with Store.open(store_url(options)) as store:
        data = Data(store=store, data_root=options["data_root"], cache_root=cache_root(), threads=available_cores(),
                    warn=say)  # fmt: skip
        searched = searched_samples(data, _dataset(options, data), options["splits"])
        for norm in dict.fromkeys(options["norm"] or ("linf",)):
            excludes = options["exclude_conflicting"]
            found = find_separation(data, searched, norm, exclude_conflicting=excludes, with_detail=True)
            files = [] if options["out"] is None else _draw(found, searched, options["out"])
            if not options["as_json"]:
                print(*([""] if shown else []), _text(found, searched, files), sep="\n", flush=True)
            shown.append(_object(found, searched, files))
            _warn(found, searched)
    if options["as_json"]:
        print_json(shown)


def _dataset(options: Options, data: Data) -> Dataset:
    dataset = data.dataset(StandardDataset(name=options["separation"]))
    size = options["canonical_size"]
    return dataset if size is None else replace(dataset, canonical_size=size)


def _object(found: StoredSeparation, searched: Searched, files: Iterable[Path]) -> dict[str, Any]:
    return {
        "dataset": searched.dataset.name,
        "splits": list(searched.splits),
        "space": searched.space,
        **{name: value for name, value in asdict(found).items() if name != "detail"},
        "epsilon_min": found.epsilon_min,
        "pair_classes": [searched.classes[name] for name in found.pair_ids],
        **found.detail,
        "files": [str(path) for path in files],
    }


def _text(found: StoredSeparation, searched: Searched, files: Sequence[Path]) -> str:
    """The separation for people: a line for each thing there is to know."""
    detail = found.detail
    quantiles = (f"{text} {_short(detail['quantiles'][name], found, searched)}" for name, text in QUANTILES.items())
    rows = {
        "minimum": _distance(found, searched),
        "epsilon_min": f"{_half(found, searched)}, half of it",
        "attained by": _pairs(detail["pairs"], detail["num_pairs"], searched),
        "between": ", ".join(_between(each, found, searched) for each in detail["between"]),
        "distribution": f"{', '.join(quantiles)}; mean {detail['mean']:.6g}",
        "duplicates": _duplicates(detail["duplicates"], searched),
        "witness": _witness(detail["witness"], searched),
        "figures": ", ".join(map(str, files)),
    }
    if len(searched.splits) == 1:
        del rows["between"]
    lines = [f"  {name:13} {text}" for name, text in rows.items() if text]
    return "\n".join([f"{_title(found, searched)}:", *lines])


def _title(found: StoredSeparation, searched: Searched) -> str:
    left_out = found.detail["num_excluded"]
    return (
        f"Minimal class separation of {searched.dataset.name} in {NORM_SYMBOLS[found.norm]} ({searched.space}), "
        f"{found.num_points:,} samples ({' + '.join(searched.splits)})"
        f"{f' without {left_out:,} that equal one of another class' if left_out else ''}"
    )


def _distance(found: StoredSeparation, searched: Searched) -> str:
    """The minimum; that of 8-bit images in whole grey levels, of which L2 takes a root."""
    if found.min_distance == 0:
        return "0, of equal samples of different class"
    if not searched.is_pixels:
        return repr(found.min_distance)
    levels = found.min_distance * 255
    exact = f"√{round(levels**2)}" if found.norm == "l2" else f"{round(levels)}"
    return f"{exact}/255 = {found.min_distance:.6f}"


def _half(found: StoredSeparation, searched: Searched) -> str:
    return f"{found.epsilon_min:.6f}" if searched.is_pixels else repr(found.epsilon_min)


def _short(distance: float, found: StoredSeparation, searched: Searched) -> str:
    return f"{round(distance * 255)}/255" if searched.is_pixels and found.norm != "l2" else f"{distance:.6g}"


def _pairs(pairs: Sequence[Sequence[str]], count: int, searched: Searched) -> str:
    shown = [f"{_sample(first, searched)} and {_sample(second, searched)}" for first, second in pairs[:SHOWN]]
    more = f"; and {count - len(shown):,} more" if count > len(shown) else ""
    return f"{count:,} pair{'s' if count > 1 else ''}: {'; '.join(shown)}{more}"


def _sample(name: str, searched: Searched) -> str:
    return f"{name} ('{searched.classes[name]}')"


def _between(each: Mapping[str, Any], found: StoredSeparation, searched: Searched) -> str:
    distance = each["min_distance"]
    return f"{'-'.join(each['splits'])} {'one class only' if distance is None else _short(distance, found, searched)}"


def _duplicates(duplicates: Mapping[str, Any], searched: Searched) -> str:
    if not duplicates["num_duplicates"]:
        return "none"
    equal = f"{duplicates['num_duplicates']:,} equal an earlier sample"
    if not duplicates["num_conflicting"]:
        return f"{equal}, all of the same class"
    pairs = _pairs(duplicates["conflicting_pairs"], duplicates["num_conflicting_pairs"], searched)
    return f"{equal}; {duplicates['num_conflicting']:,} samples conflict with an equal one of another class, {pairs}"


def _witness(witness: Mapping[str, Any], searched: Searched) -> str:
    wrong = witness["num_points"] - witness["num_right"]
    if not wrong:
        return f"the nearest neighbour is right for all {witness['num_points']} noisy samples within epsilon_min"
    pairs = _pairs(witness["broken_pairs"], witness["num_broken_pairs"], searched)
    return f"the nearest neighbour is wrong for {wrong} of {witness['num_points']} noisy samples: look at {pairs}"


def _warn(found: StoredSeparation, searched: Searched) -> None:
    name, norm = searched.dataset.name, found.norm
    if found.min_distance == 0:
        say(
            f"Warning: equal samples of '{name}' bear different labels, so {name}-mscr-{norm} is refused. Relabel or "
            f"remove them; --exclude-conflicting gives the separation of the others, which is the noise level of "
            f"{name}-mscr-{norm}-without-conflicting."
        )
    elif line := low_level(found, searched):
        say(f"Warning: {line}")


def _check_drawing() -> None:
    """Raises a TestbedError where figures cannot be drawn, before anything is searched."""
    from plotting.drawing.style import new_figure

    with new_figure(height=1):
        pass


def _draw(found: StoredSeparation, searched: Searched, out: Path) -> list[Path]:
    from plotting.drawing.separation import draw_separation

    symbol, unit = NORM_SYMBOLS[found.norm], "pixels in [0, 1]" if searched.is_pixels else "units of the data"
    caption = (
        f"{_title(found, searched)}: distance of every sample from the nearest one of another class. The smallest is "
        f"{_distance(found, searched)}, of which ε$_{{min}}$ is half. All samples are searched: no interval."
    )
    name = "-".join(["separation", searched.dataset.name.replace("/", "-"), *searched.splits, found.norm])
    without = "-without-conflicting" if found.detail["num_excluded"] else ""
    return draw_separation(found, out / f"{name}{without}", label=f"{symbol} distance ({unit})", caption=caption)
