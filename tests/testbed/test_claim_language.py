"""The language of claims: what is read, and what is refused with which words."""

from __future__ import annotations

import pytest

from testbed.claim_language import Claim, ClaimError, parse_claim


@pytest.mark.parametrize(
    ("text", "metric", "setting", "operator", "threshold"),
    [
        ("loss(press-mscr-linf) <= 1%", "loss", "press-mscr-linf", "<=", 0.01),
        ("top1(digits@limit40)>=95.5 %", "top1", "digits@limit40", ">=", 0.955),
        ("accuracy( digits ) > 90%", "top1", "digits", ">", 0.9),
        ("mscr(digits-noise-linf-0.01) >= -2.5%", "mscr", "digits-noise-linf-0.01", ">=", -0.025),
        ("mscr(a) >= -5", "mscr", "a", ">=", -0.05),
        ("recovery(a) < 1e1%", "recovery", "a", "<", 0.1),
        ("loss(a) <= 0", "loss", "a", "<=", 0.0),
        ("loss(a) ≤ .5%", "loss", "a", "<=", 0.005),
    ],
)
def test_claims_are_read_in_percent(text: str, metric: str, setting: str, operator: str, threshold: float) -> None:
    claim = parse_claim(text)
    assert (claim.metric, claim.setting, claim.operator, claim.subtracted) == (metric, setting, operator, None)
    assert claim.threshold == pytest.approx(threshold, rel=1e-15)


def test_a_difference_names_two_settings() -> None:
    claim = parse_claim("top1(digits) - top1(digits-mscr-l2) < 2%")
    assert claim.settings == ("digits", "digits-mscr-l2")
    assert claim.threshold == 0.02


@pytest.mark.parametrize("text", ["loss(a) <= 1%", "mscr(a-b) >= -0.35%", "top1(a) - top1(b) < 12.5%"])
def test_a_claim_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_claim(text)) == text
    assert parse_claim(str(parse_claim(text))) == parse_claim(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("loss(a)", "compares nothing. Write METRIC(SETTING) <= NUMBER%"),
        ("0% <= loss(a) <= 1%", "2 comparisons, <= and <="),
        ("loss(a) = 1%", "'=', which no sample can show. Use <=, >=, < or >"),
        ("loss(a) => 1%", "'=>' where <=, >=, < or > belongs"),
        ("loss <= 1%", "does not begin with METRIC(SETTING): 'loss'"),
        ("loss(a b) <= 1%", "does not begin with METRIC(SETTING)"),
        ("los(a) <= 1%", "unknown metric 'los'. Did you mean loss? Metrics: top1, accuracy, loss, recovery, mscr."),
        ("Top1(a) >= 1%", "unknown metric 'Top1'. Did you mean top1?"),
        ("loss(a) <= one", "'one', which is no number"),
        ("loss(a) <= 1,5%", "'1,5%', which is no number"),
        ("loss(a) <= nan%", "'nan%', which is no number"),
        ("loss(a) <= 1e999%", "which is no number"),
        ("loss(a) <= 1%%", "'1%%', which is no number"),
        ("top1(a) >= 0.9", "0.9 may be a percentage or a fraction. Write 0.9% or 90%."),
        ("mscr(a) >= -0.5", "Write -0.5% or -50%."),
        ("loss(a) <= 1", "Write 1% or 100%."),
        ("loss(a) <= 101%", "says nothing: loss is at least 0% and at most 100%."),
        ("loss(a) >= -1%", "says nothing"),
        ("mscr(a) >= -101%", "says nothing: mscr is at least -100%."),
        ("top1(a) - top1(b) <= -101%", "a difference of top1 is at least -100% and at most 100%."),
        ("loss(a) - top1(b) <= 1%", "subtracts top1 from loss"),
        ("mscr(a) - mscr(b) <= 1%", "Differences are of one metric: top1, loss or recovery."),
        ("loss(a) - loss(a) <= 1%", "from itself"),
        ("loss(a) - 5 <= 1%", "subtracts '5', which is not METRIC(SETTING)"),
        ("", "compares nothing"),
    ],
)
def test_what_is_no_claim_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(ClaimError) as caught:
        parse_claim(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert text in str(caught.value)


def test_mscr_may_be_claimed_above_100_percent() -> None:
    assert parse_claim("mscr(a) <= 150%") == Claim(metric="mscr", setting="a", operator="<=", threshold=1.5)
