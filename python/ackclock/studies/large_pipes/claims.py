"""W1 to W24: what the slides say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ackclock.metrics import friendliness
from ackclock.stats import bootstrap_interval
from ackclock.studies.large_pipes import estimators as est
from ackclock.studies.large_pipes import runs, sharing
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    ALABAMA_ATM,
    BUFFERS,
    CALTECH,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    TCPW,
)
from ackclock.studies.large_pipes.runs import COLD, WARM, completions, per_second, ramp_times, throughputs
from ackclock.study import Evidence, Range, Tables, at_least, at_most, below, between
from ackclock.study.estimates import Array, median

NO_BOUND = Range()


def w1(tables: Tables) -> Sequence[Evidence]:
    """Packet pairs through the model."""
    return [
        Evidence.of(
            median(est.pick(tables, "probe.pairs", "rate_bps", path=path.name)),
            f"packet pairs, {path.name}",
            between(0.98 * path.rate_bps / 1e6, 1.02 * path.rate_bps / 1e6),
            unit="Mb/s",
            factor=1e-6,
            weighs=path is ALABAMA,
        )
        for path in (ALABAMA, ALABAMA_ATM)
    ]


def _capped(values: Array, cap_s: float) -> Array:
    """Times that were not reached within the run, as the run's length: a lower bound."""
    return np.minimum(values, cap_s)


def w2(tables: Tables) -> Sequence[Evidence]:
    """Time to 90 % of the capacity, cold, path 1."""
    t = {p: _capped(ramp_times(tables, ALABAMA, p, COLD), 30.0) for p in PROTOCOLS}
    return [
        Evidence.of(median(t[NEWRENO] / t[HSTCP]), "time to 90 %, NewReno / HSTCP", at_least(2)),
        Evidence.of(median(t[HSTCP] / t[TCPW]), "time to 90 %, HSTCP / TCPW", at_least(1.5)),
        *(
            Evidence.of(median(t[p]), f"time to 90 %, {p} (30 s: not reached)", NO_BOUND, unit="s", weighs=False)
            for p in PROTOCOLS
        ),
    ]


def across(tables: Tables, protocol: str, start_s: float, stop_s: float) -> Array:
    """Throughput per second over the runs of path 1 as the slides made them: the first cold, the others warm."""
    cold = per_second(tables, ALABAMA, protocol, COLD, start_s, stop_s)
    warm = per_second(tables, ALABAMA, protocol, WARM, start_s, stop_s)
    return np.vstack([cold[:1], warm[1:]])


def spread(rows: Array) -> float:
    """Mean over the seconds of the coefficient of variation across runs."""
    mean = rows.mean(axis=0)
    return float(np.mean(rows.std(axis=0, ddof=1) / np.where(mean > 0, mean, np.nan)))


def quotient(numerator: float, denominator: float) -> float:
    """NaN where nothing varies: a resample may hold one run several times over."""
    return numerator / denominator if denominator > 0 else float("nan")


def w3(tables: Tables) -> Sequence[Evidence]:
    """Deviation between runs in the first ten seconds."""
    first = {p: across(tables, p, 0, 10) for p in PROTOCOLS}
    width = first[TCPW].shape[1]

    def ratio(rows: Array) -> float:
        return quotient(spread(rows[:, :width]), spread(rows[:, width:]))

    return [
        Evidence.of(
            bootstrap_interval(np.hstack([first[loud], first[calm]]), ratio, resamples=1000),
            f"coefficient of variation across runs, t ≤ 10 s, {loud} / {calm}",
            at_least(1.5),
        )
        for loud in (HSTCP, NEWRENO)
        for calm in (TCPW, FAST)
    ]


def w4(tables: Tables) -> Sequence[Evidence]:
    """HSTCP's deviation later on."""
    early, late = across(tables, HSTCP, 0, 10), across(tables, HSTCP, 30, 60)
    width = early.shape[1]

    def less(rows: Array) -> float:
        return 100 * (1 - quotient(spread(rows[:, width:]), spread(rows[:, :width])))

    value = bootstrap_interval(np.hstack([early, late]), less, resamples=1000)
    return [
        Evidence.of(value, "coefficient of variation across runs, 30 to 60 s below 0 to 10 s", at_least(30), unit="%")
    ]


def _completion(tables: Tables, protocol: str, cache: str, seconds: float, tolerance: float) -> Evidence:
    value = median(completions(tables, protocol, cache))
    bound = between(seconds * (1 - tolerance), seconds * (1 + tolerance))
    return Evidence.of(value, f"100 MB, {protocol}, {cache}", bound, unit="s")


def w5(tables: Tables) -> Sequence[Evidence]:
    """TCPW in 5.8 s."""
    return [
        _completion(tables, TCPW, COLD, 5.8, 0.10),
        *(
            Evidence.of(
                median(completions(tables, name, COLD)), f"100 MB, {name}, cold", NO_BOUND, unit="s", weighs=False
            )
            for name in runs.STARTS
        ),
    ]


def w6(tables: Tables) -> Sequence[Evidence]:
    """FAST in 5.8 s."""
    ratio = completions(tables, FAST, COLD) / completions(tables, TCPW, COLD)
    return [
        _completion(tables, FAST, COLD, 5.8, 0.10),
        Evidence.of(median(ratio), "100 MB, FAST / TCPW", between(0.95, 1.05)),
    ]


def w7(tables: Tables) -> Sequence[Evidence]:
    """HSTCP in 7.5 s."""
    return [_completion(tables, HSTCP, WARM, 7.5, 0.15), *_compared(tables, HSTCP)]


def w8(tables: Tables) -> Sequence[Evidence]:
    """NewReno in 11 s."""
    return [_completion(tables, NEWRENO, WARM, 11.0, 0.15), *_compared(tables, NEWRENO)]


def _compared(tables: Tables, protocol: str) -> list[Evidence]:
    """Cold; and warm, with an ACK for each segment: what delayed ACKs cost."""
    return [
        Evidence.of(
            median(completions(tables, name, cache)),
            f"100 MB, {name}, {cache}, for comparison",
            NO_BOUND,
            unit="s",
            weighs=False,
        )
        for name, cache in ((protocol, COLD), (runs.each_acked(protocol), WARM))
    ]


def w9(tables: Tables) -> Sequence[Evidence]:
    """The order of the four."""
    kept, shown = 0, []
    settings = [(path, queue) for path in (ALABAMA, ALABAMA_ATM) for queue in BUFFERS if 50 <= queue <= 400]
    for path, queue in settings:
        m = {
            p: float(np.median(completions(tables, p, WARM if p in runs.CACHED else COLD, path=path, queue=queue)))
            for p in PROTOCOLS
        }
        ordered = max(m[TCPW], m[FAST]) < m[HSTCP] < m[NEWRENO]
        kept += ordered
        shown.append(
            Evidence(
                label=f"{path.name}, {queue} packets: TCPW {m[TCPW]:.1f}, FAST {m[FAST]:.1f}, HSTCP {m[HSTCP]:.1f}, NewReno {m[NEWRENO]:.1f} s; in order",
                value=float(ordered),
                bound=NO_BOUND,
                weighs=False,
            )
        )
    seeds = completions(tables, TCPW, COLD).size
    share = Evidence(
        label=f"of {len(settings)} settings, those with TCPW and FAST before HSTCP before NewReno",
        value=100 * kept / len(settings),
        bound=at_least(80),
        unit="%",
        seeds=seeds,
    )
    return [share, *shown]


def w10(tables: Tables) -> Sequence[Evidence]:
    """TCPW above the others under random loss."""
    found = []
    for loss in runs.LOSSES:
        for other, factor in ((FAST, 1.3), (HSTCP, 5.0), (NEWRENO, 5.0)):
            found.append(
                Evidence.of(
                    median(throughputs(tables, TCPW, loss) / throughputs(tables, other, loss)),
                    f"{100 * loss:g} % loss: TCPW / {other}",
                    at_least(factor),
                )
            )
    with_sack = "TCPW, SACK on"
    for loss in runs.LOSSES:
        for other, factor in ((FAST, 1.3), (HSTCP, 5.0), (NEWRENO, 5.0)):
            ratio = throughputs(tables, with_sack, loss) / throughputs(tables, other, loss)
            found.append(
                Evidence.of(
                    median(ratio), f"{100 * loss:g} % loss: {with_sack} / {other}", at_least(factor), weighs=False
                )
            )
    return found


def w11(tables: Tables) -> Sequence[Evidence]:
    """Throughput falls with loss."""
    found = []
    for protocol in PROTOCOLS:
        for low, high in zip(runs.LOSSES, runs.LOSSES[1:], strict=False):
            ratio = throughputs(tables, protocol, high) / throughputs(tables, protocol, low)
            found.append(
                Evidence.of(
                    median(ratio), f"{protocol}: throughput at {100 * high:g} % over {100 * low:g} %", below(1.0)
                )
            )
    return found


def w12(tables: Tables) -> Sequence[Evidence]:
    """NewReno with a warm cache on path 2."""
    t = {p: _capped(ramp_times(tables, CALTECH, p, WARM if p in runs.CACHED else COLD), 4.0) for p in PROTOCOLS}
    found = [Evidence.of(median(t[NEWRENO]), "NewReno, warm: time to 90 %", below(0.2), unit="s")]
    for other in (TCPW, FAST, HSTCP):
        found.append(Evidence.of(median(t[NEWRENO] / t[other]), f"time to 90 %, NewReno warm / {other}", at_most(1.0)))
    cold = _capped(ramp_times(tables, CALTECH, NEWRENO, COLD), 4.0)
    found.append(Evidence.of(median(cold), "NewReno, cold: time to 90 %", NO_BOUND, unit="s", weighs=False))
    return found


def _ramps(tables: Tables, variant: str, card: str) -> Array:
    return _capped(est.pick(tables, "coalescing.ramps", "ramp_s", protocol=variant, card=card), 3.0)


def w13(tables: Tables) -> Sequence[Evidence]:
    """The stability filter behind a coalescing card."""
    ratio = _ramps(tables, est.ADAPTIVE, est.COALESCED) / _ramps(tables, est.FIXED, est.COALESCED)
    return [
        Evidence.of(median(ratio), "ramp time with coalescing, N = 10 / N = 0", at_least(3)),
        *(
            Evidence.of(median(_ramps(tables, v, est.COALESCED)), f"ramp time, {v}", NO_BOUND, unit="s", weighs=False)
            for v in est.VARIANTS
        ),
    ]


def w14(tables: Tables) -> Sequence[Evidence]:
    """Damping against variance."""
    found = []
    for peak in est.PEAKS:
        t = tables["damping.variance"].filter(pl.col("u_max") == peak)
        means = t.group_by("jitter_us").agg(pl.col("cov").median(), pl.col("tau_rtts").median()).sort("cov")
        tau = means["tau_rtts"].to_numpy()
        weighs = peak == est.PEAKS[0]
        for label, value, bound in (
            (
                "rank correlation of tau/RTT with the variation of the samples",
                _rank_correlation(means["cov"].to_numpy(), tau),
                at_least(0.9),
            ),
            ("least tau/RTT", float(tau.min()), at_most(2.0)),
            ("greatest tau/RTT", float(tau.max()), between(5.0, 11.0)),
        ):
            found.append(
                Evidence(label=f"U_max {peak}: {label}", value=value, bound=bound, seeds=t.height, weighs=weighs)
            )
    return found


def _rank_correlation(x: Array, y: Array) -> float:
    from scipy import stats

    return float(stats.spearmanr(x, y).statistic)


def w15(tables: Tables) -> Sequence[Evidence]:
    """Samples behind a coalescing card."""
    cov, last_gap = (
        {
            card: est.pick(tables, "coalescing.samples", "cov", protocol=variant, card=card)
            for card in (est.QUIET, est.COALESCED)
        }
        for variant in (est.ADAPTIVE, est.LAST_GAP)
    )
    return [
        Evidence.of(
            median(cov[est.COALESCED] / cov[est.QUIET]),
            "coefficient of variation of s_k, with coalescing / without",
            at_least(3),
        ),
        *(
            Evidence.of(median(c), f"coefficient of variation of s_k, {card}", NO_BOUND, weighs=False)
            for card, c in cov.items()
        ),
        Evidence.of(
            median(est.pick(tables, "coalescing.samples", "interval_s", protocol=est.ADAPTIVE, card=est.COALESCED)),
            "mean T_k with coalescing",
            NO_BOUND,
            unit="ms",
            factor=1e3,
            weighs=False,
        ),
        Evidence.of(
            median(last_gap[est.COALESCED] / last_gap[est.QUIET]),
            f"the same, {est.LAST_GAP}",
            NO_BOUND,
            weighs=False,
        ),
    ]


def w16(tables: Tables) -> Sequence[Evidence]:
    """Fixed gain against HSTCP and FAST."""
    slower = np.maximum(_ramps(tables, HSTCP, est.COALESCED), _ramps(tables, FAST, est.COALESCED))
    return [
        Evidence.of(
            median(_ramps(tables, est.FIXED, est.COALESCED) / slower),
            "ramp time with coalescing, TCPW at fixed gain / the slower of HSTCP and FAST",
            at_most(1.25),
        )
    ]


def w17(tables: Tables) -> Sequence[Evidence]:
    """Average throughput of TCPW and FAST."""
    found = []
    for path in (ALABAMA, CALTECH):
        mean = {p: per_second(tables, path, p, COLD, 0, 60).mean(axis=1) for p in (TCPW, FAST)}
        found.append(Evidence.of(median(mean[TCPW] / mean[FAST]), f"{path.name}: TCPW / FAST", between(0.95, 1.05)))
    return found


def w18(tables: Tables) -> Sequence[Evidence]:
    """Fairness among flows of one kind."""
    t = tables["sharing.same"]
    found: list[Evidence] = []
    first: list[Evidence] = []
    for protocol in (TCPW, FAST, HSTCP):
        for n in (2, 4):
            own = t.filter((pl.col("protocol") == protocol) & (pl.col("flows") == n))
            found.append(
                Evidence.of(
                    median(np.array(sharing.jain_per_run(own))),
                    f"{n} {protocol}: Jain's index, second half",
                    at_least(0.95),
                )
            )
            label = f"{n} {protocol}: share of the first flow over a fair one"
            first.append(Evidence.of(median(_share_of_first(own)), label, NO_BOUND, weighs=False))
    return [*found, *first]


def _share_of_first(rows: pl.DataFrame) -> Array:
    """Of each run: goodput of the flow that began first over the mean of all."""
    goodput = pl.col("goodput_bps")
    each = rows.sort("run", "flow").group_by("run", maintain_order=True)
    return each.agg(goodput.first() / goodput.mean())["goodput_bps"].to_numpy()


def w19(tables: Tables) -> Sequence[Evidence]:
    """FAST in step."""
    t = tables["sync.correlation"]
    found, shown = [], []
    for name, setting in sharing.SYNC.items():
        own = t.filter(pl.col("setting") == name)
        r, swing = own["correlation"].to_numpy(), own["swing_packets"].to_numpy()
        shown.append(Evidence.of(median(r), f"{name}: correlation of windows", NO_BOUND, weighs=False))
        shown.append(
            Evidence.of(median(swing), f"{name}: swing of the round-trip time", NO_BOUND, unit="packets", weighs=False)
        )
        if not setting.alone:
            found.append((setting.queue, float(np.median(r)), float(np.median(swing))))
    shows = [c >= 0.7 or s >= 0.5 * sharing.ALPHA for ratio, c, s in found if ratio < 2]
    quiet = [c < 0.7 and s < 0.5 * sharing.ALPHA for ratio, c, s in found if ratio >= 2]
    return [
        Evidence(
            label="settings with queue below 2 N α that show it",
            value=float(sum(shows)),
            bound=at_least(1),
            seeds=t.height,
        ),
        Evidence(
            label="settings with queue of 2 N α or more that show it",
            value=float(len(quiet) - sum(quiet)),
            bound=at_most(0),
            seeds=t.height,
        ),
        *shown,
    ]


def w20(tables: Tables) -> Sequence[Evidence]:
    """Friendliness to NewReno."""
    found = []
    for protocol in (TCPW, FAST, HSTCP):
        for n in (2, 4):
            found.append(
                Evidence.of(
                    median(friendliness_per_run(tables, protocol, n)),
                    f"{n // 2} NewReno beside {n // 2} {protocol}: throughput over that among NewReno",
                    at_least(0.8),
                    weighs=False,
                )
            )
    return found


def friendliness_per_run(tables: Tables, protocol: str, n: int) -> Array:
    """F of each run: NewReno's mean throughput beside X over that with all flows NewReno."""
    mixed = tables["sharing.mixed"].filter((pl.col("protocol") == protocol) & (pl.col("flows") == n))
    alone = tables["sharing.same"].filter((pl.col("protocol") == NEWRENO) & (pl.col("flows") == n))
    base = {run: own["goodput_bps"].to_list() for (run,), own in alone.group_by("run")}
    values = []
    for (run,), own in mixed.sort("run").group_by("run", maintain_order=True):
        values.append(friendliness(own.filter(pl.col("flow") < n // 2)["goodput_bps"].to_list(), base[run]))
    return np.array(values)


def _estimate(tables: Tables, estimator: str, setting: str) -> Array:
    value = est.pick(tables, "kinds.estimates", "estimate_bps", estimator=estimator, setting=setting)
    fair = est.pick(tables, "kinds.estimates", "fair_bps", estimator=estimator, setting=setting)
    return np.asarray(value / fair)


def w21(tables: Tables) -> Sequence[Evidence]:
    """Packet pairs."""
    return [
        Evidence.of(
            median(_estimate(tables, "BE", est.SHARED)), "BE, four flows: estimate over the fair share", at_least(1.15)
        ),
        Evidence.of(
            median(_estimate(tables, "BE", est.LOSSY)),
            "BE, alone at 0.3 % loss: estimate over the capacity",
            between(0.9, 1.1),
        ),
        Evidence.of(
            median(_estimate(tables, est.BE_SACK, est.LOSSY)),
            "the same, SACK on",
            NO_BOUND,
            weighs=False,
        ),
    ]


def w22(tables: Tables) -> Sequence[Evidence]:
    """Packet trains."""
    return [
        Evidence.of(
            median(_estimate(tables, "RE", est.SHARED)),
            "RE, four flows: estimate over the fair share",
            between(0.85, 1.15),
        ),
        Evidence.of(
            median(_estimate(tables, "RE", est.LOSSY)),
            "RE, alone at 0.3 % loss: estimate over the capacity",
            below(0.7),
        ),
    ]


def w23(tables: Tables) -> Sequence[Evidence]:
    """T_k and the queue."""
    values = []
    for _, own in tables["damping.queue"].group_by("run", maintain_order=True):
        known = own.drop_nulls()
        values.append(_rank_correlation(known["interval_rtts"].to_numpy(), known["packets"].to_numpy()))
    return [
        Evidence.of(
            median(np.array(values)), "rank correlation of T_k/RTT with the queue, means over 50 ms", at_least(0.8)
        )
    ]


def w24(tables: Tables) -> Sequence[Evidence]:
    """W13 without batches."""
    ratio = _ramps(tables, est.ADAPTIVE, est.QUIET) / _ramps(tables, est.FIXED, est.QUIET)
    return [Evidence.of(median(ratio), "ramp time without coalescing, N = 10 / N = 0", below(1.5))]


def control(tables: Tables) -> Sequence[Evidence]:
    """Negative control: limited by the window alone."""
    m = {p: completions(tables, p, COLD, queue=runs.CONTROL) for p in PROTOCOLS}
    worst = np.max(list(m.values()), axis=0) / np.min(list(m.values()), axis=0)
    return [Evidence.of(median(worst), "100 MB, queue of 2000, no loss, cold: slowest over fastest", at_most(1.1))]
