"""The report of an evaluation: a single page that works offline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ackclock import report
from ackclock.evaluate import figures, kernel
from ackclock.evaluate.decide import Decided
from ackclock.evaluate.files import (
    alarms,
    cells_table,
    command,
    invocation,
    scenario_file,
    scenario_of,
    settling_commands,
    to_json,
    to_junit,
    write_scenarios,
)
from ackclock.evaluate.harness import Evaluation
from ackclock.evaluate.plan import REFERENCE
from ackclock.evaluate.rows.text import STATEMENTS
from ackclock.evaluate.verdict import SYMBOLS, UNJUDGED, VERDICTS, Judged, RowVerdict, judge_part
from ackclock.judge.looks import LOOKS
from ackclock.plot.style import drawable
from ackclock.report import TableCell
from ackclock.text import csv
from ackclock.text import share as told_share

COMPANY = {
    "": "alone",
    "reno": "Reno",
    "cubic": "CUBIC",
    "bbr3": "BBRv3",
    "bbr3-linux": "BBRv3 (Linux)",
    "traffic": "other traffic",
}
"""Other flows on the path: the matrix columns."""

KINDS = {"worse": "fails", "mixed": "fails", "no difference shown": "undecided", "no worse": "holds", "better": "holds"}
"""Verdict -> style of a table cell."""


WRITTEN = ("cells", "cells.parquet", "evaluate.json", "figures", "junit.xml", "report.html")
"""Files in an evaluation's folder, in addition to its store."""

MARKS = ("evaluate.json",)
"""Files that identify the folder of an evaluation."""


def write(evaluation: Evaluation, folder: Path, *, statements: Mapping[str, str] | None = None) -> Path:
    """Write everything in the folder except the store.

    Returns
    -------
    Path
        The report.
    """
    import json

    from ackclock._files import parquet, staged

    with staged(folder, marks=MARKS) as part:
        write_scenarios(evaluation, part)
        parquet(cells_table(evaluation), part / "cells.parquet")
        (part / "evaluate.json").write_text(
            json.dumps(to_json(evaluation, statements=statements), indent=1, allow_nan=False), encoding="utf-8"
        )
        (part / "junit.xml").write_text(to_junit(evaluation), encoding="utf-8")
        made = page(evaluation, statements=statements or {})
        drawn = {f.name: _svg(f) for f in made.figures} if drawable() else {}
        report.write(made, part / "report.html", drawn=drawn)
        (part / "figures").mkdir()
        for name, table in ((n, t) for f in made.figures for n, t in _tables(f)):
            (part / "figures" / f"{name}.csv").write_text(csv(table), encoding="utf-8")
    return folder / "report.html"


def _svg(figure: Any) -> bytes:
    from ackclock.plot.style import saved, styled

    with styled():
        return saved(figure.draw(), "svg")


def _tables(figure: Any) -> list[tuple[str, Any]]:
    """Return a figure's data tables, by file name."""
    return [(n if n.startswith(figure.name) else f"{figure.name}-{n}", table) for n, table in figure.data.items()]


def conclusion(evaluation: Evaluation) -> str:
    """Return the outcome in one sentence."""
    counts = evaluation.summary()
    name = evaluation.plan.candidate.name
    tested = sum(n for v, n in counts.items() if v not in UNJUDGED)
    worse = [r for r in evaluation.rows if r.verdict == "worse"]
    said = f"{name} in CUBIC's place, by our own margins: worse in {counts['worse']} of {tested} situations tested"
    said += f", mixed in {counts['mixed']}" if counts["mixed"] else ""
    said += f", no worse in {counts['no worse'] + counts['better']} (better in {counts['better']})"
    said += f", no difference shown in {counts['no difference shown']}."
    if worse:
        said += " Worse: " + "; ".join(f"{r.row.title.lower()} ({r.row.id})" for r in worse) + "."
    failed = [r for r in evaluation.rows if r.fails_must]
    if failed:
        duty = next((r for r in failed if r.reason.startswith("does not")), None)
        said += f" MUSTs not met: {', '.join(r.row.id for r in failed)}" + (f"; it {duty.reason}." if duty else ".")
    return said


def page(evaluation: Evaluation, *, statements: Mapping[str, str]) -> report.Page:
    """Build the report, without writing it."""
    plan = evaluation.plan
    first, most = plan.counts
    seeds = f"{first} seeds a cell" if first == most else f"{first} to {most} seeds a cell"
    quick = " Few cells and three seeds are an indication, not a finding." if plan.scale == "quick" else ""
    sections = [
        report.Section(title="Situations", blocks=(_matrix(evaluation), _legend())),
        report.Section(title="Why", blocks=(_reasons(evaluation), *_open(evaluation))),
    ]
    drawn = figures.overview(evaluation)
    if drawn:
        sections.append(report.Section(title="Throughput, delay and harm", blocks=tuple(drawn)))
    sections.append(report.Section(title="Worst cells", blocks=_worst(evaluation)))
    sections.append(report.Section(title="What only the author can say", blocks=_author(statements)))
    sections.append(report.Section(title="Not tested", blocks=(_not_tested(evaluation),)))
    sections.append(report.Section(title="How it was judged", blocks=_method(evaluation)))
    sections.append(report.Section(title="All cells", blocks=(_cells(evaluation),)))
    worst = {
        f"row {r.row.id}, worst cell: {r.worst.cell.words}": scenario_of(evaluation, r, "candidate").to_toml()
        for r in evaluation.rows
        if r.worst is not None
    }
    return report.Page(
        title=f"{plan.candidate.name} in the situations of RFC 9743",
        conclusion=conclusion(evaluation),
        summary=(
            "RFC 9743 lists the situations in which a new congestion controller should be examined. It gives no thresholds, and is "
            "not a checklist. Here each situation is simulated twice, with the controller and with CUBIC in its place, under the "
            f"same seeds. Scale {plan.scale}: {seeds}.{quick}"
        ),
        sections=tuple(sections),
        scenarios=worst,
        facts=_facts(evaluation),
        command=_command(evaluation),
        beside=(
            "The folder cells/ has the scenario of every cell under every controller; cells.parquet has every number with its "
            "scenario, seed and digest; figures/ has those of each figure as CSV; evaluate.json and junit.xml are for programs."
        ),
    )


def _command(evaluation: Evaluation) -> str:
    """Return the command shown in the report, with the option for further looks, if any were taken."""
    return invocation(evaluation.plan, more=["--decide"] if evaluation.decided else [])


def _facts(evaluation: Evaluation) -> dict[str, str]:
    from ackclock.sweep import engine_identity

    found = to_json(evaluation)["controller"]["source"]
    return {
        "engine": engine_identity(),
        "controller": f"{found['name']}, {found.get('sha256', found['kind'])}",
        **({"rival": evaluation.plan.rival.name} if evaluation.plan.rival else {}),
        "profile": f"{'linux-6, simulated' if evaluation.plan.backend == 'sim' else kernel.facts()}; without TSO; with ECN only where a row says so",
        **({"further looks": decided(evaluation.decided)} if evaluation.decided else {}),
        "runs": f"{sum(len(d) for d in evaluation.digests.values()):,}",
        "digest over all digests": evaluation.digest,
        "false alarms": _alarm_words(evaluation),
    }


def _alarm_words(evaluation: Evaluation) -> str:
    found = next((a for a in alarms() if a["scale"] == evaluation.plan.scale), None)
    if found is None:
        return f"not measured at the scale {evaluation.plan.scale}"
    low, high = found["interval"]
    return (
        f"CUBIC against itself under other seeds, {found['repetitions']} times at the scale {found['scale']} with engine "
        f"{found['version']}: {found['row_rate'] * 100:.2g} % of {found['rows']} rows called worse ({low * 100:.2g} to {high * 100:.2g} %)"
    )


def _badge(verdict: str, more: str = "") -> TableCell:
    return TableCell(text=f"{SYMBOLS[verdict]} {verdict}{more}", kind=KINDS.get(verdict, "faint"))


def _matrix(evaluation: Evaluation) -> report.Table:
    company = [c for c in COMPANY if any(_with(r, c) for r in evaluation.rows)]
    others = [a for a in evaluation.plan.arms if a.role in ("rival", "information")]
    rows = []
    for found in evaluation.rows:
        cells: list[TableCell | str] = [
            TableCell(text=found.row.id, kind="head"),
            TableCell(text=found.row.title, kind="head"),
            _badge(found.verdict),
        ]
        for one in company:
            part = _with(found, one)
            verdict = judge_part(found.row, part, evaluation.plan.scale).verdict if part else None
            kind = KINDS.get(verdict or "", "faint")
            cells.append(TableCell(text=SYMBOLS[verdict] if verdict else "", kind=kind))
        for arm in others:
            verdict = figures.as_candidate(evaluation, found, arm.key)
            cells.append(TableCell(text=SYMBOLS[verdict] if verdict else "", kind=KINDS.get(verdict or "", "faint")))
        cells += [f"§{found.row.section}" if found.row.section else "ours", found.row.level or "–"]
        rows.append(tuple(cells))
    return report.Table(
        caption=(
            "The verdict on each situation, against CUBIC in the same place; then on its cells grouped by who else is on the path; "
            "then the verdicts on other controllers by the same rule."
        ),
        header=(
            "row", "situation", "verdict",
            *(COMPANY[c] if c in ("", "traffic") else f"beside {COMPANY[c]}" for c in company),
            *("rival" if a.role == "rival" else a.name for a in others), "RFC 9743", "level",
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _with(row: RowVerdict, company: str) -> list[Judged]:
    return [j for j in row.cells if j.cell.about.get("victim", "") == company]


def _legend() -> report.Prose:
    words = {
        "worse": "the interval of the difference lies beyond the margin",
        "mixed": "better or no worse on the mean over cells, and worse in a cell; a MUST is not met by it",
        "no difference shown": "it contains the margin, so there may still be a difference as large",
        "no worse": "it lies within the margin, or on the good side",
        "better": "no worse in any measure, and better in one by more than the margin",
        "reported": "a number and no verdict",
        "not tested": "something that the test needs is missing",
        "not applicable": "not for this controller",
    }
    return report.items([f"{SYMBOLS[v]} {v}: {words[v]}." for v in VERDICTS])


def number(value: float) -> str:
    """Format a number with three significant digits."""
    return f"{value:.3g}".replace("-", "−") if math.isfinite(value) else "–"


def with_unit(value: float, unit: str) -> str:
    """Format a number for the report: fractions in percent, short times in ms."""
    if not math.isfinite(value):
        return "–"
    if unit == "ratio":
        return f"× {number(math.exp(value))}"
    if unit == "share":
        text = number(value * 100)
        return told_share(value, 2) if text == "100" and value < 1 else f"{text} %"
    if unit == "s" and abs(value) < 1:
        return f"{number(value * 1e3)} ms"
    return f"{number(value)} {unit}".strip()


def mean(j: Judged, arm: Literal["candidate", "reference"]) -> str:
    """Format an arm's mean, marked if it is a lower bound."""
    value = j.candidate.value if arm == "candidate" else j.reference.value
    return ("≥ " if arm in j.at_least else "") + with_unit(value, j.measure.unit)


def between(e: Any, unit: str) -> str:
    """Format the ends of an interval."""
    if not math.isfinite(e.low):
        return "–"
    return f"{with_unit(e.low, unit)} to {with_unit(e.high, unit)}"


def _reasons(evaluation: Evaluation) -> report.Table:
    rows = []
    for r in evaluation.rows:
        if r.worst is None:
            continue
        j = r.worst
        rows.append(
            (
                TableCell(text=r.row.id, kind="head"),
                _badge(r.verdict),
                TableCell(text=r.reason + (f"; {r.remark}" if r.remark else ""), kind="text"),
                TableCell(text=j.measure.name, kind="text"),
                mean(j, "candidate"),
                mean(j, "reference"),
                between(j.difference, j.measure.of_differences),
                with_unit(j.margin, j.measure.of_differences),
                str(j.difference.n),
                TableCell(text=j.cell.words, kind="text"),
            )
        )
    return report.Table(
        caption="What decides each verdict, and the measure and cell in which the controller is worst, with their numbers. Differences: positive is worse.",
        header=("row", "verdict", "because of", "worst measure", "candidate", "CUBIC", "difference, 95 %", "margin (ours)", "seeds", "worst cell"),
        rows=tuple(rows),
    )  # fmt: skip


def _open(evaluation: Evaluation) -> tuple[report.Block, ...]:
    """Return a table of what would settle the rows that show no difference; empty if there are none."""
    commands = settling_commands(evaluation)
    rows = tuple(
        (TableCell(text=one.row, kind="head"), TableCell(text=one.text, kind="text"), TableCell(text=commands[one.row], kind="text"))
        for one in evaluation.open
    )  # fmt: skip
    if not rows:
        return ()
    said = "What would settle the situations that show no difference. Numbers of seeds follow from the intervals now, so they are rough."
    if evaluation.decided is not None:
        said += f" {decided(evaluation.decided)}"
    return (report.Table(caption=said, header=("row", "it takes", "command"), rows=rows),)


def decided(found: Decided) -> str:
    """Describe the results of the further looks."""
    settled = {row: r.verdict for row, r in found.verdicts.items() if r.verdict != "no difference shown"}
    words = "; ".join(f"row {row} is {verdict}" for row, verdict in settled.items()) or "no row is settled"
    why = {
        "time": "the time does not reach for more (--within MINUTES gives more)",
        "looks": f"it ends after {LOOKS} further looks though time is left, because with more looks chance alone would settle too many rows",
        "nothing left": "no row is left that more seeds are expected to settle",
    }[found.ended]
    if not found.looks:
        return f"No further look: {why}."
    looks = "1 further look" if found.looks == 1 else f"{found.looks} further looks"
    return f"{looks} with {found.runs:,} runs: {words}; {why}."


def _worst(evaluation: Evaluation) -> tuple[report.Block, ...]:
    blocks: list[report.Block] = []
    order = {v: i for i, v in enumerate(VERDICTS)}
    for r in sorted((r for r in evaluation.rows if r.worst is not None), key=lambda r: order[r.verdict]):
        blocks.append(figures.worst(evaluation, r))
        blocks.append(_code(command(evaluation, r) + "\n" + command(evaluation, r, REFERENCE)))
    return tuple(blocks) or (report.paragraph("No situation was tested."),)


def _code(text: str) -> report.Prose:
    from html import escape

    return report.Prose(html=f"<pre tabindex='0'>{escape(text)}</pre>")


def _author(statements: Mapping[str, str]) -> tuple[report.Block, ...]:
    rows = tuple(
        (
            TableCell(text=f"§{section}", kind="head"),
            TableCell(text=asked, kind="text"),
            TableCell(text=statements.get(section, "Author's statement missing. It is given with --statement FILE."),
                      kind="text" if section in statements else "undecided"),
        )
        for section, asked in STATEMENTS.items()
    )  # fmt: skip
    return (
        report.Table(
            caption="The RFC asks for text, which no measurement can replace.",
            header=("RFC 9743", "asked", "answer"),
            rows=rows,
        ),
    )


def _not_tested(evaluation: Evaluation) -> report.Table:
    rows = tuple(
        (TableCell(text=r.row.id, kind="head"), r.row.title, TableCell(text=r.reason if r.verdict in ("not tested", "not applicable") else
          f"in part: {'; '.join(r.row.needs)}", kind="text"))
        for r in evaluation.rows if r.verdict in ("not tested", "not applicable") or (r.row.needs and r.verdict != "reported")
    )  # fmt: skip
    return report.Table(
        caption="Situations, or parts of them, that were not tested, and what is missing.",
        header=("row", "situation", "why"),
        rows=rows,
    )


def _method(evaluation: Evaluation) -> tuple[report.Block, ...]:
    margins = {}
    for r in evaluation.rows:
        for m in r.row.measures:
            shown = (
                f"{m.margin * 100:g} % of CUBIC's, at least {with_unit(m.least, m.unit)}"
                if m.relative
                else with_unit(m.margin_at(0.0), m.of_differences)
            )
            duty = "" if m.duty is None else f"; in no run more than {with_unit(m.duty, m.unit)}"
            margins[(r.row.id, m.name)] = shown + duty if m.judged else "reported only"
    table = report.Table(
        caption="Margins. All are ours: a smaller difference does not count as worse.",
        header=("row", "measure", "margin"),
        rows=tuple((TableCell(text=row, kind="head"), name, said) for (row, name), said in margins.items()),
    )
    return (
        report.items(
            [
                "Every cell is a dumbbell with an access link of ten times the bottleneck's rate for each flow, whose jitter is one packet of the bottleneck, at most 1 ms.",
                "Flows start at random within two round trips, at least 100 ms; the seed draws the starts, the same for every controller.",
                "The first 10 s or 50 round trips do not count; the next 50 s or 200 round trips do, unless the row says otherwise.",
                "Buffer: the given multiple of the bandwidth-delay product, at least 4 packets. Paths that hold fewer than 4 are in row 18 only.",
                "A cell whose seeds all gave the same packets has no verdict: it is a single run.",
                "A row is worse by the mean over its cells, with a level of 1 − 0.05/k for k measures, or by a single cell after Holm's correction over the whole report.",
                "A row that would be better is mixed if one cell is worse at its own level; one that would be no worse, if a cell is worse after Holm's correction over the row.",
                "At the quick scale a row is worse, mixed or open: a few cells cannot show that nothing is worse elsewhere.",
                f"With --decide, open rows are looked at again with twice the seeds, up to {LOOKS} times. These looks share a further 5 % of error equally.",
                f"False alarms: {_alarm_words(evaluation)}.",
            ]
        ),
        table,
    )


def _cells(evaluation: Evaluation) -> report.Prose:
    """Return all numbers: one folded table per row."""
    from html import escape

    parts = []
    for r in evaluation.rows:
        if not r.cells:
            continue
        body = []
        for j in r.cells:
            unit = j.measure.of_differences
            cells = (
                j.cell.words, j.measure.name, mean(j, "candidate"), mean(j, "reference"),
                with_unit(j.difference.value, unit), between(j.difference, unit), str(j.difference.n), str(j.distinct),
                f"{SYMBOLS[j.verdict]} {j.verdict}" + (f" ({j.note})" if j.note else "") + ("" if j.measure.judged else " (reported only)"),
                scenario_file(r.row.id, j.cell.id, "candidate"),
            )  # fmt: skip
            body.append("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>")
        head = (
            "cell",
            "measure",
            "candidate",
            "CUBIC",
            "difference",
            "95 %",
            "n",
            "different runs",
            "verdict",
            "scenario",
        )
        heads = "".join(f"<th>{escape(h)}</th>" for h in head)
        parts.append(
            f"<details><summary>Row {escape(r.row.id)}: {escape(r.row.title)}, {len(r.cells)} numbers</summary>"
            f"<blockquote>{escape(r.row.quote)}</blockquote>"
            + (f"<p>{escape(r.row.note)}</p>" if r.row.note else "")
            + f'<div class="tablebox scroll" tabindex="0" role="group" aria-label="table"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table></div></details>'
        )
    return report.Prose(html="".join(parts) or "<p>None.</p>")


def lines(evaluation: Evaluation) -> Sequence[tuple[str, ...]]:
    """Return one line per row, for the terminal."""
    found = []
    for r in evaluation.rows:
        j = r.worst
        detail = r.reason
        if j is not None:
            detail = (
                f"{j.measure.name}: {mean(j, 'candidate')}, CUBIC {mean(j, 'reference')} "
                f"(n {j.difference.n}; {j.cell.words})"
            )
        if r.remark:
            detail += f"; {r.remark}"
        found.append(
            (
                r.row.id,
                f"§{r.row.section}" if r.row.section else "ours",
                r.row.level or "–",
                r.row.title,
                f"{SYMBOLS[r.verdict]} {r.verdict}",
                detail,
            )
        )
    return found
