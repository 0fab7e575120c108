"""Every sentence of a publication has a claim, or says why it has none; every claim belongs to a sentence, or is one."""

from __future__ import annotations

import pytest

from ackclock import studies

OWN = {
    "prr": {"T10", "T11"},  # the study's own
    "iw10": set(),
    "large-pipes": set(),
    "pcc": {"F", "P", "V"},  # on papers: the sentences themselves
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
