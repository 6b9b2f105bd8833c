"""Taking over what another store holds: by content, never by id, and never in place of what is here.

Names match by name, definitions and data sets by fingerprint, evaluations by their key, and pieces of logits by their
checksums. Merging is the same in both directions up to ids, moments and provenance, can be interrupted at any point and
run again, and changes nothing the second time.
"""

from __future__ import annotations

from testbed.store.merge_definitions import merge_definitions
from testbed.store.merge_evaluations import fill_metrics, merge_evaluation
from testbed.store.merge_overview import overview
from testbed.store.merge_report import MergeReport
from testbed.store.merge_rows import merge_findings
from testbed.store.reader import Reader
from testbed.store.store import Store


def merge(ours: Store, theirs: Reader, *, is_dry_run: bool = False) -> MergeReport:
    """Takes over into `ours` what only `theirs` holds.

    A key that both hold with different bytes is a conflict: ours stays, and the report says so. Evaluations that became
    whole by pieces of both are left running, for their metrics have to be computed: see `MergeReport.to_complete`.

    Args:
        ours: open for writing, and locked; for reading is enough for a dry run.
        theirs: any store of the same schema revision.
        is_dry_run: write nothing, and report what would be done.
    Raises: StoreError: one of the two cannot be read or written. What was merged until then stays.
    """
    report = MergeReport()
    refused = merge_definitions(ours, theirs, report, is_dry_run=is_dry_run)
    known = overview(ours)
    merged: dict[int, int] = {}
    changed: dict[int, int] = {}
    for key, found in overview(theirs).items():
        here = known.get(key)
        if here is not None and here.is_whole_and_same(found):
            merged[found.row.id] = here.row.id
            report.same += 1
            if here.metrics != found.metrics:
                changed[found.row.id] = here.row.id
        elif found.row.setting_fingerprint not in refused:
            known_id = merge_evaluation(ours, theirs, here, found, report, is_dry_run=is_dry_run)
            if known_id is not None:
                merged[found.row.id] = changed[found.row.id] = known_id
        ours.heartbeat()
    if not is_dry_run:
        fill_metrics(ours, theirs, changed, merged)
    merge_findings(ours, theirs, report, is_dry_run=is_dry_run)
    return report
