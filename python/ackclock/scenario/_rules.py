"""Rules that join several keys of a table which the engine describes (`_described.py`)."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from ackclock.errors import ScenarioError, quote
from ackclock.scenario._base import nanoseconds
from ackclock.scenario._described import Described


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
    """RED: min below max, and not above the limit."""

    def judge(self: Any, compiled: dict[str, Any]) -> None:
        """In packets."""
        if compiled["min"] >= compiled["max"]:
            raise ScenarioError(key="min", found=quote(self.min), allowed=f"less than max, {quote(self.max)}")
        if compiled["limit"] < compiled["min"]:
            raise ScenarioError(key="limit", found=quote(self.limit), allowed=f"at least min, {quote(self.min)}")


QUEUES = (
    (("target", "interval"), TargetWithinInterval),
    (("mark", "limit"), MarkWithinLimit),
    (("min", "max", "limit"), MinBelowMaxAndLimit),
)
"""Keys -> the rules of every queue that has all of them."""
