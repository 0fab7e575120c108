"""Scenarios: frozen values that equal TOML files, with units written out.

Examples
--------
>>> from ackclock.scenario import load
>>> scenario = load("scenarios/cubic-100m.toml")  # doctest: +SKIP
"""

from ackclock.scenario import _tables
from ackclock.scenario._tables import *  # noqa: F403 - what the engine describes
from ackclock.scenario.capacity import Mahimahi, Random, Schedule, Step
from ackclock.scenario.datagrams import ConstantRate, OnOff, Voice
from ackclock.scenario.distribution import Choice, Constant, Exponential, Lognormal, Uniform
from ackclock.scenario.flow import Flows
from ackclock.scenario.host import Host, Times, Xen
from ackclock.scenario.link import Link, NamedLink
from ackclock.scenario.network import Network, Path, Reverse
from ackclock.scenario.record import Record
from ackclock.scenario.scenario import CapturePoint, Scenario, load
from ackclock.scenario.video import Festive, RateBased, Video
from ackclock.scenario.workload import (
    At,
    Bulk,
    Fetch,
    InitialWindow,
    Poisson,
    Population,
    Regular,
    Throttled,
    Transactions,
    Transfer,
)

__all__ = [
    "At",
    "Bulk",
    "CapturePoint",
    "Choice",
    "Constant",
    "ConstantRate",
    "Exponential",
    "Festive",
    "Fetch",
    "Flows",
    "Host",
    "InitialWindow",
    "Link",
    "Lognormal",
    "Mahimahi",
    "NamedLink",
    "Network",
    "OnOff",
    "Path",
    "Poisson",
    "Population",
    "Random",
    "RateBased",
    "Record",
    "Regular",
    "Reverse",
    "Scenario",
    "Schedule",
    "Step",
    "Throttled",
    "Times",
    "Transactions",
    "Transfer",
    "Uniform",
    "Video",
    "Voice",
    "Xen",
    "load",
]
__all__ += _tables.__all__
