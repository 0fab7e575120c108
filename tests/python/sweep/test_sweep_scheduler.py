"""Tests for addresses with no scheduler, and for schedulers that disappear."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ackclock import Scenario, UnavailableError
from ackclock.sweep import Dask, Store, Sweep, Threads, executors
from ackclock.sweep import run as run_sweep

pytest.importorskip("distributed")

SCENARIO = 'duration = "1 s"\n[network]\nbottleneck = { rate = "1 Mbit/s", delay = "5 ms" }\n[[flows]]\n'
SWEEP = 'name = "k"\nmetrics = ["goodput_bps"]\nseeds = 4\nscenario = "x.toml"\n'
SOON_S = 25.0
"""Seconds allowed for the timeout below and the interpreter's start-up, on a busy machine."""

HASTY = "import sys; from ackclock.cli import main; from ackclock.sweep import executors; executors.HANDSHAKE_S = 1.5; sys.exit(main(sys.argv[1:]))"
"""Program that runs the command with a tenth of its timeout."""


@contextmanager
def _silent() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def _http() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def _ended(folder: Path, address: str) -> None:
    (folder / "x.toml").write_text(SCENARIO)
    (folder / "k.toml").write_text(SWEEP)
    started = time.monotonic()
    command = [sys.executable, "-c", HASTY, "sweep", "run", "k.toml", "--scheduler", address]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert time.monotonic() - started < SOON_S
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"ackclock: --scheduler {address}: cannot be reached (")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("server", [_silent, _http])
def test_something_else_listens(server, tmp_path: Path) -> None:
    """The address is refused in one line within seconds."""
    with server() as port:
        _ended(tmp_path, f"tcp://127.0.0.1:{port}")


def test_tls_without_certificates(tmp_path: Path) -> None:
    """The address is refused in one line within seconds."""
    with _silent() as port:
        _ended(tmp_path, f"tls://127.0.0.1:{port}")


@pytest.mark.long
def test_ten_schedulers_lost(tmp_path: Path) -> None:
    """Each loss leaves its runs pending; after the next command has made them, the table matches an undisturbed
    sweep's.
    """
    scenario = Scenario.from_dict(
        {
            "duration": "60 s",
            "network": {"bottleneck": {"rate": "5 Mbit/s", "delay": "10 ms"}},
            "flows": [{"congestion_control": "reno"}],
        }
    )
    sweep = Sweep(name="k", scenario=scenario, seeds=tuple(range(1, 121)))
    plain, _ = run_sweep(sweep, tmp_path / "plain", Threads(2))
    lost = 0
    for number in range(10):
        folder = tmp_path / str(number)
        with _cluster() as (address, pid):
            executor = Dask(address)
            executor.target_s = 0.05

            def progress(status, pid: int = pid) -> None:
                if 0 < status.done < status.total:
                    os.kill(pid, signal.SIGKILL)

            try:
                run_sweep(sweep, folder, executor, progress=progress)
            except UnavailableError:
                lost += 1
            finally:
                with suppress(Exception):
                    executor.close()
        with Store(folder) as store:
            counts = store.counts("k")
        assert counts["failed"] == counts["running"] == 0, counts
        results, status = run_sweep(sweep, folder, Threads(2))
        assert (status.done, status.failed) == (120, 0)
        assert results.runs.equals(plain.runs)
    assert lost >= 8, f"{lost} of 10 were killed before the sweep was over"


@contextmanager
def _cluster() -> Iterator[tuple[str, int]]:
    """Start a scheduler and a worker, as separate processes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    dask = [sys.executable, "-m", "distributed.cli"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*dask[:2], "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        **quiet,
    )
    worker = subprocess.Popen(
        [*dask[:2], "distributed.cli.dask_worker", address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard", "--no-nanny"],
        **quiet,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            time.sleep(0.1)
        yield address, scheduler.pid
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def test_a_client_that_has_given_up() -> None:
    """The refusal takes one line, even if tasks are sent before the scheduler's loss is noticed."""

    class Closed:
        status = "closed"

        def submit(self, *_: object, **__: object) -> None:
            raise Exception("Client is closed. Can't send update-graph message.")

        def close(self) -> None:
            pass

    executor = Dask.__new__(Dask)
    executor._client, executor._open, executor._close = Closed(), {1: None}, None
    executor._gone, executor._inbox = False, executors._Inbox()
    executor.submit(2, None)
    with pytest.raises(UnavailableError, match=r"^the scheduler is gone; finished runs are kept"):
        executor.wait(0.0)
    executor.close()


@pytest.mark.promise("P28")
def test_batch_systems_are_given_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting to the port of such a scheduler requires the session's own certificate."""
    given: dict[str, object] = {}

    class Submitting:
        submit_command = "sh"

    class Refusing:
        job_cls = Submitting

        def __init__(self, **options: object) -> None:
            given.update(options)
            raise OSError("no batch system here")

    class Jobqueue:
        SLURMCluster = PBSCluster = Refusing

    monkeypatch.setattr(executors, "import_jobqueue", lambda: Jobqueue)
    with pytest.raises(UnavailableError, match="no batch system here"):
        executors.batch_system("slurm", 1, {})
    security = given["security"]
    assert security.require_encryption
    assert all(getattr(security, f"tls_{role}_cert") for role in ("scheduler", "worker", "client"))
