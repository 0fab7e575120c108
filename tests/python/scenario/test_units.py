from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock import ScenarioError
from ackclock.units import BDP, DURATION, PACKETS, RATE, SHARE_PATTERN, SIZE, parse, parse_share, pattern, whole


@pytest.mark.parametrize(
    ("text", "dimension", "expected"),
    [
        ("1.2 Mbit/s", RATE, 1_200_000),
        ("1Gbit/s", RATE, 10**9),
        ("  64 KiB ", SIZE, 65536),
        ("64 KB", SIZE, 64000),
        ("7680 bytes", SIZE, 7680),
        ("25 ms", DURATION, 25_000_000),
        ("0.1 us", DURATION, 100),
        ("1.5e2 s", DURATION, 150 * 10**9),
        ("2 min", DURATION, 120 * 10**9),
        ("1 packet", PACKETS, 1),
        ("0.0000000001 h", DURATION, 360),
    ],
)
def test_whole_base_units(text, dimension, expected):
    assert whole(text, dimension) == expected


def test_exact_where_floats_are_not():
    assert parse("0.1 BDP", BDP)[0] == Fraction(1, 10)
    assert whole("0.3 s", DURATION) == 300_000_000


@pytest.mark.parametrize(
    "bad",
    [
        5,
        5.0,
        "5",
        "",
        "Mbit/s",
        "5 Mbps",
        "-1 Mbit/s",
        "0 Mbit/s",
        "1 2 Mbit/s",
        "1e999999 Mbit/s",
        "nan Mbit/s",
        "inf Mbit/s",
        True,
        None,
        [],
        "٣ Mbit/s",
        "1_0 Mbit/s",
        "200 Tbit/s",
        "0.1 bit/s",
        "5\n",
    ],
)
def test_refused(bad):
    with pytest.raises(ScenarioError) as caught:
        parse(bad, RATE)
    assert "\n" not in str(caught.value)
    assert "a rate" in caught.value.allowed


@pytest.mark.parametrize(
    ("text", "expected"), [("1 %", 0.01), ("100 %", 1.0), (0, 0.0), (1, 1.0), (0.3, 0.3), ("0.25 %", 0.0025)]
)
def test_share(text, expected):
    assert parse_share(text) == expected


@pytest.mark.parametrize(
    "bad", [1.5, -0.1, "101 %", "-1 %", "1", "0.25", "1 percent", True, None, float("nan"), float("inf"), "", 10**400]
)
def test_share_refused(bad):
    with pytest.raises(ScenarioError, match="0 to 1"):
        parse_share(bad)


@given(st.integers(1, 10**12), st.sampled_from(list(DURATION.units)))
def test_any_unit_is_read_back(number, unit):
    base = number * DURATION.units[unit]
    if base <= DURATION.largest:
        assert parse(f"{number} {unit}", DURATION)[0] == base


@given(st.text(max_size=30))
def test_any_text_gives_a_quantity_or_one_line(text):
    try:
        parse(text, RATE, SIZE, zero=True)
    except ScenarioError as error:
        assert str(error).isprintable()  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "dimension", "message"),
    [
        ("1e300 s", DURATION, 'found "1e300 s", which is too large; allowed: a duration of at most 1000 h'),
        ("1e13 s", DURATION, 'found "1e13 s", which is too large; allowed: a duration of at most 1000 h'),
        ("1e-300 s", DURATION, 'found "1e-300 s", which is too small; allowed: a duration of at least 1 ns'),
        ("1e99999999999 Mbit/s", RATE, 'found "1e99999999999 Mbit/s", which is too large; allowed: a rate of at most 100 Tbit/s'),
        ("1e300 GiB", SIZE, 'found "1e300 GiB", which is too large; allowed: a size of at most 1000000 GB'),
        ("1" * 30 + " s", DURATION, f'found "{"1" * 30} s", which is too large; allowed: a duration of at most 1000 h'),
        ("1." + "0" * 20 + "1 s", DURATION, f'found "1.{"0" * 20}1 s"; allowed: a duration with at most 18 digits before and after the point and an exponent of at most two'),
        ("1.5 packets", PACKETS, 'found "1.5 packets"; allowed: a number of packets in whole packets'),
        ("1.5 bytes", SIZE, 'found "1.5 bytes"; allowed: a size in whole bytes'),
        ("0.5 B", SIZE, 'found "0.5 B"; allowed: a size in whole bytes'),
    ],
)  # fmt: skip
def test_the_message_tells_what_is_wrong(text, dimension, message):
    with pytest.raises(ScenarioError) as caught:
        parse(text, dimension)
    assert str(caught.value) == message


def test_parts_where_a_mean_is_meant():
    assert parse("1.5 packets", PACKETS, parts=True)[0] == Fraction(3, 2)
    assert whole("1.5 KB", SIZE) == 1500
    assert whole("1.5e3 bytes", SIZE) == 1500


def test_a_share_as_text_needs_its_unit():
    with pytest.raises(ScenarioError) as caught:
        parse_share("1")
    assert str(caught.value) == (
        'found "1" without a unit; allowed: a number from 0 to 1 without quotes, or "0 %" to "100 %"'
    )


@pytest.mark.parametrize(
    "text", ["-1 s", "0 s", "0.00e3 s", "5", "1 2 s", "s", "+-1 s", "2 S", "-1 KB", "1 Mbit/s", "1..5 s", "."]
)
def test_the_pattern_refuses_what_is_refused(text):
    assert re.search(pattern(DURATION, PACKETS, SIZE), text) is None
    with pytest.raises(ScenarioError):
        parse(text, DURATION, PACKETS, SIZE)


@given(
    st.from_regex(r"[+]?[0-9]{1,6}(\.[0-9]{1,6})?([eE][+-]?[0-9])?", fullmatch=True),
    st.sampled_from([*DURATION.units, *RATE.units, *SIZE.units, *PACKETS.units, *BDP.units]),
    st.booleans(),
    st.sampled_from(["", " ", "  "]),
)
def test_the_pattern_lets_through_what_is_read(number, unit, zero, gap):
    text = f"{number}{gap}{unit}"
    dimensions = (DURATION, RATE, SIZE, PACKETS, BDP)
    try:
        parse(text, *dimensions, zero=zero)
    except ScenarioError:
        return
    assert re.search(pattern(*dimensions, zero=zero), text)


def test_a_pattern_can_be_read():
    """An editor shows the pattern if a value does not match it."""
    assert pattern(RATE).endswith(r"\s*(?:bit/s|kbit/s|Mbit/s|Gbit/s|Tbit/s)\s*$")
    assert len(pattern(DURATION, RATE, SIZE, PACKETS, BDP)) < 250


@pytest.mark.parametrize("text", ["1 %", "100 %", "0%", "0.5 %", "100.0 %", "1e-3 %", "1e1 %", " 7 % "])
def test_the_pattern_of_shares(text):
    parse_share(text)
    assert re.search(SHARE_PATTERN, text)


@pytest.mark.parametrize("text", ["101 %", "-1 %", "1", "100.1 %", "1111 %", "%"])
def test_the_pattern_of_shares_refuses(text):
    assert re.search(SHARE_PATTERN, text) is None
    with pytest.raises(ScenarioError):
        parse_share(text)


def test_what_is_no_character_is_refused_in_one_line() -> None:
    for call in (lambda: parse("5 \udcff", RATE), lambda: parse_share("\ud800 %")):
        with pytest.raises(ScenarioError, match="found"):
            call()
