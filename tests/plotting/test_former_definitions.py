"""Results of a former definition count until today's has its own, and whatever uses them says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plotting.pages.data import read_site
from plotting.pages.model_page import model_page
from plotting.safety_case.evidence import evidence
from plotting.safety_case.statements import statement
from tests.laboratory import lab

from testbed.commands.claim import claim
from testbed.commands.compare import compare
from testbed.commands.corruption import corruption_report
from testbed.commands.exchange import export
from testbed.commands.inspection import print_eval
from testbed.commands.mscr import mscr
from testbed.records import ModelVersion

__all__ = ["lab"]

RIGHT = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
FOG = np.array([1, 1, 1, 0, 0, 0, 1, 0], bool)
FORMER = "of a former definition: today's has no results yet"
SETTINGS = "toy, toy-c.fog.1_in-memory, toy-mscr-linf"


@pytest.fixture(autouse=True)
def _models(lab: Any) -> None:
    """A model of the definition that was evaluated, and one that has another since."""
    for model in ("same", "changed"):
        lab.pair(model, RIGHT, FOG)
        lab.pair(model, RIGHT, FOG, setting="toy-c.fog.1_in-memory")
    lab.store.put_model(ModelVersion(name="changed", label_space="two", fingerprint="f" * 64, spec={"arch": "wrong"}))


@pytest.fixture
def options(lab: Any, tmp_path: Path) -> dict[str, Any]:
    """The options of db.py for the store."""
    given: dict[str, Any] = dict.fromkeys(("logdir", "cluster_by", "sample_table", "one_sided", "as_json", "baseline",
                                           "on_disk", "well_posed", "per_class", "epsilon", "wide"))  # fmt: skip
    given |= {"variant": "", "db_url": lab.url, "confidence": 0.95, "compare": ("same", "changed")}
    given |= dict.fromkeys(("models", "datasets", "eval_settings", "with_published", "norm"), ())
    given |= {"claim": "loss(toy-mscr-linf) <= 90%", "print_eval": ("changed", "toy")}
    return {**given, "export": tmp_path / "table.csv", "override": False}


@pytest.mark.parametrize(
    ("action", "where"),
    [
        (claim, "on toy-mscr-linf: "),
        (compare, f"on {SETTINGS}: "),
        (mscr, "on toy-mscr-linf: "),
        (corruption_report, "on toy-c.fog.1_in-memory: "),
        (export, f"on {SETTINGS}: "),
        (print_eval, "on toy: complete, "),
    ],
)
def test_every_action_that_uses_them_says_so(
    action: Callable[[Any], Any], where: str, options: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    action(options)
    told = " ".join("".join(capsys.readouterr()).split())
    assert f"changed {where}{FORMER}" in told
    assert told.count(FORMER) == 1, "of the other model there is nothing to say"


def test_records_of_a_claim_tell_them_apart(options: Any, capsys: pytest.CaptureFixture[str]) -> None:
    claim({**options, "as_json": True})
    results = json.loads(capsys.readouterr().out)["results"]
    assert {one["model"]: one["is_current"] for one in results} == {"same": True, "changed": False}


def test_the_report_and_the_site_say_so(lab: Any) -> None:
    for model, notes in {"same": [], "changed": [f"changed on {SETTINGS}: {FORMER}."]}.items():
        found = statement(evidence(lab.store, model, None), [], 0.95)
        assert [note for note in found.notes if FORMER in note] == notes
    site = read_site(lab.store)
    pages = {entry.name: model_page(site, entry) for entry in site.entries}
    assert {name: list(page.notes) for name, page in pages.items()} == {
        "same": [], "changed": [f"changed on {SETTINGS}: {FORMER}."],
    }  # fmt: skip
