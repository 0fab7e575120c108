from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock import ScenarioError
from ackclock.units import BDP, DURATION, PACKETS, RATE, SIZE, parse, parse_share, whole


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
    ("text", "expected"), [("1 %", 0.01), ("100 %", 1.0), (0, 0.0), (1, 1.0), (0.3, 0.3), ("0.25", 0.25)]
)
def test_share(text, expected):
    assert parse_share(text) == expected


@pytest.mark.parametrize(
    "bad", [1.5, -0.1, "101 %", "-1 %", "1 percent", True, None, float("nan"), float("inf"), "", 10**400]
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
