"""The settings of a site: what each is, as the store, the registry and the means of several say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plotting.pages.names import file_stem

from testbed.definitions import Sources, load_definitions
from testbed.records import NORMS, Shift
from testbed.results.aggregates import parts_of
from testbed.shift_pairs import SHIFT_PAIRS
from testbed.store.reader import Reader
from testbed.store.views import StoredSetting

if TYPE_CHECKING:
    import pandas as pd

CLEAN, NATURAL, NOISE, ATTACK, CORRUPTION, MEAN, OTHER = (
    "clean", "natural shift", "noise", "attack", "corruption", "mean of several", "other",
)  # fmt: skip
GROUPS = (CLEAN, NATURAL, NOISE, CORRUPTION, ATTACK, MEAN, OTHER)
_SHIFTED = {pair.y for pair in SHIFT_PAIRS.values()}
_LOCAL = ("file", "put_in", "found_in", "is_there")  # of this machine, and nothing to read elsewhere


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting as a site shows it.

    Args:
        name: of the setting, or of a mean over several.
        file: of its page, relative to the site's root.
        group: one of GROUPS.
        card: what the registry knows of it (`testbed.commands.setting_card`), without what belongs to one machine.
        spec: its definition as the store keeps it; empty where none of our own evaluations is on it.
        shift: how it departs from its clean parent.
        n: images it evaluates; None where that is not known.
        parts: of a mean, the settings.
        num_models: that have a point on it.
    """

    name: str
    file: str
    group: str
    card: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    shift: Shift | None = None
    n: int | None = None
    parts: Sequence[str] = ()
    num_models: int = 0

    @property
    def description(self) -> str:
        """What it is, in a line."""
        if self.parts:
            return f"the plain mean of {len(self.parts)} settings, for models that have all of them"
        return str(self.card.get("description") or "")

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return self.description or self.name

    @property
    def is_corruption(self) -> bool:
        """Whether it is one corruption at one severity, or without one."""
        return self.group == CORRUPTION

    @property
    def clean(self) -> str:
        """Name of its clean parent; '' for none."""
        return self.shift.clean_eval_setting if self.shift else ""


def described(store: Reader, names: Sequence[str], points: pd.DataFrame) -> Sequence[Setting]:
    """The settings of these names, in the order of GROUPS and then by name."""
    from registry import registry

    load_definitions(Sources())
    stored = {setting.name: setting for setting in store.list_settings()}
    counts = points["eval_setting"].value_counts().to_dict()
    sizes = points.groupby("eval_setting")["n"].max().to_dict()
    found = []
    for name in names:
        own, parts, size = stored.get(name), () if name in stored else parts_of(name), sizes.get(name)
        card, shift = ({}, None) if parts else _known(registry, name)
        shift = own.shift if own else shift
        n = own.n if own else card.get("n")
        if n is None and size is not None and size == size:
            n = int(size)
        found.append(Setting(
            name=name, file=f"setting/{file_stem(name)}.html", card=card, spec=own.spec if own else {}, shift=shift,
            group=MEAN if parts else _group(name, shift, own), n=n, parts=parts, num_models=int(counts.get(name, 0)),
        ))  # fmt: skip
    return sorted(found, key=lambda setting: (GROUPS.index(setting.group), setting.name))


def _known(registry: Any, name: str) -> tuple[dict[str, Any], Shift | None]:
    """What the registry knows of a setting; nothing where it does not know it."""
    from testbed.commands.setting_card import setting_card

    if (setting := registry.find_eval_setting(name)) is None:
        return {}, None
    card = setting_card(registry, setting, data_root=None)
    source = registry.setting_source(name)
    place = f"{source.parent.name}/{source.name}" if source else ""
    places = _places(registry, setting)
    definition = {key: value for key, value in card["definition"].items() if key not in _LOCAL}
    kept = {key: value for key, value in card.items() if key not in _LOCAL}
    return {**kept, "definition": definition, "defined_in": place, "places": places}, setting.shift


def _places(registry: Any, setting: Any) -> list[str]:
    """Folders that its data may lie in, relative to the data root."""
    from testbed.data.data_check import source_of

    dataset = registry.datasets.get(setting.dataset.name or "")
    source = None if dataset is None else source_of(dataset, setting)
    return [] if source is None else list(source.places)


def _group(name: str, shift: Shift | None, own: StoredSetting | None) -> str:
    if shift is None:
        known = own is not None or name in {pair.x for pair in SHIFT_PAIRS.values()}
        return NATURAL if name in _SHIFTED else CLEAN if known else OTHER
    if shift.is_attack:
        return ATTACK
    if shift.family.startswith("common-corruption"):
        return CORRUPTION
    return NOISE if shift.norm in (*NORMS, "l0") or shift.epsilon is not None else NATURAL
