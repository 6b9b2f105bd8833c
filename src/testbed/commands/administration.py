"""Actions of `db.py` that change what the store holds: add, rename, remove, restore, purge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed.cli import say
from testbed.commands.action import Options, definitions, reading, writing
from testbed.errors import DefinitionError, TestbedError
from testbed.store import admin, rename
from testbed.store.admin import Kind, Removed
from testbed.store.store import Store


def add_model(options: Options) -> None:
    """Puts the definitions of models."""
    definitions(options)
    from testbed.engine.register import register_models

    with writing(options, "--add-model", create=True) as store:
        register_models(store, options["add_model"])
    say(f"Added {', '.join(options['add_model'])}.")


def add_eval_setting(options: Options) -> None:
    """Puts the definitions of settings, with their data sets."""
    definitions(options)
    from testbed.engine.register import register_settings

    with writing(options, "--add-eval-setting", create=True) as store:
        register_settings(store, options["add_eval_setting"], data_of(options, store))
    say(f"Added {', '.join(options['add_eval_setting'])}.")


def rename_model(options: Options) -> None:
    """Renames a model."""
    old, new = options["rename_model"]
    names = definitions(options).model_names()
    with writing(options, "--rename-model") as store:
        _check_rename("model", old, new, names)
        rename.rename_model(store, old, new)
    _tell_rename("model", old, new, names)


def rename_eval_setting(options: Options) -> None:
    """Renames a setting."""
    old, new = options["rename_eval_setting"]
    names = definitions(options).eval_setting_names()
    with writing(options, "--rename-eval-setting") as store:
        _check_rename("eval-setting", old, new, names)
        rename.rename_setting(store, old, new)
    _tell_rename("eval-setting", old, new, names)


def remove_model(options: Options) -> None:
    """Hides models with their evaluations."""
    _remove(options, "remove_model", "model")


def remove_eval_setting(options: Options) -> None:
    """Hides settings with their evaluations."""
    _remove(options, "remove_eval_setting", "eval-setting")


def remove_evaluation(options: Options) -> None:
    """Hides the evaluations of a model on a setting."""
    model, setting = options["remove_evaluation"]
    with writing(options, "--remove-evaluation") as store:
        count = admin.remove_evaluations(store, model=model, setting=setting)
    say(f"Removed {count} evaluation(s) of {model} on {setting}. --restore {model} brings them back.")


def restore(options: Options) -> None:
    """Shows again what was removed."""
    with writing(options, "--restore") as store:
        for name in options["restore"]:
            admin.restore(store, name)
            say(f"Restored {name}.")


def purge(options: Options) -> None:
    """Deletes for good what was removed. Raises: TestbedError: without --override; it says what would be deleted."""
    if not options["override"]:
        with reading(options) as store:
            found = admin.removed(store)
        raise TestbedError(f"--purge would delete {_removed_text(found)} for good. Give --override as well to do it.")
    with writing(options, "--purge") as store:
        say(f"Deleted {_removed_text(admin.purge(store))}. --compact gives the space back to the disk.")


def data_of(options: Options, store: Store, *, is_kept: bool = True) -> Any:
    """The data that settings are on, of which separations that are computed are stored if `is_kept`."""
    from testbed.engine.data import Data
    from testbed.paths import cache_root

    root: Path | None = options["data_root"]
    return Data(store=store, data_root=root, cache_root=cache_root(), threads=1, warn=say, is_kept=is_kept)


def _remove(options: Options, option: str, kind: Kind) -> None:
    with writing(options, f"--{option.replace('_', '-')}") as store:
        admin.remove(store, kind, *options[option])
    for name in options[option]:
        say(f"Removed {kind} {name} and its evaluations. --restore {name} brings them back.")


def _check_rename(kind: str, old: str, new: str, names: list[str]) -> None:
    """A new name that the registry gives to another definition would claim this one's results for that."""
    if old in names and new in names:
        raise DefinitionError(
            f"The registry has a {kind} '{old}' and another '{new}': results of one would be taken for those of the "
            "other. Choose a name that is not registered, or rename the definition first."
        )


def _tell_rename(kind: str, old: str, new: str, names: list[str]) -> None:
    say(f"Renamed {kind} {old} to {new}.")
    if old in names:
        say(f"Notice: its definition is still named {old}; evaluated again, it makes results of its own.")


def _removed_text(found: Removed) -> str:
    names = [f"{len(found.models)} model(s)", f"{len(found.eval_settings)} setting(s)"]
    return f"{', '.join(names)} and {found.num_evaluations} evaluation(s), {found.num_bytes:,} bytes of results"
