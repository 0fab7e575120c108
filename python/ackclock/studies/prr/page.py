"""The body of the study's report: what is shown in which order, and what a reader should take from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ackclock.report import Cell, Prose, Section, Table, items, paragraph
from ackclock.scenario import Scenario
from ackclock.studies.prr import figures_latency, figures_population, figures_traces, golden, path, population, traces
from ackclock.studies.prr import latency as lat
from ackclock.studies.prr.figures_population import name_of
from ackclock.studies.prr.path import LOSSES, PAGE_LABELS, PAGES
from ackclock.studies.prr.published import GENERAL_REMARKS, PATTERNS, TABLES, PublishedTable
from ackclock.studies.prr.rules import LINUX_6, RATE_HALVING, RFC6675, RFC9937, RULES, SSRB, label
from ackclock.study import StudyResult, Tables, Verdict, number


def sections(result: StudyResult) -> Sequence[Section]:
    """The body of the report."""
    # Length: the prose of the page, in the order in which it is read.
    t = result.tables
    return (
        Section(
            title="What PRR does, ACK by ACK",
            blocks=(
                paragraph(
                    "When a loss is noticed, the sender has to come down to a new target, ssthresh, within one round trip. RFC 6675 "
                    "stops sending until enough ACKs have come in. Rate halving sends one segment for every second ACK, whatever the "
                    "target. PRR sends ssthresh / RecoverFS segments per segment delivered, so that it arrives at the target just "
                    "when recovery ends. If losses push what is in flight below the target, a reduction bound says how fast to "
                    "climb back: one per delivered segment (CRB), one more on each ACK (SSRB), or that only on ACKs that show "
                    "good progress (RFC 9937, Linux 6)."
                ),
                figures_traces.ideal_path(t),
                episodes_table(t),
            ),
        ),
        Section(
            title="The tables of the RFCs",
            blocks=(
                paragraph(
                    "Each row as printed, and below it as computed here from the algorithm's text. Cells that differ are marked; the "
                    "reason stands below the table."
                ),
                *(block for table in TABLES for block in golden_blocks(table)),
                items(GENERAL_REMARKS),
            ),
        ),
        Section(
            title="Traces",
            blocks=(
                figures_traces.long_flow(t),
                figures_traces.sequences(
                    t,
                    "1-4",
                    "sequence-1-4",
                    f"Four losses of twenty: of the next 10 kB {_at_once(t, '1-4')}",
                    "Time-sequence of 20 kB sent at once and 10 kB more at 500 ms; 1.2 Mbit/s, RTT 100 ms, segments of 1000 bytes, "
                    "CUBIC; segments 1 to 4 lost. Shaded: congestion states. Dotted: everything acknowledged. Rate halving shrinks "
                    "the window to in flight + 1 as the response runs out; the other rules leave recovery with cwnd = ssthresh. "
                    "Count the segments sent at 500 ms. The initial window is 20, so that the losses hit one burst.",
                ),
                figures_traces.sequences(
                    t,
                    "1-4, 11-16",
                    "sequence-1-4-11-16",
                    f"Ten losses of twenty: {_repaired(t, '1-4, 11-16')}",
                    "As above, with segments 1 to 4 and 11 to 16 lost: half of the window is gone, and in flight lies below ssthresh, so "
                    "the reduction bound decides how soon the retransmissions leave. "
                    "Look at how densely the retransmissions (triangles) stand.",
                ),
            ),
        ),
        Section(
            title="Fetch latency, one sender, only the rule changed",
            blocks=(
                paragraph(
                    "The path of the CS244'13 experiment: 1000 Mbit/s and 1.2 Mbit/s in a row, 25 ms each per direction, queues of 100 "
                    "packets, 1 % or 3 % loss on each link in each direction, so 1.99 % or 5.91 % one way, for ACKs and SYNs too. "
                    "Whether a fetch counts as hit is told by counting its retransmitted segments, not by its latency."
                ),
                figures_latency.gains(t),
                latency_table(t),
                figures_latency.events(t),
            ),
        ),
        Section(
            title="Why the publication's bars differ: the initial RTO",
            blocks=(
                paragraph(
                    "The publication compared two kernels, 3.0 without and 3.2 with PRR, and sorted fetches by latency: those at least two "
                    'standard deviations above the fastest count as "with retransmission". Between these kernels the initial '
                    "retransmission timeout changed too, from 3 s to 1 s. A lost SYN or SYN-ACK waits for exactly this timeout, "
                    "and at 1 % per link and direction 1 − 0.9801² = 3.9 % of all fetches lose one. A repaired data loss "
                    "costs a fraction of a second, a lost SYN 3 s or 1 s: how many of the fetches that the 2-sigma split picks out "
                    "lost a SYN, and what the bars do when only this number or only the rule changes, the figures show and T10 tests."
                ),
                figures_latency.bars(t),
                figures_latency.initial_rto(t),
                figures_latency.noise(t),
                items(
                    [
                        "The split measures from the minimum (the text says from the average), and with the standard deviation of all "
                        "fetches, which the lost SYNs themselves make large.",
                        'The error bars of the published group "with retransmission" use the standard deviation of the other group; an '
                        "empty group divides by zero.",
                        'The published plot of 1 % against 3 % shows only the group "with retransmission"; the text says all fetches.',
                        "The cwnd experiment ran with a queue of 50 packets in the script; the text says 100, and so do we.",
                        "Not modelled: the destination cache that carries ssthresh and RTT from fetch to fetch, and segmentation "
                        "offload, which lets one loss take several segments.",
                    ]
                ),
            ),
        ),
        Section(
            title="Populations of clients",
            blocks=(
                paragraph(
                    "Two settings in the manner of the paper: Web responses with a mean of 7.5 kB, and long-RTT video with a server that "
                    "throttles its writes. The distributions are assumptions (scenarios below); figures only, no claim about "
                    "production rests on them."
                ),
                figures_population.starts(t),
                figures_population.ends(t),
                population_table(t),
            ),
        ),
    )


def golden_blocks(table: PublishedTable) -> list[Table | Prose]:
    """A published table with the computed rows between, and its remarks."""
    rows: list[tuple[Cell | str, ...]] = []
    remarks: list[str] = []
    compared = list(golden.compare(table))
    for rule in table.rules:
        own = [row for row in compared if row.rule is rule]
        for i, row in enumerate(own):
            head = (Cell(text=rule.name, kind="head", span=2 * len(own)),) if i == 0 else ()
            printed = (Cell(text=c, kind="faint") for c in row.printed)
            computed = (
                Cell(text=c, kind="differs" if d else "") for c, d in zip(row.computed, row.differs, strict=True)
            )
            rows.append((*head, Cell(text=f"{row.name}, printed", kind="head faint"), *printed))
            rows.append((Cell(text=f"{row.name}, here", kind="head"), *computed))
            if any(row.differs):
                remarks.append(f"{rule.name}: {rule.remark}")
    setting = f"ssthresh {table.ssthresh}" + (f", RecoverFS {table.recover_fs}" if table.recover_fs else "")
    cells = sum(len(row.printed) for row in compared)
    differing = sum(sum(row.differs) for row in compared)
    made: list[Table | Prose] = [
        Table(
            caption=f"{table.place}, {table.title} of W = {table.window}; {setting}. {cells - differing} of {cells} cells agree.",
            header=("rule", "row", *(str(ack) for ack in table.acks)),
            rows=tuple(rows),
            dense=True,
        )
    ]
    if remarks:
        made.append(items(list(dict.fromkeys(remarks))))
    return made


def episodes_table(tables: Tables) -> Table:
    """Whole episodes: recovery time, bursts, exit windows."""
    names = {
        "rtts": "recovery (RTTs)",
        "max_burst": "largest burst",
        "burst_at_entry": "burst at entry",
        "pipe_at_exit": "pipe at exit",
        "cwnd_before_exit": "cwnd before exit",
        "cwnd_after_exit": "cwnd after exit",
    }
    e = tables["tables.episodes"]
    rows: list[tuple[Cell | str, ...]] = []
    for pattern in PATTERNS:
        for i, episode in enumerate(pattern.episodes):
            own = e.filter((pl.col("pattern") == pattern.name) & (pl.col("rule") == episode.rule))
            value = {r["quantity"]: r for r in own.iter_rows(named=True)}
            head = (Cell(text=pattern.name, kind="head", span=len(pattern.episodes)),) if i == 0 else ()
            cells = []
            for key in names:
                v = value[key]
                same = v["golden"] is None or v["computed"] == v["golden"]
                text = f"{v['exact']:g}" + ("" if same else f" (expected {v['golden']:g})")
                cells.append(Cell(text=text, kind="" if same else "differs"))
            rows.append((*head, Cell(text=label(episode.rule), kind="head"), *cells))
    return Table(
        caption="Whole episodes on the ideal path (ssthresh W/2, three duplicate ACKs). Windows and bursts in segments; RFC 6937's rules set no window at the end.",
        header=("losses", "rule", *names.values()),
        rows=tuple(rows),
    )


def latency_table(tables: Tables) -> Table:
    """Mean latencies of loss-hit fetches per cell and rule."""
    s = lat.summary(tables)
    rows: list[tuple[Cell | str, ...]] = []
    for page in PAGES:
        for loss in LOSSES:
            own = s.filter((pl.col("page") == page) & (pl.col("loss") == loss))
            by_arm = {r["arm"]: r for r in own.iter_rows(named=True)}
            base = by_arm[RATE_HALVING]
            rows.append(
                (
                    Cell(text=f"{PAGE_LABELS[page]}, {path.percent(loss)}", kind="head"),
                    f"{base['fetches']:,}",
                    f"{100 * base['share_data_retransmitted']:.0f} %",
                    f"{100 * base['share_syn_lost']:.1f} %",
                    _seconds(base["mean_clean_s"]),
                    _seconds(base["mean_syn_only_s"]),
                    *(_seconds(by_arm[rule]["mean_hit_s"]) for rule in RULES),
                )
            )
    return Table(
        caption="Mean latency in seconds. Left of the rules: fetches without data loss, with and without a lost SYN, the same for every rule.",
        header=(
            "page, loss",
            "fetches",
            "data retransmitted",
            "SYN lost",
            "no loss",
            "only SYN lost",
            *(label(rule) for rule in RULES),
        ),
        rows=tuple(rows),
    )


def population_table(tables: Tables) -> Table:
    """One row per setting and rule."""
    rows: list[tuple[Cell | str, ...]] = []
    s = population.summary(tables)
    for setting in population.SETTINGS:
        own = list(s.filter(pl.col("setting") == setting).iter_rows(named=True))
        for i, r in enumerate(own):
            head = (Cell(text=setting, kind="head", span=len(own)),) if i == 0 else ()
            rows.append(
                (
                    *head,
                    Cell(text=name_of(r["arm"]), kind="head"),
                    f"{r['recoveries']:,}",
                    f"{100 * r['share_above']:.0f} / {100 * r['share_at']:.0f} / {100 * r['share_below']:.0f}",
                    " / ".join(number(r[q]) for q in ("exit_q05", "exit_q25", "exit_q50", "exit_q95")),
                    f"{r['median_rtts']:.1f} / {r['q90_rtts']:.1f}",
                    f"{r['retransmissions']:,} ({100 * r['retransmission_rate']:.1f} %)",
                    f"{r['lost_retransmits']:,}",
                    f"{r['timeouts']:,} / {r['timeouts_in_recovery']:,}",
                )
            )
    return Table(
        caption="Recoveries of both populations; all rules meet the same clients and losses.",
        header=(
            "setting",
            "rule",
            "recoveries",
            "pipe > / = / < ssthresh (%)",
            "cwnd − ssthresh at the end, 5/25/50/95 %",
            "RTTs in recovery, 50/90 %",
            "retransmissions",
            "lost again",
            "timeouts / in recovery",
        ),
        rows=tuple(rows),
    )


def findings(result: StudyResult) -> Sequence[str]:
    """What to take home, from this run's numbers."""
    t = result.tables
    found = []
    cells = t["tables.cells"]
    differ = cells.filter(pl.col("printed") != pl.col("computed")).height
    found.append(
        f"The ack-by-ack tables of RFC 6937 and RFC 9937 come out in {cells.height - differ} of {cells.height} cells; each of the "
        f"{differ} others is a slip of the printed table, and explained."
    )
    gains = {
        (r["page_bytes"], r["loss_per_link"], r["rule"]): r
        for r in figures_latency.gains_table(t).iter_rows(named=True)
    }
    found.append(
        "With everything else equal, loss-hit fetches of 750 KB at 3 % loss per link take less time than with rate halving by "
        + ", ".join(
            f"{_gain(gains[PAGES[3], LOSSES[1], rule])} with {label(rule)}"
            for rule in (SSRB, RFC9937, LINUX_6, RFC6675)
        )
        + " (95 % intervals in brackets). PRR-SSRB is the rule that the claims mean by PRR; at 75 KB and 1 % it gains "
        f"{_gain(gains[PAGES[2], LOSSES[0], SSRB])}. One-segment pages cannot gain."
    )
    ten = result.outcome("T10")
    share = figures_latency.bars_table(t)
    row = {
        r["kernel"]: r
        for r in share.filter((pl.col("page_bytes") == PAGES[1]) & (pl.col("loss_per_link") == LOSSES[0])).iter_rows(
            named=True
        )
    }
    if ten.verdict is Verdict.HOLDS:
        found.append(
            "The large gains that the CS244'13 figures show come from the initial RTO, 3 s in one kernel and 1 s in the other: with PRR in "
            f"both arms, that change alone takes the bar of 7.5 KB pages at 1 % from {row[lat.WITH_PRR_RTO_3]['mean_b_s']:.2f} s to "
            f"{row[lat.WITH_PRR]['mean_b_s']:.2f} s."
        )
    fails = [o.claim.id for o in result.outcomes if o.verdict is Verdict.FAILS]
    if fails:
        found.append(f"Claims that do not hold as stated: {', '.join(fails)}. The reasons stand with each.")
    found += _undecided(result)
    return found


def _gain(row: Mapping[str, float]) -> str:
    digits = 1 if abs(row["gain_percent"]) >= 1 else 2
    return f"{row['gain_percent']:.{digits}f} % ({row['low']:.{digits}f} to {row['high']:.{digits}f})"


def _undecided(result: StudyResult) -> list[str]:
    """What stays open at this scale, and what the paper's scale says of it."""
    open_here = [o.claim for o in result.outcomes if o.verdict is Verdict.UNDECIDED]
    if result.scale == "paper":
        return [f"Undecided with this many fetches: {', '.join(c.id for c in open_here)}."] if open_here else []
    later = [c for c in result.study.claims if c.expected_at(result.scale) is Verdict.UNDECIDED]
    if not later:
        return []
    told = ", ".join(
        f"{c.id} stays undecided" if c.expected_at("paper") is Verdict.UNDECIDED else f"{c.id} {c.expected_at('paper')}"
        for c in later
    )
    return [f"Too close to call with as few fetches as at this scale; with those of --scale paper: {told}."]


def _at_once(tables: Tables, pattern: str) -> str:
    sent = figures_traces.next_write(tables, pattern)
    others = [n for rule, n in sent.items() if rule != RATE_HALVING]
    span = str(min(others)) if min(others) == max(others) else f"{min(others)} to {max(others)}"
    return f"{sent[RATE_HALVING]} segments leave at once after rate halving, {span} after the other rules"


def _repaired(tables: Tables, pattern: str) -> str:
    last = figures_traces.last_repair(tables, pattern)
    return "the last is retransmitted " + ", ".join(
        f"{1000 * last[rule]:.0f} ms after the first with {label(rule)}"
        if i == 0
        else f"{1000 * last[rule]:.0f} ms with {label(rule)}"
        for i, rule in enumerate((SSRB, RFC9937, RFC6675, RATE_HALVING))
    )


def scenarios() -> Mapping[str, Scenario]:
    """The scenarios, one of each kind; the others differ in the value that the name tells."""
    return {
        "fetch of 75 KB at 1 %, PRR-SSRB": path.fetch(PAGES[2], LOSSES[0], path.host(recovery=SSRB), name="fetch"),
        "fetch as published, kernel 3.0": path.fetch(
            PAGES[2], LOSSES[0], path.host(**lat.KERNELS["3.0"]), name="kernel 3.0"
        ),
        "long flow with PRR": path.long_flow(traces.LONG["with PRR"]),
        "time-sequence, losses 1-4 and 11-16": traces.sequence_scenario("1-4, 11-16", SSRB),
        "Web population": population.scenario("Web", SSRB, 500),
        "video population": population.scenario("video", SSRB, 25),
    }


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 10 else f"{value:.2f}"
