"""Tests for the crates' licences and sources, and for packages that the page must not contain."""

from __future__ import annotations

import pytest
from conftest import tool

licences = tool("licences")


def test_crates_keep_to_the_rules(capsys):
    assert licences.main() == 0
    assert capsys.readouterr().err == ""


def test_nothing_of_other_stacks_is_in_the_page():
    page = licences.linked_into("ackclock-wasm", "wasm32-unknown-unknown")
    native = licences.linked_into("ackclock-python", "x86_64-unknown-linux-gnu")
    assert {"ackclock-sim", "ackclock-wasm"} <= page
    assert page.isdisjoint(licences.NATIVE_ONLY)
    assert set(licences.NATIVE_ONLY) <= native  # the names are correct


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("MIT", True), ("MIT/GPL-2.0", True), ("GPL-2.0", False), ("MIT AND GPL-2.0", False), ("GPL-2.0 OR MIT AND ISC", True),
        ("(MIT OR GPL-2.0) AND ISC", True), ("GPL-2.0 AND (MIT OR ISC)", False), ("ISC WITH LLVM-exception", False),
    ],
)  # fmt: skip
def test_expressions(expression, met):
    assert licences.fits(expression, {"MIT", "ISC"}) is met


def test_what_is_wrong_is_a_line():
    strange = {"name": "a", "version": "1", "license": "GPL-3.0", "source": "git+https://example.org/a"}
    assert licences.judged(strange, {"MIT"}) == [
        "a 1: found the source git+https://example.org/a; allowed: the registry", "a 1: found GPL-3.0; allowed: MIT",
    ]  # fmt: skip
    assert licences.judged(strange | {"license": None, "source": None}, {"MIT"}) == [
        "a 1: found no licence; allowed: one of deny.toml"
    ]
