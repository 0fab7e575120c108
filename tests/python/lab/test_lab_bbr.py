"""Tests that BBR written in JavaScript against the contract matches the built-in one bit for bit, and that features
unsupported in a page are refused by name.
"""

from __future__ import annotations

from pathlib import Path

from lab_page import FIRST, built, node
from test_lab_own import play

from ackclock import load, run

BURSTS = """duration = "8 s"
[network]
bottleneck = { rate = "8 Mbit/s", delay = "20 ms", loss = { kind = "bernoulli", p = "1 %" } }
[[flows]]
congestion_control = "cubic"
workload = { kind = "bursts", bytes = "300 kB", pause = "700 ms" }
"""
LONG = """duration = "12 s"
[network]
bottleneck = { rate = "3 Mbit/s", delay = "60 ms", queue = { kind = "drop-tail", limit = "20 packets" } }
[[flows]]
congestion_control = "cubic"
count = 2
"""
BBR = (Path(__file__).parent / "bbr.js").read_text(encoding="utf-8")
PLAIN = "on_ack(w, a) { if (a.cwnd_limited) w.cwnd += a.acked / w.cwnd; } on_congestion_event(w) { return w.cwnd / 2; }"


@built
@node
def test_bbr_in_javascript_is_bbr(tmp_path):
    texts = [FIRST, BURSTS, LONG]
    jobs = [{"text": text.replace('"cubic"', '"custom:Bbr"'), "seed": 7} for text in texts]
    told = play(tmp_path, BBR, ["Bbr"], [*jobs, {"conform": "Bbr"}])
    expected = []
    for text in texts:
        (tmp_path / "built-in.toml").write_text(text.replace('"cubic"', '"bbr"'))
        expected.append(run(load(tmp_path / "built-in.toml"), seed=7).digest)
    assert [one.get("digest", one) for one in told] == [*expected, {"ok": True}]


@built
@node
def test_every_hook_is_called_and_files_are_refused_by_name(tmp_path):
    bodies = {
        "Reads": f"{PLAIN} reads = ['a.csv'];",
        "Restarts": f"{PLAIN} on_restart(w, at) {{ throw new Error('restarts'); }}",
        "Totals": f"wants_rate = true; {PLAIN} on_totals(d, l, t) {{ throw new Error('totals'); }}",
        "Timer": f"{PLAIN} on_timer(now) {{ throw new Error('timer'); }}",
        "Idle": f"{PLAIN} on_idle(now, una, slow) {{ throw new Error('idle'); }}",
        "Marks": f"{PLAIN} on_mark_event(w, n) {{ throw new Error('marks'); }}",
        "Buffers": f"{PLAIN} buffer_windows = 300;",
    }
    script = "".join(f"class {name} {{ {body} }}\n" for name, body in bodies.items())
    told = [one["message"] for one in play(tmp_path, script, list(bodies), [{"conform": name} for name in bodies])]
    said = [
        "reads is an object; allowed: none, for a page reads no files",
        "restarts",
        "totals",
        "timer",
        "idle",
        "marks",
        "buffer_windows is 300; allowed: a whole number, 0 to 255",
    ]
    assert [part in message for part, message in zip(said, told, strict=True)] == [True] * len(said), told
