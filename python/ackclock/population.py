"""Path populations with a source: quantiles of rate, round-trip time, loss and queue, and the correlations between the four.

A file names the source of its numbers, and paths are drawn from it with a seed. Each group of paths has the quantiles of each
quantity, and rank correlations between them (Spearman's). A draw picks a group by weight and four normal numbers with these
correlations (a Gaussian copula), and reads each quantity off its quantiles; beyond the first and the last quantile it is constant.
"""

from __future__ import annotations

import bisect
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from ackclock import _files, units
from ackclock.errors import InputError, ScenarioError, one_of, quote

if TYPE_CHECKING:
    from ackclock.scenario import Scenario

__all__ = ["DrawnPath", "Group", "Population", "names", "read"]

SHIPPED = Path(__file__).parent / "_populations"

LARGEST = 2**20
"""Maximum size of a file, bytes."""

MOST_GROUPS, MOST_SHARES, MOST_PATHS = 1000, 1000, 100_000

QUANTITIES = ("rate", "rtt", "loss", "queue")

BOUNDS = {"rate": (1e3, 1e12), "rtt": (1e-6, 60.0), "loss": (0.0, 0.9), "queue": (0.0, 60.0)}
"""Bounds of each quantity: bit/s, s, fraction, s."""

SOURCE = ("what", "url", "date", "licence")
"""Keys of `[source]`, all required."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")

KEYS = ("name", "source", "note", "paths")
GROUP = ("name", "weight", "shares", "ranks", "guessed", *QUANTITIES)

PACKET_BITS, LEAST_QUEUE = 12_000, 4
"""Bits of a full packet, and shortest queue of a drawn path, packets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnPath:
    """One path of a population.

    Parameters
    ----------
    group
        Name of its group.
    rate_bps, rtt_s, loss, queue_s
        Rate, round-trip time of the idle path, fraction of packets lost at random, and time to drain its full queue.
    """

    group: str
    rate_bps: int
    rtt_s: float
    loss: float
    queue_s: float

    @property
    def queue_packets(self) -> int:
        """Length of the queue in full packets."""
        return max(LEAST_QUEUE, round(self.queue_s * self.rate_bps / PACKET_BITS))

    def bottleneck(self) -> dict[str, Any]:
        """Return the keys of a bottleneck with this path's values; each direction has half the round-trip time."""
        link: dict[str, Any] = {
            "rate": f"{self.rate_bps} bit/s",
            "delay": f"{round(self.rtt_s * 5e8)} ns",
            "queue": {"kind": "drop-tail", "limit": f"{self.queue_packets} packets"},
        }
        return {**link, "loss": {"kind": "bernoulli", "p": self.loss}} if self.loss else link

    def client(self) -> dict[str, Any]:
        """Return the keys of workload `population` for a single client on this path."""
        drawn = {
            "rate": f"{self.rate_bps} bit/s",
            "rtt": f"{round(self.rtt_s * 1e9)} ns",
            "loss": f"{100 * self.loss:.6f} %",
        }
        single = {name: {"kind": "choice", "values": [value]} for name, value in drawn.items()}
        return {**single, "queue": f"{self.queue_packets} packets"}

    def on(self, scenario: Scenario) -> Scenario:
        """Return a scenario with this path as its bottleneck. A queue other than drop-tail is kept.

        Raises
        ------
        InputError
            If its flows do not cross the bottleneck: clients of the workload `population` have paths of their own.
        """
        if any(group.workload.kind == "population" for group in scenario.flows):
            raise InputError(
                "population: found a scenario whose clients have paths of their own; allowed: flows that cross its bottleneck "
                "(DrawnPath.client gives a client a drawn path)"
            )
        link = self.bottleneck()
        link.setdefault("loss", {"kind": "none"})
        had = scenario.network.bottleneck
        if had is not None and had.queue is not None and had.queue.kind != "drop-tail":
            del link["queue"]
        return scenario.set_all({f"network.bottleneck.{key}": value for key, value in link.items()})


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Paths drawn from the same quantiles.

    Parameters
    ----------
    name, weight
        Name, and how often its paths are drawn beside those of other groups.
    shares
        Increasing fractions at which the quantiles stand.
    quantiles
        Quantity -> its quantiles, in bit/s, s, a fraction, s.
    ranks
        Pair of quantities -> Spearman's rank correlation; a pair that is missing has 0.
    guessed
        Quantities that the source does not tell.
    """

    name: str
    weight: float
    shares: tuple[float, ...]
    quantiles: Mapping[str, tuple[float, ...]]
    ranks: Mapping[tuple[str, str], float]
    guessed: tuple[str, ...]

    def at(self, quantity: str, share: float) -> float:
        """Return the quantile at a fraction, interpolated; rates and times are interpolated logarithmically."""
        shares, values = self.shares, self.quantiles[quantity]
        after = bisect.bisect_right(shares, share)
        if after == 0 or after == len(shares):
            return values[0 if after == 0 else -1]
        low, high = values[after - 1], values[after]
        part = (share - shares[after - 1]) / (shares[after] - shares[after - 1])
        if quantity == "loss" or low <= 0:
            return low + part * (high - low)
        return low * math.exp(part * math.log(high / low))


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """Paths from a named source.

    Parameters
    ----------
    name
        Name of the population.
    source
        `what` was measured, the `url`, the `date` of measurement, the `licence`.
    note
        What to know about the numbers.
    groups
        Groups of paths.
    place
        Name or file that was read.

    Examples
    --------
    >>> from ackclock import population
    >>> homes = population.read("uk-homes-2015")
    >>> homes.source["licence"]
    'OGL-UK-3.0'
    >>> path = homes.draw(3, seed=1)[0]
    >>> path.group in {"ADSL", "cable", "FTTC"}
    True
    """

    name: str
    source: Mapping[str, str]
    note: str
    groups: tuple[Group, ...] = field(repr=False)
    place: str = ""

    @property
    def told(self) -> str:
        """One-line citation of the source."""
        guessed = sorted({name for group in self.groups for name in group.guessed})
        more = f"; not in the source: {', '.join(guessed)}" if guessed else ""
        return f"{self.name}: {self.source['what']}, {self.source['date']}, {self.source['licence']}, {self.source['url']}{more}"

    def draw(self, count: int, *, seed: int = 1) -> list[DrawnPath]:
        """Draw paths. A larger draw with the same seed begins with the same paths.

        Parameters
        ----------
        count
            Number of paths.
        seed
            Seed of the draw.
        """
        import numpy as np

        if not 1 <= count <= MOST_PATHS:
            raise InputError(f"paths: found {count:,}; allowed: 1 to {MOST_PATHS:,}")
        stream = np.random.Generator(np.random.PCG64([seed, 0x706F70]))
        weights = np.cumsum([group.weight for group in self.groups])
        made = []
        mixes = [_mix(group) for group in self.groups]
        for _ in range(count):
            which = int(np.searchsorted(weights, stream.random() * weights[-1], side="right"))
            which = min(which, len(self.groups) - 1)
            numbers = mixes[which] @ stream.standard_normal(len(QUANTITIES))
            made.append(_path(self.groups[which], [float(number) for number in numbers]))
        return made


def _path(group: Group, numbers: Sequence[float]) -> DrawnPath:
    """Return the path of four correlated normal numbers. Values are rounded, so that every machine draws the same."""
    normal = NormalDist()
    rate, rtt, loss, queue = (
        group.at(name, normal.cdf(number)) for name, number in zip(QUANTITIES, numbers, strict=True)
    )
    step = 10 ** max(len(str(int(rate))) - 4, 0)
    return DrawnPath(
        group=group.name,
        rate_bps=max(round(rate / step) * step, 1000),
        rtt_s=round(rtt, 6),
        loss=round(loss, 6),
        queue_s=round(queue, 4),
    )


def _matrix(group: Group) -> list[list[float]]:
    """Return the correlations of the normal numbers: 2 sin(pi r / 6) for Spearman's r."""

    def between(one: str, other: str) -> float:
        rank = group.ranks.get((one, other), group.ranks.get((other, one), 0.0))
        return 1.0 if one == other else 2 * math.sin(math.pi * rank / 6)

    return [[between(one, other) for other in QUANTITIES] for one in QUANTITIES]


def _mix(group: Group) -> Any:
    import numpy as np

    try:
        return np.linalg.cholesky(np.asarray(_matrix(group)))
    except np.linalg.LinAlgError:
        raise InputError(
            f"paths.{group.name}.ranks: found correlations that contradict one another; allowed: those of real paths"
        ) from None


def names() -> list[str]:
    """Return the names of the populations shipped with the package."""
    return sorted(file.stem for file in SHIPPED.glob("*.toml"))


def read(name: str | os.PathLike[str]) -> Population:
    """Read a population.

    Parameters
    ----------
    name
        A file, or the name of a population that comes with the package.

    Raises
    ------
    InputError
        If there is no such file, or it is no population: one line that names the place, what was found and what is
        allowed.
    """
    place = Path(name)
    if place.suffix != ".toml":
        if str(name) not in names():
            raise InputError(
                f"population: found {quote(str(name))}; allowed: {one_of(str(name), names())}, or a file (.toml)"
            )
        place = SHIPPED / f"{name}.toml"
    text = _files.contents(place, LARGEST)
    from ackclock.scenario._toml import read_toml

    try:
        told = read_toml(text)[0]
    except ScenarioError as error:
        raise InputError(f"{place}: found no TOML ({error.found}); allowed: a population") from None
    try:
        return replace(_population(told), place=str(name))
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _population(told: Mapping[str, Any]) -> Population:
    _keys("", told, KEYS, ("name", "source", "paths"))
    _keys("source.", _table("source", told["source"]), SOURCE, SOURCE)
    groups = told["paths"]
    if not isinstance(groups, list) or not 1 <= len(groups) <= MOST_GROUPS:
        raise InputError(f"paths: found {quote(groups)[:60]}; allowed: 1 to {MOST_GROUPS:,} tables [[paths]]")
    if not NAME.fullmatch(_text("name", told["name"])):
        raise InputError(f"name: found {quote(told['name'])[:80]}; allowed: 1 to 60 letters, digits, - and _")
    made = tuple(_group(_table(f"paths.{n}", one), f"paths.{n}.") for n, one in enumerate(groups))
    for group in made:
        _mix(group)
    return Population(
        name=told["name"],
        source={key: _text(f"source.{key}", told["source"][key]) for key in SOURCE},
        note=_text("note", told.get("note", "-")),
        groups=made,
    )


def _group(told: Mapping[str, Any], place: str) -> Group:
    _keys(place, told, GROUP, ("name", "shares", *QUANTITIES))
    shares = told["shares"]
    if not (isinstance(shares, list) and 2 <= len(shares) <= MOST_SHARES and all(map(_is_number, shares))):
        raise InputError(f"{place}shares: found {quote(shares)[:80]}; allowed: 2 to {MOST_SHARES:,} numbers")
    if not (shares[0] >= 0 and shares[-1] <= 1 and all(a < b for a, b in pairwise(shares))):
        raise InputError(f"{place}shares: found {quote(shares)[:80]}; allowed: increasing numbers from 0 to 1")
    weight = told.get("weight", 1)
    if not _is_number(weight) or not 0 < weight <= 1e12:
        raise InputError(f"{place}weight: found {quote(weight)}; allowed: a number above 0")
    guessed = told.get("guessed", [])
    if not isinstance(guessed, list) or not all(name in QUANTITIES for name in guessed):
        raise InputError(f"{place}guessed: found {quote(guessed)[:80]}; allowed: a list of {', '.join(QUANTITIES)}")
    return Group(
        name=_text(f"{place}name", told["name"]),
        weight=float(weight),
        shares=tuple(float(share) for share in shares),
        quantiles={name: _quantiles(told[name], name, len(shares), f"{place}{name}") for name in QUANTITIES},
        ranks=_ranks(told.get("ranks", {}), f"{place}ranks"),
        guessed=tuple(guessed),
    )


def _quantiles(told: Any, quantity: str, count: int, place: str) -> tuple[float, ...]:
    values = told if isinstance(told, list) else [told] * count
    if len(values) != count:
        raise InputError(
            f"{place}: found {len(values)} values; allowed: one for each of the {count} shares, or a single one"
        )
    made = tuple(_value(value, quantity, place) for value in values)
    if any(a > b for a, b in pairwise(made)):
        raise InputError(f"{place}: found values that fall; allowed: quantiles, which rise with their share")
    return made


def _value(value: Any, quantity: str, place: str) -> float:
    kinds = {"rate": units.RATE, "rtt": units.DURATION, "queue": units.DURATION}
    least, most = BOUNDS[quantity]
    try:
        if quantity == "loss":
            number = float(value.removesuffix("%")) / 100 if isinstance(value, str) else float(value)
        else:
            number = float(units.whole(value, kinds[quantity])) * (1 if quantity == "rate" else 1e-9)
    except (ValueError, TypeError, AttributeError) as error:
        told = error if quantity != "loss" else f'found {quote(value)}; allowed: a percentage, e.g. "0.1 %"'
        raise InputError(f"{place}: {told}") from None
    if isinstance(value, bool) or not least <= number <= most:
        raise InputError(f"{place}: found {quote(value)}; allowed: {least:g} to {most:g}")
    return number


def _ranks(told: Any, place: str) -> dict[tuple[str, str], float]:
    made: dict[tuple[str, str], float] = {}
    pairs = [f"{a}-{b}" for n, a in enumerate(QUANTITIES) for b in QUANTITIES[n + 1 :]]
    for key, value in _table(place, told).items():
        if key not in pairs:
            raise InputError(f"{place}: found {quote(key)}; allowed: {one_of(key, pairs)}")
        if not _is_number(value) or not -1 < value < 1:
            raise InputError(f"{place}.{key}: found {quote(value)}; allowed: a number between -1 and 1")
        one, _, other = key.partition("-")
        made[one, other] = float(value)
    return made


def _keys(place: str, told: Mapping[str, Any], allowed: Sequence[str], needed: Sequence[str]) -> None:
    for key in told:
        if key not in allowed:
            raise InputError(f"{place}{key}: found an unknown key; allowed: {one_of(key, list(allowed))}")
    for key in needed:
        if key not in told:
            raise InputError(f"{place}{key}: found nothing; allowed: a value, this key is required")


def _table(place: str, told: Any) -> Mapping[str, Any]:
    if not isinstance(told, Mapping):
        raise InputError(f"{place}: found {quote(told)[:80]}; allowed: a table")
    return told


def _text(place: str, told: Any) -> str:
    if not isinstance(told, str) or not told.strip() or len(told) > 2000 or not told.isprintable():
        raise InputError(f"{place}: found {quote(told)[:80]}; allowed: a line of text")
    return told


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
