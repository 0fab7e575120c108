"""Tests for `ackclock compare` with scenarios that name programs: refusals, stored runs, and the results of a comparison."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ackclock import linux
from ackclock.cli import main
from ackclock.errors import InputError, UnavailableError
from ackclock.linux import _live
from ackclock.scenario import Scenario
from ackclock.sweep import programs

SENDS = """
import socket, sys
with socket.create_connection(("server", 8000)) as peer:
    peer.sendall(bytes(int(open("size").read())))
    peer.shutdown(socket.SHUT_WR)
    peer.recv(1)
sys.exit(int(sys.argv[1]))
"""
TAKES = """
import socket
with socket.create_server(("", 8000)) as listener:
    peer, _ = listener.accept()
    while peer.recv(1 << 16):
        pass
"""


def scenario(rate: str, *, code: int = 0, flows: bool = False) -> str:
    return f"""
[network.bottleneck]
rate = "{rate}"
delay = "5 ms"
{"[[flows]]" if flows else ""}
[[programs]]
host = "server"
run = ["python3", "takes.py"]
[[programs]]
host = "client"
run = ["python3", "sends.py", "{code}"]
start = "1 s"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "sends.py": SENDS,
        "takes.py": TAKES,
        "size": "200000",
        "slow.toml": scenario("5 Mbit/s"),
        "fast.toml": scenario("20 Mbit/s"),
        "plain.toml": 'duration = "1 s"\n[network.bottleneck]\nrate = "1 Mbit/s"\n[[flows]]\n',
    }.items():
        Path(name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("slow.toml", "fast.toml"), "slow.toml: found 2 programs to run; allowed: with --own-code"),
        (("slow.toml", "plain.toml", "--own-code"), "plain.toml: found no programs; allowed: two scenarios with"),
        (("slow.toml", "fast.toml", "--own-code", "--until-width", "5%"), "--until-width: found it with scenarios that"),
        (("slow.toml", "fast.toml", "--own-code", "--population", "uk"), "--population: found it with scenarios that"),
        (("slow.toml", "fast.toml", "--own-code", "--scheduler", "tcp://h:1"), "--scheduler: found it with scenarios"),
    ],
)  # fmt: skip
def test_what_is_not_compared_is_said_in_one_line(here: Path, words: Any, said: str, capsys: Any) -> None:
    assert main(["compare", *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


class Kept:
    """Stand-in for plans and runs without a kernel, which records each run made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: dict[str, str] | None) -> None:
        self.made: list[int] = []
        self.files = files
        listed = [
            {"name": "client", "counts": True},
            {"name": "b", "counts": True},
            {"name": "server", "counts": False},
        ]

        def planned(of: Any, ran: Any, *, flows: bool, seed: int) -> Any:
            key = f"{ran[0]}{seed:023d}"
            return SimpleNamespace(
                seed=seed, flows=flows, scenario=of, about={"key": key}, job={"live": {"programs": listed}}
            )

        def record(plan: Any, cpu: int, wall_limit_s: float | None) -> dict[str, Any]:
            self.made.append(plan.seed)
            value = float(plan.seed) + (plan.about["key"][0] == "b")
            failed = ["client: exited with 1"] if plan.seed == 2 else []
            metrics = {"goodput_bps": value, "completion_s": None if plan.seed == 3 else 1.0}
            return {
                "seed": plan.seed,
                "digest": "0",
                "key": "k" * 40,
                "files": self.files,
                "metrics": metrics,
                "failed": failed,
            }

        monkeypatch.setattr(_live, "planned", planned)
        monkeypatch.setattr(programs, "_record", record)

    def compare(self, folder: Path, seeds: int = 4, **more: Any) -> Any:
        plain = {"duration": "1 s", "network": {"bottleneck": {"rate": "1 Mbit/s"}}, "flows": [{}]}
        arms = [
            programs.Arm(name=name, scenario=Scenario.from_dict(plain), programs=(name,), flows=True)  # type: ignore[arg-type]
            for name in "ab"
        ]
        self.made.clear()
        return programs.compare(arms[0], arms[1], seeds=seeds, folder=folder, **more)


def test_runs_are_found_again_while_files_are_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = tmp_path / "read"
    read.write_text("1")
    kept = Kept(monkeypatch, {str(read): programs_hash(read)})
    folder = tmp_path / "kept"
    found = kept.compare(folder)
    assert sorted(kept.made) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert found.outcome("goodput_bps") == "b is larger"
    assert found.metrics["completion_s"].without == (1, 1)
    assert found.failed == ({"client: exited with 1": 1}, {"client: exited with 1": 1})
    assert {"b.completion_s", "client.completion_s", "flow.0.goodput_bps"} < set(found.metrics)
    assert kept.compare(folder).to_json() == found.to_json()
    assert kept.made == []
    kept.compare(folder, seeds=5, metrics=["goodput_bps"])
    assert kept.made == [5, 5]
    next((folder / "live").glob("a*1-k*.json")).write_text("{")
    kept.compare(folder)
    assert kept.made == [1]
    read.write_text("2")
    kept.compare(folder)
    assert len(kept.made) == 8


def programs_hash(path: Path) -> str:
    from ackclock.linux import _cache

    return _cache.sha256(path)


def test_runs_whose_files_are_unknown_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(monkeypatch, None)
    kept.compare(tmp_path)
    kept.compare(tmp_path)
    assert len(kept.made) == 8


def test_a_stopped_comparison_says_how_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    stop = threading.Event()
    kept = Kept(monkeypatch, {})
    with pytest.raises(UnavailableError, match=r"stopped after \d of 8 runs, which are kept; the same command goes on"):
        kept.compare(tmp_path, jobs=1, stop=stop, progress=lambda done, _total, _found: stop.set() if done else None)
    assert kept.compare(tmp_path).seeds == 4
    with pytest.raises(InputError, match=r'--metric: found "speed"; allowed with programs: completion_s, goodput_bps'):
        kept.compare(tmp_path, metrics=["speed"])


def test_two_arms_in_the_kernel(kernel: linux.Kernel, here: Path, capsys: Any) -> None:
    Path("fails.toml").write_text(scenario("5 Mbit/s", code=3))
    words = ["compare", "fails.toml", "fast.toml", "--own-code", "--seeds", "2", "--out", "kept", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["failed_runs"] == {"first": {"client: exited with 3": 2}, "second": {}}
    first = {name: found["first"]["value"] for name, found in told["metrics"].items()}
    assert first["connections"] == 1
    assert 4.4e6 < first["goodput_bps"] < 5e6 < told["metrics"]["goodput_bps"]["second"]["value"] < 20e6
    assert first["completion_s"] == pytest.approx(0.01 + 8 * 200_000 / 4.8e6, abs=0.1)
    runs = sorted(place.name for place in Path("kept/live").iterdir())
    assert len(runs) == 4
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == told
    assert sorted(place.name for place in Path("kept/live").iterdir()) == runs


GRID = """
scenario = "fast.toml"
seeds = 2
[axes]
"network.bottleneck.rate" = ["5 Mbit/s", "20 Mbit/s"]
"programs.1.run" = [["python3", "sends.py", "0"], ["python3", "sends.py", "4"]]
[names]
"network.bottleneck.rate" = "rate"
[labels]
"programs.1.run" = ["well", "badly"]
"""


@pytest.mark.parametrize(
    ("grid", "words", "said"),
    [
        (GRID, (), "fast.toml: found 2 programs to run; allowed: with --own-code"),
        (GRID, ("--own-code", "--until-width", "5%"), "--until-width: found it with scenarios that name programs"),
        (GRID, ("--own-code", "--retry"), "--retry: found it with scenarios that name programs"),
        ('trace = "all"\n' + GRID, ("--own-code",), "grid.toml: trace: found it with a scenario that names programs"),
        (GRID.replace("s.1.run", "s.7.run"), ("--own-code",), "the list has 2 entries"),
        (GRID.replace("s.1.run", "s.1.runs"), ("--own-code",), "programs.1.runs: found a key that is not known"),
        (GRID.replace('"20 Mbit/s"', '"fast"'), ("--own-code",), 'in the cell network.bottleneck.rate = "fast"'),
    ],
)  # fmt: skip
def test_a_grid_that_cannot_run_is_said_in_one_line(here: Path, grid: str, words: Any, said: str, capsys: Any) -> None:
    Path("grid.toml").write_text(grid)
    assert main(["sweep", "run", "grid.toml", *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not Path("grid.sweep/live").exists()


def test_a_folder_that_is_a_link_is_refused(here: Path, capsys: Any) -> None:
    Path("grid.toml").write_text(GRID)
    Path("grid.sweep").mkdir()
    Path("grid.sweep/live").symlink_to("/tmp")
    assert main(["sweep", "run", "grid.toml", "--own-code"]) == 2
    assert "found a link" in capsys.readouterr().err


def test_a_grid_of_programs(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    import polars as pl

    made: list[tuple[str, int]] = []

    def planned(of: Any, ran: Any, *, flows: bool, seed: int) -> Any:
        rate, words = of.to_dict()["network"]["bottleneck"]["rate"], ran[1].command
        listed = [{"name": "client", "counts": True}]
        about = {"key": f"{rate[:2].strip()}-{words[-1]}-{seed}".ljust(24, "x")}
        return SimpleNamespace(seed=seed, flows=flows, scenario=of, about=about, job={"live": {"programs": listed}}, rate=rate, words=words)  # fmt: skip

    def record(plan: Any, cpu: int, wall_limit_s: float | None) -> dict[str, Any]:
        made.append((plan.rate, plan.seed))
        failed = ["client: exited with 4"] if plan.words.endswith("4") else []
        metrics = {"goodput_bps": 1e6 * float(plan.rate.split()[0]), "completion_s": None if failed else 1}
        return {"seed": plan.seed, "digest": "0", "key": "k" * 40, "files": {}, "metrics": metrics, "failed": failed}

    monkeypatch.setattr(_live, "planned", planned)
    monkeypatch.setattr(programs, "_record", record)
    Path("grid.toml").write_text(GRID)
    assert main(["sweep", "run", "grid.toml", "--own-code", "--jobs", "1"]) == 1
    told = capsys.readouterr().out
    assert "table: grid.sweep/live/grid.parquet (8 rows)" in told
    assert "badly" in told
    assert len(made) == 8
    table = pl.read_parquet("grid.sweep/live/grid.parquet")
    assert table.columns[:5] == ["cell", "rate", "programs.1.run", "seed", "digest"]
    assert table["goodput_bps"].to_list() == [5e6] * 4 + [2e7] * 4
    assert table["completion_s"].to_list() == [1.0, 1.0, None, None] * 2
    assert table["failed"].to_list() == ["", "", *["client: exited with 4"] * 2] * 2
    assert main(["sweep", "run", "grid.toml", "--own-code", "--jobs", "1", "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 8
    assert len(made) == 8, "found again"
