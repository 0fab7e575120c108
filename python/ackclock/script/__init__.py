"""Packet scripts: tests of TCP's behaviour, segment by segment, against the simulated stack or the real kernel."""

from __future__ import annotations

from ackclock.script._blocks import CONSTANTS, Block, Outcome, check, evaluate
from ackclock.script._both import Compared, play_each
from ackclock.script._drawn import KINDS, DrawnScript, drawn_scripts, shrink
from ackclock.script._packets import different_packet
from ackclock.script._play import BACKENDS, Backend, Played, find, linux_differs, play

__all__ = [
    "BACKENDS",
    "CONSTANTS",
    "KINDS",
    "Backend",
    "Block",
    "Compared",
    "DrawnScript",
    "Outcome",
    "Played",
    "check",
    "different_packet",
    "drawn_scripts",
    "evaluate",
    "find",
    "linux_differs",
    "play",
    "play_each",
    "shrink",
]
