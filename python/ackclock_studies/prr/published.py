"""The ACK-by-ACK rows as printed in the RFCs, and the known errata. Data only.

Sources: RFC 6937 §3.1 (two unnumbered tables), RFC 9937 §8 (Figures 1 and 2) and the IETF-84 slides, whose rows are included. Column =
original segment whose arrival triggers the ACK. N new, R retransmission, kR several, "·" nothing. pipe (inflight) is the value after the
ACK was processed and before anything is sent.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRule:
    """One rule's rows in one published table.

    Parameters
    ----------
    rule
        Registry name.
    name
        Name in the table.
    rows
        Row name ("cwnd", "pipe", "sent") -> cells.
    remark
        Why a cell differs from the algorithm's result; empty if none does.
    """

    rule: str
    name: str
    rows: dict[str, tuple[str, ...]]
    remark: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedTable:
    """One published table and the setting that reproduces it.

    Parameters
    ----------
    place
        RFC and section.
    title
        Description of the losses.
    window, lost, ssthresh, recover_fs
        Arguments of the ideal path; `recover_fs` None means the rule's own.
    first_ack
        Number of the first column.
    rules
        Rows, rule by rule.
    """

    place: str
    title: str
    window: int
    lost: tuple[int, ...]
    ssthresh: int
    recover_fs: int | None
    first_ack: int
    rules: tuple[PublishedRule, ...]

    @property
    def acks(self) -> range:
        """Column ACK numbers."""
        return range(self.first_ack, self.first_ack + len(next(iter(self.rules[0].rows.values()))))


def _cells(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_EXTRA_18 = (
    "RFC 6937 prints the pipe row shifted right by one from ACK 5: 18 stands there once too often, and the last 10 fell off. "
    "The sent row beside it fits the values computed here."
)
_GREATER = (
    "RFC 9937 §6.2 is proportional only while inflight > ssthresh. At ACK 19 inflight is 10 and so is ssthresh: nothing is "
    "sent until ACK 20. The figure follows >= instead; with that comparison all its 22 columns come out, and the totals are "
    "equal either way."
)

TABLES = (
    PublishedTable(
        place="RFC 6937 §3.1",
        title="one loss: segment 0 of 20",
        window=20,
        lost=(0,),
        ssthresh=11,
        recover_fs=22,
        first_ack=1,
        rules=(
            PublishedRule(
                rule="rfc6675",
                name="RFC 6675",
                rows={
                    "cwnd": _cells("20 20" + " 11" * 17),
                    "pipe": _cells("19 19 18 18 17 16 15 14 13 12 11" + " 10" * 8),
                    "sent": _cells("N N R" + " ·" * 8 + " N" * 8),
                },
            ),
            PublishedRule(
                rule="rate-halving",
                name="Rate Halving",
                rows={
                    "cwnd": _cells("20 20 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11"),
                    "pipe": _cells("19 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10"),
                    "sent": _cells("N N R" + " · N" * 8),
                },
            ),
            PublishedRule(
                rule="prr-ssrb",
                name="PRR",
                rows={
                    "pipe": _cells("19 19 18 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 10"),
                    "sent": _cells("N N R" + " · N" * 6 + " · · N N"),
                    "rb": _cells("· " * 17 + "s s"),
                },
                remark=_EXTRA_18,
            ),
        ),
    ),
    PublishedTable(
        place="RFC 6937 §3.1",
        title="fifteen losses: segments 0 to 14 of 20",
        window=20,
        lost=tuple(range(15)),
        ssthresh=11,
        recover_fs=22,
        first_ack=15,
        rules=(
            PublishedRule(
                rule="rfc6675",
                name="RFC 6675",
                rows={
                    "cwnd": _cells("20 20 11 11 11"),
                    "pipe": _cells("19 19 4 10 10"),
                    "sent": _cells("N N 7R R R"),
                },
            ),
            PublishedRule(
                rule="rate-halving",
                name="Rate Halving",
                rows={
                    "cwnd": _cells("20 20 5 5 5"),
                    "pipe": _cells("19 19 4 4 4"),
                    "sent": _cells("N N R R R"),
                },
            ),
            PublishedRule(
                rule="prr-crb",
                name="PRR-CRB",
                rows={"pipe": _cells("19 19 4 4 4"), "sent": _cells("N N R R R")},
            ),
            PublishedRule(
                rule="prr-ssrb",
                name="PRR-SSRB",
                rows={"pipe": _cells("19 19 4 5 6"), "sent": _cells("N N 2R 2R 2R")},
            ),
        ),
    ),
    PublishedTable(
        place="RFC 9937 §8, Figure 1",
        title="one loss: segment 0 of 20",
        window=20,
        lost=(0,),
        ssthresh=10,
        recover_fs=None,
        first_ack=1,
        rules=(
            PublishedRule(
                rule="rfc6675",
                name="RFC 6675",
                rows={
                    "cwnd": _cells("20 20" + " 10" * 20),
                    "pipe": _cells("19 19 18 18 17 16 15 14 13 12 11 10" + " 9" * 10),
                    "sent": _cells("N N R" + " ·" * 9 + " N" * 10),
                },
            ),
            PublishedRule(
                rule="prr-rfc9937",
                name="PRR",
                rows={
                    "cwnd": _cells("20 20 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10 10 10"),
                    "pipe": _cells("19 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10 10 9 9"),
                    "sent": _cells("N N R" + " · N" * 9 + " N"),
                },
                remark=_GREATER,
            ),
        ),
    ),
    PublishedTable(
        place="RFC 9937 §8, Figure 2",
        title="fifteen losses: segments 0 to 14 of 20",
        window=20,
        lost=tuple(range(15)),
        ssthresh=10,
        recover_fs=None,
        first_ack=15,
        rules=(
            PublishedRule(
                rule="rfc6675",
                name="RFC 6675",
                rows={
                    "cwnd": _cells("20 20 10 10 10"),
                    "pipe": _cells("19 19 4 9 9"),
                    "sent": _cells("N N 6R R R"),
                },
            ),
            PublishedRule(
                rule="prr-rfc9937",
                name="PRR",
                rows={
                    "cwnd": _cells("20 20 5 5 5"),
                    "pipe": _cells("19 19 4 4 4"),
                    "sent": _cells("N N R R R"),
                },
            ),
        ),
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SlideRow:
    """A row of the IETF-84 "Algorithm comparisons" slides, as far as legible.

    Parameters
    ----------
    table
        The table of RFC 6937 that prints the same case.
    rule, row
        Registry name; row of that table.
    cells
        Cells in order. The columns and some cells are missing from the slides' text.
    """

    table: PublishedTable
    rule: str
    row: str
    cells: tuple[str, ...]


def _slide(table: PublishedTable, text: str) -> tuple[SlideRow, ...]:
    lines = (line.split(maxsplit=2) for line in text.strip().splitlines())
    return tuple(SlideRow(table=table, rule=rule, row=row, cells=_cells(cells)) for rule, row, cells in lines)


SLIDE_ROWS = (
    *_slide(
        TABLES[0],
        """
rfc6675 pipe 19 18 18 17 16 15 14 13 12 11 10 10
rfc6675 sent N N R N N N N N
rate-halving cwnd 20 20 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11
rate-halving pipe 19 18 18 17 17 16 16 15 15 14 14 13 13 12
rate-halving sent N N N N N N N N
prr-ssrb pipe 19 19 18 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 10
prr-ssrb sent N N N N N N
prr-ssrb rb s s
""",
    ),
    *_slide(
        TABLES[1],
        """
rfc6675 cwnd 20 20 11 11 11
rfc6675 pipe 19 19 4 10 10
rfc6675 sent N 7R R R
rate-halving cwnd 20 20
rate-halving pipe 19 19 4 4 4
rate-halving sent N N R R R
prr-ssrb pipe 19 19
prr-ssrb sent N 2R 2R 2R
""",
    ),
)

GENERAL_REMARKS = (
    "RFC 6937's text halves FlightSize to 10, but its tables for RFC 6675 and PRR are computed with ssthresh 11: the two "
    "limited-transmit segments were counted (22 / 2), although RFC 6675 §5 step 4.2 says not to. RFC 9937's figures use 10. "
    "Each table is therefore reproduced with its own setting.",
    "RFC 9937 §8 speaks of an ssthresh of 20 in its prose; its figures use 10.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """One rule's behaviour in one episode on the ideal path; `None` where not checked.

    Parameters
    ----------
    rtts
        From the entering ACK to the full ACK, to the nearest RTT.
    pipe_at_exit, cwnd_after_exit, cwnd_before_exit
        Segments.
    max_burst, burst_at_entry
        Maximum number of segments sent on one ACK of the episode, and number sent on the entering ACK.
    """

    rule: str
    rtts: int | None = None
    pipe_at_exit: int | None = None
    cwnd_after_exit: int | None = None
    cwnd_before_exit: int | None = None
    max_burst: int | None = None
    burst_at_entry: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """A loss pattern on the ideal path, with every rule's golden numbers (ssthresh W/2, 3 duplicate ACKs)."""

    name: str
    window: int
    lost: tuple[int, ...]
    more_data: bool
    episodes: tuple[Episode, ...]


PATTERNS = (
    Pattern(
        name="W 20, segments 0 to 14 lost",
        window=20,
        lost=tuple(range(15)),
        more_data=True,
        episodes=(
            Episode(rule="rfc6675", rtts=2, pipe_at_exit=9, cwnd_after_exit=10, max_burst=6),
            Episode(rule="prr-ub", rtts=2, pipe_at_exit=9, max_burst=6),
            Episode(rule="rate-halving", rtts=4, pipe_at_exit=4, cwnd_after_exit=5, max_burst=1),
            Episode(rule="prr-crb", rtts=4, pipe_at_exit=4, max_burst=1),
            Episode(rule="prr-ssrb", rtts=2, pipe_at_exit=9, max_burst=2),
            Episode(rule="prr-linux-3.2", rtts=2, pipe_at_exit=9, cwnd_after_exit=10, max_burst=2),
            Episode(rule="prr-rfc9937", rtts=3, pipe_at_exit=9, cwnd_after_exit=10, max_burst=2),
            Episode(rule="prr-linux-6", rtts=3, pipe_at_exit=9, cwnd_after_exit=10, max_burst=2),
        ),
    ),
    Pattern(
        name="W 100, segments 0 to 89 lost",
        window=100,
        lost=tuple(range(90)),
        more_data=True,
        episodes=(
            Episode(rule="rfc6675", rtts=2, burst_at_entry=41),
            Episode(rule="prr-ub", rtts=2, burst_at_entry=41),
            Episode(rule="rate-halving", rtts=10, burst_at_entry=1),
            Episode(rule="prr-crb", rtts=10, burst_at_entry=1),
            Episode(rule="prr-ssrb", rtts=3, burst_at_entry=2),
            Episode(rule="prr-linux-3.2", rtts=3, burst_at_entry=2),
            Episode(rule="prr-rfc9937", rtts=4, burst_at_entry=1),
            Episode(rule="prr-linux-6", rtts=4, burst_at_entry=1),
        ),
    ),
    Pattern(
        name="W 20, segment 0 lost, nothing new to send",
        window=20,
        lost=(0,),
        more_data=False,
        episodes=(
            Episode(rule="rfc6675", cwnd_before_exit=10),
            Episode(rule="rate-halving", cwnd_before_exit=2),
            Episode(rule="prr-crb", cwnd_before_exit=10),
            Episode(rule="prr-ssrb", cwnd_before_exit=10),
            Episode(rule="prr-linux-3.2", cwnd_before_exit=10),
            Episode(rule="prr-rfc9937", cwnd_before_exit=10),
            Episode(rule="prr-linux-6", cwnd_before_exit=10),
        ),
    ),
)
