"""Compares the studies' senders with independent calculations that share no code with them.

PCC Allegro's decision and its rule against slow hosts are worked out by hand in
`crates/pcc/src/control/allegro/tests.rs`, ABSE's filter on a few ACKs in
`crates/cc/src/controller/westwood/tests.rs`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import polars as pl

from ackclock import run_batch
from ackclock_studies.large_pipes import paths
from ackclock_studies.large_pipes.paths import ALABAMA, FAST, SEGMENT, SENDERS, westwood
from ackclock_studies.large_pipes.readings import QUOTED


def replayed(t: np.ndarray, rtt: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Return T_k in seconds by the quoted formulas of ABSE, for one segment per ACK.

    Th_k = (bytes of the last RTT) / RTT; low-passed 0.6 to 0.4; T_k = T_min, the last gap, if that times RTT exceeds the window, else
    RTT (window - low-passed RTT_min) / window.
    """
    least, low_passed, found = np.inf, None, []
    recent: deque[float] = deque()
    for k, now in enumerate(t):
        least = min(least, rtt[k])
        recent.append(now)
        while recent[0] <= now - rtt[k]:
            recent.popleft()
        through = SEGMENT * len(recent) / rtt[k]
        low_passed = through if low_passed is None else 0.6 * low_passed + 0.4 * through
        room = window[k] * SEGMENT
        congested = low_passed * rtt[k] <= room
        gap = now - t[k - 1] if k else rtt[k]
        found.append(max(gap, rtt[k] * (room - low_passed * least) / room) if congested else gap)
    return np.array(found)


def test_abse_samples_over_the_interval_of_the_quoted_formulas():
    scenario = paths.scenario(
        ALABAMA,
        [(westwood(**QUOTED), 1)],
        duration_s=0.8,
        queue=2000,
        users=0.0,
        delayed_ack=False,
        record={"controller": "flow"},
    )
    acks = run_batch(scenario, [1]).controllers.drop_nulls(["sample_rtt_s", "interval_s"])
    t, rtt, window, interval = (
        acks[name].cast(float).to_numpy() for name in ("t_s", "sample_rtt_s", "cwnd", "interval_s")
    )
    own = replayed(t, rtt, window)
    congested = interval > 2e-3
    assert congested.mean() > 0.5
    assert (np.abs(own / interval - 1)[congested] < 0.02).mean() > 0.95


ALPHA = 600
"""Number of packets, so large that slow start ends far from the equilibrium, which the law takes time to reach."""


def off_the_law(**options: float) -> tuple[float, float]:
    """Return the maximum relative deviation of eleven successive windows from the law with gamma = 0.5 and `ALPHA`,
    and the last window's deviation from the equilibrium.

    One flow, after slow start, in a fluid model of the path, where the RTT is the window divided by the rate, but at
    least 64 ms.
    """
    scenario = paths.scenario(
        ALABAMA,
        [(replace(SENDERS[FAST], options={"alpha": ALPHA, **options}), 1)],
        duration_s=12,
        queue=3000,
        users=0.0,
        socket_buffer=f"{16 << 20} bytes",
        record={"controller": "flow"},
    )
    rows = run_batch(scenario, [1]).controllers.filter(pl.col("target_segments") > 0)
    targets = rows["target_segments"].to_numpy()
    begin = int(np.argmax(rows["ssthresh"].is_not_null().to_numpy()))
    pairs = zip(targets[begin + 1 :], targets[begin:], strict=False)
    updates = [x for x, before in pairs if abs(x - before) > 1e-9 * before]  # a repeated target may differ by rounding
    assert len(updates) >= 12
    base = float(rows["base_rtt_s"].min())
    rate = ALABAMA.rate_bps / 8 / paths.MTU
    w = before = updates[0]
    most = 0.0
    for x in updates[1:12]:
        rtt = max(base, w / rate)
        w, before = min(2 * w, 0.5 * w + 0.5 * (base / rtt * before + ALPHA)), w
        most = max(most, abs(x / w - 1))
    return most, abs(updates[-1] / (base * rate + ALPHA) - 1)


def test_fast_goes_from_window_to_window_as_its_law_says():
    """The fluid model ignores the lag of the mean RTT, which is at most 3.5 %. A different gain or alpha deviates more."""
    on_the_way, at_the_end = off_the_law()
    assert on_the_way < 0.04
    assert at_the_end < 0.002
    assert off_the_law(gamma=0.6)[0] > 0.06
    assert off_the_law(alpha=0.95 * ALPHA)[1] > 0.015
