"""A laboratory for TCP congestion control and loss recovery.

A scenario (TOML file or Python value) describes a network, hosts and flows; `run` simulates it and returns tables.

Examples
--------
>>> import ackclock
>>> scenario = ackclock.load("scenarios/reno-10m.toml")  # doctest: +SKIP
>>> ackclock.run(scenario, seed=1).flows  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ackclock._results.result import Batch, Run
    from ackclock._results.run import run, run_batch, run_many
    from ackclock.errors import AckclockError, ControllerError, InputError, ScenarioError, UnavailableError
    from ackclock.scenario import Scenario, load

    __version__: str

__all__ = [
    "AckclockError",
    "Batch",
    "ControllerError",
    "InputError",
    "Run",
    "Scenario",
    "ScenarioError",
    "UnavailableError",
    "__version__",
    "load",
    "run",
    "run_batch",
    "run_many",
]

# Module that defines each name; imported at first use (PEP 562), so that `import ackclock` stays fast.
_HOMES = {
    "AckclockError": "errors",
    "Batch": "_results.result",
    "ControllerError": "errors",
    "InputError": "errors",
    "Run": "_results.result",
    "Scenario": "scenario",
    "ScenarioError": "errors",
    "UnavailableError": "errors",
    "load": "scenario",
    "run": "_results.run",
    "run_batch": "_results.run",
    "run_many": "_results.run",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("ackclock")
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f"ackclock.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'ackclock' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
