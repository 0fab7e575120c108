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


class LastNotBeforeFirst(Described):
    """A scripted loss: the last segment does not come before the first."""

    @model_validator(mode="after")
    def _in_order(self: Any) -> Any:
        if self.last is not None and self.last < self.first:
            raise ScenarioError(key="last", found=str(self.last), allowed=f"{self.first} (first) or more")
        return self


LOSSES = ((("first", "last"), LastNotBeforeFirst),)


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


STACK = ((("socket_buffer", "receive_buffer", "sack", "detection"), OneBufferAndWhatDetectionNeeds),)
