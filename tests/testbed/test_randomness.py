"""Random numbers depend on key, sample and draw alone, have the distribution they claim, and leave globals as found."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
import torch
from scipy import stats

from testbed.errors import DefinitionError, ShapeError
from testbed.randomness import SampleKeys, normal, permutation, seeded_globals, stream_key, uniform, uniform_numpy

KEY = 0x0123456789ABCDEF


def sample_keys(**changes) -> SampleKeys:
    known = {"seed": 0, "purpose": "eval", "dataset": "digits", "sample_indices": np.arange(20), "draw": 0}
    return SampleKeys(**(known | changes))


def global_draws() -> list[float]:
    return [random.random(), float(np.random.rand()), torch.rand(()).item()]  # noqa: NPY002


# ------------------------------------------------------------------------------------------------------ keys


def test_key_is_the_hash_of_its_canonical_text():
    """Stored results depend on it: a change here must be a change of version."""
    text = b'{"dataset":"digits","purpose":"eval","seed":0,"stream":"uniform-linf"}'
    expected = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    assert stream_key(0, purpose="eval", dataset="digits", stream="uniform-linf") == expected


def test_uniform_noise_of_the_first_digit_never_changes():
    units = sample_keys().take(0, 1).uniform("uniform-linf", (4,))
    assert units.mul(2**24).int().tolist() == [[13918547, 8934513, 8216477, 11674879]]


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"purpose": "train"}, {"purpose": "split"}, {"purpose": "bootstrap"}, {"dataset": "cifar10"},
     {"purpose": "run"}, {"draw": 1}, {"sample_indices": np.arange(20, 40)}, {"sample_indices": np.arange(20) + 2**32}],
    ids=str,
)  # fmt: skip
def test_everything_noise_depends_on_gives_other_numbers(change):
    units, others = sample_keys().uniform("a", (50,)), sample_keys(**change).uniform("a", (50,))
    assert (units == others).float().mean() < 0.01


def test_another_stream_gives_other_numbers():
    keys = sample_keys()
    assert (keys.uniform("snow/field", (50,)) == keys.uniform("snow/angle", (50,))).float().mean() < 0.01


def test_fields_of_a_key_cannot_run_into_each_other():
    one = stream_key(0, purpose="eval", dataset="a", stream="b/c")
    assert one != stream_key(0, purpose="eval", dataset="a/b", stream="c")
    assert one != stream_key(0, purpose="eval", dataset='a","stream":"b/c', stream="")


def test_unknown_purpose_is_refused_when_keys_are_built():
    with pytest.raises(DefinitionError, match=r"purpose 'test'\. Use one of train, eval, split, bootstrap, run"):
        sample_keys(purpose="test")


def test_bad_samples_and_draws_are_refused_when_keys_are_built():
    with pytest.raises(ShapeError, match="type float64"):
        sample_keys(sample_indices=np.zeros(3))
    with pytest.raises(DefinitionError, match="draw of random numbers is -1"):
        sample_keys(draw=-1)


# ------------------------------------------------------------------------------------- invariance to batching


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_same_bits_for_any_batching_order_and_subset(kind):
    def draw(keys):
        return getattr(keys, kind)("noise", (3, 5))

    keys = sample_keys(draw=2)
    together = draw(keys)
    assert torch.equal(torch.cat([draw(keys.take(start, start + 7)) for start in range(0, 20, 7)]), together)
    assert torch.equal(torch.cat([draw(keys.take(i, i + 1)) for i in range(20)]), together)
    order = np.array([19, 3, 3, 0, 11])
    assert torch.equal(draw(sample_keys(draw=2, sample_indices=order)), together[order])


def test_numbers_of_a_sample_do_not_depend_on_how_many_are_drawn():
    assert torch.equal(uniform(KEY, [5], draw=0, shape=(7,)), uniform(KEY, [5], draw=0, shape=(30,))[:, :7])


def test_torch_and_numpy_forms_are_one():
    units = uniform(KEY, [1, 2], draw=3, shape=(2, 3), dtype="float64")
    assert units.dtype == torch.float64
    assert np.array_equal(units.numpy(), uniform_numpy(KEY, [1, 2], draw=3, shape=(2, 3), dtype="float64"))


def test_take_keeps_all_else_and_has_a_length():
    part = sample_keys(seed=4, draw=3).take(5, 8)
    assert (len(part), part.seed, part.draw, part.sample_indices.tolist()) == (3, 4, 3, [5, 6, 7])


def test_keys_of_a_run_are_one_for_all_samples_and_for_training_and_evaluation():
    keys = sample_keys(seed=4, draw=3)
    units = keys.of_run().uniform("noise", (5,))
    assert units.shape == (1, 5)
    for same in (keys.take(5, 8), sample_keys(seed=4, draw=3, purpose="train", sample_indices=np.array([99]))):
        assert torch.equal(same.of_run().uniform("noise", (5,)), units)
    for change in ({"seed": 5}, {"draw": 4}, {"dataset": "cifar10"}):
        other = sample_keys(**{"seed": 4, "draw": 3} | change).of_run()
        assert (other.uniform("noise", (50,)) == keys.of_run().uniform("noise", (50,))).float().mean() < 0.1
    assert not torch.equal(keys.take(0, 1).uniform("noise", (5,)), units)


def test_other_devices_than_the_cpu_use_the_torch_form():
    for draw in (uniform, normal):
        drawn = draw(KEY, [0], draw=0, shape=(3,), device="meta")
        assert (drawn.shape, drawn.dtype, drawn.device.type) == ((1, 3), torch.float32, "meta")


# ---------------------------------------------------------------------------------------------- distributions


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers_are_uniform(dtype):
    units = uniform_numpy(KEY, np.arange(200), draw=0, shape=(1000,), dtype=dtype)
    assert stats.kstest(units.ravel(), "uniform").pvalue > 0.01
    last_bits = (units * (2**23 if dtype == "float32" else 2**32)).astype(np.int64) % 64
    assert stats.chisquare(np.bincount(last_bits.ravel(), minlength=64)).pvalue > 0.01


def test_neighbouring_numbers_samples_and_draws_are_uncorrelated():
    units = np.stack([uniform_numpy(KEY, np.arange(100), draw=draw, shape=(400,)) for draw in range(3)]) - 0.5
    for a, b in ((units[..., 1:], units[..., :-1]), (units[:, 1:], units[:, :-1]), (units[1:], units[:-1])):
        assert abs(12 * (a * b).mean()) < 4 / np.sqrt(a.size)


def test_normal_numbers_are_normal():
    numbers = normal(KEY, np.arange(200), draw=0, shape=(1000,))
    assert numbers.dtype == torch.float32
    assert stats.kstest(numbers.double().numpy().ravel(), "norm").pvalue > 0.01
    assert numbers.std().item() == pytest.approx(1, abs=4 / np.sqrt(2 * 200_000))


def test_normal_is_the_inverse_distribution_function_of_uniform():
    numbers = normal(KEY, [3], draw=1, shape=(100,)).double().numpy()
    units = uniform_numpy(KEY, [3], draw=1, shape=(100,), dtype="float64")
    assert stats.norm.cdf(numbers) == pytest.approx(units, rel=1e-6)


# ----------------------------------------------------------------------------------------------- permutations


def test_permutation_is_a_keyed_order_of_all_positions():
    order = permutation(KEY, 1000)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(1000))
    assert np.array_equal(order, permutation(KEY, 1000))
    assert (order == permutation(KEY + 1, 1000)).mean() < 0.02
    assert permutation(KEY, 0).tolist() == []


def test_every_order_of_three_is_equally_likely():
    counts = np.unique([permutation(key, 3) for key in range(3000)], axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 0.01


def test_positions_keep_their_relative_order_when_there_are_more():
    order = permutation(KEY, 50)
    assert np.array_equal(order[order < 49], permutation(KEY, 49))


def test_equal_numbers_are_ordered_by_position(monkeypatch):
    monkeypatch.setattr("testbed.randomness.uniform_plain", lambda *args, **kwargs: np.tile([0.5, 0.25], 50))
    assert permutation(KEY, 100).tolist() == [*range(1, 100, 2), *range(0, 100, 2)]


# -------------------------------------------------------------------------------------------- global generators


def test_keyed_draws_leave_global_generators_alone():
    with seeded_globals(1):
        expected = global_draws()
    with seeded_globals(1):
        sample_keys().normal("a", (3,))
        sample_keys().uniform("a", (3,))
        permutation(KEY, 10)
        assert global_draws() == expected


def test_global_generators_are_seeded_by_the_key():
    """Python's and numpy's by all of it; torch's generator on the CPU takes 32 bits of any seed."""

    def draws(key):
        with seeded_globals(key):
            return global_draws()

    assert draws(KEY) == draws(KEY)
    assert all(a != b for a, b in zip(draws(KEY), draws(KEY ^ 1), strict=True))
    assert all(a != b for a, b in zip(draws(KEY)[:2], draws(KEY ^ (1 << 40))[:2], strict=True))


@pytest.mark.parametrize("fails", [False, True])
def test_global_generators_go_on_as_if_nothing_had_happened(fails):
    with seeded_globals(7):
        expected = global_draws() + global_draws()
    with seeded_globals(7):
        before = global_draws()
        try:
            with seeded_globals(8):
                global_draws()
                if fails:
                    raise KeyError
        except KeyError:
            pass
        assert before + global_draws() == expected
