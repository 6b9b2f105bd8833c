"""File names of a site's pages: plain, short, and another one for every name, on any file system."""

from __future__ import annotations

import re

from testbed.fingerprint import fingerprint

LONGEST_SLUG = 40
HASH_DIGITS = 8


def file_stem(name: str, *more: object) -> str:
    """A file name for a name, without an ending: what can be read of it, and a short hash of all of it.

    Names that differ in letter case only, or beyond the part that is kept, still get files of their own.

    Args: more: what else tells it from others of the same name.

    >>> file_stem("ResNet 50")[:10]
    'resnet-50-'
    """
    slug = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-.")[:LONGEST_SLUG].rstrip("-.")
    return f"{slug or 'name'}-{fingerprint([name, *map(str, more)])[:HASH_DIGITS]}"
