"""What a log directory holds beside its database: the results as JSON and the logits as files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from testbed.results import Result, results_object
from testbed.store.evaluation import Evaluation
from testbed.store.transfer import save_logits, slug, write_whole


def export_log(results: Sequence[Result], directory: Path, where: str) -> None:
    """Writes `metrics.json` and, for each setting, `logits/SETTING/` with logits, targets and sample ids.

    Evaluations that keep a part of their logits only have no file there: such logits are read from the database.
    """
    settings: dict[str, dict[int, Evaluation]] = defaultdict(dict)
    for result in results:
        for run in result.runs:
            if run.evaluation.status == "complete" and run.evaluation.keeps_all_logits:
                settings[run.evaluation.setting][run.evaluation.id] = run.evaluation
    for setting, evaluations in settings.items():
        save_logits(evaluations.values(), directory / "logits" / slug(setting), override=True)
    content = json.dumps(results_object(results, where), indent=1, allow_nan=False)
    write_whole(directory / "metrics.json", content.encode())
