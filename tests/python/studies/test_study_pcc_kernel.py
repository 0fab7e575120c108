"""Tests for the kernel part of the study pcc: its runs, and the agreement between its claims and its tables."""

from __future__ import annotations

import json

import polars as pl
from chance import near

from ackclock.judge.bound import Verdict
from ackclock.linux import _translate
from ackclock.linux._facts import Has
from ackclock.study.claim import Tables, conjunction
from ackclock_studies.pcc import kernel
from ackclock_studies.pcc.testbed import CUBIC, PCC


def sweep(share: dict[tuple[str, str], float]) -> Tables:
    """Return a sweep with the same shares for every buffer, by arm and protocol."""
    rows = [
        {
            "arm": arm,
            "cc": cc,
            "buffer": q,
            "seed": seed,
            "share": near(value, arm, cc, q, seed),
            "goodput_mbps": near(97 * value, arm, cc, q, seed),
        }
        for (arm, cc), value in share.items()
        for q in kernel.SIZES
        for seed in (1, 2)
    ]
    return {"sweep.flows": pl.DataFrame(rows)}


def test_the_kernel_can_carry_out_every_cell() -> None:
    for controller in (PCC, CUBIC):
        for arm in kernel.ARMS:
            text = json.loads(kernel.shallow(arm, controller, 20).to_engine_json())
            job = _translate.job(text, 1, "qdisc", Has(release="7.3.4", controllers=("cubic",)))
            assert job["hosts"][0]["tso"] is (arm == kernel.MININET and controller == CUBIC)
        for flows in kernel.FLOWS:
            text = json.loads(kernel.several(controller, flows).to_engine_json())
            assert _translate.job(text, 1, "qdisc", Has(release="7.3.4", controllers=("cubic",)))


def test_claims_follow_the_tables() -> None:
    spared = sweep(
        {
            (kernel.ROUTER, PCC): 0.95,
            (kernel.ROUTER, CUBIC): 0.9,
            (kernel.MININET, PCC): 0.3,
            (kernel.MININET, CUBIC): 0.9,
            (kernel.MININET_CUT, CUBIC): 0.1,
        }
    )
    claims = {claim.id: claim for claim in kernel.CLAIMS}
    verdicts = {name: conjunction(claims[name].direction.measure(spared)) for name in ("C2", "C4", "C5", "H3b", "H3c")}
    assert verdicts == {
        "C2": Verdict.HOLDS,
        "C4": Verdict.FAILS,
        "C5": Verdict.HOLDS,
        "H3b": Verdict.HOLDS,
        "H3c": Verdict.HOLDS,
    }
    assert kernel.ceiling(20) == 20 * 1456 * 8 / 7.5e-3 / 1e6
    assert kernel.ceiling(275) < 100


def test_the_report_holds_every_cell_of_both_backends() -> None:
    one = sweep({(arm, cc): 0.5 for cc in (PCC, CUBIC) for arm in kernel.ARMS})
    table = kernel.sweep_table({"linux": one, "sim": one})
    assert len(table.rows) == 6 * len(kernel.SIZES)
    assert kernel.figure({"linux": one, "sim": one}).draw() is not None
