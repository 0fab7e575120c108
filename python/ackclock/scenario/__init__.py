"""Scenarios: frozen values that equal TOML files, with units written out.

Examples
--------
>>> from ackclock.scenario import load
>>> scenario = load("scenarios/cubic-100m.toml")  # doctest: +SKIP
"""

from ackclock.scenario.capacity import Mahimahi, Random, Schedule, Step
from ackclock.scenario.datagrams import ConstantRate, OnOff, Voice
from ackclock.scenario.distribution import Choice, Constant, Exponential, Lognormal, Uniform
from ackclock.scenario.flow import Flows, MetricsCache, Stack
from ackclock.scenario.host import Host, Times, Xen
from ackclock.scenario.link import Link, NamedLink, Reorder
from ackclock.scenario.loss import Bernoulli, Drop, GilbertElliott, Listed, NoLoss, Periodic, Scripted
from ackclock.scenario.network import Network, Path, Reverse
from ackclock.scenario.queue import Codel, DropTail, FqCodel, NetemLimit, Pie, Red, Threshold
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
    "Bernoulli",
    "Bulk",
    "CapturePoint",
    "Choice",
    "Codel",
    "Constant",
    "ConstantRate",
    "Drop",
    "DropTail",
    "Exponential",
    "Festive",
    "Fetch",
    "Flows",
    "FqCodel",
    "GilbertElliott",
    "Host",
    "InitialWindow",
    "Link",
    "Listed",
    "Lognormal",
    "Mahimahi",
    "MetricsCache",
    "NamedLink",
    "NetemLimit",
    "Network",
    "NoLoss",
    "OnOff",
    "Path",
    "Periodic",
    "Pie",
    "Poisson",
    "Population",
    "Random",
    "RateBased",
    "Record",
    "Red",
    "Regular",
    "Reorder",
    "Reverse",
    "Scenario",
    "Schedule",
    "Scripted",
    "Stack",
    "Step",
    "Threshold",
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
