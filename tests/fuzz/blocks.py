"""Code blocks of packet scripts: any text is evaluated or refused in bounded time, and none of it is executed."""

from __future__ import annotations

import re
from pathlib import Path

from draw import one_line

from ackclock.script._blocks import Block, check, evaluate

_SCRIPTS = sorted((Path(__file__).resolve().parents[1] / "scripts").rglob("*.pkt"))
EXAMPLES = [block for file in _SCRIPTS for block in re.findall(rb"%\{(.*?)\}%", file.read_bytes(), re.DOTALL)]
NAMES = {"tcpi_snd_cwnd": 10, "tcpi_rtt": 100_000, "tcpi_state": 1}


def play(data: bytes) -> bool:
    """Play one input; return whether it is a valid block."""
    text = data.decode(errors="replace")
    blocks = [Block(line=1 + i, text=part, names=NAMES) for i, part in enumerate(text.split("}%"))]
    allowed = check(blocks)
    for outcome in (allowed, evaluate(blocks)):
        assert (outcome.verdict == "pass") == (not outcome.message), outcome
        if outcome.message:
            one_line(outcome.message)
    return allowed.verdict == "pass"
