"""Vary one constant of a study again, drawn by the committed tree, and compare the verdicts that turn with its record.

python tools/drawn_edge.py              # drawn by the tree of HEAD; without git, by the files of the studies
python tools/drawn_edge.py --draw TEXT  # drawn by a text

The draw takes a recorded constant, one of its neighbours, and those claims that cost at most `MOST_S` seconds of CPU
together, first the ones that turn. Scale and seeds are the record's, so all numbers are equal bit by bit and a verdict
near a margin cannot differ by chance. Exit code 1 if another verdict turns, or another number of them.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from ackclock import studies
from ackclock.study import Plan, Study, edges
from ackclock.study.edge import Edge
from book import ROOT

MOST_S = 35.0
"""CPU time of a draw, as estimated from the weights of the experiments."""

QUICK_S = 60.0
"""CPU time of a whole study at quick scale."""


class Draw(NamedTuple):
    """A neighbour of a recorded constant, and the claims to judge with it."""

    study: Study
    edge: Edge
    kept: edges.Kept
    neighbour: Any
    claims: tuple[str, ...]


def tree() -> str:
    """Hash of the committed tree; without git, of the files of the studies."""
    asked = ["git", "rev-parse", "HEAD^{tree}"]
    try:
        return subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        found = hashlib.sha256()
        for path in sorted((ROOT / "python" / "ackclock_studies").rglob("*.*")):
            if path.suffix in (".py", ".toml", ".json"):
                found.update(path.read_bytes())
        return found.hexdigest()


@cache
def reads(study: str, claim: str) -> frozenset[str]:
    """Experiments that a claim may read."""
    found = studies.get(study)
    return frozenset(e.name for e in found.experiments if edges.reads_it(found, claim, e))


def cost_s(study: Study, edge: Edge, claims: Sequence[str]) -> float:
    """CPU time of judging claims with the adopted value and one neighbour, estimated from the weights."""
    read = frozenset[str]().union(*(reads(study.name, claim) for claim in claims))
    weight = sum(e.weight * (2 if e.name in edge.experiments else 1) for e in study.experiments if e.name in read)
    return QUICK_S * weight / sum(e.weight for e in study.experiments)


def affordable(study: Study, edge: Edge, order: Sequence[str]) -> tuple[str, ...]:
    """Claims that read an experiment of the constant, in this order, as many as cost no more than `MOST_S`."""
    found: tuple[str, ...] = ()
    for claim in order:
        if reads(study.name, claim) & set(edge.experiments) and cost_s(study, edge, (*found, claim)) <= MOST_S:
            found = (*found, claim)
    return found


def recorded() -> Iterator[tuple[Study, Edge, edges.Kept]]:
    """Constants whose record belongs to their present neighbours."""
    for name in studies.names():
        study = studies.get(name)
        kept = {one.name: one for one in edges.read(study)}
        for edge in study.edges:
            one = kept.get(edge.name)
            if one is not None and one.neighbours == edge.neighbours and one.scale == "quick":
                yield study, edge, one


def draw(text: str) -> Draw:
    """The draw that follows from a text."""

    def rank(*parts: object) -> str:
        return hashlib.sha256(" ".join(map(str, (text, *parts))).encode()).hexdigest()

    for study, edge, kept in sorted(recorded(), key=lambda one: rank(one[0].name, one[1].name)):
        neighbour = min(edge.neighbours, key=rank)
        turned = {one.claim for one in kept.turned if one.neighbour == edge.told(neighbour)}
        order = sorted((claim.id for claim in study.claims), key=lambda c: (c not in turned, rank(c)))
        claims = affordable(study, edge, order)
        if claims:
            return Draw(study=study, edge=edge, kept=kept, neighbour=neighbour, claims=claims)
    sys.exit("drawn_edge: found no recorded constant that is cheap enough; allowed: one or more")


def told(found: Sequence[edges.Turned]) -> list[str]:
    """Verdicts that turn, as text."""
    return sorted(f"{one.claim} {one.half}: {one.before} to {one.after}" for one in found)


def compare(one: Draw) -> list[str]:
    """Vary the constant again. Returns the differences from the record, as text."""
    again = edges.vary(
        one.study,
        Plan(scale=one.kept.scale, name=one.study.name),
        [replace(one.edge, neighbours=(one.neighbour,))],
        claims=one.claims,
    )
    at = one.edge.told(one.neighbour)
    before = told([t for t in one.kept.turned if t.neighbour == at and t.claim in one.claims])
    now = told(again)
    return [f"recorded, and not so now: {x}" for x in before if x not in now] + [
        f"so now, and not recorded: {x}" for x in now if x not in before
    ]


def main() -> int:
    """Draw, vary and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", metavar="TEXT", default="", help="draw by this text instead of the committed tree")
    one = draw(parser.parse_args().draw or tree())
    begun = time.process_time()
    print(
        f"{one.study.name}, {one.edge.name}: {one.edge.told(one.neighbour)}; claims {', '.join(one.claims)}", flush=True
    )
    differences = compare(one)
    spent = time.process_time() - begun
    for line in differences:
        print(line)
    print(f"{'differs from' if differences else 'as in'} the record, {spent:.0f} s of CPU")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
