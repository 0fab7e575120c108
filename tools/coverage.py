"""Record how often the judge's intervals contain the true value, in measured/interval-coverage.json; print how often
repeated looks lead to a wrong decision, as a Markdown table.

python tools/coverage.py
"""

from __future__ import annotations

from ackclock.judge import Verdict
from ackclock.judge.coverage import LOOKED, SETS, cases, coverage, looks
from book import record

WHAT = (
    "How often an interval of the judge holds the truth, of 95 % asked for, by simulation of 400 sets of runs each; sets without an "
    "interval, of which nothing is decided, count among those that hold it"
)


def main() -> None:
    """Record the first table, and print the second."""
    rows: list[list[str | int | float]] = []
    for case in cases():
        for n in case.sizes:
            c = coverage(case, n)
            rows.append([case.estimator, case.data, n, round(c.percent), round(c.refused)])
    record(
        "interval-coverage",
        what=WHAT,
        heads=["estimator", "data", "runs", "holds the truth, %", "no interval, %"],
        rows=rows,
    )
    print("| looking up to seven times | holds, % | fails, % | negligible or refuted, % |")
    print("|---|---|---|---|")
    for name, (truth, bound) in LOOKED.items():
        w = looks(truth, bound, 4 * SETS)
        against = w.get(Verdict.NEGLIGIBLE, 0) + w.get(Verdict.REFUTED, 0)
        print(f"| {name} | {w.get(Verdict.HOLDS, 0):.1f} | {w.get(Verdict.FAILS, 0):.1f} | {against:.1f} |")


if __name__ == "__main__":
    main()
