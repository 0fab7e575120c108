"""Write docs/worst-cases.md: known worst cases found again, the zoo, and every built-in controller's worst case, alone and against others.

Usage: worst_cases.py [FOLDER] [--without-kernel]. FOLDER keeps the journals (default: build/worst-cases), so that an interrupted run can
continue. A run takes about ten minutes of CPU time. Without the linux backend's kernel, its results are omitted, and
the page says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ackclock import _engine, attack
from ackclock.attack import confirm, explain, zoo
from ackclock.attack.files import again
from ackclock.errors import AckclockError
from ackclock.sweep import Threads, engine_identity
from book import record_markdown

PAGE = Path(__file__).parent.parent / "docs" / "worst-cases.md"
SEED = 1


@dataclass(frozen=True, kw_only=True)
class Known:
    """A worst case known from the literature.

    Parameters
    ----------
    id, about, source
        Number, description and source of the worst case.
    attack
        Attack that finds it.
    """

    id: str
    about: str
    source: str
    attack: attack.Attack


def known(id_: str, about: str, source: str, target: str, budget: str, **more: object) -> Known:
    """An entry of `CASES`."""
    wanted = attack.Attack(target=target, budget=attack.load(budget), seed=SEED, **more)  # type: ignore[arg-type]
    return Known(id=id_, about=about, source=source, attack=wanted)


CASES: Sequence[Known] = (
    known("A1", "Vegas keeps the old base RTT", "AdvNet, PACMNET 2026", "vegas", "steps"),
    known("A2", "BBR keeps the rate of a slow first second", "AdvNet", "bbr", "steps"),
    known("A3", "HyStart takes a longer path for a queue", "AdvNet", "cubic", "wide", references=("reno",)),
    known("A4", "BBR in a jitter box of one RTT", "CCAC, SIGCOMM 2021", "bbr", "box"),
    known("A5", "Copa in a jitter box of one RTT", "CCAC", "copa", "box"),
    known(
        "A6", "Reno loses a packet at a window that path and queue hold", "CCAC", "reno", "two-bdp", objective="early",
        references=("bbr", "vegas"), evaluations=300,
    ),
    known(
        "A7", "one of two equal flows starves if its packets are held", "SIGCOMM 2022", "bbr", "one-held", objective="starvation",
        references=("reno", "cubic"), evaluations=60,
    ),
    known(
        "A7", "the same of Copa", "SIGCOMM 2022", "copa", "one-held", objective="starvation", options={"competitive": False},
        references=("reno", "cubic"), evaluations=60,
    ),
    known("A8", "the low-rate attack", "Kuzmanovic, Knightly, SIGCOMM 2003", "cubic", "cross", evaluations=300),
    known("A14", "PCC under chosen loss", "of the kind of NDSS 2018", "pcc-allegro", "chosen", references=("cubic",), evaluations=60),
)  # fmt: skip
"""Known worst cases, numbered as in the project's first fact sheet: A9 to A13 are bugs, and in the zoo."""

ALONE, BESIDE = 100, 40
"""Number of environments per table cell."""


class Page:
    """Lines of the page, and the executor for its runs."""

    def __init__(self, folder: Path, kernel: bool) -> None:
        self.folder = folder
        self.kernel = kernel
        self.executor = Threads(1)
        self.lines: list[str] = []
        self.began = time.process_time()

    def searched(self, wanted: attack.Attack, name: str, *, simplify: bool = True) -> attack.Found:
        """Result of an attack; read from its journal if this engine has already run it."""
        place = self.folder / engine_identity() / name
        place.mkdir(parents=True, exist_ok=True)
        found = attack.run(wanted, self.executor, folder=place, simplify=simplify)
        print(f"{name}: {found.score:.3f}, {time.process_time() - self.began:.0f} s of CPU so far", file=sys.stderr)
        return found

    def say(self, *lines: str) -> None:
        """Text of the page, line by line."""
        self.lines += lines


def main(folder: Path, *, kernel: bool) -> None:
    """Run all searches, and write the page."""
    page = Page(folder, kernel)
    page.say(
        "# Worst cases",
        "",
        "<!-- written by tools/worst_cases.py -->",
        "",
        "What [`ackclock attack`](how-to/find-the-worst-case.md) finds. A score is what a controller lacks of the best that a reference "
        "gets in the same environment: 0 nothing, 1 everything. Each environment is the simplest whose score is nine tenths of the worst.",
        "",
        f"Engine {engine_identity()}, seed {SEED}.",
        "",
    )
    try:
        cases(page)
        bugs(page)
        alone(page)
        pairs(page)
        beside(page)
    finally:
        page.executor.close()
    PAGE.write_text("\n".join(page.lines) + "\n", "utf-8")


def cases(page: Page) -> None:
    """Return the known worst cases and the kernel's results."""
    rows, commands = [], []
    for number, case in enumerate(CASES):
        found = page.searched(case.attack, f"known-{number}")
        parted = explain.parting(found)
        kernel = "not asked"
        if page.kernel:
            try:
                said = confirm.ask(found)
                kernel = "cannot" if said.score is None else f"{said.score:.2f} (simulator {said.simulated:.2f})"
            except AckclockError as error:
                kernel = str(error)
        rows.append(
            f"| {case.id} | {case.about} | {case.source} | {found.scores[1].score:.2f} | {kernel} | {_environment(found)} | "
            f"{parted.cause or '–'} | {found.width * 100:.0f} % |"
        )
        commands.append(f"{again(case.attack)}  # {case.id}")
    page.say(
        "## Known ones, found again",
        "",
        "| | what | known from | score | kernel | environment | held by | pit |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        "*Kernel*: the score of the same environment in the Linux kernel, and the simulator's against the same references; it has "
        "neither Copa nor, without a patch, BBRv3, so that a case whose best reference is BBRv3 (A8) scores less in both. *Held by*: what "
        "kept the target from sending from where the two part to the end, as shares of that time. *Pit*: neighbours within 5 % that keep "
        "four fifths of the score.",
        "",
        "```",
        *commands,
        "```",
        "",
    )


def bugs(page: Page) -> None:
    """The zoo: scores with each bug, and of the same controller without it."""
    rows = []
    for name, bug in zoo.ZOO.items():
        if not bug.budget:  # detected in another way
            how = f"`ackclock.controllers.check`, rule {bug.rule}" if bug.rule else "`ackclock evaluate`"
            rows.append(f"| `zoo:{name}` | {bug.about} | {bug.reference} | {how} | – | – |")
            continue
        scores = []
        for cls in (bug.made, bug.cured):
            wanted = attack.Attack(
                target=f"{zoo.__file__}:{cls.__name__}", budget=attack.load(bug.budget), objective=bug.objective,
                evaluations=zoo.ENOUGH, search="random", seed=SEED,
            )  # fmt: skip
            scores.append(page.searched(wanted, f"zoo-{cls.__name__}-{bug.objective}", simplify=False).score)
        how = f"`--budget {bug.budget} --objective {bug.objective}`"
        rows.append(f"| `zoo:{name}` | {bug.about} | {bug.reference} | {how} | {scores[0]:.2f} | {scores[1]:.2f} |")
    page.say(
        "## The zoo",
        "",
        f"Scores of {zoo.ENOUGH} random environments: of the bug, and of the same controller without it.",
        "",
        "| target | bug | reference | shown by | score | cured |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
    )


def _environment(found: attack.Found) -> str:
    return found.attack.budget.words(found.worst)


def controllers() -> list[str]:
    """Controllers that run over TCP."""
    return [name for name, _ in _engine.registry()["controllers"] if not name.startswith(("pcc-", "quinn:"))]


def alone(page: Page) -> None:
    """Return each controller's results against the usual references, with environment and limiting cause."""
    rows = []
    for name in controllers():
        wanted = attack.Attack(target=name, budget=attack.load("steps"), evaluations=2 * ALONE, seed=SEED)
        found = page.searched(wanted, f"alone-{name}")
        parted = explain.parting(found)
        at = "–" if parted.at_s is None else f"{parted.at_s:.2f} s"
        other = found.attack.arms[found.reference].name
        rows.append(
            f"| {name} | {found.scores[1].score:.2f} | {other} | {_environment(found)} | {at} | {parted.cause or '–'} |"
        )
    about = f"Two intervals and one queue (`--budget steps --evaluations {2 * ALONE}`), against CUBIC, Reno and BBRv3."
    table = [
        "| controller | score | best reference | environment | they part at | then held by |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    page.say("## Every controller alone", "", about, "", *table, "")
    what = "The worst case of every controller alone: what it lacks of the best that a reference gets, 0 nothing, 1 everything"
    record_markdown("worst-cases", "\n".join(table), what=what, seeds=str(SEED), notes=[about])


def pairs(page: Page) -> None:
    """Each controller's regret relative to every other, alone on the path."""
    names = controllers()
    rows = []
    for name in names:
        base = attack.Attack(target=name, budget=attack.load("steps"), evaluations=ALONE, seed=SEED)
        scores = [
            ""
            if other == name
            else f"{page.searched(replace(base, references=(other,)), f'pair-{name}-{other}', simplify=False).score:.2f}"
            for other in names
        ]
        rows.append(f"| {name} | " + " | ".join(scores) + " |")
    page.say(
        "## Every controller against every other",
        "",
        "The most that the controller of the row lacks of what the one of the column delivers, each alone on the path "
        f"(`--budget steps --reference COLUMN --evaluations {ALONE}`; AdvNet's table, PACMNET 2026).",
        "",
        "| | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
        *rows,
        "",
    )


def beside(page: Page) -> None:
    """Each controller's harm to every other: goodput lost compared with a second flow of the victim's kind."""
    names = controllers()
    rows = []
    for name in names:

        def harm(other: str, name: str = name) -> attack.Attack:
            return attack.Attack(
                target=name, victim=other, budget=attack.load("steps"), objective="harm", evaluations=BESIDE, seed=SEED
            )

        scores = [
            "" if other == name else f"{page.searched(harm(other), f'beside-{name}-{other}', simplify=False).score:.2f}"
            for other in names
        ]
        rows.append(f"| {name} | " + " | ".join(scores) + " |")
    page.say(
        "## Every controller beside every other",
        "",
        "The most that the controller of the row takes from the one of the column, as a share of what that has beside another of its own "
        f"kind (`--objective harm --beside COLUMN --evaluations {BESIDE}`).",
        "",
        "| | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
        *rows,
        "",
    )


if __name__ == "__main__":
    given = [a for a in sys.argv[1:] if not a.startswith("--")]
    main(Path(given[0]) if given else Path("build/worst-cases"), kernel="--without-kernel" not in sys.argv)
