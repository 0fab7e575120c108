"""The arena table and its page: the shipped entries on the shipped tasks, over several salts.

    python tools/arena.py measure FOLDER  # make the tables missing in FOLDER, then record
    python tools/arena.py record FOLDER   # write measured/arena*.json, measured/arena/ and the page from FOLDER
    python tools/arena.py costs           # cost of a score, in each tier
    python tools/arena.py loop FOUND FULL KERNEL  # record the result of examples/arena/search.py (--out FOUND), its table on held-out draws (FULL), and one with --kernel
    python tools/arena.py                 # write docs/arena.md from these files
    python tools/arena.py --check         # exit code 1 if the page is outdated

FOLDER contains the folders of `ackclock arena run`, one TASK-SALT each. The table is that of the first salt. The
other salts, which have no files, show how reliable the table is. measured/arena/TASK.json contains the
digest of every run in the table: `ackclock arena rerun measured/arena/TASK.json ENTRY` compares them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import book

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "measured" / "arena"
PAGE = ROOT / "docs" / "arena.md"
TASKS = ("internet", "latency", "satellite")
SALTS = ("survey", "second", "third")
TIER = "medium"
FILES = (
    "examples/arena/cubic.c",
    "examples/ci/controller.py:Mine",
)
"""Controllers in the examples."""

OF_PAGES = (
    ("docs/how-to/write-a-controller-in-c.md", "tcp_wary.c"),
    ("docs/how-to/write-a-controller-in-rust.md", "wary.rs"),
)
"""Pages that contain a controller, and the name under which a reader saves it."""

LEFT_OUT = ("pcc-allegro-", "pcc-proteus-h", "quinn:ours-")
"""Prefixes of names that are variants of other entries."""

KNOWN = 0.95

Said = Mapping[str, Any]


def entries(folder: Path) -> list[str]:
    """Built-in controllers, quinn's, and those from examples and pages, which are saved in the folder."""
    from ackclock import _engine

    built_in = [name for name, _ in _engine.registry()["controllers"] if not name.startswith(LEFT_OUT)]
    folder.mkdir(parents=True, exist_ok=True)
    for page, name in OF_PAGES:
        (folder / name).write_text(_saved(ROOT / page, name), encoding="utf-8")
    return [*built_in, *(str(ROOT / file) for file in FILES), *(str(folder / name) for _, name in OF_PAGES)]


def _saved(page: Path, name: str) -> str:
    """Block on a page that readers are told to save under a name."""
    _, _, rest = page.read_text(encoding="utf-8").partition(f" {name}\n")
    text, end, _ = rest.partition("```\n")
    if not end:
        raise SystemExit(f"{page.relative_to(ROOT)}: found no block {name}")
    return text


def measure(folder: Path) -> None:
    """Do the missing runs and record them. Further salts are run once, because the first one already shows which runs are not repeatable."""
    from ackclock import arena
    from ackclock.arena import files
    from ackclock.cli._arena import entries_of

    everyone = entries_of(entries(folder.resolve()))
    for salt, task in product(SALTS, map(arena.load, TASKS)):
        place = folder / f"{task.name}-{salt}"
        if (place / "arena.json").exists():
            continue
        first = salt == SALTS[0]
        plan = arena.Plan(
            task=task, entries=[e for e in everyone if first or not e.is_own], salt=salt, draws=task.draws[TIER], off=frozenset(() if first else ("twice",)),
        )  # fmt: skip
        table = arena.play(plan, place, 1)
        print(f"{task.name}, salt {salt}: {table.runs:,} runs, {table.cpu_s:.0f} s of CPU", flush=True)
        (place / "arena.json").write_text(json.dumps(files.to_json(table)), encoding="utf-8")
    record(folder)


def record(folder: Path) -> None:
    """Write measured/arena.json, measured/arena-salts.json and the digests."""
    places = {task: [folder / f"{task}-{salt}" / "arena.json" for salt in SALTS] for task in TASKS}
    tables = {
        task: [_ranked(json.loads(p.read_text("utf-8"))) for p in found if p.exists()] for task, found in places.items()
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows: list[list[book.Cell]] = []
    for task, found in tables.items():
        short = {
            **found[0],
            "standings": [_short(s) for s in found[0]["standings"]],
            "ahead": _rounded(found[0]["ahead"]),
        }
        text = json.dumps(short, ensure_ascii=False, separators=(",", ":")).replace('{"entry"', '\n{"entry"')
        (FOLDER / f"{task}.json").write_text(text + "\n", encoding="utf-8")
        rows += [[task, *_row(standing)] for standing in found[0]["standings"]]
    first = tables[TASKS[0]][0]
    _write(
        "arena",
        first,
        what=f"Built-in controllers, quinn's, and those of the examples and pages in the arena, {first['draws']} draws of each family (beside CUBIC: {_beside(first)}), each run made twice",
        heads=("task", "rank", "entry", "score", "from", "to", "ahead of the next, %", "worst tenth", "left to CUBIC, %", "remark", "code", "runs"),
        rows=rows,
        seeds=f"drawn from the salt {SALTS[0]}",
        notes=("`code` is the hash of an entry's file, `runs` that of the digests of its runs; measured/arena/ has each digest.",),
    )  # fmt: skip
    compared = {task: found for task, found in tables.items() if len(found) > 1}
    if not compared:
        return
    _write(
        "arena-salts",
        next(iter(compared.values()))[1],
        what="How far a table of the arena can be trusted: pairs whose order it calls known (95 %), and those of them that are the other way round with another salt",
        heads=(
            "task",
            "table of salt",
            "other salts",
            "pairs",
            "known",
            "known, %",
            "turned",
            "turned, %",
            "of these by starving",
            "tau-b",
        ),
        rows=[row for task, found in compared.items() for row in _trust(task, found)],
        seeds=f"drawn from the salts {', '.join(SALTS)}",
        notes=(
            "Pairs are those of entries that all tables of the task have. A known pair has turned if it is the other way round in one of the other salts at least. "
            "By starving: one of the two starves others in one table and not in the other, which puts it behind all that do not. Whether an entry that leaves CUBIC about half does so hangs on the "
            "draws of one family, and would turn all of its pairs at once; so a pair whose order hangs on that is not known. Tau-b is the mean of Kendall's rank correlation with the other tables.",
        ),
    )


def costs() -> None:
    """Write measured/arena-costs.json: a C module, with CUBIC and Reno for comparison, as scored by `ackclock arena serve`."""
    from tempfile import TemporaryDirectory

    from ackclock import _files
    from ackclock.arena import TIERS
    from ackclock.arena.serve import Server

    _files.give_leave()
    entry = {"language": "c", "text": (ROOT / FILES[0]).read_text(encoding="utf-8")}
    rows: list[list[book.Cell]] = []
    equal: list[str] = []
    for task in TASKS:
        whole = 0.0
        with TemporaryDirectory() as folder:
            server = Server(Path(folder), "costs", 1)
            for tier in TIERS:
                said = server.answer(json.dumps({"task": task, "entry": entry, "tier": tier, "beat": "reno"}))
                whole += said["cpu_s"]
                runs, cpu_s = said["runs"], said["cpu_s"]
                rows.append([task, tier, said["tier"], runs, round(cpu_s, 1), round(runs / cpu_s), round(whole, 1)])
                print(*rows[-1], flush=True)
                if tier == TIER:
                    one = said["digests"]
        with TemporaryDirectory() as folder:
            asked = {"task": task, "entry": entry, "tier": TIER, "beat": "reno"}
            two = Server(Path(folder), "costs", 2).answer(json.dumps(asked))["digests"]
        equal.append(f"{sum(two[draw] == digest for draw, digest in one.items())} of {len(one)} ({task})")
    book.record(
        "arena-costs",
        command="tools/arena.py costs",
        what=f"What a score of {FILES[0]} takes in each tier of the arena, with CUBIC's and Reno's runs, on one thread",
        heads=("task", "tier", "reached", "runs", "CPU, s", "runs a second of CPU", "with the tiers before, s"),
        rows=rows,
        seeds="drawn from the salt costs",
        notes=("A run is a scenario of 20 to 60 s, or one of a search of the family `adversary`. Compiling, loading and scoring are in the CPU time. Digests on one thread and on two are equal in "
            + ", ".join(equal)
            + f" draws of the tier {TIER}.",
        ),
    )  # fmt: skip


def loop(found: Path, full: Path, kernel: Path) -> None:
    """Write measured/arena-loop.json and measured/arena-winner.json."""
    import csv

    told = json.loads((found / "held-out.json").read_text("utf-8"))
    with (found / "curve.csv").open(encoding="utf-8") as opened:
        curve = [
            [int(r["evaluations"]), float(r["cpu_s"]), round(float(r["score"]), 1), round(100 * float(r["left"]), 2)]
            for r in csv.DictReader(opened)
        ]
    constants = ", ".join(f"{name} {value}" for name, value in told["constants"].items())
    book.record(
        "arena-loop",
        command="examples/arena/search.py --out FOUND",
        what="The loop of the example: the best mutant of CUBIC's constants so far, on the satellite task's draws of the search (6 of each family, 24 beside CUBIC), by mutants looked at",
        heads=("mutants", "CPU, s", "score", "left to CUBIC, %"),
        rows=curve,
        seeds="1; drawn from the salts search and check",
        notes=(
            f"bbr3, which is to be beaten, has {told['bar']:.1f} there. {told['evaluations']} mutants in {told['search_cpu_s']:.0f} s of CPU, stopped there; checking the last ones on other draws took {told['check_cpu_s']:.0f} s more.",
            "On the draws of the check, from the newest on: "
            + "; ".join(
                f"{one['score']:.1f}, {100 * one['left_to_others']:.2f} % left (Reno: {100 * one['reno']['left_to_others']:.2f} %)"
                for one in told["checked"]
            )
            + ".",
            f"The winner: {constants}.",
        ),
    )
    tables = [json.loads((folder / "arena.json").read_text("utf-8")) for folder in (full, kernel)]
    asked = tables[1]["kernel"]
    rows: list[list[book.Cell]] = []
    for standing in tables[0]["standings"]:
        there = asked.get(standing["entry"]) or {}
        rows.append(
            [
                standing["entry"], *(round(v, 1) for v in standing["score"]), round(standing["worst"], 1), *(round(100 * v, 1) for v in standing["left_to_others"]),
                *("–" if there.get(k) is None else round(there[k], 1) for k in ("score", "simulator", "worst")),
                "–" if there.get("left_to_others") is None else round(100 * there["left_to_others"], 1),
            ]
        )  # fmt: skip
    words = [
        f"{one['entry']} {100 * one['ahead_of_next']:.1f} %"
        for one in tables[0]["standings"]
        if one["ahead_of_next"] is not None
    ]
    book.record(
        "arena-winner",
        command="ackclock arena run satellite --entry winner.c --salt unseen --tier full; --tier medium --kernel arena",
        what=f"The winner of the loop on held-out draws of the satellite task, {tables[0]['draws']} of each family ({_beside(tables[0])} beside CUBIC), and in Linux 7.3.4 on {tables[1]['draws']} of each ({_beside(tables[1])}) without the adversary",
        heads=(
            "controller", "score", "from", "to", "worst tenth", "left to CUBIC, %", "from", "to", "score on the kernel", "in the simulator, same draws", "worst tenth on the kernel",
            "left to CUBIC there, %",
        ),
        rows=rows,
        seeds="drawn from the salt unseen",
        notes=(
            f"Ahead of the next: {', '.join(words)}.",
            f"Left to CUBIC beside winner.c less what Reno leaves it, draw by draw: {_less_than_reno(tables[0])}; on the kernel's draws, in the simulator: {_less_than_reno(tables[1])}.",
            "Linux 7.3.4 has no bbr3; others were not asked.",
        ),
    )  # fmt: skip


def _less_than_reno(said: Said) -> str:
    """Difference between the capacity that others get beside the winner and beside Reno, with its interval."""
    from ackclock.judge.intervals import paired_difference

    left = {
        s["entry"]: [row["terms"]["others"] for row in s["rows"] if "others" in row["terms"]] for s in said["standings"]
    }
    found = paired_difference(left["winner.c"], left["reno"])
    return f"{100 * found.value:+.1f} % ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def _write(name: str, table: Said, **more: Any) -> None:
    """A record that names the build that made the runs, which may be older than the current one."""
    path = book.record(name, command="tools/arena.py measure FOLDER", **more)
    held = json.loads(path.read_text("utf-8"))
    version, _, build = table["engine"].partition("+")
    path.write_text(
        json.dumps(
            {**held, "version": version, "build": build, "profile": table["profile"]}, indent=1, ensure_ascii=False
        )
        + "\n",
        encoding="utf-8",
    )


def _ranked(said: Said) -> Said:
    """The table with ranks and probabilities computed by the current `ackclock.arena`."""
    from ackclock.arena import load, rank

    starves = load(said["task"]["name"]).starves
    able = [s for s in said["standings"] if not s["why"]]
    able.sort(key=lambda s: (s["starves"], -s["score"][0], s["entry"]))

    def by_family(standing: Said, value: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for row in standing["rows"]:
            if value == "score" or value in row["terms"]:
                found.setdefault(row["draw"].rpartition("-")[0], []).append(
                    row["score"] if value == "score" else row["terms"][value]
                )
        return found

    scores, left = ([by_family(s, value) for s in able] for value in ("score", "others"))
    ahead = rank.ahead(scores, left=left, starves=starves).tolist()
    placed = [
        {**s, "rank": i + 1, "ahead_of_next": ahead[i][i + 1] if i + 1 < len(able) else None}
        for i, s in enumerate(able)
    ]
    return {**said, "standings": [*placed, *(s for s in said["standings"] if s["why"])], "ahead": ahead}


def _trust(task: str, found: Sequence[Said]) -> list[list[book.Cell]]:
    """One row per salt's table."""
    from ackclock.arena.rank import tau_b

    rows: list[list[book.Cell]] = []
    for table in found:
        names = [s["entry"] for s in table["standings"] if s["rank"] is not None]
        others = [
            {s["entry"]: s["rank"] for s in o["standings"] if s["rank"] is not None} for o in found if o is not table
        ]
        names = [name for name in names if all(name in ranks for ranks in others)]
        at = {s["entry"]: i for i, s in enumerate(table["standings"])}
        pairs = list(combinations(names, 2))
        known = [(a, b) for a, b in pairs if table["ahead"][at[a]][at[b]] >= KNOWN]
        turned = [(a, b) for a, b in known if any(ranks[a] > ranks[b] for ranks in others)]
        starving = [{s["entry"] for s in o["standings"] if s["starves"]} for o in found]
        unsteady = set.union(*starving) - set.intersection(*starving)
        by_starving = sum(bool(unsteady & {*pair}) for pair in turned)
        tau = sum(tau_b(range(len(names)), [ranks[name] for name in names]) for ranks in others) / len(others)
        rows.append(
            [
                task, table["salt"], len(others), len(pairs), len(known), round(100 * len(known) / len(pairs), 1), len(turned),
                round(100 * len(turned) / max(len(known), 1), 1), by_starving, round(tau, 3),
            ]
        )  # fmt: skip
    return rows


def _row(standing: Said) -> list[book.Cell]:
    def number(value: float | None, by: float = 1.0) -> book.Cell:
        return "–" if value is None else round(by * value, 1)

    score = standing["score"] or [None] * 3
    left = standing["left_to_others"]
    return [
        standing["rank"] or "–", standing["entry"], *(number(v) for v in score), number(standing["ahead_of_next"], 100), number(standing["worst"]),
        number(None if left is None else left[0], 100), standing["why"] or _remark(standing),
        standing["code"] or "built in", of_runs(standing),
    ]  # fmt: skip


def _beside(said: Said) -> int:
    """Number of draws in the families that measure the capacity others get."""
    rows = said["standings"][0]["rows"]
    return sum("others" in row["terms"] for row in rows)


def _remark(standing: Said) -> str:
    if standing["starves"]:
        return "starves others, not surely" if standing["starving_is_open"] else "starves others"
    return "may starve others" if standing["starving_is_open"] else ""


def of_runs(standing: Said) -> str:
    """Return a single hash of all digests of an entry."""
    return hashlib.sha256(" ".join(row["digest"] for row in standing["rows"]).encode()).hexdigest()[:16]


def _short(standing: Said) -> dict[str, Any]:
    """Numbers that determine the score, and the digests."""
    rows = [
        {
            "draw": row["draw"], "seed": row["seed"], "terms": {term: round(v, 4) for term, v in row["terms"].items()}, "digest": row["digest"],
        }
        for row in standing["rows"]
    ]  # fmt: skip
    return {**standing, "rows": rows}


def _rounded(ahead: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[round(v, 3) for v in row] for row in ahead]


def page() -> str:
    """Text of docs/arena.md."""
    table = book.read(book.FOLDER / "arena.json")
    told = {task: json.loads((FOLDER / f"{task}.json").read_text("utf-8")) for task in TASKS}
    first = told[TASKS[0]]
    lines = [
        "# The table of the arena",
        "",
        "<!-- written by tools/arena.py -->",
        "",
        f"Built-in controllers, quinn's, and those of the examples and pages, on {first['draws']} draws of each family of each task, {_beside(first)} of that in which CUBIC stands beside; every run was made twice. "
        "[Enter the arena](how-to/enter-the-arena.md) says how scores and ranks come about, and `ackclock arena run` makes such a table with your controller in it.",
        "",
        f"Measured {table['date']} with version {table['version']}, build {table['build']}, profile {table['profile']}; salt `{first['salt']}`. "
        "Make the runs of a row again, and compare their digests:",
        "",
        "```",
        f"ackclock arena rerun measured/arena/{TASKS[-1]}.json bbr3",
        "```",
        "",
        "Another build of the engine may give other digests: where behaviour has changed, or where the compiler of a module in C is another one.",
        "",
    ]
    heads = table["heads"][1:]
    for task in TASKS:
        said = told[task]
        lines += [
            f"## {task}",
            "",
            f"Task `{task}` {said['task']['digest']}. The order of {_known(said)} of {len(said['ahead']) * (len(said['ahead']) - 1) // 2} pairs is known (95 %).",
            "",
            f"| {' | '.join(heads)} |",
            f"|{' --- |' * len(heads)}",
            *(f"| {' | '.join(book.cell(v) for v in row[1:])} |" for row in table["rows"] if row[0] == task),
            "",
        ]
    lines += [
        "`from` and `to`: 95 % interval of the score. `left to CUBIC`: what a flow of CUBIC beside the entry gets, by what it gets beside another CUBIC; an entry that leaves less "
        "than half ranks behind all others. Who *may starve others*, or does *not surely*, has half within the 95 % interval of that. `code`: hash of the entry's file. `runs`: hash of the digests of its runs, which `measured/arena/` has one by one.",
        "",
    ]
    trust = book.FOLDER / "arena-salts.json"
    if trust.exists():
        lines += _section(book.read(trust), "How far to trust it")
    for name, heading in (
        ("arena-costs", "What a score takes"),
        ("arena-loop", "The loop of the example"),
        ("arena-winner", "Its winner"),
    ):
        if (book.FOLDER / f"{name}.json").exists():
            lines += _section(book.read(book.FOLDER / f"{name}.json"), heading)
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(table: Said, heading: str) -> list[str]:
    return [
        f"## {heading}",
        "",
        f"{table['what']}.",
        "",
        f"| {' | '.join(table['heads'])} |",
        f"|{' --- |' * len(table['heads'])}",
        *(f"| {' | '.join(book.cell(v) for v in row)} |" for row in table["rows"]),
        "",
        *(line for note in table["notes"] for line in (note, "")),
    ]


def _known(said: Said) -> int:
    ahead = said["ahead"]
    return sum(max(ahead[i][j], 1 - ahead[i][j]) >= KNOWN for i, j in combinations(range(len(ahead)), 2))


def main() -> int:
    if sys.argv[1:2] in (["measure"], ["record"]) and len(sys.argv) == 3:
        (measure if sys.argv[1] == "measure" else record)(Path(sys.argv[2]))
    elif sys.argv[1:] == ["costs"]:
        costs()
    elif sys.argv[1:2] == ["loop"] and len(sys.argv) == 5:
        loop(*map(Path, sys.argv[2:]))
    elif sys.argv[1:] == ["--check"]:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != page():
            print(f"{PAGE.relative_to(ROOT)}: differs from measured/; run tools/arena.py", file=sys.stderr)
            return 1
        return 0
    elif sys.argv[1:]:
        print(
            f"found {' '.join(sys.argv[1:])}; allowed: nothing, --check, costs, loop FOUND FULL KERNEL, measure FOLDER or record FOLDER",
            file=sys.stderr,
        )
        return 2
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
