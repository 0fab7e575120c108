"""Hostile inputs drawn from a seed: user code, outputs and stores, captures, lab links, outputs that would overwrite inputs.

    python tests/python/hostile/strangers.py --seed 1 --count 1036

Each input is passed to a command in a folder that also contains the user's files. The script counts executions (only
code in the input creates the canary file), losses (a user's file was removed or changed), false successes, internal
errors and hangs; each count must be 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "tests" / "fuzz")]

from draw import drawn  # noqa: E402 - of the folder just named
from forked import Commands, commands  # noqa: E402

from ackclock import _link  # noqa: E402

SHARES = {"own code": 248, "outputs and stores": 417, "captures": 295, "lab": 45, "input over output": 31}
"""Number of inputs of each kind in the review of 29 November 2026."""

LIMITS = {"RLIMIT_AS": 8 << 30, "RLIMIT_CPU": 60}
SCENARIO = """
duration = "200 ms"
[network.bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
[[flows]]
%s
[record]
sample_interval = "20 ms"
goodput_interval = "20 ms"
"""
SWEEP = 'scenario = "s.toml"\nseeds = 2\n[axes]\n"network.bottleneck.delay" = ["5 ms", "10 ms"]\n'
USERS = {
    "thesis.tex": b"years of work", ".ackclock-notes/notes.txt": b"mine", ".ackclock-0123456789abcdef/mine.txt": b"mine",
    "o/mine.txt": b"mine", "report.html": b"<p>mine</p>", "journal.jsonl": b"mine\n",
}  # fmt: skip
"""The user's files, which no command may touch unless it names them."""


@dataclass
class Case:
    """An input with its files.

    Parameters
    ----------
    argv
        The command.
    about
        Hostile part of the input.
    never
        Whether the command must not succeed once it has reached the code.
    kept
        Additional files that must stay unchanged.
    """

    argv: list[str]
    about: str
    never: bool = False
    kept: list[str] = field(default_factory=list)


CANARY = "open('{canary}', 'w').write('executed')"
ENDS = (
    "os._exit(0)", "sys.exit(0)", "sys.exit()", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)", "os.abort()", "raise SystemExit(0)",
    "raise GeneratorExit", "raise KeyboardInterrupt", "raise BaseException('x')", "import ctypes; ctypes.string_at(0)",
    "import ctypes; ctypes.CDLL(None).exit(0)", "import ctypes; ctypes.CDLL(None)._exit(0)", "raise MemoryError", "1 / 0", "while True: pass",
    "time.sleep(1000)", "(lambda f: f(f))(lambda f: f(f))", "signal.raise_signal(signal.SIGKILL)", "os.execv('/bin/true', ['true'])",
)  # fmt: skip
"""Python statements that end a process without output."""
STRANGE = (
    "sys.stdout.close()", "sys.stdout = None", "sys.stderr.close()", "sys.modules.clear()", "print('\\x1b]0;x\\x07')", "os.closerange(3, 100)",
    "window.cwnd = float('nan')", "window.cwnd = float('inf')", "window.cwnd = -1", "window.cwnd = 'many'", "window.cwnd = 10**400",
    "del window", "import gc; gc.disable()", "sys.setrecursionlimit(50)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "import atexit; atexit.register(os._exit, 0)", "threading.Thread(target=time.sleep, args=(0.01,)).start()", "x = bytearray(10**8)",
    "sys.stdout.write('y' * 10**6)", "os.chdir('/')", "builtins.open = None", "import json; json.dumps = None",
)  # fmt: skip
"""Unusual statements, which may succeed or cause an error line."""
PYTHON = """
import builtins, os, signal, sys, threading, time
{at_import}
class Mine:
    def __init__(self):
        self.calls = 0
        {at_init}
    def on_ack(self, window, ack):
        self.calls += 1
        if self.calls > {late}:
            {at_ack}
        if ack.cwnd_limited:
            window.cwnd += ack.acked / window.cwnd
    def on_congestion_event(self, window, in_flight):
        {at_event}
        return window.cwnd / 2
"""
C = """
#include <linux/module.h>
#include <net/tcp.h>
void exit(int); void _exit(int); void quick_exit(int); void abort(void); int raise(int); unsigned sleep(unsigned); void *fopen(const char *, const char *); int fclose(void *);
static u32 mine_ssthresh(struct sock *sk) {{ {hook}; return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2U); }}
static struct tcp_congestion_ops mine = {{
	.name = "mine", .owner = THIS_MODULE, .ssthresh = mine_ssthresh, .cong_avoid = tcp_reno_cong_avoid, .undo_cwnd = tcp_reno_undo_cwnd,
}};
static void __attribute__((constructor)) first(void) {{ {first}; }}
static int __init mine_register(void) {{ {init}; return tcp_register_congestion_control(&mine); }}
module_init(mine_register);
"""
IN_C = (
    "exit(0)",
    "_exit(0)",
    "quick_exit(0)",
    "abort()",
    "raise(9)",
    "raise(11)",
    "for (;;) ",
    "sleep(1000)",
    "*(volatile int *)8 = 1",
)


class Strangers:
    """Draws cases and judges them.

    Parameters
    ----------
    place
        Folder for all files.
    seed
        Seed of the draws.
    run
        Function that runs a command.
    """

    def __init__(self, place: Path, seed: int, run: Commands) -> None:
        self.place, self.seed, self.run = place, seed, run
        self.here, self.whole, self.canary, self.reached = (
            place / "here",
            place / "whole",
            place / "CANARY",
            place / "reached",
        )
        self.whole.mkdir()
        (self.whole / "s.toml").write_text(SCENARIO % "")
        (self.whole / "sweep.toml").write_text(SWEEP)
        for argv in (
            ["run", "s.toml", "--out", "ran", "--trace", "all", "--pcap", "x.pcapng"], ["sweep", "run", "sweep.toml", "--out", "st", "--jobs", "1"],
            ["study", "new", "mine"],
        ):  # fmt: skip
            done = run(self.whole, *argv)
            assert done.returncode == 0, done.stderr
        corpus = sorted((ROOT / "tests" / "fuzz" / "corpus" / "capture").iterdir())
        self.captures = [file.read_bytes() for file in corpus] + [(self.whole / "x.pcapng").read_bytes()[:6000]]

    def case(self, kind: str, number: int) -> list[str]:
        """Draw a case, run it, and return what went wrong."""
        draw = random.Random(f"{self.seed}/{kind}/{number}")
        shutil.rmtree(self.here, ignore_errors=True)
        shutil.copytree(self.whole, self.here, symlinks=True)
        for name, content in USERS.items():
            (self.here / name).parent.mkdir(exist_ok=True)
            (self.here / name).write_bytes(content)
        self.canary.unlink(missing_ok=True)
        self.reached.unlink(missing_ok=True)
        made = DRAWS[kind](self, draw)
        before = {name: self._content(name) for name in [*USERS, *made.kept]}
        done = self.run(self.here, *made.argv, limits=LIMITS, whole=True)
        lost = [name for name, content in before.items() if self._content(name) != content]
        says = done.stderr.strip().splitlines()
        wrong = {
            "execution": self.canary.exists(),
            "loss": bool(lost),
            "false success": made.never and done.returncode == 0 and (kind != "own code" or self.reached.exists()),
            "internal error": done.returncode == 70 or "internal error" in done.stderr or "Traceback" in done.stderr,
            "hang": done.returncode in (-14, -24, -9) and "hang" not in made.about,
            "not a line": done.returncode not in (0, 1, 2, 3, 4, -14, -24, -9, 70, *([130] if "KeyboardInterrupt" in made.about else [])) or (done.returncode in (2, 3) and not (says and "ackclock: " in says[-1]) and "sys.stderr.close" not in made.about),
        }  # fmt: skip
        return [
            f"{what}: {made.about}: {' '.join(made.argv)[:200]}: {done.returncode} {lost} {done.stderr[-300:]}"
            for what, so in wrong.items()
            if so
        ]

    def _content(self, name: str) -> bytes | None:
        path = self.here / name
        try:
            return path.read_bytes() if path.is_file() else None
        except OSError:
            return None

    # Kinds

    def own_code(self, draw: random.Random) -> Case:
        if draw.random() < 0.25 and shutil.which("cc"):
            where, act = draw.choice(["hook", "first", "init"]), draw.choice(IN_C)
            # only a loss calls this hook
            reached = f'fclose(fopen("{self.reached}", "w"))'
            (self.here / "c.c").write_text(
                C.format(**{"hook": "", "first": "", "init": "", where: f"{reached}; {act}"})
            )
            (self.here / "s.toml").write_text(
                SCENARIO.replace("10 Mbit/s", "2 Mbit/s").replace("200 ms", "2 s") % 'congestion_control = "c.c"'
            )
            argv = draw.choice(
                [
                    ["run", "s.toml", "--own-code"],
                    ["sweep", "run", "sweep.toml", "--own-code", "--out", "new", "--jobs", "1"],
                ]
            )
            code = "c.c"
        else:
            ends = draw.random() < 0.6
            act = draw.choice(ENDS if ends else STRANGE)
            where = draw.choice(
                ["at_import", "at_init", "at_ack", "at_event"] if "window" not in act else ["at_ack", "at_event"]
            )
            text = PYTHON.format(
                **{
                    "at_import": "",
                    "at_init": "pass",
                    "at_ack": "pass",
                    "at_event": "pass",
                    "late": draw.randint(0, 40),
                    where: f"open({str(self.reached)!r}, 'w').close(); {act}" if act != "while True: pass" else act,
                }
            )
            (self.here / "c.py").write_text(text)
            (self.here / "s.toml").write_text(
                SCENARIO.replace("10 Mbit/s", "2 Mbit/s").replace("200 ms", "2 s") % 'congestion_control = "c.py:Mine"'
            )
            code = "c.py:Mine"
            argv = draw.choice([
                ["run", "s.toml", "--own-code"], ["run", "s.toml", "--own-code", "--report", "r.html", "--out", "new"],
                ["sweep", "run", "sweep.toml", "--own-code", "--out", "new", "--jobs", "1"], ["conform", "c.py:Mine"],
                ["run", str(self.here / "ran/run.json")],
            ])  # fmt: skip
            if argv[-1].endswith("run.json"):
                argv = ["run", "s.toml", "--set", "flows.0.congestion_control=reno", "--controller", code]
        # `conform` reports a controller that ends the process with exit code 1 or 2
        never = (act in ENDS or act in IN_C) and argv[0] != "check"
        if argv[0] == "sweep" and act in ("raise KeyboardInterrupt",):
            never = False
        return Case(argv, f"{where} {act} in {code}", never=never, kept=["s.toml"])

    def stored(self, draw: random.Random) -> Case:
        return draw.choice([self._store, self._store, self._store_bytes, self._folder, self._study])(draw)

    def _store(self, draw: random.Random) -> Case:
        statement = draw.choice([
            "DROP TABLE members; CREATE VIEW members AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS sweep, x AS run FROM c",
            "CREATE TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM parts; END", "CREATE TABLE more (x)", "DROP TABLE files",
            "UPDATE runs SET state = 'pending', attempts = 2, part = NULL WHERE id = 1", "UPDATE runs SET state = 'x'", "UPDATE runs SET seed = 1e300",
            "UPDATE runs SET key = zeroblob(1000000)", "UPDATE recipes SET recipe = '../../x'", "UPDATE sweeps SET name = '../../../x'",
            "UPDATE runs SET error = char(27) || '[31m', state = 'failed'", "UPDATE parts SET rows = -1", "PRAGMA user_version = 77",
            "UPDATE files SET sha256 = zeroblob(32)", "INSERT INTO members SELECT sweep, run + 1000 FROM members", "DELETE FROM scenarios",
            "UPDATE scenarios SET hash = '" + "x" * 5000 + "'", "ALTER TABLE runs ADD COLUMN g AS (randomblob(1000000000))",
            "UPDATE files SET name = '../../../thesis.tex'", "UPDATE parts SET id = id + 1000000",
        ])  # fmt: skip
        with (
            closing(sqlite3.connect(self.here / "st/state.sqlite", isolation_level=None)) as db,
            suppress(sqlite3.Error),
        ):
            db.executescript(statement)
        return Case(self._on_store(draw), statement[:70])

    def _on_store(self, draw: random.Random) -> list[str]:
        for name in draw.sample(["pickle", "json", "signal", "hashlib", "sitecustomize", "polars"], 3):
            (self.here / f"{name}.py").write_text(CANARY.format(canary=self.canary))
        return draw.choice([
            ["sweep", "status", "st"], ["sweep", "check", "st"], ["sweep", "resume", "st", "--jobs", "1"], ["sweep", "export", "st", "--csv", "x.csv"],
            ["sweep", "rerun", "st", "--cell", "1"], ["sweep", "check", "st", "--repair"], ["sweep", "plot", "st", "--out", "figs"],
        ])  # fmt: skip

    def _store_bytes(self, draw: random.Random) -> Case:
        files = sorted(path for path in (self.here / "st").rglob("*") if path.is_file())
        path = draw.choice(files)
        how = draw.choice(["link", "device", "pipe", "bytes", "cut", "folder", "gone", "thesis"])
        self._spoil(path, how, draw)
        return Case(self._on_store(draw), f"{path.relative_to(self.here)}: {how}")

    def _spoil(self, path: Path, how: str, draw: random.Random) -> None:
        data = bytearray(path.read_bytes())
        path.unlink()
        if how == "link":
            path.symlink_to(draw.choice(["/etc/passwd", "gone", path.name, self.here / "thesis.tex", "/proc/self/mem"]))
        elif how == "device":
            path.symlink_to(draw.choice(["/dev/zero", "/dev/random", "/dev/stdin", "/dev/full"]))
        elif how == "pipe":
            os.mkfifo(path)
        elif how == "folder":
            path.mkdir()
        elif how == "thesis":
            os.link(self.here / "thesis.tex", path)
        elif how in ("bytes", "cut"):
            for _ in range(draw.randint(1, 30)):
                at = draw.randrange(len(data)) if data else 0
                data[at : at + 1] = draw.randbytes(1)
            path.write_bytes(data[: draw.randrange(len(data) + 1)] if how == "cut" else data)

    def _folder(self, draw: random.Random) -> Case:
        """Return a run folder."""
        path = draw.choice(sorted((self.here / "ran").iterdir()))
        how = draw.choice(["link", "device", "pipe", "bytes", "cut", "folder", "gone", "values", "values"])
        if how == "values" and path.suffix == ".parquet":
            self._values(path, draw)
        elif how == "values":
            about = json.loads(path.read_text())
            key = draw.choice(sorted(about))
            about[key] = draw.choice([None, 1, "x", [], {}, float("nan"), "\x1b[31m", 10**30, {"a": []}])
            path.write_text(json.dumps(about))
        else:
            self._spoil(path, how, draw)
        argv = draw.choice([
            ["report", "ran", "--report", "r.html"], ["export", "ran", "--as", draw.choice(["ss", "qlog", "iperf3"]), "--out", "x.txt"],
            ["run", "s.toml", "--beside", "ran", "--report", "r.html"], ["report", "ran", "--plot", "cwnd.svg"],
        ])  # fmt: skip
        return Case(argv, f"{path.name}: {how}")

    def _values(self, path: Path, draw: random.Random) -> None:
        """Write rows that no run would produce. A separate process does so, because Polars starts threads."""
        import polars as pl

        frame = pl.read_parquet(path, glob=False)
        if not frame.width:
            return
        column = draw.choice(frame.columns)
        value = draw.choice([float("nan"), float("inf"), -1, None, "text", 2**62, True])
        with suppress(pl.exceptions.PolarsError, OverflowError, TypeError):
            frame = frame.with_columns(pl.lit(value).alias(column))
        if draw.random() < 0.2:
            frame = frame.drop(column)
        frame.write_parquet(path)

    def _study(self, draw: random.Random) -> Case:
        study = self.here / "mine"
        name = draw.choice(["study.toml", "recorded.json"])
        text = draw.choice([
            b"x = " + b"[" * 100_000, b"x = " + b"{a = " * 30_000, b"x = " + b"9" * 5000, b".".join([b"a"] * 50_000) + b" = 1", b"\xff\xfe", b"", b"[" * 100_000,
            b"{}" * 2, b'{"quick": 5}', b"null", b'{"quick": {"claims": {"X1": []}}}', b"at_least = nan", b"\x00" * 1000, b"9" * 6000,
        ])  # fmt: skip
        kind = draw.choice(["text", "text", "pipe", "device", "code"])
        never = True
        if kind == "text":
            (study / name).write_bytes(text)
            never = bool(text.strip()) or name == "study.toml"
        elif kind == "pipe":
            (study / name).unlink(missing_ok=True)
            os.mkfifo(study / name)
        elif kind == "device":
            (study / name).unlink(missing_ok=True)
            (study / name).symlink_to("/dev/zero")
        else:
            act = draw.choice([one for one in ENDS if one not in ("while True: pass", "time.sleep(1000)")])
            program = (study / "study.py").read_text()
            (study / "study.py").write_text(f"import os, sys, signal, time\n{program}\n{act}\n")
            kind = act
        return Case(
            ["study", draw.choice(["run", "show"]), "mine/", *(["--out", "so"] if False else [])],
            f"{name}: {kind} {text[:20]!r}",
            never=never and kind != "text",
        )

    def captured(self, draw: random.Random) -> Case:
        data = next(drawn(draw.getrandbits(60), self.captures, 6000))
        how = draw.random()
        if how < 0.1:
            import gzip

            data = gzip.compress(data + bytes(draw.choice([0, 10**7])))
        elif how < 0.15:
            data = data[:24] + b"\xff" * draw.randint(0, 300)
        (self.here / "h.pcap").write_bytes(data)
        if how > 0.97:
            (self.here / "h.pcap").unlink()
            draw.choice(
                [lambda: os.mkfifo(self.here / "h.pcap"), lambda: (self.here / "h.pcap").symlink_to("/dev/zero")]
            )()
        argv = draw.choice([
            ["read", "h.pcap"], ["read", "h.pcap", "--json"], ["read", "h.pcap", "--csv", "x.csv"], ["diagnose", "h.pcap"], ["diagnose", "h.pcap", "--json"],
            ["read", "h.pcap", "--anonymise", "--json"], ["run", "s.toml", "--beside", "h.pcap", "--report", "r.html"], ["read", "h.pcap", "--connection", "0"],
        ])  # fmt: skip
        return Case(argv, f"a capture of {len(data)} bytes", kept=["h.pcap"])

    def lab(self, draw: random.Random) -> Case:
        text = (self.here / "s.toml").read_text()
        link = draw.choice([
            _link.made("x" * 2**20), _link.made("\0" * 2**27) if draw.random() < 0.2 else _link.made("\0" * 2**21), _link.made(text, 10**15), _link.made("[" * 10**5),
            "#s=" + "A" * 10**5, "#s=%00", "#s=" + "".join(draw.choices("abcXYZ019-_", k=200)), "#s=<script>", _link.made("\x1b[31m\u202e"),
            f"#s={_link.made(text)[3:]}&c=abc", "http://x/#s=&seed=1", _link.made(text) + "&seed=2", f"//[::1]/{_link.made('flows = 1')}", "#s=" + "9" * 10**6,
        ])  # fmt: skip
        return Case(
            ["lab", link, "--save", draw.choice(["lab.html", "s.toml", "x.pcapng"])],
            f"a link of {len(link)} characters",
            kept=["s.toml"] if False else [],
        )

    def over(self, draw: random.Random) -> Case:
        argv = draw.choice([
            "run {s.toml} --report {s.toml}", "run {s.toml} --pcap {s.toml}", "run {s.toml} --plot cwnd.svg={s.toml}", "read {x.pcapng} --csv {x.pcapng}",
            "diagnose {x.pcapng} --report {x.pcapng}", "diagnose {x.pcapng} --mirror {x.pcapng}", "lab {s.toml} --save {s.toml}", "diagnose {x.pcapng} --csv {x.pcapng}",
            "report ran --report {ran/flows.parquet}", "export ran --as ss --out {ran/run.json}", "export {s.toml} --as tc --out {s.toml}",
            "sweep export st --csv {st/state.sqlite}", "run {s.toml} --controller c.py:Mine --report {c.py}", "sweep export {sweep.toml} --csv {sweep.toml}",
            "run {s.toml} --controller c.py:Mine --pcap {w.json}", "run {s.toml} --beside ran --report {ran/samples.parquet}",
        ]).split()  # fmt: skip
        (self.here / "c.py").write_text(
            PYTHON.format(at_import="open('w.json').read()", at_init="pass", at_ack="pass", at_event="pass", late=0)
        )
        (self.here / "w.json").write_text("{}")
        kept = []
        for at, word in enumerate(argv):
            if "{" not in word:
                continue
            head, _, rest = word.partition("{")
            name = rest.rstrip("}")
            kept.append(name)
            if at > 1:
                name = self._alias(name, draw)
            argv[at] = head + name
        return Case(argv, "an output over an input", never=True, kept=kept)

    def _alias(self, name: str, draw: random.Random) -> str:
        """Return the same file under a different name."""
        path, new = self.here / name, f"alias-{len(list(self.here.glob('alias-*')))}"
        which = draw.randrange(6)
        if which == 0:
            (self.here / new).symlink_to(path)
            return new
        if which == 1:
            os.link(path, self.here / new)
            return new
        if which == 2:
            (self.here / new).symlink_to(path.parent)
            return f"{new}/{path.name}"
        if which == 3:
            (self.here / new).symlink_to(f"second-{new}")
            (self.here / f"second-{new}").symlink_to(path)
            return f"./{new}"
        return [str(path), f"ran/../{name}"][which - 4]


Draw = Callable[[Strangers, random.Random], Case]
DRAWS: dict[str, Draw] = {
    "own code": Strangers.own_code, "outputs and stores": Strangers.stored, "captures": Strangers.captured, "lab": Strangers.lab, "input over output": Strangers.over,
}  # fmt: skip


def told(seed: int, count: int, kinds: list[str], first: int = 0) -> dict[str, Any]:
    """Draw this number of cases, in the review's proportions, and run them; return what went wrong."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    total = sum(SHARES[kind] for kind in kinds)
    os.environ["ACKCLOCK_CALL_LIMIT"] = "2"
    with tempfile.TemporaryDirectory(prefix="strangers-") as place, commands() as run:
        strangers = Strangers(Path(place), seed, run)
        for kind in kinds:
            for number in range(first, first + max(1, round(count * SHARES[kind] / total))):
                found = strangers.case(kind, number)
                counts[kind] += 1
                for one in found:
                    counts[one.partition(":")[0]] += 1
                    wrong.append(f"{kind} {number}: {one}")
                    print(wrong[-1], file=sys.stderr, flush=True)
    return {"seed": seed, "counts": dict(counts), "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=sum(SHARES.values()))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=[*SHARES], action="append")
    given = parser.parse_args()
    result = told(given.seed, given.count, given.kind or [*SHARES], given.first)
    print(json.dumps(result, indent=1))
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
