"""The papers' figures as a list of what to draw, by what a store holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plotting.drawing.selection import Selection
from plotting.drawing.setting_columns import Known, known_settings, spaces_of
from plotting.drawing.stored import stored

from testbed.data.published import TIMM
from testbed.errors import TestbedError
from testbed.records import NORMS
from testbed.results.corruption_choice import IN_MEMORY, ON_DISK
from testbed.shift_pairs import SHIFT_PAIRS
from testbed.store.published import list_published_settings
from testbed.store.reader import Reader
from testbed.store.transfer import slug

SEPARATION = "separation"  # drawn by an action of db.py
OF_NOISE = ("accuracy_over_noise", "mscr_against_clean", "effect_of_k", "convergence")
OF_TRAINING_NOISE = ("accuracy_matrix", "accuracy_surface")
OF_CORRUPTIONS = ("corruption_heatmap", "corruption_curves")
METRICS = ("A_rel_c", "A_c", "q")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A figure to draw.

    Args:
        figure: name of the script.
        arguments: of the script.
        folder: below the one of all figures.
        settings: that it takes, for a command that evaluates them; empty where its own words name one.
        is_missing: why it cannot be drawn, where that is known before.
    """

    figure: str
    arguments: tuple[str, ...] = ()
    folder: str = ""
    settings: tuple[str, ...] = ()
    is_missing: str = ""

    @property
    def title(self) -> str:
        """The script with its arguments, for a message."""
        return " ".join([f"{self.figure}.py", *self.arguments])

    @property
    def source(self) -> str:
        """The published source whose models it shows; empty for figures that are not of one."""
        return dict(pairwise(self.arguments)).get("--with-published", "")

    @property
    def of_any_source(self) -> tuple[str, ...]:
        """What the figures of several sources have in common."""
        return (self.figure, *(given for given in self.arguments if given not in (self.source, "--with-published")))


_SYNTHETIC = ("imagenet-c.*", "greyscale", "stylized_imagenet")
_ATTACKS = ("pgd.*",)
_MEANS = {  # what an evaluation takes for a mean of settings
    "avg_corruptions": _SYNTHETIC,
    "avg_imagenet_c_on_disk": ("imagenet-c.*_on-disk",),
    "avg_imagenet_c_in_memory": ("imagenet-c.*_in-memory",),
    "avg_pgd": _ATTACKS,
}


def _pair(name: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    x, y = SHIFT_PAIRS[name].x, SHIFT_PAIRS[name].y
    return "plot_x_vs_y", (x, y), (x, *_MEANS.get(y, (y,)))


def _settings(*pairs: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(setting for name in pairs for setting in (SHIFT_PAIRS[name].x, SHIFT_PAIRS[name].y)))


_NATURAL = _settings("imagenetv2", "objectnet", "imagenet-sketch", "imagenet-r", "imagenet-a", "vid-robust")
_EFFECTIVE = (*_NATURAL, *_SYNTHETIC)
_OF_TIMM = _settings("imagenetv2", "imagenet-r", "imagenet-a", "imagenet-sketch")
# Script, its arguments, and the settings that it takes.
OF_MODELS = (
    ("natural_shifts", (), _NATURAL),
    *(_pair(name) for name in ("corruptions", "imagenet-c-on-disk", "imagenet-c-in-memory", "stylized", "pgd")),
    ("pm_k", (), _settings("vid-robust-pmk", "ytbb-robust-pmk")),
    ("subsampled", (), _settings("subsampled")),
    ("effective_against_corruptions", (), _EFFECTIVE),
    ("effective_against_corruptions", ("--against", "accuracy"), _EFFECTIVE),
    ("effective_against_pgd", (), (*_NATURAL, *_ATTACKS)),
    ("effective_against_pgd", ("--against", "accuracy"), (*_NATURAL, *_ATTACKS)),
    ("effective_pairs", (), _EFFECTIVE),
    ("relative_against_effective", (), _NATURAL),
    ("correlation_table", (), _EFFECTIVE),
    ("model_table", (), _EFFECTIVE),
)


_NOISE = "eval.py --models digits-resnet --eval-settings digits-mscr-linf"
_RUNS = f"eval.py --models random-forest --eval-settings digits-mscr-linf --seeds {' '.join(map(str, range(10)))}"
_TRAINING_NOISE = (
    "eval.py --models random-forest random-forest-noise-linf-0.1 random-forest-mscr-linf --eval-settings digits "
    "digits-noise-linf-0.1 digits-mscr-linf"
)
_CORRUPTIONS = "eval.py --models digits-resnet --eval-settings digits 'digits-c.*_in-memory'"
# By kind and figure, what to begin with where a store has nothing of that kind.
_FILLS = {
    "separations": {SEPARATION: "db.py --separation digits --out results/figures"},
    "noise": {
        **dict.fromkeys(OF_NOISE, _NOISE), "convergence": _RUNS, **dict.fromkeys(OF_TRAINING_NOISE, _TRAINING_NOISE),
    },
    "corruptions": dict.fromkeys(OF_CORRUPTIONS, _CORRUPTIONS),
    "timm": {"timm_shifts": "db.py --import-csv results-imagenet*.csv results-sketch.csv"},
    "grids": {"grid": _CORRUPTIONS},
}  # fmt: skip


def jobs_of(store: Reader, sources: Sequence[str]) -> dict[str, list[Job]]:
    """What can be drawn of a store and of published sources that it has, by kind."""
    return {
        "separations": _of_separations(store),
        "noise": _of_noise(store),
        "corruptions": _of_corruptions(store),
        "models": _of_models(sources),
        "timm": [Job(figure="timm_shifts", folder=TIMM, settings=_OF_TIMM)] if TIMM in sources else [],
        "grids": _of_grids(store, sources),
    }


def _of_noise(store: Reader) -> list[Job]:
    """The figures of every data set and noise of which the store has accuracies beside the clean ones."""
    return [job for selection in _selections(store) for job in _of_selection(store, selection)]


def _selections(store: Reader) -> list[Selection]:
    table = store.results()
    table = table[(table["metric"] == "mscr") & (table["status"] == "complete") & ~table["is_stale"].fillna(True)]
    found = table[["dataset", "shift_family", "norm", "n"]].dropna().drop_duplicates()
    known = {f"uniform-{norm}{suffix}": (norm, bool(suffix)) for norm in NORMS for suffix in ("", "-shared")}
    return [
        Selection(norm=known[family][0], is_shared=known[family][1], dataset=dataset, num_samples=int(n))
        for dataset, family, n in sorted(zip(found["dataset"], found["shift_family"], found["n"], strict=True))
        if family in known
    ]  # fmt: skip


def _of_selection(store: Reader, wanted: Selection) -> Iterator[Job]:
    size = str(wanted.num_samples)
    arguments = ("--dataset", str(wanted.dataset), "--norm", wanted.norm, *["--shared"] * wanted.is_shared)
    several = sum(one.dataset == wanted.dataset and one.suffix == wanted.suffix for one in _selections(store)) > 1
    folder = f"{size}-samples" if several else ""
    arguments = (*arguments, "--samples", size) if several else arguments
    for figure in OF_NOISE:
        yield Job(figure=figure, arguments=arguments, folder=folder)
    families = _families(store, wanted)
    for figure in OF_TRAINING_NOISE:
        for family in families:
            place = "/".join(filter(None, [folder, slug(family)]))
            yield Job(figure=figure, arguments=(*arguments, "--models", family, f"{family}-*"), folder=place)
        if not families:
            yield Job(figure=figure, arguments=arguments, is_missing=_no_family(store, wanted))


def _families(store: Reader, wanted: Selection) -> list[str]:
    """Models that were also fitted on this noise, by the name of the one that was not."""
    try:
        table = stored(store, wanted).table
    except TestbedError:  # whose words the figures of the noise repeat
        return []
    plain = sorted(set(table.loc[table["training_epsilon"] == 0, "model"]))
    noisy = set(table.loc[table["training_epsilon"] != 0, "model"])
    return [name for name in plain if any(one.startswith(f"{name}-") for one in noisy)]


def _no_family(store: Reader, wanted: Selection) -> str:
    fitted = f"random-forest-mscr-{wanted.suffix}"
    command = wanted.command(store.url, dataset=str(wanted.dataset), models=["random-forest", fitted])
    return f"No model that was fitted on this noise is stored beside the same without. Evaluate some: {command}"


def _of_corruptions(store: Reader) -> list[Job]:
    """The figures of every data set that was evaluated under common corruptions."""
    found = {
        (one.dataset, one.shift.family) for one in store.list_settings()
        if one.num_evaluations and one.shift and one.shift.family.startswith(IN_MEMORY)
    }  # fmt: skip
    datasets = sorted({dataset for dataset, _ in found})
    jobs = [Job(figure="corruption_sheet", arguments=("--dataset", dataset)) for dataset in datasets]
    for dataset, family in sorted(found):
        kind = ON_DISK if family.startswith(ON_DISK) else IN_MEMORY
        variant = family.removeprefix(kind).removeprefix("-")
        options = [*["--on-disk"] * (kind == ON_DISK), *(["--variant", variant] if variant else [])]
        jobs += [Job(figure=figure, arguments=("--dataset", dataset, *options, "--metric", metric))
                 for figure in OF_CORRUPTIONS for metric in METRICS]  # fmt: skip
    return jobs


def _of_separations(store: Reader) -> list[Job]:
    """The histogram of every separation that noise was drawn within: data set and norm."""
    found = {
        (one.dataset, one.shift.norm) for one in store.list_settings()
        if one.num_evaluations and one.shift and one.shift.norm in NORMS and one.spec.get("separation")
    }  # fmt: skip
    return [
        Job(figure=SEPARATION, arguments=("--dataset", dataset, "--norm", str(norm)))
        for dataset, norm in sorted(found, key=str)
    ]


def _of_grids(store: Reader, sources: Sequence[str]) -> list[Job]:
    """The grids of the store's own results, and those of each source, also aggregated where there are severities."""
    own = known_settings(store, ())
    jobs = _grids(own, (), "") if own else []
    for source in sources:
        with store.reading() as connection:
            names = set(list_published_settings(connection, [source]))
        theirs = [setting for setting in known_settings(store, [source]) if setting.name in names]
        for space, settings in spaces_of(theirs).items():
            jobs += _grids(settings, ("--with-published", source, "--label-space", space), slug(source))
    return jobs


def _grids(settings: Iterable[Known], arguments: tuple[str, ...], folder: str) -> list[Job]:
    has_severities = any(setting.shift and setting.shift.severity for setting in settings)
    kinds = [(), ("--aggregated",)] if has_severities else [()]
    return [Job(figure="grid", arguments=(*arguments, *kind), folder=folder) for kind in kinds]


def _of_models(sources: Iterable[str]) -> list[Job]:
    """The figures that set models beside each other, for each source by itself: nothing mixes protocols."""
    return [
        Job(figure=figure, arguments=(*arguments, "--with-published", source), folder=slug(source), settings=settings)
        for source in sources for figure, arguments, settings in OF_MODELS
    ]  # fmt: skip


def jobs_without(kinds: Collection[str], url: str) -> list[Job]:
    """The figures of the kinds that no store has anything of, each with a command that would change it.

    Args:
        kinds: of `jobs_of` that some store has.
        url: of the store to fill.
    """
    jobs = []
    for kind, figures in _FILLS.items():
        for figure, command in figures.items() if kind not in kinds else ():
            words = f"Nothing is stored that it shows. Begin with: python {command} --db-url {url}"
            jobs.append(Job(figure=figure, is_missing=words))
    if "models" not in kinds:
        jobs += [Job(figure=name, arguments=given, settings=settings) for name, given, settings in OF_MODELS]
    return jobs
