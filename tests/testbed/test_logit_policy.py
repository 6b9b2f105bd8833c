"""Policies: what each keeps of a shard, in which order they stand, and what they take."""

from __future__ import annotations

import numpy as np
import pytest

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.codec import decode
from testbed.errors import DefinitionError, StoreError
from testbed.logit_policy import LABEL_BYTES, bytes_per_sample, check_policy, detail, keep, keeps_all, read_top

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(50, 1000)).astype(np.float32)
TARGETS = RNG.integers(0, 1000, 50)


def _keep(policy: str, logits: np.ndarray = LOGITS, targets: np.ndarray = TARGETS):  # type: ignore[no-untyped-def]
    return keep(policy, logits, in_setting=logits, targets=targets)


@pytest.mark.parametrize("policy", ["full", "lossless", "float16", "topk:1", "topk:20", "predictions"])
def test_the_policies_are_these(policy: str) -> None:
    assert check_policy(policy, where="--store-logits") == policy


@pytest.mark.parametrize("policy", ["", "Full", "f16", "topk", "topk:K", "topk:0", "topk:-1", "topk:1.5", "topk:5+f32"])
def test_another_policy_is_refused_with_the_list(policy: str) -> None:
    with pytest.raises(DefinitionError, match=r"--store-logits is '.*full, lossless, float16, topk:K, predictions"):
        check_policy(policy, where="--store-logits")


@pytest.mark.parametrize(
    ("policy", "codecs", "size"),
    [("full", {"f32"}, 4000), ("lossless", {"f32+shuffle+zlib", "f32+shuffle+zstd"}, 3600), ("float16", {"f16"}, 2000),
     ("topk:20", {"topk:20"}, 88), ("topk:5", {"topk:5"}, 28), ("predictions", {"predictions"}, 0)],
)  # fmt: skip
def test_a_policy_keeps_so_many_bytes_of_a_sample(policy: str, codecs: set[str], size: int) -> None:
    kept = _keep(policy)
    assert kept.codec in codecs
    assert len(kept.payload) / 50 == pytest.approx(size, rel=0.06 if policy == "lossless" else 0)
    assert len(kept.payload) / 50 <= bytes_per_sample(policy, 1000) - LABEL_BYTES


@pytest.mark.parametrize("policy", ["full", "lossless"])
def test_full_and_lossless_keep_every_bit(policy: str) -> None:
    logits = LOGITS.copy()
    logits[3] = [np.nan, np.inf, -0.0, 1e38] * 250
    kept = _keep(policy, logits)
    assert decode(kept.payload, codec=kept.codec, num_outputs=kept.num_outputs).tobytes() == logits.tobytes()


@pytest.mark.parametrize("value", [65505.0, np.nan, -np.inf])
def test_a_shard_that_half_precision_cannot_hold_is_kept_in_single(value: float) -> None:
    logits = LOGITS.copy()
    logits[7, 7] = value
    kept = _keep("float16", logits)
    assert kept.codec == "f32"
    assert decode(kept.payload, codec="f32", num_outputs=1000).tobytes() == logits.tobytes()


@pytest.mark.parametrize("value", [1e6, np.inf])
def test_largest_logits_that_half_precision_cannot_hold_are_kept_in_single(value: float) -> None:
    logits = LOGITS.copy()
    logits[7, 7] = value
    kept = _keep("topk:20", logits)
    assert kept.codec == "topk:20+f32"
    top = read_top(kept.payload, codec=kept.codec, num_outputs=kept.num_outputs)
    assert (top.values[7, 0], top.classes[7, 0]) == (value, 7)


def test_the_largest_logits_are_those_of_the_settings_classes() -> None:
    kept = keep("topk:2", LOGITS, in_setting=LOGITS[:, [10, 20, 30]], targets=np.zeros(50, int))
    assert (kept.codec, kept.num_outputs) == ("topk:2", 3)
    top = read_top(kept.payload, codec=kept.codec, num_outputs=3)
    assert top.classes.max() == 2
    assert np.array_equal(top.target_logits, LOGITS[:, 10])


def test_probabilities_of_targets_survive() -> None:
    kept = _keep("topk:5")
    found = read_top(kept.payload, codec=kept.codec, num_outputs=1000).target_probabilities
    exact = np.exp(LOGITS.astype(float))
    assert found == pytest.approx(exact[np.arange(50), TARGETS] / exact.sum(axis=1), rel=1e-5)


def test_more_detail_is_larger() -> None:
    rising = ["predictions", "topk:1", "topk:20", "float16", "full"]
    assert sorted(rising, key=detail) == rising
    assert len({detail(policy) for policy in rising}) == 5
    same = (("float16", "f16"), ("full", "f32"), ("full", "lossless"), ("lossless", "f32+shuffle+zlib"),
            ("topk:20", "topk:20"), ("topk:20", "topk:20+f32"), ("predictions", "predictions"))  # fmt: skip
    for policy, codec in same:
        assert detail(policy) == detail(codec)


def test_only_whole_rows_are_all_logits() -> None:
    assert [
        keeps_all(codec) for codec in ("f32", "f16", "f32+shuffle+zstd", "topk:9", "topk:9+f32", "predictions")
    ] == ([True, True, True, False, False, False])
    with pytest.raises(StoreError, match="not one of the largest logits"):
        read_top(b"", codec="f32", num_outputs=3)


def test_estimates_are_per_sample_and_never_more_classes_than_there_are() -> None:
    policies = ("full", "lossless", "float16", "topk:20", "predictions")
    assert [bytes_per_sample(policy, 1000) for policy in policies] == [4008, 4008, 2008, 96, 8]
    assert bytes_per_sample("topk:20", 3) == bytes_per_sample("topk:3", 3)


def test_a_setting_with_another_policy_is_refused_when_it_is_defined() -> None:
    with pytest.raises(DefinitionError, match=r"EvalSetting 'x': store_logits is 'half'\. Use one of full"):
        EvalSetting(name="x", dataset=StandardDataset(name="digits"), store_logits="half")
