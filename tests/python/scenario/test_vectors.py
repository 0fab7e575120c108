"""Tests that compiled text, digests and refusals are unchanged (`vectors.py` describes how to update them)."""

from __future__ import annotations

import pytest
from vectors import KINDS, SLOW, frozen, hashes


@pytest.mark.parametrize("kind", KINDS)
def test_what_becomes_of_a_scenario_is_as_it_was(kind):
    assert hashes(KINDS[kind]()) == frozen()[kind]


@pytest.mark.long
@pytest.mark.parametrize("kind", SLOW)
def test_digests_are_as_they_were(kind):
    assert hashes(SLOW[kind]()) == frozen()[kind]
