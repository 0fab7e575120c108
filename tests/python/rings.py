"""Test rings, and the cost of each test. At its end a ring reports the tests that it skipped, and its slowest ones by
CPU time, child processes included, because wall time means little on a busy machine.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import forked
import pytest

RINGS = {"": "make test", "deep": "make test-deep", "long": "make soak"}
"""Mark on a test -> the command that runs it."""

MOST_S = 3.0
"""CPU time allowed for a test in `make test` on an idle machine. A slower test is reported but does not fail: on a
busy machine the same work may take three times as long.
"""

SHOWN = 20

_BEGUN = pytest.StashKey[float]()
_LEFT_OUT = pytest.StashKey[Counter[str]]()

_costs: list[tuple[float, str, str]] = []
"""Finished tests: CPU time, ring, name."""


def spent_s() -> float:
    """Return the CPU time of this process and its finished children, without forked servers."""
    return sum(os.times()[:4]) + sum(forked.spent.values())


def ring(item: pytest.Item) -> str:
    """Return the mark that puts a test into its ring."""
    return next((name for name in RINGS if name and item.get_closest_marker(name)), "")


def pytest_collection() -> None:
    """Disable garbage collection during collection: modules and tests live until the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude collected tests from later garbage collections, each of which would visit about a million objects."""
    gc.freeze()
    gc.enable()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count by ring the tests that are not run."""
    for item in items:
        item.config.stash.setdefault(_LEFT_OUT, Counter())[ring(item)] += 1


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[_BEGUN] = spent_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    now = spent_s()
    report.user_properties = [("cpu_s", now - item.stash[_BEGUN]), ("ring", ring(item))]
    item.stash[_BEGUN] = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the cost of a test, and that of its fixtures separately."""
    told = dict(report.user_properties)
    if report.when != "teardown" and told:  # a crashed worker reports nothing
        what = report.nodeid if report.when == "call" else f"fixtures of {report.nodeid}"
        _costs.append((told["cpu_s"], told["ring"], what))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the tests skipped by a worker to the process that started it."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:  # each worker has collected all tests
        told["left_out"] = dict(session.config.stash.get(_LEFT_OUT, Counter()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Receive the tests skipped by a worker. After a crash, end the run: xdist never reassigns the crashed worker's
    files, and would wait for them.
    """
    if error:
        node.config.pluginmanager.getplugin("dsession").shouldstop = f"worker {node.gateway.id} crashed"
        return
    node.config.stash[_LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the slowest tests, those above the limit, and the tests that did not run."""
    write = terminalreporter.write_line
    if len(_costs) > SHOWN:
        write(f"CPU time: {sum(cpu_s for cpu_s, _, _ in _costs):.0f} s; the {SHOWN} slowest tests:")
        for cpu_s, _, test in sorted(_costs, reverse=True)[:SHOWN]:
            write(f"{cpu_s:8.2f} s  {test}")
    for cpu_s, mark, test in _costs:
        if not mark and cpu_s > MOST_S:
            write(f"slow: above {MOST_S:g} s of CPU time: {test}; shrink it or mark it `deep`")
    left = config.stash.get(_LEFT_OUT, Counter())
    if left:
        write("left out: " + ", ".join(f"{left[mark]} tests of `{by}`" for mark, by in RINGS.items() if left[mark]))
    why = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in why.most_common():
        write(f"left out: {count} tests, {reason.removeprefix('Skipped: ')}")
