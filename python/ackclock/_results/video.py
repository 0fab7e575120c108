"""Numbers computed from video players: how efficiently, fairly and stably they share a link."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ackclock._results.metrics import jain

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Matrix = np.ndarray[Any, np.dtype[np.float64]]

__all__ = ["HORIZON", "bitrates", "inefficiency", "instability", "players", "quality", "unfairness"]

HORIZON = 20
"""Time window of the instability metric, s."""


def inefficiency(bps: Iterable[float], capacity_bps: float) -> float:
    """Distance between the sum of the players' bitrates and the link capacity: abs(sum b - W) / W.

    Parameters
    ----------
    bps
        Bitrate of each player at one time.
    capacity_bps
        W.

    Returns
    -------
    float
        0 if they fill the link. Being a fifth below and a fifth above the capacity give the same value.

    Examples
    --------
    >>> inefficiency([2e6, 2e6], 5e6)
    0.2
    """
    return abs(sum(bps) - capacity_bps) / capacity_bps


def unfairness(bps: Iterable[float]) -> float:
    """sqrt(1 - J) of the players' bitrates, J being Jain's index.

    Parameters
    ----------
    bps
        Bitrate of each player at one time.

    Returns
    -------
    float
        0 if all are equal; NaN without players, or if all bitrates are zero.

    Examples
    --------
    >>> unfairness([1e6, 1e6]), round(unfairness([1e6, 3e6]), 3)
    (0.0, 0.447)
    """
    return float(max(1.0 - jain(bps), 0.0) ** 0.5) if (bps := list(bps)) and any(bps) else float("nan")


def instability(bps: Sequence[float], horizon: int = HORIZON) -> float:
    """One player's bitrate switches relative to its bitrate; recent switches have more weight.

    The sum of abs(b[t-d] - b[t-d-1]) w(d) over d from 0 to k - 1, divided by the sum of b[t-d] w(d) over d from 1 to
    k, with w(d) = k - d.

    Parameters
    ----------
    bps
        Bitrate of the player second by second, up to time t; the last k + 1 values are used.
    horizon
        k, seconds.

    Returns
    -------
    float
        0 if the player never switched; NaN with fewer than k + 1 values, or without a bitrate.

    Examples
    --------
    >>> instability([1.0, 1.0, 1.0], horizon=2), instability([1.0, 2.0, 2.0], horizon=2)
    (0.0, 0.5)
    """
    if len(bps) < horizon + 1:
        return float("nan")
    last = list(bps[-horizon - 1 :])[::-1]
    changes = sum(abs(last[d] - last[d + 1]) * (horizon - d) for d in range(horizon))
    level = sum(last[d] * (horizon - d) for d in range(1, horizon + 1))
    return changes / level if level else float("nan")


def bitrates(chunks: pl.DataFrame, *, start_s: float = 0.0, stop_s: float) -> pl.DataFrame:
    """Each player's bitrate, second by second.

    Parameters
    ----------
    chunks
        `Run.chunks` of one run.
    start_s, stop_s
        Seconds from start_s on, and before stop_s.

    Returns
    -------
    polars.DataFrame
        Columns `t_s`, `flow`, `bitrate_bps`: bitrate of the last chunk requested by then, 0 before the first.
    """
    import numpy as np
    import polars as pl

    t = np.arange(start_s, stop_s, 1.0)
    flows, matrix = _matrix(chunks, t)
    return pl.DataFrame(
        {
            "t_s": np.tile(t, len(flows)),
            "flow": np.repeat(np.array(flows, dtype=np.uint32), t.size),
            "bitrate_bps": matrix.T.ravel(),
        }
    )


def quality(
    chunks: pl.DataFrame, capacity_bps: float, *, start_s: float, stop_s: float, horizon: int = HORIZON
) -> dict[str, float]:
    """A run's three metrics and the viewers' quality: means over the seconds from start_s up to but excluding stop_s.

    Parameters
    ----------
    chunks
        `Run.chunks` of one run.
    capacity_bps
        Capacity of the shared link; see `ackclock.metrics.capacity_bps`.
    start_s, stop_s
        Part of the run that is evaluated; instability also uses up to `horizon` seconds before it.
    horizon
        k of instability, seconds.

    Returns
    -------
    dict
        `inefficiency`; `unfairness`; `instability`, also a mean over players; `jain` of the players' mean bitrates;
        `bitrate_bps`, mean over players; `stalled`, fraction of the time for which playback stalled after it had begun;
        `switches`, per player and minute.

    Raises
    ------
    ValueError
        If there is no player, or no second to evaluate.
    """
    import numpy as np

    t = np.arange(start_s - horizon, stop_s, 1.0)
    flows, matrix = _matrix(chunks, t)
    if not flows or t.size <= horizon:
        raise ValueError(f"{len(flows)} players from {start_s:g} to {stop_s:g} s; some are needed, and a second")
    weights = np.arange(horizon, -1, -1.0)
    inside = matrix[horizon:]
    # windows of the last k + 1 seconds, newest first
    back = np.lib.stride_tricks.sliding_window_view(matrix, horizon + 1, axis=0)[..., ::-1]
    changes = np.abs(np.diff(back, axis=-1)) @ weights[:horizon]
    level = back[..., 1:] @ weights[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        steadiness = np.where(level > 0, changes / level, np.nan)
        total = inside.sum(axis=1)
        index = total**2 / (inside.shape[1] * (inside**2).sum(axis=1))
    rows = chunks.filter((chunks["request_s"] >= start_s) & (chunks["request_s"] < stop_s))
    minutes = len(flows) * (stop_s - start_s) / 60
    return {
        "inefficiency": float(np.mean(np.abs(total - capacity_bps) / capacity_bps)),
        "unfairness": _mean(np.sqrt(np.clip(1 - index, 0, None))),
        "instability": _mean(steadiness),
        "jain": jain(inside.mean(axis=0).tolist()),
        "bitrate_bps": float(inside.mean()),
        "stalled": float(rows["stall_s"].sum()) / (60 * minutes),
        "switches": float((np.diff(matrix[horizon - 1 :], axis=0) != 0).sum()) / minutes,
    }


def players(chunks: pl.DataFrame) -> pl.DataFrame:
    """Results of each player.

    Parameters
    ----------
    chunks
        `Run.chunks` of one run.

    Returns
    -------
    polars.DataFrame
        Columns `flow`, `chunks` (number that arrived), `bitrate_bps` (their mean bitrate), `switches`,
        `first_picture_s` (time at which playback began, null if it did not), `stalls` (chunks that arrived too late),
        `stall_s`.
    """
    import polars as pl

    there = pl.col("finish_s").is_not_null()
    return (
        chunks.sort("flow", "idx")
        .group_by("flow", maintain_order=True)
        .agg(
            there.sum().cast(pl.UInt32).alias("chunks"),
            pl.col("bitrate_bps").filter(there).mean().alias("bitrate_bps"),
            (pl.col("level").diff() != 0).sum().cast(pl.UInt32).alias("switches"),
            pl.col("finish_s").filter(pl.col("playing")).min().alias("first_picture_s"),
            (pl.col("stall_s") > 0).sum().cast(pl.UInt32).alias("stalls"),
            pl.col("stall_s").sum(),
        )
    )


def _mean(values: Matrix) -> float:
    """Return the mean of the values that are numbers."""
    import numpy as np

    there = values[~np.isnan(values)]
    return float(there.mean()) if there.size else float("nan")


def _matrix(chunks: pl.DataFrame, t: Matrix) -> tuple[list[int], Matrix]:
    """Return the players, and their bitrates with one row per time and one column per player."""
    import numpy as np

    flows = sorted(chunks["flow"].unique().to_list())
    matrix = np.zeros((t.size, len(flows)))
    for column, flow in enumerate(flows):
        own = chunks.filter(chunks["flow"] == flow).sort("idx")
        asked, bps = own["request_s"].to_numpy(), own["bitrate_bps"].to_numpy()
        last = np.searchsorted(asked, t, side="right") - 1
        matrix[:, column] = np.where(last >= 0, bps[np.clip(last, 0, None)], 0.0)
    return flows, matrix
