"""`ackclock diff`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ackclock.cli import _run, _terminal
from ackclock.errors import InputError, quote

if TYPE_CHECKING:
    from ackclock.diff import Comparison


def diff(
    *,
    file: Path | None,
    seed: int,
    changes: Sequence[str],
    network: str,
    figure: Path | None,
    patterns: bool,
    reference: bool,
    drawn: bool,
    as_json: bool,
) -> None:
    """Compare one scenario, the patterns of loss, the measured cells, or scenarios drawn from the seed."""
    import ackclock
    from ackclock import diff as comparing

    if (file is not None) + patterns + reference + drawn != 1:
        raise InputError(
            "diff: found none of FILE, --patterns, --reference and --drawn, or more than one; allowed: one of them"
        )
    if network not in ("auto", "qdisc", "relay"):
        raise InputError(f"--network: found {quote(network)}; allowed: auto, qdisc, relay")
    if figure is not None:
        if figure.suffix not in (".svg", ".pdf", ".png"):
            raise InputError(f"--figure {figure}: found another ending; allowed: .svg, .pdf, .png")
        _terminal.writable_file(figure, "--figure")
    kind: Any = network
    if patterns:
        _all_patterns(seed, as_json=as_json)
        return
    if reference:
        _all_cells(seed, as_json=as_json)
        return
    if drawn:
        _all_drawn(seed, as_json=as_json)
        return
    assert file is not None
    scenario = ackclock.load(file)
    for text in changes:
        scenario = _run.change(scenario, text)
    result = _terminal.interruptible(lambda: comparing.compare(scenario, seed=seed, network=kind))
    if figure is not None:
        comparing.draw(result, figure)
    if as_json:
        _terminal.show_json(result.to_json())
        return
    _show(result)
    if figure is not None:
        typer.echo(f"written: {figure}")


def _show(result: Comparison) -> None:
    from rich.table import Table

    release = result.kernel.provenance["kernel"]["release"]
    if result.divergence is None:
        typer.echo(f"all {result.events} events are equal in the simulator and Linux {release}")
    else:
        typer.echo(f"{result.events} events are equal in the simulator and Linux {release}; then")
        typer.echo(f"  {result.divergence}")
    table = Table(title="agreement, flow 0", title_justify="left")
    for i, name in enumerate(("quantity", "simulator", "kernel", "difference")):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in result.agreement:
        table.add_row(row.quantity, _number(row.simulator), _number(row.kernel), _percent(row.difference))
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
    typer.echo("| lost | equal to the end of recovery | equal events | first divergence |")
    typer.echo("| --- | --- | --- | --- |")
    for name, result in rows:
        found = "none" if result.divergence is None else str(result.divergence)
        typer.echo(f"| {name} | {'yes' if result.recovered else 'no'} | {result.events} | {found} |")
    equal = sum(result.recovered for _, result in rows)
    typer.echo(f"\n{equal} of {len(rows)} are equal to the end of recovery.")


def _all_drawn(seed: int, *, as_json: bool) -> None:
    from ackclock.diff import compare
    from ackclock.fidelity.drawn import drawn, listed

    rows: list[tuple[str, Comparison]] = []
    kinds: list[str] = []
    todo = [*drawn(seed), *listed()]
    with _terminal.progress() as progress:
        for i, one in enumerate(todo):
            progress(one.name, i / len(todo))
            kinds.append(one.kind)
            rows.append((one.name, _terminal.interruptible(partial(compare, one.scenario, seed=1))))
    if as_json:
        _terminal.show_json([{"scenario": name, **result.to_json()} for name, result in rows])
        return
    typer.echo("| scenario | equal events | first divergence | retransmissions |")
    typer.echo("| --- | ---: | --- | ---: |")
    for name, result in rows:
        found = "none" if result.divergence is None else str(result.divergence)
        again = {row.quantity: row for row in result.agreement}["retransmissions"]
        counts = f"{_number(again.simulator)} / {_number(again.kernel)}"
        typer.echo(f"| {name} | {result.events} | {found} | {counts} |")
    release = rows[0][1].kernel.provenance["kernel"]["release"]
    equal = [
        f"{sum(result.divergence is None for _, result in of)} of {len(of)} {kind}"
        for kind in dict.fromkeys(kinds)
        if (of := [row for row, its in zip(rows, kinds, strict=True) if its == kind])
    ]
    typer.echo(f"\nequal to Linux {release} in every segment and every window: {', '.join(equal)}")


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
    typer.echo(
        "| cell | network | equal events | first divergence | goodput | mean srtt | mean cwnd | retransmissions |"
    )
    typer.echo("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for name, network, result in rows:
        found = "none" if result.divergence is None else str(result.divergence)
        by = {row.quantity: row for row in result.agreement}
        # Samples of a transfer go on after its end, differently.
        means = (
            ("goodput, Mbit/s",)
            if "completion, s" in by
            else ("goodput, Mbit/s", "mean srtt, ms", "mean cwnd, segments")
        )
        shares = [*(_percent(by[q].difference) for q in means), "–", "–"][:3]
        again = by["retransmissions"]
        counts = f"{_number(again.simulator)} / {_number(again.kernel)}"
        typer.echo(f"| {name} | {network} | {result.events} | {found} | {' | '.join(shares)} | {counts} |")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.2f} %"
