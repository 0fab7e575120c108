"""The packs: each a TOML file of this folder, which says where its cases are from."""

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
        As its source calls it.
    expects
        Name of a predicate and its arguments, one or several; all must hold. Empty: see `missing`.
    scenario
        The keys of a scenario, with "@" in the candidate's place.
    only
        Controllers that it is for; empty: every one.
    trigger
        A change of the bottleneck when the candidate first enters a state.
    seeds
        How many runs; all must meet it.
    missing
        What is needed to express it.
    note
        What was chosen where the source leaves it open, or differs from it.
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
        Of the file; of the source.
    source
        Where it was published.
    cases
        In order.
    """

    name: str
    title: str
    source: str
    cases: tuple[Case, ...] = field(repr=False)


def names() -> list[str]:
    """Names of the packs."""
    found = files("ackclock.conform.packs").iterdir()
    return sorted(f.name.removesuffix(".toml") for f in found if f.name.endswith(".toml"))


@lru_cache(maxsize=8)
def pack(name: str) -> Pack:
    """A pack by its name.

    Raises
    ------
    InputError
        If there is none of this name.
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
