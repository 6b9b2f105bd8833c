"""The central registry: models, evaluation settings, data sets, corruptions and metrics, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import registry_base
from registry_base import EvalSettingFamily, Failure, ModelFamily, ModelVariants, Table
from testbed.errors import DefinitionError, UnknownNameError
from testbed.signatures import check_arguments, check_name
from testbed.users_code import asked

if TYPE_CHECKING:
    from eval_settings.dataset_base import Dataset, Loader
    from eval_settings.eval_setting_base import EvalSetting
    from models.model_base import Model
    from testbed.perturbations.corruptions.corruption import Corruption

_LIMITED = re.compile(r"(?P<name>.+)@limit(?P<limit>[1-9]\d*)")
ANY_LABEL_SPACE = "any"  # of models that are fitted on whatever data set they are evaluated on
METRIC_ARGUMENTS = ("logits", "targets", "predictions", "target_ranks", "class_names", "sample_ids")


class Registry:
    """Everything that can be named on the command line. Definitions are values; nothing is opened or loaded here."""

    def __init__(self) -> None:
        self._models: Table[Model] = Table("Model", is_overridable=True)
        self._settings: Table[EvalSetting] = Table("EvalSetting", is_overridable=True)
        self._datasets: Table[Dataset] = Table("Dataset")
        self._corruptions: Table[Corruption] = Table("Corruption")
        self._metrics: Table[Callable[..., Any]] = Table("Metric")
        self._model_families: dict[str, ModelFamily] = {}
        self._model_variants: list[ModelVariants] = []
        self._setting_families: list[tuple[EvalSettingFamily, Path | None]] = []
        self._derived: dict[str, tuple[EvalSetting, Path | None]] = {}
        self._source: Path | None = None
        self.failures: list[Failure] = []
        self._family_models: dict[str, Model] = {}

    # Registering

    def add_model(self, model: Model) -> None:
        """Registers a model; the same name may exist once per label space. A plugin's goes before a built-in one.

        Raises: DefinitionError: another model of that name and label space exists; both files are named.
        """
        label = f"'{model.name}' (label space {model.label_space})"
        self._models.add((model.name, model.label_space), model, label=label, source=self._source)

    def add_eval_setting(self, setting: EvalSetting) -> None:
        """Registers a setting; a plugin's goes before a built-in one. Raises: DefinitionError: another has its name."""
        self._settings.add(setting.name, setting, label=f"'{setting.name}'", source=self._source)

    def add_dataset(self, dataset: Dataset | str, data: str | Path | Loader | None = None, **facts: Any) -> None:
        """Registers a data set and with it all settings that are derived from one.

        Args:
            dataset: a Dataset; or the name of a new one, which `data` and `facts` complete.
            data: a folder with one sub-folder of images per class, or an .npz file, relative to the data root; or a
                function `loader(split[, data_root])`, see `Dataset`.
            facts: fields of `Dataset`, such as label_space and canonical_size.
        """
        from eval_settings.dataset_base import completed_dataset

        dataset = completed_dataset(dataset, data, facts)
        self._datasets.add(dataset.name, dataset, label=f"'{dataset.name}'", source=self._source)

    def add_corruption(self, corruption: Corruption) -> None:
        """Registers a corruption and with it settings for every data set of images, at each of its severities."""
        self._corruptions.add(corruption.name, corruption, label=f"'{corruption.name}'", source=self._source)

    def add_metric(self, name: str, function: Callable[..., Any]) -> None:
        """Registers a metric: a function of any of logits, targets, predictions, target_ranks, class_names and
        sample_ids (see `testbed.results`) that returns a number or a MetricValue."""
        from testbed.metrics.comparison import NETTED  # numpy comes with it

        check_name(name, what="Metric")
        if name in NETTED:
            raise DefinitionError(f"Metric '{name}' has the name of a comparison with clean. Name it otherwise.")
        check_arguments(function, where=f"Metric '{name}'", required=(), optional=METRIC_ARGUMENTS)
        self._metrics.add(name, function, label=f"'{name}'", source=self._source)

    def add_model_family(self, prefix: str, family: ModelFamily) -> None:
        """Registers models named `prefix:REST`. The last family of a prefix counts."""
        self._model_families[prefix] = family
        self._family_models = {n: m for n, m in self._family_models.items() if not n.startswith(f"{prefix}:")}

    def add_model_variants(self, variants: ModelVariants) -> None:
        """Registers variants that every model has, by a name that is made from the model's own."""
        self._model_variants.append(variants)

    def set_weights(self, name: str, file: Path, weights_key: str | None = None) -> None:
        """Gives the model `name` the parameters in `file`, in every label space that it is registered for.

        Args: weights_key: which of several sets of weights in it.

        Raises:
            UnknownNameError: no such model.
            DefinitionError: the model takes no file of weights.
        """
        if self._family(name) is not None:
            self._family_models[name] = self.model(name).with_weights(file, weights_key)
            return
        if not (spaces := self.label_spaces(name)):
            raise registry_base.no_own_weights(name, self._model_variants, self.model_names(), self.failures)
        for space in spaces:
            self._models.values[name, space] = self._models.values[name, space].with_weights(file, weights_key)

    def set_stochastic(self, name: str) -> None:
        """Declares the model `name` random by design, in every label space that it is registered for.

        Raises: UnknownNameError: no such model.
        """
        if self._family(name) is not None:
            self._family_models[name] = replace(self.model(name), stochastic=True)
            return
        if not (spaces := self.label_spaces(name)):
            raise UnknownNameError(registry_base.unknown("model", name, self.model_names(), self.failures))
        for space in spaces:
            self._models.values[name, space] = replace(self._models.values[name, space], stochastic=True)

    def add_eval_setting_family(self, family: EvalSettingFamily) -> None:
        """Registers settings that every data set has."""
        self._setting_families.append((family, self._source))
        self._derived.clear()

    @contextmanager
    def importing(self, path: Path) -> Iterator[None]:
        """Attributes what is registered meanwhile to `path`, and takes it back if the file fails half-way."""
        outer, self._source = self._source, path
        try:
            yield
        except BaseException:
            self._setting_families = [known for known in self._setting_families if known[1] != path]
            self._derived.clear()
            for table in (self._models, self._settings, self._datasets, self._corruptions, self._metrics):
                table.forget(path)
            raise
        finally:
            self._source = outer

    # Looking up

    def model(self, name: str, label_space: str | None = None) -> Model:
        """The model `name` for a label space.

        Without a model of exactly that label space, the only model of that name is returned: whether its outputs fit
        the data set's classes is then checked when it is first loaded.

        Raises: UnknownNameError: no such name, or several of other label spaces.
        """
        if (family := self._family(name)) is not None:
            if name not in self._family_models:
                if (variant := self._model_variant(name, label_space, is_of_family=True)) is not None:
                    return variant
                prefix, _, rest = name.partition(":")
                self._family_models[name] = asked(partial(family.build, rest), what=f"The family of models '{prefix}'")
            return self._family_models[name]
        spaces = self.label_spaces(name)
        for space in (label_space, ANY_LABEL_SPACE, *spaces[: len(spaces) == 1]):
            if space is not None and (found := self._models.get((name, space))) is not None:
                return found
        if not spaces and (variant := self._model_variant(name, label_space)) is not None:
            return variant
        if spaces:
            raise UnknownNameError(
                f"Model '{name}' exists for the label spaces {', '.join(spaces)}, not for {label_space or 'this one'}. "
                f"Register one with label_space={label_space!r}, or choose a setting with one of those."
            )
        raise UnknownNameError(registry_base.unknown("model", name, self.model_names(), self.failures))

    def _model_variant(self, name: str, label_space: str | None, *, is_of_family: bool = False) -> Model | None:
        for variants in self._model_variants:
            if is_of_family and not variants.suits_families:
                continue
            if (base := variants.base_name(name)) is not None and base != name:
                return variants.build(self.model(base, label_space), name)
        return None

    def _family(self, name: str) -> ModelFamily | None:
        prefix, colon, _ = name.partition(":")
        return self._model_families.get(prefix) if colon else None

    def label_spaces(self, name: str) -> tuple[str, ...]:
        """Label spaces that a model of this name is registered for."""
        return tuple(space for model, space in self._models.values if model == name)

    def eval_setting(self, name: str) -> EvalSetting:
        """The setting `name`; one that is registered goes before a derived one of the same name.

        `NAME@limitN` is NAME on the first N samples of a seeded order.

        Raises: UnknownNameError: no such setting; nearest names and files that failed are told.
        """
        if (setting := self.find_eval_setting(name)) is not None:
            return setting
        raise UnknownNameError(registry_base.unknown("eval-setting", name, self.eval_setting_names(), self.failures))

    def find_eval_setting(self, name: str) -> EvalSetting | None:
        """As `eval_setting`, but None for an unknown name: nearest names take long to find where many are asked for."""
        if (setting := self._settings.get(name)) is not None:
            return self._with_known_data(setting)
        if (setting := self._derived_setting(name)) is None and (limited := _LIMITED.fullmatch(name)):
            whole = self.find_eval_setting(limited["name"])
            return None if whole is None else whole.limited(int(limited["limit"]))
        return setting

    def _with_known_data(self, setting: EvalSetting) -> EvalSetting:
        """`setting`; one whose data set is called as a setting is, as in the ImageNet Testbed, has that one's data."""
        name = setting.dataset.name
        if name is None or name in self._datasets.values:
            return setting
        called_so = (self._settings.overridden.get(name), self._settings.get(name), self._derived_setting(name))
        return registry_base.with_data_of(setting, called_so, self._datasets.values)

    def _derived_setting(self, name: str) -> EvalSetting | None:
        if name in self._derived:
            return self._derived[name][0]
        owners = [owner for key, owner in self._datasets.values.items() if owner.derives and name.startswith(key)]
        for dataset in sorted(owners, key=lambda owner: -len(owner.name)):
            for family, source in self._setting_families:
                if (setting := family.build(dataset, name)) is not None:
                    self._derived[name] = setting, source
                    return setting
        return None

    def dataset(self, name: str) -> Dataset:
        """The data set `name`. Raises: UnknownNameError."""
        return self._datasets.found(name, self.failures)

    @property
    def datasets(self) -> dict[str, Dataset]:
        """Registered data sets by name."""
        return dict(self._datasets.values)

    def corruption(self, name: str) -> Corruption:
        """The corruption `name`. Raises: UnknownNameError."""
        return self._corruptions.found(name, self.failures)

    @property
    def corruptions(self) -> dict[str, Corruption]:
        """Registered corruptions by name."""
        return dict(self._corruptions.values)

    @property
    def metrics(self) -> dict[str, Callable[..., Any]]:
        """Registered metrics by name."""
        return dict(self._metrics.values)

    def model_source(self, model: Model) -> Path | None:
        """The file that registered a model, or what it is a variant of; None for one that no file did."""
        bases = [variants.base_name(model.name) for variants in self._model_variants]
        found = (self._models.sources.get((name, model.label_space)) for name in (model.name, *bases))
        return next((source for source in found if source is not None), None)

    def corruption_source(self, name: str) -> Path | None:
        """The file that registered the corruption `name`; None for one that no file did."""
        return self._corruptions.sources.get(name)

    def is_derived(self, name: str) -> bool:
        """Whether the setting `name` is made by a family, and not registered by itself."""
        return name not in self._settings.values

    def setting_source(self, name: str) -> Path | None:
        """The file that registered the setting `name`, or the family that it is derived by; None for neither."""
        if limited := _LIMITED.fullmatch(name):
            name = limited["name"]
        return self._settings.sources.get(name) or self._derived.get(name, (None, None))[1]

    # Listing

    def model_names(self) -> list[str]:
        """Names of the registered models, sorted; those of families are not among them."""
        return sorted({name for name, _ in self._models.values})

    @property
    def model_families(self) -> dict[str, ModelFamily]:
        """Families of models by prefix."""
        return dict(self._model_families)

    def family_model_names(self) -> list[str]:
        """Names of the models that families list, sorted. Imports the libraries that they come from."""
        return sorted(f"{prefix}:{rest}" for prefix, one in self._model_families.items() for rest in one.names())

    def eval_setting_names(self) -> list[str]:
        """Names of the registered and the listed derived settings, sorted."""
        sets = [dataset for dataset in self._datasets.values.values() if dataset.derives]
        derived = (name for family, _ in self._setting_families for dataset in sets for name in family.names(dataset))
        return sorted({*self._settings.values, *derived})

    def expand(self, kind: str, patterns: Iterable[str]) -> list[str]:
        """Names that match any of the patterns, in the order asked for and each once; kind is 'model' or
        'eval-setting'. A pattern with `*`, `?` or `[` must match something; it matches the models of a family only
        where it begins with that family's prefix, as in `timm:resnet*`."""
        names = self.model_names() if kind == "model" else self.eval_setting_names()
        return registry_base.expanded(kind, patterns, lambda pattern: self._family_names(kind, pattern) or names)

    def _family_names(self, kind: str, pattern: str) -> list[str]:
        """All names of the family that a pattern begins with; none where it begins with none."""
        if kind != "model" or (family := self._family(pattern)) is None:
            return []
        prefix = pattern.partition(":")[0]
        names = asked(family.names, what=f"The family of models '{prefix}'")
        return sorted(f"{prefix}:{rest}" for rest in names)

    def notices(self) -> list[str]:
        """What a user should know: definitions that stand in front of generated or built-in ones of the same name."""
        generated = [name for name in self._settings.values if self._derived_setting(name) is not None]
        return [
            *self._settings.notices(generated, "generated"),
            *self._settings.notices(self._settings.overridden, "built-in"),
            *self._models.notices(self._models.overridden, "built-in"),
        ]


registry = Registry()
