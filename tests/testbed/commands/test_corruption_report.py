"""`db.py --corruption-report`: what is printed, and what is refused with the command that helps."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.conftest import Command
from tests.laboratory import lab

from testbed.commands.corruption import corruption_report
from testbed.errors import DataError, UnknownNameError
from testbed.metrics.accuracy import predictions, target_ranks
from testbed.metrics.corruption import COMMON
from testbed.records import PublishedResult

__all__ = ["lab"]

CLEAN = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
FOG = [[1, 1, 1, 1, 1, 0, 1, 0], [1, 1, 1, 0, 0, 0, 0, 0]]
SNOW = [[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0]]


def put(lab: Any, model: str, *, shift: int = 0, kind: str = "in-memory", **seeds: int) -> None:
    lab.put(model, "toy", CLEAN, fit_seed=seeds.get("fit_seed", 0))
    for name, rows in {"fog": FOG, "snow": SNOW}.items():
        for severity, right in enumerate(rows, start=1):
            lab.put(model, f"toy-c.{name}.{severity}_{kind}", np.roll(right, shift), **seeds)
    lab.put(model, f"toy-c.greyscale_{kind}", CLEAN, **seeds)


@pytest.fixture
def options(lab: Any) -> dict[str, Any]:
    """The options of db.py for a store with two models."""
    put(lab, "net-a")
    put(lab, "net-b", shift=3)
    given: dict[str, Any] = dict.fromkeys(
        ("logdir", "cluster_by", "sample_table", "one_sided", "as_json", "baseline", "on_disk", "well_posed")
    )
    given |= {"variant": "", "db_url": lab.url, "confidence": 0.95}
    return {**given, "models": (), "datasets": (), "with_published": ()}


def printed(capsys: Any) -> dict[str, str]:
    """The rows of the table by their label, and all notes as one text under ''."""
    table, notes = capsys.readouterr().out.split("\n\n")[1:3]
    rows = {line.strip().split("  ")[0]: line for line in table.splitlines()}
    return rows | {"": " ".join(notes.split())}


def test_table_has_a_row_per_corruption_and_the_means_below(options: Any, capsys: Any) -> None:
    assert corruption_report(options) is None
    rows = printed(capsys)
    assert list(rows)[2:-1] == [
        "snow", "fog", "greyscale", "mean of 2", "clean accuracy, A_cl %", "mean accuracy, A_c %", "recovered, q %",
        "mean corruption error difference", "A_rel_c %, right by all",
    ]  # fmt: skip
    assert rows["fog"].split()[1:3] == ["1-2", "66.67"]  # (5 + 3) / 12
    assert rows["greyscale"].split()[1:3] == ["-", "100.00"]
    assert rows["mean of 2"].split()[3:5] == ["1-2", "70.83"]  # 17 / 24: greyscale is none of the 15
    assert "] *" in rows["fog"]
    assert "] ~" in rows["fog"]
    assert rows["recovered, q %"].split()[3] == "1-2"
    assert rows["mean corruption error difference"].split()[4:6] == ["1-2", "18.75"]  # 75 - 18 / 32
    notes = rows[""]
    assert "net-a: 8 samples x 1 draw, seed 0; net-b: 8 samples x 1 draw, seed 0." in notes
    assert "95 % intervals over samples" in notes
    assert "the error less the clean error, in percentage points. That of every cell (raw_rce), and CE" in notes
    assert "Left out" not in notes
    assert (
        "*: best; ~: not distinguishable from the best (paired over images: intervals of the difference, Holm" in notes
    )
    assert "Of the 15 common corruptions, 13 are missing: gaussian_noise" in notes
    assert "errors that are not divided by one's are no mCE: mCE, relative mCE." in notes
    assert "Undefined for net-a, net-b, because severity 3, 4, 5 of snow, severity 3, 4, 5 of fog and all of" in notes


def test_one_model_has_no_marks(options: Any, capsys: Any) -> None:
    corruption_report({**options, "models": ("net-a",)})
    rows = printed(capsys)
    assert "*" not in rows["fog"]
    assert "A_rel_c %, right by all" not in rows
    assert "best" not in rows[""]


def test_fitted_models_show_their_spread(options: Any, lab: Any, capsys: Any) -> None:
    for seed in range(3):
        put(lab, "fitted", shift=seed, fit_seed=seed, noise_seed=seed)
    corruption_report({**options, "models": ("fitted", "net-a")})
    rows = printed(capsys)
    values = [17 / 24, 17 / 24, 16 / 24]
    assert rows["sd over runs"].split()[3] == f"{100 * np.std(values, ddof=1):.2f}"
    assert "fitted: 8 samples x 1 draw with each of 3 fitted models, seeds 0, 1, 2" in rows[""]
    assert "3 runs tell little" in rows[""]
    assert "intervals of the difference, Holm" in rows[""]


def test_what_one_model_lacks_is_told_with_the_command_that_fills_it(options: Any, lab: Any, capsys: Any) -> None:
    lab.put("net-a", "toy-c.frost.1_in-memory", FOG[0])
    assert corruption_report(options) == 1
    captured = capsys.readouterr()
    assert "undefined" in next(line for line in captured.out.splitlines() if line.startswith("frost"))
    assert "severity 1 of frost" not in captured.out.split("\n\n")[1]
    assert "because all of frost missing" in " ".join(captured.out.split())
    command = "python eval.py --models net-b --eval-settings toy-c.frost.1_in-memory --db-url "
    assert f"Not stored: net-b on toy-c.frost.1_in-memory. Run: {command}{options['db_url']}" in captured.err


def test_nothing_stored_is_refused_with_the_command_that_fills_it(options: Any) -> None:
    with pytest.raises(UnknownNameError) as refused:
        corruption_report({**options, "on_disk": True, "datasets": ("toy",)})
    command = "python eval.py --models MODEL --eval-settings 'toy-c.*_on-disk' --db-url "
    assert command + options["db_url"] in str(refused.value)


def test_on_disk_is_asked_for_by_itself(options: Any, lab: Any, capsys: Any) -> None:
    put(lab, "net-a", shift=4, kind="on-disk")
    corruption_report({**options, "on_disk": True})
    out = capsys.readouterr().out
    assert out.startswith("toy: relative corruption accuracy A_rel_c %, corruptions read from disk")
    assert "net-b" not in out


def test_a_variant_is_asked_for_by_itself_and_told(options: Any, lab: Any, capsys: Any) -> None:
    for kind in ("in-memory-mnist28", "on-disk-resized"):
        put(lab, "net-a", shift=4, kind=kind)
    corruption_report({**options, "variant": "mnist28"})
    out = capsys.readouterr().out
    assert out.startswith(
        "toy: relative corruption accuracy A_rel_c %, corruptions simulated in memory, variant mnist28\n"
    )
    assert "net-b" not in out
    corruption_report({**options, "variant": "resized", "on_disk": True})
    assert "corruptions read from disk, variant resized\n" in capsys.readouterr().out
    with pytest.raises(UnknownNameError, match=r"variant 'uint8' .* Stored: the plain ones, --variant mnist28\."):
        corruption_report({**options, "variant": "uint8"})
    with pytest.raises(UnknownNameError, match=r"--eval-settings digits-c\.fog\.3_in-memory-mnist28 "):
        corruption_report({**options, "variant": "mnist28", "datasets": ("digits",)})


def test_a_trial_with_a_limit_is_left_out_with_a_note(options: Any, lab: Any, capsys: Any) -> None:
    lab.put("net-a", "toy@limit4", CLEAN[:4])
    lab.put("net-a", "toy-c.fog.1_in-memory@limit4", [1, 1, 1, 0])
    corruption_report(options)
    rows = printed(capsys)
    assert rows["fog"].split()[1:3] == ["1-2", "66.67"]
    assert "Left out are settings of other samples: 1 of toy@limit4 (--dataset toy@limit4)." in rows[""]
    corruption_report({**options, "datasets": ("toy@limit4",)})
    out = capsys.readouterr().out
    assert out.startswith("toy@limit4: relative")
    assert "net-a: 4 samples x 1 draw" in out
    lab.put("net-c", "toy@limit4", CLEAN[:4])
    lab.put("net-c", "toy-c.fog.1_in-memory@limit4", [1, 1, 1, 0])
    with pytest.raises(UnknownNameError, match=r"No model that was asked for .* 1 of toy@limit4"):
        corruption_report({**options, "models": ("net-c",), "baseline": "net-b"})


def test_baseline_is_told_and_one_of_other_data_is_refused_in_words(options: Any, capsys: Any) -> None:
    corruption_report({**options, "models": ("net-a",), "baseline": "net-b"})
    notes = printed(capsys)[""]
    assert "mCE is by net-b (net-b of this store, on the same settings), whose errors are taken as they are" in notes
    assert corruption_report({**options, "baseline": "alexnet-published"}) == 1
    captured = capsys.readouterr()
    reason = "alexnet-published is of the published files of ImageNet-C, and these are others"
    assert f"Undefined for net-a, net-b, because {reason}: mCE, relative mCE." in " ".join(captured.out.split())
    assert captured.err == f"No mCE on toy: {reason}.\n"


@pytest.mark.parametrize("models", [(), ("net-a",)])
def test_a_baseline_must_be_stored_and_without_corruptions_costs_the_exit_code(
    options: Any, lab: Any, capsys: Any, models: tuple[str, ...]
) -> None:
    lab.put("plain", "toy", CLEAN)
    given = {**options, "models": models, "as_json": True}
    assert corruption_report({**given, "baseline": "net-b"}) is None
    capsys.readouterr()
    assert corruption_report({**given, "baseline": "plain"}) == 1
    captured = capsys.readouterr()
    assert captured.err == "No mCE on toy: the baseline plain was not evaluated on toy.\n"
    assert json.loads(captured.out)["results"][0]["models"][0]["errors"]["mce"]["value"] is None
    with pytest.raises(UnknownNameError, match=r"no baseline 'net-z': no model .* is stored\. Did you mean net-"):
        corruption_report({**given, "baseline": "net-z"})


def test_a_model_with_some_cells_keeps_its_clean_accuracy_and_is_named(options: Any, lab: Any, capsys: Any) -> None:
    lab.put("part", "toy", np.roll(CLEAN, 1) & CLEAN)
    for name in ("fog", "snow"):
        lab.put("part", f"toy-c.{name}.2_in-memory", CLEAN)
    assert corruption_report(options) == 1
    rows = printed(capsys)
    assert [word for word in rows["clean accuracy, A_cl %"].split() if "." in word and word[0] not in "[("][0::2] == [
        "75.00", "75.00", "62.50",
    ]  # fmt: skip
    assert rows["mean accuracy, A_c %"].split()[-1] == "undefined"
    assert (
        "Undefined for part, because severity 1 of all missing: mean accuracy, A_c, recovered, q, mean corruption "
        "error difference, A_rel_c %, right by all." in rows[""]
    )


def test_answers_that_are_not_finite_are_counted_under_the_table(
    options: Any, lab: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one of the seven evaluations of eight samples, the clean one among them."""
    corruption_report(options)
    assert "not finite" not in capsys.readouterr().out
    lab.put("net-a", "toy-c.frost.1_in-memory", FOG[0])
    shard_of, lost = lab._shard, np.full((8, 2), np.nan, np.float32)

    def shard(*given: Any) -> Any:
        ranks = target_ranks(lost, lab.targets(0))
        return replace(shard_of(*given), predictions=predictions(lost), target_ranks=ranks)

    monkeypatch.setattr(lab, "_shard", shard)
    lab.put("net-b", "toy-c.frost.1_in-memory", FOG[0])
    corruption_report(options)
    notes = printed(capsys)[""]
    assert "net-b: 8 of 56 answers are not finite (NaN or infinite); they count as wrong." in notes
    assert "net-a: 0" not in notes
    corruption_report({**options, "as_json": True})
    models = json.loads(capsys.readouterr().out)["results"][0]["models"]
    assert [(model["num_nonfinite"], model["num_answers"]) for model in models] == [(0, 56), (8, 56)]


def test_a_bound_of_50_percent_is_a_number(options: Any, lab: Any, capsys: Any) -> None:
    lab.put("net-a", "toy-c.frost.1_in-memory", [FOG[0], FOG[1]])
    corruption_report({**options, "as_json": True, "one_sided": True, "confidence": 0.5})
    assert "NaN" not in capsys.readouterr().out


def test_wellposedness_is_told_in_sentences(options: Any, capsys: Any) -> None:
    corruption_report({**options, "well_posed": True, "models": ("net-a",)})
    out = capsys.readouterr().out
    recovered = {line.split("  ")[0]: line.split()[2:] for line in out.split("\n\n")[-1].splitlines()}
    assert recovered["fog 1"][0] == "50.00"
    assert recovered["fog 1"][-1] == "(50.0)"
    notes = " ".join(out.split())
    assert "net-a, greyscale: all logits are those of the clean images" in notes
    assert "net-a, fog" not in notes
    assert notes.index("all logits are those") < notes.index("recovered, q % (by guessing)")  # what matters goes first


def test_a_finding_of_several_models_is_said_once(options: Any, lab: Any, capsys: Any) -> None:
    lab.pair("net-c", CLEAN, CLEAN, setting="toy-c.greyscale_in-memory")
    corruption_report({**options, "well_posed": True, "models": ("net-a", "net-c")})
    notes = " ".join(capsys.readouterr().out.split())
    assert notes.count("greyscale: all logits are those of the clean images") == 1
    assert "net-a, net-c, greyscale: all logits" in notes


def test_json_has_every_number_with_its_interval(options: Any, capsys: Any) -> None:
    corruption_report({**options, "as_json": True, "models": ("net-a",), "confidence": 0.9})
    found = json.loads(capsys.readouterr().out)
    (report,) = found["results"]
    (model,) = report["models"]
    assert (found["confidence"], report["dataset"], model["model"], model["n"]) == (0.9, "toy", "net-a", 8)
    for cell in model["cells"]:
        for number in cell["metrics"].values():
            assert number["ci_low"] < number["value"] < number["ci_high"] or number["value"] in (0, 100)
    assert model["errors"]["mce"]["value"] is None
    assert model["errors"]["mce"]["reason"]


def test_one_bound_is_shown_as_one(options: Any, capsys: Any) -> None:
    corruption_report({**options, "one_sided": True})
    rows = printed(capsys)
    assert "66.67 (>= " in rows["fog"]
    assert "95 % one-sided bounds" in rows[""]


def test_clusters_need_a_table(options: Any) -> None:
    with pytest.raises(DataError, match="--sample-table FILE"):
        corruption_report({**options, "cluster_by": "patient"})


def test_published_grid_is_measured_by_both_baselines(options: Any, lab: Any, capsys: Any) -> None:
    lab.store.put_published(
        [PublishedResult(source="grid", source_sha256="0" * 64, model=model, metric="top1", protocol="resized",
                         eval_setting=f"imagenet-c.{name}.{severity}_on-disk", value=value)
         for model, value in (("net", 70.0), ("alexnet", 40.0)) for name in COMMON for severity in range(1, 6)]
    )  # fmt: skip
    published = {**options, "with_published": ("grid",), "models": ("net",)}
    corruption_report(published)
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("net"))
    assert [row.split()[index] for index in (1, 4, 5)] == ["30.00", "50.00", "undefined"]
    assert "A baseline belongs to its protocol" in " ".join(out.split())
    assert "Undefined, net: the clean error is not known." in " ".join(out.split())
    corruption_report({**published, "as_json": True})
    (record,) = json.loads(capsys.readouterr().out)["results"]
    assert record["baselines"]["alexnet"]["mce"]["value"] == pytest.approx(50)


def test_report_is_an_option_of_db(command: Command, options: Any) -> None:
    done = command("db.py", "--corruption-report", "--dataset", "toy", "--well-posed", "--db-url", options["db_url"])
    assert done.code == 0, done.err
    assert "mean of 2" in done.out
