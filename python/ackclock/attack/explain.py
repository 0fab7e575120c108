"""Divergence of target and reference: the time from which the reference stays ahead, and both states at that time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ackclock._results.run import run
from ackclock.attack.attack import Found
from ackclock.text import share

if TYPE_CHECKING:
    import polars as pl

    from ackclock._results.result import Run
    from ackclock.plot import Figure

APART, LEAST_PACKETS = 0.1, 10
"""Minimum lead of one run in delivered data, as a fraction and in packets."""

STATE = ("cwnd", "ssthresh", "pipe", "ca_state", "srtt_s", "min_rtt_s", "rto_s", "backoff", "newly_lost")
"""Trace columns to be printed."""


@dataclass(frozen=True, kw_only=True)
class Parting:
    """Divergence of two runs.

    Parameters
    ----------
    at_s
        Time of the divergence; None if there is none.
    ahead
        Bytes acknowledged to the target and to the reference at that time.
    target, reference
        The last line of each trace at that time, with the controller's own variables.
    runs
        Both runs, with their traces.
    held
        Causes that limited the target from then to the end, as fractions of the time.
    """

    at_s: float | None
    ahead: tuple[int, int]
    target: Mapping[str, Any]
    reference: Mapping[str, Any]
    runs: tuple[Run, Run] = field(repr=False)
    held: Mapping[str, float] = field(default_factory=dict)

    @property
    def cause(self) -> str:
        """Causes that limited the target, in a few words, longest first."""
        parts = [f"{share(part)} {what}" for what, part in self.held.items() if part >= LEAST_SHARE]
        return ", ".join(parts)


LEAST_SHARE = 0.1
"""Fraction of the time below which a cause is not named."""

FULL = 0.9
"""Fraction of the window in flight above which the window counts as the sender's limit."""


def parting(found: Found) -> Parting:
    """Repeat the worst case with traces: the target and the best reference."""
    traced = {"record.trace": "flow", "record.controller": "flow", "record.drops": True}
    both = []
    for arm in (0, found.reference):
        both.append(run(found.runs.scenario(found.worst, arm).set_all(traced), seed=found.attack.seed))
    mine, theirs = (_acked(one) for one in both)
    at_s = _parts(mine, theirs)
    when = at_s if at_s is not None else float("inf")
    return Parting(
        at_s=at_s,
        ahead=(_until(mine, when), _until(theirs, when)),
        target=_state(both[0], when),
        reference=_state(both[1], when),
        runs=(both[0], both[1]),
        held=_held(both[0], at_s if at_s is not None else 0.0, _duration_s(found)),
    )


def _duration_s(found: Found) -> float:
    return float(found.runs.scenario(found.worst).to_engine()["duration_ns"]) / 1e9


def _held(one: Run, since_s: float, end_s: float) -> dict[str, float]:
    """Return the cause that limited the first flow between each ACK and the next event: a timeout, recovery, its
    window, or its pacing rate.
    """
    import polars as pl

    rows = one.acks.filter((pl.col("flow") == 0) & (pl.col("t_s") >= since_s))
    until = pl.col("t_s").shift(-1).fill_null(end_s)
    timed = rows.select(
        lasts=until - pl.col("t_s"),
        what=pl.when((pl.col("ca_state") == "Loss") | (pl.col("backoff") > 0))
        .then(pl.lit("timeouts"))
        .when(pl.col("ca_state").is_in(["Recovery", "CWR"]))
        .then(pl.lit("recovery"))
        .when(pl.col("pipe") < FULL * pl.col("cwnd"))
        .then(pl.lit("its rate"))
        .when(pl.col("cwnd") < pl.col("ssthresh"))
        .then(pl.lit("its window in slow start"))
        .otherwise(pl.lit("its window")),
    )
    sums = timed.group_by("what").agg(pl.col("lasts").sum()).sort(["lasts", "what"], descending=[True, False])
    whole = sum(sums["lasts"].to_list())
    return {what: lasts / whole for what, lasts in sums.iter_rows()} if whole else {}


def _acked(one: Run) -> pl.DataFrame:
    """Return the acknowledged bytes over time."""
    import polars as pl

    acks = one.acks.filter((pl.col("event") == "ack") & (pl.col("flow") == 0))
    return acks.select("t_s", bytes=pl.col("seq").cum_max().cast(pl.Int64))


def _until(acked: pl.DataFrame, at_s: float) -> int:
    import polars as pl

    rows = acked.filter(pl.col("t_s") <= at_s)
    return int(rows["bytes"][-1]) if rows.height else 0


def _parts(mine: pl.DataFrame, theirs: pl.DataFrame) -> float | None:
    """Return the time from which the runs differ by more than `APART` until the end."""
    import polars as pl

    joined = theirs.rename({"bytes": "theirs"}).join_asof(mine.rename({"bytes": "mine"}), on="t_s").fill_null(0)
    gap = (joined["theirs"] - joined["mine"]).abs()
    apart = (gap > APART * joined.select(pl.max_horizontal("theirs", "mine")).to_series()) & (
        gap > LEAST_PACKETS * 1448
    )
    together = joined.filter(~apart)
    rest = joined if not together.height else joined.filter(pl.col("t_s") > together["t_s"][-1])
    return float(rest["t_s"][0]) if rest.height else None


def _state(one: Run, at_s: float) -> dict[str, Any]:
    import polars as pl

    rows = one.acks.filter((pl.col("t_s") <= at_s) & (pl.col("flow") == 0))
    found = {} if not rows.height else rows.select(STATE).tail(1).row(0, named=True)
    own = one.controllers.filter((pl.col("t_s") <= at_s) & (pl.col("flow") == 0)).tail(1)
    if own.height:
        values = own.row(0, named=True)
        found |= {k: v for k, v in values.items() if k not in ("t_s", "flow", "idx", "ack_no", "cwnd", "ssthresh")}
    return {key: value for key, value in found.items() if value is not None}


def figures(found: Found, parted: Parting) -> list[Figure]:
    """Draw a time-sequence graph of target and reference, and the best score in the course of the search."""
    from ackclock.plot import Figure

    names = (found.attack.arms[0].name, found.attack.arms[found.reference].name)
    when = "They do not part." if parted.at_s is None else f"Dotted: where they part, {parted.at_s:.3f} s."

    def sequences() -> Any:
        from ackclock.plot import style
        from ackclock.plot.traces import draw_sequence

        style.matplotlib()
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharex=True, sharey=True, layout="constrained")
        for ax, name, one in zip(axes, names, parted.runs, strict=True):
            acks = one.acks.filter(one.acks["flow"] == 0)
            draw_sequence(ax, acks, drops=one.drops.filter(one.drops["flow"] == 0))
            ax.set_title(name)
            ax.set_xlabel("time, s")
            if parted.at_s is not None:
                ax.axvline(parted.at_s, color="#555555", ls=":", lw=1.2)
        axes[0].set_ylabel("sequence number, KB")
        shown = {label: h for ax in axes for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=3, frameon=False)
        return figure

    data = {name: _acked(one) for name, one in zip(("target", "reference"), parted.runs, strict=True)}
    return [
        Figure(
            name="sequence",
            title=f"{names[0]} and {names[1]} in the worst case",
            caption=f"Time-sequence graphs of the first flow. {when}",
            draw=sequences,
            data=data,
        ),
        _progress(found),
    ]


def _progress(found: Found) -> Figure:
    import polars as pl

    from ackclock.plot import Figure
    from ackclock.plot.style import new

    steps = [*found.history, (found.looked_at, found.score)]
    table = pl.DataFrame({"candidates": [n for n, _ in steps], "best_score": [s for _, s in steps]})

    def draw() -> Any:
        figure, ax = new(7.2, 2.6)
        ax.step(table["candidates"], table["best_score"], where="post", lw=1.6)
        ax.set_xlim(0, found.looked_at)
        ax.set_ylim(0, 1)
        ax.set_xlabel("candidates looked at")
        ax.set_ylabel("best score so far")
        return figure

    return Figure(
        name="search", title="The search", caption="The best score against the number of candidates.", draw=draw,
        data={"search": table},
    )  # fmt: skip
