"""What a report says of the run that its numbers come from."""

from __future__ import annotations

from plotting.safety_case import identity


def test_a_run_of_changed_code_is_said_to_be_one() -> None:
    told = identity._run({"uuid": "run", "code_revision": "a1b2+"}, 3)
    assert told["code"] == "a1b2, with uncommitted changes"
    assert identity._run({"uuid": "run", "code_revision": None}, 3)["code"] == "not from a git checkout"
