"""Writes docs/known/NAME.md, "what is known of NAME", for each built-in controller over TCP: the verdicts of its evaluation, its worst case, and the
comparison with Linux. All three are taken from measured/; the pages say nothing else.

    python tools/known.py            # write the pages, and their list in docs/evaluation.md
    python tools/known.py --check    # exit code 1 if one differs from measured/
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ackclock import _engine
from ackclock.evaluate.rows import rows
from ackclock.evaluate.verdict import SYMBOLS

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "measured"
FOLDER = ROOT / "docs" / "known"
LIST = ROOT / "docs" / "evaluation.md"
BEGIN, END = "<!-- known: written by tools/known.py -->", "<!-- /known -->"

VERDICT_OF = {symbol: verdict for verdict, symbol in SYMBOLS.items()}
OPEN, FINE = "no difference shown", "no worse"
IN_LINUX = {"westwood-plus": "westwood"}
"""Name in Linux, if it is different."""

NOT_IN_LINUX = {"westwood"}
"""Controllers that share a name with a different one in Linux."""


def main() -> int:
    made = pages()
    text = LIST.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    links = " · ".join(f"[{name}](known/{name}.md)" for name in made)
    listed = f"{before}{BEGIN}\n\n{links}\n\n{END}{rest.partition(END)[2]}"
    wanted = {FOLDER / f"{name}.md": page for name, page in made.items()} | {LIST: listed}
    strange = sorted(set(FOLDER.glob("*.md")) - set(wanted))
    if "--check" in sys.argv[1:]:
        wrong = [p for p, page in wanted.items() if not p.is_file() or p.read_text(encoding="utf-8") != page]
        for place in [*wrong, *strange]:
            print(f"{place.relative_to(ROOT)}: not as measured/ says; tools/known.py writes it", file=sys.stderr)
        return 1 if wrong or strange else 0
    FOLDER.mkdir(exist_ok=True)
    for place, page in wanted.items():
        place.write_text(page, encoding="utf-8")
    for place in strange:
        place.unlink()
    return 0


def pages() -> dict[str, str]:
    """The page of each evaluated controller, by name."""
    about = dict(_engine.registry()["controllers"])
    verdicts, worst = measured("evaluation"), measured("worst-cases")
    names = [row[0] for row in verdicts["rows"]]
    return {
        name: "\n".join(
            [
                f"# What is known of `{name}`",
                "",
                BEGIN,
                "",
                f"{about[name][0].upper()}{about[name][1:]}. Its [options](../controllers.md#options); [the other controllers](../evaluation.md).",
                "",
                *situations(name, verdicts),
                *worst_case(name, worst),
                *kernel(name),
                END,
                "",
            ]
        )
        for name in names
    }


def measured(name: str) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((MEASURED / f"{name}.json").read_text(encoding="utf-8"))
    return held


def details(name: str, build: str) -> dict[str, dict[str, Any]]:
    """Measure that decides the verdict on each row, by row id; empty without a file from the same engine."""
    place = MEASURED / "evaluation" / f"{name}.json"
    if not place.is_file():
        return {}
    held = json.loads(place.read_text(encoding="utf-8"))
    return {row["row"]: row for row in held["rows"]} if held["engine"].endswith(build) else {}


def situations(name: str, found: dict[str, Any]) -> list[str]:
    """Verdicts of the evaluation: one row for each decided one, and one line for the others."""
    marks = dict(zip(found["heads"], next(row for row in found["rows"] if row[0] == name), strict=True))
    why = details(name, found["build"])
    by_id = {row.id: row for row in rows()}
    verdicts = {id_: VERDICT_OF[marks[id_]] for id_ in by_id if id_ in marks}
    decided = {id_: verdict for id_, verdict in verdicts.items() if verdict not in (OPEN, FINE, "not tested")}
    fine = [id_ for id_, verdict in verdicts.items() if verdict == FINE]
    open_ = [id_ for id_, verdict in verdicts.items() if verdict == OPEN]
    lines = [
        "## In the situations of RFC 9743",
        "",
        f"{found['what'].partition(';')[0]} (engine {found['version']}+{found['build']}). In CUBIC's place, by [our margins](../reference/evaluate.md), it is",
        "; ".join(f"{verdict} in {list(verdicts.values()).count(verdict)}" for verdict in VERDICT_OF.values() if verdict in verdicts.values())
        + f" of {len(verdicts)} situations." + (" It starved itself beside others." if marks["starved itself"] else ""),
        "",
    ]  # fmt: skip
    if decided:
        head = ("measure, in the cell where it is worst", name, "CUBIC") if why else ()
        lines += [
            "".join(f"| {one} " for one in ("row", "situation", "verdict", *head)) + "|",
            "|---|---|---|" + "---|" * len(head),
        ]
        for id_, verdict in decided.items():
            one = why.get(id_, {})
            cells = (
                (f"{one['measure']}: {one['cell']}", one["candidate"], one["reference"])
                if one.get("measure")
                else ("",) * len(head)
            )
            row = (id_, by_id[id_].title, f"{SYMBOLS[verdict]} {verdict}", *cells)
            lines.append("".join(f"| {cell} " for cell in row) + "|")
        lines.append("")
    if fine:
        lines += ["No worse: " + "; ".join(f"{by_id[id_].title.lower()} ({id_})" for id_ in fine) + ".", ""]
    if open_:
        lines += ["No difference shown: " + "; ".join(f"{by_id[id_].title.lower()} ({id_})" for id_ in open_) + ".", ""]
    settled = dict.fromkeys(one["settle"] for id_ in open_ if (one := why.get(id_, {})).get("settle"))
    lines += [f"- {text}: {', '.join(i for i in open_ if why[i].get('settle') == text)}" for text in settled]
    return [*lines, *([""] if settled else []), "```", f"ackclock evaluate {name}", "```", ""]


def worst_case(name: str, found: dict[str, Any]) -> list[str]:
    row = next((row for row in found["rows"] if row[0] == name), None)
    if row is None:
        return ["## Worst case", "", "None was searched for.", ""]
    at = dict(zip(found["heads"], row, strict=True))
    return [
        "## Worst case",
        "",
        f"Of two intervals on one queue, the worst that [`ackclock attack`](../worst-cases.md) found costs it {float(at['score']) * 100:.0f} % of what {at['best reference']}, the best "
        f"reference, gets there (engine {found['version']}+{found['build']}).",
        "",
        f"- environment: {at['environment']}",
        f"- they part at: {at['they part at'] or '–'}",
        f"- then held by: {at['then held by'] or '–'}",
        "",
        "```",
        f"ackclock attack {name} --budget steps --evaluations 200 --seed 1",
        "```",
        "",
    ]


def kernel(name: str) -> list[str]:
    """The comparison with Linux that names this controller."""
    return ["## Beside Linux", "", *compared(name), ""]


def compared(name: str) -> list[str]:
    said = IN_LINUX.get(name, name)
    called = f" (`{said}` there)" if said != name else ""
    if name not in NOT_IN_LINUX:
        modules = measured("linux-modules")
        for who, count, note in modules["rows"]:
            if said in who.split(", "):
                remark = f" {note[0].upper()}{note[1:]}." if len(who.split(", ")) == 1 or said in note.lower() else ""
                return [
                    f"Linux's own file{called}, run in the simulator beside the kernel on the first 5 s of 30 drawn paths: {str(count).split()[0]} runs have the kernel's "
                    f"every ACK and segment ([numbers](../numbers.md#linux-modules)).{remark} `ackclock diff --drawn` compares ours with it.",
                ]
        if name == "bbr3":
            drawn = measured("bbr3-on-kernel")["rows"]
            total, same = (
                sum(int(row[n]) for row in drawn if str(row[n]).isdigit() and row[0] != "all") for n in (1, 2)
            )
            return [
                f"Flavour `linux-v3`, beside Linux with Google's patch: {same} of {total} drawn scenarios have the kernel's every event ([numbers](../numbers.md#bbr3-on-kernel))."
            ]
        if name in ("reno", "cubic"):
            lost = [row for row in measured("patterns")["rows"] if str(row[0]).endswith(", cubic") == (name == "cubic")]
            same = sum(str(row[1]).startswith("yes") for row in lost)
            return [
                f"Of {len(lost)} patterns of loss in a transfer of 200 segments, {same} equal the kernel's, ACK by ACK, to the end of recovery "
                "([numbers](../numbers.md#patterns)); drawn scenarios of every family are compared, too ([numbers](../numbers.md#drawn-families))."
            ]
    return ["Linux has no such controller, so nothing was compared."]


if __name__ == "__main__":
    sys.exit(main())
