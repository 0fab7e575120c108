"""Tests that every sentence of a publication has a claim or a reason for having none, and that every claim belongs to a sentence or is the study's own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ackclock import studies
from ackclock.study import SCALES

OWN = {
    "prr": {"T10", "T11"},  # the study's own
    "iw10": set(),
    "large-pipes": set(),
    "pcc": {"F", "P", "V"},  # about papers: the sentences themselves
}


@pytest.mark.parametrize("name", OWN)
def test_sentences_name_claims_and_claims_have_sentences(name):
    found = studies.get(name)
    claims = {claim.id for claim in found.claims}
    named = {claim for sentence in found.sentences for claim in sentence.claims}
    assert named <= claims, named - claims
    assert len(found.sentences) > 30
    rest = claims - named
    assert {claim for claim in rest if not {claim, claim[0]} & OWN[name]} == set()


@pytest.mark.parametrize("name", ["large-pipes", "pcc"])
def test_every_verdict_that_changed_says_why(name):
    found = studies.get(name)
    records = tuple(found.recorded(scale) for scale in SCALES)
    assert found.before.missing(found.claims, records) == (set(), set())
    was = replace(
        found.before, verdicts=found.before.verdicts.replace("\nP1 | how much fails", "\nP1 | how much holds")
    )
    was = replace(was, verdicts=was.verdicts.replace("\nW1 | holds", "\nW1 | fails"))
    changed, unchanged = was.missing(found.claims, records)
    assert (changed, unchanged) == ({"P1"} if name == "pcc" else {"W1"}, set())


CAUSAL = re.compile(r"\b(because|since|due to|owing to|comes? from|thanks to|explains?|makes the difference|for the reason)\b", re.IGNORECASE)  # fmt: skip
"""Words in a note that state a cause."""


@pytest.mark.parametrize("name", [*OWN, "slow-start"])
def test_a_note_says_why_only_beside_an_intervention_or_a_guess(name):
    """Otherwise the note names the study's test that removes the cause."""
    for claim in studies.get(name).claims:
        if CAUSAL.search(claim.note):
            assert claim.causes or claim.guesses or re.search(r"tests? of the study", claim.note), claim.id
    assert CAUSAL.search("It is so because the queue overflows.")
