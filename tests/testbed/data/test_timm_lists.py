"""timm's lists of classes, read without timm: they are what timm itself says."""

from __future__ import annotations

import subprocess
import sys

import pytest
from timm.data import ImageNetInfo, RealLabelsImagenet

from eval_settings.imagenet_real import real_labels
from testbed.data import timm_lists
from testbed.data.timm_lists import wnids
from testbed.definitions import SOURCE_ROOT


def test_the_wnids_of_all_sets_of_classes_are_those_of_timm() -> None:
    for classes, file in timm_lists._FILES.items():
        assert list(wnids(classes)) == ImageNetInfo(classes).label_names(), file


def test_real_labels_are_those_of_timm() -> None:
    names = [f"ILSVRC2012_val_{number:08d}.JPEG" for number in range(1, 50_001)]
    assert real_labels() == list(RealLabelsImagenet(names).real_labels.values())


def test_class_names_import_no_library() -> None:
    code = (
        "from testbed.data.class_order import label_space_names; names = label_space_names('imagenet-1k');"
        "import sys; print(len(names), sorted({'torch', 'timm', 'torchvision'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=SOURCE_ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1000 []"


def test_a_machine_without_timm_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timm_lists, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="No module named 'timm'"):
        timm_lists.timm_file("imagenet_synsets.txt")
