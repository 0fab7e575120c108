"""Appearance of the protocols in every figure."""

from __future__ import annotations

from typing import Any

from ackclock.plot import OKABE_ITO
from ackclock_studies.large_pipes.paths import (
    FAST,
    HSTCP,
    NEWRENO,
    TCPW,
)

COLOUR = {TCPW: OKABE_ITO["vermilion"], FAST: OKABE_ITO["blue"], HSTCP: OKABE_ITO["green"], NEWRENO: OKABE_ITO["black"]}
DASH: dict[str, Any] = {TCPW: "-", FAST: "--", HSTCP: "-.", NEWRENO: ":"}
MARKER = {TCPW: "o", FAST: "s", HSTCP: "^", NEWRENO: "D"}
