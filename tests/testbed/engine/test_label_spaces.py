"""What a model says of its outputs is compared with the classes of a setting before anything runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from eval_settings.eval_setting_base import EvalSetting, StandardDataset
from models._imagenet_heads import ImageNetColumns, imagenet_columns
from models.model_base import Model
from testbed.data.class_order import label_space_names
from testbed.definitions import load_definitions
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.label_spaces import check_classes, check_label_space, check_targets
from testbed.engine.plan import Request, make_plan
from testbed.engine.preflight import prepare
from testbed.errors import DefinitionError

if TYPE_CHECKING:
    from testbed.engine.data import Data

CIFAR10 = label_space_names("cifar10")
WNIDS = label_space_names("imagenet-1k")


def model(**changes):
    return Model(name="net", transform=None, classifier_loader=lambda: None, eval_batch_size=4, version="1", **changes)


def setting(**changes):
    return EvalSetting(name="shift", dataset=StandardDataset(name="toy"), size=3, version="1", **changes)


def told(*arguments):
    """What is said of a model that is let through."""
    lines: list[str] = []
    check_label_space(*arguments, lines.append)
    return lines


def test_another_number_of_outputs_is_told_before_data_are_looked_at():
    with pytest.raises(DefinitionError, match="'net' has 21,843 outputs, but the classes of 'shift' are 1,000"):
        told(model(num_outputs=21_843), setting(), "imagenet-1k")
    with pytest.raises(DefinitionError, match="'net' has 10 outputs"):
        told(model(num_outputs=10), setting(class_sublist=[5, 7]), "imagenet-1k")
    told(model(num_outputs=1_000), setting(class_sublist=[5, 7]), "imagenet-1k")


def test_a_model_that_picks_the_classes_itself_may_have_any_number():
    def classify(images, model, class_sublist):
        return images

    told(model(num_outputs=5, classify=classify), setting(class_sublist=[1, 2]), "imagenet-1k")
    with pytest.raises(DefinitionError, match="5 outputs"):
        told(model(num_outputs=5, classify=classify), setting(), "imagenet-1k")


def test_a_model_that_says_nothing_and_an_unknown_label_space_pass():
    told(model(), setting(), "imagenet-1k")
    told(model(num_outputs=3), setting(), None)
    told(model(num_outputs=3), setting(), "nobody-knows")
    check_classes(model(), setting(), ("a", "b"))


def test_the_number_is_compared_with_the_classes_that_the_data_have():
    with pytest.raises(DefinitionError, match="'net' has 3 outputs, but the classes of 'shift' are 2"):
        check_classes(model(num_outputs=3), setting(), ("a", "b"))
    check_classes(model(num_outputs=3), setting(class_sublist=[0, 2]), ("a", "b"))  # columns of its label space
    check_classes(model(num_outputs=2), setting(), ("a", "b"))


def test_a_permuted_order_of_names_is_told_with_where_it_differs():
    swapped = ("automobile", "airplane", *CIFAR10[2:])
    with pytest.raises(DefinitionError) as caught:
        told(model(class_names=swapped), setting(), "cifar10")
    said = str(caught.value)
    assert "2 of 10 differ (output 0 is 'automobile' for 'airplane', 1 is 'airplane' for 'automobile')" in said
    assert "--class-order FILE" in said
    with pytest.raises(DefinitionError, match="2 of 10 differ"):
        check_classes(model(class_names=swapped), setting(), CIFAR10)


def test_names_alone_tell_the_number_of_outputs():
    longer = (*CIFAR10, "background")
    with pytest.raises(DefinitionError, match="'net' has 11 outputs, but the classes of 'shift' are 10"):
        told(model(class_names=longer), setting(), "cifar10")
    with pytest.raises(DefinitionError, match="'net' has 9 outputs"):
        check_classes(model(class_names=CIFAR10[:9]), setting(), CIFAR10)

    def classify(images, model, class_sublist):
        return images

    told(model(class_names=longer, classify=classify), setting(class_sublist=[1, 2]), "cifar10")


def test_the_spelling_of_names_does_not_matter_and_names_of_another_kind_are_not_compared():
    shouted = tuple(name.upper() for name in CIFAR10)
    told(model(class_names=shouted), setting(), "cifar10")
    check_classes(model(class_names=("Ankle boot", "T-shirt")), setting(), ("ankle_boot", "t-shirt"))
    told(model(class_names=tuple(f"word {index}" for index in range(10))), setting(), "cifar10")


@pytest.mark.parametrize(
    ("outputs", "missing"), [(11_221, 9), (11_821, 7), (21_841, 1), (21_842, 0), (21_843, 1)], ids=str
)
def test_classes_that_a_larger_head_lacks_are_counted_and_refused_where_they_are_more_than_a_few(outputs, missing):
    """Counted in timm's lists of wnids: n04399382 (teddy) is in none but Microsoft's."""
    columns = imagenet_columns(outputs)
    lacks = model(classify=columns, num_outputs=1_000)
    assert len(columns.missing_classes) == missing
    assert (WNIDS.index("n04399382") in columns.missing_classes) == (missing > 0)
    kept = [index for index in range(1_000) if index not in columns.missing_classes]
    assert told(lacks, setting(class_sublist=kept), "imagenet-1k") == []
    said = told(lacks, setting(), "imagenet-1k")
    assert len(said) == (missing > 0)
    if missing:
        assert f"not trained on {missing} of the 1,000 classes of 'shift'" in said[0]
        assert said[0].endswith("their samples count as wrong.")
        group = (kept[0], columns.missing_classes[0])
        with pytest.raises(DefinitionError, match=r"not trained on 1 of the 3 classes of 'shift' \(n\d{8}\)"):
            told(lacks, setting(class_sublist=[kept[1], group]), "imagenet-1k")


@pytest.mark.parametrize("labels", [[-1, 0, 1], [[-1, -1], [-1, 0], [1, -1]]], ids=["targets", "sets"])
def test_samples_that_cannot_be_right_are_counted_and_refused_where_all_are(labels):
    told: list[str] = []
    listed, labels = setting(class_sublist=[5, (7, 2)]), np.array(labels)
    check_targets(listed, labels, 3, told.append)
    assert told == ["1 of 3 samples of 'shift' are of none of the 2 classes in its class_sublist, and count as wrong."]
    check_targets(listed, labels[1:], 3, told.append)
    check_targets(setting(), labels[:1], 3, told.append)
    check_targets(setting(class_sublist=[5], metrics_fn=lambda logits: {}), labels[:1], 3, told.append)
    assert len(told) == 1
    with pytest.raises(DefinitionError, match=r"1 of 1 samples .* none could be right\. Its data set has 3 classes\."):
        check_targets(listed, labels[:1], 3, told.append)


def test_an_unknown_head_is_not_cut():
    assert imagenet_columns(19_168) is None
    assert ImageNetColumns("imagenet-22k-ms").missing_classes == ()


def test_a_plan_is_refused_before_weights_or_data_are_looked_for():
    load_definitions()
    pairings = make_plan(Request(models=["timm:resnet18.a1_in1k"], eval_settings=["digits"]))
    no_data = cast("Data", SimpleNamespace(warn_once=None))
    with pytest.raises(
        DefinitionError, match=r"'timm:resnet18.a1_in1k' has 1,000 outputs, but the classes of 'digits'"
    ):
        prepare(pairings, no_data, device="cpu", threads=1, arithmetic=Arithmetic())
