"""Measures the cost of the engine: time per packet relative to a yardstick, and instructions per packet, counted by
Cachegrind.
"""

from __future__ import annotations

from ackclock.bench.cells import CELLS, COUNTED, BenchCell, Counted, scenario
from ackclock.bench.instructions import InstructionReport, Instructions, count, missing
from ackclock.bench.timed import ControllerCost, Measured, Report, measure, measure_controllers

__all__ = [
    "CELLS",
    "COUNTED",
    "BenchCell",
    "ControllerCost",
    "Counted",
    "InstructionReport",
    "Instructions",
    "Measured",
    "Report",
    "count",
    "measure",
    "measure_controllers",
    "missing",
    "scenario",
]
