"""Scenarios: frozen values that equal TOML files, with units written out.

Examples
--------
>>> from ackclock.scenario import load
>>> scenario = load("scenarios/cubic-100m.toml")  # doctest: +SKIP
"""

from ackclock.scenario.flow import Flows, Stack
from ackclock.scenario.link import Link, NamedLink, Reorder
from ackclock.scenario.loss import Bernoulli, Drop, GilbertElliott, NoLoss, Periodic, Scripted
from ackclock.scenario.network import Network, Path, Reverse
from ackclock.scenario.queue import Codel, DropTail, NetemLimit, Red
from ackclock.scenario.record import Record
from ackclock.scenario.scenario import CapturePoint, Scenario, load
from ackclock.scenario.workload import (
    Bulk,
    Choice,
    Constant,
    Exponential,
    Fetch,
    Lognormal,
    Population,
    Throttled,
    Transfer,
    Uniform,
)

__all__ = [
    "Bernoulli",
    "Bulk",
    "CapturePoint",
    "Choice",
    "Codel",
    "Constant",
    "Drop",
    "DropTail",
    "Exponential",
    "Fetch",
    "Flows",
    "GilbertElliott",
    "Link",
    "Lognormal",
    "NamedLink",
    "NetemLimit",
    "Network",
    "NoLoss",
    "Path",
    "Periodic",
    "Population",
    "Record",
    "Red",
    "Reorder",
    "Reverse",
    "Scenario",
    "Scripted",
    "Stack",
    "Throttled",
    "Transfer",
    "Uniform",
    "load",
]
