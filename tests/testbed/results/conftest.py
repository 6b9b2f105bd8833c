"""Stores to look into."""

from tests.laboratory import lab, resplit_lab

__all__ = ["lab", "resplit_lab"]
