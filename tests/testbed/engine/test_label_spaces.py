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
from testbed.data.datasets import user_dataset
from testbed.definitions import load_definitions
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.label_spaces import check_classes, check_label_space, check_spelling, check_targets
from testbed.engine.plan import Request, make_plan
from testbed.engine.preflight import prepare
from testbed.errors import DataError, DefinitionError

if TYPE_CHECKING:
    from testbed.engine.data import Data

CIFAR10 = label_space_names("cifar10")
WNIDS = label_space_names("imagenet-1k")


def model(**changes):
    return Model(name="net", transform=None, classifier_loader=lambda: None, eval_batch_size=4, version="1", **changes)


def setting(**changes):
    return EvalSetting(name="shift", dataset=StandardDataset(name="toy"), size=3, version="1", **changes)


def no_dataset():
    raise DataError("not there")


def told(*arguments, find_dataset=no_dataset):
    """What is said of a model that is let through."""
    lines: list[str] = []
    check_label_space(*arguments, lines.append, find_dataset)
    return lines


def check(model, setting, class_names):
    check_classes(model, setting, class_names, no_dataset)


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
    check(model(), setting(), ("a", "b"))


def test_the_number_is_compared_with_the_classes_that_the_data_have():
    with pytest.raises(DefinitionError, match="'net' has 3 outputs, but the classes of 'shift' are 2"):
        check(model(num_outputs=3), setting(), ("a", "b"))
    check(model(num_outputs=3), setting(class_sublist=[0, 2]), ("a", "b"))  # columns of its label space
    check(model(num_outputs=2), setting(), ("a", "b"))


def test_a_permuted_order_of_names_is_told_with_where_it_differs():
    swapped = ("automobile", "airplane", *CIFAR10[2:])
    with pytest.raises(DefinitionError) as caught:
        told(model(class_names=swapped), setting(), "cifar10")
    said = str(caught.value)
    assert "2 of 10 differ (output 0 is 'automobile' for 'airplane', 1 is 'airplane' for 'automobile')" in said
    assert "--class-order FILE" in said
    with pytest.raises(DefinitionError, match="2 of 10 differ"):
        check(model(class_names=swapped), setting(), CIFAR10)


def test_names_alone_tell_the_number_of_outputs():
    longer = (*CIFAR10, "background")
    with pytest.raises(DefinitionError, match="'net' has 11 outputs, but the classes of 'shift' are 10"):
        told(model(class_names=longer), setting(), "cifar10")
    with pytest.raises(DefinitionError, match="'net' has 9 outputs"):
        check(model(class_names=CIFAR10[:9]), setting(), CIFAR10)

    def classify(images, model, class_sublist):
        return images

    told(model(class_names=longer, classify=classify), setting(class_sublist=[1, 2]), "cifar10")


def test_the_spelling_of_names_does_not_matter_and_names_of_another_kind_are_not_compared():
    shouted = tuple(name.upper() for name in CIFAR10)
    told(model(class_names=shouted), setting(), "cifar10")
    check(model(class_names=("Ankle boot", "T-shirt")), setting(), ("ankle_boot", "t-shirt"))
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
    no_data = cast("Data", SimpleNamespace(warn_once=None, dataset=no_dataset))
    with pytest.raises(
        DefinitionError, match=r"'timm:resnet18.a1_in1k' has 1,000 outputs, but the classes of 'digits'"
    ):
        prepare(pairings, no_data, device="cpu", threads=1, arithmetic=Arithmetic())


def photos(folder, **facts):
    """A data set of six of ImageNet's classes, a file in each."""
    for wnid in WNIDS[::200] + WNIDS[-1:]:
        (folder / wnid).mkdir(parents=True, exist_ok=True)
        (folder / wnid / "a.png").touch()
    return user_dataset("photos", folder, **facts)


def test_a_head_of_just_the_classes_that_a_folder_has_is_told_how_to_have_these_alone(tmp_path):
    dataset, head = photos(tmp_path / "photos"), model(num_outputs=6)
    remedy = "has folders of 6 classes, and they are named as ImageNet's.* give --class-order lexicographic"
    assert dataset.label_space == "imagenet-1k"
    with pytest.raises(DefinitionError, match=remedy):
        told(head, setting(), dataset.label_space, find_dataset=lambda: dataset)
    with pytest.raises(DefinitionError, match=remedy):
        check_classes(head, setting(), WNIDS, lambda: dataset)
    for outputs in (5, 1_001):
        with pytest.raises(DefinitionError, match=r"picks the classes\.$"):
            told(model(num_outputs=outputs), setting(), dataset.label_space, find_dataset=lambda: dataset)
    order = tmp_path / "order.txt"
    order.write_text("\n".join(sorted(path.name for path in (tmp_path / "photos").iterdir())))
    for class_order in ("lexicographic", order):  # what is told to be done is enough
        remedied = photos(tmp_path / "photos", class_order=class_order)
        assert remedied.label_space is None
        told(head, setting(), remedied.label_space)


@pytest.mark.parametrize(
    ("label_space", "meant"),
    [("imagenet", "imagenet-1k"), ("digit", "digits"), ("cifar100-lt", "cifar100"), ("cifar10", None), ("x", None),
     ("imagenet-21k", None), ("cifar20", None), ("tiny-imagenet", None), ("svhn", None), (None, None)],
)  # fmt: skip
def test_a_label_space_called_nearly_as_a_known_one_is_warned_of(label_space, meant):
    lines: list[str] = []
    check_spelling(model(), setting(), label_space, lines.append)
    assert len(lines) == (meant is not None)
    if meant:
        assert f"has the label space '{label_space}'" in lines[0]
        assert lines[0].endswith(f"Did you mean label_space='{meant}'?")


@pytest.mark.parametrize(
    ("label_space", "meant"),
    [("fashion_mnist", "fashion-mnist"), ("FashionMNIST", "fashion-mnist"), ("ImageNet1K", "imagenet-1k"),
     ("cifar-10", "cifar10")],
)  # fmt: skip
def test_one_that_differs_in_marks_alone_is_refused_unless_the_model_is_declared_for_it(label_space, meant):
    lines: list[str] = []
    with pytest.raises(DefinitionError, match=f"Did you mean label_space='{meant}'"):
        check_spelling(model(), setting(), label_space, lines.append)
    check_spelling(model(label_space=label_space), setting(), label_space, lines.append)
    assert len(lines) == 1
