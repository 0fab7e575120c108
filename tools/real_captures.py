"""Captures of this machine's kernel, in real time, with the kernel's clocks as the reference for `ackclock diagnose`.

`tools/real_captures.py make FOLDER [KIND ...]` (as root, Linux with namespaces, TUN, `tcpdump`, `ethtool`): a sender, a router and a receiver in
separate namespaces, with a link of given rate, delay, queue and loss between the last two. Each kind is captured at
three points: at the sender, above a NIC that splits packets (`sender`), after the NIC, like a switch's mirror port
(`mirror`), and at the receiver (`receiver`). The kernel's state every 10 ms (`TCP_INFO`: bytes not sent, in flight,
the window, its three clocks) is recorded with them, as JSON lines.

`tools/real_captures.py judge FOLDER [--record]`: a table of captures with the fractions of time attributed correctly, left
undecided, and attributed wrongly. Correctness is defined in `tools/capture_truth.py`. `--record` writes
measured/real-captures.json. `chrt -f 1` before `make` keeps other work from moving the times.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from book import record
from capture_truth import judged, shares

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000

SAMPLE_S = 0.01

HEADERS = 66
"""Headers of a segment on the link: Ethernet, IPv4, TCP with timestamps, bytes."""

FORMAT = "BBBBBBBBIIIIIIIIIIIIIIIIIIIIIIIIQQQQIIIIIIQQQQIIQQIIII"
"""`struct tcp_info` of Linux up to `tcpi_snd_wnd` (include/uapi/linux/tcp.h)."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A transfer and its link."""

    rate_mbps: float = 10.0
    rtt_ms: float = 40.0
    queue: int = 50
    loss: float = 0.0
    controller: str = "cubic"
    total: int = 5_000_000
    block: int = 131_072
    pause_s: float = 0.0
    answer: int = 0
    """Size of each response, bytes; 0: a single transfer."""
    receive_buffer: int = 0
    send_buffer: int = 0
    nagle: bool = False
    read_bytes: int = 0
    read_pause_s: float = 0.0
    card: bool = True
    """Whether the sender's card splits packets."""


KINDS = {
    "cubic": Kind(),
    "cubic-4k": Kind(block=4096, total=4_000_000),
    "cubic-16k": Kind(block=16_384, rate_mbps=20, rtt_ms=30, total=8_000_000),
    "cubic-nocard": Kind(card=False, rate_mbps=20, rtt_ms=20, total=8_000_000),
    "cubic-long": Kind(rate_mbps=20, rtt_ms=100, queue=400, total=10_000_000),
    "bbr": Kind(controller="bbr"),
    "bbr-20": Kind(controller="bbr", rate_mbps=20, rtt_ms=60, queue=200, total=8_000_000),
    "reno-loss": Kind(controller="reno", rate_mbps=20, rtt_ms=30, loss=0.01, queue=200, total=6_000_000),
    "rwnd": Kind(rate_mbps=20, rtt_ms=60, queue=100, receive_buffer=65_536, total=6_000_000),
    "rwnd-small": Kind(rate_mbps=20, rtt_ms=30, queue=100, receive_buffer=16_384, total=3_000_000),
    "sndbuf": Kind(rate_mbps=20, rtt_ms=60, queue=100, send_buffer=32_768, total=4_000_000),
    "blocks-pauses": Kind(pause_s=0.3, total=2_500_000),
    "trickle": Kind(block=4096, pause_s=0.01, total=2_000_000),
    "nagle": Kind(block=1000, pause_s=0.004, nagle=True, total=800_000),
    "answers": Kind(answer=100_000, pause_s=0.08, total=2_500_000),
    "slow-reader": Kind(rate_mbps=50, rtt_ms=10, queue=200, read_bytes=20_000, read_pause_s=0.02, total=6_000_000),
}


def run(command: str) -> None:
    subprocess.run(command, shell=True, check=True)


def enter(name: str) -> None:
    """Enter a network namespace."""
    with Path(f"/run/netns/{name}").open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {name}")


def child(work: Callable[[], None], namespace: str = "") -> int:
    """Run a function in a separate process."""
    number = os.fork()
    if number:
        return number
    try:
        if namespace:
            enter(namespace)
        work()
        os._exit(0)
    except BaseException as error:
        print(f"{work}: {error!r}", file=sys.stderr)
        os._exit(1)


def tun(name: str) -> int:
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(made, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return made


def link(a: int, b: int, kind: Kind) -> None:
    """The link: packets from `a` pass through a queue at its rate; those from `b` are delayed by half the RTT."""
    draw = random.Random(1).random
    watch = selectors.DefaultSelector()
    watch.register(a, selectors.EVENT_READ, (a, b, True))
    watch.register(b, selectors.EVENT_READ, (b, a, False))
    waiting: list[tuple[float, int, int, bytes]] = []
    queue: list[float] = []
    number, busy, rate, half = 0, 0.0, kind.rate_mbps * 1e6, kind.rtt_ms / 2e3
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    while not stopped:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            *_, out, packet = heapq.heappop(waiting)
            os.write(out, packet)
        rest = max(0.0, min(0.2, waiting[0][0] - now)) if waiting else 0.2
        for key, _ in watch.select(0 if rest < 5e-4 else rest - 3e-4):
            source, out, forward = key.data
            for _ in range(64):
                try:
                    packet = os.read(source, 65_536)
                except BlockingIOError:
                    break
                now = time.monotonic()
                due = now + half
                if forward:
                    queue = [t for t in queue if t > now]
                    if len(queue) >= kind.queue or (kind.loss and draw() < kind.loss):
                        continue
                    busy = max(busy, now) + (len(packet) + 14) * 8 / rate
                    queue.append(busy)
                    due = busy + half
                number += 1
                heapq.heappush(waiting, (due, number, out, packet))


def told(sock: socket.socket) -> dict[str, Any]:
    """Connection state, as reported by the kernel."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    values = struct.unpack_from(FORMAT, raw)
    return {
        "t": time.time(),
        "ca_state": values[1],
        "unacked": values[12],
        "sacked": values[13],
        "lost": values[14],
        "retrans": values[15],
        "ssthresh": values[25],
        "cwnd": values[26],
        "mss": values[10],
        "srtt_us": values[23],
        "bytes_acked": values[34],
        "snd_wnd": values[53],
        "total_retrans": values[31],
        "notsent": values[38],
        "busy": values[43],
        "rwnd_limited": values[44],
        "sndbuf_limited": values[45],
    }


def serve(kind: Kind, port: int, journal: Path) -> None:
    """Listen, and send; the application's writes and the kernel's clocks are written to the journal."""
    listener = socket.create_server(("10.77.0.1", port))
    listener.setsockopt(socket.IPPROTO_TCP, 13, kind.controller.encode())  # TCP_CONGESTION
    if kind.send_buffer:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, kind.send_buffer)
    sock, _ = listener.accept()
    if not kind.nagle:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    rows: list[dict[str, Any]] = []
    block = bytes(max(kind.block, kind.answer))
    left, due, begins = kind.total, 0.0, time.monotonic()
    now_left = 0
    """Bytes left in the block being written."""
    asked = not kind.answer
    sample, full = begins, False
    while left or now_left:
        now = time.monotonic()
        if now >= sample:
            rows.append(told(sock))
            sample += SAMPLE_S
        if kind.answer and not asked and not now_left:
            try:
                asked = bool(sock.recv(100))
            except BlockingIOError:
                time.sleep(1e-3)
                continue
        if not now_left and now >= due:
            now_left = min(kind.answer or kind.block, left)
            left -= now_left
        if not now_left:
            time.sleep(min(max(due - now, 0), 2e-3))
            continue
        if full and not select.select([], [sock], [], max(sample - now, 0))[1]:
            continue  # as for a program that waits until a third of the buffer is free
        try:
            now_left -= sock.send(block[:now_left])
            full = False
        except BlockingIOError:
            full = True
        if not now_left:
            due = time.monotonic() + (0 if kind.answer else kind.pause_s)
            asked = not kind.answer
    while True:
        rows.append(told(sock))
        if not rows[-1]["notsent"] and not rows[-1]["unacked"]:
            break
        time.sleep(SAMPLE_S)
    sock.close()
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows))


def fetch(kind: Kind, port: int) -> None:
    """Connect, and read."""
    sock = socket.socket()
    if kind.receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, kind.receive_buffer // 2)
    sock.connect(("10.77.0.1", port))
    got = 0
    while got < kind.total:
        if kind.answer and got % kind.answer == 0:
            if got:
                time.sleep(kind.pause_s)
            sock.send(bytes(80))
        if kind.read_pause_s:
            time.sleep(kind.read_pause_s)
        most = kind.read_bytes or 1 << 16
        part = sock.recv(min(most, kind.answer - got % kind.answer) if kind.answer else most)
        if not part:
            break
        got += len(part)
    sock.recv(1)
    sock.close()


def make(folder: Path, name: str, kind: Kind) -> None:
    """Capture one kind at three points."""
    own = f"{os.getpid() % 10_000}"
    s, r, d = (f"ac{own}{one}" for one in "srd")
    a, b = tun(f"a{own}"), tun(f"b{own}")
    children: list[int] = []
    captures: list[subprocess.Popen[bytes]] = []
    try:
        for space in (s, r, d):
            run(f"ip netns add {space}; ip -n {space} link set lo up")
        run(f"ip link add v{own} netns {s} type veth peer name w{own} netns {r}")
        run(f"ip link set a{own} netns {r}; ip link set b{own} netns {d}")
        run(f"ip -n {s} addr add 10.77.0.1/24 dev v{own}; ip -n {s} link set v{own} up")
        run(
            f"ip -n {r} addr add 10.77.0.2/24 dev w{own}; ip -n {r} link set w{own} up; ip -n {r} addr add 10.77.1.1/32 dev a{own}"
        )
        run(f"ip -n {r} link set a{own} up txqueuelen 10000; ip -n {r} route add 10.77.2.0/24 dev a{own}")
        run(
            f"ip -n {d} addr add 10.77.2.1/32 dev b{own}; ip -n {d} link set b{own} up txqueuelen 10000; ip -n {d} route add default dev b{own}"
        )
        run(f"ip -n {s} route add default via 10.77.0.2; ip netns exec {r} sysctl -qw net.ipv4.ip_forward=1")
        if not kind.card:
            run(f"ip netns exec {s} ethtool -K v{own} tso off gso off >/dev/null")
        children.append(child(lambda: link(a, b, kind)))
        os.close(a)
        os.close(b)
        for space, device, at in ((s, f"v{own}", "sender"), (r, f"a{own}", "mirror"), (d, f"b{own}", "receiver")):
            file = folder / f"{name}.{at}.pcap"
            command = [
                "ip",
                "netns",
                "exec",
                space,
                "tcpdump",
                "-i",
                device,
                "-s",
                "96",
                "-w",
                str(file),
                "-U",
                "-B",
                "8192",
                "tcp",
            ]
            captures.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(1.0)
        sender = child(lambda: serve(kind, 5001, folder / f"{name}.jsonl"), s)
        time.sleep(0.3)
        receiver = child(lambda: fetch(kind, 5001), d)
        os.waitpid(sender, 0)
        os.waitpid(receiver, 0)
        time.sleep(1.5)  # tcpdump writes what it has captured once a second
    finally:
        for one in captures:
            one.terminate()
            one.wait()
        for number in children:
            os.kill(number, signal.SIGTERM)
            os.waitpid(number, 0)
        for space in (s, r, d):
            subprocess.run(["ip", "netns", "del", space], check=False)


HEADS = ("capture", "right", "not told", "wrong", "path's rate", "kernel", "told")


def judge(folder: Path, recorded: bool) -> None:
    """Table of the results; the rate is that of the link, where the answer states an exact one."""
    print(f"| {' | '.join(HEADS)} | sentence |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- | --- |")
    made = []
    for journal in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in journal.read_text().splitlines()]
        for at in ("sender", "mirror", "receiver"):
            one = judged(folder / f"{journal.stem}.{at}.pcap", rows)
            real = KINDS[journal.stem].rate_mbps * 1e6 * one.mss / (one.mss + HEADERS)
            off = "" if one.rate_bps is None else f"{one.rate_bps / real - 1:+.2%}".replace("%", " %")
            parts = [f"{part * 100:.1f} %" for part in (one.right, one.untold, one.wrong)]
            made.append([f"{journal.stem}, {at}", *parts, off or "–", shares(one.real), shares(one.told)])
            print(f"| {' | '.join(made[-1])} | {one.sentence} |", flush=True)
    if recorded:
        what = "What `ackclock diagnose` tells of captures of this machine's kernel in real time, beside the kernel's own clocks: shares of each capture's time, and the error of the path's rate where it is told as exact"
        record("real-captures", what=what, heads=HEADS, rows=made, notes=[LOAD])


LOAD = "Link, capture and programs ran under `chrt -f 1`, on a machine of two processors that was busy with other work."


def main() -> int:
    what, folder, *names = sys.argv[1:]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    if what == "make":
        for name in names or KINDS:
            make(place, name, KINDS[name])
            print(name, flush=True)
    else:
        judge(place, "--record" in names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
