"""An attack's files: `worst.toml`, a runnable scenario, `attack.json`, `junit.xml` and the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackclock import report
from ackclock.attack.attack import Attack, Found
from ackclock.attack.confirm import Confirmed
from ackclock.attack.explain import Parting, figures
from ackclock.attack.runs import Scored
from ackclock.attack.shrink import NEIGHBOURS
from ackclock.text import csv, xml
from ackclock.text import share as told_share

SCHEMA = "ackclock.attack/1"

WRITTEN = ("worst.toml", "attack.json", "junit.xml", "report.html", "figures", "own")
MARKS = ("attack.json",)
"""Files that identify an attack's folder."""


def write(found: Found, parted: Parting, folder: Path, *, confirmed: Confirmed | None, at_most: float | None) -> Path:
    """Write everything in the folder except its journal.

    Returns
    -------
    Path
        The page.
    """
    from ackclock._files import staged

    with staged(folder, marks=MARKS) as part:
        (part / "worst.toml").write_text(_worst(found, part), encoding="utf-8")
        said = to_json(found, parted, confirmed=confirmed, at_most=at_most)
        (part / "attack.json").write_text(json.dumps(said, indent=1, allow_nan=False), encoding="utf-8")
        (part / "junit.xml").write_text(to_junit(found, at_most), encoding="utf-8")
        made = page(found, parted, confirmed)
        report.write(made, part / "report.html")
        (part / "figures").mkdir()
        for name, table in ((n, t) for figure in made.figures for n, t in figure.data.items()):
            (part / "figures" / f"{name}.csv").write_text(csv(table), encoding="utf-8")
    return folder / "report.html"


def _worst(found: Found, folder: Path) -> str:
    """Write the worst-case scenario, with a controller's file beside it."""
    from ackclock.own import copied, named
    from ackclock.scenario._toml import quoted

    scenario = found.runs.scenario(found.worst)
    text = scenario.to_toml()
    for _, name in scenario.controllers():
        if named(name):
            text = text.replace(quoted(name), quoted(f"own/{copied(name, folder / 'own')}"))
    return f"# {conclusion(found)}\n{text}"


def again(attack: Attack) -> str:
    """Return the command that reproduces the result."""
    from ackclock.own import short

    usual = Attack(target=attack.target, budget=attack.budget)
    parts = ["ackclock attack", short(attack.target)]
    parts += [f"--option {k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in attack.options.items()]
    parts.append(f"--budget {attack.budget.name}")
    parts += [f"--objective {attack.objective}"] if attack.objective != usual.objective else []
    if tuple(attack.references) != tuple(usual.references):
        parts += [f"--reference {short(name)}" for name in attack.references]
    parts += [f"--beside {short(attack.victim)}"] if attack.victim != usual.victim else []
    parts += [f"--search {attack.search}"] if attack.search != usual.search else []
    return " ".join([*parts, f"--evaluations {attack.evaluations}", f"--seed {attack.seed}"])


def conclusion(found: Found) -> str:
    """Return the outcome in one sentence."""
    attack = found.attack
    name = attack.arms[0].name
    if found.score <= 0:
        return f"{name}: nothing found in {found.looked_at} environments in which it {attack.wanted.about}."
    return (
        f"{name} {attack.wanted.about}: score {found.scores[1].score:.2f} in the simplest case, "
        f"{found.score:.2f} in the worst of {found.looked_at}."
    )


def to_json(
    found: Found, parted: Parting, *, confirmed: Confirmed | None = None, at_most: float | None = None
) -> dict[str, Any]:
    """Return the attack as plain values."""
    from ackclock.sweep.task import engine_identity

    attack = found.attack
    return {
        "schema": SCHEMA,
        "engine": engine_identity(),
        "target": attack.arms[0].name,
        "options": attack.options,
        "references": [arm.name for arm in attack.arms[1:]],
        "victim": attack.victim,
        "objective": {"name": attack.objective, "about": attack.wanted.about, "unit": attack.wanted.unit},
        "budget": {"name": attack.budget.name, **attack.budget.table},
        "search": attack.search,
        "seed": attack.seed,
        "evaluations": found.looked_at,
        "history": [list(entry) for entry in found.history],
        "best": _candidate(found, found.best, found.scores[0]),
        "worst": _candidate(found, found.worst, found.scores[1]),
        "width": found.width,
        "parting": {
            "at_s": parted.at_s,
            "reference": attack.arms[found.reference].name,
            "bytes": {"target": parted.ahead[0], "reference": parted.ahead[1]},
            "held": dict(parted.held),
            "state": {"target": _plain(parted.target), "reference": _plain(parted.reference)},
        },
        "kernel": None
        if confirmed is None
        else {
            "score": confirmed.score,
            "simulated": confirmed.simulated,
            "references": list(confirmed.references),
            "why": confirmed.why,
        },
        "at_most": at_most,
        "command": again(attack),
    }


def _candidate(found: Found, candidate: tuple[int, ...], scored: Scored) -> dict[str, Any]:
    genes = found.attack.budget.genes_of(candidate)
    names = [arm.name for arm in found.attack.arms]
    return {
        "score": scored.score,
        "environment": [[gene.name, gene.written(value)] for gene, value in zip(genes, candidate, strict=True)],
        "values": dict(zip(names, scored.values, strict=True)),
        "delivered_bytes": dict(zip(names, scored.delivered, strict=True)),
        "digests": dict(zip(names, scored.digests, strict=True)),
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    finite = {k: v for k, v in values.items() if not isinstance(v, float) or abs(v) < float("inf")}
    return {k: v for k, v in finite.items() if v == v}


def to_junit(found: Found, at_most: float | None) -> str:
    """Return a single test case, which passes if the score is at most this value."""
    name = f"{found.attack.arms[0].name}: {found.attack.objective}, {found.attack.budget.name}"
    inner, failed = "", at_most is not None and found.score > at_most
    if failed:
        inner = f"<failure message={xml(f'score {found.score:.4f}, allowed {at_most:g}: {again(found.attack)}')}/>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
        f'<testsuite name="attack" tests="1" failures="{int(failed)}" skipped="0">\n'
        f'<testcase classname="attack" name={xml(name)}>{inner}</testcase>\n</testsuite>\n</testsuites>\n'
    )


def page(found: Found, parted: Parting, confirmed: Confirmed | None) -> report.Page:
    """Build the page, without writing it."""
    attack = found.attack
    sections = [report.Section(title="The worst case", blocks=_case(found, confirmed))]
    drawn = figures(found, parted)
    if found.score > 0:
        sections.append(report.Section(title="Where they part", blocks=(*_parting(found, parted), drawn[0])))
    sections.append(report.Section(title="The search", blocks=(report.paragraph(_method(found)), drawn[1])))
    return report.Page(
        title=f"The worst case of {attack.arms[0].name}: {attack.objective}",
        conclusion=conclusion(found),
        summary=(
            f"An adversary may choose an environment within a budget: {_about(found)}. Each environment is simulated with the target "
            "and with each reference. The score is how much less the target gets than a reference, so an environment in which "
            "neither gets anything scores 0."
        ),
        sections=tuple(sections),
        scenarios={"worst.toml": found.runs.scenario(found.worst).to_toml()},
        facts=_facts(found),
        command=again(attack),
        beside="worst.toml is an ordinary scenario; attack.json and junit.xml are for programs; figures/ has the numbers of each figure.",
    )


def _about(found: Found) -> str:
    from ackclock.attack.budget import KINDS

    return KINDS[found.attack.budget.kind].about


def _case(found: Found, confirmed: Confirmed | None) -> tuple[report.Block, ...]:
    genes = found.attack.budget.genes_of(found.worst)
    head, size = len(found.attack.budget.head), max(len(found.attack.budget.group), 1)
    rows = []
    for at, (gene, value) in enumerate(zip(genes, found.worst, strict=True)):
        group = "" if at < head else str((at - head) // size + 1)
        rows.append((report.TableCell(text=gene.name, kind="head"), group, gene.written(value)))
    environment = report.Table(
        caption="The simplest environment whose score is at least nine tenths of the worst one's.",
        header=("what", "interval" if found.attack.budget.kind == "steps" else "number", "value"),
        rows=tuple(rows),
    )
    scored = found.scores[1]
    arms = report.Table(
        caption=f"What each got there. The objective's number is in {found.attack.wanted.unit}.",
        header=("controller", "objective's number", "delivered, KB", "digest"),
        rows=tuple(
            (report.TableCell(text=arm.name, kind="head"), _number(value), f"{sent / 1e3:,.0f}", digest[:16])
            for arm, value, sent, digest in zip(
                found.attack.arms, scored.values, scored.delivered, scored.digests, strict=True
            )
        ),
    )
    said = [
        f"Of {NEIGHBOURS} neighbours, each number moved by up to 5 %, {told_share(found.width)} keep four fifths of the score.",
    ]
    if confirmed is not None:
        said.append(confirmed.words)
    return (environment, arms, *(report.paragraph(text) for text in said))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1e4 else f"{value:.4g}"


def _parting(found: Found, parted: Parting) -> tuple[report.Block, ...]:
    names = (found.attack.arms[0].name, found.attack.arms[found.reference].name)
    if parted.at_s is None:
        return (report.paragraph(f"In bytes delivered, {names[0]} and {names[1]} do not part by a tenth."),)
    keys = list(dict.fromkeys([*parted.target, *parted.reference]))
    table = report.Table(
        caption=f"State of both senders at {parted.at_s:.3f} s, after the last event before.",
        header=("variable", *names),
        rows=tuple(
            (report.TableCell(text=key, kind="head"), _shown(parted.target.get(key)), _shown(parted.reference.get(key)))
            for key in keys
        ),
    )
    mine, theirs = parted.ahead
    return (
        report.paragraph(
            f"From {parted.at_s:.3f} s on, what the two have delivered differs by more than a tenth until the end. "
            f"At that time {names[0]} had {mine / 1e3:,.0f} KB acknowledged, {names[1]} {theirs / 1e3:,.0f} KB. "
            f"What held {names[0]} from there on: {parted.cause} of the time. "
            "The state shows the sender's belief at that time; it does not prove the cause."
        ),
        table,
    )


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _method(found: Found) -> str:
    attack = found.attack
    return (
        f"Search: {attack.search}, seed {attack.seed}, {found.looked_at} environments, each run with {attack.arms[0].name} and "
        f"{len(attack.arms) - 1} references. Neither the number of threads nor an interruption changes the result."
    )


def _facts(found: Found) -> dict[str, str]:
    from ackclock.sweep.task import engine_identity

    attack = found.attack
    return {
        "engine": engine_identity(),
        "target": attack.arms[0].name,
        "references": ", ".join(arm.name for arm in attack.arms[1:]),
        "objective": attack.wanted.about,
        "budget": f"{attack.budget.name}: " + ", ".join(f"{k} = {v}" for k, v in attack.budget.table.items()),
        "runs": f"{len(found.runs.known) * len(attack.arms):,}",
    }
