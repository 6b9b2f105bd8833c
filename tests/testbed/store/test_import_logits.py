"""Logits from elsewhere: entered by sample id, with everything computed from them, or refused with a reason."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from registry import registry
from testbed import results
from testbed.errors import DataError, TestbedError, UnknownNameError
from testbed.store import import_logits as module
from testbed.store.import_logits import import_logits
from testbed.store.logit_files import read_index
from testbed.store.store import Store
from testbed.store.transfer import save_logits

Arrays = dict[str, Any]
of_the_file = pytest.mark.parametrize("url", ["sqlite"], indirect=True)  # the same for every kind of database


def arrays(samples: Any, **changes: Any) -> Arrays:
    """What a producer would write: the samples in an order of its own."""
    order = np.random.default_rng(3).permutation(samples.num_samples)
    dataset = samples.dataset()
    ids = np.array(dataset.sample_ids)
    found: Arrays = {"logits": samples.logits(), "targets": dataset.targets, "sample_ids": ids} | changes
    return {
        name: array[..., order, :]
        if name == "logits" and array.ndim > 1
        else array[order]
        if len(array) == 10
        else array
        for name, array in found.items()
    }


def write(folder: Path, content: Arrays, **entry: Any) -> Path:
    folder.mkdir(exist_ok=True)
    np.savez(folder / "net.npz", **content)
    full = {"model": "jax-net", "eval_setting": "data", "file": "net.npz", "label_space": "three"} | entry
    index = {"models": [{name: value for name, value in full.items() if value is not None}]}
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def test_samples_are_put_in_the_order_of_the_data_set(store: Store, samples: Any, tmp_path: Path) -> None:
    samples.put_definitions(store)
    (found_id,) = import_logits(store, write(tmp_path / "in", arrays(samples)))
    store.complete_evaluation(found_id, [])
    found = store.evaluation("jax-net", "data")
    logits, targets = samples.logits(), samples.dataset().targets
    assert np.array_equal(found.logits(), logits)
    assert np.array_equal(found.predictions()[0], logits.argmax(1))
    ranks = [int((row > row[target]).sum()) for row, target in zip(logits, targets, strict=True)]
    assert found.target_ranks()[0].tolist() == ranks
    assert (found.label_space, found.fit_seed, dict(found.numerics)) == ("three", 0, {"device": "elsewhere"})


@of_the_file
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
def test_any_floating_type_and_several_draws_are_taken(store: Store, samples: Any, tmp_path: Path, dtype: str) -> None:
    samples.put_definitions(store)
    logits = np.stack([samples.logits(0), samples.logits(1)]).astype(np.float16).astype(dtype)
    store.put_setting(samples.setting("noisy", spec={"perturbation_fn_gpu": {"type": "UniformNoise"}}))
    noisy = write(tmp_path / "in", arrays(samples, logits=logits), noise_seed=4, eval_setting="noisy")
    (found_id,) = import_logits(store, noisy)
    found = store.evaluation_by_id(found_id)
    assert (found.num_draws, found.noise_seed) == (2, 4)
    assert np.array_equal(found.logits(1), samples.logits(1).astype(np.float16).astype(np.float32))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"lable_space": "three"}, "unknown 'lable_space'. Did you mean label_space?"),
        ({"eval_setting": "da\nta"}, "not for show"),
        ({"noise_seed": -1}, "Seeds count from 0"),
        ({"fit_seed": 2**63}, "to 9223372036854775807"),
    ],
)
def test_an_entry_that_cannot_be_meant_is_refused(
    store: Store, samples: Any, tmp_path: Path, entry: dict[str, Any], words: str
) -> None:
    samples.put_definitions(store)
    with pytest.raises(DataError, match=words):
        list(import_logits(store, write(tmp_path / "in", arrays(samples), **entry)))


DEEP: Any = None
for _ in range(300):
    DEEP = [DEEP]
ODD = (None, True, -1, 0.5, 2**70, [], {}, {"a": DEEP}, {"a": 2**70}, DEEP)
ODD_TEXTS = ("", "\0", "\ud800", "a\nb", 5000 * "a", "../net.npz")
TEXTS = ("model", "eval_setting", "file", "label_space", "version", "sha256")


@pytest.mark.attack
@pytest.mark.parametrize("name", [*TEXTS, "fit_seed", "noise_seed", "numerics", "origin"])
def test_an_odd_value_in_an_entry_is_stored_or_refused_in_one_line(
    store: Store, samples: Any, tmp_path: Path, name: str
) -> None:
    samples.put_definitions(store)
    refused = []
    for value in (*ODD, *ODD_TEXTS):
        folder = write(tmp_path / "in", arrays(samples))
        entry = {"model": "jax-net", "eval_setting": "data", "file": "net.npz", "label_space": "three", name: value}
        (folder / "index.json").write_text(json.dumps({"models": [entry]}))
        try:
            list(import_logits(store, folder))
        except TestbedError as error:
            refused.append(str(error))
    assert refused
    assert not [message for message in refused if "\n" in message]


def test_several_draws_of_a_setting_that_changes_nothing_are_refused(
    store: Store, samples: Any, tmp_path: Path
) -> None:
    samples.put_definitions(store)
    logits = np.stack([samples.logits(0), samples.logits(0)])
    with pytest.raises(DataError, match="'data' does not change its images"):
        list(import_logits(store, write(tmp_path / "in", arrays(samples, logits=logits))))


def test_large_logits_are_stored_in_pieces(
    store: Store, samples: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARD_BYTES", 4 * 3 * 4)
    samples.put_definitions(store)
    (found_id,) = import_logits(store, write(tmp_path / "in", arrays(samples)))
    found = store.evaluation_by_id(found_id)
    assert [start for start, _ in found.logit_shards()] == [0, 4, 8]
    assert np.array_equal(found.logits(), samples.logits())


def test_saved_logits_are_the_same_under_another_name(store: Store, samples: Any, tmp_path: Path) -> None:
    sublist = samples.setting("two", class_sublist=(2, 0))
    store.put_model(samples.model())
    store.put_dataset(samples.dataset())
    store.put_setting(sublist)
    state = samples.take_up(store, samples.key(setting=sublist))
    for where in state.missing():
        part = samples.logits()[where.start : where.stop, [2, 0]]
        targets = np.array([1, -1, 0])[np.arange(where.start, where.stop) % 3]
        ranks = np.where(targets < 0, 2, part.argmax(1) != targets)
        labels = {"predictions": part.argmax(1).astype(np.int32), "target_ranks": ranks.astype(np.int32)}
        store.put_shards([(state.id, samples.shard(where, **labels))])
    store.complete_evaluation(state.id, [])
    ours = store.evaluation("net", "two")
    index = save_logits([ours], tmp_path / "out")
    entry = json.loads(index.read_text())
    entry["models"][0]["model"] = "again"
    index.write_text(json.dumps(entry))
    (found_id,) = import_logits(store, tmp_path / "out")
    again = store.evaluation_by_id(found_id)
    assert np.array_equal(again.logits(), samples.logits()[:, [2, 0]])
    assert np.array_equal(again.predictions(), ours.predictions())
    assert np.array_equal(again.target_ranks(), ours.target_ranks())
    assert again.is_cut_by_model
    assert again.model_fingerprint != ours.model_fingerprint


def test_all_columns_of_a_setting_of_some_classes_are_taken_too(store: Store, samples: Any, tmp_path: Path) -> None:
    samples.put_definitions(store, samples.setting("two", class_sublist=(2, 0)))
    targets = np.array([1, -1, 0])[np.arange(10) % 3]
    folder = write(tmp_path / "in", arrays(samples, targets=targets), eval_setting="two")
    (found_id,) = import_logits(store, folder)
    found = store.evaluation_by_id(found_id)
    assert not found.is_cut_by_model
    assert np.array_equal(found.predictions()[0], samples.logits()[:, [2, 0]].argmax(1))


def test_a_subset_takes_its_own_samples_only(store: Store, samples: Any, tmp_path: Path) -> None:
    samples.put_definitions(store, samples.setting("some", sample_indices=np.array([7, 2, 5])))
    folder = write(tmp_path / "in", arrays(samples), eval_setting="some")
    with pytest.raises(DataError, match=r"7 sample\(s\) are not in 'some': 'test/0', 'test/1', 'test/3'"):
        list(import_logits(store, folder))
    whole = arrays(samples)
    keep = [index for index, name in enumerate(whole["sample_ids"]) if name in ("test/7", "test/2", "test/5")]
    write(folder, {name: array[keep] for name, array in whole.items()}, eval_setting="some")
    (found_id,) = import_logits(store, folder)
    assert np.array_equal(store.evaluation_by_id(found_id).logits(), samples.logits()[[7, 2, 5]])


def test_the_label_space_is_that_of_models_on_the_same_data(store: Store, samples: Any, tmp_path: Path) -> None:
    samples.put_definitions(store)
    folder = write(tmp_path / "in", arrays(samples), label_space=None)
    with pytest.raises(DataError, match=r"0 are evaluated on the data of 'data'\. Give .label_space."):
        list(import_logits(store, folder))
    samples.completed(store)
    (found_id,) = import_logits(store, folder)
    assert store.evaluation_by_id(found_id).label_space == "three"


def test_importing_again_changes_nothing_and_other_logits_need_another_version(
    store: Store, samples: Any, tmp_path: Path
) -> None:
    samples.put_definitions(store)
    folder = write(tmp_path / "in", arrays(samples))
    (first,) = import_logits(store, folder)
    store.complete_evaluation(first, [])
    assert list(import_logits(store, folder)) == [first]
    assert store.evaluation_by_id(first).status == "complete"
    other = arrays(samples, logits=samples.logits() * 2)
    with pytest.raises(DataError, match=r"Other logits of 'jax-net' on 'data' are stored already, and were kept"):
        list(import_logits(store, write(folder, other)))
    assert np.array_equal(store.evaluation_by_id(first).logits(), samples.logits())
    (second,) = import_logits(store, write(folder, other, version="2"))
    assert second != first
    assert not store.evaluation_by_id(first).is_stale, "until the other logits have metrics"
    store.complete_evaluation(second, [])
    assert store.evaluation_by_id(first).is_stale


def test_a_model_that_was_evaluated_here_keeps_its_name(store: Store, samples: Any, tmp_path: Path) -> None:
    samples.completed(store)
    with pytest.raises(DataError, match=r"'net' is a model that was evaluated here.*'net-imported'"):
        list(import_logits(store, write(tmp_path / "in", arrays(samples), model="net")))
    assert not store.evaluation("net", "data").is_stale


NAN = np.where(np.eye(10, 3, dtype=bool), np.nan, 1.0).astype(np.float32)


@of_the_file
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logits": NAN}, r"3 row\(s\) of draw 0 have logits that are not finite in float32, the first is 'test/0'"),
        ({"logits": np.full((10, 3), 1e300)}, "10 row.* not finite in float32"),
        ({"logits": np.ones((10, 4))}, "logits of 4 classes, but 'data' has 3"),
        ({"logits": np.ones((10, 3), int)}, r"shape \(10, 3\) and the type int64"),
        ({"logits": np.ones(10)}, r"shape \(10,\)"),
        ({"logits": np.ones((0, 10, 3))}, "and not empty"),
        ({"logits": np.ones((9, 3))}, "logits of 9 samples, 10 targets and 10 sample ids"),
        (
            {"targets": np.zeros(10, int)},
            r"6 target\(s\) are not those of 'data', the first is 0 of 'test/1' and should be 1",
        ),
        ({"targets": np.zeros(10)}, "targets are of shape .* whole numbers"),
        ({"sample_ids": np.array(["test/0"] * 10)}, "has the sample 'test/0' twice"),
        (
            {"sample_ids": np.array([f"{i}.png" for i in range(10)])},
            r"10 sample\(s\) are not in 'data': '0.png', '1.png'",
        ),
        ({"sample_ids": np.arange(10)}, "sample_ids are of shape .* text"),
        ({"sample_ids": np.array(["x"] * 10, object)}, "Cannot read .* as an .npz of plain arrays"),
    ],
)
def test_what_is_wrong_with_the_arrays_is_said_and_nothing_is_stored(
    store: Store, samples: Any, tmp_path: Path, changes: Arrays, message: str
) -> None:
    samples.put_definitions(store)
    content = {**arrays(samples)}
    fresh = {"logits": samples.logits(), "targets": samples.dataset().targets,
             "sample_ids": np.array(samples.dataset().sample_ids)}  # fmt: skip
    content = fresh | changes
    with pytest.raises(DataError, match=message):
        list(import_logits(store, write(tmp_path / "in", content)))
    assert not store.list_evaluations()
    assert [model.name for model in store.list_models()] == ["net"]


@of_the_file
@pytest.mark.parametrize("name", ["logits", "targets", "sample_ids"])
def test_a_missing_array_is_named(store: Store, samples: Any, tmp_path: Path, name: str) -> None:
    samples.put_definitions(store)
    content = {key: array for key, array in arrays(samples).items() if key != name}
    with pytest.raises(DataError, match=f"has no array '{name}'"):
        list(import_logits(store, write(tmp_path / "in", content)))


def _wants_the_model(logits: Any, targets: Any, py_model: Any) -> dict[str, float]:
    return {"other": py_model.eval_batch_size}


@of_the_file
def test_a_metric_that_wants_the_model_itself_is_undefined_and_the_others_are_there(
    store: Store, samples: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = SimpleNamespace(metrics_fn=_wants_the_model)
    monkeypatch.setattr(registry, "eval_setting", lambda name: setting)
    samples.put_definitions(store)
    (found_id,) = import_logits(store, write(tmp_path / "in", arrays(samples)))
    results.store_metrics(store, found_id)
    found = {metric.name: metric for metric in store.evaluation_by_id(found_id).metrics()}
    assert found["top1"].value is not None
    assert found["metrics_fn"].value is None
    assert "jax-net" in found["metrics_fn"].reason


def _with_header(content: Any, shape: tuple[int, ...]) -> bytes:
    """An .npy file of `content` whose header tells another shape."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": content.dtype.str, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content.tobytes()


@of_the_file
@pytest.mark.parametrize(("name", "factor"), [("logits", 0.5), ("logits", 2), ("targets", 0.5), ("sample_ids", 0.5)])
def test_values_that_are_not_as_many_as_their_header_tells_are_refused(
    store: Store, samples: Any, tmp_path: Path, name: str, factor: float
) -> None:
    samples.put_definitions(store)
    content = arrays(samples)
    if name == "logits":
        content["logits"] = np.ascontiguousarray(np.stack([content["logits"]] * 4))
    folder = write(tmp_path / "in", content)
    length, *rest = content[name].shape
    with zipfile.ZipFile(folder / "net.npz", "w") as archive:
        for key, array in content.items():
            shape = (int(length * factor), *rest) if key == name else array.shape
            archive.writestr(f"{key}.npy", _with_header(np.ascontiguousarray(array), shape))
    with pytest.raises(DataError, match=r"net\.npz.* follow"):
        list(import_logits(store, folder))
    assert store.list_evaluations() == []


@of_the_file
def test_logits_in_fortran_order_are_refused(store: Store, samples: Any, tmp_path: Path) -> None:
    samples.put_definitions(store)
    content = arrays(samples)
    content["logits"] = np.asfortranarray(content["logits"])
    with pytest.raises(DataError, match="in Fortran order"):
        list(import_logits(store, write(tmp_path / "in", content)))


@of_the_file
@pytest.mark.parametrize("cut", ["zip", "member"])
def test_a_damaged_file_is_said(store: Store, samples: Any, tmp_path: Path, cut: str) -> None:
    samples.put_definitions(store)
    folder = write(tmp_path / "in", arrays(samples))
    path = folder / "net.npz"
    if cut == "zip":
        path.write_bytes(path.read_bytes()[:200])
    else:
        with zipfile.ZipFile(path) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
        content["logits.npy"] = content["logits.npy"][:-8]
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, data)
    with pytest.raises(DataError, match=r"net\.npz(: logits .* follow| as an .npz of plain arrays)"):
        list(import_logits(store, folder))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"model": None}, "an entry has no 'model'. Each needs model, eval_setting, file"),
        ({"model": "../x"}, "name '../x' is not allowed"),
        ({"file": "../net.npz"}, "there is no file '../net.npz' beside it"),
        ({"file": "other.npz"}, "there is no file 'other.npz' beside it"),
        ({"fit_seed": "0"}, "'fit_seed' of 'jax-net' is '0'. It must be int"),
        ({"sha256": "0" * 64}, "is not the file that the index describes"),
    ],
)
def test_what_is_wrong_with_the_index_is_said(
    samples: Any, tmp_path: Path, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_index(write(tmp_path / "in", arrays(samples), **entry))


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "as JSON"), ("[]", "holds a list"), ('{"models": []}', "has no list 'models'"),
     ('{"format": 2, "models": [{}]}', "has the format 2; this version of the testbed reads 1")],
)  # fmt: skip
def test_an_index_of_another_kind_is_said(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read_index(tmp_path)


def test_a_directory_without_an_index_and_an_unknown_setting_are_said(
    store: Store, samples: Any, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"Cannot read .*index\.json .*No such file.*README"):
        list(import_logits(store, tmp_path / "none"))
    samples.put_definitions(store)
    with pytest.raises(UnknownNameError, match=r"'dota' is not stored.*Did you mean data.*--add-eval-setting dota"):
        list(import_logits(store, write(tmp_path / "in", arrays(samples), eval_setting="dota")))
