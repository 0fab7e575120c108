"""Tests that a library's reports are compared with the packets carried by the network: a false report is attributed to the library, in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stacks.test_stack import ROOT, TOY

from ackclock import stacks

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")

LIES = {
    "received huge": ("{ return s->received; }", "{ return s->received ? UINT64_MAX : 0; }", "received: found 18446744073709551615"),
    "received 2^40": ("{ return s->received; }", "{ return s->received ? 1ULL << 40 : 0; }", "received: found 1099511627776"),
    "received falls": ("{ return s->received; }", "{ return s->received > 20000 ? 10 : s->received; }", "that does not fall"),
    "sent": ("into->sent = s->sent", "into->sent = 1ULL << 63", "sent: found 9223372036854775808"),
    "sent more": ("into->sent = s->sent", "into->sent = s->sent + 9", "the datagrams that left"),
    "lost more": ("into->lost = s->lost", "into->lost = s->sent + 9", "lost: found"),
    "acked": ("into->acked = s->acked", "into->acked = s->acked ? 1ULL << 50 : 0", "acked: found"),
    "in flight": ("into->in_flight = s->next - s->acked", "into->in_flight = 1ULL << 40", "in_flight: found"),
    "window": ("into->window = s->window * PAYLOAD", "into->window = 1ULL << 63", "window: found"),
    "acks": ("into->acked = s->acked", "into->acked = s->acked, into->acks = 1ULL << 40", "acks: found"),
    "rtt": ("into->acked = s->acked", "into->acked = s->acked, into->min_rtt_ns = 1ULL << 50", "min_rtt_ns: found"),
    "finished": ("return s->is_server && s->ends == (int64_t)s->received;", "return 1;", "peer_finished: found"),
    "transmit": ("if (s->answers) {", "if (s->state == ACK_STACK_OPEN && !s->is_server) return put(s, into, ACK, 0, 0);\n  if (s->answers) {", "transmit: found"),
}  # fmt: skip


def lying(folder: Path, what: str) -> Path:
    before, after, _ = LIES[what]
    text = TOY.read_text()
    assert before in text
    (folder / "lie.c").write_text(text.replace(before, after))
    made = folder / "lie.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-pthread", "-o", str(made), str(folder / "lie.c")]
    subprocess.run([*command, "-I", str(ROOT / "crates/stack/c")], check=True)
    return made


@pytest.mark.promise("P36")
@pytest.mark.parametrize("what", LIES)
def test_a_lie_ends_the_run_with_a_line_and_is_found_by_the_check(tmp_path, what):
    library = lying(tmp_path, what)
    (tmp_path / "s.toml").write_text(
        'duration = "2 s"\n[network.bottleneck]\nrate = "10 Mbit/s"\ndelay = "10 ms"\n[[flows]]\n'
        'congestion_control = "stack:toy:fixed"\nworkload = { kind = "transfer", bytes = "100 kB" }\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "ackclock", "run", "s.toml", "--stack", str(library), "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "stack toy" in done.stderr
    assert LIES[what][2] in done.stderr
    [finding] = stacks.check(library, checks=["numbers"])
    assert not finding.holds
