"""What stored results are found by stays what it is: nothing that a database or a cache holds goes stale unnoticed.

`pins.json` is what `observed.py` gave before the code was moved. It is not regenerated: a change that departs from it
makes results that somebody paid for be computed again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pins import observed

PINS = json.loads(Path(__file__).with_name("pins.json").read_text())


@pytest.mark.parametrize("name", PINS["fingerprints"])
def test_a_definition_is_found_under_its_fingerprint(name: str, fingerprints: dict[str, str]) -> None:
    assert fingerprints[name] == PINS["fingerprints"][name]


@pytest.fixture(scope="module")
def fingerprints() -> dict[str, str]:
    from registry import registry

    with pytest.MonkeyPatch.context() as patch:  # what the plugin registers is gone afterwards
        for table in (registry._models, registry._settings):
            patch.setattr(table, "values", dict(table.values))
            patch.setattr(table, "sources", dict(table.sources))
        return observed.fingerprints()


def test_streams_draw_the_same_noise() -> None:
    assert observed.noise_streams() == PINS["noise streams"]


def test_decoded_images_keep_their_keys() -> None:
    assert observed.bank_keys() == PINS["bank keys"]


@pytest.fixture(scope="module", params=[0, 2], ids=["in this process", "in two workers"])
def evaluated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return observed.evaluations(tmp_path_factory.mktemp("pinned"), request.param)


def test_a_plugin_is_stored_under_the_same_names_with_the_same_bytes(evaluated: tuple[Any, Any]) -> None:
    assert evaluated[0] == PINS["evaluations"]


def test_what_is_printed_as_json_keeps_its_names_and_values(evaluated: tuple[Any, Any]) -> None:
    assert rounded(evaluated[1]) == rounded(PINS["json"])


def rounded(value: Any) -> Any:
    """A JSON-able value with ten digits of its numbers: the last ones differ between processors."""
    if isinstance(value, dict):
        return {name: rounded(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value
