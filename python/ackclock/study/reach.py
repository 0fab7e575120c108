"""Determines which tables a measure can read, by inspecting its code, and provides tables that are computed on first
access. Varying a constant therefore runs only the experiments needed by the affected claims.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from ackclock.study.plan import Plan
    from ackclock.study.study import Experiment, Ran


class Lazy(Mapping[str, "pl.DataFrame"]):
    """Tables of experiments; each experiment runs when one of its tables is first read.

    Parameters
    ----------
    experiments, plan
        Experiments, and the plan to run them with.
    """

    def __init__(self, experiments: Sequence[Experiment], plan: Plan) -> None:
        self._left = list(experiments)
        self._plan = plan
        self._tables: dict[str, pl.DataFrame] = {}
        self._of: dict[str, set[str]] = {}
        self._ran: list[Ran] = []

    def __getitem__(self, name: str) -> pl.DataFrame:
        while name not in self._tables and self._left:
            prefix = name.partition(".")[0]
            self.run(next((e for e in self._left if e.name == prefix), self._left[0]))
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        for experiment in list(self._left):
            self.run(experiment)
        return iter(self._tables)

    def __len__(self) -> int:
        return len(list(iter(self)))

    @property
    def ran(self) -> Ran:
        """Results of the experiments that were run."""
        from ackclock.study.study import Ran

        found = Ran(tables={**self._tables}, digest=hashlib.sha256(), runs=0)
        for one in self._ran:
            found.add(one)
        return found

    def run(self, experiment: Experiment) -> set[str]:
        """Run an experiment, unless it has already been run. Return the names of its tables."""
        from ackclock.study.study import carry_out

        if experiment.name not in self._of:
            self._left.remove(experiment)
            made = carry_out([experiment], self._plan)
            self._tables |= made.tables
            self._ran.append(made)
            self._of[experiment.name] = set(made.tables)
        return self._of[experiment.name]


def reads(measure: Callable[..., Any], tables: set[str]) -> bool:
    """Return whether a measure may read one of these tables, that is, whether a string in its code, or in a function
    that it calls, is a table's name or the part before the dot. True for anything that is not a function.
    """
    texts = set[str]()
    if not _collect(measure, texts, set()):
        return True
    parts = tables | {name.partition(".")[0] for name in tables}
    return any(text in parts or text.partition(".")[0] in parts for text in texts)


def _collect(found: Any, texts: set[str], seen: set[int]) -> bool:
    """Collect the strings in a function, and in the functions and constants of its package to which it refers. Return
    whether the value is a function.
    """
    while not isinstance(found, FunctionType):
        if isinstance(found, partial):
            _constants((found.args, found.keywords), texts)
            found = found.func
        elif callable(getattr(found, "of", None)):
            found = found.of
        else:
            return False
    if id(found) in seen:
        return True
    seen.add(id(found))
    package = found.__module__.rpartition(".")[0] or found.__module__
    _constants((found.__defaults__, found.__kwdefaults__), texts)
    names = set[str]()
    for code in _codes(found.__code__):
        names |= set(code.co_names)
        _constants(code.co_consts, texts)
    spaces = [found.__globals__]
    spaces += [
        vars(one)
        for n in names
        if isinstance(one := found.__globals__.get(n), ModuleType) and one.__name__.startswith(package)
    ]
    for space in spaces:
        for name in names & space.keys():
            one = inspect.unwrap(space[name]) if callable(space[name]) else space[name]
            if isinstance(one, FunctionType) and one.__module__.startswith(package):
                _collect(one, texts, seen)
            else:
                _constants(one, texts)
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects nested in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _constants(found: Any, texts: set[str]) -> None:
    """Collect the strings in a value, including its items."""
    if isinstance(found, str):
        texts.add(found)
    elif isinstance(found, dict):
        _constants((*found, *found.values()), texts)
    elif isinstance(found, (tuple, list, set, frozenset)):
        for one in found:
            _constants(one, texts)
