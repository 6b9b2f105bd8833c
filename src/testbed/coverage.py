"""What can be evaluated, in tables: the models, the benchmarks, and the settings that every data set has."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import takewhile

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting
from eval_settings.source_base import DataSource
from registry import ANY_LABEL_SPACE, Registry
from testbed.data.data_check import source_of
from testbed.family_names import family_names
from testbed.signatures import function_name

MANY = 6  # names with a common beginning that a cell lists one by one
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")
LIBRARIES = ("timm", "torchvision")
OPEN_MODELS = (  # families that list no names, and what every model has
    ("`hf-hub:OWNER/NAME@REVISION`", "any", "classifiers of timm's format on the Hugging Face hub"),
    ("`local:PATH`", "any", "your checkpoint, with `--arch`"),
    ("`MODEL-smoothed-SIGMA`", "any", "a model under randomized smoothing (Cohen et al. 2019)"),
    ("`MODEL-mscr-NORM`, `MODEL-noise-NORM-EPS`", "any", "a model that is fitted in every run, fitted on noisy copies"),
)


def models_table(registry: Registry) -> str:
    """The registered models by label space, and those of families."""
    spaces: dict[str, list[str]] = defaultdict(list)
    for name in registry.model_names():
        for space in registry.label_spaces(name):
            spaces[space].append(name)
    prefixes: dict[str, int] = defaultdict(int)
    for name in family_names(registry.model_families):
        prefixes[name.partition(":")[0]] += 1
    rows = [
        (_names(names), f"{len(names):,}", "fitted in every run" if space == ANY_LABEL_SPACE else f"classes of {space}")
        for space, names in sorted(spaces.items())
    ]
    for prefix, number in sorted(prefixes.items()):
        library = f"{prefix} {version(prefix)}" if prefix in LIBRARIES else prefix
        rows.append((f"`{prefix}:NAME`", f"{number:,}", f"published with {library}, with the weights' preprocessing"))
    return _table(("models", "number", "what"), [*rows, *OPEN_MODELS])


def benchmarks_table(registry: Registry) -> str:
    """The data sets that people publish, with their own settings: a row for each."""
    settings: dict[str, list[EvalSetting]] = defaultdict(list)
    sources: dict[str, DataSource] = {}
    for setting, dataset in _listed(registry):
        source = source_of(dataset, setting)
        if source is not None and not _is_made(registry, setting):
            settings[source.title].append(setting)
            sources[source.title] = source
    rows = [
        (
            f"[{_cell(source.title)}]({source.homepage})",
            _names({_pattern(setting) for setting in settings[title]}),
            f"{len(settings[title]):,}",
            ", ".join(f"{split} {number:,}" for split, number in source.num_samples.items()),
            _metrics(settings[title]),
            _cell(source.licence),
        )
        for title, source in sorted(sources.items(), key=lambda item: item[0].casefold())
    ]
    return _table(("benchmark", "settings", "number", "samples", "metrics", "terms"), rows)


def made_settings_table(registry: Registry) -> str:
    """The settings that are made for every data set `X`, or for several: a row for each kind of name."""
    settings: dict[str, list[EvalSetting]] = defaultdict(list)
    for setting, dataset in _listed(registry):
        if _is_made(registry, setting):
            settings[_pattern(setting, dataset)].append(setting)
    rows = [
        (f"`{pattern}`", f"{len(found):,}", _datasets(registry, found), _metrics(found))
        for pattern, found in sorted(settings.items())
    ]
    return _table(("settings", "listed", "X", "metrics"), rows)


def _listed(registry: Registry) -> Iterator[tuple[EvalSetting, Dataset]]:
    """The settings of data sets that somebody publishes."""
    for name in registry.eval_setting_names():
        setting = registry.eval_setting(name)
        dataset = registry.datasets.get(setting.dataset.name or "")
        if dataset is not None and dataset.source is not None:
            yield setting, dataset


def _is_made(registry: Registry, setting: EvalSetting) -> bool:
    """Whether it is made of a data set: neither a benchmark of its own, nor published copies, nor the set as it is."""
    is_itself = setting.name == setting.dataset.name
    return registry.is_derived(setting.name) and setting.dataset.corrupted is None and not is_itself


def _pattern(setting: EvalSetting, dataset: Dataset | None = None) -> str:
    """A setting's name with words for what differs between settings of its kind; `X` for its data set, if given."""
    name, shift = setting.name, setting.shift
    if dataset is not None:
        name = "X" + name.removeprefix(dataset.name)
    if shift is None:
        return re.sub(r"@\w+$", "@SIZE", name)
    if shift.norm is not None:
        name = re.sub(rf"-{shift.norm}-[\d./]+", f"-{shift.norm}-EPS", name)
        return name.replace(f"-{shift.norm}", "-NORM")
    if shift.severity is not None:
        return name.replace(f".{shift.name}.{shift.severity}_", ".NAME.SEVERITY_")
    return name.replace(f".{shift.name}_", ".NAME_") if setting.dataset.corrupted else name


def _datasets(registry: Registry, settings: Sequence[EvalSetting]) -> str:
    """What `X` may be."""
    names = {str(setting.dataset.name) for setting in settings}
    deriving = [dataset for dataset in registry.datasets.values() if dataset.derives and dataset.source]
    images = [dataset for dataset in deriving if dataset.domain == "pixels"]
    for known, words in ((deriving, "data sets"), (images, "sets of images")):
        if names == {dataset.name for dataset in known}:
            return f"all {len(names)} {words}"
    return ", ".join(f"`{name}`" for name in sorted(names))


def _metrics(settings: Sequence[EvalSetting]) -> str:
    """What is computed beside the accuracies that all settings have."""
    own = {
        function_name(setting.metrics_fn).replace("_", " ") for setting in settings if setting.metrics_fn is not None
    }
    compared = ["MSCR, loss, recovery"] if any(setting.shift for setting in settings) else []
    return "; ".join(["accuracies", *sorted(own), *compared])


def _names(names: Iterable[str]) -> str:
    """Names for a cell: those that differ in numbers alone as one with N, and many as what they begin with."""
    names = sorted(names)
    alike: dict[tuple[str, ...], list[list[str]]] = defaultdict(list)
    for name in names:
        parts = _NUMBER.split(name)
        alike[tuple(parts[::2])].append(parts)
    shown = [_joined(group) for group in alike.values()]
    if len(shown) > MANY and (beginning := _common(names[0], names[-1])):
        shown = [f"{beginning}NAME"]
    return ", ".join(f"`{name}`" for name in shown)


def _common(first: str, last: str) -> str:
    """What both begin with; of the first and the last of sorted names, what all begin with."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in pairs)


def _joined(group: Sequence[Sequence[str]]) -> str:
    """Names that have been split at their numbers, as one; N for numbers that differ."""
    return "".join(found[0] if len(set(found)) == 1 else "N" for found in zip(*group, strict=True))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
