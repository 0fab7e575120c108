"""Write docs/evaluation.md: the results of `ackclock evaluate` for every built-in TCP controller, and of `ackclock
conform` for a few. Also writes measured/evaluation/NAME.json, with what decides each verdict, which is shown
in the pages docs/known/ (tools/known.py).

    python tools/evaluation.py                                   # quick scale: a few minutes
    python tools/evaluation.py --scale standard --decide 10      # and further looks of at most 10 minutes for each
    python tools/evaluation.py --controllers bbr,bbr3 --jobs 1   # some; the pages wait until all are there

A controller that this engine has already evaluated in this way is skipped, and runs are kept (--folder), so an interrupted command can be continued.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import known
from ackclock import _engine
from ackclock.conform import conform, names, pack
from ackclock.conform.harness import SYMBOLS as CASE_SYMBOLS
from ackclock.evaluate import Arm, Evaluation, Plan, Within, evaluate
from ackclock.evaluate.page import mean
from ackclock.evaluate.plan import REFERENCE, SEEDS
from ackclock.evaluate.rows import rows as all_rows
from ackclock.evaluate.verdict import SYMBOLS
from ackclock.sweep import Threads, engine_identity
from book import record

ROOT = Path(__file__).resolve().parent.parent
HELD = ROOT / "measured" / "evaluation"
PAGE = ROOT / "docs" / "evaluation.md"
BEGIN, END = "<!-- evaluation: written by tools/evaluation.py -->", "<!-- /evaluation -->"
WORSE_BEGIN, WORSE_END = "<!-- worse: written by tools/evaluation.py -->", "<!-- /worse -->"
CASES_BEGIN, CASES_END = "<!-- conform: written by tools/evaluation.py -->", "<!-- /conform -->"

CONFORM: dict[str, tuple[str, dict[str, str]]] = {
    "bbr3": ("bbr3", {}),
    "bbr3, linux-v3": ("bbr3", {"flavour": "linux-v3"}),
    "bbr": ("bbr", {}),
    "cubic": ("cubic", {}),
    "reno": ("reno", {}),
}
"""Columns: controllers whose results are shown, with their options."""


def main() -> int:
    """Run missing evaluations, and write the pages once everything is complete."""
    asked = options()
    every = [name for name, _ in _engine.registry()["controllers"] if not name.startswith(("pcc-", "quinn:"))]
    wanted = asked.controllers.split(",") if asked.controllers else every
    if strange := sorted(set(wanted) - set(every)):
        print(f"--controllers: found {', '.join(strange)}; allowed: some of {', '.join(every)}", file=sys.stderr)
        return 2
    how = {"engine": engine_identity(), "scale": asked.scale, "within_min": asked.decide}
    executor = Threads(asked.jobs)
    try:
        for name in wanted:
            if held(name, how) is None:
                began = time.process_time()
                plan = Plan(candidate=Arm(role="candidate", name=name, controller=name), scale=asked.scale)
                within = Within(seconds=60 * asked.decide) if asked.decide else None
                found = evaluate(plan, asked.folder, executor, within=within)
                keep(name, {**how, "looks": found.decided.looks if found.decided else 0, "rows": details(found)})
                print(f"{name}: {time.process_time() - began:.1f} s of CPU time", file=sys.stderr, flush=True)
    finally:
        executor.close()
    told = {name: one for name in every if (one := held(name, how)) is not None}
    if missing := [name for name in every if name not in told]:
        print(f"the pages wait for: {', '.join(missing)}", file=sys.stderr)
        return 0
    write(told, how)
    return 0


def options() -> argparse.Namespace:
    asked = argparse.ArgumentParser(description=(__doc__ or "").split(":", 1)[0])
    asked.add_argument("--scale", choices=sorted(SEEDS), default="quick")
    asked.add_argument("--decide", type=float, default=0, metavar="MINUTES", help="further looks, for each controller")
    asked.add_argument("--controllers", default="", metavar="NAME,...")
    asked.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked.add_argument("--folder", type=Path, default=Path("build/evaluation"), help="where runs are kept")
    return asked.parse_args()


def held(name: str, how: dict[str, Any]) -> dict[str, Any] | None:
    """A controller's file, if this engine has already evaluated it in this way."""
    place = HELD / f"{name}.json"
    if not place.is_file():
        return None
    found: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return found if all(found[key] == value for key, value in how.items()) else None


def keep(name: str, found: dict[str, Any]) -> None:
    HELD.mkdir(exist_ok=True)
    place = HELD / f"{name}.json"
    part = place.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    part.replace(place)


def details(found: Evaluation) -> list[dict[str, Any]]:
    """Verdict on each row that was run, the controller's worst measure and cell, and the runs that would settle an open row."""
    open_ = {one.row: one.text for one in found.open}
    rows = []
    for one in found.rows:
        if not one.row.cells:
            continue
        row: dict[str, Any] = {"row": one.row.id, "verdict": one.verdict, "remark": one.remark}
        if one.worst is not None:
            j = one.worst
            row |= {"measure": j.measure.name, "cell": j.cell.words, "difference": j.difference.value}
            row |= {"candidate": mean(j, "candidate"), "reference": mean(j, "reference")}
        if one.row.id in open_:
            row["settle"] = open_[one.row.id]
        rows.append(row)
    return rows


def write(told: dict[str, Any], how: dict[str, Any]) -> None:
    """The page, the book's table, and the controllers' pages."""
    heads, rows = table(told)
    lines = [
        "| " + " | ".join(heads) + " |",
        "|---" * len(heads) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    put(BEGIN, END, "\n".join([*about(told, how), *lines]) + "\n")
    put(WORSE_BEGIN, WORSE_END, worse(told))
    put(CASES_BEGIN, CASES_END, cases())
    option = "" if how["scale"] == "standard" else f" --{how['scale']}"
    decide = f" --decide --within {how['within_min']:g}" if how["within_min"] else ""
    what = f"What `ackclock evaluate{option}{decide}` says of every built-in controller over TCP; docs/evaluation.md names rows and signs"
    record("evaluation", heads=heads, rows=rows, what=what)
    known.main()


def put(begin: str, end: str, text: str) -> None:
    """Replace the text between two marks."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", "utf-8")


def cases() -> str:
    """Return one table per pack: one row per case and one column per controller, with the first one's finding."""
    parts = []
    first = next(iter(CONFORM))
    for one in map(pack, names()):
        by = {c: conform(name, one, options=options) for c, (name, options) in CONFORM.items()}
        parts += [f"### {one.title}", "", f"Source: {one.source}.", ""]
        parts += [
            "| case | what | " + " | ".join(CONFORM) + f" | found of {first} |",
            "|---" * (len(CONFORM) + 3) + "|",
        ]
        for i, case in enumerate(one.cases):
            marks = " | ".join(CASE_SYMBOLS[by[c][i].outcome] for c in CONFORM)
            parts.append(f"| {case.id} | {case.title} | {marks} | {by[first][i].said} |")
        parts.append("")
    return "\n".join(parts)


def about(told: dict[str, Any], how: dict[str, Any]) -> list[str]:
    """Engine, scale, purpose of the scale, and column names."""
    first, most = SEEDS[how["scale"]]
    seeds = f"{first} seeds of each cell" if first == most else f"{first} to {most} seeds of each cell"
    fit = ", few cells: an indication, not a finding" if how["scale"] == "quick" else ""
    looks = (
        f", then further looks of at most {how['within_min']:g} minutes for each controller"
        if how["within_min"]
        else ""
    )
    titles = {row.id: row for row in all_rows()}
    ids = [row["row"] for row in told[REFERENCE]["rows"]]
    lines = [
        f"Engine {how['engine']}, scale {how['scale']}, {seeds}{fit}{looks}. Columns are the rows of the evaluation:",
        "",
    ]
    lines += [f"- {i}: {titles[i].title} ({f'§{titles[i].section}' if titles[i].section else 'ours'})" for i in ids]
    return [*lines, ""]


def table(told: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """One row per controller, one column per situation that was run."""
    ids = [row["row"] for row in told[REFERENCE]["rows"]]
    rows = []
    for name, one in told.items():
        by_id = {row["row"]: row for row in one["rows"]}
        marks = [SYMBOLS[by_id[i]["verdict"]] for i in ids]
        worse = sum(row["verdict"] == "worse" for row in one["rows"])
        rows.append([name, *marks, str(worse), "yes" if by_id["6"]["remark"] else ""])
    return ["controller", *ids, "worse", "starved itself"], rows


def worse(told: dict[str, Any]) -> str:
    """Return, by situation, measure and worst cell, the controllers that do worse than CUBIC there, and by how much."""
    groups: dict[tuple[str, str, str], tuple[str, list[tuple[float, str]]]] = {}
    for name, one in told.items():
        for row in one["rows"]:
            if row["verdict"] == "worse" and "measure" in row:
                key = (row["row"], row["measure"], row["cell"])
                said = f"{name} {row['candidate']}"
                groups.setdefault(key, (row["reference"], []))[1].append((row["difference"], said))
    order = [row["row"] for row in told[REFERENCE]["rows"]]
    lines = ["| row | measure, in the cell where it is worst | CUBIC | worse |", "|---|---|---|---|"]
    for at, measure, cell in sorted(groups, key=lambda key: order.index(key[0])):
        reference, who = groups[(at, measure, cell)]
        names = ", ".join(said for _, said in sorted(who))
        lines.append(f"| {at} | {measure}: {cell} | {reference} | {names} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
