"""`ackclock diff`, and `ackclock compare` of two kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock.cli import _run, _terminal
from ackclock.cli._options import NOTHING, Controllers, Json, Kernels, file_name, use, whole_number
from ackclock.errors import InputError, one_of, quote
from ackclock.text import change

if TYPE_CHECKING:
    from ackclock.diff import Comparison
    from ackclock.fidelity.drawn import Drawn
    from ackclock.linux import NetworkKind
    from ackclock.scenario import Scenario


def diff(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Scenario (TOML).", show_default=False)] = None,
    seed: Annotated[
        int, typer.Option(parser=whole_number(0, 2**63 - 1), metavar="N", help="Seed of both backends.")
    ] = 1,
    change: Annotated[
        list[str],
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value; with --drawn in every scenario. Repeatable."),
    ] = NOTHING,
    network: Annotated[
        str, typer.Option(metavar="relay|qdisc|auto", help="relay: the simulator's links and losses.")
    ] = "relay",
    figure: Annotated[
        Path | None, typer.Option(parser=file_name, metavar="FILE", help="Draw both windows (svg, pdf, png).")
    ] = None,
    patterns: Annotated[
        bool, typer.Option("--patterns", help="Run twenty patterns of loss instead of a file.")
    ] = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Run the measured cells of `ackclock fidelity`.")
    ] = False,
    drawn: Annotated[
        bool, typer.Option("--drawn", help="Run scenarios drawn from the seed, family by family.")
    ] = False,
    family: Annotated[
        list[str], typer.Option("--family", metavar="NAME", help="With --drawn: only this family. Repeatable.")
    ] = NOTHING,
    count: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, 10_000), metavar="N", help="With --drawn: number of scenarios of each family."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, 1024), metavar="N", help="With --drawn or --seeds: guests side by side."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(5, 10_000),
            metavar="N",
            help="Run this many seeds on both, and compare the distributions of each flow's goodput, retransmissions and RTT.",
        ),
    ] = None,
    kernel: Kernels = None,
    controller: Controllers = NOTHING,
    as_json: Json = False,
) -> None:
    """Show where the simulator and the real Linux TCP first differ. Both run the same scenario."""
    use(kernel)
    from ackclock import diff as comparing
    from ackclock.scenario import load

    if (file is not None) + patterns + reference + drawn != 1:
        raise InputError(
            "diff: found none of FILE, --patterns, --reference and --drawn, or more than one; allowed: one of them"
        )
    for option, given in (("--family", family), ("--count", count)):
        if given and not drawn:
            raise InputError(f"{option}: found it without --drawn; allowed: together with --drawn")
    if change and (patterns or reference):
        raise InputError("--set: found it beside --patterns or --reference; allowed: with FILE or --drawn")
    if jobs and not drawn and seeds is None:
        raise InputError("--jobs: found it without --drawn and --seeds; allowed: together with one of them")
    if seeds is not None and (file is None or figure is not None):
        raise InputError("--seeds: found it without a file or beside --figure; allowed: with FILE")
    if controller and file is None:
        raise InputError("--controller: found it without a file; allowed: with FILE")
    _check_network(network)
    if figure is not None:
        if figure.suffix not in (".svg", ".pdf", ".png"):
            raise InputError(f"--figure {figure}: found another ending; allowed: .svg, .pdf, .png")
        from ackclock.plot.style import needed

        needed(f"--figure {figure}")
        _terminal.writable_file(figure, "--figure")
    kind: Any = network
    if patterns:
        _all_patterns(seed, as_json=as_json)
        return
    if reference:
        _all_cells(seed, as_json=as_json)
        return
    if drawn:
        _all_drawn(seed, family, count, jobs or _terminal.cpus(), changes=_run.changes(change), as_json=as_json)
        return
    assert file is not None
    scenario = load(file, changes=_run.changes(change))
    for text in controller:
        scenario = _run.controlled(scenario, text)
    if seeds is not None:
        _over_seeds(scenario, seeds, seed, kind, jobs or _terminal.cpus(), None, as_json=as_json)
        return
    result = _terminal.interruptible(
        lambda: comparing.compare(scenario, seed=seed, network=kind), doing=lambda: "in Linux and in the simulator"
    )
    if figure is not None:
        comparing.draw(result, figure)
    if as_json:
        _terminal.show_json(result.to_json())
        return
    _show(result)
    if figure is not None:
        _terminal.say(f"written: {figure}")


def kernels(
    names: Sequence[str],
    *,
    file: Path | None,
    seeds: int | None,
    network: str,
    drawn: bool,
    families: Sequence[str],
    count: int | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compare two kernels on one scenario, or on randomly drawn ones."""
    from ackclock import diff as comparing
    from ackclock import linux
    from ackclock.scenario import load

    if len(names) != 2 or names[0] == names[1]:
        raise InputError(f"--kernel: found {len(set(names))} names; allowed: two, of different kernels")
    for name in names:
        linux.check_known(name)
    if (file is None) != drawn:
        raise InputError("compare: found a scenario and --drawn, or neither; allowed: one of them, with two kernels")
    for option, given in (("--family", families), ("--count", count)):
        if given and not drawn:
            raise InputError(f"{option}: found it without --drawn; allowed: together with --drawn")
    _check_network(network)
    kind: Any = network
    pair = (names[0], names[1])
    slots = jobs or _terminal.cpus()
    if drawn:
        if seeds is not None:
            raise InputError("--seeds: found it beside --drawn; allowed: with a scenario")
        _all_drawn(1, families, count, slots, pair=pair, as_json=as_json)
        return
    assert file is not None
    scenario = load(file)
    if seeds is not None:
        _over_seeds(scenario, seeds, 1, kind, slots, pair, as_json=as_json)
        return
    result = _terminal.interruptible(
        lambda: comparing.compare(scenario, network=kind, kernels=pair), doing=lambda: f"in {pair[0]} and in {pair[1]}"
    )
    if as_json:
        _terminal.show_json(result.to_json())
    else:
        _show(result)


def _check_network(network: str) -> None:
    if network not in ("auto", "qdisc", "relay"):
        raise InputError(f"--network: found {quote(network)}; allowed: auto, qdisc, relay")


def _over_seeds(
    scenario: Scenario,
    seeds: int,
    first_seed: int,
    network: NetworkKind,
    jobs: int,
    pair: tuple[str, str] | None,
    *,
    as_json: bool,
) -> None:
    from rich.table import Table

    from ackclock.diff import over_seeds

    with _terminal.progress() as progress:
        found = _terminal.interruptible(
            lambda: over_seeds(
                scenario, seeds=seeds, first_seed=first_seed, network=network, jobs=jobs, kernels=pair, told=progress
            )
        )
    if as_json:
        _terminal.show_json(found.to_json())
        return
    table = Table(title=f"{' and '.join(found.names)}, {seeds} seeds", title_justify="left", caption_justify="left")
    for i, name in enumerate(("flow", "quantity", *found.names, "distance", "chance", "")):
        table.add_column(name, justify="left" if i in (1, 6) else "right", overflow="fold")
    for row in found.rows:
        flow = "all" if row.flow is None else str(row.flow)
        low, high = (_ranged(side) for side in (row.first, row.second))
        said = "differs" if row.differs else ""
        table.add_row(flow, row.quantity, low, high, f"{row.distance:.2f}", f"{row.chance:.4f}", said)
    table.caption = (
        "Mean, and the least to the greatest. Distance: Kolmogorov and Smirnov's. Chance: how often a random division of the values is "
        "as far apart. Differs: too seldom for chance (5 % for all rows together, Holm)."
    )
    if found.same:
        table.caption = f"All {seeds} seeds gave one and the same run on a side: one run stands against another, and chances mean nothing."
    _terminal.show(table)
    wrong = sum(row.differs for row in found.rows)
    if not found.same:
        _terminal.say(f"{wrong} of {len(found.rows)} distributions differ")


def _ranged(values: Sequence[float]) -> str:
    mean = sum(values) / len(values)
    return f"{_number(mean)} ({_number(min(values))} to {_number(max(values))})"


def _between(names: tuple[str, str], release: str) -> str:
    from ackclock.diff import BACKENDS

    return f"the simulator and Linux {release}" if names == BACKENDS else f"the kernels {names[0]} and {names[1]}"


def _show(result: Comparison) -> None:
    from rich.table import Table

    from ackclock.diff import BACKENDS

    where = _between(result.names, result.kernel.provenance["kernel"]["release"])
    several = len(result.flows) > 1
    events = f"{result.events} events" + (" of flow 0" if several else "")
    if result.divergence is None and not result.events:
        _terminal.say(f"flow 0 has no ACK and no transmission to compare in {where}")
    elif result.divergence is None:
        _terminal.say(f"all {events} are equal in {where}")
    else:
        _terminal.say(f"{events} are equal in {where}; then")
        _terminal.say(f"  {result.divergence}")
    for flow in result.flows if several else ():
        _terminal.say(
            f"flow {flow.number}: {flow.events} events equal"
            + (f"; then {flow.text}" if flow.text else ", as all of it")
        )
    table = Table(title="agreement, flow 0", title_justify="left", caption_justify="left")
    mine, base = result.names if result.names == BACKENDS else result.names[::-1]
    difference = f"{mine} minus {base}"
    for i, name in enumerate(("quantity", *result.names, difference)):
        table.add_column(name, justify="left" if i == 0 else "right", overflow="fold")
    for row in result.agreement:
        table.add_row(row.quantity, _number(row.simulator), _number(row.kernel), change(row.difference))
    if any(row.quantity.startswith("mean ") for row in result.agreement):
        table.caption = "means and quantiles are of the instants at which both sampled the flow"
    _terminal.show(table)


def _all_patterns(seed: int, *, as_json: bool) -> None:
    from ackclock.diff import PATTERNS, compare

    rows: list[tuple[str, Comparison]] = []
    with _terminal.progress() as progress:
        for i, pattern in enumerate(PATTERNS):
            progress(pattern.name, i / len(PATTERNS))
            rows.append((pattern.name, compare(pattern.scenario(), seed=seed)))
    if as_json:
        _terminal.show_json([{"pattern": name, **result.to_json()} for name, result in rows])
        return
    _terminal.say("| lost | equal to the end of recovery | equal events | first divergence |")
    _terminal.say("| --- | --- | --- | --- |")
    for name, result in rows:
        found = "none" if result.divergence is None else str(result.divergence)
        _terminal.say(f"| {name} | {'yes' if result.recovered else 'no'} | {result.events} | {found} |")
    equal = sum(result.recovered for _, result in rows)
    _terminal.say(f"\n{equal} of {len(rows)} are equal to the end of recovery.")


def _all_drawn(
    seed: int,
    families: Sequence[str],
    count: int | None,
    jobs: int,
    *,
    pair: tuple[str, str] | None = None,
    changes: Mapping[str, Any] | None = None,
    as_json: bool,
) -> None:
    from ackclock.diff import errors, judge, table
    from ackclock.diff._judge import goodput_head
    from ackclock.fidelity.drawn import BULKS, LOSSY, TRANSFERS, drawn, listed
    from ackclock.fidelity.families import BY_NAME, COUNT, FAMILIES, family
    from ackclock.fidelity.mixtures import COUNT as MIXTURES
    from ackclock.fidelity.mixtures import mixtures

    usual = {"transfer": TRANSFERS, "bulk": BULKS, "lossy": LOSSY, "listed": None, **dict.fromkeys(FAMILIES, COUNT)}
    usual["mixture"] = MIXTURES
    for name in families:
        if name not in usual:
            raise InputError(f"--family: found {quote(name)}; allowed: {one_of(name, list(usual))}")
    todo: list[Drawn] = []
    for name in dict.fromkeys(families or [name for name in usual if name not in BY_NAME]):
        many = usual[name] if count is None else count
        if name in FAMILIES:
            todo += family(name, seed, many or COUNT)
        elif name == "mixture":
            todo += mixtures(seed, many or MIXTURES)
        elif name == "listed":
            todo += list(listed())[:many]
        else:
            key = name if name == "lossy" else f"{name}s"
            todo += drawn(seed, **{**dict.fromkeys(("transfers", "bulks", "lossy"), 0), key: many or 0})
    if changes:
        todo = [replace(one, scenario=one.scenario.set_all(dict(changes))) for one in todo]
    with _terminal.progress() as progress:
        rows = _terminal.interruptible(partial(judge, todo, jobs=jobs, told=progress, kernels=pair))
    if as_json:
        _terminal.show_json([row.to_json() for row in rows])
        return
    _terminal.say(table(rows, pair))
    different = [row for row in rows if not row.identical]
    different.sort(key=lambda row: -abs(row.effect or 0))
    if found := errors(rows):
        _terminal.say(f"\n{found}")
    if different:
        goodput = "goodput" if pair is None else goodput_head(pair)
        _terminal.say(f"\n| scenario | equal events | first difference | retransmissions | {goodput} |")
        _terminal.say("| --- | ---: | --- | ---: | ---: |")
    for row in different:
        if row.refused:
            _terminal.say(f"| {row.name} | – | refused: {row.text} | – | – |")
            continue
        counts = " / ".join(f"{n:,}" for n in row.retransmissions)
        _terminal.say(f"| {row.name} | {row.events} | {row.text} | {counts} | {change(row.effect)} |")
    release = next((row.kernel for row in rows if row.kernel), "")
    equal, ran = sum(row.identical for row in rows), sum(not row.refused for row in rows)
    said = f"are equal to Linux {release}" if pair is None else f"with {pair[1]} are equal to those with {pair[0]}"
    first = sum(row.first for row in rows if not row.refused)
    _terminal.say(
        f"\n{equal} of {ran} {said} in every segment and every window of every flow; {first} in those of flow 0"
    )
    if given := sum(row.identical and row.given for row in rows):
        _terminal.say(
            f"{given} of them with BBR, which drew the phases of its cycle from the same stream on both sides"
        )


def _all_cells(seed: int, *, as_json: bool) -> None:
    from ackclock.diff import compare
    from ackclock.fidelity.cases import cases

    rows: list[tuple[str, str, Comparison]] = []
    todo = cases()
    with _terminal.progress() as progress:
        for i, case in enumerate(todo):
            progress(case.name, i / len(todo))
            result = _terminal.interruptible(partial(compare, case.scenario, seed=seed, network=case.network))
            rows.append((case.name, case.network, result))
    if as_json:
        _terminal.show_json([{"cell": name, "network": network, **r.to_json()} for name, network, r in rows])
        return
    _terminal.say(
        "| cell | network | equal events | first divergence | goodput | mean srtt | mean cwnd | retransmissions |"
    )
    _terminal.say("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for name, network, result in rows:
        found = "none" if result.divergence is None else str(result.divergence)
        by = {row.quantity: row for row in result.agreement}
        means = ("goodput, Mbit/s", "mean srtt, ms", "mean cwnd, segments")
        shares = [change(by[q].difference) if q in by else "–" for q in means]
        again = by["retransmissions"]
        counts = f"{_number(again.simulator)} / {_number(again.kernel)}"
        _terminal.say(f"| {name} | {network} | {result.events} | {found} | {' | '.join(shares)} | {counts} |")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:.4g}"
