"""Sweeps: grids of scenarios under many seeds, stored in a folder that stays intact if the process is killed."""

from ackclock.sweep.axes import Axis
from ackclock.sweep.campaign import Campaign, Status
from ackclock.sweep.executors import Dask, Executor, Threads, batch_system
from ackclock.sweep.precision import Precision
from ackclock.sweep.results import Results, read, sweep_of
from ackclock.sweep.session import run
from ackclock.sweep.store import Store, StoreError
from ackclock.sweep.sweep import Cell, Recipe, Sweep, load, standard_metrics
from ackclock.sweep.task import engine_identity

__all__ = [
    "Axis",
    "Campaign",
    "Cell",
    "Dask",
    "Executor",
    "Precision",
    "Recipe",
    "Results",
    "Status",
    "Store",
    "StoreError",
    "Sweep",
    "Threads",
    "batch_system",
    "engine_identity",
    "load",
    "read",
    "run",
    "standard_metrics",
    "sweep_of",
]
