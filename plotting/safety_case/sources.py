"""Where data sets come from, as their definitions say it."""

from __future__ import annotations

from collections.abc import Mapping

from registry import registry
from testbed.definitions import Sources, load_definitions, plugin_paths


def data_sources() -> dict[str, Mapping[str, str]]:
    """By name of a data set its title, address, licence and citation; those that say it."""
    load_definitions(Sources(plugins=plugin_paths(())))
    found: dict[str, Mapping[str, str]] = {}
    for name, dataset in registry.datasets.items():
        if (source := dataset.source) is not None:
            facts = {
                "title": source.title, "address": source.homepage, "licence": source.licence,
                "citation": source.citation, "how to get it": source.get,
            }  # fmt: skip
            found[name] = {fact: text for fact, text in facts.items() if text}
    return found
