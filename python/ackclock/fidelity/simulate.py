"""The simulator's results on the measured paths: quantity -> one value per run, named as in `reference`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ackclock._results.run import run, run_batch
from ackclock.fidelity import path, reference, replay
from ackclock.fidelity.reference import Values
from ackclock.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

SECONDS = 60
SHARING_SECONDS = 120

PHASES_US = (0, 137, 274)
"""Start times relative to the 1 ms tick, us. The kernel's start times are 137 us apart; the phase of the first one is
unknown.
"""

OURS = {"westwood": "westwood-plus"}
"""Linux's name for a controller -> ours, where they differ."""

FETCHES = {7680: 300, 768_000: 100}
"""Number of fetches per seed by size, as in the data."""


def bulk(network: str, controller: str, *, phases_us: tuple[int, ...] = PHASES_US) -> Values:
    """Run one flow without random loss, once per start phase within the tick."""
    return _joined([_one_flow(network, controller, start_us=phase) for phase in phases_us])


def same_losses(controller: str, loss_percent: float, *, jobs: int) -> Values:
    """Run one flow on n2 with exactly the kernel's losses, seed by seed."""

    def measure(seed: int) -> Values:
        lost = reference.lost_packets(loss_percent, seed)
        scenario = replay.bulk(path.N2, controller, lost, seconds=SECONDS)
        return _measure(scenario, since_s=path.N2.handshake_ns * 1e-9)

    with ThreadPoolExecutor(jobs) as threads:
        return _joined(list(threads.map(measure, range(1, 6))))


def own_losses(controller: str, loss_percent: float, *, seeds: int, jobs: int) -> Values:
    """Run one flow on n2 with losses drawn by the simulator."""
    loss = {"kind": "bernoulli", "p": f"{loss_percent} %"}
    scenario = path.bulk(path.N2, controller, seconds=SECONDS, loss=loss)
    batch = run_batch(scenario, range(1, seeds + 1), jobs=jobs)
    return _summarise(batch.flows, batch.samples, since_s=path.N2.handshake_ns * 1e-9)


def sharing() -> Values:
    """Run two cubic flows on n2; for each seed the second one starts with the delay found in the data."""
    values: Values = {name: [] for name in (reference.AGGREGATE, reference.FIRST_SHARE, reference.RETRANSMISSIONS)}
    for late_us in reference.second_starts_us():
        # The second flow connects `late_us` after the first is connected, which is time 0 in the kernel's data.
        second_us = path.N2.handshake_ns // 1000 + late_us
        scenario = path.bulk(path.N2, "cubic", seconds=SHARING_SECONDS, starts_us=(0, second_us))
        flows = run(scenario).flows
        lives = (SHARING_SECONDS, SHARING_SECONDS - late_us * 1e-6)
        first, second = (8e-6 * acked / life for acked, life in zip(flows["bytes_acked"], lives, strict=True))
        values[reference.AGGREGATE].append(first + second)
        values[reference.FIRST_SHARE].append(first / (first + second))
        values[reference.RETRANSMISSIONS].append(float(flows["retransmissions"].sum()))
    return values


def fetches(size: int, *, seeds: int, jobs: int) -> Values:
    """Run fetches with losses drawn by the simulator."""
    import polars as pl

    rows = run_batch(path.fetches(size, FETCHES[size]), range(1, seeds + 1), jobs=jobs).fetches
    names = {
        "syn_retransmissions": "syn_retrans",
        "synack_retransmissions": "synack_retrans",
        "request_retransmissions": "request_retrans",
        "data_retransmissions": "data_retrans",
    }
    done = rows.filter(pl.col("done")).rename(names).with_columns((1e3 * pl.col("total_s")).alias("total_ms"))
    return reference.summarise_fetches(done)


def _one_flow(network: str, controller: str, *, start_us: int) -> Values:
    where = path.PATHS[network]
    scenario = path.bulk(where, controller, seconds=SECONDS, starts_us=(start_us,))
    return _measure(scenario, since_s=start_us * 1e-6 + where.handshake_ns * 1e-9)


def _measure(scenario: Scenario, *, since_s: float) -> Values:
    import polars as pl

    result = run(scenario)
    one = pl.lit(1).alias("seed")
    return _summarise(result.flows.with_columns(one), result.samples.with_columns(one), since_s=since_s)


def _joined(runs: Sequence[Values]) -> Values:
    return {quantity: [one[quantity][0] for one in runs] for quantity in runs[0]}


def _summarise(flows: pl.DataFrame, samples: pl.DataFrame, *, since_s: float) -> Values:
    """Return, per seed, the goodput over the whole run, and the means of all samples from 10 ms after the handshake on."""
    import polars as pl

    # The sample grid starts with the run, so it is up to half an interval off the kernel's.
    from_s = since_s + 0.5e-3 * path.SAMPLE_MS
    means = (
        samples.filter(pl.col("t_s") > from_s)
        .group_by("seed")
        .agg(pl.col("cwnd").mean(), (1e3 * pl.col("srtt_s")).mean().alias("srtt_ms"))
        .sort("seed")
    )
    flows = flows.sort("seed")
    return {
        reference.GOODPUT: (8e-6 * flows["bytes_acked"] / SECONDS).to_list(),
        reference.CWND: means["cwnd"].to_list(),
        reference.SRTT: means["srtt_ms"].to_list(),
        reference.RETRANSMISSIONS: [float(x) for x in flows["retransmissions"]],
    }
