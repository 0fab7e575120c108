"""Print how often the judge's intervals hold the truth, and how often looking again decides by mistake, as Markdown tables.

python tools/coverage.py
"""

from __future__ import annotations

from ackclock.judge import Verdict
from ackclock.judge.coverage import LOOKED, SETS, cases, coverage, looks


def main() -> None:
    """Print both tables."""
    print("| estimator | data | runs | holds the truth, % | no interval, % |")
    print("|---|---|---|---|---|")
    for case in cases():
        for n in case.sizes:
            c = coverage(case, n)
            print(f"| {case.estimator} | {case.data} | {n:,} | {c.percent:.0f} | {c.refused:.0f} |")
    print()
    print("| looking up to seven times | holds, % | fails, % | negligible or refuted, % |")
    print("|---|---|---|---|")
    for name, (truth, bound) in LOOKED.items():
        w = looks(truth, bound, 4 * SETS)
        against = w.get(Verdict.NEGLIGIBLE, 0) + w.get(Verdict.REFUTED, 0)
        print(f"| {name} | {w.get(Verdict.HOLDS, 0):.1f} | {w.get(Verdict.FAILS, 0):.1f} | {against:.1f} |")


if __name__ == "__main__":
    main()
