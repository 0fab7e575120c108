"""How far other readings of the set-up move the result (I29, readings B1 to B11)."""

from __future__ import annotations

from typing import Any

from ackclock.studies.iw10 import loaded, testbed
from ackclock.studies.iw10.testbed import FIVE, IW3, IW10, SLOW
from ackclock.study import Data, Plan
from ackclock.study.cells import collect

LOAD = 0.75

READINGS: dict[str, dict[str, Any]] = {
    "as adopted": {},
    "B1: 11 segments, FIN on the last": {"segments": 11, "fin_ignores_cwnd": "with-data"},
    "B2: load counts every packet": {"load_counts": "all"},
    "B4: four pairs with RTTs of 150 to 600 ms": {"rtts_s": (0.15, 0.3, 0.45, 0.6)},
    "B6: same limit on the way back": {"reverse_limited": True},
    "B7: queue limited in bytes": {"queue": {"kind": "drop-tail", "limit": "60000 bytes"}},
    "B8: initial RTO 1 s": {"initial_rto": "1 s"},
    "B9: Reno": {"congestion_control": "reno"},
    "first burst of at most 9 segments": {"first_burst_cap": 9},
    "RACK-TLP and PRR of Linux 6": {"profile": "linux-6"},
}


def run(plan: Plan) -> Data:
    """64 kb/s, five opens, 75 %: IW3 and IW10 under each reading, same arrivals.

    Returns
    -------
    Data
        `sensitivity.times`, `sensitivity.links`; keys reading, arm.
    """
    seeds = plan.count(quick=6, paper=12)
    cells = []
    duration, warm_up = testbed.length(SLOW, plan.scale)
    for reading, settings in READINGS.items():
        for arm in (IW3, IW10):
            scenario = testbed.loaded(SLOW, FIVE, LOAD, arm, duration_s=duration, **settings)
            keys = {"reading": reading, "arm": arm}
            cells.append(
                loaded.cell(scenario, keys, stream="sensitivity", seeds=seeds, warm_up_s=warm_up, by_window=False)
            )
    return collect("sensitivity", cells, plan)
