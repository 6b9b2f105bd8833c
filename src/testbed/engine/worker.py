"""One worker: takes a unit, returns its logits. It knows no engine and no database. Imports torch."""

from __future__ import annotations

import traceback
from collections import OrderedDict
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eval_settings.eval_setting_base import EvalSetting
from models.model_base import Model
from registry import ANY_LABEL_SPACE, registry
from testbed.codec import checksum
from testbed.data.imagetransforms import transform_on_tensor
from testbed.definitions import load_definitions
from testbed.engine.classifier import Classifier, load_classifier, weights_sha256
from testbed.engine.fitting import fit_samples
from testbed.engine.unit import ModelFacts, Task, Unit, UnitFailure, UnitResult, WorkerConfig
from testbed.errors import DefinitionError, TestbedError
from testbed.logit_policy import keep
from testbed.metrics.accuracy import predictions, target_ranks
from testbed.randomness import SampleKeys, seeded_globals, stream_key
from testbed.records import Shard, ShardRange
from testbed.signatures import argument_names

MAX_LOADED_MODELS = 16  # more than the planner puts into one unit


class Worker:
    """Evaluates units on one device. Built inside the process that runs it."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.device = torch.device(config.device)
        torch.set_num_threads(config.threads)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        load_definitions(config.sources)
        self._classifiers: OrderedDict[tuple[str, str, int], Classifier] = OrderedDict()
        self._reported: set[tuple[str, str | None]] = set()

    def run(self, unit: Unit) -> UnitResult:
        """The outcome of every model of the unit. A model that raises spoils its own outcome only."""
        task = self.config.tasks[unit.task]
        try:
            setting = _ready_setting(task)
        except Exception as error:
            return UnitResult(outcomes=dict.fromkeys(unit.models, _failure(error)), facts={})
        ready: dict[str, _ModelRun] = {}
        outcomes: dict[str, Shard | UnitFailure] = {}
        facts: dict[str, ModelFacts] = {}
        for name in unit.models:
            try:
                ready[name] = _ModelRun(registry.model(name, task.label_space), self._classifier(name, task, unit))
            except Exception as error:
                outcomes[name] = _failure(error)
        for start in range(unit.start, unit.stop, unit.batch_size):
            stop = min(start + unit.batch_size, unit.stop)
            outcomes.update(self._run_batch(task, setting, unit, start, stop, ready))
        for name, model_run in ready.items():
            if name not in outcomes:
                try:
                    outcomes[name] = model_run.shard(task, setting, unit, self.config.name)
                    facts.update(self._new_facts(name, task, model_run, is_cut=setting.class_sublist is not None))
                except Exception as error:
                    outcomes[name] = _failure(error)
        return UnitResult(outcomes=outcomes, facts=facts)

    def _run_batch(
        self, task: Task, setting: EvalSetting, unit: Unit, start: int, stop: int, ready: dict[str, _ModelRun]
    ) -> dict[str, UnitFailure]:
        """Perturbs one batch, once where no model is asked, and runs every model that has not failed on it."""
        failures: dict[str, UnitFailure] = {}
        shared: Tensor | None = None
        batch = _Batch(task, setting, unit, start, stop, self.device)
        for name, model_run in ready.items():
            if model_run.has_failed:
                continue
            try:
                with torch.set_grad_enabled(setting.adversarial_attack is not None):
                    if batch.depends_on_model(model_run.classifier):
                        images = batch.perturbed(model_run.classifier)
                    else:
                        shared = batch.perturbed(None) if shared is None else shared
                        images = shared.clone() if len(ready) > 1 else shared  # a model may write into its input
                    model_run.add(images, batch, setting)
            except Exception as error:
                model_run.has_failed = True
                failures[name] = _failure(error)
        return failures

    def _new_facts(self, name: str, task: Task, model_run: _ModelRun, *, is_cut: bool) -> dict[str, ModelFacts]:
        """Facts about a model, once per model: the hash of large weights takes seconds.

        The width of logits says nothing about a model that cuts them to a setting's classes, or is fitted on any data.
        """
        if (name, task.label_space) in self._reported:
            return {}
        self._reported.add((name, task.label_space))
        model = model_run.model
        says_nothing = (is_cut and model_run.classifier.takes_class_sublist) or model.label_space == ANY_LABEL_SPACE
        num_outputs = None if says_nothing else model_run.num_outputs
        sha256 = None if model.depends_on_seed or model.is_fitted else weights_sha256(model_run.classifier)
        return {name: ModelFacts(num_outputs=num_outputs, weights_sha256=sha256)}

    def _classifier(self, name: str, task: Task, unit: Unit) -> Classifier:
        model = registry.model(name, task.label_space)
        key = (name, task.dataset if model.is_fitted else model.label_space, unit.fit_seed)
        if key not in self._classifiers:
            samples = fit_samples(model, task, seed=unit.fit_seed, data_root=self.config.data_root)
            self._classifiers[key] = load_classifier(
                model, device=self.config.device, fit_seed=unit.fit_seed, fit_samples=samples
            )
        self._classifiers.move_to_end(key)
        while len(self._classifiers) > MAX_LOADED_MODELS:
            self._classifiers.popitem(last=False)
        return self._classifiers[key]


class _Batch:
    """One batch of a unit: its images as the bank has them, and what the setting does to them."""

    def __init__(
        self, task: Task, setting: EvalSetting, unit: Unit, start: int, stop: int, device: torch.device
    ) -> None:
        self.setting = setting
        self.device = device
        self.indices = task.sample_indices[start:stop]
        self.targets = task.targets[start:stop]
        self.keys = SampleKeys(
            seed=unit.noise_seed, purpose="eval", dataset=task.dataset, sample_indices=self.indices, draw=unit.draw
        )
        self._bank = task.bank
        self._arguments = argument_names(setting.perturbation_fn_gpu) if setting.perturbation_fn_gpu else ()

    def depends_on_model(self, classifier: Classifier) -> bool:
        """Whether the perturbed images are for one model alone."""
        attacks_itself = self.setting.adversarial_attack is not None and classifier.attacks_itself
        return "model" in self._arguments or attacks_itself

    def perturbed(self, classifier: Classifier | None) -> Tensor:
        """The images [n, C, H, W] on the device, after the setting's perturbations."""
        images = _to_float(self._bank.open()[self.indices])
        if self.setting.perturbation_fn_cpu is not None:
            images = torch.stack([self._perturbed_on_cpu(i, image) for i, image in enumerate(images)])
        images = images.to(self.device)
        is_own_attack = classifier is not None and self.setting.adversarial_attack and classifier.attacks_itself
        if self.setting.perturbation_fn_gpu is None or is_own_attack:
            return images
        given = {"model": classifier, "targets": torch.from_numpy(self.targets).to(self.device), "keys": self.keys}
        extras = {name: given[name] for name in self._arguments if name in given}
        with seeded_globals(self.key("perturbation_fn_gpu")):
            perturbed = self.setting.perturbation_fn_gpu(images=images, **extras)
        return _checked_images(perturbed, "perturbation_fn_gpu", self.setting).detach()

    def key(self, stream: str, position: int = 0) -> int:
        """A seed for functions that draw from global generators: of the sample, not of the batch it is in."""
        stream = f"{stream}/{self.indices[position]}/{self.keys.draw}"
        return stream_key(self.keys.seed, purpose="eval", dataset=self.keys.dataset, stream=stream)

    def _perturbed_on_cpu(self, position: int, image: Tensor) -> Tensor:
        with seeded_globals(self.key("perturbation_fn_cpu", position)):
            perturbed = self.setting.perturbation_fn_cpu(image=image)  # type: ignore[misc]
        return _checked_images(perturbed, "perturbation_fn_cpu", self.setting)


class _ModelRun:
    """A model within a unit: collects its logits batch by batch."""

    def __init__(self, model: Model, classifier: Classifier) -> None:
        self.model = model
        self.classifier = classifier
        self.has_failed = False
        self._logits: list[Any] = []
        self._seconds = 0.0
        self._largest_batch = 0

    def add(self, images: Tensor, batch: _Batch, setting: EvalSetting) -> None:
        """Runs the classifier on one perturbed batch."""
        begin = perf_counter()
        if setting.space == "canonical":
            images = transform_on_tensor(self.model.transform, images)
        with seeded_globals(batch.key("classify")):
            logits = self.classifier(images, setting.class_sublist, setting.adversarial_attack)
        self._logits.append(logits.detach().float().cpu().numpy())
        self._seconds += perf_counter() - begin
        self._largest_batch = max(self._largest_batch, len(images))

    @property
    def num_outputs(self) -> int:
        return int(self._logits[0].shape[1])

    def shard(self, task: Task, setting: EvalSetting, unit: Unit, worker: str) -> Shard | UnitFailure:
        """The unit's logits in their final encoding, with predictions and ranks over the setting's classes."""
        logits = np.concatenate(self._logits)
        try:
            in_setting = _columns(logits, setting, task, is_cut=self.classifier.takes_class_sublist)
        except DefinitionError as error:
            return UnitFailure(reason=str(error), is_request_error=True)
        targets = task.targets[unit.start : unit.stop]
        kept = keep(unit.store_logits, logits, in_setting=in_setting, targets=targets)
        return Shard(
            where=ShardRange(draw=unit.draw, start=unit.start, stop=unit.stop),
            predictions=predictions(in_setting),
            target_ranks=target_ranks(in_setting, targets),
            payload=kept.payload,
            codec=kept.codec,
            num_outputs=kept.num_outputs,
            sha256=checksum(kept.payload),
            num_nonfinite=int((~np.isfinite(logits).all(axis=1)).sum()),
            batch_size=self._largest_batch,
            seconds=self._seconds,
            worker=worker,
        )


def _columns(logits: Any, setting: EvalSetting, task: Task, *, is_cut: bool) -> Any:
    """The logits of the setting's classes. Raises: DefinitionError: the model has other classes than the data set."""
    width, sublist = logits.shape[1], setting.class_sublist
    if sublist is not None and not is_cut:
        if max(sublist) >= width:
            raise DefinitionError(
                f"The model has {width} outputs but '{task.setting}' looks at class {max(sublist)}. "
                "Use a model of the setting's label space."
            )
        return logits[:, list(sublist)]
    expected = task.num_classes if sublist is None else len(sublist)
    if width != expected:
        raise DefinitionError(
            f"The model has {width} outputs but '{task.setting}' has {expected} classes. "
            "Use a model of the setting's label space, or give the setting a class_sublist."
        )
    return logits


def _ready_setting(task: Task) -> EvalSetting:
    setting = registry.eval_setting(task.setting)
    return setting if task.epsilon is None else setting.at_epsilon(task.epsilon)


def _to_float(pixels: Any) -> Tensor:
    images = torch.from_numpy(np.ascontiguousarray(pixels))
    return images.float().div_(255) if images.dtype == torch.uint8 else images.float()


def _checked_images(images: Any, function: str, setting: EvalSetting) -> Tensor:
    if not isinstance(images, Tensor):
        raise DefinitionError(
            f"{function} of '{setting.name}' returned a {type(images).__name__}. It must return the images."
        )
    return images


def _failure(error: Exception) -> UnitFailure:
    if isinstance(error, TestbedError):
        reason = str(error)
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        reason = f"{type(error).__name__}: {' '.join(str(error).split())} ({where})"
    return UnitFailure(reason=reason, traceback=traceback.format_exc())
