from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackclock import Scenario, run
from ackclock.errors import ScenarioError
from ackclock.video import bitrates, inefficiency, instability, players, quality, unfairness

LADDER = ["350 kbit/s", "700 kbit/s", "1.5 Mbit/s", "3 Mbit/s"]


def scenario(duration: str = "60 s", video: dict[str, Any] | None = None, **flow: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "duration": duration,
            "network": {"bottleneck": {"rate": "5 Mbit/s", "delay": "20 ms", "queue": {"kind": "drop-tail", "limit": "40 packets"}}},
            "flows": [{"workload": {"kind": "video", "ladder": LADDER, **(video or {})}, **flow}],
        }
    )  # fmt: skip


def test_the_metrics_by_hand():
    assert inefficiency([1e6, 2e6], 4e6) == 0.25 == inefficiency([2e6, 3e6], 4e6)
    # J of 1, 2, 3: 36 / (3 x 14)
    assert unfairness([1, 2, 3]) == pytest.approx(math.sqrt(1 - 36 / 42))
    assert unfairness(iter([5, 5, 5])) == 0
    assert math.isnan(unfairness([]))
    assert math.isnan(unfairness([0, 0]))
    # k = 4, newest first 3 2 2 1 1: changes 1 x 4 + 0 x 3 + 1 x 2 + 0 x 1 = 6, level 2 x 3 + 2 x 2 + 1 x 1 = 11
    assert instability([9, 1, 1, 2, 2, 3], horizon=4) == pytest.approx(6 / 11)
    assert instability([7.0] * 21) == 0
    assert math.isnan(instability([7.0] * 20))
    assert math.isnan(instability([0.0] * 21))


def table(rows: list[tuple[int, float, int]]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=["flow", "request_s", "bitrate_bps"], orient="row").sort("flow", "request_s")
    return frame.with_columns(
        pl.int_range(pl.len()).over("flow").alias("idx"), pl.lit(0.5).alias("stall_s"), pl.col("bitrate_bps").alias("level")
    )  # fmt: skip


REQUESTS = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 50), st.integers(1, 5)), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(REQUESTS, st.integers(1, 8), st.integers(20, 30))
def test_the_means_are_those_of_each_second(rows: list[tuple[int, float, int]], horizon: int, start: int):
    chunks = table(rows)
    flows = sorted(chunks["flow"].unique().to_list())
    requests = chunks.select("request_s", "bitrate_bps", "flow").rows()

    def at(flow: int, t: float) -> float:
        own = [row for row in requests if row[2] == flow and row[0] <= t]
        return float(own[-1][1]) if own else 0.0

    seconds = range(start, 45)
    found = quality(chunks, 6.0, start_s=start, stop_s=45, horizon=horizon)
    levels = [[at(f, t) for f in flows] for t in seconds]
    assert found["inefficiency"] == pytest.approx(sum(inefficiency(b, 6.0) for b in levels) / len(levels))
    assert found["bitrate_bps"] == pytest.approx(sum(map(sum, levels)) / len(levels) / len(flows))
    unfair = [u for u in map(unfairness, levels) if not math.isnan(u)]
    if unfair:
        assert found["unfairness"] == pytest.approx(sum(unfair) / len(unfair), abs=1e-7)
    moves = [instability([at(f, t - d) for d in range(horizon, -1, -1)], horizon) for f in flows for t in seconds]
    moves = [m for m in moves if not math.isnan(m)]
    if moves:
        assert found["instability"] == pytest.approx(sum(moves) / len(moves))
    long = bitrates(chunks, start_s=start, stop_s=45)
    assert long["bitrate_bps"].to_list() == [at(f, t) for f in flows for t in seconds]


def test_no_player_is_no_number():
    with pytest.raises(ValueError, match="0 players from 1 to 9 s"):
        quality(run(scenario(duration="1 s")).chunks.clear(), 1.0, start_s=1, stop_s=9)


@pytest.mark.parametrize("controller", ["cubic", "pcc-allegro"])
def test_a_player_alone_finds_its_bitrate_and_never_stalls(controller: str):
    done = run(scenario("120 s", congestion_control=controller))
    row = players(done.chunks).row(0, named=True)
    assert row["switches"] == 3  # one level at a time up to 3 Mbit/s, then no more
    assert (row["stalls"], row["stall_s"]) == (0, 0)
    assert 0.1 < row["first_picture_s"] < 2
    numbers = quality(done.chunks, 4.8e6, start_s=60, stop_s=120)
    assert (numbers["instability"], numbers["unfairness"], numbers["switches"]) == (0, 0, 0)
    assert numbers["inefficiency"] == pytest.approx(1.8 / 4.8)
    # the buffer stays near its target, at most two chunks above it
    late = done.chunks.filter(pl.col("request_s") > 60)["buffer_s"].drop_nulls()
    assert late.is_between(26, 38).all()
    assert late.std() > 1  # but it varies


def test_players_remember_what_they_saw_and_a_run_repeats():
    first, again = (run(scenario(video={"adaptation": {"kind": "rate-based"}}), seed=3) for _ in range(2))
    assert first.digest == again.digest
    chunks = first.chunks
    took = chunks["finish_s"] - chunks["request_s"]
    seen = (chunks["bytes"] * 8 / took).to_list()
    assert chunks["estimate_bps"].to_list()[1:] == pytest.approx(seen[:-1], rel=1e-6)
    rates = [350_000, 700_000, 1_500_000, 3_000_000]
    for before, now in zip(seen, chunks["bitrate_bps"].to_list()[1:], strict=False):
        assert now == max([rate for rate in rates if rate <= before], default=rates[0])


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ({"workload": {"kind": "video"}}, "flows.0.workload.ladder: found nothing"),
        ({"workload": {"kind": "video", "ladder": []}}, "flows.0.workload.ladder: found an empty list; allowed: a list with"),
        (
            {"workload": {"kind": "video", "ladder": ["2 Mbit/s", "2000 kbit/s"]}},
            'flows.0.workload.ladder.1: found "2000 kbit/s" after "2 Mbit/s"; allowed: bitrates that ascend',
        ),
        (
            {"workload": {"kind": "video", "ladder": LADDER, "buffer_max": "33 s"}},
            'flows.0.workload.buffer_max: found "33 s" with a buffer of "30 s" and chunks of "4 s"; allowed: at least',
        ),
        (
            {"workload": {"kind": "video", "ladder": LADDER, "startup": "31 s"}},
            'flows.0.workload.startup: found "31 s" with a buffer of "30 s"; allowed: at most the buffer',
        ),
        (
            {"workload": {"kind": "video", "ladder": LADDER, "adaptation": {"kind": "festiv"}}},
            'flows.0.workload.adaptation.kind: found "festiv"; allowed: festive, rate-based (nearest: festive)',
        ),
        (
            {"workload": {"kind": "video", "ladder": LADDER, "adaptation": {"kind": "rate-based", "alpha": 3}}},
            "flows.0.workload.adaptation.alpha: found an unknown key",
        ),
        ({"workload": {"kind": "video", "ladder": LADDER, "size_variation": 1}}, "flows.0.workload.size_variation: found 1;"),
        (
            {"workload": {"kind": "video", "ladder": LADDER, "request": "2 KB"}, "congestion_control": "pcc-allegro"},
            'flows.0.workload.request: found "2 KB" with the controller "pcc-allegro"; allowed: at most 1456 bytes',
        ),
        (
            {"workload": {"kind": "fetch", "bytes": "2 KB"}, "congestion_control": "pcc-allegro"},
            'flows.0.workload.kind: found "fetch" with the controller "pcc-allegro"; allowed: bulk, transfer, throttled, video',
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(flow: dict[str, Any], message: str):
    with pytest.raises(ScenarioError) as told:
        Scenario.from_dict({"duration": "1 s", "network": {"bottleneck": {"rate": "1 Mbit/s"}}, "flows": [flow]})
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_a_video_longer_than_memory_is_refused():
    from ackclock.errors import InputError

    endless = scenario("1 h", video={"chunk": "1 us", "buffer": "30 s", "ladder": ["1 bit/s"]})
    with pytest.raises(InputError, match="memory"):
        run(endless)
