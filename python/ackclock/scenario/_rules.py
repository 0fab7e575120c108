"""Rules that join several keys of a table which the engine describes (`_described.py`)."""

from __future__ import annotations

import itertools
from typing import Any

from pydantic import model_validator

from ackclock import units
from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import bits_per_second, byte_count, nanoseconds
from ackclock.scenario._described import Described
from ackclock.scenario._mahimahi import read


class TargetWithinInterval(Described):
    """CoDel: the target is at most the interval."""

    @model_validator(mode="after")
    def _target_within_interval(self: Any) -> Any:
        target, interval = self.target, self.interval
        if nanoseconds(target) > nanoseconds(interval):
            given = "target" in self.model_fields_set
            raise ScenarioError(
                key="target" if given else "interval",
                found=quote(target if given else interval),
                allowed=f"at most the interval of {quote(interval)}"
                if given
                else f"at least the target of {quote(target)}",
            )
        return self


class MarkWithinLimit(Described):
    """Marks begin before the queue is full."""

    def judge(self: Any, compiled: dict[str, Any]) -> None:
        """In packets."""
        if compiled["mark"] > compiled.get("limit", compiled["mark"]):
            raise ScenarioError(key="mark", found=quote(self.mark), allowed=f"at most the limit of {quote(self.limit)}")


class MinBelowMaxAndLimit(Described):
    """RED: min below max, and not above the limit. What Linux derives from the limit, if absent, the engine judges."""

    def judge(self: Any, compiled: dict[str, Any]) -> None:
        """In packets, or bytes."""
        low = compiled.get("min", 0)
        if low >= compiled.get("max", low + 1):
            raise ScenarioError(key="min", found=quote(self.min), allowed=f"less than max, {quote(self.max)}")
        if compiled["limit"] < low:
            raise ScenarioError(key="limit", found=quote(self.limit), allowed=f"at least min, {quote(self.min)}")


class LastNotBeforeFirst(Described):
    """A scripted loss: the last segment does not come before the first."""

    @model_validator(mode="after")
    def _in_order(self: Any) -> Any:
        if self.last is not None and self.last < self.first:
            raise ScenarioError(key="last", found=str(self.last), allowed=f"{self.first} (first) or more")
        return self


class StepsInOrder(Described):
    """A schedule: steps come in order of time, and a cycle ends behind the last one."""

    @model_validator(mode="after")
    def _in_order(self: Any) -> Any:
        before = -1
        for i, step in enumerate(self.steps):
            at = nanoseconds(step.at)
            if at <= before:
                raise ScenarioError(
                    key=f"steps.{i}.at", found=quote(step.at), allowed="a time after that of the step before"
                )
            before = at
        if self.repeat is not None and nanoseconds(self.repeat) <= before:
            raise ScenarioError(
                key="repeat",
                found=quote(self.repeat),
                allowed=f"a time after the last step, {quote(self.steps[-1].at)}",
            )
        return self


class RateOrLoad(Described):
    """A Poisson process: clients per second, or the load that they offer."""

    @model_validator(mode="after")
    def _one_of_two(self: Any) -> Any:
        if (self.rate is None) == (self.load is None):
            found = "neither rate nor load" if self.rate is None else "both rate and load"
            raise ScenarioError(found=found, allowed="one of them")
        return self


class TimesInOrder(Described):
    """Times, of which none comes before the one that is listed before it."""

    @model_validator(mode="after")
    def _in_order(self: Any) -> Any:
        for i, (earlier, later) in enumerate(itertools.pairwise(self.times), start=1):
            if nanoseconds(later) < nanoseconds(earlier):
                raise ScenarioError(key=f"times.{i}", found=quote(later), allowed=f"{quote(earlier)} or later")
        return self


class SharesSumToOneAndObjectsStandAlone(Described):
    """Transactions: shares of initial windows sum to 1; a page's objects take the place of rounds of requests."""

    @model_validator(mode="after")
    def _fits(self: Any) -> Any:
        shares = [units.parse_share(entry.share) for entry in self.initial_window_mix]
        if shares and abs(sum(shares) - 1) > 1e-9:
            raise ScenarioError(
                key="initial_window_mix", found=f"shares that sum to {sum(shares):.6g}", allowed="shares that sum to 1"
            )
        if self.objects is not None and self.requests > 1:
            raise ScenarioError(key="objects", found="a value with requests", allowed="objects or requests")
        if self.objects is not None and self.together:
            raise ScenarioError(key="objects", found="a value with together", allowed="objects or together")
        return self


class LadderAscendsAndBuffersHoldChunks(Described):
    """A player: bitrates ascend; its buffers fit each other."""

    @model_validator(mode="after")
    def _fits(self: Any) -> Any:
        for i, (lower, upper) in enumerate(itertools.pairwise(self.ladder), start=1):
            if bits_per_second(upper) <= bits_per_second(lower):
                raise ScenarioError(
                    key=f"ladder.{i}", found=f"{quote(upper)} after {quote(lower)}", allowed="bitrates that ascend"
                )
        chunk, buffer = nanoseconds(self.chunk), nanoseconds(self.buffer)
        if self.buffer_max is not None and nanoseconds(self.buffer_max) < buffer + chunk:
            raise ScenarioError(
                key="buffer_max",
                found=f"{quote(self.buffer_max)} with a buffer of {quote(self.buffer)} and chunks of {quote(self.chunk)}",
                allowed="at least the buffer and a chunk",
            )
        if self.startup is not None and nanoseconds(self.startup) > buffer:
            raise ScenarioError(
                key="startup",
                found=f"{quote(self.startup)} with a buffer of {quote(self.buffer)}",
                allowed="at most the buffer",
            )
        return self


class OneBufferAndWhatDetectionNeeds(Described):
    """A stack: one receive buffer; FACK and RACK need SACK."""

    @model_validator(mode="after")
    def _one_buffer(self: Any) -> Any:
        if self.socket_buffer is not None and self.receive_buffer is not None:
            raise ScenarioError(
                key="socket_buffer",
                found=f"{quote(self.socket_buffer)} beside receive_buffer",
                allowed="one of the two",
            )
        return self

    @model_validator(mode="after")
    def _detection_has_what_it_needs(self: Any) -> Any:
        if self.sack is False and self.detection in ("fack", "rack"):
            raise ScenarioError(
                key="detection",
                found=f"{quote(self.detection)} with sack = false",
                allowed='"dupthresh", no detection, or sack = true',
            )
        return self


class RateOrCapacity(Described):
    """A link: which kinds of capacity have a rate of their own, and which need the link's."""

    @model_validator(mode="after")
    def _one_capacity(self: Any) -> Any:
        capacity = self.capacity
        if hasattr(capacity, "opportunity") and self.rate is not None:
            raise ScenarioError(
                key="rate",
                found=f"{quote(self.rate)} with a capacity of kind {quote(capacity.kind)}",
                allowed="no rate",
            )
        if hasattr(capacity, "tick") and self.rate is None:
            raise ScenarioError(
                key="rate",
                found=f"nothing with a capacity of kind {quote(capacity.kind)}",
                allowed="a rate: what its ticks give",
            )
        if hasattr(capacity, "steps"):
            rates = [bits_per_second(step.rate) for step in capacity.steps if step.rate is not None]
            late = nanoseconds(capacity.steps[0].at) > 0
            if self.rate is None and rates and late:
                raise ScenarioError(
                    key="rate", found="nothing", allowed="a rate up to the first step, or a step at 0 s with one"
                )
            begins = self.rate is not None and late
            if capacity.repeat is not None and rates and not any(rates) and not begins:
                raise ScenarioError(
                    key="capacity.steps", found="no rate but zero, again and again", allowed="a rate above zero"
                )
        return self

    def mean_bps(self: Any) -> int | None:
        """Rate, that of a trace being its mean; None if it is infinite."""
        if hasattr(self.capacity, "opportunity"):
            counts = read(self.capacity.file).counts
            return round(sum(counts) * byte_count(self.capacity.opportunity) * 8000 / (len(counts) - 1))
        if self.rate is None and hasattr(self.capacity, "steps") and self.capacity.steps[0].rate is not None:
            return bits_per_second(self.capacity.steps[0].rate)
        return None if self.rate is None else bits_per_second(self.rate)


class HostKeysFit(Described):
    """A host: one way to say when the card interrupts, a gate where links freeze, a burst where one is made up."""

    @model_validator(mode="after")
    def _consistent(self: Any) -> Any:
        if self.receive_interval is not None and self.interrupt_rate is not None:
            raise ScenarioError(
                key="interrupt_rate", found=f"{self.interrupt_rate} beside receive_interval", allowed="one of the two"
            )
        if self.emulates_links and not self.shared:
            raise ScenarioError(key="shared", found="false with emulates_links = true", allowed="true")
        if self.emulates_links and self.gate is None and self.preset is None:
            raise ScenarioError(
                key="emulates_links", found="true without a gate", allowed="a gate, or a preset that has one"
            )
        if "burst" in self.model_fields_set and self.catch_up != "burst":
            raise ScenarioError(
                key="burst", found=f"{self.burst} with catch_up = {quote(self.catch_up)}", allowed='catch_up = "burst"'
            )
        return self


ALL = (
    (("target", "interval"), TargetWithinInterval),
    (("mark", "limit"), MarkWithinLimit),
    (("min", "max", "limit"), MinBelowMaxAndLimit),
    (("first", "last"), LastNotBeforeFirst),
    (("steps", "repeat"), StepsInOrder),
    (("rate", "load"), RateOrLoad),
    (("times",), TimesInOrder),
    (("initial_window_mix", "objects"), SharesSumToOneAndObjectsStandAlone),
    (("ladder", "chunk", "buffer", "buffer_max", "startup"), LadderAscendsAndBuffersHoldChunks),
    (("socket_buffer", "receive_buffer", "sack", "detection"), OneBufferAndWhatDetectionNeeds),
    (("rate", "capacity"), RateOrCapacity),
    (("receive_interval", "interrupt_rate", "emulates_links", "burst"), HostKeysFit),
)
"""Keys -> the rules of every table that has all of them."""
