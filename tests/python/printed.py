"""Numbers printed on a page or in a terminal table, traced to the run's tables: the flows that each covers, and its
time span. Each pattern below is a sentence that may be printed, with the expected values of its numbers, computed
here from bytes, times and counts. A number outside every known sentence fails the test, so a new printed number needs
its source here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cached_property
from html.parser import HTMLParser

import ackclock

UNITS = {"Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3, "bit/s": 1.0, "s": 1.0, "ms": 1e-3, "%": 0.01, "": 1.0}
NUMBER = r"[−-]?\d[\d,]*(?:\.\d+)?"
TINY = "< 0.01 %"
NEARLY_ALL = "> 99.99 %"
AMOUNT = rf"({TINY}|{NUMBER} (?:[GMk]?bit/s|ms|s|%)|–)"
COUNT = rf"({NUMBER}|no)"
LIMITED = (
    rf"(?:it was idle for {AMOUNT} of its life; )?{AMOUNT} of the (?:rest|time) [a-z' ]+ w(?:as|ere) the limit"
    rf"(?:, {AMOUNT} [a-z' ]+, and {AMOUNT} [a-z' ]+|, and {AMOUNT} [a-z' ]+)?"
)

SCENARIO = """
duration = "{duration}"
[network]
bottleneck = {{ rate = "{rate}", delay = "20 ms", queue = {{ kind = "drop-tail", limit = "1 BDP" }}, loss = {{ kind = "bernoulli", p = "{loss}" }} }}
[[flows]]
name = "web"
workload = {{ kind = "transfer", bytes = "{size}" }}
[[flows]]
congestion_control = "{controller}"
count = {count}
start = "{start}"
[record]
warm_up = "{warm_up}"
performance = true
"""

DRAWN = [
    {"duration": "6 s", "rate": "10 Mbit/s", "loss": "0.3 %", "size": "2 MB", "controller": "reno", "count": 2,
     "start": "500 ms", "warm_up": "1 s"},
    {"duration": "4 s", "rate": "3 Mbit/s", "loss": "1 %", "size": "100 KB", "controller": "cubic", "count": 3,
     "start": "1 s", "warm_up": "1500 ms"},
    {"duration": "3 s", "rate": "20 Mbit/s", "loss": "2 %", "size": "30 MB", "controller": "bbr", "count": 1,
     "start": "0 s", "warm_up": "0 s"},
]  # fmt: skip


def agrees(text: str, value: float | None) -> bool:
    """Return whether a printed number equals the value to the printed precision."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return text == "–"
    if text == "–":
        return False
    if text == "no":
        return value == 0
    if text == TINY:
        return 0 < value < 1e-4
    if text == NEARLY_ALL:
        return 0.9999 < value < 1
    number, _, unit = text.partition(" ")
    number = number.replace(",", "").replace("−", "-")
    decimals = len(number.partition(".")[2])
    digits = len(number.replace(".", "").replace("-", "").lstrip("0"))
    size = UNITS[unit]
    if unit == "%" and value < 0.1 and digits <= 2 and not decimals:  # two digits for a small percentage
        return float(f"{100 * value:.2g}") == float(number)
    return abs(float(number) * size - value) <= 0.5000001 * size * 10.0**-decimals


class Page(HTMLParser):
    """Words and tables of a page, without the contents of scripts, pictures and scenario files."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.hidden = 0
        self.text: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.cell: list[str] | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("script", "style", "pre", "svg", "dl")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = []
        self.text.append("\n")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style", "pre", "svg", "dl")
        if tag in ("td", "th") and self.cell is not None:
            self.tables[-1][-1].append("".join(self.cell).strip())
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell.append(data)
        elif not self.hidden:
            self.text.append(data)


LABELS = {"handshake": "handshake", "application": "application", "rwnd": "receiver's window", "sndbuf": "send buffer", "cwnd": "congestion window",
          "pacing": "pacing", "recovery": "recovery", "timeout": "timeout", "idle": "idle"}  # fmt: skip
"""Columns of the `limits` table."""
CAUSES = list(LABELS)


class Truth:
    """Contents of a run's tables, computed from counts and times alone; `again` is the call that repeats the run."""

    def __init__(self, run: ackclock.Run, again: Callable[..., ackclock.Run] = ackclock.run) -> None:
        self.run = run
        self.again = again
        self.rows = run.rows("flows")
        self.labels = [group.label for group in run.scenario.flows]
        self.links = run.rows("links")
        self.warm = float(run.scenario.record.engine()["warm_up_ns"]) / 1e9

    def name(self, row):
        return f"{row['flow']} {self.labels[row['group']]}"

    def rate(self, rows):
        return sum(8 * row["bytes_acked"] / (row["stop_s"] - row["start_s"]) for row in rows)

    def span(self, rows):
        return max(row["stop_s"] for row in rows) - min(row["start_s"] for row in rows)

    def together(self, rows):
        return 8 * sum(row["bytes_acked"] for row in rows) / self.span(rows)

    def part(self, rows):
        return sum(row["bytes_acked"] for row in rows) / sum(row["bytes_acked"] for row in self.rows)

    def group(self, label):
        return [row for row in self.rows if self.labels[row["group"]] == label]

    @cached_property
    def early(self):
        """Bytes delivered by each flow by the end of the warm-up, from a run that ends there."""
        if not self.warm:
            return [0] * len(self.rows)
        ended = self.run.scenario.set_all({"duration": self.run.scenario.record.warm_up, "record": {}})
        return [row["bytes_acked"] for row in self.again(ended, seed=self.run.seed).rows("flows")]

    def late(self, rows):
        """Bytes delivered by flows after the warm-up."""
        return sum(row["bytes_acked"] - self.early[row["flow"]] for row in rows)

    def after(self, rows):
        """Goodput of flows after the warm-up, from the first start to the last end; `None` if none ran then."""
        ran = [row for row in rows if row["stop_s"] > self.warm]
        if not ran:
            return None
        return (
            8
            * self.late(ran)
            / (max(row["stop_s"] for row in ran) - max(self.warm, min(row["start_s"] for row in ran)))
        )

    def drops(self, after: bool):
        """Number of rows in the table `drops`, for the whole run or after the warm-up."""
        return sum(1 for t in self.run.drops["t_s"].to_list() if not after or t >= self.warm)

    def held(self, row, cause):
        """Fraction of a flow's lifetime with this cause."""
        return row[f"limit_{cause}_s"] / sum(row[f"limit_{name}_s"] for name in CAUSES)

    def limits(self, row):
        """Fractions of the time in which the flow was not idle, largest first; `None` for runs in the kernel, which does not report them."""
        if row["limit_cwnd_s"] is None:
            return [None] * (len(CAUSES) - 1)
        busy = sorted((row[f"limit_{name}_s"] for name in CAUSES if name != "idle"), reverse=True)
        return [seconds / sum(busy) for seconds in busy]

    def jain(self):
        got = [self.rate([row]) for row in self.rows]
        return sum(got) ** 2 / (len(got) * sum(x * x for x in got))

    @property
    def capacity(self):
        bps = float(self.run.scenario.to_engine()["network"]["bottleneck"]["rate"])
        return bps * 1448 / 1500


def sentences(truth: Truth) -> list[tuple[str, Callable[..., list[float | None]]]]:
    """Each sentence with the meaning of its numbers; words in it that act as names are parameters."""
    flows = {truth.name(row): row for row in truth.rows}

    def flow(number, label, *_):
        row = flows[f"{number} {label}"]
        sent, again = row["sent_packets"], row["retransmissions"]
        return [int(number), truth.rate([row]), row["completion_s"], row["mean_rtt_s"], row["min_rtt_s"],
                again, sent, again / sent, row["recoveries"], row["rtos"], *limits(row)]  # fmt: skip

    def limits(row):
        if row["limit_cwnd_s"] is None:
            return [None] * 5
        first, second, third = truth.limits(row)[:3]
        return [truth.held(row, "idle"), first, second, third, second]

    whole = float(truth.run.scenario.engine()["duration_ns"]) / 1e9
    return [
        (rf"Flow (\d+) \(([\w-]+)\) carried {AMOUNT}(?: and was done after {AMOUNT})?; its RTT was {AMOUNT} on average and {AMOUNT} at least"
         rf"(?:; it sent {COUNT} of {COUNT} packets again \({AMOUNT}\), in {COUNT} recover(?:y|ies) and after {COUNT} timeouts?)?"
         rf"(?:; {LIMITED})?\.", flow),
        (rf"flow (\d+) ([\w-]+): {LIMITED}", lambda number, label, *_: [int(number), *limits(flows[f"{number} {label}"])]),
        (rf"([a-z][\w-]*) {AMOUNT} in the {AMOUNT} that it was open \({AMOUNT} of the bytes\)",
         lambda label, *_: [truth.together(truth.group(label)), truth.span(truth.group(label)), truth.part(truth.group(label))]),
        (rf"([a-z][\w-]*) {AMOUNT} \({AMOUNT} of the bytes\)",
         lambda label, *_: [truth.together(truth.group(label)), truth.part(truth.group(label))]),
        (rf"{AMOUNT} together(?: over the {AMOUNT} from the first start to the last end)?(?:, {AMOUNT} of what the bottleneck can carry)?\.",
         lambda *_: [truth.together(truth.rows), truth.span(truth.rows), truth.together(truth.rows) / truth.capacity]),
        (rf"Jain's index over the flows is ({NUMBER})\.", lambda *_: [truth.jain()]),
        (rf"({NUMBER}) flows over a bottleneck that carries at most {AMOUNT} of payload, {AMOUNT} of network time, seed ({NUMBER})\.",
         lambda *_: [len(truth.rows), truth.capacity, whole, truth.run.seed]),
        (rf"The network dropped ({NUMBER}) packets(?:, ({NUMBER}) of them after the warm-up of {AMOUNT})?\.",
         lambda *_: [truth.drops(after=False), truth.drops(after=True), truth.warm]),
        (rf"begin at the end of the warm-up, {AMOUNT}; ({NUMBER}) packets were dropped before\.",
         lambda *_: [truth.warm, truth.drops(after=False) - truth.drops(after=True)]),
        (rf"Of ({NUMBER}) originals ({NUMBER}) are drawn", lambda sent, *_: [float(sent.replace(",", "")), 1500]),
        (rf"the whole run, the warm-up of {AMOUNT} included", lambda *_: [truth.warm]),
        (rf"after the warm-up of {AMOUNT}; before, ({NUMBER}) packets were dropped",
         lambda *_: [truth.warm, truth.drops(after=False) - truth.drops(after=True)]),
        (r"What held flow (\d+) ([\w-]+) back", lambda number, label: [flows[f"{number} {label}"]["flow"]]),
        (r"Time-sequence of flow (\d+) ([\w-]+)", lambda number, label: [flows[f"{number} {label}"]["flow"]]),
        (rf"seed (\d+), engine (?:linux )?[\d.]+, digest {truth.run.digest}", lambda *_: [truth.run.seed]),
        (r"profile linux-6", list),
    ]  # fmt: skip


def check_words(text: str, truth: Truth) -> int:
    """Check that each number in the text belongs to a known sentence and is correct; return their number."""
    found = 0
    text = re.sub(r"\s+", " ", text)
    for pattern, right in sentences(truth):
        for match in re.finditer(pattern, text):
            words = [word for word in match.groups() if word is not None]
            given = [word for word in match.groups() if word is None or re.fullmatch(rf"{AMOUNT}|{COUNT}", word)]
            values = right(*words)
            for word, value in zip(given, values, strict=True):
                assert word is None or agrees(word, value), (match.group(0), word, value)
                found += word is not None
        text = re.sub(pattern, "", text)
    left = re.search(r".{0,80}\d.{0,60}", text)
    assert left is None, f"a number of which nobody says where it is from: {left.group(0)!r}"
    return found


def flow_columns(truth: Truth):
    return {
        "goodput": lambda row: truth.rate([row]), "share": lambda row: truth.part([row]), "packets": lambda row: row["sent_packets"],
        "retransmitted": lambda row: row["retransmissions"], "timeouts": lambda row: row["rtos"], "recoveries": lambda row: row["recoveries"],
        "mean RTT": lambda row: row["mean_rtt_s"], "least RTT": lambda row: row["min_rtt_s"], "completed in": lambda row: row["completion_s"],
        "busy": "busy_s", "rwnd_limited": "rwnd_limited_s", "sndbuf_limited": "sndbuf_limited_s",
        **{label: lambda row, name=name: truth.held(row, name) for name, label in LABELS.items()},
    }  # fmt: skip


def link_columns(_: Truth):
    return {
        "arrived": "arrivals", "delivered": "delivered", "dropped: loss": "dropped_loss", "dropped: queue": "dropped_queue",
        "marked": "marked", "mean queue": "mean_packets", "mean wait": "mean_wait_s",
        "longest wait": "max_wait_s", "largest queue": lambda row: None if row["mean_packets"] is None else row["max_packets"],
    }  # fmt: skip


def recovery_columns(_: Truth):
    return {
        "from": "t_enter_s", "for": lambda row: None if row["t_exit_s"] is None else row["t_exit_s"] - row["t_enter_s"],
        "pipe at entry": "pipe_enter", "ssthresh": "ssthresh", "cwnd at entry": "cwnd_enter", "lost": "losses", "sent again": "retransmits",
        "lost again": "lost_retransmits", "largest burst": "max_burst", "cwnd at the end": "cwnd_after_exit", "pipe at the end": "pipe_exit",
    }  # fmt: skip


def performance_columns(truth: Truth):
    """Recomputed columns for the flows of each row."""
    rows = truth.run.rows("performance")

    def after(row):
        return truth.after(mine(row))

    def mine(row):
        if row["of"] == "flow":
            return [truth.rows[row["number"]]]
        return [one for one in truth.rows if row["group"] is None or one["group"] == row["group"]]

    def dropped(row):
        of = {one["flow"] for one in mine(row)}
        return sum(one["dropped_packets"] for one in rows if one["of"] == "flow" and one["number"] in of)

    def part(row):
        got = after(row)
        return None if got is None else truth.late(mine(row)) / truth.late(truth.rows)

    return {
        "goodput": after, "share": part, "dropped": dropped,
        "95 % RTT": "p95_rtt_s", "95 % delay": "p95_delay_s", "time to share": "time_to_share_s",
    }  # fmt: skip


def check_table(cells: list[list[str]], truth: Truth) -> int:
    """Check each cell of a table against its column and its row."""
    header, *body = cells
    kinds = {
        "flow": (truth.rows, flow_columns), "link": ([row for row in truth.links if row["arrivals"]], link_columns),
        "after the warm-up": (truth.run.rows("performance"), performance_columns),
    }  # fmt: skip
    rows, columns = (truth.run.rows("recoveries"), recovery_columns) if "ended by" in header else kinds[header[0]]
    made = columns(truth)
    found = 0
    assert len(body) == len(rows)
    for row, line in zip(rows, body, strict=True):
        for head, cell in list(zip(header, line, strict=True))[1:]:
            if head == "ended by":
                continue
            right = made[head]
            value = row[right] if isinstance(right, str) else right(row)
            assert (cell == "not over" and value is None) or agrees(cell, value), (line[0], head, cell, value)
            found += 1
    return found


def terminal_tables(printed: str) -> tuple[str, list[list[list[str]]]]:
    """Check the tables on a terminal, and the lines around them."""
    words, tables = [], []
    for line in printed.splitlines():
        if line.startswith(("┃", "│")):
            cells = [cell.strip() for cell in re.split("[┃│]", line)[1:-1]]
            tables += [[]] if line.startswith("┃") else []
            tables[-1].append(cells)
        elif not line.startswith(("┏", "┡", "└")):
            words.append(line)
    return "\n".join(words), tables


def joint(run: ackclock.Run, group: int | None = None, *, since_s: float = 0.0) -> tuple[float, float]:
    """Bits sent by a group's flows (`None`: all flows), each until its stop, and seconds from their first start to their last stop."""
    own = {row["number"]: row for row in run.rows("performance") if row["of"] == "flow"}
    mine = [row for row in run.rows("flows") if group in (None, row["group"])]
    ran = [row for row in mine if row["stop_s"] > max(since_s, row["start_s"])]
    if not ran:
        return 0.0, 0.0
    rates = [row["goodput_bps"] if since_s == 0 else own[row["flow"]]["goodput_bps"] for row in ran]
    starts = [max(since_s, row["start_s"]) for row in ran]
    bits = sum(rate * (row["stop_s"] - start) for rate, row, start in zip(rates, ran, starts, strict=True))
    return bits, max(row["stop_s"] for row in ran) - min(starts)
