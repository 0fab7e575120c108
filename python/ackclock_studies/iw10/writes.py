"""Behaviour of the application: the sizes of its writes, and how a client closes (I34, I36).

Each packet script drives one socket of profile `linux-3.0` in virtual time: the application's system calls are
varied, and scenarios have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from ackclock.plot import GREY, OKABE_ITO, Figure, new
from ackclock.report import Block, Table, TableCell, paragraph
from ackclock.script import Played, play
from ackclock.study import Bound, Chapter, Data, Evidence, Experiment, Plan, Tables
from ackclock.study.table import declared
from ackclock_studies.iw10 import testbed

RESPONSE = testbed.SEGMENTS * testbed.SEGMENT
SIZES = (128, 256, 536, 1000, 1448, 2000, 2896, 4096, 8192, 14480)
"""Server write size, bytes; repeated until the response is complete."""

SINGLES = "`ip link set dev tun0 gso_max_segs 1`\n"
"""TSO off: one packet per segment."""
DEFAULT_BUFFER = "+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [8192], 4) = 0\n"
"""Socket buffer as set; the kernel doubles it to 16 KB, the default of tcp_wmem in 2010."""
NODELAY = "+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n"

WIDE, SMALL, AT_ONCE, WITH_TSO = "no limit", "16 KB", "16 KB, TCP_NODELAY", "16 KB, TSO"
HOSTS: Mapping[str, tuple[str, str]] = {
    WIDE: (SINGLES, ""),
    SMALL: (SINGLES, DEFAULT_BUFFER),
    AT_ONCE: (SINGLES, DEFAULT_BUFFER + NODELAY),
    WITH_TSO: ("", DEFAULT_BUFFER),
}
"""Host by send buffer and segmentation -> script set-up and socket options."""

SERVER = """0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0  bind(3, ..., ...) = 0
+0  listen(3, 1) = 0
+0  < S 0:0(0) win 65535 <mss 1448,sackOK,nop,nop,nop,wscale 7>
+0  > S. 0:0(0) ack 1 <...>
+.3 < . 1:1(0) ack 1 win 5000
+0  accept(3, ..., ...) = 4
+0  fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0
"""

CLIENT = """0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0  fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0  connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0  > S 0:0(0) <...>
+.3 < S. 0:0(0) ack 1 win 65535 <mss 1448,sackOK,nop,nop,nop,wscale 7>
+0  > . 1:1(0) ack 1
+0  write(3, ..., 200) = 200
+0  > P. 1:201(200) ack 1
"""

CLOSES: Mapping[str, int] = {
    "one segment less than it reads": RESPONSE - testbed.SEGMENT,
    "as much as it reads": RESPONSE,
    "one byte more than it reads": RESPONSE + 1,
    "one segment more than it reads": RESPONSE + testbed.SEGMENT,
}
"""Response length, bytes, for a client that reads at most ten segments and closes."""


def first_burst(host: str, size: int) -> str:
    """Return a server that writes a response in calls of `size` bytes and receives nothing."""
    setup, options = HOSTS[host]
    whole, rest = divmod(RESPONSE, size)
    calls = [size] * whole + ([rest] if rest else [])
    return setup + SERVER + options + "".join(f"+0 write(4, ..., {n}) = {n}\n" for n in calls)


def closing(length: int) -> str:
    """Return a client that sends a request, gets a response of `length` bytes and a FIN, reads at most ten segments,
    and closes.
    """
    made, begin = CLIENT, 1
    while begin <= length:
        end = min(begin + testbed.SEGMENT, length + 1)
        wait = ".3" if begin == 1 else ".0006"
        made += f"+{wait} < . {begin}:{end}({end - begin}) ack 201 win 5000\n"
        begin = end
    made += f"+.0006 < F. {begin}:{begin}(0) ack 201 win 5000\n"
    return made + f"+0 read(3, ..., {RESPONSE}) = {min(length, RESPONSE)}\n+0 close(3) = 0\n"


def _played(text: str) -> Played:
    """A script played against the study's stack. A write that does not fit into the send buffer ends the script;
    packets sent before are unaffected.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "script.pkt"
        path.write_text(text, encoding="utf-8")
        return play(path, profile=testbed.PROFILE, hz=0)


def _sent(played: Played) -> list[str]:
    """Packets sent by the stack, as "FLAGS first:last(bytes) ..."."""
    return [line.split(" > ", 1)[1] for line in played.trace if " > " in line]


def _payload(packet: str) -> int:
    return int(packet.partition("(")[2].partition(")")[0])


def run(plan: Plan) -> Data:
    """Every write size on every host, and every way to close.

    Returns
    -------
    Data
        `writes.bursts`: host, size, packets and bytes of the first burst. `writes.ends`: case, length, ends ("RST" or "FIN").
    """
    bursts, ends = [], []
    for i, host in enumerate(HOSTS):
        plan.report(host, i / len(HOSTS))
        for size in SIZES:
            payloads = [_payload(packet) for packet in _sent(_played(first_burst(host, size)))]
            full = [n for n in payloads if n]
            bursts.append({"host": host, "size": size, "packets": len(full), "bytes": sum(full)})
    for case, length in CLOSES.items():
        flags = "".join(packet.split()[0] for packet in _sent(_played(closing(length))))
        ends.append({"case": case, "length": length, "ends": "RST" if "R" in flags else "FIN" if "F" in flags else ""})
    return Data(tables={"writes.bursts": pl.DataFrame(bursts), "writes.ends": pl.DataFrame(ends)})


def _burst(tables: Tables, host: str, size: int, column: str) -> float:
    return float(tables["writes.bursts"].filter(host=host, size=size)[column][0])


def i36(tables: Tables, bound: Bound) -> Sequence[Evidence]:
    """First burst, bytes, with one factor at a time, and with none."""
    asked = (
        (WIDE, RESPONSE, "none: one write, no limit of the buffer, TSO off", "none", False),
        (SMALL, RESPONSE, "send buffer of 16 KB", "buffer", True),
        (WIDE, 1000, "writes of 1000 bytes", "write", True),
        (WIDE, 4096, "writes of 4096 bytes, the last segment of each cut short", "split", True),
        (WITH_TSO, RESPONSE, "send buffer of 16 KB, TSO on", "tso", False),
        (WITH_TSO, testbed.SEGMENT, "send buffer of 16 KB, TSO on, writes of one segment", "tso_segment", False),
        (AT_ONCE, 1000, "send buffer of 16 KB, writes of 1000 bytes, TCP_NODELAY", "nodelay", False),
    )
    packets = tables["writes.bursts"].filter(host=SMALL)["packets"].to_numpy()
    return [
        *(
            Evidence(
                label=f"first burst, {text}",
                value=_burst(tables, host, size, "bytes") / testbed.SEGMENT,
                bound=bound if weighs else Bound(),
                unit="segments of payload",
                weighs=weighs,
                key=key,
            )
            for host, size, text, key, weighs in asked
        ),
        *(
            Evidence(
                label=f"packets of the first burst with 16 KB, over all sizes of writes: {key}",
                value=float(count),
                bound=Bound(),
                unit="packets",
                weighs=False,
                key=key,
            )
            for key, count in (("fewest", packets.min()), ("most", packets.max()))
        ),
    ]


def i34(tables: Tables) -> Sequence[Evidence]:
    """Whether a client that reads ten segments and closes ends with an RST."""
    keys = ("less", "same", "byte", "segment")
    return [
        Evidence(
            label=f"response of {row['case']}: ends with an RST",
            value=float(row["ends"] == "RST"),
            bound=Bound(),
            weighs=False,
            key=key,
        )
        for key, row in zip(keys, tables["writes.ends"].iter_rows(named=True), strict=True)
    ]


LOOK = {
    WIDE: (OKABE_ITO["black"], "o", "-"),
    SMALL: (OKABE_ITO["blue"], "s", "--"),
    AT_ONCE: (OKABE_ITO["vermilion"], "^", ":"),
    WITH_TSO: (OKABE_ITO["green"], "D", "-."),
}


def figure(tables: Tables) -> Figure:
    """First burst payload against write size."""
    table = tables["writes.bursts"].with_columns(segments=pl.col("bytes") / testbed.SEGMENT)

    def draw() -> Any:
        made, ax = new(6.6, 3.4)
        for host, (colour, marker, dash) in LOOK.items():
            own = table.filter(host=host)
            ax.plot(own["size"], own["segments"], color=colour, marker=marker, ls=dash, ms=4.5, lw=1.2, label=host)
        ax.axhline(testbed.SEGMENTS, color=GREY, lw=0.9)
        ax.set_xscale("log")
        ax.set_xticks(SIZES, [str(size) for size in SIZES], rotation=45, ha="right")
        ax.set_xticks([], minor=True)
        ax.set(xlabel="bytes of one write", ylabel="payload of the first burst\n(full segments)", ylim=(0, 10.6))
        made.legend(loc="outside lower center", ncols=4)
        return made

    small = table.filter(host=SMALL)["packets"].to_list()
    return Figure(
        name="write-sizes",
        title=(
            f"With the default send buffer {min(small)} or {max(small)} packets leave at first, whatever the size of a write; "
            f"writes that are no whole segments bring less than ten segments into ten packets"
        ),
        caption=(
            "Payload of the first burst of a response of ten segments, initial window 10, by the size of the server's writes: send buffer without a limit and of 16 KB, "
            "each segment a packet; the same with TCP_NODELAY; and with TSO. The grey line is the whole response."
        ),
        draw=draw,
        data={"writes": table},
    )


def closes(tables: Tables) -> Table:
    """How a connection ends if the client leaves data unread."""
    return Table(
        caption="A client that reads at most ten segments and then closes: what it sends last.",
        header=("response", "bytes", "ends with"),
        rows=tuple(
            (TableCell(text=row["case"], kind="head"), f"{row['length']:,}", row["ends"])
            for row in tables["writes.ends"].iter_rows(named=True)
        ),
    )


def blocks(tables: Tables) -> Sequence[Block]:
    """Report blocks for this chapter."""
    return (
        paragraph(
            "What an application does to its socket, call by call. A server writes its response in pieces: a piece that is no whole number of segments ends in a short one, and the initial window counts segments, "
            "not bytes. A client reads as much as it expects, and closes."
        ),
        figure(tables),
        closes(tables),
    )


CHAPTER = Chapter(
    experiments=(
        Experiment(name="writes", title="sizes of writes, and clients that leave data unread", run=run, weight=0.2),
    ),
    **declared(__name__),
    blocks=blocks,
)
