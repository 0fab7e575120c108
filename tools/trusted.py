"""Can I trust your X? Each built-in controller against the original code in Linux, on drawn paths: how many runs are identical in every segment and window.

    tools/trusted.py SEED COUNT [--family NAME]... [--only CONTROLLER]... [--kernel3 NAME] [--beside CONTROLLER=FILE.c]...

COUNT scenarios from each family (default: all), with the controller in the first flow. `--kernel3` names a kernel
built with a patch of BBR's version 3, the reference for `bbr3`. A controller without code in the kernel may be
compared with its authors' published code, compiled (`--beside copa=tcp_copa.c`). Those are different programs, so the
comparison uses statistics over the scenarios. Writes measured/trusted.json for the book of numbers.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import book
from ackclock import _engine, linux, run
from ackclock.diff import Judged, judge
from ackclock.errors import AckclockError
from ackclock.fidelity.drawn import Drawn
from ackclock.fidelity.families import FAMILIES, family
from ackclock.linux import _cache, kernel_controller

OPTIONS: dict[str, dict[str, Any]] = {"bbr3": {"flavour": "linux-v3"}}
"""Options of controllers whose defaults differ from the kernel's."""
HEADS = ("controller", "beside", "drawn", "identical", "draws shared", "refused", "worst goodput", "first difference")


def scenarios(controller: str, seed: int, count: int, families: Sequence[str]) -> Iterator[Drawn]:
    """Drawn scenarios in which the first flow uses this controller."""
    for name in families:
        for one in family(name, seed, count):
            changes: dict[str, Any] = {"flows.0.congestion_control": controller, "flows.0.recovery": "prr-linux-6"}
            changes["flows.0.congestion_control_options"] = OPTIONS.get(controller, {})
            yield replace(one, scenario=one.scenario.set_all(changes))


def row_of(controller: str, judged: Sequence[Judged]) -> list[book.Cell]:
    """A row's cells, one per heading."""
    ran = [one for one in judged if not one.refused]
    differ = [one for one in ran if not one.identical]
    worst = max((one.effect for one in ran if one.effect is not None), key=abs, default=None)
    first = f"{differ[0].name}: {differ[0].text}" if differ else ""
    release = next((one.kernel for one in ran if one.kernel), "none")
    return [
        controller,
        f"Linux {release}",
        len(judged),
        len(ran) - len(differ),
        sum(one.identical and one.given for one in ran),
        len(judged) - len(ran),
        "" if worst is None else f"{100 * worst:+.1f} %",
        first,
    ]


def beside(controller: str, file: Path, todo: Sequence[Drawn]) -> list[book.Cell]:
    """Statistical comparison of our controller with its authors' published code: the interval of the median goodput ratio, and the worst case."""
    ratios: list[float] = []
    refused = 0
    for one in todo:
        theirs = one.scenario.set_all(
            {"flows.0.congestion_control": str(file.resolve()), "flows.0.congestion_control_options": {}}
        )
        try:
            goodput = [float(run(each).flows.row(0, named=True)["goodput_bps"]) for each in (one.scenario, theirs)]
        except AckclockError:
            refused += 1
            continue
        if goodput[1]:
            ratios.append(goodput[0] / goodput[1] - 1)
    middle = f"{100 * median(ratios):+.1f} %" if ratios else "none"
    worst = f"{100 * max(ratios, key=abs):+.1f} %" if ratios else ""
    said = f"median of the difference of goodput {middle}"
    return [controller, f"{file.name}, as published", len(todo), 0, 0, refused, worst, said]


def main() -> None:
    """Measure and record the table."""
    about = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    about.add_argument("seed", type=int)
    about.add_argument("count", type=int)
    about.add_argument("--family", action="append", choices=list(FAMILIES), metavar="NAME")
    about.add_argument("--only", action="append", metavar="CONTROLLER")
    about.add_argument("--kernel3", metavar="NAME")
    about.add_argument("--beside", action="append", default=[], metavar="CONTROLLER=FILE.c")
    given = about.parse_args()
    families = given.family or list(FAMILIES)
    published = dict(text.split("=", 1) for text in given.beside)
    kernel = linux.installed()
    rows: list[list[book.Cell]] = []
    without = []
    for controller, _about in _engine.registry()["controllers"]:
        if given.only and controller not in given.only:
            continue
        newer = controller == "bbr3" and given.kernel3 is not None
        if controller not in published and not newer and kernel_controller(controller, None) not in kernel.controllers:
            without.append(controller)
            continue
        todo = list(scenarios(controller, given.seed, given.count, families))
        if controller in published:
            rows.append(beside(controller, Path(published[controller]), todo))
            continue
        before = os.environ.get(_cache.CHOSEN, "")
        if newer:
            linux.use(given.kernel3)
        rows.append(row_of(controller, judge(todo, jobs=1)))
        os.environ[_cache.CHOSEN] = before
    notes = [f"Neither in this kernel nor given beside it: {', '.join(without)}."] if without else []
    what = "Built-in controllers beside their own code, on scenarios drawn in " + (
        f"{len(families)} families" if len(families) > 1 else f"the family {families[0]}"
    )
    book.record("trusted", what=what, heads=HEADS, rows=rows, seeds=str(given.seed), notes=notes)


if __name__ == "__main__":
    main()
