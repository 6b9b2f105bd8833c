"""Where results come from, in words."""

from __future__ import annotations

import pytest

from testbed.provenance import revision_words


@pytest.mark.parametrize(
    ("revision", "words"), [("", ""), ("a1b2", "a1b2"), ("a1b2+", "a1b2, with uncommitted changes")]
)
def test_a_revision_of_changed_files_says_so(revision: str, words: str) -> None:
    assert revision_words(revision) == words
