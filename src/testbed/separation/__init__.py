"""Exact minimal class separation: how near points of different class come to each other, and which ones do.

`nearest` asks the two questions; `trees` (few dimensions), `search` (many: `bounds`, `kernels`) and `device` (CUDA)
answer them, to the same bits; `report` adds the pairs, `duplicates` and the `witness`.
"""

from testbed.separation.nearest import minimal_class_separation, nearest_other_class
from testbed.separation.report import SeparationReport, separation_report
from testbed.separation.witness import Witness, check_witness

__all__ = [
    "SeparationReport", "Witness", "check_witness", "minimal_class_separation", "nearest_other_class",
    "separation_report",
]  # fmt: skip
