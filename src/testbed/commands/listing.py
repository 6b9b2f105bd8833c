"""Actions of `db.py` that list names: what can be evaluated and what is stored."""

from __future__ import annotations

from testbed.cli import say
from testbed.commands.action import Options, definitions, print_names, reading
from testbed.definitions import plugin_paths
from testbed.names import Names, registry_names


def list_models_registry(options: Options) -> None:
    """Prints the models that can be evaluated."""
    print_names([*_registry_names(options).models, "local:PATH"])


def list_eval_settings_registry(options: Options) -> None:
    """Prints the settings that can be evaluated."""
    print_names(_registry_names(options).eval_settings)


def _registry_names(options: Options) -> Names:
    names = registry_names(plugin_paths(options["plugins"]))
    for failure in names.failures:
        say(f"Warning: {failure}")
    return names


def list_parent_eval_settings_registry(options: Options) -> None:
    """Prints the settings that others are compared with or stand for."""
    registry = definitions(options)
    parents = set()
    for name in registry.eval_setting_names():
        setting = registry.eval_setting(name)
        clean = setting.shift.clean_eval_setting if setting.shift else None
        parents |= {parent for parent in (setting.parent_eval_setting, clean) if parent is not None}
    print_names(sorted(parents))


def list_models_db(options: Options) -> None:
    """Prints the models in the store that were not removed."""
    with reading(options) as store:
        print_names(sorted({model.name for model in store.list_models() if not model.hidden}))


def list_eval_settings_db(options: Options) -> None:
    """Prints the settings in the store that were not removed."""
    with reading(options) as store:
        print_names(sorted({setting.name for setting in store.list_settings() if not setting.hidden}))
