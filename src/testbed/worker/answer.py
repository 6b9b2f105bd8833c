"""What a model answered to a unit, made a shard: in the final encoding, with predictions and ranks. Imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from registry import ANY_LABEL_SPACE
from testbed.class_subset import columns_in_subset, columns_of
from testbed.codec import checksum
from testbed.engine.unit import ModelFacts, Task, Unit, UnitFailure
from testbed.errors import DefinitionError
from testbed.logit_policy import keep
from testbed.metrics.accuracy import best_ranks, predictions
from testbed.records import Shard, ShardRange


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The logits of a model over a unit. It does not hold the model's network.

    Args:
        model: the definition.
        takes_class_sublist: the model itself picks the setting's classes.
        weights_sha256: of the network.
        num_bytes: of its parameters and buffers.
        logits: batch by batch; they are there once the device has done all that was queued.
        largest_batch: that was run at once.
    """

    model: Model
    takes_class_sublist: bool
    weights_sha256: str | None
    num_bytes: int
    logits: tuple[Tensor, ...]
    largest_batch: int

    def facts(self, setting: EvalSetting) -> ModelFacts:
        """What is known of the model now.

        The width of logits says nothing about a model that cuts them to a setting's classes, or is fitted on any data.
        """
        is_cut = setting.class_sublist is not None and self.takes_class_sublist
        says_nothing = is_cut or self.model.label_space == ANY_LABEL_SPACE
        return ModelFacts(
            num_outputs=None if says_nothing else int(self.logits[0].shape[1]),
            weights_sha256=self.weights_sha256,
            num_bytes=self.num_bytes,
        )

    def shard(
        self, task: Task, setting: EvalSetting, unit: Unit, *, seconds: float, worker: str
    ) -> Shard | UnitFailure:
        """The piece of an evaluation that the unit is; a failure where the model has other classes than the data."""
        logits = np.concatenate([piece.numpy() for piece in self.logits])
        try:
            in_setting = self._in_setting(logits, setting, task)
        except DefinitionError as error:
            return UnitFailure(reason=str(error), is_request_error=True)
        piece = slice(unit.start, unit.stop)
        targets, label_sets = task.targets[piece], None if task.label_sets is None else task.label_sets[piece]
        kept = keep(unit.store_logits, logits, in_setting=in_setting, targets=targets)
        return Shard(
            where=ShardRange(draw=unit.draw, start=unit.start, stop=unit.stop),
            predictions=predictions(in_setting),
            target_ranks=best_ranks(in_setting, targets, label_sets),
            payload=kept.payload,
            codec=kept.codec,
            num_outputs=kept.num_outputs,
            sha256=checksum(kept.payload),
            num_nonfinite=int((~np.isfinite(logits).all(axis=1)).sum()),
            batch_size=self.largest_batch,
            seconds=seconds,
            worker=worker,
        )

    def _in_setting(self, logits: NDArray[np.float32], setting: EvalSetting, task: Task) -> NDArray[Any]:
        """The logits of the setting's classes.

        Raises: DefinitionError: the model has other classes than the data set.
        """
        width, sublist = logits.shape[1], setting.columns
        columns = range(task.num_classes) if sublist is None else columns_of(sublist)
        is_cut = sublist is not None and self.takes_class_sublist
        if sublist is None or is_cut:
            num_classes = len(columns if sublist is None else sublist)
            if width not in (num_classes, len(columns)):
                raise DefinitionError(
                    f"The model has {width} outputs but '{task.setting}' has {num_classes} classes. "
                    "Use a model of the setting's label space, or give the setting a class_sublist."
                )
        elif max(columns) >= width:
            raise DefinitionError(
                f"The model has {width} outputs but '{task.setting}' looks at class {max(columns)}. "
                "Use a model of the setting's label space."
            )
        return columns_in_subset(logits, sublist, is_cut=is_cut, sums_votes=self.model.answers == "votes")
