"""The files of a report: names from any name, and written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from plotting.safety_case.case import SafetyCase

from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.paths import replacing
from testbed.store.transfer import slug

LONGEST = 30  # letters of a name in a file name


def report_name(case: SafetyCase) -> str:
    """The file of a report without its ending; with a part of a hash where the names cannot stand there as they are."""
    parts = [slug(name)[:LONGEST] for name in (case.model, case.dataset)]
    is_plain = parts == [case.model.lower(), case.dataset.lower()]
    return "-".join(["report", *parts, *([] if is_plain else [fingerprint([case.model, case.dataset])[:8]])])


def write_page(path: Path, text: str) -> None:
    """Writes a page; its folder is made. Raises: DataError: it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}. Give another --out.") from error
