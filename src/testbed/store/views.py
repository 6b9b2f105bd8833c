"""Frozen copies that the store hands out about models, settings, separations and the state of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from testbed.logit_policy import detail
from testbed.records import Separation, ShardRange, Shift

FAILED_METRICS = "metrics_fn"  # stands among metrics for those of a setting's function that failed, with the reason
Status = Literal["pending", "running", "complete", "partial", "failed"]


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What is known of a model once it has been loaded.

    Args:
        weights_sha256: of its parameters; None where it has none, or a new set in every run.
        num_outputs: width of its logits.
    """

    weights_sha256: str | None
    num_outputs: int | None


@dataclass(frozen=True, kw_only=True)
class EvaluationState:
    """How far an evaluation has come.

    Args:
        id: what the other methods of the store take.
        status: 'pending' (nothing stored), 'running', 'complete', 'partial' or 'failed'.
        num_draws: draws that are planned: as many as were asked for last, or as are stored as a whole if that is more.
        num_samples: samples of the setting.
        shard_size: samples per shard, fixed when the first shard is stored.
        codecs: by (draw, start, stop) of every stored shard, how its logits are encoded.
    """

    id: int
    status: Status
    num_draws: int
    num_samples: int
    shard_size: int
    codecs: Mapping[tuple[int, int, int], str]

    @property
    def stored(self) -> frozenset[tuple[int, int, int]]:
        """(draw, start, stop) of every stored shard."""
        return frozenset(self.codecs)

    def codecs_below(self, store_logits: str) -> list[str]:
        """Encodings of stored shards that keep less of the logits than the policy does."""
        return sorted({codec for codec in self.codecs.values() if detail(codec) < detail(store_logits)})

    def missing(self, *, num_draws: int | None = None, store_logits: str | None = None) -> list[ShardRange]:
        """The planned shards that are not stored, by draw and then by start.

        Args:
            num_draws: how many draws are to be planned, where that is not yet put into the store.
            store_logits: a policy; shards that keep less of the logits are missing too.
        """
        poorer = [] if store_logits is None else self.codecs_below(store_logits)
        planned = planned_ranges(
            num_draws=self.num_draws if num_draws is None else num_draws,
            num_samples=self.num_samples,
            shard_size=self.shard_size,
        )
        enough = {place for place, codec in self.codecs.items() if codec not in poorer}
        return [where for where in planned if (where.draw, where.start, where.stop) not in enough]


def planned_ranges(*, num_draws: int, num_samples: int, shard_size: int) -> list[ShardRange]:
    """The grid of shards of an evaluation: every `shard_size` samples, the last shard of a draw shorter if need be."""
    starts = range(0, num_samples, shard_size)
    return [
        ShardRange(draw=draw, start=start, stop=min(start + shard_size, num_samples))
        for draw in range(num_draws)
        for start in starts
    ]


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A model in the store, in its current version.

    Args:
        num_versions: definitions this name has had.
        num_evaluations: of the current version.
    """

    name: str
    label_space: str
    hidden: bool
    fingerprint: str
    spec: Mapping[str, Any]
    facts: ModelFacts
    created_at: datetime
    num_versions: int
    num_evaluations: int


@dataclass(frozen=True, kw_only=True)
class StoredSetting:
    """An evaluation setting in the store, in its current version.

    Args:
        n: samples it evaluates.
        num_versions: definitions this name has had.
        num_evaluations: of the current version.
    """

    name: str
    hidden: bool
    fingerprint: str
    spec: Mapping[str, Any]
    dataset: str
    split: str
    n: int
    shift: Shift | None
    created_at: datetime
    num_versions: int
    num_evaluations: int


@dataclass(frozen=True, kw_only=True)
class StoredSeparation(Separation):
    """A separation with what was found beside it.

    Args:
        pair_ids: sample ids of the two points that attain it.
        exact: whether the search was exhaustive.
        detail: anything else that was found, such as the witness.
    """

    pair_ids: tuple[str, str]
    exact: bool = True
    detail: Mapping[str, Any] = field(default_factory=dict)
