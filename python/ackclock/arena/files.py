"""Files written to the arena's folder: `arena.json`, the page, each entry's best and worst draws, the figure's
numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _link, report
from ackclock.arena import _seal
from ackclock.arena.game import REFERENCE, Entry, Row, Standing, Table
from ackclock.arena.task import TERMS, Task
from ackclock.plot import Figure
from ackclock.text import csv, share

if TYPE_CHECKING:
    from ackclock.arena.confirm import Verdict

SCHEMA = "ackclock.arena/1"
WRITTEN = ("arena.json", "report.html", "draws", "figures")
MARKS = ("arena.json",)
SHOWN = 10
"""Number of draws listed for each entry, best and worst."""


def write(table: Table, folder: Path) -> Path:
    """Write everything in the folder except the store.

    Returns
    -------
    Path
        The page.
    """
    from ackclock._files import staged

    with staged(folder, marks=MARKS) as part:
        (part / "arena.json").write_text(json.dumps(to_json(table), indent=1, allow_nan=False), encoding="utf-8")
        for standing in listed(table):
            for row in {r.draw.id: r for pair in extremes(standing) for r in pair}.values():
                _draw(standing, row, part / "draws")
        made = page(table)
        report.write(made, part / "report.html")
        (part / "figures").mkdir()
        for name, data in ((n, t) for figure in made.figures for n, t in figure.data.items()):
            (part / "figures" / f"{name}.csv").write_text(csv(data), encoding="utf-8")
    return folder / "report.html"


def to_json(table: Table) -> dict[str, Any]:
    """Return the table as plain values."""
    from ackclock import _engine
    from ackclock.sweep.task import engine_identity

    plan = table.plan
    known, pairs = table.known
    return {
        "schema": SCHEMA,
        "engine": engine_identity(),
        "profile": _engine.profile(),
        "task": {"name": plan.task.name, "digest": plan.task.digest},
        "salt": plan.salt,
        "draws": plan.draws,
        "known_pairs": known,
        "pairs": pairs,
        "standings": [_standing(standing) for standing in table.standings],
        "ahead": [list(row) for row in table.ahead],
        **({"kernel": {name: _verdict(one) for name, one in table.verdicts.items()}} if table.verdicts else {}),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    rows = [
        {"draw": row.draw.id, "score": verdict.scores[row.draw.id], "simulator": row.score, "terms": dict(verdict.terms[row.draw.id])}
        for row in verdict.rows
    ]  # fmt: skip
    return {
        "score": verdict.kernel if rows else None,
        "simulator": verdict.simulator if rows else None,
        "worst": verdict.worst if rows else None,
        "left_to_others": verdict.left,
        "rows": rows,
        "why": verdict.why,
    }


def _standing(standing: Standing) -> dict[str, Any]:
    score, left = standing.score, standing.left
    return {
        "entry": standing.entry.name,
        "own": standing.entry.is_own,
        "options": dict(standing.entry.options),
        "code": standing.entry.identity(),
        "rank": standing.rank,
        "ahead_of_next": standing.known,
        "score": None if score is None else _interval(score),
        "worst": standing.worst,
        "left_to_others": None if left is None else _interval(left),
        "starves": standing.starves,
        "starving_is_open": standing.is_open,
        "why": standing.why,
        "rows": [
            {
                "draw": row.draw.id, "seed": row.draw.seed, "score": row.score, "terms": dict(row.terms), "digest": row.digest,
                "failed": row.failed, "scenario": row.words,
            }
            for row in standing.rows
        ],
    }  # fmt: skip


def _interval(estimate: Any) -> list[float | None]:
    return [v if math.isfinite(v) else None for v in (estimate.value, estimate.low, estimate.high)]


def listed(table: Table) -> list[Standing]:
    """Return the requested entries."""
    return [s for s in table.standings if s.entry in table.plan.entries]


def extremes(standing: Standing) -> tuple[list[Row], list[Row]]:
    """Return an entry's worst and best draws."""
    rows = sorted((row for row in standing.rows if row.draw.keys), key=lambda row: (row.score, row.draw.id))
    return rows[:SHOWN], rows[::-1][:SHOWN]


def _draw(standing: Standing, row: Row, folder: Path) -> None:
    from ackclock.own import copied, named
    from ackclock.scenario._toml import quoted

    scenario = row.draw.scenario(standing.entry.controller, standing.entry.options)
    text = scenario.to_toml()
    folder.mkdir(exist_ok=True)
    for _, name in scenario.controllers():
        if named(name):
            text = text.replace(quoted(name), quoted(copied(name, folder)))
    (folder / place(standing, row)).write_text(text, encoding="utf-8")


def place(standing: Standing, row: Row) -> str:
    """Return a draw's file name."""
    from ackclock.own import short

    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in short(standing.entry.controller))
    return f"{name}.{row.draw.id}.toml"


def command(table: Table) -> str:
    """Return the command that reproduces the table."""
    from ackclock.own import short

    entries = " ".join(f"--entry {short(e.controller)}" for e in table.plan.entries)
    return f"ackclock arena run {table.plan.task.name} {entries} --salt {table.plan.salt} --draws {table.plan.draws}"


def conclusion(table: Table) -> str:
    """Return the outcome in one sentence."""
    ranked = table.ranked
    known, pairs = table.known
    walls = _seal.missing() if any(s.entry.is_own for s in table.standings) else ""
    walls = f" Made {walls}." if walls else ""
    if not ranked:
        return f"no entry has a rank.{walls}"
    first = ranked[0]
    assert first.score is not None, "those with a rank have a score"
    may = ", which may starve others," if first.is_open else ""
    said = f"{first.entry.name}{may} is ahead with {first.score.value:.1f} of 100"
    said += f" (95 %: {first.score.low:.1f} to {first.score.high:.1f})" if math.isfinite(first.score.low) else ""
    return f"{said}; the order of {known} of {pairs} pairs is known.{walls}"


def number(value: float | None, digits: int = 1) -> str:
    """Format a number for a table."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def cells(standing: Standing) -> list[str]:
    """Return a table row: rank, entry, score, interval, lead over the next entry, worst case, CUBIC's goodput beside it, remark."""
    score = standing.score
    between = "–" if score is None or not math.isfinite(score.low) else f"{score.low:.1f} to {score.high:.1f}"
    return [
        "–" if standing.rank is None else str(standing.rank),
        standing.entry.name,
        number(None if score is None else score.value),
        between,
        "–" if standing.known is None else share(standing.known),
        number(standing.worst if score is not None else None),
        "–" if standing.left is None else share(standing.left.value),
        standing.remark,
    ]


HEAD = ("rank", "entry", "score", "95 % interval", "ahead of the next", "worst tenth", "left to CUBIC", "")


OF_KERNEL = (
    "entry",
    "score on the kernel",
    "in the simulator",
    "worst tenth on the kernel",
    "left to CUBIC there",
    "draws",
    "",
)


def kernel_cells(table: Table) -> list[list[str]]:
    """Return the rows with the kernel's scores, in table order."""
    rows = []
    for standing in table.standings:
        found = table.verdicts.get(standing.entry.name)
        if found is None:
            continue
        numbers = [found.kernel, found.simulator, found.worst] if found.rows else [None] * 3
        left = "–" if found.left is None else share(found.left)
        why = next((f"{draw}: {said}".removeprefix(": ") for draw, said in found.why.items()), "")
        rows.append([standing.entry.name, *map(number, numbers), left, str(len(found.rows)), why])
    return rows


def page(table: Table) -> report.Page:
    """Build the report, without writing it."""
    plan = table.plan
    body = report.Table(
        caption="Scores are 0 to 100. Ahead of the next: how probably, over draws that are drawn again. Left to CUBIC: what it gets beside the entry, "
        "by what it gets beside another CUBIC.",
        header=HEAD,
        rows=tuple(tuple(report.TableCell(text=c, kind="text" if i == 7 else "head" if i == 1 else "") for i, c in enumerate(cells(s))) for s in table.standings),
    )  # fmt: skip
    sections = [
        report.Section(title="Table", blocks=(body, pareto(table))),
        report.Section(title="Families", blocks=(_families(table),)),
    ]
    if table.verdicts:
        sections.append(report.Section(title="Verdict of the Linux kernel", blocks=(_of_kernel(table),)))
    for standing in listed(table):
        sections.append(report.Section(title=f"{standing.entry.name}: worst and best", blocks=_extremes(standing)))
    sections.append(report.Section(title="How it is scored", blocks=(report.items(rules(plan.task)),)))
    return report.Page(
        title=f"Arena: {plan.task.title}",
        conclusion=conclusion(table),
        summary=f"{plan.task.title}: {plan.task.about}. {plan.draws} draws of each of {len(plan.task.families)} families{_more(plan.task)}, the same for all entries, "
        f"of the salt {plan.salt}. CUBIC and Reno are always among them.",
        sections=tuple(sections),
        facts=_facts(table),
        command=command(table),
        beside="arena.json has every number and digest; draws/ has the scenarios of the lists, which run as they stand; figures/ has the numbers of the figure.",
    )


def _more(task: Task) -> str:
    """Return, in words, which families are drawn more often than others."""
    found = [f"{family.id} {family.times} times as many" for family in task.families if family.times > 1]
    return f" ({', '.join(found)})" if found else ""


def _of_kernel(table: Table) -> report.Table:
    return report.Table(
        caption="The same draws over the same links, with the kernel in the hosts; both scores are of the draws that it can play, without the family adversary.",
        header=OF_KERNEL,
        rows=tuple(
            tuple(report.TableCell(text=c, kind="text" if i == 6 else "" if i else "head") for i, c in enumerate(row))
            for row in kernel_cells(table)
        ),
    )


def rules(task: Task) -> list[str]:
    """Return the scoring rules, as sentences from which a score can be recomputed."""
    weights = ", ".join(f"{term} {weight:g}" for term, weight in task.weights.items())
    used = [term for term in TERMS if any(term in family.counts for family in task.families)]
    return [
        f"The score of a scenario is the geometric mean of the terms that count in its family, weighted ({weights}); a term counts 0.01 at least.",
        "The score of an entry is the mean of the means of its families, times 100.",
        *(f"{term}: {TERMS[term]}." for term in used),
        f"d is {1e3 * task.delay_s:g} ms, l is {100 * task.loss:g} %. Numbers are of whole runs: there is no warm-up.",
        "A run that failed scores 0. An entry of which a run does not repeat, made again in another process, has no score.",
        f"An entry that leaves CUBIC beside it less than {100 * task.starves:g} % of what another CUBIC leaves ranks behind all that leave more. "
        "What it leaves has the interval of every distribution from 0 to 1; an order that is another one at the interval's other end is not known.",
    ]


def _facts(table: Table) -> dict[str, str]:
    from ackclock.sweep.task import engine_identity

    plan = table.plan
    return {
        "engine": engine_identity(),
        "task": f"{plan.task.name} {plan.task.digest}",
        "salt": plan.salt,
        **{f"code of {s.entry.name}": s.entry.identity() for s in table.standings if s.entry.is_own},
    }


def _families(table: Table) -> report.Table:
    families = table.plan.task.families
    rows: list[tuple[report.TableCell | str, ...]] = []
    for standing in table.standings:
        values = [standing.scores.get(f.id, ()) for f in families]
        rows.append(
            (
                report.TableCell(text=standing.entry.name, kind="head"),
                *(number(100 * sum(v) / len(v)) if v else "–" for v in values),
            )
        )
    about = "; ".join(f"{f.id}: {f.about}" for f in families)
    return report.Table(
        caption=f"Mean score in each family. {about}.", header=("entry", *(f.id for f in families)), rows=tuple(rows)
    )


def _extremes(standing: Standing) -> tuple[report.Block, ...]:
    blocks: list[report.Block] = []
    own = " --own-code" if standing.entry.is_own else ""
    for what, rows in zip(("worst", "best"), extremes(standing), strict=True):
        table = report.Table(
            caption=f"The {len(rows)} scenarios in which it is {what}.",
            header=("draw", "scenario", "score", "terms", "run again"),
            rows=tuple(
                (
                    report.TableCell(text=row.draw.id, kind="head"),
                    report.TableCell(text=row.words, kind="text"),
                    number(100 * row.score),
                    report.TableCell(
                        text=row.failed or ", ".join(f"{t} {v:.2f}" for t, v in row.terms.items()), kind="text"
                    ),
                    report.TableCell(
                        text=f"ackclock run draws/{place(standing, row)} --seed {row.draw.seed}{own}", kind="text"
                    ),
                )
                for row in rows
            ),
        )
        blocks += [table, report.Prose(html=_lab(standing.entry, rows))]
    return tuple(blocks)


def _lab(entry: Entry, rows: Sequence[Row]) -> str:
    """Return lab links, folded. User code cannot be part of a link, so CUBIC replaces it on the same path."""
    controller, options = (
        (REFERENCE, {})
        if entry.is_own or entry.controller.startswith("quinn:")
        else (entry.controller, dict(entry.options))
    )
    lines = []
    for row in rows:
        link = _link.made(row.draw.scenario(controller, options).to_toml(), row.draw.seed)
        lines.append(f"<p>{escape(row.draw.id)}:</p><pre class=\"link\">ackclock lab '{escape(link)}'</pre>")
    note = " (CUBIC in its place)" if controller != entry.controller else ""
    return f"<details><summary>Open them in the lab{note}</summary>{''.join(lines)}</details>"


def pareto(table: Table) -> Figure:
    """Draw each entry's gain against its cost; no entry beats those on the line in both."""
    import polars as pl

    task = table.plan.task
    across = next(
        (t for t in ("delay", "others", "loss", "worst") if any(t in f.counts for f in task.families)), "worst"
    )
    along = next((t for t in ("throughput", "speed", "recovery") if any(t in f.counts for f in task.families)), across)
    points = [
        (s.entry.name, s.mean(across), s.mean(along), s.mean("others")) for s in table.standings if s.score is not None
    ]
    data = pl.DataFrame(
        {
            "entry": [p[0] for p in points], across: [p[1] for p in points],
            **({along: [p[2] for p in points]} if along != across else {}),
            "front": [not _beaten(p, points) for p in points],
        }
    )  # fmt: skip

    def draw() -> Any:
        from ackclock.plot.grid import series
        from ackclock.plot.style import new

        figure, ax = new(6.4, 4.2)
        looks = series([p[0] for p in points])
        front = sorted(((p[1] or 0.0, p[2] or 0.0) for p in points if not _beaten(p, points)), reverse=True)
        ax.plot([x for x, _ in front], [y for _, y in front], color="#999999", lw=0.8, zorder=0)
        for look, (name, x, y, _) in zip(looks, points, strict=True):
            ax.plot(x, y, ls="", marker=look.marker, color=look.colour, ms=6, mec="white", mew=0.5, label=name)
        ax.set_xlabel(f"{across}, mean of the term")
        ax.set_ylabel(f"{along}, mean of the term")
        figure.legend(loc="outside right upper", fontsize=7, ncols=1 if len(points) <= 24 else 2)
        return figure

    return Figure(
        name="pareto",
        title=f"{along.capitalize()} against {across}, over all draws in which they count",
        caption="Better is up and to the right. The line joins entries that no other entry beats in both.",
        draw=draw,
        data={"pareto": data},
    )


def _beaten(point: tuple[Any, ...], points: Sequence[tuple[Any, ...]]) -> bool:
    x, y = point[1] or 0.0, point[2] or 0.0
    return any((q[1] or 0.0) >= x and (q[2] or 0.0) >= y and ((q[1] or 0.0) > x or (q[2] or 0.0) > y) for q in points)


def digests(said: Mapping[str, Any], entry: str) -> dict[str, str]:
    """Return the digests of an entry's draws in a table read from a file."""
    found = next((s for s in said["standings"] if s["entry"] == entry), None)
    return {} if found is None else {row["draw"]: row["digest"] for row in found["rows"]}
