"""Packet scripts: TCP's behaviour, segment by segment, played against the simulated stack."""

from __future__ import annotations

from ackclock.script._blocks import CONSTANTS, Block, Outcome, check, evaluate
from ackclock.script._play import Played, find, play

__all__ = ["CONSTANTS", "Block", "Outcome", "Played", "check", "evaluate", "find", "play"]
