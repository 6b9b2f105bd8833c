"""Logits that were computed elsewhere as evaluations of a stored setting: put in order by sample id, and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from testbed.class_subset import NO_LABEL, columns_in_subset, columns_of
from testbed.codec import checksum, encode
from testbed.errors import DataError
from testbed.fingerprint import model_fingerprint
from testbed.metrics.accuracy import best_ranks, predictions
from testbed.records import EvaluationKey, ModelVersion, Shard, ShardRange
from testbed.store import digests
from testbed.store.logit_files import LogitFile, read_index
from testbed.store.schema import evaluations, logit_shards, model_versions, models, setting_versions
from testbed.store.setting_samples import SettingSamples, setting_samples
from testbed.store.store import Store

SHARD_BYTES = 4 << 20
IMPORTED = "imported logits"  # the definition of such a model


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """A file whose samples are those of a setting.

    Args:
        order: [n] positions in the file of the setting's samples.
        is_cut: whether the logits are of the setting's classes alone, of a setting that looks at some classes only.
    """

    file: LogitFile
    setting: SettingSamples
    order: NDArray[np.int64]
    is_cut: bool

    def shards(self, shard_size: int) -> Iterator[Shard]:
        """The logits in the setting's order, piece by piece."""
        for draw, logits in enumerate(self.file.draws()):
            for start in range(0, len(self.order), shard_size):
                where = ShardRange(draw=draw, start=start, stop=min(start + shard_size, len(self.order)))
                yield self._shard(where, logits[self.order[where.start : where.stop]])

    def _shard(self, where: ShardRange, logits: NDArray[np.float32]) -> Shard:
        piece, sets = slice(where.start, where.stop), self.setting.label_sets
        in_setting = columns_in_subset(
            logits,
            self.setting.class_sublist,
            is_cut=self.is_cut,
            sums_votes=bool(self.file.numerics.get("sums_votes")),
        )
        payload = encode(logits)
        return Shard(
            where=where,
            predictions=predictions(in_setting),
            target_ranks=best_ranks(in_setting, self.setting.targets[piece], None if sets is None else sets[piece]),
            payload=payload,
            codec="f32",
            num_outputs=logits.shape[1],
            sha256=checksum(payload),
            num_nonfinite=0,
            batch_size=len(logits),
            seconds=0.0,
            worker="import",
        )


def import_logits(store: Store, directory: Path, *, run_id: int | None = None) -> Iterator[int]:
    """Stores the files of a directory one by one; yields the id of each evaluation once all of it is stored.

    Its metrics are then to be computed. Logits that are stored already change nothing.

    Raises:
        UnknownNameError: the setting is not stored.
        DataError: a file is not as the README describes, its samples or targets are not the setting's, a logit is not
            finite, or other logits are stored under the same name, version and seeds. Nothing of that file is kept.
    """
    for file in read_index(directory):
        with store.reading() as connection:
            setting = setting_samples(connection, file.setting)
            model = _model(connection, file, setting)
        answers = _Answers(file=file, setting=setting, order=_order(file, setting), is_cut=_is_cut(file, setting))
        _check_draws(answers)
        _check_finite(answers)
        numerics = {"device": "elsewhere", **file.numerics}
        numerics.pop("is_cut_by_model", None)  # what an index says may be of the file as it was saved
        numerics |= {"is_cut_by_model": True} if answers.is_cut else {}
        key = EvaluationKey(
            model_fingerprint=model.fingerprint,
            setting_fingerprint=setting.fingerprint,
            fit_seed=file.fit_seed,
            noise_seed=file.noise_seed,
            numerics=numerics,
        )
        _check_same(store, answers, key)
        yield _put(store, answers, model, key, run_id)


def _check_draws(answers: _Answers) -> None:
    num_draws = answers.file.shape()[0]
    if num_draws > 1 and not answers.setting.is_perturbed:
        raise DataError(
            f"{answers.file.path} has {num_draws} draws, but '{answers.setting.name}' does not change its images, so "
            "there is one. Give logits of shape (n, classes)."
        )


def _put(store: Store, answers: _Answers, model: ModelVersion, key: EvaluationKey, run_id: int | None) -> int:
    num_draws, n, width = answers.file.shape()
    store.put_model(model)
    if not answers.is_cut:
        store.set_model_facts(model.fingerprint, weights_sha256=None, num_outputs=width)
    size = max(1, SHARD_BYTES // (4 * width))
    state = store.put_evaluation(key, num_draws=num_draws, num_samples=n, shard_size=size, run_id=run_id)
    for shard in answers.shards(state.shard_size):
        store.put_shards([(state.id, shard)])
    return state.id


def _model(connection: Connection, file: LogitFile, setting: SettingSamples) -> ModelVersion:
    """The model of its own that a file is of. Raises: DataError: its name is that of a model evaluated here."""
    label_space = file.label_space or _label_space(connection, file, setting)
    spec = {"definition": IMPORTED, "version": file.version}
    same_name = (models.c.name == file.model) & (models.c.label_space == label_space)
    digests.check_models(connection)
    stored = connection.scalars(select(model_versions.c.spec).join(models).where(same_name)).all()
    if any(found.get("definition") != IMPORTED for found in stored):
        raise DataError(
            f"'{file.model}' is a model that was evaluated here. Logits from elsewhere are a model of their own: "
            f"give it another name in the index, such as '{file.model}-imported'."
        )
    mark = model_fingerprint(file.model, label_space, spec)
    return ModelVersion(
        name=file.model, label_space=label_space, fingerprint=mark, spec={**spec, "origin": dict(file.origin)}
    )


def _label_space(connection: Connection, file: LogitFile, setting: SettingSamples) -> str:
    """That of the models which were evaluated on the same data."""
    wanted = (
        select(models.c.label_space)
        .distinct()
        .select_from(evaluations)
        .join(model_versions)
        .join(models)
        .join(setting_versions, evaluations.c.setting_version_id == setting_versions.c.id)
        .where(setting_versions.c.dataset_id == setting.dataset_id)
    )
    found: Sequence[str] = connection.scalars(wanted).all()
    if len(found) != 1:
        raise DataError(
            f"The label space of '{file.model}' is not known: {len(found)} are evaluated on the data of "
            f'\'{setting.name}\'. Give "label_space" in the index, such as "imagenet-1k".'
        )
    return found[0]


# Checks


def _order(file: LogitFile, setting: SettingSamples) -> NDArray[np.int64]:
    """Positions in the file of the setting's samples, [n]."""
    targets, ids = file.arrays()
    if not file.shape()[1] == len(targets) == len(ids):
        raise DataError(
            f"{file.path} has logits of {file.shape()[1]} samples, {len(targets)} targets and {len(ids)} sample ids. "
            "The three must be equal."
        )
    position = {name: index for index, name in enumerate(ids)}
    if len(position) < len(ids):
        twice = next(name for index, name in enumerate(ids) if position[name] != index)
        raise DataError(f"{file.path} has the sample '{twice}' twice.")
    wanted = set(setting.sample_ids)
    for names, what in (
        (position.keys() - wanted, "not in"),
        (wanted - position.keys(), "missing from the file, but in"),
    ):
        if names:
            listed = ", ".join(f"'{name}'" for name in sorted(names)[:3])
            raise DataError(f"{file.path}: {len(names)} sample(s) are {what} '{setting.name}': {listed}.")
    order = np.array([position[name] for name in setting.sample_ids])
    if (differing := np.flatnonzero(targets[order] != setting.targets)).size:
        first = int(differing[0])
        raise DataError(
            f"{file.path}: {differing.size} target(s) are not those of '{setting.name}', the first is "
            f"{targets[order[first]]} of '{setting.sample_ids[first]}' and should be {setting.targets[first]}. "
            "Targets count the setting's classes from 0."
        )
    _check_label_sets(file, setting, order)
    return order


def _check_label_sets(file: LogitFile, setting: SettingSamples, order: NDArray[np.int64]) -> None:
    """Refuses a file that calls other classes right than the setting does; ranks are made of the setting's."""
    if (found := file.label_sets()) is None:
        return
    own = setting.targets[:, None] if setting.label_sets is None else setting.label_sets
    if len(found) != len(own):
        raise DataError(f"{file.path} has {len(found)} label sets, but {len(own)} samples.")
    for name, labels, wanted in zip(setting.sample_ids, found[order], own, strict=True):
        if set(labels.tolist()) - {NO_LABEL} != set(wanted.tolist()) - {NO_LABEL}:
            raise DataError(
                f"{file.path}: the label set of '{name}' is not that of '{setting.name}'. Leave label_sets out to take "
                "the setting's own."
            )


def _is_cut(file: LogitFile, setting: SettingSamples) -> bool:
    """Whether the logits are those of the setting's classes alone, of a setting that looks at some classes only."""
    width, sublist = file.shape()[2], setting.class_sublist
    if width == setting.num_classes:
        return sublist is not None
    if sublist is None or width <= max(columns_of(sublist)):
        raise DataError(
            f"{file.path} has logits of {width} classes, but '{setting.name}' has {setting.num_classes}. "
            "Write one column per class, in the order of its class names."
        )
    return False


def _check_finite(answers: _Answers) -> None:
    for draw, logits in enumerate(answers.file.draws()):
        is_bad = ~np.isfinite(logits[answers.order]).all(axis=1)
        if is_bad.any():
            first = answers.setting.sample_ids[int(np.flatnonzero(is_bad)[0])]
            raise DataError(
                f"{answers.file.path}: {is_bad.sum()} row(s) of draw {draw} have logits that are not finite in "
                f"float32, the first is '{first}'. Write finite numbers only."
            )


def _check_same(store: Store, answers: _Answers, key: EvaluationKey) -> None:
    """Refuses logits that differ from those that are stored under the same key."""
    state = store.find_evaluation(key)
    if state is None:
        return
    columns = logit_shards.c["draw", "start", "sha256"]
    with store.reading() as connection:
        rows = connection.execute(select(*columns).where(logit_shards.c.evaluation_id == state.id))
        stored = {(row.draw, row.start): row.sha256 for row in rows}
    for shard in answers.shards(state.shard_size):
        if stored.get((shard.where.draw, shard.where.start), shard.sha256) != shard.sha256:
            file = answers.file
            raise DataError(
                f"Other logits of '{file.model}' on '{file.setting}' are stored already, and were kept. Give the new "
                'ones another "version" or "model" in the index.'
            )
