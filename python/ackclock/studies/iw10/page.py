"""The body of the study's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from ackclock.report import Cell, Section, Table, paragraph
from ackclock.scenario import Scenario
from ackclock.studies.iw10 import background, bursts, claims_time, extension, figures, photos, testbed, why
from ackclock.studies.iw10.loaded import cells, link, times
from ackclock.studies.iw10.testbed import ARMS, FAST, FIVE, HEAVY, IW3, IW10, MIX, SINGLE, SLOW, where
from ackclock.study import StudyResult, Tables, Verdict
from ackclock.study.estimates import median


def sections(result: StudyResult) -> Sequence[Section]:
    """The body of the report."""
    t = result.tables
    return (
        Section(
            title="One batch, without chance",
            blocks=(
                paragraph(
                    "The slow link's queue of 40 packets is 25 times its bandwidth-delay product, that of the fast link is exactly one. On the "
                    "slow link three packets take longer to send than the round trip, so IW3 hides its rounds: unloaded, IW10 gains a "
                    "tenth of a second and puts 50 packets into the queue at once when five clients open together."
                ),
                bursts.figure(t),
                bursts_table(t),
                rounds_table(t),
                unloaded_table(t),
            ),
        ),
        Section(title="Loss", blocks=(figures.loss_rates(t), figures.queues(t))),
        Section(
            title="Completion times",
            blocks=(figures.completion(t), figures.ratios(t), figures.distributions(t), cells_table(t)),
        ),
        Section(
            title="Mixed, and why",
            blocks=(
                figures.mixes(t),
                paragraph(
                    "The slides ask why IW3 often does better beside IW10 at high load. Three hypotheses: (a) IW10 needs fewer rounds, so fewer "
                    "transactions are open at a time; (b) IW10 loses the tail of its burst and waits for a timeout, leaving the queue to "
                    "IW3; (c) only completed transactions count. The mechanism of (b) is taken away in two ways: losses at the tail are "
                    "repaired within about a round trip by RACK-TLP, or the first window is paced and does not lose its tail. For (c) "
                    "incomplete transactions are counted with the time they had taken at the end of the run."
                ),
                why.figure(t),
                paragraph(why.answer(t)),
            ),
        ),
        Section(
            title="Long flows beside transactions",
            blocks=(background_table(t), background.figure(t)),
        ),
        Section(title="Photographs", blocks=(photos.figure(t),)),
        Section(
            title="Other readings of the set-up",
            blocks=(
                paragraph(
                    "What the slides leave open is decided once (docs/studies/iw10.md lists the decisions). Here each is changed alone: 64 kb/s, five "
                    "opens, 75 %, same arrivals."
                ),
                sensitivity_table(t),
            ),
        ),
        Section(title="Beyond ten", blocks=(extension.figure(t),)),
    )


def bursts_table(tables: Tables) -> Table:
    """Drops of the deterministic cases."""
    rows: list[tuple[Cell | str, ...]] = []
    for r in tables["exact.bursts"].iter_rows(named=True):
        same = r["drops"] == r["expected"]
        rows.append(
            (
                Cell(text=r["case"], kind="head"),
                Cell(text=str(r["drops"]), kind="agrees" if same else "differs"),
                str(r["expected"]),
                str(r["all_drops"]),
                str(r["peak"]),
            )
        )
    return Table(
        caption="Packets dropped at 64 kb/s, queue of 40, an ACK per packet. The model computed beforehand has no retransmissions and no reaction to loss.",
        header=("case", "first transmissions dropped", "by the model", "all dropped", "longest queue"),
        rows=tuple(rows),
    )


def rounds_table(tables: Tables) -> Table:
    """RFC 6928's table and ours."""
    t = tables["exact.rounds"]
    rows: list[tuple[Cell | str, ...]] = []
    for window in (3, 10):
        own = t.filter(pl.col("window") == window)
        rows.append((Cell(text=f"IW {window}, RFC 6928", kind="head"), *(str(n) for n in own["published"])))
        rows.append(
            (
                Cell(text="here", kind="head"),
                *(
                    Cell(text=f"{got:g}", kind="agrees" if got == want else "differs")
                    for got, want in own.select("rounds", "published").iter_rows()
                ),
            )
        )
    segments = t.filter(pl.col("window") == 3)["segments"]
    return Table(
        caption="Round trips that a response takes, delayed ACKs, no rate limit.",
        header=("segments", *(str(n) for n in segments)),
        rows=tuple(rows),
        dense=True,
    )


def unloaded_table(tables: Tables) -> Table:
    """One transaction alone."""
    rows: list[tuple[Cell | str, ...]] = []
    for (rate, acks), own in tables["exact.unloaded"].group_by("rate", "acks", maintain_order=True):
        rows.append((Cell(text=f"{rate}, {acks}", kind="head"), *(f"{s:.3f}" for s in own["total_s"])))
    windows = tables["exact.unloaded"]["window"].unique(maintain_order=True)
    return Table(
        caption="Completion time of one transaction on the empty testbed, s, connect included.",
        header=("link, ACKs", *(f"IW {w}" for w in windows)),
        rows=tuple(rows),
    )


def cells_table(tables: Tables) -> Table:
    """Every cell and arm."""
    rows: list[tuple[Cell | str, ...]] = []
    for rate, mode, load in cells(tables):
        for i, arm in enumerate(ARMS):
            head = (Cell(text=where(rate, mode, load), kind="head", span=len(ARMS)),) if i == 0 else ()

            def middle(column: str, arm: str = arm, at: tuple[str, str, float] = (rate, mode, load)) -> float:
                return float(np.nanmedian(times(tables, *at, arm, column)))

            plr = float(np.median(link(tables, rate, mode, load, arm, "plr")))
            rows.append(
                (
                    *head,
                    Cell(text=arm, kind="head"),
                    f"{middle('started'):.0f}",
                    f"{middle('incomplete'):.0f}",
                    _s(middle("mean_s")),
                    _s(middle("p50_s")),
                    _s(middle("p95_s")),
                    _s(middle("p99_s")),
                    _s(middle("p999_s")),
                    f"{100 * plr:.2f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'plr_data')):.2f}",
                    f"{np.median(link(tables, rate, mode, load, arm, 'mean_queue')):.1f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'busy')):.0f}",
                    f"{100 * np.median(link(tables, rate, mode, load, arm, 'sampled')):.0f}",
                )
            )
    return Table(
        caption="Medians over seeds. Started and incomplete: transactions of one run that count; incomplete ones were still under way at its end.",
        header=(
            "cell",
            "arm",
            "started",
            "incomplete",
            "mean (s)",
            "median (s)",
            "p95 (s)",
            "p99 (s)",
            "p99.9 (s)",
            "loss (%)",
            "without SYN, FIN (%)",
            "mean queue",
            "busy (%)",
            "1-s samples with a queue (%)",
        ),
        rows=tuple(rows),
    )


def background_table(tables: Tables) -> Table:
    """Throughput of long flows."""
    t = tables["background.flows"]
    rows: list[tuple[Cell | str, ...]] = []
    for load in background.LOADS:
        own = {arm: t.filter((pl.col("load") == load) & (pl.col("arm") == arm)).sort("seed") for arm in (IW3, IW10)}
        bps = {arm: own[arm]["goodput_bps"].to_numpy() for arm in own}
        e = median(bps[IW10] / bps[IW3])
        rows.append(
            (
                Cell(text=f"{100 * load:g} %", kind="head"),
                *(f"{np.median(bps[arm]) / 1000:.2f}" for arm in (IW3, IW10)),
                f"{e.value:.2f} ({e.low:.2f} to {e.high:.2f})",
                *(_s(float(np.median(own[arm]["mean_s"].to_numpy()))) for arm in (IW3, IW10)),
            )
        )
    return Table(
        caption="Two long flows and transactions, five opens, at 64 kb/s. Medians over seeds; the ratio with its 95 % interval.",
        header=(
            "load of transactions",
            "long flows, kb/s, beside IW3",
            "beside IW10",
            "IW10 / IW3",
            "transactions, mean (s), IW3",
            "IW10",
        ),
        rows=tuple(rows),
    )


def sensitivity_table(tables: Tables) -> Table:
    """Ratio under each reading."""
    t, links = tables["sensitivity.times"], tables["sensitivity.links"]
    rows: list[tuple[Cell | str, ...]] = []
    for (reading,), own in t.group_by("reading", maintain_order=True):
        mean = {arm: own.filter(pl.col("arm") == arm).sort("seed")["mean_s"].to_numpy() for arm in (IW3, IW10)}
        e = median(mean[IW10] / mean[IW3])
        plr = [
            float(links.filter((pl.col("reading") == reading) & (pl.col("arm") == arm))["plr"].median())  # type: ignore[arg-type]
            for arm in (IW3, IW10)
        ]
        rows.append(
            (
                Cell(text=str(reading), kind="head"),
                *(_s(float(np.median(mean[arm]))) for arm in (IW3, IW10)),
                f"{e.value:.2f} ({e.low:.2f} to {e.high:.2f})",
                *(f"{100 * p:.2f}" for p in plr),
            )
        )
    return Table(
        caption="Mean completion time and loss under each reading. Medians over seeds; the ratio with its 95 % interval.",
        header=("reading", "mean (s), IW3", "IW10", "IW10 / IW3", "loss (%), IW3", "IW10"),
        rows=tuple(rows),
    )


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    t = result.tables
    light = median(claims_time.gain(t, FAST, SINGLE, 0.5))
    slow = median(claims_time.gain(t, SLOW, SINGLE, 0.75))
    heavy = median(claims_time.gain(t, FAST, FIVE, HEAVY[FAST]))
    found = [
        f"On the fast link at half load IW10 takes {100 * light.value:.0f} % of the time of IW3: three rounds become one. On the slow link at "
        f"75 % it takes {100 * slow.value:.0f} %, for queueing dominates there; with five opens at 96 % of the fast link {100 * heavy.value:.0f} %.",
        _losses(t),
        why.answer(t),
    ]
    for verdict, text in (
        (Verdict.FAILS, "Claims that do not hold as stated: {}. The reasons stand with each."),
        (Verdict.UNDECIDED, "Too close to call with the seeds of this run: {}."),
    ):
        ids = [o.claim.id for o in result.outcomes if o.verdict is verdict]
        if ids:
            found.append(text.format(", ".join(ids)))
    return found


def _losses(tables: Tables) -> str:
    place = (SLOW, FIVE, HEAVY[SLOW])
    plr = {arm: 100 * float(np.median(link(tables, *place, arm, "plr"))) for arm in ARMS}
    return (
        f"IW10 loses more: {plr[IW10]:.1f} % against {plr[IW3]:.1f} % (mix {plr[MIX]:.1f} %) with five opens at 97.5 % of the slow link, where both "
        "do badly."
    )


def scenarios() -> Mapping[str, Scenario]:
    """The scenarios, one of each kind."""
    return {
        "20 Mb/s, single opens, 72 %, mix": testbed.loaded(FAST, SINGLE, 0.72, MIX, duration_s=300),
        "64 kb/s, five opens, 97.5 %, IW10": testbed.loaded(SLOW, FIVE, 0.975, IW10, duration_s=3600),
        "five IW10 at once": bursts.scenario(bursts.CASES[0]),
        "photographs": photos.scenario(photos.WIDE, photos.IW10_SACK, 0.2),
        "long flows beside": testbed.loaded(SLOW, FIVE, 0.75, IW10, duration_s=3600, long_flows=2),
    }


def _s(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:.3f}" if value < 10 else f"{value:.1f}"
