"""Packet scripts, the Python side: code blocks and what they may do."""

from __future__ import annotations

from ackclock.script._blocks import CONSTANTS, Block, Outcome, check, evaluate

__all__ = ["CONSTANTS", "Block", "Outcome", "check", "evaluate"]
