"""Scenarios: frozen values equivalent to TOML files, with units written out.

Examples
--------
>>> from ackclock.scenario import load
>>> scenario = load("scenarios/cubic-100m.toml")  # doctest: +SKIP
"""

from ackclock.scenario import _tables
from ackclock.scenario._tables import *  # noqa: F403 - what the engine describes
from ackclock.scenario.scenario import CapturePoint, Scenario, load

__all__ = ["CapturePoint", "Scenario", "load"]
__all__ += _tables.__all__
