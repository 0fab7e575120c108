"""Scenarios: frozen values that equal TOML files, with units written out.

Examples
--------
>>> from ackclock.scenario import load
>>> scenario = load("scenarios/cubic-100m.toml")  # doctest: +SKIP
"""

from ackclock.scenario import _tables
from ackclock.scenario._tables import *  # noqa: F403 - what the engine describes
from ackclock.scenario.distribution import Choice, Constant, Exponential, Lognormal, Uniform
from ackclock.scenario.flow import Flows
from ackclock.scenario.network import NamedLink, Network, Path, Reverse
from ackclock.scenario.record import Record
from ackclock.scenario.scenario import CapturePoint, Scenario, load

__all__ = [
    "CapturePoint",
    "Choice",
    "Constant",
    "Exponential",
    "Flows",
    "Lognormal",
    "NamedLink",
    "Network",
    "Path",
    "Record",
    "Reverse",
    "Scenario",
    "Uniform",
    "load",
]
__all__ += _tables.__all__
