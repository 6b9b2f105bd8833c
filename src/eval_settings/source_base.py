"""Where people get a data set: what `db.py --show-setting` tells and `db.py --check-data` compares with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """What a data set is, who gives it, on what terms, and where it belongs.

    Args:
        title: what its authors call it.
        homepage: its address, for people.
        licence: the terms it is given under, in a few words.
        get: what to download, and what to do with it, in a sentence or two.
        places: folders relative to the data root; the first that holds it counts, and downloads belong in the first.
        layout: what lies in such a folder, e.g. 'CLASS/*.jpg, CLASS a wnid such as n01440764'.
        shown_by: what is in such a folder if it holds the data set; '' where the folder's being there says it.
        citation: authors, title, venue and year of the paper.
        num_samples: by split, how many there must be.
        classes: indices of the classes that every split has samples of, and of no others; None where that is not known.
        sha256: of files, by their path relative to the folder, where they are known.
    """

    title: str
    homepage: str
    licence: str
    get: str
    places: tuple[str, ...]
    layout: str
    shown_by: str = ""
    citation: str = ""
    num_samples: Mapping[str, int] = field(default_factory=dict)
    classes: Collection[int] | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)
