"""File names of pages: a file for each name, on any file system."""

from __future__ import annotations

import re

from plotting.pages.names import file_stem

HOSTILE = (
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "a/b",
    "a\\b",
    "..",
    "",
    "con",
    "\N{SNAKE}",
    "x" * 300,
    "a b",
    "%2e",
)


def test_names_become_plain_short_file_names() -> None:
    for name in HOSTILE:
        assert re.fullmatch(r"[a-z0-9_][a-z0-9._-]{0,70}", file_stem(name)), name


def test_names_that_differ_get_other_files_also_where_case_does_not_count() -> None:
    names = [*HOSTILE, "resnet", "ResNet", "RESNET", "x" * 299, "x" * 299 + "y", "a_b", "a-b"]
    assert len({file_stem(name).lower() for name in names}) == len(names)


def test_the_same_name_has_the_same_file_every_time() -> None:
    assert file_stem("resnet50") == file_stem("resnet50")
    assert file_stem("resnet50").startswith("resnet50-")
