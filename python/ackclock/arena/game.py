"""Runs a table's entries on the same draws, each run twice, and scores them.

Length: entries, runs and scores are read together.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock.arena import rank
from ackclock.arena._sealed import GUARDS, Sealed, look
from ackclock.arena.score import KEPT, combined, terms
from ackclock.arena.task import PUBLIC, Draw, Task, drawn
from ackclock.errors import AckclockError, InputError, ScenarioError, UnavailableError

if TYPE_CHECKING:
    from ackclock.arena.confirm import Verdict
    from ackclock.attack.runs import Others
    from ackclock.judge.intervals import Estimate
    from ackclock.scenario import Scenario
    from ackclock.sweep import Store

REFERENCE = "cubic"
YARDSTICK = "reno"
"""Entries in every table: harm is relative to other flows' goodput beside CUBIC, and an entry below Reno has not won."""

LIMIT_S = 60.0
"""Maximum CPU time of a run, s; a run that needs more counts as failed."""

MEMORY = 2**30
"""Maximum memory of a run, bytes."""

UNSURE = ": it looks at a clock, at other runs, or at what is not of the run"

WARM_UP = "1500 ms"
"""Warm-up excluded from the score if the trap "start" is off."""

TRAPS = (
    "held-out",
    "twice",
    "seal",
    "memory",
    "reach",
    "fence",
    "apart",
    "failures",
    "others",
    "start",
    "geometric",
    "unfinished",
    "delay",
    "loss",
)
"""Traps for cheating entries. Tests switch one off to show that it stops a particular cheat."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A participating controller.

    Parameters
    ----------
    controller
        Controller name, or `FILE.c`, `FILE.rs`, `FILE.py:CLASS` with an absolute path.
    options
        `congestion_control_options`.
    """

    controller: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name shown to readers."""
        from ackclock.own import short

        options = ", ".join(f"{k}={v}" for k, v in self.options.items())
        return short(self.controller) + (f" ({options})" if options else "")

    @property
    def is_own(self) -> bool:
        """Whether the entry is a file."""
        from ackclock.own import named

        return named(self.controller)

    def identity(self) -> str:
        """Hash of the entry's code and the files it reads; empty for a built-in controller."""
        from ackclock.own import described

        if not self.is_own:
            return ""
        one = described(self.controller, self.options).planned()
        return f"{one.digest}{'+' + one.whole if one.whole else ''}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Contest settings.

    Parameters
    ----------
    task, entries
        Task, and its entries.
    salt
        Word that determines the draws.
    draws
        Number of draws of each family.
    off
        Disabled traps, for tests of traps.
    """

    task: Task
    entries: Sequence[Entry]
    salt: str
    draws: int
    off: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.:-]{1,64}", self.salt):
            raise InputError(
                f"--salt: found {self.salt!r:.100}; allowed: 1 to 64 letters, digits, dots, colons, hyphens"
            )

    @property
    def everyone(self) -> list[Entry]:
        """Return the entries plus CUBIC and Reno, without duplicates."""
        found = [*self.entries, Entry(controller=REFERENCE), Entry(controller=YARDSTICK)]
        return [entry for i, entry in enumerate(found) if entry not in found[:i]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """An entry's result on a draw.

    Parameters
    ----------
    draw
        The draw.
    terms, score
        Terms that count on that draw, and the resulting score.
    digest
        Digest of the run, or of the worst run of a search; empty if it failed.
    failed
        Reason for the failure.
    words
        Scenario in a few words.
    """

    draw: Draw
    terms: Mapping[str, float]
    score: float
    digest: str
    failed: str = ""
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One entry of the table.

    Parameters
    ----------
    entry
        The entry.
    rows
        Rows of its scenarios.
    scores
        Family -> score of each draw.
    score
        Score with its interval, 0 to 100.
    worst
        Mean of the lowest tenth of its draws, 0 to 100.
    left
        Goodput that it leaves to a CUBIC flow beside it, relative to what another CUBIC flow leaves; None: not part of
        the task.
    why
        Reason why it has no score or rank; empty if it has both.
    starves
        Whether it leaves others less than the task allows.
    is_open
        Whether that is undecided, because the interval of `left` contains the task's limit. False if there are too few
        draws to say anything.
    rank, known
        Rank from 1, and probability of being ahead of the next one.
    """

    entry: Entry
    rows: Sequence[Row]
    scores: Mapping[str, Sequence[float]]
    score: Estimate | None
    worst: float
    left: Estimate | None
    why: str = ""
    starves: bool = False
    is_open: bool = False
    rank: int | None = None
    known: float | None = None

    @property
    def remark(self) -> str:
        """Reason why the entry has no rank, or its effect on others; often empty."""
        if self.why:
            return self.why
        if self.starves:
            return "starves others, not surely" if self.is_open else "starves others"
        return "may starve others" if self.is_open else ""

    def left_by_family(self) -> dict[str, list[float]]:
        """Family -> others' share on each draw."""
        found: dict[str, list[float]] = {}
        for row in self.rows:
            if "others" in row.terms:
                found.setdefault(row.draw.family.id, []).append(row.terms["others"])
        return found

    def mean(self, term: str) -> float | None:
        """Mean of a term over the draws for which it counts."""
        found = [row.terms[term] for row in self.rows if term in row.terms]
        return sum(found) / len(found) if found else None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Outcome of a contest.

    Parameters
    ----------
    plan
        Plan of the contest.
    standings
        Standings, best first; those without a rank come last.
    ahead
        Probability that entry i is ahead of entry j, among those with a rank, in their order.
    runs, seconds, cpu_s
        Runs made now, their duration, and CPU seconds of this process and its children.
    verdicts
        The Linux kernel's verdict on each entry, by name; empty if it was not requested.
    """

    plan: Plan
    standings: Sequence[Standing]
    ahead: Sequence[Sequence[float]]
    runs: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def ranked(self) -> list[Standing]:
        """Entries that have a rank."""
        return [s for s in self.standings if s.rank is not None]

    @property
    def known(self) -> tuple[int, int]:
        """Number of pairs with a known order, and total number of pairs."""
        n = len(self.ahead)
        pairs = [self.ahead[i][j] for i in range(n) for j in range(i + 1, n)]
        return sum(max(p, 1 - p) >= rank.KNOWN for p in pairs), len(pairs)


Tell = Callable[[str, float], None]


def play(
    plan: Plan,
    folder: Path,
    jobs: int,
    *,
    tell: Tell = lambda *_: None,
    stop: threading.Event | None = None,
    others: dict[str, Others] | None = None,
) -> Table:
    """Make the runs missing from the folder, and score them.

    Parameters
    ----------
    plan
        Plan of the contest.
    folder
        Folder of the runs.
    jobs
        Threads.
    tell
        Called with the activity and the fraction of it done.
    stop
        Event that ends the contest early.
    others
        Reference runs in searches, by draw and seed, shared by several contests.

    Raises
    ------
    InputError
        If an entry cannot be loaded.
    UnavailableError
        If it was stopped early; finished runs are kept, and the next call continues from there.
    """
    stop = stop or threading.Event()
    began, cpu = time.monotonic(), _cpu_s()
    everyone = plan.everyone
    for entry in everyone:
        if entry.is_own:
            from ackclock.own import described

            look(described(entry.controller, entry.options), guards=_guards(plan))
    draws = drawn(plan.task, PUBLIC if "held-out" in plan.off else plan.salt, plan.draws)
    if "start" in plan.off:
        draws = [replace(draw, keys=_warmed_up(draw.keys)) for draw in draws]
    game = _Game(plan, everyone, draws, folder, jobs, tell, stop, {} if others is None else others)
    rows = game.rows()
    standings = [_standing(plan, entry, rows[i], game.unsure[i], game.lacks[i]) for i, entry in enumerate(everyone)]
    ordered, ahead = _ranked(standings, 0.0 if "others" in plan.off else plan.task.starves)
    return Table(
        plan=plan,
        standings=ordered,
        ahead=ahead,
        runs=game.made,
        seconds=time.monotonic() - began,
        cpu_s=_cpu_s() - cpu,
    )


def _warmed_up(keys: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**keys, "record": {**keys["record"], "warm_up": WARM_UP}} if keys else keys


def _guards(plan: Plan) -> str:
    return " ".join(guard for guard in GUARDS.split() if guard not in plan.off)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _ranked(standings: Sequence[Standing], starves: float) -> tuple[list[Standing], list[list[float]]]:
    able = [s for s in standings if not s.why]
    able.sort(key=lambda s: (s.starves, -(s.score.value if s.score else 0.0), s.entry.name))
    ahead = rank.ahead([s.scores for s in able], left=[s.left_by_family() for s in able], starves=starves).tolist()
    placed = [replace(s, rank=i + 1, known=ahead[i][i + 1] if i + 1 < len(able) else None) for i, s in enumerate(able)]
    return [*placed, *(s for s in standings if s.why)], ahead


def _standing(plan: Plan, entry: Entry, rows: Sequence[Row], unsure: str, lacks: str) -> Standing:
    if "failures" in plan.off:
        rows = [row for row in rows if not row.failed] or rows
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row.draw.family.id, []).append(row.score)
    others = [row.terms["others"] for row in rows if "others" in row.terms]
    left = rank.share(others) if others else None
    least = 0.0 if "others" in plan.off else plan.task.starves
    why = unsure if "twice" not in plan.off else ""
    why = why or lacks
    first = next((row for row in rows if row.failed), None)
    if not why and first is not None and all(row.failed for row in rows if row.draw.keys):
        why = first.failed
    return Standing(
        entry=entry, rows=rows, scores=scores, score=rank.estimate(scores) if scores and not unsure else None,
        worst=rank.worst(scores) if scores else 0.0, left=left, why=why,
        starves=left is not None and left.value < least, is_open=left is not None and plan.draws >= rank.FEW and left.low < least <= left.high,
    )  # fmt: skip


class _Game:
    """Runs of a table, in the folder's store."""

    def __init__(
        self,
        plan: Plan,
        everyone: Sequence[Entry],
        draws: Sequence[Draw],
        folder: Path,
        jobs: int,
        tell: Tell,
        stop: threading.Event,
        others: dict[str, Others],
    ) -> None:
        self.plan, self.everyone, self.draws, self.folder, self.jobs = plan, everyone, draws, folder, jobs
        self.tell, self.stop, self.others = tell, stop, others
        self.made = 0
        self.lacks = [""] * len(everyone)
        self.unsure = [""] * len(everyone)
        self._cells: list[tuple[int, Draw, Scenario]] = []
        for i, entry in enumerate(everyone):
            for draw in draws:
                if not draw.keys:
                    continue
                try:
                    self._cells.append((i, draw, draw.scenario(entry.controller, entry.options)))
                except ScenarioError as error:
                    self.lacks[i] = self.lacks[i] or f"cannot take part in {draw.family.id}: {error}"

    def rows(self) -> list[list[Row]]:
        """Return every entry's rows, in the order of the draws."""
        from ackclock.sweep import Store

        found: list[dict[str, Row]] = [{} for _ in self.everyone]
        with Store(self.folder / "store", write=True) as store:
            with self._executor(again=False) as executor:
                for i, row in self._scored(store, executor):
                    found[i][row.draw.id] = row
                searched = self._searched(executor)
            if "twice" not in self.plan.off:
                with self._executor(again=True) as executor:
                    self._compared(store, executor, found)
                    self._searched_again(executor, searched)
        for i, draw, row, _ in searched:
            found[i][draw.id] = row
        return [[rows[d.id] for d in self.draws if d.id in rows] for rows in found]

    @contextmanager
    def _executor(self, *, again: bool) -> Iterator[Sealed]:
        guards = " ".join(
            guard for guard in ("seal", "memory", "reach", "fence", "apart") if guard not in self.plan.off
        )
        executor = Sealed(self.jobs, again=again, guards=guards)
        try:
            yield executor
        finally:
            executor.close()

    def _scored(self, store: Store, executor: Sealed) -> Iterator[tuple[int, Row]]:
        frames, digests, failed = self._made(store, executor, KEPT, "runs", range(len(self._cells)))
        at = {(i, draw.id): n for n, (i, draw, _) in enumerate(self._cells)}
        usual = next(i for i, entry in enumerate(self.everyone) if entry == Entry(controller=REFERENCE))
        for n, (i, draw, _) in enumerate(self._cells):
            if not digests[n]:
                yield i, _zero(draw, failed[n] or "found no answer")
                continue
            reference = frames[at[usual, draw.id]]
            yield i, self._row(draw, frames[n], reference, digests[n])

    def _row(self, draw: Draw, run: Mapping[str, Any], reference: Mapping[str, Any], digest: str) -> Row:
        from ackclock.arena.task import described

        values = terms(self.plan.task, draw, run, reference, off=self.plan.off)
        score = combined(self.plan.task, values, off=self.plan.off)
        return Row(draw=draw, terms=values, score=score, digest=digest, words=described(draw))

    def _made(
        self, store: Store, executor: Sealed, tables: Any, what: str, order: Sequence[int]
    ) -> tuple[list[dict[str, Any]], list[str], list[str]]:
        """Return each cell's tables, digest and failure, in the order of `_cells`."""
        from ackclock.sweep import Campaign, Cell, Recipe, engine_identity

        again = what == "again"
        cells = [Cell(scenario=self._cells[n][2], keys={}, seeds=[self._cells[n][1].seed]) for n in order]
        name = f"arena-{what}"
        recipe = Recipe(metrics=(), tables=tables)
        # repeated runs get a different name in the store, so that they are actually made
        campaign = Campaign(
            store, cells, recipe, name=name, anew=False, memory_limit=MEMORY * max(self.jobs, 1), time_limit_s=LIMIT_S,
            engine=f"{engine_identity()}/again" if again else None, unmixed=True,
        )  # fmt: skip
        heading = "the same runs again, in other processes" if again else "runs"

        def told(status: Any) -> None:
            done = status.done + status.failed
            self.tell(f"{done:,} of {status.total:,} {heading}", done / max(status.total, 1))

        status = campaign.run(executor, progress=told, stop=self.stop)
        if not status.finished:
            raise UnavailableError(
                f"stopped after {status.done:,} of {status.total:,} runs; the same command goes on from there"
            )
        self.made += status.done + status.failed - status.found
        store.compact(recipe.text)
        why = {(scenario, seed): said for scenario, seed, said in store.failures(name, 1_000_000)}
        frames: list[dict[str, Any]] = [{} for _ in cells]
        digests, failed = [""] * len(cells), [""] * len(cells)
        read = {table: campaign.by_cell(table) for table, _ in tables}
        runs = campaign.by_cell("runs")
        for place, n in enumerate(order):
            known = runs[place]["digest"].to_list() if runs and runs[place].height else []
            digests[n] = known[0] if known else ""
            failed[n] = "" if known else why.get((cells[place].hash, cells[place].seeds[0]), "")
            frames[n] = {table: parts[place] for table, parts in read.items() if parts}
        return frames, digests, failed

    def _compared(self, store: Store, executor: Sealed, found: list[dict[str, Row]]) -> None:
        """Repeat each run in the opposite order; an entry with a different result gets no score."""
        order = list(reversed(range(len(self._cells))))
        _, digests, failed = self._made(store, executor, (), "again", order)
        for n, (i, draw, _) in enumerate(self._cells):
            before = found[i][draw.id]
            if digests[n] != before.digest and not self.unsure[i]:
                said = f": made again, it ended: {failed[n]}" if failed[n] else UNSURE
                said = f": the first time it ended: {before.failed}" if before.failed else said
                self.unsure[i] = f"its runs do not repeat ({draw.id}, seed {draw.seed}){said}"

    def _searched(self, executor: Sealed) -> list[tuple[int, Draw, Row, Any]]:
        from ackclock import attack

        found: list[tuple[int, Draw, Row, Any]] = []
        # The seed of a search depends on the draw and not on the entry, so all entries face the same environments and
        # share the reference runs. Built-in entries come first, so that no reference runs beside user code.
        searches = [
            (i, draw) for i in range(len(self.everyone)) for draw in self.draws if not draw.keys and not self.lacks[i]
        ]
        searches.sort(key=lambda search: self.everyone[search[0]].is_own)
        for n, (i, draw) in enumerate(searches):
            self.tell(f"{n:,} of {len(searches):,} searches", n / len(searches))
            if draw.family.attack["objective"] == "harm" and self.everyone[i] == Entry(controller=REFERENCE):
                found.append(
                    (
                        i,
                        draw,
                        Row(
                            draw=draw, terms={"worst": 1.0}, score=1.0, digest="", words="what others are compared with"
                        ),
                        None,
                    )
                )
                continue
            wanted = _attack(self.everyone[i], draw)
            place = self.folder / "searches" / f"{self._slug(i)}-{draw.id}"
            place.mkdir(parents=True, exist_ok=True)
            others = self.others.setdefault(f"{draw.id} {draw.seed}", {})
            try:
                made = attack.run(
                    wanted, executor, folder=place, simplify=False, stopped=self.stop.is_set, others=others
                )
            except KeyboardInterrupt:
                raise UnavailableError(
                    f"stopped after {n:,} of {len(searches):,} searches; the same command goes on from there"
                ) from None
            except UnavailableError:
                raise
            except AckclockError as error:
                found.append((i, draw, _zero(draw, str(error)), None))
                continue
            self.made += made.runs.ran
            values = {"worst": 1 - made.score}
            row = Row(
                draw=draw, terms=values, score=combined(self.plan.task, values), digest=made.scores[0].digests[0],
                words=wanted.budget.words(made.best),
            )  # fmt: skip
            found.append((i, draw, row, made))
        return found

    def _searched_again(self, executor: Sealed, searched: Sequence[tuple[int, Draw, Row, Any]]) -> None:
        """Repeat the worst environment of each search in another process."""
        for i, draw, row, made in searched:
            if made is None or not self.everyone[i].is_own or self.unsure[i]:
                continue
            runs = replace(made.runs, executor=executor, journal=None, known={})
            with suppress(AckclockError):
                if runs.score([made.best])[0].digests[0] != row.digest:
                    self.unsure[i] = f"its runs do not repeat ({draw.id}, seed {draw.seed}){UNSURE}"

    def _slug(self, i: int) -> str:
        import hashlib

        entry = self.everyone[i]
        whole = f"{entry.controller} {sorted(entry.options.items())} {entry.identity()} {self.plan.task.digest} {self.plan.salt}"
        name = re.sub(r"[^\w.-]", "-", entry.name)[:40]
        return f"{name}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _attack(entry: Entry, draw: Draw) -> Any:
    from ackclock import attack

    given = draw.family.attack
    return attack.Attack(
        target=entry.controller, options=dict(entry.options), budget=attack.load(given["budget"]), objective=given["objective"],
        search="random", evaluations=given["evaluations"], seed=draw.seed,
    )  # fmt: skip


def _zero(draw: Draw, why: str) -> Row:
    """Score of a run without a result, as if nothing had been delivered."""
    from ackclock.arena.task import described

    return Row(
        draw=draw, terms=dict.fromkeys(draw.family.counts, 0.0), score=0.0, digest="", failed=why, words=described(draw)
    )
