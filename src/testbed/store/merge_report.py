"""What a merge of two stores did, and what it could not do."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class MergeReport:
    """What a merge did, or would do.

    Attributes:
        added: how many rows of each kind were new here.
        same: evaluations that were here already, as they are there.
        conflicts: a sentence each: what differs, and was kept as it is here.
        notes: a sentence each: what is called or labelled otherwise there.
        to_complete: ids of evaluations whose pieces are now all here and whose metrics have to be computed.
    """

    added: dict[str, int] = field(default_factory=dict)
    same: int = 0
    conflicts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    to_complete: list[int] = field(default_factory=list)

    def add(self, kind: str, number: int) -> None:
        """Counts rows that were new here."""
        if number:
            self.added[kind] = self.added.get(kind, 0) + number
