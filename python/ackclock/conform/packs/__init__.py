"""Packs of test cases: one TOML file in this folder per source, with the source named in the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ackclock.errors import InputError, one_of, quote


@dataclass(frozen=True, kw_only=True)
class Case:
    """A test case.

    Parameters
    ----------
    id, title
        Identifier and title in the source.
    expects
        Name of a predicate and its arguments, one or several; all must hold. Empty: see `missing`.
    scenario
        The keys of a scenario, with "@" in the candidate's place.
    only
        Controllers to which the case applies; all if empty.
    trigger
        A change of the bottleneck when the candidate first enters a state.
    seeds
        Number of runs, all of which must pass.
    missing
        Feature without which the case cannot be expressed.
    note
        Choices that the source leaves open, and differences from it.
    """

    id: str
    title: str
    expects: tuple[Mapping[str, Any], ...] = ()
    scenario: Mapping[str, Any] = field(default_factory=dict, repr=False)
    only: tuple[str, ...] = ()
    trigger: Mapping[str, Any] | None = None
    seeds: int = 1
    missing: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Pack:
    """Cases of one source.

    Parameters
    ----------
    name, title
        Name of the file, title of the source.
    source
        Publication.
    cases
        Cases in the source's order.
    """

    name: str
    title: str
    source: str
    cases: tuple[Case, ...] = field(repr=False)


def names() -> list[str]:
    """Return the pack names."""
    found = files("ackclock.conform.packs").iterdir()
    return sorted(f.name.removesuffix(".toml") for f in found if f.name.endswith(".toml"))


@lru_cache(maxsize=8)
def pack(name: str) -> Pack:
    """Return a pack by its name.

    Raises
    ------
    InputError
        If no pack has this name.
    """
    if name not in names():
        raise InputError(f"--pack: found {quote(name)}; allowed: {one_of(name, names())}")
    written = tomllib.loads(files("ackclock.conform.packs").joinpath(f"{name}.toml").read_text("utf-8"))
    paths = written.get("path", {})
    return Pack(
        name=name,
        title=written["title"],
        source=written["source"],
        cases=tuple(_case(given, paths) for given in written["case"]),
    )


def _case(given: Mapping[str, Any], paths: Mapping[str, Any]) -> Case:
    kept = {k: v for k, v in given.items() if k not in ("on", "expects", "only")}
    on = given.get("on")
    scenario = dict(given.get("scenario", {}))
    if on is not None:
        scenario = {**paths[on], **scenario, "network": scenario.get("network", paths[on].get("network"))}
    expects = given.get("expects", [])
    return Case(
        **{
            **kept,
            "scenario": scenario,
            "expects": tuple([expects] if isinstance(expects, dict) else expects),
            "only": tuple(given.get("only", ())),
        }
    )
