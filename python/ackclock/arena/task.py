"""A task: families of scenarios with ranges to draw from, and the terms that count in each with their weights.

A value `{ from = A, to = B }` is drawn log-uniformly, `{ one_of = [...] }` is one of the listed values, and
`"@a.dotted.key"` refers to the value drawn for that key. The controller `@` is the entry. Everything else is a
scenario in the form read by `ackclock run`.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackclock import _files
from ackclock.errors import InputError, ScenarioError, one_of, quote
from ackclock.evaluate.situation import PLACE, filled
from ackclock.units import DURATION, RATE, parse_share, whole

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

TERMS: Mapping[str, str] = {
    "throughput": "goodput of the entry's flows by their equal part of the link's rate; at most 1",
    "delay": "d / (d + the 95th percentile of what packets wait), with d the task's `delay`",
    "loss": "l / (l + the share of packets that were dropped), with l the task's `loss`",
    "fairness": "Jain's index of the goodput of the entry's flows, each over the time that it ran",
    "others": "what CUBIC beside it gets, by what it gets beside another CUBIC; at most 1",
    "recovery": "goodput in a window after a change, by the link's rate",
    "speed": "least possible time of a response by its time, the mean of all; one that was not finished counts 0",
    "worst": "1 less the regret in the worst environment that a search found",
}
"""Possible terms, each between 0 and 1; larger is better."""

TIERS = ("quick", "medium", "full")
PUBLIC = "public"
"""Salt for the development scenarios."""

FLOOR = 0.01
"""Lower bound of a term in a score, so that a single term cannot reduce the score to 0."""

LARGEST = 2**18
MOST_DRAWS, MOST_FAMILIES, MOST_TIMES = 1000, 50, 100
ATTACK = {"budget", "objective", "evaluations"}

_AMOUNT = re.compile(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*(.*?)\s*")
_DIGITS = 3
"""Number of significant digits in drawn values, which keeps files short and exact."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Scenarios of the same kind.

    Parameters
    ----------
    id, about
        Name and a few words.
    counts
        Terms that make up the score of its scenarios.
    scenario
        Keys of a scenario, with ranges; empty if it is an attack.
    attack
        Budget, objective and number of environments of a search; empty if it is a scenario.
    recovery
        Window in seconds, if `recovery` counts.
    times
        Multiple of the number of draws of a family without this key. The family's weight is not affected.
    """

    id: str
    about: str
    counts: tuple[str, ...]
    scenario: Mapping[str, Any] = field(default_factory=dict, repr=False)
    attack: Mapping[str, Any] = field(default_factory=dict)
    recovery: tuple[float, float] | None = None
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task for controllers.

    Parameters
    ----------
    name, title, about
        Name, title and description for readers.
    families
        Families, which have equal weights in the score.
    weights
        Weights of the terms.
    delay_s, loss
        Values at which the terms with these names are halved.
    starves
        Share of what CUBIC leaves to others below which an entry starves them, and ranks behind all entries that do
        not.
    draws
        Number of scenarios of a family, by tier.
    text
        Text of the file.
    """

    name: str
    title: str
    about: str
    families: Sequence[Family]
    weights: Mapping[str, float]
    delay_s: float
    loss: float
    starves: float
    draws: Mapping[str, int]
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        """Hash of the task file."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def family(self, id_: str) -> Family:
        """Return a family by its name."""
        return next(f for f in self.families if f.id == id_)


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A drawn scenario, or a search's seed.

    Parameters
    ----------
    family
        Family of the draw.
    number
        Number from 1.
    seed
        Seed of the run, or of the search.
    keys
        Keys of the scenario, without the entry's controller.
    """

    family: Family
    number: int
    seed: int
    keys: Mapping[str, Any] = field(repr=False)

    @property
    def id(self) -> str:
        """Identifier in tables and file names."""
        return f"{self.family.id}-{self.number}"

    def scenario(self, controller: str, options: Mapping[str, Any]) -> Scenario:
        """Return the scenario with this controller in the entry's place."""
        from ackclock.scenario import Scenario

        return Scenario.from_dict(filled(self.keys, controller, options))

    @cached_property
    def rate_bps(self) -> float:
        """Nominal rate of the bottleneck, bit/s."""
        return float(whole(self.keys["network"]["bottleneck"]["rate"], RATE))

    @cached_property
    def delay_s(self) -> float:
        """Nominal one-way delay of the path, s."""
        return float(whole(self.keys["network"]["bottleneck"]["delay"], DURATION)) / 1e9

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Numbers of the entry's flow groups and of the others."""
        flows = self.keys["flows"]
        mine = tuple(i for i, group in enumerate(flows) if group["congestion_control"] == PLACE)
        return mine, tuple(i for i in range(len(flows)) if i not in mine)


def built_in() -> list[str]:
    """Return the shipped tasks' names."""
    found = (str(entry.name) for entry in files("ackclock.arena").joinpath("tasks").iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def load(name: str) -> Task:
    """Load a task by name, or from a file.

    Raises
    ------
    InputError
        If the task does not exist, or the file does not contain a task.
    """
    if name in built_in():
        return read(files("ackclock.arena").joinpath("tasks", f"{name}.toml").read_text("utf-8"), name)
    path = Path(name)
    if path.suffix != ".toml":
        raise InputError(f"TASK: found {quote(name)}; allowed: {one_of(name, built_in())}, or a file, NAME.toml")
    return read(_files.contents(path, LARGEST), path.stem)


def read(text: str, name: str) -> Task:
    """Parse a task.

    Raises
    ------
    InputError
        If the text is not a task.
    """
    from ackclock.scenario._toml import read_toml

    try:
        table = read_toml(text)[0]
    except ScenarioError as error:
        raise InputError(f"task {name}: found no TOML ({error.found}); allowed: a task") from None
    known = {"title", "about", "score", "draws", "families"}
    _only(name, table, known, known - {"about"})
    score = _table(name, "score", table["score"])
    _only(f"{name}: score", score, {"delay", "loss", "starves", "weights"}, {"delay", "loss", "starves", "weights"})
    weights = _table(name, "score.weights", score["weights"])
    for term, weight in weights.items():
        if term not in TERMS:
            raise InputError(f"task {name}: score.weights: found {quote(term)}; allowed: {one_of(term, TERMS)}")
        _number(name, f"score.weights.{term}", weight, 0.01, 1000)
    draws = _table(name, "draws", table["draws"])
    _only(f"{name}: draws", draws, set(TIERS), set(TIERS))
    for tier, count in draws.items():
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_DRAWS:
            raise InputError(
                f"task {name}: draws.{tier}: found {quote(count)}; allowed: a whole number, 1 to {MOST_DRAWS}"
            )
    families = table["families"]
    if not isinstance(families, list) or not 1 <= len(families) <= MOST_FAMILIES:
        raise InputError(
            f"task {name}: families: found {quote(type(families).__name__)}; allowed: 1 to {MOST_FAMILIES} tables"
        )
    made = [_family(name, entry, weights) for entry in families]
    if len({family.id for family in made}) < len(made):
        raise InputError(f"task {name}: families: found an id twice; allowed: one family of each id")
    task = Task(
        name=name, title=str(table["title"]), about=str(table.get("about", "")), families=made,
        weights={term: float(weight) for term, weight in weights.items()},
        delay_s=_unit(name, "score.delay", score["delay"], DURATION) / 1e9, loss=_share(name, score["loss"]),
        starves=_number(name, "score.starves", score["starves"], 0, 1), draws=dict(draws), text=text,
    )  # fmt: skip
    _tried(task)
    return task


def drawn(task: Task, salt: str, count: int) -> list[Draw]:
    """Return scenarios of each family: `count`, or a multiple of it if the family specifies one. A different salt
    gives different scenarios. A longer list begins with the shorter one.
    """
    found = []
    for family in task.families:
        for number in range(1, count * family.times + 1):
            # `random` is documented to give the same numbers for a text seed in every version
            chance = random.Random(f"ackclock arena {task.digest} {family.id} {salt} {number}")
            seed = chance.randrange(1, 2**31)
            keys = _resolved(_drawn(family.scenario, chance)) if family.scenario else {}
            found.append(Draw(family=family, number=number, seed=seed, keys=_recorded(family, keys)))
    return found


def _recorded(family: Family, keys: dict[str, Any]) -> dict[str, Any]:
    if not keys:
        return keys
    record: dict[str, Any] = {"performance": True}
    if family.recovery is not None:
        record["goodput_interval"] = "500 ms"
    return {**keys, "record": record}


def _drawn(value: Any, chance: random.Random) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"from", "to"}:
            return _between(value["from"], value["to"], chance)
        if set(value) == {"one_of"}:
            return _drawn(chance.choice(value["one_of"]), chance)
        return {key: _drawn(inner, chance) for key, inner in value.items()}
    if isinstance(value, list):
        return [_drawn(inner, chance) for inner in value]
    return value


def _between(low: Any, high: Any, chance: random.Random) -> Any:
    (least, unit), (most, _) = _amount(low), _amount(high)
    found = math.exp(math.log(least) + chance.random() * (math.log(most) - math.log(least)))
    number = float(f"{min(max(found, least), most):.{_DIGITS}g}")
    return f"{number:.10g} {unit}" if unit else number


def _amount(value: Any) -> tuple[float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"found {quote(value)}; allowed: a number, or a number with its unit")
    return float(found[1]), found[2]


def _resolved(keys: dict[str, Any]) -> dict[str, Any]:
    """Return the keys with references replaced by the values they refer to."""

    def at(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(PLACE) and len(value) > 1:
            there: Any = keys
            for part in value[1:].split("."):
                if not isinstance(there, Mapping) or part not in there:
                    raise ValueError(f"found {quote(value)}; allowed: @ and a key of the scenario")
                there = there[part]
            return there
        if isinstance(value, Mapping):
            return {key: at(inner) for key, inner in value.items()}
        return [at(inner) for inner in value] if isinstance(value, list) else value

    return at(keys)  # type: ignore[no-any-return]


def _family(name: str, entry: Any, weights: Mapping[str, Any]) -> Family:
    where = f"{name}: families"
    table = _table(name, "families", entry)
    _only(where, table, {"id", "about", "counts", "scenario", "attack", "recovery", "times"}, {"id", "counts"})
    id_ = table["id"]
    if not isinstance(id_, str) or not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", id_):
        raise InputError(f"task {where}: id: found {quote(id_)}; allowed: small letters, digits and hyphens")
    where = f"{name}: family {id_}"
    if ("scenario" in table) == ("attack" in table):
        raise InputError(
            f"task {where}: found {'both' if 'scenario' in table else 'none'} of scenario and attack; allowed: one of them"
        )
    counts = table["counts"]
    allowed = [term for term in TERMS if term in weights and (term == "worst") == ("attack" in table)]
    if not isinstance(counts, list) or not counts or any(term not in allowed for term in counts):
        raise InputError(f"task {where}: counts: found {quote(counts)}; allowed: some of {', '.join(allowed)}")
    window = None
    if "recovery" in counts:
        given = _table(where, "recovery", table.get("recovery", {}))
        _only(f"{where}: recovery", given, {"from", "to"}, {"from", "to"})
        window = tuple(_unit(where, f"recovery.{key}", given[key], DURATION) / 1e9 for key in ("from", "to"))
        if window[0] >= window[1]:
            raise InputError(
                f"task {where}: recovery: found {given['from']} to {given['to']}; allowed: an end after the beginning"
            )
    attack = _table(where, "attack", table.get("attack", {}))
    if attack:
        _only(f"{where}: attack", attack, ATTACK, ATTACK)
        evaluations = attack["evaluations"]
        if not isinstance(evaluations, int) or not 1 <= evaluations <= 10_000:
            raise InputError(f"task {where}: attack.evaluations: found {quote(evaluations)}; allowed: 1 to 10,000")
    times = table.get("times", 1)
    if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= MOST_TIMES:
        raise InputError(f"task {where}: times: found {quote(times)}; allowed: a whole number, 1 to {MOST_TIMES}")
    return Family(
        id=id_, about=str(table.get("about", "")), counts=tuple(counts), scenario=_table(where, "scenario", table.get("scenario", {})),
        attack=attack, recovery=window, times=times,  # type: ignore[arg-type]
    )  # fmt: skip


def _tried(task: Task) -> None:
    """Refuse a task with a family that yields no valid scenario, before anything runs."""
    from ackclock.attack import Attack
    from ackclock.attack import load as budget

    for family in task.families:
        try:
            if family.attack:
                Attack(target="reno", budget=budget(family.attack["budget"]), objective=family.attack["objective"])
                continue
            draw = drawn(_alone(task, family), PUBLIC, 1)[0]
            draw.scenario("reno", {})
            mine, others = draw.groups
            if not mine:
                raise InputError(
                    f"found no flow of the entry; allowed: a group with congestion_control = {quote(PLACE)}"
                )
            if "others" in family.counts and not others:
                raise InputError(
                    "found no flow beside the entry; allowed: a group with another controller, where others count"
                )
            if draw.rate_bps <= 0 or draw.delay_s < 0:
                raise InputError(
                    "network.bottleneck: found no rate; allowed: a rate and a delay, by which numbers are scaled"
                )
        except ScenarioError as error:
            raise InputError(f"task {task.name}: family {family.id}: {error}") from None
        except (InputError, ValueError, KeyError, TypeError) as error:
            said = (
                f"network.bottleneck: found no {error}; allowed: rate and delay"
                if isinstance(error, KeyError)
                else str(error)
            )
            raise InputError(f"task {task.name}: family {family.id}: {said}") from None


def _alone(task: Task, family: Family) -> Task:
    from dataclasses import replace

    return replace(task, families=[family])


def _only(where: str, table: Mapping[str, Any], known: set[str], needed: set[str]) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"task {where}: found the key {quote(key)}; allowed: {one_of(key, sorted(known))}")
    for key in sorted(needed - table.keys()):
        raise InputError(f"task {where}: found no {key}; allowed: with {', '.join(sorted(needed))}")


def _table(name: str, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"task {name}: {key}: found {quote(value)}; allowed: a table")
    return value


def _number(name: str, key: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(f"task {name}: {key}: found {quote(value)}; allowed: a number, {low:g} to {high:g}")
    return float(value)


def _unit(name: str, key: str, value: Any, dimension: Any) -> float:
    try:
        found = float(whole(value, dimension))
    except (InputError, ValueError, TypeError) as error:
        raise InputError(f"task {name}: {key}: {error}") from None
    if found <= 0:
        raise InputError(f"task {name}: {key}: found {quote(value)}; allowed: above zero")
    return found


def _share(name: str, value: Any) -> float:
    try:
        found = float(parse_share(value))
    except (InputError, ValueError, TypeError) as error:
        raise InputError(f"task {name}: score.loss: {error}") from None
    return _number(name, "score.loss", found, 1e-6, 1)


def described(draw: Draw) -> str:
    """Describe a draw in a few words."""
    if not draw.keys:
        return f"search {draw.number} of {json.dumps(dict(draw.family.attack))}"
    link = draw.keys["network"]["bottleneck"]
    queue = link.get("queue", {})
    more = [
        str(queue.get("limit", "")),
        queue.get("kind", ""),
        *(key for key in link if key not in ("rate", "delay", "queue")),
    ]
    return ", ".join([link["rate"], f"{link['delay']} each way", *(text for text in more if text)])
