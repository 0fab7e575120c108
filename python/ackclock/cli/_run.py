"""`ackclock run` and `ackclock report`.

Length: every option is checked before the run; then a table on the terminal for each kind of result.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _files
from ackclock._files import OWN, reason, staged
from ackclock._results.result import check_folder, names
from ackclock._results.summary import dropped, players, quantile, warmed_up, without_limit
from ackclock.cli import _terminal
from ackclock.cli._sheet import Sheet
from ackclock.errors import InputError, ScenarioError, UnavailableError, quote, shown
from ackclock.scenario._toml import read_toml
from ackclock.text import NONE, rate, seconds, share

if TYPE_CHECKING:
    from ackclock._results.result import Run
    from ackclock.formats import Measured
    from ackclock.scenario import CapturePoint, Scenario

BACKENDS = ("sim", "linux")

MOST_PARTS = 100
"""Of a dotted key."""

SHOWN = 20
"""Rows of a table on the terminal."""

TOLD = 4
"""Flows of which it says in a sentence what held them back."""


def run(
    *,
    file: Path,
    seed: int,
    changes: Sequence[str],
    out: Path | None,
    as_json: bool,
    trace: str | None,
    pcap: Path | None,
    pcap_at: str | None,
    memory_limit: str,
    cpu_limit: str = "1 h",
    backend: str = "sim",
    network: str | None = None,
    wall_limit: int | None = None,
    report: Path | None = None,
    plots: Sequence[str] = (),
    width: str = "double",
    beside: Sequence[str] = (),
    snaplen: int | None = None,
    controllers: Sequence[str] = (),
    own_code: bool = False,
) -> None:
    """Read, check everything that can be checked, run, print, write."""
    # Length: each option is checked before anything runs
    from ackclock import units
    from ackclock._results.run import run as simulate
    from ackclock.scenario import load
    from ackclock.scenario._bursts import hangs_on_bursts

    drawn = _check_drawings(report, plots, width)
    others = _read_beside(beside, drawn=report is not None or bool(plots))

    try:
        limit = units.whole(memory_limit, units.SIZE)
    except ScenarioError as error:
        raise error.within("--memory-limit") from None
    try:
        cpu_limit_s = units.whole(cpu_limit, units.DURATION) / 1e9
    except ScenarioError as error:
        raise error.within("--cpu-limit") from None
    if not cpu_limit_s:
        raise InputError(f"--cpu-limit: found {quote(cpu_limit)}; allowed: a duration above 0")
    if backend not in BACKENDS:
        raise InputError(f"--backend: found {quote(backend)}; allowed: {', '.join(BACKENDS)}")
    for option, value in (("--network", network), ("--wall-limit", wall_limit)):
        if backend == "sim" and value is not None:
            raise InputError(f"{option}: found {quote(value)}; allowed: with --backend linux only")
    if network not in (None, "auto", "qdisc", "relay"):
        raise InputError(f"--network: found {quote(network)}; allowed: auto, qdisc, relay")
    scenario = load(file, own_code=own_code)
    for text in changes:
        scenario = change(scenario, text)
    for text in controllers:
        scenario = controlled(scenario, text)
    if trace is not None:
        try:
            scenario = scenario.set("record.trace", trace)
        except ScenarioError as error:
            raise ScenarioError(key="--trace", found=error.found, allowed=error.allowed) from None
    if out is not None:
        _terminal.writable_folder(out)
        try:
            check_folder(out)
        except InputError as error:
            raise InputError(f"--out {error}") from None
    if pcap_at not in (None, "sender", "receiver"):
        raise InputError(f"--pcap-at: found {quote(pcap_at)}; allowed: sender, receiver")
    if pcap_at is not None and pcap is None:
        raise InputError(f"--pcap-at: found {quote(pcap_at)} without --pcap; allowed: together with --pcap FILE")
    if snaplen is not None and (pcap is None or backend == "linux"):
        found = "without --pcap" if pcap is None else "with --backend linux, whose captures hold headers alone"
        raise InputError(f"--snaplen: found {snaplen} {found}; allowed: together with --pcap, in the simulator")
    if pcap is not None:
        _check_capture(pcap, out)
    # all inputs are known by now
    for option, place in (("--pcap", pcap), ("--report", report), *(("--plot", p) for p in drawn)):
        if place is not None:
            _files.check_file(place, f"{option} {place}")
            if out is not None and place.resolve().parent == out.resolve() and place.name in names():
                raise InputError(f"{option} {place}: found a file that --out writes; allowed: another name")
    if report is not None or drawn:
        from ackclock.report.run import watched

        scenario = watched(scenario, trace=report is not None)
    scenario = limited(scenario)
    part = 0.0

    def tell(done: float) -> None:
        nonlocal part
        part = done

    if backend == "sim" and (said := hangs_on_bursts(scenario)) is not None:
        _terminal.warn(f"ackclock: {shown(str(file))}: {said}")
    side: CapturePoint = "receiver" if pcap_at == "receiver" else "sender"
    if pcap is not None:
        _tell_room(scenario, pcap)
    with _capture(pcap) as captured:
        try:
            result = _terminal.interruptible(
                (lambda: _in_linux(scenario, seed, captured, side, network, wall_limit))
                if backend == "linux"
                else lambda: simulate(
                    scenario,
                    seed=seed,
                    pcap=captured,
                    pcap_at=side,
                    snaplen=snaplen,
                    memory_limit=limit,
                    cpu_limit_s=cpu_limit_s,
                    progress=tell,
                ),
                doing=lambda: "in Linux" if backend == "linux" else f"simulating, {part * 100:.0f} %",
            )
        except ScenarioError as error:
            named = {"memory_limit": "--memory-limit", "cpu_limit": "--cpu-limit"}.get(error.key)
            if named is None:
                raise
            raise ScenarioError(key=named, found=error.found, allowed=error.allowed) from None
    if out is not None:
        result.write(out)
    asked = [*(f"--set={text}" for text in changes), *(f"--controller={text}" for text in controllers)]
    asked += [f"--trace={trace}"] * (trace is not None) + ["--own-code"] * own_code
    asked += [f"--backend={backend}"] * (backend != "sim") + [f"--network={network}"] * (network is not None)
    again = shlex.join(["ackclock", "run", str(file), "--seed", str(seed), *asked])
    command = f"{again} --report {shlex.quote(str(report))}" + "".join(f" --beside {shlex.quote(b)}" for b in beside)
    pages = _draw(result, report, plots, width, others, command=command, name=file.name)
    if as_json:
        _terminal.show_json(result.summary())
        return
    _terminal.show(*tables(result))
    _terminal.show(f"seed {result.seed}, engine {result.engine}, digest {result.digest}")
    for written in (out, pcap, *pages):
        if written is not None:
            _terminal.show(f"written: {written}")


def limited(scenario: Scenario) -> Scenario:
    """The same scenario, whose flows tell what held them back; that changes nothing in the run."""
    from ackclock import units

    if units.whole(scenario.record.limits_interval, units.DURATION):
        return scenario
    if sum(group.count for group in scenario.flows) > SHOWN:
        return scenario
    return scenario.set("record.limits_interval", scenario.duration)


def report(*, folder: Path, page: Path | None, plots: Sequence[str], width: str, beside: Sequence[str] = ()) -> None:
    """Draw a run that was written before."""
    from ackclock._results.result import Run

    if page is None and not plots:
        raise InputError("report: found nothing to write; allowed: --report FILE.html, --plot FILE, or both")
    others = _read_beside(beside, drawn=True)
    result = Run.read(folder)
    _check_drawings(page, plots, width)
    command = shlex.join(["ackclock", "report", str(folder), "--report", str(page), *(f"--beside={b}" for b in beside)])
    for written in _draw(result, page, plots, width, others, command=command, name=f"{folder.name}.toml"):
        _terminal.show(f"written: {written}")


def _check_drawings(report: Path | None, plots: Sequence[str], width: str) -> list[Path]:
    """Refuse what cannot be drawn or written before the run; the files of `plots`."""
    if report is not None:
        _terminal.writable_file(report, "--report")
    if not plots:
        return []
    from ackclock.plot import columns

    if width not in columns.WIDTHS:
        raise InputError(f"--plot-width: found {quote(width)}; allowed: {', '.join(columns.WIDTHS)}")
    files = [columns.check(wanted)[2] for wanted in plots]
    for file in files:
        _terminal.writable_file(file, "--plot")
    return files


def _read_beside(beside: Sequence[str], *, drawn: bool) -> list[Measured]:
    """What was measured elsewhere, before anything runs."""
    if not beside:
        return []
    if not drawn:
        raise InputError(f"--beside: found {quote(beside[0])} and nothing to draw; allowed: with --report or --plot")
    from ackclock import formats

    try:
        return [formats.read(name) for name in beside]
    except InputError as error:
        raise InputError(f"--beside {error}") from None


def _draw(
    result: Run,
    report: Path | None,
    plots: Sequence[str],
    width: str,
    beside: Sequence[Measured],
    *,
    command: str,
    name: str,
) -> list[Path]:
    written = []
    if report is not None:
        from ackclock.report import write
        from ackclock.report.run import page

        made = page(result, command=command, name=name, beside=beside)
        written.append(write(made, report, what=f"--report {report}"))
    if plots:
        from ackclock.plot import columns

        written += [columns.write(result, wanted, width=width, beside=beside) for wanted in plots]
    return written


def _in_linux(
    scenario: Scenario, seed: int, pcap: Path | None, side: CapturePoint, network: str | None, wall_limit: int | None
) -> Run:
    from ackclock import linux

    kind: Any = network or "auto"
    return linux.run(scenario, seed=seed, network=kind, pcap=pcap, pcap_at=side, wall_limit_s=wall_limit)


def _check_capture(pcap: Path, out: Path | None) -> None:
    place = pcap.resolve()
    if out is not None:
        folder = out.resolve()
        if place == folder:
            raise InputError(f"--pcap {pcap}: found the folder of --out; allowed: another file")
        if place.parent == folder and not folder.exists():
            return  # made with the folder, which can be
    _terminal.writable_file(pcap, "--pcap")


def _tell_room(scenario: Scenario, pcap: Path) -> None:
    """Say it before the run if the capture may not fit: it would take the room of all who write there, and be lost."""
    from ackclock import _engine
    from ackclock._results.run import engine_call, sizes

    if pcap.exists() and not pcap.is_file():
        return
    folder = next(place for place in pcap.resolve().parents if place.is_dir())
    needed = engine_call(lambda: _engine.estimate_capture(scenario.compiled))
    free = shutil.disk_usage(folder).free
    if needed > free:
        much, little = sizes(needed, free)
        _terminal.warn(f"ackclock: --pcap {shown(str(pcap))}: may take {much}, and {little} are free")


@contextmanager
def _capture(pcap: Path | None) -> Iterator[Path | None]:
    """Where the engine writes: beside the file, which gets its name only when it is whole."""
    if pcap is None:
        yield None
        return
    place = pcap.resolve()
    try:
        if pcap.exists() and not pcap.is_file():  # devices and pipes are written as they are
            yield pcap
            return
        with staged(place.parent, marks=OWN) as part:
            yield part / place.name
    except InputError as error:
        if not str(error).startswith("capture: "):
            raise
        raise UnavailableError(f"--pcap {pcap}: cannot be written ({reason(error)})") from None


def change(scenario: Scenario, text: str) -> Scenario:
    """Apply one `--set KEY=VALUE`: the value as in TOML, or bare text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set: found {quote(text)}; allowed: KEY=VALUE, e.g. flows.0.congestion_control=reno")
    if key.count(".") > MOST_PARTS:
        raise InputError(f"--set: found a key of {key.count('.') + 1} parts; allowed: at most {MOST_PARTS}")
    for part in key.strip().split("."):
        if part.isdecimal() and part != str(int(part[:20])):
            raise InputError(f"--set: {key.strip()}: found {quote(part)}; allowed: a position without leading zeros")
    try:
        return scenario.set(key.strip(), _value(value.strip()))
    except ScenarioError as error:
        raise error.read_from("--set") from None


def controlled(scenario: Scenario, text: str) -> Scenario:
    """Apply one `--controller`: the class takes the flows over, all or those that ask for it by name."""
    from ackclock.own import named
    from ackclock.scenario._parts import OWN

    name, equals, file = text.rpartition("=")
    if not named(file) or (equals and not name):
        raise InputError(f"--controller: found {quote(text)}; allowed: FILE.py:CLASS, or NAME=FILE.py:CLASS")
    wanted = [
        i
        for i, group in enumerate(scenario.flows)
        if (group.congestion_control == f"{OWN}{name}" if equals else not group.is_plain)
    ]
    if not wanted:
        asked = ", ".join(group.congestion_control for group in scenario.flows)
        raise InputError(
            f"--controller: found {quote(text)} for flows of {asked}; allowed: a name that a flow asks for"
        )
    changes: dict[str, Any] = {}
    for i in wanted:
        changes[f"flows.{i}.congestion_control"] = str(Path(file).resolve())
        if not equals and scenario.flows[i].congestion_control_options:
            changes[f"flows.{i}.congestion_control_options"] = {}
    try:
        return scenario.set_all(changes)
    except ScenarioError as error:
        raise error.read_from("--controller") from None


def _value(text: str) -> Any:
    if "\n" in text:
        return text
    try:
        return read_toml(f"value = {text}")[0]["value"]
    except ValueError:
        return text


ROOMY = 100
"""Columns of a terminal from which on headings stand in one line and links have their full names."""


def tables(result: Run) -> list[Sheet]:
    """What the terminal shows of a run."""
    # as plain rows: polars takes longer to import than a short run takes
    found = [_flows(result)]
    for name, make in (
        ("performance", _performance),
        ("fetches", _fetches),
        ("transaction_summary", _transactions),
        ("chunks", _video),
        ("datagrams", _datagrams),
    ):
        rows = result.rows(name)
        if rows:
            found.append(make(result, rows))
    found.append(_links(result))
    return found


def _flows(result: Run) -> Sheet:
    flows = result.rows("flows")
    labels = [group.label for group in result.scenario.flows]
    table = _table("flows", ["flow", "goodput", "packets", "retransmitted", "timeouts", "mean RTT", "completed in"])
    for row in flows[:SHOWN]:
        table.add_row(
            f"{row['flow']} {labels[row['group']]}",
            rate(row["goodput_bps"]),
            f"{row['sent_packets']:,}",
            f"{row['retransmissions']:,}",
            f"{row['rtos']:,}",
            seconds(row["mean_rtt_s"]),
            seconds(row["completion_s"]),
        )
    table = _more(table, flows)
    for what in _limits(flows, labels):
        table.say(what)
    if warmed_up(result):
        table.say(
            f"the whole run, the warm-up of {result.scenario.record.warm_up} included; goodput while a flow was open",
        )
    return table


def _limits(flows: list[dict[str, Any]], labels: Sequence[str]) -> list[str]:
    """What held each flow back, where there are few."""
    from ackclock._results.limits import held, sentence

    said = []
    for row in flows[:TOLD]:
        found = held(row)
        what = sentence(found) if found is not None else ""
        if what:
            said.append(what if len(flows) == 1 else f"flow {row['flow']} {labels[row['group']]}: {what}")
    return said


def _performance(result: Run, rows: list[dict[str, Any]]) -> Sheet:
    head = ["after the warm-up", "goodput", "share", "95 % RTT", "95 % delay", "dropped", "time to share"]
    table = _table("performance", head)
    shown = [row for row in rows if row["of"] != "flow"] if len(rows) > SHOWN else rows
    labels = [group.label for group in result.scenario.flows]
    for row in shown[-SHOWN:]:
        name = "all" if row["group"] is None else labels[row["group"]]
        table.add_row(
            f"{row['number']} {name}" if row["of"] == "flow" else name,
            rate(row["goodput_bps"]),
            NONE if row["share"] is None else share(row["share"]),
            seconds(row["p95_rtt_s"]),
            seconds(row["p95_delay_s"]),
            f"{row['dropped_packets']:,}",
            seconds(row["time_to_share_s"]),
        )
    table.say("goodput while a flow was open; of groups and of all, the sum of their flows")
    return table


def _fetches(_: Run, rows: list[dict[str, Any]]) -> Sheet:
    table = _table("fetches", ["quantile", "connected", "first byte", "total"])
    done = [row for row in rows if row["done"]]
    columns = [
        sorted(row[name] for row in done if row[name] is not None) for name in ("connect_s", "first_byte_s", "total_s")
    ]
    for part in (0.25, 0.5, 0.75, 0.95):
        table.add_row(f"{part:.0%}", *(seconds(quantile(column, part)) for column in columns))
    table.say(f"{len(done):,} of {len(rows):,} fetches done")
    return table


def _transactions(result: Run, rows: list[dict[str, Any]]) -> Sheet:
    head = ["transactions", "window", "done", "of", "mean", "median", "95 %", "99 %", "most"]
    table = _table("transactions", head)
    labels = [group.label for group in result.scenario.flows]
    for row in rows[:SHOWN]:
        times = (seconds(row[name]) for name in ("mean_s", "p50_s", "p95_s", "p99_s", "max_s"))
        table.add_row(
            labels[row["group"]], f"{row['initial_window']}", f"{row['completed']:,}", f"{row['started']:,}", *times
        )
    left = (
        sum(row["incomplete"] for row in rows),
        sum(row["failed"] for row in rows),
        sum(row["refused"] for row in rows),
    )
    more = [
        f"{n:,} {what}" for n, what in zip(left, ("incomplete at the end", "failed", "turned away"), strict=True) if n
    ]
    table = _more(table, rows)
    table.say(", ".join(more))
    return table


def _video(result: Run, rows: list[dict[str, Any]]) -> Sheet:
    made = players(rows)
    groups = {row["flow"]: row["group"] for row in result.rows("flows")}
    table = _table("video", ["player", "chunks", "bitrate", "switches", "first picture", "stalls", "stalled"])
    for row in made[:SHOWN]:
        workload = result.scenario.flows[groups[row["flow"]]].workload
        kind = getattr(getattr(workload, "adaptation", None), "kind", "video")
        table.add_row(
            f"{row['flow']} {kind}",
            f"{row['chunks']:,}",
            rate(row["bitrate_bps"]),
            f"{row['switches']:,}",
            seconds(row["first_picture_s"]),
            f"{row['stalls']:,}",
            seconds(row["stall_s"]),
        )
    return _more(table, made)


def _datagrams(result: Run, rows: list[dict[str, Any]]) -> Sheet:
    groups = {row["flow"]: row["group"] for row in result.rows("flows")}
    table = _table("datagrams", ["flow", "sent", "lost", "mean delay", "95 % delay", "jitter"])
    for row in rows[:SHOWN]:
        table.add_row(
            f"{row['flow']} {result.scenario.flows[groups[row['flow']]].label}",
            f"{row['sent']:,}",
            f"{row['lost']:,}",
            seconds(row["mean_delay_s"]),
            seconds(row["p95_delay_s"]),
            seconds(row["jitter_s"]),
        )
    return _more(table, rows)


def _links(result: Run) -> Sheet:
    links = result.rows("links")
    table = _table(
        "links", ["link", "delivered", "dropped: loss", "dropped: queue", "marked", "mean queue", "largest queue"]
    )
    busy = [row for row in links if row["arrivals"] > 0]
    for row in busy[:SHOWN]:
        name = shown(row["name"])
        if _terminal.width() < ROOMY:
            name = name.replace(".forward", " →").replace(".backward", " ←")
        table.add_row(
            name,
            f"{row['delivered']:,}",
            f"{row['dropped_loss']:,}",
            f"{row['dropped_queue']:,}",
            f"{row['marked']:,}",
            "–" if row["mean_packets"] is None else f"{row['mean_packets']:.1f}",
            "–" if row["mean_packets"] is None else str(row["max_packets"]),
        )
    table = _more(table, busy)
    if warmed_up(result):
        before = dropped(links)[1]
        table.say(f"after the warm-up of {result.scenario.record.warm_up}; before, {before:,} packets were dropped")
    if wait := without_limit(result):
        table.say(
            f"the bottleneck's queue has no limit, as the scenario names none: packets waited up to {seconds(wait)}",
        )
    return table


def _table(title: str, columns: Sequence[str]) -> Sheet:
    return Sheet(title, columns, narrow=_terminal.width() < ROOMY)


def _more(table: Sheet, rows: Sequence[dict[str, Any]]) -> Sheet:
    if len(rows) > SHOWN:
        table.say(f"and {len(rows) - SHOWN:,} more (--json or --out show all)")
    return table
