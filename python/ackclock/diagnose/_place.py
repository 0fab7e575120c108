"""A connection's capture point, relative to its data direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ackclock.diagnose._replay import Replay

__all__ = ["guess", "place"]


def place(row: Mapping[str, Any]) -> str:
    """Return the capture point, relative to the data direction.

    Parameters
    ----------
    row
        Row of the direction.
    """
    at = row["captured_at"]
    if row["from_address"] == row["to_address"]:
        return "sender"  # both ends are on the capturing host
    if at in ("between", "unknown"):
        return str(at)
    return "sender" if at == row["way"] else "receiver"


def guess(played: Replay, row: Mapping[str, Any]) -> str:
    """Guess the capture point without a handshake: `sender` if data immediately follows ACKs, else `unknown`.

    Parameters
    ----------
    played, row
        Replay of the sender, and row of the direction.
    """
    least = row["rtt_min_s"]
    if not least:
        return "unknown"
    released = [now for now in played.instants if now.new and now.heard]
    alone = [now for now in played.instants if now.new and not now.heard]
    return "sender" if len(released) > len(alone) and played.gap < 0.2 * least else "unknown"
