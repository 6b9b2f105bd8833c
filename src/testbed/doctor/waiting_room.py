"""From names to a model that sits before its images: the same checks and the same loading as in an evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from testbed.class_subset import names_in_subset
from testbed.doctor.finding import Truth
from testbed.doctor.sitting import Sitting
from testbed.engine.data import Data, limited
from testbed.engine.place import Place
from testbed.engine.plan import Pairing
from testbed.engine.preflight import prepare
from testbed.engine.unit import Task
from testbed.errors import DefinitionError, TestbedError
from testbed.randomness import permutation, seeded_globals, stream_key
from testbed.records import IntArray
from testbed.worker.apply_arithmetic import set_flags
from testbed.worker.classifier import load_classifier
from testbed.worker.failures import failure
from testbed.worker.fitting import fit_samples


@contextmanager
def seated(pairing: Pairing, data: Data, place: Place, *, num_images: int) -> Iterator[Sitting]:
    """The model of a pairing, loaded on the first device, before some of its setting's images.

    Args:
        num_images: of a seeded order that is fixed for the data set, as for `--limit`; all where there are fewer.
    Raises: TestbedError: whatever keeps the evaluation from being run.
    """
    device, arithmetic, model = place.devices.names[0], place.arithmetic, pairing.model
    prepared = prepare([pairing], data, device=device, threads=place.threads, arithmetic=arithmetic)
    task, setting = prepared.tasks[0], prepared.evaluations[0].setting
    samples = data.setting_samples(setting)
    names = [samples.sample_ids[index] for index in task.sample_indices]
    chosen = limited(names, min(len(names), num_images), dataset=samples.dataset)
    order = stream_key(0, purpose="split", dataset=samples.dataset, stream="doctor")
    chosen = chosen[permutation(order, len(chosen))]  # classes mixed, so that the first images tell of all
    torch.set_num_threads(place.threads)
    set_flags(arithmetic)
    with seeded_globals(stream_key(pairing.seed, purpose="eval", dataset=samples.dataset, stream="doctor")):
        try:
            classifier = load_classifier(
                model,
                device=device,
                fit_seed=pairing.fit_seed,
                fit_samples=fit_samples(model, task, seed=pairing.fit_seed, data_root=place.data_root),
                arithmetic=arithmetic,
            )
        except TestbedError:
            raise
        except Exception as error:  # whatever a loader raises
            raise DefinitionError(f"Model '{model.name}' cannot be loaded: {failure(error).reason}") from error
        yield Sitting(
            model=model,
            classifier=classifier,
            setting=setting,
            dataset=data.dataset(setting.dataset),
            samples=samples,
            sample_indices=task.sample_indices[chosen],
            truth=Truth(_labels(task)[chosen], names_in_subset(samples.class_names, setting.columns)),
            batch_size=pairing.batch_size,
            device=device,
        )


def _labels(task: Task) -> IntArray:
    """(n, most) the classes that count as right, the target first; filled up with -1."""
    return task.targets[:, None] if task.label_sets is None else task.label_sets
