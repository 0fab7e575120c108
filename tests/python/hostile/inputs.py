"""Mistaken and malicious inputs, by kind: files, options, calls. Each is refused in one line, or accepted if it makes
sense.

Length: lists of inputs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ackclock.scenario._toml import to_toml


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input with a name.

    Parameters
    ----------
    name
        Description of the defect.
    argv
        Arguments of the command; "{store}" is replaced by a folder with a finished sweep.
    code
        Statements instead of a command.
    files
        Files written beforehand; bytes are written unchanged.
    damage
        Damage to that folder beforehand: a statement about `store`.
    taken
        Whether the input is valid; None: either is allowed.
    """

    name: str
    argv: tuple[str, ...] = ()
    code: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    damage: str = ""
    taken: bool | None = False


BASE: dict[str, Any] = {
    "duration": "100 ms",
    "network": {"bottleneck": {"rate": "1 Mbit/s", "delay": "5 ms"}},
    "flows": [{"congestion_control": "reno"}],
}
TEXT = to_toml(BASE)

NO_TEXT: list[Any] = [True, [], {}, ["x"], {"x": 1}]
NO_QUANTITY: list[Any] = [
    *NO_TEXT, 5, 1.5, "", " ", "1", "x", "nan {0}", "inf {0}", "-1 {0}", "1e400 {0}", "1 parsec", "1 {0} 2 {0}", "1{0}x",
    "\u0661 {0}", "0x10 {0}", "1_000_000_000_000_000_000_000_000 {0}", "1e30 {0}", "\u0000", "1 \u001b[31m{0}", "1,5 {0}",
]  # fmt: skip
NO_WHOLE: list[Any] = [*NO_TEXT, "", "x", "1", 1.5, -1, 10**30, 2**63, float("nan"), float("inf"), float("-inf")]
NO_SHARE: list[Any] = [
    *NO_TEXT,
    "",
    "x",
    -0.1,
    1.1,
    float("nan"),
    float("inf"),
    "-1 %",
    "101 %",
    "nan %",
    "1 s",
    "1e9 %",
]
NO_NAME: list[Any] = [*NO_TEXT, 5, "", "x", "RENO ", "reno\n", "\u001b]0;x\u0007", "custom:", "../reno", "x" * 100_000]
NO_TABLE: list[Any] = [True, 5, 1.5, "x", "", [], ["x"], [[]]]

DURATIONS = [
    "duration", "network.bottleneck.delay", "network.bottleneck.jitter", "flows.0.start", "flows.0.stop", "record.warm_up",
    "record.sample_interval", "record.queue_interval", "record.goodput_interval", "record.controller_interval",
]  # fmt: skip
WORKLOADS: dict[str, dict[str, Any]] = {
    "transfer": {"bytes": "10 KB"},
    "fetch": {"bytes": "10 KB", "count": 2},
    "constant-rate": {"rate": "100 kbit/s"},
    "throttled": {"rate": "100 kbit/s"},
}


def changed(key: str, value: Any) -> dict[str, Any]:
    """Return the base scenario with one value changed."""
    values = copy.deepcopy(BASE)
    node: Any = values
    *path, last = key.split(".")
    for part in path:
        node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
    node[last] = value
    return values


def _toml(values: Mapping[str, Any]) -> str:
    return to_toml(values)


def _run(name: str, text: str | bytes, *, taken: bool | None = False) -> Input:
    return Input(name=name, argv=("run", "x.toml", "--memory-limit", "300 MB"), files={"x.toml": text}, taken=taken)


def _each(key: str, values: list[Any], unit: str = "") -> Iterator[Input]:
    for value in values:
        given = value.replace("{0}", unit) if isinstance(value, str) else value
        yield _run(f"{key} = {given!r:.40}", _toml(changed(key, given)))


def scenarios() -> Iterator[Input]:
    """Return scenario files with errors."""
    for key in DURATIONS:
        yield from _each(key, NO_QUANTITY, "s")
    for key in ("network.bottleneck.rate", "network.access.rate"):
        yield from _each(key, NO_QUANTITY, "Mbit/s")
    yield from _each("network.framing", NO_QUANTITY, "bytes")
    yield from _each("flows.0.count", [*NO_WHOLE, 0, 1_000_001])
    for key in (
        "network.topology",
        "flows.0.profile",
        "flows.0.congestion_control",
        "flows.0.recovery",
        "record.trace",
    ):
        yield from _each(key, NO_NAME)
    for kind, rest in WORKLOADS.items():
        for key, value in rest.items():
            bad = NO_WHOLE if isinstance(value, int) else NO_QUANTITY
            for template in bad:
                unit = "bytes" if key == "bytes" else "bit/s"
                wrong = template.replace("{0}", unit) if isinstance(template, str) else template
                if key == "bytes" and isinstance(wrong, int | float | dict) and not isinstance(wrong, bool):
                    continue  # a distribution, or bytes without a unit, is allowed here
                workload = {"kind": kind, **rest, key: wrong}
                yield _run(f"{kind}.{key} = {wrong!r:.40}", _toml(changed("flows.0.workload", workload)))
    for value in NO_SHARE:
        loss = {"kind": "bernoulli", "p": value}
        yield _run(f"loss.p = {value!r:.40}", _toml(changed("network.bottleneck.loss", loss)))
    for key in (
        "network",
        "network.bottleneck",
        "flows.0.stack",
        "record",
        "network.reverse",
        "network.bottleneck.queue",
    ):
        yield from _each(key, NO_TABLE)
    for key in ("flows", "hosts", "network.links"):
        yield from _each(key, [True, 5, "x", {}, {"x": 1}, ["x"], [[]], [{"x": 1}]])
    for table in ("", "network.", "network.bottleneck.", "flows.0.", "record."):
        for name in ("unknown", "Duration", "", "a b", "\u001b[1m", "é", "k" * 100_000):
            if "." not in name:
                yield _run(
                    f"key {table}{name!r:.20}",
                    _toml(changed(table + "placeholder", 1)).replace("placeholder", _key(name)),
                )
    for kind in ("", "x", "drop", "codel2", "DROP-TAIL", "\u001b[31m"):
        for key in ("queue", "loss", "capacity", "reorder"):
            yield _run(f"{key} of kind {kind!r}", _toml(changed(f"network.bottleneck.{key}", {"kind": kind})))
    for name, text in _broken():
        yield _run(name, text)
    for name, text in _edges():
        yield _run(name, text, taken=True)


def _key(name: str) -> str:
    import json

    return json.dumps(name)


def _broken() -> Iterator[tuple[str, str | bytes]]:
    """Return files that are not TOML, or lack a scenario's tables."""
    yield "empty", ""
    yield "a comment", "# nothing\n"
    yield "NUL", b"\x00"
    yield "no UTF-8", TEXT.encode() + b'name = "\xff"\n'
    yield "UTF-16", TEXT.encode("utf-16")
    yield "unterminated text", TEXT + 'name = "x'
    yield "unterminated table", TEXT + "[x"
    yield "twice", TEXT + TEXT
    yield "key twice", "duration = '1 s'\n" + TEXT
    yield "nested lists", TEXT.replace('"reno"', "[" * 5000 + "]" * 5000)
    yield "nested tables", TEXT.replace('"reno"', "{a=" * 3000 + "1" + "}" * 3000)
    yield "dots", "x" + ".x" * 100_000 + " = 1\n" + TEXT
    yield "dots in a header", f"[{'.'.join(['a'] * 50_000)}]\n"
    yield "long number", "x = " + "9" * 10_000 + "\n" + TEXT
    yield "long float", "x = 0." + "9" * 10_000 + "\n" + TEXT
    yield "more than a MiB", TEXT + "#" * (1 << 20)
    yield "many keys", "\n".join(f"k{i} = 1" for i in range(50_000)) + "\n" + TEXT
    yield "JSON", '{"duration": "1 s"}'
    yield "YAML", "duration: 1 s\n"
    yield "a date", TEXT.replace('"reno"', "2026-01-01")
    yield "a time", TEXT.replace('"100 ms"', "10:00:00")
    yield "a script", "#!/bin/sh\ntouch /tmp/x\n"
    yield "a lone surrogate", TEXT + 'name = "\\ud800"\n'
    yield "no flows", "duration = '1 s'\n[network]\n"
    yield "no time", 'duration = "1 us"\n[network]\nbottleneck = { rate = "100 Tbit/s" }\n[[flows]]\n'
    yield (
        "no time in a graph",
        'duration = "1 us"\n[network]\ntopology = "graph"\nlinks = [{ name = "a" }, { name = "b" }]\n'
        'paths = [{ name = "p", forward = ["a"], reverse = ["b"] }]\n[[flows]]\n',
    )
    yield "a thousand hours of everything", _toml({**changed("record", {"trace": "all"}), "duration": "1000 h"})
    yield "a million flows, traced", _toml({**changed("flows.0.count", 1_000_000), "record": {"trace": "all"}})
    for trace in ("/dev/zero", "/proc/kmsg", ".", "missing", "\\u0000", ""):
        yield (
            f"a trace {trace!r}",
            TEXT.replace('rate = "1 Mbit/s"', f'capacity = {{ kind = "mahimahi", file = "{trace}" }}'),
        )


def _edges() -> Iterator[tuple[str, str]]:
    """Return unusual but valid files."""
    for key, value in (
        ("name", "\x1b]0;x\x07[/red]$\\frac$<script>"),
        ("name", "é" * 1000),
        ("duration", "1 ns"),
        ("network.bottleneck.rate", "1 bit/s"),
        ("network.bottleneck.delay", "0 s"),
        ("network.bottleneck.jitter", "1 s"),
        ("network.framing", "1000 bytes"),
        ("flows.0.count", 300),
        ("flows.0.start", "99 ms"),
        ("flows.0.stop", "1 ns"),
        ("record.warm_up", "99 ms"),
        ("record.sample_interval", "1 ms"),
        ("network.bottleneck.loss", {"kind": "bernoulli", "p": 1}),
        ("network.bottleneck.loss", {"kind": "bernoulli", "p": "0 %"}),
        ("network.bottleneck.queue", {"kind": "drop-tail", "limit": "1 packet"}),
    ):
        yield f"{key} = {value!r:.40}", _toml(changed(key, value))


SHELL = [
    "touch pwned", "echo x > pwned", "sh -c 'touch pwned'", "`touch pwned`", "$(touch pwned)", "touch pwned; true",
    "touch pwned && true", "touch pwned | cat", "touch pwned &", "exec touch pwned", "eval touch pwned", ". ./pwn.sh",
    "source pwn.sh", "python3 -c 'open(\"pwned\",\"w\")'", "rm -rf *", "curl http://127.0.0.1/", "sysctl -w kernel.panic=1",
    "sysctl -q net.ipv4.tcp_sack=banana", "sysctl -q net.ipv4.tcp_sack=99999999999999999999", "echo 1 > /proc/sys/kernel/panic",
    "ip link set lo down", "tc qdisc add dev tun0 root pwn", "../common/defaults.sh; touch pwned", "IFS=x touchxpwned",
    "x=touch; $x pwned", "cd / && touch pwned", "printf x > pwned", "tee pwned", "ln -s / root", "mkfifo pwned", "yes",
    "while true; do :; done", ":(){ :|:& };:", "cat /etc/passwd", "\u001b]0;x\u0007", "",
]  # fmt: skip
BLOCKS = [
    "__import__('os').system('touch pwned')", "open('pwned', 'w')", "exec('1')", "eval('1')", "().__class__.__bases__",
    "assert [x for x in (1, 2)]", "assert (lambda: 1)()", "while True: pass", "for x in (1,): pass", "import os",
    "from os import system", "def f(): pass", "class A: pass", "x = 1\nx.__class__", "assert 9**9**9", "assert 1 << 10**9",
    "assert 'x' * 10**10", "assert (1,) * 10**10", "assert -" + "-" * 5000 + "1", "assert " + "(" * 5000, "assert " + "1+" * 5000 + "1",
    "assert f'{1}'", "assert '%s' % ('x' * 10**9)", "assert '%1000000000d' % 1", "x = x", "assert tcpi_nothing == 1",
    "assert 1 / 0", "assert 1 % 0", "assert 1 // 0", "assert 1e308 * 10 == 1", "assert (1 if 1 else 2)", "assert a.b", "assert a[0]",
    "assert not", "assert", "\u0000", "print('\u001b]0;x\u0007')\nassert 0", "raise SystemExit", "del x", "global x", "yield 1", "await x",
    "assert 1 == 2, __import__('os')", "assert {1: 2}", "assert {1}", "assert 1 @ 2", "x: int = 1", "x += 'a' * 10**9", "with x: pass",
    "try:\n pass\nexcept: pass", "assert (x := 1)", "return", "nonlocal x", "assert min()", "assert max(1)", "assert len(1)", "assert abs('x')",
]  # fmt: skip
PACKETS = [
    "0 < S", "0 < S 0:0(0)", "0 < X 0:0(0) win 1", "0 < S 0:0(5) win 1", "0 < S 5:0(0) win 1", "0 < S 0:0(0) win 99999",
    "0 < S 0:0(0) win 1 <mss>", "0 < S 0:0(0) win 1 <mss 99999>", "0 < S 0:0(0) win 1 <foo>", "0 < S 0:0(0) win 1 <",
    "0 < S 4294967296:0(0) win 1", "0 < S 0:0(0) win 1 <sack 1:2 3:4 5:6 7:8 9:10>", "-1 < S 0:0(0) win 1", "1e9 < S 0:0(0) win 1",
    "99999999999 < S 0:0(0) win 1", "+99999999999 `true`", "0 > S. 0:0(0) ack 1", "* > S. 0:0(0) ack 1", "0~ > S 0:0(0)",
    "0~-1 > S 0:0(0)", "0 <", "<", ">", "0", "+", "0 socket(", "0 socket()", "0 socket(...) = 3", "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = x",
    "0 fork() = 0", "0 execve('/bin/sh') = 0", "0 write(3, ..., 99999999999999999999) = 1", "0 write(3, ..., -1) = -1",
    "0 read(99, ..., 1) = 1", "0 open('/etc/passwd') = 3", "0 ioctl(3, 5, 5) = 0", "0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3",
    "--", "--foo=1", "--tolerance_usecs=x", "--tolerance_usecs=99999999999999999999", "--mtu=0", "--define=x", "/*", "\"", "%{", "`",
    "0 < icmp", "0 < icmp foo", "0 < udp (5)", "0 < . 1:1(0) ack 1 win 1 <TS val 1>", "0 mmap() = 0", "0 listen(3, 1) = 0", "\u202e",
]  # fmt: skip
OPEN = """0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
"""


def scripts() -> Iterator[Input]:
    """Return packet scripts: nothing is executed, nothing unknown is accepted."""
    for command in SHELL:
        text = f"`{command}`\n{OPEN}"
        yield Input(
            name=f"`{command[:30]}`",
            argv=("script", "x.pkt"),
            files={"x.pkt": text, "pwn.sh": "touch pwned\n"},
            taken=None,
        )
        late = f"{OPEN}+0 `{command}`\n"
        yield Input(name=f"later `{command[:30]}`", argv=("script", "x.pkt", "-v"), files={"x.pkt": late}, taken=None)
    for block in BLOCKS:
        # `x = x` and similar statements are valid but fail
        text = f"{OPEN}+0 %{{ {block} }}%\n"
        yield Input(name=f"%{{ {block[:30]} }}%", argv=("script", "x.pkt", "-v"), files={"x.pkt": text})
    for packet in PACKETS:
        yield Input(name=packet, argv=("script", "x.pkt"), files={"x.pkt": packet + "\n"}, taken=None)
    for name, data in (
        ("no UTF-8", b"\xff\xfe"),
        ("NUL", b"\x00" * 100),
        ("long", b"#" * (2 << 20)),
        ("lines", b"0\n" * 200_000),
    ):
        yield Input(name=name, argv=("script", "x.pkt"), files={"x.pkt": data}, taken=None)
    for argv in (
        ("script",), ("script", "missing.pkt"), ("script", "missing/"), ("script", "/dev/zero"), ("script", "x.pkt", "--profile", "x"),
        ("script", "x.pkt", "--hz", "-1"), ("script", "x.pkt", "--hz", "99999"), ("script", "x.pkt", "--backend", "x"),
        ("script", "x.pkt", "--foo"), ("script", "x.pkt", "--sysctl", "x"), ("script", "x.pkt", "--define", "=")
    ):  # fmt: skip
        yield Input(name=" ".join(argv), argv=argv, files={"x.pkt": OPEN})


SWEEP = 'name = "k"\nmetrics = ["goodput_bps"]\nseeds = 1\nscenario = "x.toml"\n'


def sweeps() -> Iterator[Input]:
    """Return sweep files and options."""
    # Length: lists of inputs.
    files = {"x.toml": TEXT}

    def one(name: str, text: str, taken: bool | None = False) -> Input:
        return Input(
            name=name, argv=("sweep", "run", "k.toml", "--jobs", "1"), files={**files, "k.toml": text}, taken=taken
        )

    for key, values in {
        "seeds": [
            "0",
            "-1",
            "1.5",
            '"x"',
            "[]",
            "[1, 1]",
            "[-1]",
            "[true]",
            "true",
            "nan",
            "10000000",
            "{}",
            '["1"]',
            "[9223372036854775808]",
        ],
        "metrics": ["[]", '"x"', '["x"]', "5", "[5]", "{}", "true", '["\\u001b[1m"]'],
        "name": [
            '""',
            '"."',
            '".."',
            '"../x"',
            '"/x"',
            '"a b"',
            '".x"',
            "5",
            "[]",
            '"\\u0000"',
            '"x/y"',
            f'"{"x" * 300}"',
            '"\\u001b"',
        ],
        "scenario": [
            '"missing.toml"',
            '"."',
            '""',
            "5",
            "[]",
            "{}",
            '"/dev/zero"',
            '"k.toml"',
            "{ duration = 5 }",
            '"\\u0000"',
        ],
        "tables": ['"x"', '["x"]', "5", "[5]", "{}", "true"],
        "trace": ['"x"', "5", "[]", "true"],
        "unknown": ["1"],
    }.items():
        for value in values:
            text = (
                "\n".join(line for line in SWEEP.splitlines() if not line.startswith(f"{key} "))
                + f"\n{key} = {value}\n"
            )
            taken = None if (key, value) in {("metrics", "[]"), ("tables", "{}")} else False
            yield one(f"{key} = {value:.30}", text, taken)
    for values in (
        "5", '"x"', "true", "[]", "{}", "[[]]", "[{}]", '["x"]', "[1, 1]", "[nan]", "[inf]", "[-1]", "[1.5]", "[true]",
        "{ from = 1 }", "{ from = 1, to = 2 }", "{ from = 1, to = 2, steps = 0 }", "{ from = 1, to = 2, steps = -1 }",
        "{ from = 1, to = 2, steps = 1.5 }", "{ from = nan, to = 2, steps = 3 }", "{ from = 1, to = inf, steps = 3 }",
        "{ from = 0, to = 2, steps = 3, spacing = \"log\" }", "{ from = 1, to = 2, steps = 3, spacing = \"x\" }",
        "{ from = \"1 s\", to = 2, steps = 3 }", "{ from = 1, to = 2, steps = 1000000000 }", "{ from = 1, to = 2, steps = 3, x = 1 }",
        "{ from = 5e-324, to = 1.0, steps = 3, spacing = \"log\" }", "{ from = [], to = 2, steps = 3 }",
    ):  # fmt: skip
        yield one(f"count = {values[:30]}", SWEEP + f'[axes]\n"flows.0.count" = {values}\n')
    for key in (
        "",
        ".",
        "x",
        "flows",
        "flows.9.count",
        "flows.0",
        "flows.x.count",
        "flows.-1.count",
        "flows.00.count",
        "duration.x",
        "\\u001b",
        "a" * 5000,
    ):
        yield one(f"axis {key[:20]!r}", SWEEP + f'[axes]\n"{key}" = [1, 2]\n')
    wide = "\n".join(f'"flows.{i}.count" = [1, 2]' for i in range(60))
    long = "{ from = 1, to = 999, steps = 999 }"
    yield one("sixty axes", SWEEP + "[axes]\n" + wide)
    yield one(
        "a billion cells", SWEEP + f'[axes]\n"flows.0.count" = {long}\n"record.x" = {long}\n"record.y" = {long}\n'
    )
    yield one("dots", SWEEP + "x" + ".x" * 50_000 + " = 1")
    yield one("digits", SWEEP + '[axes]\n"flows.0.count" = [' + "9" * 5000 + "]")
    yield one("empty", "")
    yield one("no TOML", "x")
    yield one("a column that is taken", SWEEP + '[axes]\nname = ["a", "b"]\n')
    yield one("markup", SWEEP + '[names]\nname = "called"\n[axes]\nname = ["[/x]", "$\\\\frac$", "<script>"]\n', True)
    for argv in (
        ("sweep",), ("sweep", "run"), ("sweep", "run", "missing"), ("sweep", "run", "/dev/zero"), ("sweep", "run", "k.toml", "--jobs", "0"),
        ("sweep", "run", "k.toml", "--jobs", "x"), ("sweep", "run", "k.toml", "--until-width", "x"), ("sweep", "run", "k.toml", "--until-width", "nan%"),
        ("sweep", "run", "k.toml", "--until-width", "-1%"), ("sweep", "run", "k.toml", "--until-width", "1%", "--metric", "x"),
        ("sweep", "run", "k.toml", "--scheduler", "x"), ("sweep", "run", "k.toml", "--scheduler", "tcp://127.0.0.1:9"),
        ("sweep", "run", "k.toml", "--scheduler", "tcp://x:99999999"), ("sweep", "run", "k.toml", "--scheduler", ""),
        ("sweep", "run", "k.toml", "--scheduler", "x", "--jobs", "1"), ("sweep", "run", "k.toml", "--worker", "x=1"),
        ("sweep", "run", "k.toml", "--slurm", "0"), ("sweep", "run", "k.toml", "--slurm", "1", "--pbs", "1"),
        ("sweep", "run", "k.toml", "--out", "k.toml"), ("sweep", "run", "k.toml", "--out", ""), ("sweep", "run", "k.toml", "--out", "/proc/x"),
        ("sweep", "status", "k.toml"), ("sweep", "status", "x.toml"), ("sweep", "resume", "k.toml"), ("sweep", "export", "k.toml"),
        ("sweep", "export", "{store}"), ("sweep", "export", "{store}", "--csv", "/dev/full"), ("sweep", "export", "{store}", "--csv", "/proc/x"),
        ("sweep", "plot", "{store}", "--metric", "x"), ("sweep", "plot", "{store}", "--x", "x"), ("sweep", "plot", "{store}", "--kind", "x"),
        ("sweep", "plot", "{store}", "--by", "x"), ("sweep", "check", "missing"), ("sweep", "check", "."), ("sweep", "check", "k.toml"),
        ("compare", "x.toml"), ("compare", "x.toml", "missing"), ("compare", "x.toml", "k.toml"), ("compare", "x.toml", "x.toml", "--seeds", "0"),
    ):  # fmt: skip
        yield Input(name=" ".join(argv), argv=argv, files={**files, "k.toml": SWEEP})


PLACES = [
    "state.sqlite", "lock.sqlite", "data/1/runs/part-000001.parquet", "data/1/flows/part-000001.parquet",
    "sweeps/k/sweep.toml", "sweeps/k/cells.parquet", "sweeps/k/table.parquet", "data", "sweeps", "data/1/runs",
]  # fmt: skip
DAMAGES = {
    "gone": "remove(place)",
    "empty": "write(place, b'')",
    "nonsense": "write(place, b'nonsense' * 100)",
    "cut": "write(place, place.read_bytes()[:100] if place.is_file() else b'')",
    "flipped": "write(place, bytes(b ^ (i % 97 == 5) for i, b in enumerate(place.read_bytes())) if place.is_file() else b'x')",
    "a folder": "remove(place), place.mkdir()",
    "a link to nothing": "remove(place), place.symlink_to(store.parent / 'nowhere')",
    "a link to outside": "remove(place), place.symlink_to('/etc')",
}


def stores() -> Iterator[Input]:
    """Return sweep folders with lost or altered files."""
    commands = ["status", "check", "export", "plot", "resume"]
    number = 0
    for place in PLACES:
        for damage, statement in DAMAGES.items():
            for command in (commands[number % 5], commands[(number + 2) % 5]):
                argv = ["sweep", command, "{store}", *(["--csv", "x.csv"] if command == "export" else [])]
                yield Input(
                    name=f"{place} {damage}: {command}",
                    argv=(*argv, *(["--jobs", "1"] if command == "resume" else [])),
                    damage=f"place = store / {place!r}; {statement}",
                    taken=None,
                )
            number += 1


def options() -> Iterator[Input]:
    """Return options of `run`, and arguments of `--set`."""
    files = {"x.toml": TEXT, "full": ""}
    for option, values in {
        "--seed": ["", "x", "-1", "1.5", "9223372036854775808", "1e5", "\u0661", "0x1", " 1"],
        "--memory-limit": ["", "x", "-1 GB", "0 B", "nan GB", "1", "1 GB x", "1e400 GB", "\u001b", "1 parsec", "1 B"],
        "--trace": ["", "x", "ALL", "0", "\u001b[1m"],
        "--out": ["", "-", "x.toml", "full/x", "/proc/x", "/dev/null", "/dev/full/x", "a\u001bb", "a\nb", "x" * 300],
        "--pcap": ["", "-", "x.toml", ".", "/proc/x", "full/x", "missing/x", "a\u001bb", "x" * 300],
        "--pcap-at": ["sender", "x", ""],
        "--backend": ["", "x", "LINUX"],
        "--network": ["auto", "x", ""],
        "--wall-limit": ["0", "-1", "x", "5"],
        "--foo": ["x"],
    }.items():
        for value in values:
            yield Input(name=f"{option} {value!r:.30}", argv=("run", "x.toml", option, value), files=files)
    for argv in (
        ("run",), ("run", "missing"), ("run", "."), ("run", "/dev/zero"), ("run", "/dev/null"), ("run", "x.toml", "x.toml"), ("run", "x.toml", "--seed"),
        ("run", "x.toml", "--json", "x"), ("ruin",), ("",), ("--foo",), ("\u001b[1m",), ("run", "x.toml", "--set"), ("schema", "x"), ("list", "--foo"),
        ("run", "x.toml", "--pcap", "x.pcapng", "--out", "x.pcapng"), ("run", "x.toml", "--pcap", "o/run.json", "--out", "o"), ("bench", "x"),
    ):  # fmt: skip
        yield Input(name=" ".join(argv)[:60] or "nothing", argv=argv, files=files)
    for text in (
        "", "=", "x", "x=", "=1", "duration", "duration=", "duration=1", "duration=x", "duration=-1 s", "flows=1", "flows.0=1", "flows.9.count=1",
        "flows.x.count=1", "flows.-1.count=1", "flows.00.count=1", "flows.0.count=x", "flows.0.count=0", "flows.0.count=9999999", "flows.0.x=1",
        "flows.0.count=" + "9" * 5000, "a" + ".a" * 60_000 + "=1", "network.bottleneck=1", "network.bottleneck.rate=", "network.bottleneck.rate=[",
        "network.bottleneck.rate={", "network.bottleneck.queue.kind=x", "record.trace=x", "\u001b=1", "duration=\u001b", "..=1", "flows..count=1",
        "flows.0.count=[1", "flows.0.workload={ kind = 'x' }", "flows.0.count=nan", "flows.0.count=2026-01-01", "duration=1 s\nx=1", "a" * 100_000 + "=1",
    ):  # fmt: skip
        yield Input(name=f"--set {text[:30]!r}", argv=("run", "x.toml", "--set", text), files=files)


HOOKS = ["on_ack", "on_congestion_event"]
DEEDS = [
    "raise ValueError('\\x1b[31m\\n' * 3)", "raise SystemExit(3)", "raise MemoryError", "raise RecursionError", "window.cwnd = float('nan')", "window.cwnd = -1",
    "window.cwnd = 0", "window.cwnd = 10**30", "window.cwnd = 'x'", "window.cwnd = None", "window.ssthresh = -1", "window.ssthresh = float('inf')", "window.foo = 1",
    "del window.cwnd", "1 / 0", "window.pacing_rate = -1", "return 'x'", "return float('nan')", "return -5", "self.__class__ = int",
]  # fmt: skip


def controllers() -> Iterator[Input]:
    """Return user-written controllers and utility functions."""
    head = "from ackclock import controllers\nclass Own(controllers.Controller):\n"
    plain = {"on_ack": "window.cwnd += 1", "on_congestion_event": "return 2"}
    scenario = "scenario = ackclock.Scenario.from_dict({'duration': '2 s', 'network': {'bottleneck': {'rate': '1 Mbit/s', 'delay': '5 ms', "
    scenario += (
        "'queue': {'kind': 'drop-tail', 'limit': '5 packets'}}}, 'flows': [{'congestion_control': 'custom:own'}]})\n"
    )
    for hook in HOOKS:
        for deed in DEEDS:
            bodies = {**plain, hook: deed}
            text = head
            text += f"    def on_ack(self, window, ack):\n        {bodies['on_ack']}\n"
            text += f"    def on_congestion_event(self, window, in_flight):\n        {bodies['on_congestion_event']}\n"
            code = text + scenario + "ackclock.run(scenario, controllers={'own': Own})"
            if "SystemExit" in deed:  # its author wants the program to end
                code = text + scenario + _expecting("ackclock.run(scenario, controllers={'own': Own})", "SystemExit")
            yield Input(name=f"{hook}: {deed[:30]}", code=code, taken=None)
    pcc = "scenario = ackclock.Scenario.from_dict({'duration': '500 ms', 'network': {'bottleneck': {'rate': '1 Mbit/s', 'delay': '5 ms'}}, 'flows': ["
    pcc += "{'congestion_control': 'pcc-allegro', 'congestion_control_options': {'utility': 'custom:own'}}]})\n"
    for value in (
        "None",
        "'x'",
        "float('nan')",
        "float('inf')",
        "-float('inf')",
        "1/0",
        "[]",
        "10**400",
        "a.foo",
        "1j",
        "True and 'x'",
        "object()",
    ):
        yield Input(
            name=f"utility {value}", code=pcc + f"ackclock.run(scenario, utilities={{'own': lambda a, b: {value}}})"
        )
    for given in (
        "5",
        "'x'",
        "[]",
        "{'own': 5}",
        "{5: int}",
        "{'': int}",
        "{'own': int}",
        "{'own': None}",
        "{'other': int}",
        "{'own': lambda: 5}",
        "{'own': type}",
    ):
        yield Input(name=f"controllers={given}", code=scenario + f"ackclock.run(scenario, controllers={given})")


def calls() -> Iterator[Input]:
    """Return calls to the Python functions."""
    scenario = f"scenario = ackclock.Scenario.from_dict({BASE!r})\n"
    for name, values in {
        "seed": ["-1", "1.5", "'1'", "None", "True", "2**63", "float('nan')", "[1]", "10**5000"],
        "memory_limit": ["0", "-1", "float('nan')", "'4 GiB'", "None", "True", "1.5", "[]"],
        "pcap": ["3", "3.5", "b'x'", "[]", "True", "'missing/x'", "'.'", "'\\0'", "''"],
        "pcap_at": ["'x'", "None", "5", "[]"],
        "controllers": ["5", "'x'", "[1]"],
        "utilities": ["5", "'x'", "[1]", "{'x': 5}"],
        "foo": ["1"],
    }.items():
        for value in values:
            # an unknown keyword is a TypeError, as everywhere in Python
            wrap = "TypeError" if name == "foo" else ""
            code = f"{scenario}ackclock.run(scenario, {name}={value})"
            yield Input(name=f"run({name}={value:.30})", code=_expecting(code, wrap), taken=bool(wrap))
    for seeds in ("5", "'12'", "[]", "[1, 1]", "[-1]", "[1.5]", "[None]", "None", "{}", "['x']", "[2**63]"):
        yield Input(name=f"run_batch({seeds})", code=f"{scenario}ackclock.run_batch(scenario, {seeds})")
    for jobs in ("0", "-1", "1.5", "'x'", "None", "True"):
        yield Input(name=f"run_batch(jobs={jobs})", code=f"{scenario}ackclock.run_batch(scenario, [1], jobs={jobs})")
    for value in (
        "5",
        "'x'",
        "None",
        "[]",
        "{}",
        "[('duration', 5)]",
        "{5: 5}",
        "{'duration': object()}",
        "{'duration': b'1 s'}",
        "{None: 1}",
        "{'flows': ()}",
    ):
        yield Input(name=f"from_dict({value})", code=f"ackclock.Scenario.from_dict({value})")
    for value in ("5", "'x'", "None", "{}", "scenario.to_dict()"):
        yield Input(name=f"run({value})", code=f"{scenario}ackclock.run({value})")
    for value in ("None", "[None]", "{'a': None}", "b'x'", "object()", "{1: 2}", "{1, 2}"):
        yield Input(
            name=f"Axis({value})",
            code=f"from ackclock import sweep; sweep.Axis(key='flows.0.workload', values=('x', {value}))",
        )
    for path in ("'missing'", "'.'", "''", "'\\0'", "'/dev/zero'", "'x' * 5000"):
        yield Input(name=f"load({path})", code=f"ackclock.load({path})")
    for text in ("'1'", "'x s'", "''", "'nan s'", "'1 s 1 s'", "'-1 s'", "'1e999 s'", "'\\u0661 s'"):
        yield Input(name=f"units {text}", code=f"from ackclock import units; units.whole({text}, units.SIZE)")


def _expecting(code: str, error: str) -> str:
    if not error:
        return code
    inner = "\n".join("    " + line for line in code.splitlines())
    return f"try:\n{inner}\nexcept {error}:\n    pass\nelse:\n    raise AssertionError('taken')"


def mahimahi() -> Iterator[Input]:
    """Return Mahimahi traces."""
    text = to_toml(changed("network.bottleneck", {"delay": "5 ms", "capacity": {"kind": "mahimahi", "file": "t"}}))
    for name, data, taken in (
        ("empty", b"", False), ("a line break", b"\n", False), ("blanks", b"  \n", False), ("a word", b"x\n", False), ("negative", b"-1\n", False),
        ("fraction", b"1.5\n", False), ("back", b"5\n3\n", False), ("back at the end", b"1\n2\n1\n", False), ("only zero", b"0\n", False), ("zeros", b"0\n0\n", False),
        ("too late", b"3600001\n", False), ("digits", b"9" * 100 + b"\n", False), ("ten digits", b"1000000000\n", False), ("hex", b"0x10\n", False),
        ("plus", b"+1\n", False), ("tab", b"\t1\n", False), ("blank in front", b" 1\n", False), ("blank behind", b"1 \n", False), ("empty line", b"1\n\n2\n", False),
        ("CR alone", b"1\r2\r", False), ("NUL", b"1\x002\n", False), ("no UTF-8", b"\xff\n", False), ("UTF-16", "1\n2\n".encode("utf-16"), False), ("BOM", b"\xef\xbb\xbf1\n", False),
        ("arabic digits", "\u0661\n".encode(), False), ("escape", b"\x1b[31m\n", False), ("comment", b"# x\n1\n", False), ("two columns", b"1 2\n", False), ("underscore", b"1_0\n", False),
        ("exponent", b"1e3\n", False), ("comma", b"1,\n", False), ("long line", b"x" * 5_000_000, False), ("one", b"1\n", True), ("no line break", b"1", True),
        ("CRLF", b"1\r\n2\r\n", True), ("leading zeros", b"001\n", None), ("the longest", b"3600000\n", True), ("many at once", b"1\n" * 100_000, True), ("five MB", b"1\n" * 2_500_000, None),
    ):  # fmt: skip
        yield Input(name=name, argv=("run", "x.toml"), files={"x.toml": text, "t": data}, taken=taken)


def commands() -> Iterator[Input]:
    """Return options of `study`, `linux`, `diff` and `fidelity`."""
    for argv in (
        ("study",), ("study", "x"), ("study", "show"), ("study", "show", "x"), ("study", "show", "\u001b[1m"), ("study", "run"), ("study", "run", "x"),
        ("study", "run", "prr", "--all"), ("study", "run", "prr", "--scale", "x"), ("study", "run", "prr", "--seeds", "1"), ("study", "run", "prr", "--seeds", "501"),
        ("study", "run", "prr", "--seeds", "x"), ("study", "run", "prr", "--jobs", "0"), ("study", "run", "prr", "--jobs", "999"), ("study", "run", "prr", "--backend", "x"),
        ("study", "run", "prr", "--store", "x.toml"), ("study", "run", "prr", "--out", "x.toml"), ("study", "run", "prr", "--store", "."), ("study", "run", "prr", "--out", ""),
        ("study", "run", "prr", "--scheduler", "x", "--jobs", "1"), ("linux",), ("linux", "x"), ("linux", "build", "--foo"), ("diff",), ("diff", "missing"),
        ("diff", "x.toml", "--seed", "x"), ("fidelity", "--seeds", "0"), ("fidelity", "--seeds", "x"), ("fidelity", "--jobs", "0"), ("fidelity", "x"), ("doctor", "x"),
    ):  # fmt: skip
        yield Input(name=" ".join(argv), argv=argv, files={"x.toml": TEXT})


KINDS = {
    "scenarios": scenarios,
    "scripts": scripts,
    "sweeps": sweeps,
    "stores": stores,
    "options": options,
    "controllers": controllers,
    "calls": calls,
    "mahimahi": mahimahi,
    "commands": commands,
}
