"""Record statistics of the studies' verdicts: their numbers before and after decision 0070
(measured/verdict-counts.json), those that change with a neighbouring constant (edges.json), and those confirmed with
other seeds (held-out-seeds.json).

python tools/study_words.py

All three are read from records beside the studies, which `ackclock study run`, `study edges` and `--held-out` write.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Any

from ackclock import studies
from ackclock.judge.bound import Verdict
from ackclock.study import SCALES, Study, edges, held_out
from book import ROOT, Cell, record

BEFORE = "94af56fe^"
"""Revision before decision 0070."""

NAMES = ("prr", "iw10", "slow-start", "large-pipes", "pcc")


def counted(claims: dict[str, Any]) -> Counter[str]:
    """Number of halves with each verdict, causes included."""
    return Counter(half["verdict"] for claim in claims.values() for half in claim.values())


def earlier(name: str) -> dict[str, Any]:
    """Record of a study before decision 0070."""
    path = f"python/ackclock_studies/{name.replace('-', '_')}/recorded.json"
    text = subprocess.run(
        ["git", "show", f"{BEFORE}:{path}"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    found: dict[str, Any] = json.loads(text)
    return found


def counts() -> list[list[Cell]]:
    """Number of halves with each verdict, before and now."""
    rows: list[list[Cell]] = []
    for name in NAMES:
        study = studies.get(name)
        before = earlier(name)
        for scale in SCALES:
            old = counted(before[scale]["claims"]) if scale in before else Counter[str]()
            new = counted(study.recorded(scale).claims)  # type: ignore[arg-type]
            rows += [[name, scale, str(word), old[word.value], new[word.value]] for word in Verdict]
    return rows


def varied() -> list[list[Cell]]:
    """Constants, each with the verdicts that change for a neighbouring value."""
    rows: list[list[Cell]] = []
    for name in NAMES:
        study = studies.get(name)
        kept = {one.name: one for one in edges.read(study)}
        for edge in study.edges:
            values = ", ".join(map(edge.told, edge.neighbours))
            if edge.name not in kept:
                rows.append([name, edge.name, values, "–", "not varied"])
                continue
            one = kept[edge.name]
            turned = [f"{t.claim} {t.half} at {t.neighbour}: {t.before} to {t.after}" for t in one.turned]
            rows.append([name, edge.name, values, ", ".join(map(str, one.moved)), "; ".join(turned) or "none"])
    return rows


def others() -> list[list[Cell]]:
    """Halves that keep their recorded verdict under other seeds, one row per set of seeds."""
    return [row for name in NAMES for scale in SCALES for row in _sets(studies.get(name), scale)]


def _sets(study: Study, scale: str) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for salt, one in held_out.kept(study, scale).items():
        halves = list(held_out.halves(study, scale, {salt: one}))
        lost = [f"{h.claim} {h.half}: {h.recorded} to {h.others[salt]}" for h in halves if not h.kept]
        decided = [h.recorded is not Verdict.UNDECIDED for h in halves]
        again = [h.others[salt] is not Verdict.UNDECIDED for h in halves]
        kept = len(halves) - len(lost)
        share = round(100 * kept / len(halves))
        rows.append([study.name, scale, salt, len(halves), kept, share, sum(decided), sum(again), "; ".join(lost)])
    return rows


def main() -> None:
    """Record the three tables."""
    record(
        "verdict-counts",
        what="Halves of the studies' claims, causes included, by verdict: before decision 0070 brought the words refuted and depends, and now",
        heads=["study", "scale", "verdict", "before", "now"],
        rows=counts(),
    )
    record(
        "edges",
        what="Constants that the studies adopted, each varied alone at quick scale with the same seeds, and the verdicts that turn",
        heads=["study", "constant", "neighbours", "numbers moved by each", "verdicts that turn"],
        rows=varied(),
    )
    rows = others()
    if not rows:
        return
    record(
        "held-out-seeds",
        what="Halves of the studies' claims that keep their recorded verdict with seeds derived from a text fixed before: the last commit to a study's claims or measures",
        heads=["study", "scale", "text", "halves", "kept", "%", "decided as recorded", "decided here", "another word"],
        rows=rows,
    )


if __name__ == "__main__":
    main()
