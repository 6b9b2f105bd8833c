import pytest

from testbed.data.class_order import LABEL_SPACES, class_map, label_space_names, nearly_known, parse_class_order
from testbed.errors import DataError


def _map(found, order=None, label_space=None):
    return class_map(found, order=order, label_space=label_space, where="photos")


def test_names_of_a_label_space_map_to_its_indices():
    classes = _map(reversed(LABEL_SPACES["cifar10"]))
    assert classes.label_space == "cifar10"
    assert classes.indices["truck"] == 9
    assert classes.class_names == LABEL_SPACES["cifar10"]


def test_a_part_of_a_declared_label_space_keeps_its_indices():
    classes = _map(["dog", "cat"], label_space="cifar10")
    assert classes.indices == {"cat": 3, "dog": 5}
    assert len(classes.class_names) == 10


def test_two_folders_0_and_1_are_two_classes_and_not_digits():
    classes = _map(["0", "1"])
    assert (classes.class_names, classes.label_space) == (("0", "1"), None)


def test_shuffled_wnids_map_to_imagenet_positions():
    classes = _map(["n01484850", "n01440764"])
    assert classes.label_space == "imagenet-1k"
    assert classes.indices == {"n01440764": 0, "n01484850": 2}
    assert len(classes.class_names) == 1000


def test_wnids_outside_imagenet_1k_are_classes_of_their_own():
    classes = _map(["n00000002", "n00000001"])
    assert (classes.indices, classes.label_space) == ({"n00000001": 0, "n00000002": 1}, None)


def test_other_names_count_in_sorted_order():
    assert _map(["b", "a"]).indices == {"a": 0, "b": 1}


def test_numbers_that_sort_differently_as_text_are_an_error_that_names_the_choices():
    with pytest.raises(DataError, match=r"0, 1, 2, \.\.\. against 0, 1, 10") as caught:
        _map([str(n) for n in range(12)])
    assert "--class-order numeric, lexicographic" in str(caught.value)


@pytest.mark.parametrize("form", ["class{}", "{} km/h", "c-{}-x", "{}th", "v{}.5"])
def test_numbered_names_ask_for_their_order_as_numbers_do(form):
    names = [form.format(n) for n in range(1, 13)]
    with pytest.raises(DataError, match="differs as numbers and as text") as caught:
        _map(names)
    assert "--class-order numeric, lexicographic" in str(caught.value)
    assert _map(names, order="numeric").indices[form.format(10)] == 9
    assert _map(names, order="lexicographic").indices[form.format(10)] == sorted(names).index(form.format(10))
    assert _map(names[:9]).class_names == tuple(names[:9])  # both orders agree: nothing to ask


def test_one_name_among_others_that_has_another_place_as_number_is_enough_to_ask():
    with pytest.raises(DataError, match=r"background, boeing-9, \.\.\. against background, boeing-10, "):
        _map(["background", "boeing-10", "boeing-9", "zebra"])


@pytest.mark.parametrize(
    "names",
    [
        ["vitamin b complex", "vitamin b12"],
        ["a-1", "a1"],
        ["0.25", "0.5"],
        ["n01440764", "n02000001"],
        ["01", "1"],
        ["B2", "a10"],
    ],
)
def test_names_whose_numbers_are_nowhere_compared_or_in_order_ask_nothing(names):
    assert _map(names).class_names == tuple(sorted(names))


def test_two_names_of_one_number_are_not_two_classes_of_a_label_space():
    with pytest.raises(DataError, match="'007' and '7' of photos are one number"):
        _map(["1", "7", "007"], order="numeric", label_space="imagenet-1k")


def test_names_that_do_not_fit_a_label_space_are_told_with_those_that_are_absent():
    names = ["lorry" if name == "truck" else name for name in LABEL_SPACES["cifar10"]]
    with pytest.raises(DataError, match="label space cifar10: lorry; there is none of truck"):
        _map(names, label_space="cifar10")


def test_names_that_are_nearly_those_of_a_label_space_are_told_apart():
    cifar10 = LABEL_SPACES["cifar10"]
    assert nearly_known([*cifar10[:-1], "lorry"]) == (
        "the classes are nearly those of cifar10 (1 too many: lorry; 1 too few: truck)"
    )
    assert nearly_known(cifar10[1:]) == "the classes are nearly those of cifar10 (1 too few: airplane)"
    imagenet = label_space_names("imagenet-1k") or ()
    assert nearly_known([*imagenet[:20], "n00000000"]) == (
        "the classes are nearly those of imagenet-1k (1 too many: n00000000)"
    )
    assert nearly_known(imagenet[:20]) is None  # a part of ImageNet
    assert nearly_known([str(n) for n in range(9)]) is None  # nine numbers are no digits without a nine
    assert nearly_known(["cat", "dog", "hamster", "rabbit"]) is None


def test_numeric_and_lexicographic_orders_are_as_asked():
    names = [str(n) for n in range(12)]
    assert _map(names, order="numeric").indices["10"] == 10
    assert _map(names, order="lexicographic").indices["10"] == 2
    assert _map(["00", "01", "10"]).indices["10"] == 2  # both orders agree: nothing to ask


def test_numeric_names_are_the_indices_of_a_known_label_space():
    classes = _map(["100", "7"], order="numeric", label_space="imagenet-1k")
    assert classes.indices == {"7": 7, "100": 100}
    with pytest.raises(DataError, match="from 7 to 1000, but label space imagenet-1k has the classes 0 to 999"):
        _map(["1000", "7"], order="numeric", label_space="imagenet-1k")
    with pytest.raises(DataError, match="'cat' of photos is not a number"):
        _map(["1", "cat"], order="numeric")


def test_an_explicit_order_goes_before_a_label_space():
    backwards = tuple(reversed(LABEL_SPACES["cifar10"]))
    classes = _map(LABEL_SPACES["cifar10"], order=backwards)
    assert (classes.indices["truck"], classes.label_space) == (0, None)


def test_a_file_gives_the_order_and_may_name_more_classes(tmp_path):
    path = tmp_path / "classes.txt"
    path.write_text("\ufeffzebra\n\ncat\ndog\n", encoding="utf-8")
    classes = _map(["dog", "zebra"], order=path)
    assert classes.indices == {"dog": 2, "zebra": 0}
    assert classes.class_names == ("zebra", "cat", "dog")


@pytest.mark.parametrize(("text", "message"), [("a\na\n", "more than once"), ("a\n", "1 of 2 class names .*: b")])
def test_a_file_that_does_not_fit_is_an_error(tmp_path, text, message):
    path = tmp_path / "classes.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        _map(["a", "b"], order=path)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="Cannot read the class order"):
        _map(["a"], order=tmp_path / "none.txt")


def test_names_outside_a_declared_label_space_are_an_error():
    with pytest.raises(DataError, match="label space cifar10: kitten"):
        _map(["kitten", "dog"], label_space="cifar10")


def test_an_unknown_label_space_is_only_a_label():
    classes = _map(["b", "a"], label_space="pets")
    assert (classes.indices, classes.label_space) == ({"a": 0, "b": 1}, "pets")


def test_imagenet_names_are_1000_wnids():
    names = label_space_names("imagenet-1k")
    assert names is not None
    assert (len(set(names)), names[0], names[999]) == (1000, "n01440764", "n15075141")


def test_the_option_is_a_word_or_a_file(tmp_path):
    assert parse_class_order(None) is None
    assert parse_class_order("numeric") == "numeric"
    assert parse_class_order(str(tmp_path / "names.txt")) == tmp_path / "names.txt"
