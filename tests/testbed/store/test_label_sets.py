"""Samples with several right classes, and classes of several columns: stored, read, verified, merged, taken in and out.

The data set has ten samples of four classes; the setting looks at two classes, of which the first has two columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed import metric_check
from testbed.codec import checksum, encode
from testbed.errors import DataError, StoreError
from testbed.fingerprint import setting_fingerprint
from testbed.metrics.accuracy import best_ranks, predictions
from testbed.records import DatasetVersion, SettingVersion, Shard, ShardRange
from testbed.results import store_metrics
from testbed.store.evaluation import Evaluation
from testbed.store.import_logits import import_logits
from testbed.store.merge import merge
from testbed.store.rename import rename_setting
from testbed.store.store import Store
from testbed.store.transfer import save_logits
from testbed.store.verification import verify

LABELS = ((0,), (3, 1), (2, 0, 1), (3,), (1,), (2,), (3, 2), (0, 2), (1, 3), (2,))
TARGETS = np.array([labels[0] for labels in LABELS], np.int32)
GROUPS = ((0, 1), 2)
LOGITS = np.random.default_rng(5).normal(size=(10, 4)).astype(np.float32)
MERGED = np.stack([LOGITS[:, :2].max(axis=1), LOGITS[:, 2]], axis=1)
IN_SETTING = [[0, -1, -1], [-1, 0, -1], [1, 0, 0], [-1] * 3, [0, -1, -1], [1, -1, -1], [-1, 1, -1], [0, 1, -1],
              [0, -1, -1], [1, -1, -1]]  # fmt: skip
of_the_file = pytest.mark.parametrize("url", ["sqlite"], indirect=True)  # the same for every kind of database


def dataset(label_sets: Any = LABELS) -> DatasetVersion:
    return DatasetVersion(
        name="several", split="test", fingerprint="f" * 64, targets=TARGETS, class_names=tuple("abcd"),
        sample_ids=tuple(f"test/{index}" for index in range(10)), label_sets=label_sets,
    )  # fmt: skip


def setting(sublist: Any = GROUPS, name: str = "groups") -> SettingVersion:
    mark = setting_fingerprint(name, {}, dataset="f" * 64, sample_indices=None, class_sublist=sublist)
    return SettingVersion(name=name, fingerprint=mark, dataset_fingerprint="f" * 64, spec={}, class_sublist=sublist)


def evaluate(store: Store, samples: Any, **numerics: Any) -> Evaluation:
    """The logits as a model that answers full width would have them stored."""
    store.put_model(samples.model())
    store.put_dataset(dataset())
    store.put_setting(setting())
    key = samples.key(setting=setting(), numerics={"dtype": "float32"} | numerics)
    state = samples.take_up(store, key)
    store.put_shards((state.id, shard(where)) for where in state.missing())
    store_metrics(store, state.id)
    return store.evaluation_by_id(state.id)


def shard(where: ShardRange) -> Shard:
    piece = slice(where.start, where.stop)
    payload = encode(LOGITS[piece])
    ranks = best_ranks(MERGED[piece], TARGETS[piece], np.array(IN_SETTING)[piece])
    return Shard(
        where=where, predictions=predictions(MERGED[piece]), target_ranks=ranks, payload=payload, codec="f32",
        num_outputs=4, sha256=checksum(payload), num_nonfinite=0, batch_size=4, seconds=0.0, worker="w",
    )  # fmt: skip


def test_what_was_put_is_read_over_the_settings_classes(store: Store, samples: Any) -> None:
    found = evaluate(store, samples)
    assert found.class_sublist == GROUPS
    assert found.class_names == ("a +1", "c")
    sets = found.label_sets()
    assert sets is not None
    assert sets.tolist() == IN_SETTING
    assert found.targets().tolist() == [row[0] for row in IN_SETTING]
    np.testing.assert_array_equal(found.in_setting(found.logits()), MERGED)
    top = found.top_logits(k=1)
    assert top.classes[:, 0].tolist() == MERGED.argmax(axis=1).tolist() == found.predictions()[0].tolist()
    right = [int(choice) in row for choice, row in zip(MERGED.argmax(axis=1), IN_SETTING, strict=True)]
    top1 = next(value for value in found.metrics() if value.name == "top1")
    assert top1.value == 10 * sum(right)
    assert verify(store).findings == ()
    assert metric_check.verify(store).findings == ()


def test_without_label_sets_there_are_none(store: Store, samples: Any) -> None:
    samples.completed(store)
    assert store.evaluation("net", "data").label_sets() is None


@of_the_file
def test_votes_of_a_group_are_summed_where_the_numerics_say_so(store: Store, samples: Any) -> None:
    found = evaluate(store, samples, sums_votes=True)
    summed = np.stack([LOGITS[:, 0] + LOGITS[:, 1], LOGITS[:, 2]], axis=1)
    np.testing.assert_array_equal(found.in_setting(found.logits()), summed)


@of_the_file
@pytest.mark.parametrize("other", [None, ((0, 1), *LABELS[1:])])
def test_a_fingerprint_must_cover_the_label_sets(store: Store, other: Sequence[Any] | None) -> None:
    store.put_dataset(dataset())
    store.put_dataset(dataset())
    with pytest.raises(DataError, match=r"other targets or label sets\. A fingerprint must cover both"):
        store.put_dataset(dataset(other))


def test_changed_label_sets_are_noticed(store: Store, samples: Any, execute: Any) -> None:
    evaluate(store, samples)
    execute("update datasets set label_sets = ?", json.dumps([[0]] * 10))
    (finding,) = verify(store).findings
    assert "Targets, sample ids or label sets of data set 'several' (test)" in finding.text
    with pytest.raises(StoreError, match="Targets, sample ids or label sets of data set 'several'"):
        store.evaluation("net", "groups").label_sets()


@of_the_file
def test_a_merge_takes_label_sets_and_groups_over(store: Store, samples: Any, tmp_path: Path) -> None:
    before = evaluate(store, samples)
    with Store.open(tmp_path / "other.sqlite") as other:
        merge(other, store)
        found = other.evaluation("net", "groups")
        assert (found.class_sublist, found.setting_fingerprint) == (GROUPS, before.setting_fingerprint)
        assert np.array_equal(found.label_sets(), IN_SETTING)  # type: ignore[arg-type]
        assert verify(other).findings == ()


@of_the_file
def test_a_rename_computes_the_identity_of_groups_as_a_definition_does(store: Store, samples: Any) -> None:
    evaluate(store, samples)
    rename_setting(store, "groups", "kinds")
    assert store.evaluation("net", "kinds").setting_fingerprint == setting(name="kinds").fingerprint
    plain = setting(((0, 1), (2, 3)), name="kinds")
    assert plain.fingerprint != setting((0, 1, 2, 3), name="kinds").fingerprint, "groups are not their columns"


@of_the_file
def test_logits_that_were_written_are_read_to_the_same_ranks(store: Store, samples: Any, tmp_path: Path) -> None:
    before = evaluate(store, samples)
    save_logits([before], tmp_path / "out")
    found = read_back(store, tmp_path / "out")
    np.testing.assert_array_equal(found.logits()[:], MERGED)
    np.testing.assert_array_equal(found.in_setting(found.logits()), MERGED)
    np.testing.assert_array_equal(found.target_ranks(), before.target_ranks())
    np.testing.assert_array_equal(found.predictions(), before.predictions())


@of_the_file
def test_logits_of_all_columns_are_merged(store: Store, samples: Any, tmp_path: Path) -> None:
    before = evaluate(store, samples)
    save_logits([before], tmp_path / "out")
    rewrite(tmp_path / "out", logits=LOGITS)
    found = read_back(store, tmp_path / "out")
    np.testing.assert_array_equal(found.logits(), LOGITS)
    np.testing.assert_array_equal(found.target_ranks(), before.target_ranks())
    found = read_back(store, tmp_path / "out", "version 1", is_cut_by_model=True)
    np.testing.assert_array_equal(found.in_setting(found.logits()), MERGED)  # the width tells, whatever the index says
    rewrite(tmp_path / "out", logits=LOGITS[:, :3])
    assert read_back(store, tmp_path / "out", "version 2").num_draws == 1, "the last column does not count"


@of_the_file
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label_sets": np.array(IN_SETTING)[::-1]}, "the label set of 'test/0' is not that of 'groups'"),
        ({"label_sets": np.zeros((9, 2), int)}, "has 9 label sets, but 10 samples"),
        ({"label_sets": np.zeros(10)}, "label_sets are of shape"),
        ({"logits": np.zeros((10, 5), np.float32)[:, :1]}, "has logits of 1 classes, but 'groups' has 2"),
    ],
)
def test_other_label_sets_and_widths_are_refused(
    store: Store, samples: Any, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    save_logits([evaluate(store, samples)], tmp_path / "out")
    rewrite(tmp_path / "out", **changes)
    with pytest.raises(DataError, match=message):
        read_back(store, tmp_path / "out")


def read_back(store: Store, folder: Path, version: str = "", **numerics: Any) -> Evaluation:
    """What the files of a folder become, under another model's name."""
    index = json.loads((folder / "index.json").read_text())
    for entry in index["models"]:
        entry |= {"model": "elsewhere", "version": version, "numerics": numerics}
        entry.pop("sha256", None)
    (folder / "index.json").write_text(json.dumps(index))
    (found,) = import_logits(store, folder)
    store_metrics(store, found)
    return store.evaluation_by_id(found)


def rewrite(folder: Path, **changes: Any) -> None:
    (path,) = folder.glob("*.npz")
    with np.load(path) as saved:
        content = dict(saved)
    np.savez(path, **(content | changes))


def test_an_archive_of_a_setting_without_label_sets_has_none(store: Store, samples: Any, tmp_path: Path) -> None:
    samples.completed(store)
    save_logits(store.list_evaluations(), tmp_path)
    (path,) = tmp_path.glob("*.npz")
    with np.load(path) as saved:
        assert set(saved) == {"logits", "targets", "sample_ids"}


def test_one_label_per_sample_is_as_none(store: Store, samples: Any) -> None:
    """A digest without label sets is that of databases which knew none."""
    single = replace(dataset(None), fingerprint="e" * 64)
    store.put_dataset(single)
    assert verify(store).findings == ()


@pytest.mark.parametrize(
    ("sublist", "fault"),
    [
        (None, ""),
        ((2, 0, 1), ""),
        ((0, 2), "3 of 10 targets are none of the setting's 2 classes"),
        ((0, 700), "targets count the 3 classes of 'data', and class_sublist other columns"),
    ],
)
def test_targets_that_are_no_columns_of_the_setting_are_told(
    store: Store, samples: Any, sublist: Any, fault: str
) -> None:
    setting = samples.setting("some", class_sublist=sublist)
    samples.put_definitions(store, setting)
    state = samples.take_up(store, samples.key(setting=setting))
    assert store.evaluation_by_id(state.id).label_fault() == fault


def test_samples_without_labels_are_told(store: Store, samples: Any) -> None:
    unlabelled = replace(samples.dataset(), targets=np.full(10, -1, np.int32), fingerprint="f" * 64)
    store.put_dataset(unlabelled)
    setting = samples.setting("unlabelled", dataset_fingerprint=unlabelled.fingerprint)
    store.put_model(samples.model())
    store.put_setting(setting)
    state = samples.take_up(store, samples.key(setting=setting))
    assert store.evaluation_by_id(state.id).label_fault() == "the samples have no labels"
