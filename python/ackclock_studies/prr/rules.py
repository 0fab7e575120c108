"""The recovery rules compared in the study, and their style in figures."""

from __future__ import annotations

import math
from typing import Any

from ackclock.plot import OKABE_ITO, Series
from ackclock.study import Reading, Tables

RATE_HALVING = "rate-halving"
RFC6675 = "rfc6675"
CRB = "prr-crb"
SSRB = "prr-ssrb"
RFC9937 = "prr-rfc9937"
LINUX_32 = "prr-linux-3.2"
LINUX_6 = "prr-linux-6"
UB = "prr-ub"

PRR = LINUX_32
"""Rule called PRR in the publications: the one in the kernel that they measured. It is RFC 6937's SSRB, and sets cwnd
to ssthresh at the end of recovery, a step that the RFC leaves open.
"""

RULES = (RATE_HALVING, RFC6675, CRB, SSRB, LINUX_32, RFC9937, LINUX_6)

FORM = Reading(
    name="form",
    question="Which rule is meant by PRR?",
    options={
        "Linux 3.2": "as in the kernel of both publications",
        "RFC 6937": "SSRB as printed, without an end of recovery",
    },
    why="the blog compares kernels 3.0 and 3.2, and the servers of the paper ran the patch that went into 3.2",
)


def prr(tables: Tables) -> str:
    """The rule meant by PRR in this reading."""
    return PRR if FORM.of(tables) == FORM.main else SSRB


def others(tables: Tables) -> tuple[str, ...]:
    """PRR's other variant, shown for comparison."""
    return (SSRB,) if prr(tables) == PRR else (PRR,)


SERIES = {
    RATE_HALVING: Series(label="rate halving", colour=OKABE_ITO["vermilion"], marker="s", dash=(0, (4, 2))),
    RFC6675: Series(label="RFC 6675", colour=OKABE_ITO["orange"], marker="^", dash=(0, (1, 1.2))),
    CRB: Series(label="PRR-CRB", colour=OKABE_ITO["sky"], marker="v", dash=(0, (6, 1.5, 1, 1.5))),
    SSRB: Series(label="PRR-SSRB", colour=OKABE_ITO["blue"], marker="o", dash="-"),
    LINUX_32: Series(label="PRR Linux 3.2", colour=OKABE_ITO["black"], marker="X", dash="-"),
    RFC9937: Series(label="PRR RFC 9937", colour=OKABE_ITO["green"], marker="D", dash=(0, (8, 2))),
    LINUX_6: Series(label="PRR Linux 6", colour=OKABE_ITO["purple"], marker="P", dash=(0, (3, 1, 1, 1, 1, 1))),
}

_OTHERS = {UB: "PRR-UB"}


def label(rule: str) -> str:
    """A rule's name in text and figures."""
    return SERIES[rule].label if rule in SERIES else _OTHERS[rule]


def name_of(arm: str) -> str:
    """An arm's label, with its β."""
    rule, _, beta = arm.partition(", ")
    return SERIES[rule].label + (f", {beta}" if beta else "")


def share_text(value: Any) -> str:
    """Format a percentage as in titles: two significant digits, and 0 below 0.005."""
    value = float(value)
    if not math.isfinite(value):
        return "an unknown part"
    return f"{value:.2g} %" if abs(value) >= 0.005 else "0 %"
