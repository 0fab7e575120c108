"""Compares Linux's own modules, from the tree that `ackclock linux build` keeps, with our controllers of the same
names. Each module, loaded as a file, agrees with ours on every ACK, and with the kernel's own run except on the paths
in `PARTS`. None of their code is in this repository.

| module | difference from ours |
| --- | --- |
| vegas | grows where the window is not the limit; ours does not (the conformance rule application-limited) |
| nv | a decision takes a window of one segment to two; ours never raises one |
| lp | needs the peer's timestamps, which the header does not have |
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import ackclock
from ackclock import Scenario, linux, own
from ackclock.controllers import check
from ackclock.diff import _compare
from ackclock.errors import ControllerError, InputError
from ackclock.linux import _cache, _tree

MODULES = {
    name: name
    for name in (
        "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "nv", "scalable", "vegas", "veno", "yeah",
    )
} | {"westwood": "westwood-plus"}  # fmt: skip
"""Module name -> our controller's name."""

TIE, WRITER = "two events in one instant", "room in the send buffer"
PARTS: dict[str, dict[int, str]] = {"hybla": {14: TIE, 17: WRITER, 27: WRITER}}
"""Paths on which the module in the simulator differs from the kernel, and the first difference (a guess for 27). With
a fixed-size receive buffer, all three are identical. For BBR, both sides use the simulator's random numbers
(`bbr_drawn`).
"""
DRAWS = {"cdg": 5}
"""Modules that draw the kernel's random numbers, and the number of paths on which the draws make no difference. With
a constant in place of the draw on both sides, CDG matched the kernel on 28 (2 and 14 differed with a delay longer by
13.7 us).
"""


def _folder() -> Path | None:
    trees = sorted(
        place
        for place in _cache.folder().glob("tree-*/net/ipv4/tcp_yeah.c")
        if _tree.version(place.parents[2]) == "7.3"
    )
    return trees[0].parent if trees else None


FOLDER = _folder()
pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C"),
    pytest.mark.skipif(FOLDER is None, reason="no tree of Linux in the cache: `ackclock linux build` makes one"),
    pytest.mark.usefixtures("compiled_once"),
]


def path(name: str, i: int) -> dict[str, Any]:
    """Draw a path and its traffic; every third path has outages, every fourth one marks packets."""
    r = random.Random(i)
    rate, delay = r.choice([2, 5, 10, 20, 50, 100]), r.choice([2, 10, 20, 40, 80])
    packets = max(2, round(rate * 2 * delay / 12 * r.choice([0.25, 0.5, 1, 2])))
    link: dict[str, Any] = {"rate": f"{rate} Mbit/s", "delay": f"{delay} ms"}
    link["queue"] = {"kind": "drop-tail", "limit": f"{packets} packets"}
    flow: dict[str, Any] = {"workload": {"kind": "bulk"}}
    if i % 4 == 3:
        link["queue"] = {"kind": "threshold", "limit": "100 packets", "mark": "20 packets"}
        flow["stack"] = {"ecn": "ask"}
    if r.random() < 0.5:
        link["loss"] = {"kind": "bernoulli", "p": f"{r.choice([0.05, 0.1, 0.5, 1, 2])} %"}
    if i % 3 == 0 and name != "nv":
        lasts, arrivals = r.choice([250, 400, 700, 1500]), r.choice(["wait", "lost"])
        link["outage"] = {
            "at": f"{r.uniform(0.5, 2):.3f} s",
            "every": "2500 ms",
            "lasts": f"{lasts} ms",
            "arrivals": arrivals,
        }
    kind = r.choice(["bulk", "bulk", "throttled", "transfer"]) if name != "vegas" else "bulk"
    if kind == "transfer":
        flow["workload"] = {"kind": "transfer", "bytes": f"{r.choice([100, 1000, 5000])} kB"}
    if kind == "throttled":
        flow["workload"] = {
            "kind": "throttled",
            "rate": f"{rate * 0.6:.1f} Mbit/s",
            "chunk": f"{r.choice([4, 64, 300])} KiB",
        }
    return {
        "duration": f"{r.choice([5, 10])} s",
        "network": {"bottleneck": link, "reverse": {"bottleneck": {"delay": f"{delay} ms"}}},
        "flows": [flow],
        "record": {"trace": "all"},
    }


def same(name: str, i: int) -> None:
    made = []
    for controller in (MODULES[name], f"{FOLDER}/tcp_{name}.c"):
        values = path(name, i)
        values["flows"][0]["congestion_control"] = controller
        made.append(ackclock.run(Scenario.from_dict(values), seed=i + 1))
    ours, module = made
    if not ours.acks.equals(module.acks):
        rows = zip(ours.acks.iter_rows(named=True), module.acks.iter_rows(named=True), strict=False)
        first = next(({k: (a[k], b[k]) for k in a if a[k] != b[k]}, a["t_s"]) for a, b in rows if a != b)
        pytest.fail(f"{name}, path {i}: {first}")
    assert ours.digest == module.digest


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_our_controller_in_every_ack(name):
    same(name, 3)


@pytest.mark.deep
@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_our_controller_on_thirty_paths(name):
    for i in range(30):
        same(name, i)


def parts(name: str, i: int) -> str | None:
    """Return the first difference, within 5 s, between the module loaded as a file in the simulator and the same module in the kernel."""
    values = path(name, i) | {"duration": "5 s", "record": {"trace": "flow"}}

    def asks(controller: str) -> Scenario:
        return Scenario.from_dict({**values, "flows": [{**values["flows"][0], "congestion_control": controller}]})

    scenario = asks(MODULES[name])
    kernel = linux.run(_compare._behind(None, scenario), seed=i + 1, network="relay")
    device = linux.PACKET_MEMORY["relay"]
    ours = ackclock.run(_compare._behind(device, asks(f"{FOLDER}/tcp_{name}.c")), seed=i + 1)
    mine, its = (_compare._events(run.acks, 0, None, 5.0) for run in (ours, kernel))
    divergence = _compare._walk(mine, its, ("simulator", "kernel"))[1]
    return None if divergence is None else str(divergence)


def beside(name: str, paths: range) -> None:
    found = {i: text for i in paths if (text := parts(name, i)) is not None}
    assert set(found) == set(PARTS.get(name, {})) & set(paths), found


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in MODULES if name not in DRAWS])
def test_a_module_is_that_of_the_kernels_own_run(kernel: linux.Kernel, name: str) -> None:
    beside(name, range(3, 30, 9))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in MODULES if name not in DRAWS])
def test_a_module_is_that_of_the_kernels_own_run_on_thirty_paths(kernel: linux.Kernel, name: str) -> None:
    beside(name, range(30))


@pytest.mark.long
@pytest.mark.parametrize("name", DRAWS)
def test_a_module_that_draws_is_that_of_the_kernel_where_no_draw_matters(kernel: linux.Kernel, name: str) -> None:
    assert sum(parts(name, i) is None for i in range(30)) == DRAWS[name]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_passes_the_test_of_conformance_where_ours_does(name):
    made = own.described(f"{FOLDER}/tcp_{name}.c", {}).load()
    if name not in ("vegas", "nv"):
        return check(made, closed_loop=False)
    with pytest.raises(ControllerError, match="breaks the rule application-limited"):
        check(made, closed_loop=False)
    return None


def test_what_the_header_lacks_is_said():
    with pytest.raises(InputError, match=r"tcp_lp\.c, line .* has no member named 'rx_opt'"):
        own.described(f"{FOLDER}/tcp_lp.c", {}).load()
