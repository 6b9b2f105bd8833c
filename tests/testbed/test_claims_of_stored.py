"""Claims about what a store holds: which evaluations are asked, the correction, and the messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from tests.conftest import Command

from testbed.claim_language import ClaimError, parse_claim
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.logit_policy import NO_LOGITS
from testbed.records import DatasetVersion, EvaluationKey, ModelVersion, SettingVersion, Shard, Shift
from testbed.results.claims import NotStoredError, claim_rows
from testbed.results.precision import Precision
from testbed.store.store import Store

N = 600
CLASSES = ("a", "b", "b")  # two classes of one name, as ImageNet has them
TARGETS = np.arange(N, dtype=np.int32) % 3
EVERY, NONE = np.ones(N, bool), np.zeros(N, bool)


class Builder:
    """Puts evaluations with given outcomes into a store."""

    def __init__(self, store: Store, dataset: str = "data") -> None:
        self.store = store
        self.dataset = DatasetVersion(
            name=dataset, split="test", fingerprint=fingerprint(dataset), targets=TARGETS, class_names=CLASSES,
            sample_ids=tuple(f"test/{index}" for index in range(N)),
        )  # fmt: skip
        store.put_dataset(self.dataset)

    def put(
        self, model: str, setting: str, correct: Sequence[ArrayLike], *, clean: str | None = None, fit_seed: int = 0
    ) -> None:
        """Args: correct: per draw whether each sample is right. clean: the setting's parent; None for a clean one."""
        shift = clean and Shift(family="uniform-linf", name="noise", clean_eval_setting=clean, norm="linf", epsilon=0.1)
        version = ModelVersion(name=model, label_space="x", fingerprint=fingerprint(model), spec={})
        on = SettingVersion(name=setting, fingerprint=fingerprint(setting), spec={}, shift=shift or None,
                            dataset_fingerprint=self.dataset.fingerprint)  # fmt: skip
        self.store.put_model(version)
        self.store.put_setting(on)
        key = EvaluationKey(model_fingerprint=version.fingerprint, setting_fingerprint=on.fingerprint,
                            fit_seed=fit_seed, noise_seed=0, numerics={})  # fmt: skip
        state = self.store.put_evaluation(key, num_draws=len(correct), num_samples=N, shard_size=N, run_id=None)
        ranks = [np.where(np.asarray(draw, bool), 0, 1).astype(np.int32) for draw in correct]
        self.store.put_shards((state.id, _shard(where, ranks[where.draw])) for where in state.missing())
        self.store.complete_evaluation(state.id, [])


def _shard(where: object, ranks: NDArray[np.int32]) -> Shard:
    return Shard(where=where, predictions=(TARGETS + ranks) % 3, target_ranks=ranks, payload=b"", codec=NO_LOGITS,
                 num_outputs=3, sha256="", num_nonfinite=0, batch_size=N, seconds=0.1, worker="w")  # type: ignore[arg-type]  # fmt: skip


def wrong(*indices: int) -> NDArray[np.bool_]:
    return ~np.isin(np.arange(N), indices)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two models: 'steady' never flips, 'shaky' loses the first 60 samples in one of two draws."""
    with Store.open(tmp_path / "store.sqlite") as opened:
        builder = Builder(opened)
        for model, lost in (("steady", ()), ("shaky", range(60))):
            builder.put(model, "clean", [EVERY])
            builder.put(model, "noise", [EVERY, wrong(*lost)], clean="clean")
        yield opened


def rows(store: Store, text: str, *models: str, per_class: bool = False, **options: object):  # type: ignore[no-untyped-def]
    return claim_rows(store, parse_claim(text), models, Precision(**options), per_class=per_class)  # type: ignore[arg-type]


def test_every_model_is_asked_and_corrected_for_the_others(store: Store) -> None:
    found = rows(store, "loss(noise) <= 1%")
    assert [(row.evaluation.model, row.verdict) for row in found] == [("shaky", "refuted"), ("steady", "supported")]
    assert found[1].answers[""].high == pytest.approx(1 - 0.025 ** (1 / N))
    (alone,) = rows(store, "loss(noise) <= 1%", "stead*", confidence=0.99)
    assert alone.answers[""].high == pytest.approx(1 - 0.01 ** (1 / N))


def test_every_class_is_asked_and_corrected_for_the_others(store: Store) -> None:
    (row,) = rows(store, "loss(noise) <= 10%", "steady", per_class=True)
    assert list(row.answers) == ["a", "b (1)", "b (2)"]
    assert row.verdict == "supported"
    for answer in row.answers.values():
        assert (answer.n, answer.high) == (200, pytest.approx(1 - (0.05 / 3) ** (1 / 200)))


def test_a_class_that_breaks_the_claim_refutes_it_for_all(store: Store) -> None:
    Builder(store).put("lame", "clean", [EVERY])
    Builder(store).put("lame", "noise", [wrong(*range(0, N, 3))], clean="clean")
    (row,) = rows(store, "loss(noise) <= 10%", "lame", per_class=True)
    assert [answer.verdict for answer in row.answers.values()] == ["refuted", "supported", "supported"]
    assert row.verdict == "refuted"


def test_a_difference_pairs_two_settings(store: Store) -> None:
    (row,) = rows(store, "top1(clean) - top1(noise) <= 10%", "shaky")
    assert row.answers[""].value == pytest.approx(0.05)
    assert row.verdict == "supported"


def test_positions_in_two_data_sets_are_not_the_same_samples(store: Store) -> None:
    Builder(store, "other").put("steady", "another", [EVERY])
    with pytest.raises(DataError, match="not of the same samples"):
        rows(store, "top1(clean) - top1(another) <= 10%", "steady")


def test_fits_are_runs_and_noise_seeds_are_draws(store: Store) -> None:
    for seed in (1, 2):
        Builder(store).put("steady", "clean", [EVERY], fit_seed=seed)
        Builder(store).put("steady", "noise", [EVERY], clean="clean", fit_seed=seed)
    (row,) = rows(store, "loss(noise) <= 1%", "steady")
    assert (row.answers[""].n, row.answers[""].unit) == (3, "runs")


def test_what_is_not_stored_is_named(store: Store) -> None:
    with pytest.raises(NotStoredError, match=r"on 'noize'.*Did you mean noise\?") as caught:
        rows(store, "loss(noize) <= 1%")
    assert (list(caught.value.models), caught.value.setting) == (["MODEL"], "noize")
    with pytest.raises(NotStoredError, match=r"Model 'steddy'.*Did you mean steady\?"):
        rows(store, "loss(noise) <= 1%", "shaky", "steddy")
    Builder(store).put("third", "clean", [EVERY])
    with pytest.raises(NotStoredError, match="Model 'third' has no complete evaluation on 'noise'"):
        rows(store, "top1(clean) - top1(noise) <= 10%", "third")
    answered = rows(store, "top1(clean) - top1(noise) <= 10%")  # of all models, those that can be asked
    assert "third" not in {row.evaluation.model for row in answered}
    Builder(store).put("fourth", "noise", [EVERY], clean="clean")
    with pytest.raises(NotStoredError, match="'fourth' on 'noise' has no complete clean evaluation"):
        rows(store, "loss(noise) <= 10%", "fourth")


def test_nothing_is_lost_on_a_clean_setting(store: Store) -> None:
    with pytest.raises(ClaimError, match=r"'clean' has no clean parent.*top1\(clean\), or for loss on noise"):
        rows(store, "loss(clean) <= 1%")


def test_losses_from_other_clean_settings_are_not_subtracted(store: Store) -> None:
    Builder(store).put("steady", "crop", [wrong(1, 2)])
    Builder(store).put("steady", "crop-noise", [EVERY], clean="crop")
    with pytest.raises(DataError, match="other clean parents"):
        rows(store, "loss(noise) - loss(crop-noise) <= 1%", "steady")


def test_the_command_line_answers_in_words_and_in_json(store: Store, command: Command, tmp_path: Path) -> None:
    url = ("--db-url", str(tmp_path / "store.sqlite"))
    done = command("db.py", "--claim", "loss(noise) <= 4%", *url)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "loss(noise) <= 4%, with 95 % confidence, all 2 verdicts together (Bonferroni)",
        "shaky: undecided: 5 % (n = 600 images right when clean), at least 3.439 and at most 7.029; 1,622 like these "
        "would",
        "  decide it",
        "steady: supported: 0 % (n = 600 images right when clean), at most 0.6129",
        "Bounds, one-sided: betting (Waudby-Smith & Ramdas).",
    ]
    lines = command("db.py", "--claim", "loss(noise) <= 4%", "--per-class", *url).out.splitlines()
    assert lines[1] == "shaky: undecided for all 3 classes together; 0 of them supported"
    assert [line.split(":")[:2] for line in lines if line.startswith("  class")] == [
        [f"  class '{name}'", " undecided"] for name in ("a", "b (1)", "b (2)")
    ]
    assert lines[-2] == "steady: supported for all 3 classes together; 3 of them supported"
    found = command("db.py", "--claim", "loss(noise) <= 4%", "--per-class", "--models", "steady", "--json", *url).json
    assert (found["claim"], found["verdict"], found["confidence"]) == ("loss(noise) <= 4%", "supported", 0.95)
    assert found["correction"] == {"method": "Bonferroni", "num_claims": 3}
    (model,) = found["results"]
    assert [row["class"] for row in model["classes"]] == ["a", "b (1)", "b (2)"]
    assert model["classes"][0]["at_most"] == pytest.approx(100 * (1 - (0.05 / 3) ** (1 / 200)))
    table = tmp_path / "patients.csv"
    table.write_text("sample_id,patient\n" + "".join(f"test/{i},{i // 20}\n" for i in range(N)))
    clusters = ("--cluster-by", "patient", "--sample-table", table, "--models", "steady", "--json")
    (model,) = json.loads(command("db.py", "--claim", "loss(noise) <= 4%", *clusters, *url).out)["results"]
    assert (model["n"], model["unit"], model["needed"], model["verdict"]) == (30, "clusters", 74, "undecided")


def test_the_command_line_refuses_in_one_line(store: Store, command: Command, tmp_path: Path) -> None:
    url = ("--db-url", str(tmp_path / "store.sqlite"))
    done = command("db.py", "--claim", "los(noise) <= 1%", *url)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    done = command("db.py", "--claim", "loss(blur) <= 1%", "--models", "steady", *url)
    assert done.code == 2
    expected = f"Run: python eval.py --models steady --eval-settings blur --db-url {tmp_path / 'store.sqlite'}"
    assert done.err.rstrip().endswith(expected)


def test_a_version_that_failed_hides_no_claim(store: Store) -> None:
    version = ModelVersion(name="steady", label_space="x", fingerprint=fingerprint("with a wrong arch"), spec={})
    store.put_model(version)
    key = EvaluationKey(model_fingerprint=version.fingerprint, setting_fingerprint=fingerprint("clean"),
                        fit_seed=0, noise_seed=0, numerics={})  # fmt: skip
    state = store.put_evaluation(key, num_draws=1, num_samples=N, shard_size=N, run_id=None)
    store.fail_evaluation(state.id, "The weights do not fit the arch.")
    (row,) = rows(store, "loss(noise) <= 1%", "steady")
    assert (row.verdict, row.answers[""].value) == ("supported", 0)


@pytest.mark.parametrize(
    "text", ["loss(noise) <= 10%", "loss(noise) > 10%", "mscr(noise) >= -10%", "top1(noise) >= 30%"]
)
def test_what_a_model_loses_that_guesses_on_clean_images_is_undecided(store: Store, text: str) -> None:
    builder, one_class = Builder(store), TARGETS == 0
    builder.put("constant", "clean", [one_class])
    builder.put("constant", "noise", [one_class], clean="clean")
    (row,) = rows(store, text, "constant")
    if text.startswith("top1"):
        assert (row.verdict, row.answers[""].reason) == ("supported", "")
    else:
        assert row.verdict == "undecided"
        assert "top-1 is 33.33 %, no better than chance (33.33 % with 3 classes)" in row.answers[""].reason
        assert row.answers[""].value is not None, "what was counted is told all the same"
    (per_class,) = rows(store, text, "constant", per_class=True)
    assert per_class.verdict == ("refuted" if text.startswith("top1") else "undecided")
