"""Helpers shared by the chapters: slow starts, paths, and values measured in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ackclock import Batch
from ackclock.judge.estimates import Array
from ackclock.plot import OKABE_ITO
from ackclock.scenario import Scenario
from ackclock.study import Tables

CLASSIC, HYSTART, HYSTART_PP, SEARCH, LIMITED = "classic", "hystart", "hystart++", "search", "limited"
ARMS = (CLASSIC, HYSTART, HYSTART_PP, SEARCH, LIMITED)

COLOUR = {
    CLASSIC: OKABE_ITO["black"],
    HYSTART: OKABE_ITO["vermilion"],
    HYSTART_PP: OKABE_ITO["blue"],
    SEARCH: OKABE_ITO["green"],
    LIMITED: OKABE_ITO["purple"],
}
MARKER = {CLASSIC: "o", HYSTART: "s", HYSTART_PP: "D", SEARCH: "^", LIMITED: "v"}

PACKET = 1500
PAYLOAD = 1448
BACKGROUND = 0.05
"""Mean fraction of the bottleneck rate used by on-off background traffic, which makes runs differ."""

SETTLED = 0.9
"""Fraction of the available rate at which the rate counts as reached."""

ROUNDS = 4
"""Number of round trips over which a rate is measured."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A path: rate in Mbit/s, RTT in ms, queue in bandwidth-delay products, and further bottleneck keys."""

    rate: int
    rtt: int
    queue: float
    link: Mapping[str, Any] = field(default_factory=dict)
    background: float = BACKGROUND

    @property
    def bdp(self) -> float:
        """Bandwidth-delay product of the path without its queue, packets."""
        return self.rate * 1e6 * self.rtt * 1e-3 / 8 / PACKET

    @property
    def name(self) -> str:
        """Name in labels."""
        return f"{self.rate} Mb/s, {self.rtt} ms, queue {self.queue:g} BDP"

    def network(self) -> dict[str, Any]:
        """Network with this path, a dumbbell."""
        queue = {"kind": "drop-tail", "limit": f"{max(round(self.queue * self.bdp), 4)} packets"}
        link = {"rate": f"{self.rate} Mbit/s", "delay": f"{self.rtt / 2} ms", "queue": queue, **self.link}
        return {"topology": "dumbbell", "bottleneck": link}

    def others(self) -> dict[str, Any]:
        """On-off traffic: on half of the time, at twice the mean rate."""
        rate = f"{round(2 * self.background * self.rate * 1e6)} bit/s"
        return {"name": "others", "workload": {"kind": "on-off", "rate": rate, "on": "100 ms", "off": "100 ms"}}

    def scenario(self, start: str | Mapping[str, Any], round_trips: int, **flow: Any) -> Scenario:
        """Return one CUBIC flow with this slow start, and the background flows."""
        rule = {"kind": start} if isinstance(start, str) else dict(start)
        stack = {"slow_start": rule, **flow.pop("stack", {})}
        return Scenario.from_dict(
            {
                "name": f"{rule['kind']}, {self.name}",
                "duration": f"{round_trips * self.rtt} ms",
                "network": self.network(),
                "flows": [{"congestion_control": "cubic", "stack": stack, **flow}, self.others()],
                "record": {"goodput_interval": f"{self.rtt} ms"},
            }
        )


NEEDS = {
    "flows": ("flow", "slow_start_by", "slow_start_ssthresh", "slow_start_lost", "slow_start_end_s"),
    "goodput": ("t_s", "flow", "goodput_bps"),
}


def quality(place: Place, batch: Batch) -> pl.DataFrame:
    """Exit quality.

    Returns
    -------
    DataFrame
        A row per run: seed, by, exit (ssthresh over the bandwidth-delay product; NaN: slow start did not end), lost (segments until
        two round trips later), lost_bdp (the same over that product), settled (round trips until 90 % of what the others leave was
        reached, infinite if it was not).
    """
    flows = batch.flows.filter(pl.col("flow") == 0)
    enough = SETTLED * (1 - place.background) * place.rate * 1e6 * PAYLOAD / PACKET
    goodput = batch.goodput.filter(pl.col("flow") == 0)
    settled = []
    for seed in flows["seed"]:
        each = goodput.filter(pl.col("seed") == seed)
        mean = np.convolve(each["goodput_bps"].to_numpy(), np.ones(ROUNDS) / ROUNDS, mode="valid")
        reached = np.flatnonzero(mean >= enough)
        settled.append(float(reached[0] + ROUNDS) if reached.size else np.inf)
    lost = pl.col("slow_start_lost").fill_null(0)
    return flows.select(
        "seed",
        pl.col("slow_start_by").alias("by"),
        (pl.col("slow_start_ssthresh") / place.bdp).fill_null(float("nan")).alias("exit"),
        lost.alias("lost"),
        (lost / place.bdp).alias("lost_bdp"),
        pl.Series("settled", settled, dtype=pl.Float64),
    )


def of(tables: Tables, table: str, column: str, **keys: object) -> Array:
    """A column of the runs with these keys, in seed order."""
    rows = tables[table].filter(*(pl.col(key) == value for key, value in keys.items())).sort("seed")
    found: Array = rows[column].to_numpy().astype(float)
    return found


def values(tables: Tables, table: str, column: str) -> Sequence[Any]:
    """A key's values, in order."""
    return tables[table][column].unique(maintain_order=True).to_list()
