"""Orders of outputs: those that mistakes of sorting make, and the one that answers suggest."""

from __future__ import annotations

import numpy as np

from testbed.doctor.class_orders import backed, classes, learnt_order, moved_words, named_orders


def test_outputs_sorted_as_text_are_among_the_named_orders() -> None:
    numbers = [str(number) for number in range(12)]
    found = {tuple(one.order.tolist()): one.words for one in named_orders(numbers)}
    # The head's outputs stand for 0, 1, 10, 11, 2, 3, ...: class 2 is its output 4, class 10 its output 2.
    assert found[0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3] == "in the order of the class names as text"
    assert "one place too late" in found[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0]
    assert tuple(range(12)) not in found


def test_upper_case_and_numbers_within_names_make_orders_of_their_own() -> None:
    found = [one.order.tolist() for one in named_orders(["Cat", "a10", "a9", "bird"])]
    assert [3, 0, 1, 2] in found  # a10, a9, bird, Cat
    assert [0, 2, 1, 3] in found  # Cat, a9, a10, bird


def test_the_learnt_order_undoes_a_permutation_of_the_outputs() -> None:
    order = np.array([2, 0, 1, 3])  # output 2 stands for class 0, and so on
    targets = np.repeat(np.arange(4), 5)
    outputs = order[targets]
    found = learnt_order(outputs, targets, num_classes=4)
    assert found.tolist() == order.tolist()
    assert classes(outputs, found).tolist() == targets.tolist()
    assert backed(found, outputs, targets).tolist() == [True, True, True, False]
    assert moved_words(found, "abcd") == "output 2 is class 'a', output 0 is class 'b', output 1 is class 'c'"


def test_classes_without_an_image_stay_where_they_are() -> None:
    assert learnt_order(np.array([1, -1]), np.array([1, 0]), num_classes=4).tolist() == [0, 1, 2, 3]
    assert learnt_order(np.array([-1]), np.array([-1]), num_classes=3).tolist() == [0, 1, 2]
