"""The diagnosis page: answer, causes, path, congestion control, model, and changes that would help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ackclock._results.limits import CAUSES
from ackclock.diagnose._change import NOW
from ackclock.diagnose._notes import label as cause_label
from ackclock.formats.capture import end
from ackclock.plot import interactive
from ackclock.plot.limits import live_limits
from ackclock.plot.style import GREY, OKABE_ITO
from ackclock.report.page import Block, Live, Page, Section, Table, TableCell, paragraph
from ackclock.text import NONE, change, seconds, share

if TYPE_CHECKING:
    from ackclock.diagnose import Diagnosis, Fit, Identity, Outcome

__all__ = ["page", "path_rows", "quantity_rows"]

BOUND = (
    " The path was never full, so its rate is only a bound: each change also ran over a path of ten times the rate, and is not known "
    "where it does something else there."
)
"""Text below a table of changes."""

CHANGED = (
    "A model with one value changed, seed by seed, and the model's own error: ignore smaller changes, and changes whose sign "
    "varies. Mirror: a model with the capture's losses and the times of its application's writes."
)
"""Text below a table of changes."""

RATE_BOUND = " The path was never full: its rate and its queue in the model are the least that the capture allows."
"""Text below the table of a model with a rate that is only a bound."""

DRAWN = 2
"""Number of candidates drawn beside the capture."""


def page(
    found: Diagnosis,
    *,
    fit: Fit | None = None,
    outcomes: Sequence[Outcome] = (),
    identity: Identity | None = None,
    name: str = "",
    command: str = "",
) -> Page:
    """Return the page.

    Parameters
    ----------
    found
        The diagnosis.
    fit, outcomes, identity
        Results of the other options.
    name
        File name of the capture.
    command
        Command that generates the same page.
    """
    sections = [*_causes(found), *_which(identity), *_model(fit, outcomes)]
    row = found.connection
    told = (
        found.at if found.at == "between" else f"at the {found.at}" if found.at != "unknown" else "at an unknown place"
    )
    return Page(
        title=f"Why is {name} slow?" if name else "Why is this transfer slow?",
        summary=(
            f"Connection {row['connection']} of the capture: {row['bytes'] / 1e6:,.3f} MB from {end(row['from_address'], row['from_port'])} to "
            f"{end(row['to_address'], row['to_port'])}, captured {told}. The capture has missed {share(found.missed)} of the data."
        ),
        conclusion=found.sentence if found.answer is None else f"{found.answer} {found.sentence}",
        sections=tuple(sections),
        scenarios={} if fit is None else {"path.toml": fit.scenario.to_toml()},
        command=command,
        beside="Scenarios hold no address and no payload.",
    )


def _causes(found: Diagnosis) -> list[Section]:
    if found.refused or found.path is None:
        told = tuple(paragraph(note.replace("`", "")) for note in found.notes)
        return [Section(title="What the capture tells", blocks=told)] if told else []
    table = Table(
        caption=f"Share: {of_time(found)}. MB lost to a cause: what the path could have carried in that time, "
        "less what it carried.",
        header=("what held the sender back", "time", "share", "MB lost to it"),
        rows=tuple(
            (
                TableCell(text=cause_label(cause.name, found.paced, found.unqueued, found.level), kind="head"),
                seconds(cause.seconds),
                share(cause.share),
                lost_cell(found, cause.lost_bytes),
            )
            for cause in found.causes
        ),
    )
    limits = found.limits()
    blocks: list[Block] = [table, *(paragraph(note.replace("`", "")) for note in found.notes)]
    if limits.height > 1:
        blocks.append(
            Live(
                name="limits",
                title="What held the sender back over time",
                caption="Of each interval: the share of time that each cause held the sender back.",
                figure=lambda: live_limits(limits),
            )
        )
    path = Table(
        caption="Properties of the path and of its ends, as the capture shows them.",
        header=("", ""),
        rows=tuple((TableCell(text=what, kind="head"), value) for what, value in path_rows(found)),
    )
    return [Section(title="What was the limit", blocks=tuple(blocks)), Section(title="The path", blocks=(path,))]


def of_time(found: Diagnosis) -> str:
    """Return as text what the shares of causes are of."""
    idle = f"without {seconds(found.idle_s)} in which it was idle" if found.idle_s else "in which it was never idle"
    return f"of the {seconds(sum(cause.seconds for cause in found.causes))} of the transfer, {idle}"


def lost_cell(found: Diagnosis, lost_bytes: float | None) -> str:
    """Return the bytes lost to a cause as text."""
    if lost_bytes is None or found.path is None:
        return NONE
    return f"{'' if found.path.identified else 'at least '}{lost_bytes / 1e6:,.3f}"


def path_rows(found: Diagnosis) -> list[tuple[str, str]]:
    """Return the path table's rows as text."""
    from ackclock.text import rate

    path, row = found.path, found.connection
    assert path is not None
    least = "" if path.identified else "at least "
    windows = row["least_window"], row["most_window"]
    return [
        ("base RTT", seconds(path.base_rtt_s)),
        ("mean RTT", seconds(row["rtt_mean_s"])),
        ("greatest RTT", seconds(row["rtt_max_s"])),
        ("payload that the bottleneck carries", NONE if path.rate_bps is None else least + rate(path.rate_bps)),
        ("the same with headers", NONE if path.wire_bps is None else least + rate(path.wire_bps)),
        ("queue, when it was full", f"{'at least ' if path.queue_bound else ''}{seconds(path.queue_s)}"),
        ("segments lost, of those sent", f"{row['lost']:,} of {row['segments']:,}"),
        (
            "sent again at a full, a part full, an empty queue",
            f"{path.sent_again_full:,}, {path.sent_again_part_full:,}, {path.sent_again_empty:,}",
        ),
        ("sent for nothing", f"{row['spurious']:,}"),
        ("segments per ACK", NONE if path.segments_per_ack is None else f"{path.segments_per_ack:.2f}"),
        ("payload of a full segment", f"{found.mss:,} bytes"),
        ("first flight", f"{row['first_flight']:,} bytes"),
        (
            "receiver's window, least and most",
            NONE if None in windows else f"{windows[0]:,.0f} to {windows[1]:,.0f} bytes",
        ),
        (
            "SACK, timestamps",
            ", ".join(
                "not told" if row[name] is None else "yes" if row[name] else "no" for name in ("sack", "timestamps")
            ),
        ),
    ]


def _which(identity: Identity | None) -> list[Section]:
    if identity is None:
        return []
    blocks: list[Block] = [paragraph(identity.sentence)]
    if identity.candidates:
        blocks += [_candidates(identity), _flights(identity)]
    if identity.left_out:
        told = "; ".join(f"{name} {why}" for name, why in identity.left_out).replace("`", "")
        blocks.append(paragraph(f"Left out: {told}."))
    return [Section(title="Which congestion control", blocks=tuple(blocks))]


def _candidates(identity: Identity) -> Table:
    return Table(
        caption="Each ran over the path of the capture, and lost the same segments. The first number is the mean difference of its flight from the capture's; the "
        "spread is that of its own runs, over paths that fit equally well, from each other. The likelihood follows from both. Those "
        "without a spread were far off.",
        header=("congestion control", "flight off by", "spread of its own", "the first is as many times as likely"),
        rows=tuple(
            (TableCell(text=one.name, kind="head" if one.name in identity.names else ""), *candidate_cells(one))
            for one in identity.candidates
        ),
    )


def candidate_cells(one: Any) -> tuple[str, str, str]:
    """Return a candidate's table row, as text."""
    ratio = NONE if one.ratio is None else f"{one.ratio:,.1f}" if one.ratio < 1e4 else "> 10,000"
    spread = NONE if one.spread is None else share(one.spread, 1)
    return share(one.distance, 1), spread, ratio


def _flights(identity: Identity) -> Live:
    first = identity.candidates[0].name
    whole = [one.name for one in identity.candidates if one.name in identity.curves]  # others were run only in part
    beside = [name for name in whole if name not in identity.names][:DRAWN]
    drawn = [("", "the capture", "#222222", "solid", 3.0), (first, first, OKABE_ITO["vermilion"], "solid", 1.5)]
    looks = (OKABE_ITO["blue"], "dash"), (GREY, "dot")
    drawn += [
        (name, name, colour, dash, 1.5) for name, (colour, dash) in zip(beside, looks, strict=False) if name != first
    ]

    def figure() -> dict[str, Any]:
        lines = []
        for name, label, colour, dash, width in drawn:
            flights = identity.curves[name]
            step = identity.whole_bytes / 1e6 / len(flights)
            lines.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": label,
                    "x": [float(f"{(at + 0.5) * step:.5g}") for at in range(len(flights))],
                    "y": [float(f"{value:.4g}") for value in flights],
                    "line": {"color": colour, "dash": dash, "width": width},
                    "hovertemplate": "%{y} segments at %{x} MB<extra>" + label + "</extra>",
                }
            )
        return {"data": lines, "layout": interactive.layout(x="data sent (MB)", y="in flight (segments)", height=340)}

    return Live(
        name="flights",
        title="In flight: the capture, and congestion controls that lost the same segments",
        caption="Over the data, not over time: at the same place the same segments are lost.",
        figure=figure,
    )


def quantity_rows(fit: Fit) -> list[tuple[str, ...]]:
    """Return the rows of a model's table as text."""
    from ackclock.text import rate

    shown: dict[str, Callable[[float], str]] = {"share": share, "s": seconds, "bit/s": rate}
    made = []
    for one in fit.quantities:
        if one.unit == "share" and max(one.capture, one.model) < 0.005:
            continue
        name = CAUSES[one.name].split(",")[0] if one.unit == "share" else one.name
        told = shown.get(one.unit, "{:,.0f}".format)
        modelled = zip((one.model, one.least, one.most), one.bounds, strict=True)
        cells = [told(one.capture), *(f"{'≥ ' if bound else ''}{told(value)}" for value, bound in modelled)]
        made.append((name, *cells, percent(one.error)))
    return made


def end_told(fit: Fit, before: str) -> str:
    """Return the meaning of the sign in front of the model's time, if there is one."""
    transfer = fit.quantities[0]
    if not transfer.not_complete:
        return ""
    runs = f"in {transfer.not_complete} of {transfer.runs} runs of the model"
    return f"{before}≥: the transfer was not complete after {seconds(transfer.most)}, {runs}."


def percent(error: float | None) -> str:
    """Return a fraction with its sign, as text."""
    return change(error, 1)


def _model(fit: Fit | None, outcomes: Sequence[Outcome]) -> list[Section]:
    if fit is None and not outcomes:
        return []
    sections = [] if fit is None else [_fitted(fit)]
    if outcomes:
        changes = Table(
            caption=CHANGED + (BOUND if fit is not None and fit.bound else ""),
            header=("change", "transfer takes", "change of time", "least", "most", "model, off by", ""),
            rows=tuple((TableCell(text=one.name, kind="head"), *outcome_cells(one)) for one in outcomes),
        )
        sections.append(Section(title="What would change", blocks=(changes,)))
    return sections


def _fitted(fit: Fit) -> Section:
    quantities = Table(
        caption="A model of the path, run: median, least and most over seeds; of shares the error is the difference."
        + end_told(fit, " ")
        + (RATE_BOUND if fit.bound else ""),
        header=("quantity", "capture", "model", "least", "most", "error"),
        rows=tuple((TableCell(text=name, kind="head"), *cells) for name, *cells in quantity_rows(fit)),
    )
    blocks: list[Block] = [quantities]
    if not fit.holds:
        blocks.append(paragraph(f"The model is no basis for what would change: it is {fit.wrong}."))
    return Section(title="A model of the path", blocks=tuple(blocks))


def outcome_cells(one: Outcome) -> tuple[str, ...]:
    """Return a change's table row, as text."""
    now = one.name == NOW
    off = "<0.1 %" if 0 < one.error < 0.0005 else f"{one.error * 100:.1f} %"
    basis = f"{one.model}, {off}"
    said = "not known" if one.unknown else "says something" if one.tells else "says nothing"
    told = "" if now else said
    if one.seconds is None:
        return (f"not complete after {seconds(one.ran_s)}", NONE, NONE, NONE, basis, told)
    changes = [percent(value) for value in (one.change, one.change_least, one.change_most)]
    return (seconds(one.seconds), *(["", "", ""] if now else changes), basis, told)
