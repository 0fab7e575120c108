"""Serves score requests one at a time, for programs that write controllers: each entry goes through the tiers, and
stops once it is certainly beaten. A request is a JSON object; see `Server.answer` for its keys. Runs are stored in a
folder for the server's lifetime, so that CUBIC, Reno and the controller to be beaten run only once.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackclock.arena import rank
from ackclock.arena.game import YARDSTICK, Entry, Plan, Standing, Table, play
from ackclock.arena.task import TIERS, Task, load
from ackclock.attack.runs import Others
from ackclock.errors import AckclockError, InputError, UnavailableError, one_of, quote
from ackclock.own import LARGEST, named

KEYS = frozenset({"id", "task", "entry", "tier", "beat"})
OF_NAME = frozenset({"controller", "options"})
OF_TEXT = frozenset({"language", "text", "class", "options"})
LANGUAGES = {"c": "mine.c", "python": "mine.py", "rust": "mine.rs"}

HOPELESS = 0.8
"""Fraction of the score to be beaten below which an entry stops after the quick tier (which has too few draws for an interval)."""

UNLIKELY = 0.05
"""Probability of being ahead below which an entry stops after the medium tier."""


class Server:
    """Scores entries on request.

    Parameters
    ----------
    folder
        Folder for runs and entries.
    salt
        Word that determines the draws.
    jobs
        Threads.
    code
        Whether entries may be text, which is executed.
    """

    def __init__(self, folder: Path, salt: str, jobs: int, *, code: bool = True) -> None:
        self.folder, self.salt, self.jobs, self.code = folder, salt, jobs, code
        self._tasks: dict[str, Task] = {}
        self._others: dict[str, dict[str, Others]] = {}

    def answer(self, line: str) -> dict[str, Any]:
        """Return the reply to a line; errors are replies too.

        Parameters
        ----------
        line
            JSON with `task`, `entry` (`{"controller": NAME, "options": {...}}` or `{"language": "c", "text": ...}`,
            of Python with `class`), `tier` (quick), `beat` (the controller to beat; reno) and `id`, which is
            returned in the answer.
        """
        given: Any = None
        try:
            try:
                given = json.loads(line)
            except ValueError:
                raise InputError("request: found no JSON; allowed: an object in a line") from None
            if not isinstance(given, dict):
                raise InputError(f"request: found {quote(type(given).__name__)}; allowed: an object")
            return {"id": given.get("id"), **self._scored(given)}
        except AckclockError as error:
            if isinstance(error, UnavailableError):
                raise
            return {"id": given.get("id") if isinstance(given, dict) else None, "error": str(error)}

    def _scored(self, given: Mapping[str, Any]) -> dict[str, Any]:
        for key in given:
            if key not in KEYS:
                raise InputError(f"request: found the key {quote(key)}; allowed: {one_of(key, sorted(KEYS))}")
        task = self._task(given.get("task"))
        tier = given.get("tier", TIERS[0])
        if tier not in TIERS:
            raise InputError(f"tier: found {quote(tier)}; allowed: {', '.join(TIERS)}")
        entry = self._entry(given.get("entry"))
        beat = self._named(given.get("beat", YARDSTICK), {}, "beat")
        began, runs, cpu_s = time.monotonic(), 0, 0.0
        for which in TIERS[: TIERS.index(tier) + 1]:
            first = which == TIERS[0]
            plan = Plan(
                task=task, entries=[entry, beat], salt=self.salt, draws=task.draws[which], off=frozenset({"twice"} if first else ()),
            )  # fmt: skip
            table = play(plan, self.folder / task.name, self.jobs, others=self._others.setdefault(task.digest, {}))
            runs, cpu_s = runs + table.runs, cpu_s + table.cpu_s
            said, stops = _told(table, entry, beat)
            if stops:
                break
        return {
            "task": task.name, "tier": which, "stopped": stops if which != tier else "", **said, "runs": runs, "cpu_s": round(cpu_s, 3),
            "seconds": round(time.monotonic() - began, 3),
        }  # fmt: skip

    def _task(self, name: Any) -> Task:
        if not isinstance(name, str):
            raise InputError(f"task: found {quote(name)}; allowed: the name of a task")
        if name not in self._tasks:
            self._tasks[name] = load(name)
        return self._tasks[name]

    def _entry(self, given: Any) -> Entry:
        if not isinstance(given, dict):
            raise InputError(
                f"entry: found {quote(given)}; allowed: an object with controller, or with language and text"
            )
        known = OF_TEXT if "text" in given else OF_NAME
        for key in given:
            if key not in known:
                raise InputError(f"entry: found the key {quote(key)}; allowed: {one_of(key, sorted(known))}")
        options = given.get("options", {})
        if not isinstance(options, dict):
            raise InputError(f"entry.options: found {quote(options)}; allowed: an object")
        if "text" not in given:
            return self._named(given.get("controller"), options, "entry.controller")
        return self._written(given, options)

    def _written(self, given: Mapping[str, Any], options: Mapping[str, Any]) -> Entry:
        if not self.code:
            raise InputError(
                "entry.text: found code; allowed: a controller by its name, unless the server was started with --own-code"
            )
        language, text = given.get("language"), given["text"]
        if language not in LANGUAGES:
            raise InputError(f"entry.language: found {quote(language)}; allowed: {', '.join(LANGUAGES)}")
        if not isinstance(text, str) or len(text) > LARGEST:
            raise InputError("entry.text: found none, or more than 1 MiB; allowed: the text of a controller")
        place = (
            self.folder
            / "entries"
            / hashlib.sha256(f"{language} {text}".encode()).hexdigest()[:16]
            / LANGUAGES[language]
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        name = str(place.resolve())
        if language == "python":
            name += f":{given.get('class', 'Mine')}"
            if not named(name):
                raise InputError(f"entry.class: found {quote(given.get('class'))}; allowed: the name of a class")
        return Entry(controller=name, options=dict(options))

    def _named(self, name: Any, options: Mapping[str, Any], key: str) -> Entry:
        from ackclock.scenario import Scenario

        if not isinstance(name, str) or named(name):
            raise InputError(f"{key}: found {quote(name)}; allowed: the name of a built-in controller")
        flow = {"congestion_control": name, "congestion_control_options": dict(options)}
        network = {"bottleneck": {"rate": "10 Mbit/s", "delay": "20 ms"}}
        Scenario.from_dict({"duration": "1 s", "network": network, "flows": [flow]})  # refuses unknown names
        return Entry(controller=name, options=dict(options))


def _told(table: Table, entry: Entry, beat: Entry) -> tuple[dict[str, Any], str]:
    """Return the reasons why an entry need not continue; empty if it should."""
    mine, other, usual = (
        next(s for s in table.standings if s.entry == one) for one in (entry, beat, Entry(controller=YARDSTICK))
    )
    ranked = [s.entry for s in table.ranked]
    ahead = None
    if mine.rank is not None and other.rank is not None and entry != beat:
        ahead = table.ahead[ranked.index(entry)][ranked.index(beat)]
    score, bar = _value(mine), _value(other)
    stops = ""
    if mine.why:
        stops = mine.why
    elif entry != beat and score < HOPELESS * bar:
        stops = f"below {100 * HOPELESS:g} % of the score of {beat.name}"
    elif ahead is not None and table.plan.draws >= rank.FEW and ahead < UNLIKELY:
        stops = f"behind {beat.name} with a probability of {100 * (1 - ahead):.0f} %"
    return {
        "score": None if mine.why else round(score, 3),
        "interval": None if mine.why or mine.score is None else [round(v, 3) if abs(v) < 1e9 else None for v in (mine.score.low, mine.score.high)],
        "worst": round(mine.worst, 3),
        "left_to_others": None if mine.left is None else round(mine.left.value, 4),
        "left_interval": None if mine.left is None else [round(mine.left.low, 4), round(mine.left.high, 4)],
        "starves": mine.starves,
        "why": mine.why,
        "beat": beat.name,
        "beat_score": round(bar, 3),
        "ahead": ahead,
        YARDSTICK: {
            "score": round(_value(usual), 3), "worst": round(usual.worst, 3), "left_to_others": None if usual.left is None else round(usual.left.value, 4),
        },
        "families": {family: round(100 * sum(values) / len(values), 2) for family, values in mine.scores.items()},
        "digests": {row.draw.id: row.digest for row in mine.rows},
    }, stops  # fmt: skip


def _value(standing: Standing) -> float:
    return 0.0 if standing.score is None else standing.score.value
