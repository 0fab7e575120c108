"""Write docs/evaluation.md: the results of `ackclock evaluate --quick` for every built-in controller that runs over TCP, and those of
`ackclock conform` for a few.

Usage: evaluation.py [FOLDER]. FOLDER keeps the runs (default: build/evaluation). A run takes some minutes, and reports the CPU time of each
controller.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from ackclock import _engine
from ackclock.conform import conform, names, pack
from ackclock.conform.harness import SYMBOLS as CASE_SYMBOLS
from ackclock.evaluate import Arm, Evaluation, Plan, evaluate
from ackclock.evaluate.page import mean
from ackclock.evaluate.plan import REFERENCE
from ackclock.evaluate.verdict import SYMBOLS
from ackclock.sweep import Threads, engine_identity
from book import record_markdown

PAGE = Path(__file__).parent.parent / "docs" / "evaluation.md"
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


def main(folder: Path) -> None:
    """Run everything, and replace the text between the marks."""
    controllers = [name for name, _ in _engine.registry()["controllers"] if not name.startswith(("pcc-", "quinn:"))]
    found: dict[str, Evaluation] = {}
    executor = Threads(2)
    try:
        for name in controllers:
            began = time.process_time()
            plan = Plan(candidate=Arm(role="candidate", name=name, controller=name), scale="quick")
            found[name] = evaluate(plan, folder, executor)
            print(f"{name}: {time.process_time() - began:.1f} s of CPU time", file=sys.stderr)
    finally:
        executor.close()
    put(BEGIN, END, table(found))
    put(WORSE_BEGIN, WORSE_END, worse(found))
    put(CASES_BEGIN, CASES_END, cases())
    record_markdown(
        "evaluation",
        table(found),
        what="What `ackclock evaluate --quick` says of every built-in controller over TCP; docs/evaluation.md names rows and signs",
    )


def put(begin: str, end: str, text: str) -> None:
    """Replace the text between two marks."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", "utf-8")


def cases() -> str:
    """Return a table for each pack: a row per case, a column per controller, with the finding of the first."""
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


def table(found: dict[str, Evaluation]) -> str:
    """A row for each controller, a column for each situation that was run."""
    rows = [r.row for r in found[REFERENCE].rows if r.row.cells]
    lines = [f"Engine {engine_identity()}, scale quick. Columns are the rows of the evaluation:", ""]
    lines += [f"- {row.id}: {row.title} ({f'§{row.section}' if row.section else 'ours'})" for row in rows]
    lines += ["", "| controller | " + " | ".join(row.id for row in rows) + " | worse | starved itself |"]
    lines.append("|---" * (len(rows) + 3) + "|")
    for name, one in found.items():
        by_id = {r.row.id: r for r in one.rows}
        cells = [SYMBOLS[by_id[row.id].verdict] for row in rows]
        starved = "yes" if by_id["6"].remark else ""
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {one.summary()['worse']} | {starved} |")
    return "\n".join(lines) + "\n"


def worse(found: dict[str, Evaluation]) -> str:
    """Return, by situation, measure and worst cell, the controllers that are worse than CUBIC there, and by how much."""
    groups: dict[tuple[str, str, str], tuple[str, list[tuple[float, str]]]] = {}
    for name, one in found.items():
        for row in one.rows:
            if row.verdict != "worse" or row.worst is None:
                continue
            j = row.worst
            reference = mean(j, "reference")
            key = (row.row.id, j.measure.name, j.cell.words)
            said = f"{name} {mean(j, 'candidate')}"
            groups.setdefault(key, (reference, []))[1].append((j.difference.value, said))
    order = [row.row.id for row in found[REFERENCE].rows]
    lines = ["| row | measure, in the cell where it is worst | CUBIC | worse |", "|---|---|---|---|"]
    for row, measure, cell in sorted(groups, key=lambda key: order.index(key[0])):
        reference, who = groups[(row, measure, cell)]
        names = ", ".join(said for _, said in sorted(who))
        lines.append(f"| {row} | {measure}: {cell} | {reference} | {names} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("build/evaluation"))
