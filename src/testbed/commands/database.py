"""What stands behind `db.py`: its actions, in the order in which they run."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from testbed.commands.action import Action

# By the option that asks for it, the module whose function of that name does it, imported when it is asked for: a
# listing waits for no database. The order is that of the options in `db.py`, as a test sees to: what changes the store,
# what computes from it, what shows it, what leaves it.
ACTIONS: dict[str, str] = {
    "upgrade": "maintenance",
    "release_lock": "maintenance",
    "merge": "exchange",
    "add_model": "administration",
    "add_eval_setting": "administration",
    "import_logits": "exchange",
    "import_csv": "exchange",
    "rename_model": "administration",
    "rename_eval_setting": "administration",
    "remove_model": "administration",
    "remove_eval_setting": "administration",
    "remove_evaluation": "administration",
    "restore": "administration",
    "purge": "administration",
    "verify": "maintenance",
    "recompute": "inspection",
    "separation": "separation",
    "mscr": "mscr",
    "corruption_report": "corruption",
    "precision_report": "precision_report",
    "effective_robustness": "effective",
    "compare": "compare",
    "claim": "claim",
    "list_models_registry": "listing",
    "list_eval_settings_registry": "listing",
    "list_parent_eval_settings_registry": "listing",
    "list_models_db": "listing",
    "list_eval_settings_db": "listing",
    "diff_registry": "overview",
    "status": "overview",
    "show_model": "definition",
    "show_setting": "definition",
    "check_data": "data_check",
    "print_eval": "inspection",
    "save_logits": "inspection",
    "export": "exchange",
    "paths": "maintenance",
    "compact": "maintenance",
}


def action(name: str) -> Action:
    """The function that does what an option asks for."""
    found: Action = getattr(import_module(f"testbed.commands.{ACTIONS[name]}"), name)
    return found


def database_command(**options: Any) -> int:
    """Runs the actions that were asked for, in the order of the table, up to the first that fails."""
    if not any(options[name] for name in ACTIONS):
        raise click.UsageError("Name at least one action, such as --status. See db.py --help for all of them.")
    for name in ACTIONS:
        if options[name]:
            code = action(name)(options)
            if code:
                return code
    return 0
