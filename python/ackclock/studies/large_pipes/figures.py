"""Figures for the plots of the slides."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.studies.large_pipes import claims, runs, sharing
from ackclock.studies.large_pipes import estimators as est
from ackclock.studies.large_pipes.paths import (
    ALABAMA,
    ALABAMA_ATM,
    BUFFERS,
    FAST,
    HSTCP,
    NEWRENO,
    PROTOCOLS,
    TCPW,
    Path,
)
from ackclock.studies.large_pipes.runs import COLD, WARM
from ackclock.study import Tables
from ackclock.study.estimates import median

COLOUR = {TCPW: OKABE_ITO["vermilion"], FAST: OKABE_ITO["blue"], HSTCP: OKABE_ITO["green"], NEWRENO: OKABE_ITO["black"]}
DASH: dict[str, Any] = {TCPW: "-", FAST: "--", HSTCP: "-.", NEWRENO: ":"}
MARKER = {TCPW: "o", FAST: "s", HSTCP: "^", NEWRENO: "D"}
PUBLISHED_S = {TCPW: 5.8, FAST: 5.8, HSTCP: 7.5, NEWRENO: 11.0}


def over_time(tables: Tables, path: Path, name: str, slides: str) -> Figure:
    """Throughput over time with its spread over runs, cold and warm."""
    t = tables["series.goodput"].filter(pl.col("path") == path.name)
    summary = (
        t.group_by("protocol", "cache", "t_s")
        .agg(
            pl.col("goodput_bps").mean().alias("mean_bps"),
            pl.col("goodput_bps").min().alias("least_bps"),
            pl.col("goodput_bps").max().alias("most_bps"),
        )
        .sort("protocol", "cache", "t_s")
    )

    def draw() -> Any:
        figure, axes = new(8.2, 4.6, nrows=2, ncols=4, sharey=True)
        for row, cache in enumerate((COLD, WARM)):
            for column, protocol in enumerate(PROTOCOLS):
                own = summary.filter((pl.col("protocol") == protocol) & (pl.col("cache") == cache))
                ax = axes[row][column]
                own = own.filter(pl.col("t_s") <= (60 if path is ALABAMA else 5) + 1e-6)
                x = own["t_s"].to_numpy()
                ax.fill_between(
                    x, own["least_bps"] / 1e6, own["most_bps"] / 1e6, color=COLOUR[protocol], alpha=0.25, lw=0
                )
                ax.plot(x, own["mean_bps"] / 1e6, color=COLOUR[protocol])
                ax.axhline(path.payload_bps / 1e6, color=GREY, lw=0.8, ls=":")
                ax.set_title(f"{protocol}, {cache} cache", fontsize=8.5)
                ax.set_ylim(0, 1.08 * path.payload_bps / 1e6)
                if row == 1:
                    ax.set_xlabel("time (s)")
            axes[row][0].set_ylabel("goodput (Mb/s)")
        return figure

    early = summary.filter((pl.col("t_s") <= 5.0 + 1e-6) & (pl.col("cache") == COLD))
    mean = {p: float(early.filter(pl.col("protocol") == p)["mean_bps"].to_numpy().mean()) / 1e6 for p in PROTOCOLS}
    return Figure(
        name=name,
        title=f"{path.name}: in the first 5 s, cold, " + ", ".join(f"{p} {mean[p]:.0f}" for p in PROTOCOLS) + " Mb/s",
        caption=(
            f"Goodput per {'second' if path is ALABAMA else '50 ms'}, mean over runs and range (shaded); dotted: capacity for payload. Slides {slides}. Runs differ by other users' "
            "on-off traffic, 2 % of the bottleneck on average. TCPW does not use the cache."
        ),
        draw=draw,
        data={"throughput": summary},
    )


def completion_times(tables: Tables) -> Figure:
    """100 MB against the queue, cold and warm."""
    rows = []
    for path in (ALABAMA, ALABAMA_ATM):
        for queue in BUFFERS:
            for protocol in PROTOCOLS:
                for cache in (COLD, WARM):
                    e = median(runs.completions(tables, protocol, cache, path=path, queue=queue))
                    rows.append(
                        {
                            "path": path.name,
                            "queue": queue,
                            "protocol": protocol,
                            "cache": cache,
                            "completion_s": e.value,
                            "low": e.low,
                            "high": e.high,
                        }
                    )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(7.8, 3.6, ncols=2, sharey=True)
        own_path = table.filter(pl.col("path") == ALABAMA.name)
        for ax, cache in zip(axes, (COLD, WARM), strict=True):
            for protocol in PROTOCOLS:
                own = own_path.filter((pl.col("protocol") == protocol) & (pl.col("cache") == cache)).sort("queue")
                value = own["completion_s"].to_numpy()
                error = np.abs(own.select("low", "high").to_numpy().T - value)
                error[~np.isfinite(error)] = 0.0
                ax.errorbar(
                    own["queue"],
                    value,
                    yerr=error,
                    color=COLOUR[protocol],
                    marker=MARKER[protocol],
                    ls=DASH[protocol],
                    label=protocol,
                )
                ax.axhline(PUBLISHED_S[protocol], color=COLOUR[protocol], lw=0.7, ls=DASH[protocol], alpha=0.5)
            ax.set(title=f"{cache} cache", xlabel="queue of the bottleneck (packets)", xscale="log")
            ax.set_xticks(BUFFERS, [str(b) for b in BUFFERS])
            ax.minorticks_off()
        axes[0].set_ylabel("100 MB (s)")
        axes[0].set_ylim(0, 25)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    at = {p: float(np.median(runs.completions(tables, p, WARM if p in runs.CACHED else COLD))) for p in PROTOCOLS}
    return Figure(
        name="completion",
        title=f"100 MB, queue of {ALABAMA.queue}, warm: "
        + ", ".join(f"{p} {at[p]:.1f} s" for p in PROTOCOLS)
        + " (slides: 5.8, 5.8, 7.5, 11)",
        caption=(
            "Completion of 10^8 bytes over path 1 against the unknown queue of its bottleneck; medians over runs with 95 % intervals. Thin horizontal "
            "lines: the slides' values. Warm: slow start ends at a cached ssthresh of 345 segments."
        ),
        draw=draw,
        data={"completion": table},
    )


def random_loss(tables: Tables) -> Figure:
    """Throughput against loss."""
    t = tables["losses.throughput"]
    names = [*PROTOCOLS, *(n for n in runs.ESTIMATORS if n != TCPW)]
    rows = []
    for name in names:
        for loss in runs.LOSSES:
            own = t.filter((pl.col("protocol") == name) & (pl.col("loss") == loss))["goodput_bps"].to_numpy()
            e = median(own)
            rows.append({"protocol": name, "loss": loss, "goodput_bps": e.value, "low": e.low, "high": e.high})
    table = pl.DataFrame(rows)
    extra = dict(
        zip(names[4:], (OKABE_ITO["orange"], OKABE_ITO["purple"], OKABE_ITO["yellow"], OKABE_ITO["sky"]), strict=False)
    )

    def draw() -> Any:
        figure, axes = new(7.8, 3.6, ncols=2, sharey=True)
        for ax, group in zip(axes, (PROTOCOLS, (TCPW, *extra)), strict=True):
            for name in group:
                own = table.filter(pl.col("protocol") == name).sort("loss")
                value = own["goodput_bps"].to_numpy() / 1e6
                error = np.abs(own.select("low", "high").to_numpy().T / 1e6 - value)
                error[~np.isfinite(error)] = 0.0
                ax.errorbar(
                    100 * own["loss"].to_numpy(),
                    value,
                    yerr=error,
                    color=COLOUR.get(name) or extra[name],
                    marker=MARKER.get(name, "v"),
                    ls=DASH.get(name, "-"),
                    label=name,
                )
            ax.set(xlabel="random loss (%)", yscale="log")
            ax.legend(fontsize=7.5)
        axes[0].set(ylabel="goodput (Mb/s)", title="the four protocols")
        axes[1].set_title("what it hangs on")
        return figure

    at = {p: float(np.median(runs.throughputs(tables, p, 0.001))) / 1e6 for p in PROTOCOLS}
    return Figure(
        name="random-loss",
        title="At 0.1 % random loss: " + ", ".join(f"{p} {at[p]:.0f}" for p in PROTOCOLS) + " Mb/s",
        caption=(
            "Path 1, queue of 400 packets, independent loss of data packets. Medians over runs with 95 % intervals. Right: TCPW with its host's "
            "SACK on, with packet pairs or packet trains alone, and FAST without doubling at low delay. Slides 15 and 16."
        ),
        draw=draw,
        data={"loss": table},
    )


def fast_in_step(tables: Tables) -> Figure:
    """RTT and outstanding window of FAST over time (slide 14)."""
    t = tables["sync.trace"]
    shown = ("2 FAST, queue 2 N α", "4 FAST, queue 0.5 N α", "2 FAST and 2 NewReno, queue N α")
    colours = [OKABE_ITO["blue"], OKABE_ITO["orange"], OKABE_ITO["green"], OKABE_ITO["purple"]]

    def draw() -> Any:
        figure, axes = new(8.2, 4.4, nrows=2, ncols=len(shown), sharex=True)
        for column, setting in enumerate(shown):
            own = t.filter(pl.col("setting") == setting)
            for flow, one in own.group_by("flow", maintain_order=True):
                number = int(flow[0])
                kind = "NewReno" if "NewReno" in setting and number >= 2 else "FAST"
                label = f"{kind} {number + 1}"
                axes[0][column].plot(
                    one["t_s"],
                    one["cwnd"],
                    color=colours[number],
                    lw=0.9,
                    label=label,
                    ls="-" if kind == "FAST" else ":",
                )
                axes[1][column].plot(
                    one["t_s"], 1000 * one["srtt_s"], color=colours[number], lw=0.9, ls="-" if kind == "FAST" else ":"
                )
            axes[0][column].set_title(setting, fontsize=8.5)
            axes[1][column].set_xlabel("time (s)")
            axes[0][column].legend(fontsize=7)
            axes[1][column].set_ylim(bottom=60)
        axes[0][0].set_ylabel("window (segments)")
        axes[1][0].set_ylabel("smoothed RTT (ms)")
        return figure

    return Figure(
        name="fast-in-step",
        title="FAST settles where the queue holds N α packets, and swings in step where it does not",
        caption="Path 1, flows begin 1 s apart, α = 200 packets; one run. Slide 14.",
        draw=draw,
        data={"trace": t.filter(pl.col("setting").is_in(shown))},
    )


def sharing_bars(tables: Tables) -> Figure:
    """Fairness, friendliness, round-trip times (slides 13, 22, 23)."""
    rows = []
    for protocol in PROTOCOLS:
        for n in (2, 4):
            own = tables["sharing.same"].filter((pl.col("protocol") == protocol) & (pl.col("flows") == n))
            e = median(np.array(sharing.jain_per_run(own)))
            rows.append(
                {"measure": "jain", "protocol": protocol, "at": n, "value": e.value, "low": e.low, "high": e.high}
            )
            if protocol != NEWRENO:
                e = median(claims.friendliness_per_run(tables, protocol, n))
                rows.append(
                    {
                        "measure": "friendliness",
                        "protocol": protocol,
                        "at": n,
                        "value": e.value,
                        "low": e.low,
                        "high": e.high,
                    }
                )
        for ratio in sharing.RTT_RATIOS:
            own = (
                tables["sharing.rtts"]
                .filter((pl.col("protocol") == protocol) & (pl.col("ratio") == ratio))
                .sort("run", "flow")
            )
            short, long = (own.filter(pl.col("flow") == f)["goodput_bps"].to_numpy() for f in (0, 1))
            e = median(short / np.maximum(long, 1.0))
            rows.append(
                {"measure": "rtt", "protocol": protocol, "at": ratio, "value": e.value, "low": e.low, "high": e.high}
            )
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, axes = new(8.2, 3.4, ncols=3)
        for ax, measure, label in zip(
            axes,
            ("jain", "friendliness", "rtt"),
            ("Jain's index among their like", "friendliness to NewReno, F", "throughput, short RTT over long"),
            strict=True,
        ):
            own = table.filter(pl.col("measure") == measure)
            at = own["at"].unique().sort().to_list()
            for protocol in PROTOCOLS:
                one = own.filter(pl.col("protocol") == protocol).sort("at")
                if not one.height:
                    continue
                value = one["value"].to_numpy()
                error = np.abs(one.select("low", "high").to_numpy().T - value)
                error[~np.isfinite(error)] = 0.0
                x = [at.index(a) + 0.13 * (PROTOCOLS.index(protocol) - 1.5) for a in one["at"]]
                ax.errorbar(x, value, yerr=error, fmt=MARKER[protocol], color=COLOUR[protocol], label=protocol, lw=1)
            ax.set_xticks(range(len(at)), [f"{a} flows" if measure != "rtt" else f"1 : {a}" for a in at])
            ax.set_ylabel(label)
            ax.grid(axis="x", visible=False)
        axes[0].set_ylim(0, 1.05)
        axes[1].axhline(1.0, color=GREY, lw=0.8)
        axes[2].axhline(1.0, color=GREY, lw=0.8)
        axes[1].set_ylim(bottom=0)
        axes[2].set(yscale="log", xlabel="round-trip times")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return figure

    return Figure(
        name="sharing",
        title="Sharing: with their like, with NewReno, with other round-trip times",
        caption=(
            "Path 1, queue of 400 packets, second half of the run; medians over runs with 95 % intervals. F: throughput of NewReno beside as many "
            "flows of X, over that among NewReno alone; 1 is neutral. Slides 13, 22, 23."
        ),
        draw=draw,
        data={"sharing": table},
    )


def coalescing(tables: Tables) -> Figure:
    """Ramp time and samples with and without coalescing (slides 18 to 21)."""
    names = [*est.VARIANTS, FAST, HSTCP]
    rows = []
    for name in names:
        for card in (est.QUIET, est.COALESCED):
            e = median(np.minimum(est.pick(tables, "coalescing.ramps", "ramp_s", protocol=name, card=card), 3.0))
            rows.append({"protocol": name, "card": card, "ramp_s": e.value, "low": e.low, "high": e.high})
    table = pl.DataFrame(rows)

    def draw() -> Any:
        figure, ax = new(7.6, 3.4)
        for i, (card, colour) in enumerate(((est.QUIET, OKABE_ITO["sky"]), (est.COALESCED, OKABE_ITO["vermilion"]))):
            own = table.filter(pl.col("card") == card)
            y = np.arange(len(names)) + 0.36 * (i - 0.5)
            value = own["ramp_s"].to_numpy()
            error = np.abs(own.select("low", "high").to_numpy().T - value)
            error[~np.isfinite(error)] = 0.0
            ax.barh(y, value, 0.34, color=colour, label=card, hatch="" if i == 0 else "///", edgecolor="white", lw=0)
            ax.errorbar(value, y, xerr=error, fmt="none", ecolor="#222222", lw=1)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlabel("time to 90 % of 1 Gb/s (s)")
        ax.grid(axis="y", visible=False)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    def at(name: str, card: str) -> float:
        return float(table.filter((pl.col("protocol") == name) & (pl.col("card") == card))["ramp_s"][0])

    return Figure(
        name="coalescing",
        title=(
            f"Behind a coalescing card the ramp takes {at(est.ADAPTIVE, est.COALESCED):.2f} s with the stability filter, "
            f"{at(est.FIXED, est.COALESCED):.2f} s at fixed gain, {at(est.BATCH, est.COALESCED):.2f} s over whole batches"
        ),
        caption="Path 2, cold cache, medians over runs with 95 % intervals; 3 s: not reached. The last ABSE variant is the slides' future work: it takes its samples over whole batches of ACKs.",
        draw=draw,
        data={"ramps": table},
    )


def damping(tables: Tables) -> Figure:
    """Tau against the variation of samples; T_k against the queue."""
    t = (
        tables["damping.variance"]
        .group_by("u_max", "jitter_us")
        .agg(pl.col("cov").median(), pl.col("tau_rtts").median())
        .sort("u_max", "cov")
    )
    q = tables["damping.queue"].filter(pl.col("run") == 0).drop_nulls()

    def draw() -> Any:
        figure, axes = new(7.8, 3.2, ncols=2)
        for peak, colour, marker in (("last-10", OKABE_ITO["vermilion"], "o"), ("all-time", OKABE_ITO["blue"], "s")):
            own = t.filter(pl.col("u_max") == peak)
            axes[0].plot(own["cov"], own["tau_rtts"], color=colour, marker=marker, label=f"U_max {peak}")
        axes[0].set(xlabel="coefficient of variation of s_k", ylabel="τ / RTT", ylim=(0, 11.5))
        axes[0].legend()
        axes[1].plot(q["packets"], q["interval_rtts"], ".", color=OKABE_ITO["green"], ms=3)
        axes[1].set(xlabel="queue (packets)", ylabel="T_k / RTT")
        return figure

    return Figure(
        name="damping",
        title="The stability filter compares U with its own recent peak: it damps fully as soon as samples vary at all"
        if _saturates(t)
        else "The stability filter against variance; the sampling interval against the queue",
        caption="Left: 1 Gb/s, 4 ms, jitter of the ACKs from 0 to 800 µs. Right: TCPW among three NewReno flows on path 1, means over 50 ms, one run.",
        draw=draw,
        data={"variance": t, "interval": q},
    )


def _saturates(t: pl.DataFrame) -> bool:
    tau = t.filter(pl.col("u_max") == "last-10")["tau_rtts"].to_numpy()
    return bool(np.sort(tau)[1] > 0.8 * tau.max())
