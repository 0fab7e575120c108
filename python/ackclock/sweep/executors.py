"""Executors that run the tasks: threads of this process, or workers of a Dask cluster."""

from __future__ import annotations

import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, Protocol

from ackclock import _child, _engine
from ackclock.errors import InputError, UnavailableError, shown
from ackclock.sweep.task import Done, Task, compute

Finished = tuple[int, Done | Exception]
"""Task number and outcome."""


class Executor(Protocol):
    """Contract for executors: every submitted task is returned exactly once, in any order."""

    target_s: float
    """Target duration of a task, s."""

    @property
    def slots(self) -> int:
        """Number of parallel tasks; may grow and shrink."""

    def submit(self, number: int, task: Task) -> None:
        """Submit a task."""

    def wait(self, timeout_s: float) -> list[Finished]:
        """Return finished tasks; after `timeout_s` there may be none."""

    def close(self) -> None:
        """Accept no more tasks."""


class _Inbox:
    """Queue for results from other threads."""

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def wait(self, timeout_s: float) -> list[Finished]:
        found: list[Finished] = []
        try:
            found.append(self._open(*self._arrived.get(timeout=timeout_s)))
            while True:
                found.append(self._open(*self._arrived.get_nowait()))
        except queue.Empty:
            return found

    @staticmethod
    def _open(number: int, future: Any) -> Finished:
        try:
            return number, future.result()
        except Exception as error:  # CancelledError is also a failure
            return number, error

    def listen(self, number: int) -> Callable[[Any], None]:
        return lambda future: self._arrived.put((number, future))


class Threads:
    """Threads of this process; the engine releases the interpreter lock.

    Parameters
    ----------
    jobs
        Number of threads.
    work
        Function that carries out a task.
    """

    target_s = 0.25

    def __init__(self, jobs: int, *, work: Callable[[Task], Done] | None = None) -> None:
        if jobs < 1:
            raise InputError(f"jobs: found {jobs}; allowed: a whole number, 1 or more")
        self._jobs = jobs
        self._stop = _engine.Stop()
        self._work = work or partial(compute, stop=self._stop)
        self._inbox = _Inbox()
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="ackclock")

    @property
    def slots(self) -> int:
        """Number of threads."""
        return self._jobs

    def submit(self, number: int, task: Task) -> None:
        """Queue a task."""
        future: Future[Done] = self._pool.submit(self._work, task)
        future.add_done_callback(self._inbox.listen(number))

    def wait(self, timeout_s: float) -> list[Finished]:
        """Return finished tasks."""
        return self._inbox.wait(timeout_s)

    def close(self) -> None:
        """Discard queued tasks and stop the running ones."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)


HANDSHAKE_S = 15.0
"""Time within which a scheduler must respond, s. It sends a greeting at once; any other server sends something
that cannot be parsed.
"""


def _within(seconds: float, work: Callable[[], Any]) -> Any:
    """Call a function in another thread with a time limit: Dask's own limit does not stop a handshake that hangs."""
    done: Future[Any] = Future()

    def call() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    try:
        return done.result(timeout=seconds)
    except FutureTimeout:
        if done.done():
            raise
        raise TimeoutError(f"no scheduler answers within {seconds:.0f} s") from None


class Dask:
    """Workers of a Dask cluster. If a worker dies, another one repeats its runs.

    Parameters
    ----------
    address
        Address of the scheduler, such as "tcp://head:8786"; or a cluster object of Dask.
    close
        Function called at the end, without arguments.
    """

    target_s = 1.0

    def __init__(self, address: Any, *, close: Callable[[], object] | None = None) -> None:
        distributed = _import("distributed")
        try:
            if isinstance(address, str):  # checked first: Dask would try for a minute and report a less specific error
                host, port = distributed.comm.get_address_host_port(address)
                socket.create_connection((host, port), timeout=10).close()
                if address.startswith("tls://") and not distributed.Security().tls_ca_file:
                    raise ValueError("no certificates: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE and its kin")
            self._client = _within(
                HANDSHAKE_S, lambda: distributed.Client(address, timeout="30s", set_as_default=False)
            )
        except (OSError, TimeoutError, ValueError) as error:
            said = str(error).partition("\n")[0] or type(error).__name__
            raise UnavailableError(f"--scheduler {address}: cannot be reached ({said})") from None
        self._gone = False
        self._inbox = _Inbox()
        self._open: dict[int, Any] = {}
        self._close = close

    @property
    def slots(self) -> int:
        """Total number of worker threads; 1 without workers, so that a task waits for the first one."""
        try:
            info: Mapping[str, Any] = self._client.scheduler_info(n_workers=-1)
        except Exception:  # the client is between two states; `wait` reports problems
            return 1
        return max(1, sum(int(worker["nthreads"]) for worker in info.get("workers", {}).values()))

    def submit(self, number: int, task: Task) -> None:
        """Send a task."""
        try:
            future = self._client.submit(compute, task, pure=False, retries=2)
        except Exception:
            if self._client.status == "running":
                raise
            self._gone = True  # the client notices half a minute after the scheduler is lost; `wait` reports it
            return
        self._open[number] = future  # Dask drops a future without references
        future.add_done_callback(self._inbox.listen(number))

    def wait(self, timeout_s: float) -> list[Finished]:
        """Return finished tasks."""
        found = self._inbox.wait(timeout_s)
        kept: list[Finished] = []
        for number, done in found:
            self._open.pop(number, None)
            if isinstance(done, CancelledError) or "CancelledError" in type(done).__name__:
                self._gone = True  # only closing the connection cancels our tasks
            else:
                kept.append((number, done))
        if self._gone and not kept:
            raise UnavailableError("the scheduler is gone; finished runs are kept, the rest are pending")
        return kept

    def close(self) -> None:
        """Cancel the remaining tasks and disconnect."""
        if self._open and self._client.status == "running":
            self._client.cancel(list(self._open.values()))
        self._client.close()
        if self._close is not None:
            self._close()


def batch_system(kind: str, workers: int, options: Mapping[str, Any]) -> Dask:
    """Start workers as batch system jobs.

    Parameters
    ----------
    kind
        "slurm" or "pbs".
    workers
        Number of jobs.
    options
        Passed to dask-jobqueue: queue, account, cores, memory, walltime, and so on.

    Raises
    ------
    UnavailableError
        If dask-jobqueue is not installed, or an option or a job is refused.
    """
    jobqueue = import_jobqueue()
    make = {"slurm": jobqueue.SLURMCluster, "pbs": jobqueue.PBSCluster}[kind]
    if (
        _child.program(make.job_cls.submit_command) is None
    ):  # checked first: otherwise certificates would be written, and a warning printed
        raise UnavailableError(
            f"--{kind}: found no program {make.job_cls.submit_command}; allowed: a machine from which jobs can be submitted"
        )
    cluster = None
    try:
        # Access to the scheduler's port means executing code as this user, so it requires the scheduler's
        # certificate.
        security = _temporary_certificates()
        # workers are started by `python -m`, possibly in another user's folder
        first = ["export PYTHONSAFEPATH=1", *options.get("job_script_prologue", ())]
        given = {**options, "job_script_prologue": first}
        cluster = make(**{"cores": 1, "processes": 1, "memory": "2 GB", "security": security, **given})
        cluster.sync(_submit, cluster, workers)
        # A job that ends, because of its time limit or with its node, is replaced by another.
        cluster.adapt(minimum_jobs=workers, maximum_jobs=workers, interval="5s")
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        if cluster is not None:
            cluster.close()
        if isinstance(error, FileNotFoundError) and error.filename:
            raise UnavailableError(
                f"--{kind}: found no program {shown(str(error.filename))}; allowed: a machine from which jobs can be submitted"
            ) from None
        said = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise UnavailableError(f"--{kind}: {said[-1].strip()}") from None
    return Dask(cluster, close=cluster.close)


def _temporary_certificates() -> Any:
    """Make certificates for this session, known only to its scheduler and its jobs."""
    try:
        return _import("distributed").Security.temporary()
    except ImportError:
        raise UnavailableError("cryptography is not installed; pip install 'ackclock[cluster]'") from None


async def _submit(cluster: Any, jobs: int) -> None:
    """Submit the jobs, and wait until the batch system has accepted them: `scale` would report refusals only in a
    log.
    """
    for _ in range(jobs):
        cluster.worker_spec.update(cluster.new_worker_spec())
    try:
        await cluster
    except BaseException:
        for job in cluster.workers.values():
            if job.job_id is None:  # the cluster was never submitted, and closing it would wait for the submission
                job.status = _import("distributed").Status.closed
        raise


def import_jobqueue() -> Any:
    """Import dask-jobqueue in the main thread, because its import replaces the handler of SIGINT, which is then
    restored.

    Raises
    ------
    UnavailableError
        If dask-jobqueue is not installed, or if it was not imported before and this is not the main thread.
    """
    if "dask_jobqueue" in sys.modules:
        return sys.modules["dask_jobqueue"]
    if threading.current_thread() is not threading.main_thread():
        raise UnavailableError("dask_jobqueue can be imported in the main thread only; import it there before")
    before = signal.getsignal(signal.SIGINT)
    try:
        return _import("dask_jobqueue")
    finally:
        signal.signal(signal.SIGINT, before)


def _import(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise UnavailableError(f"{module} is not installed; pip install 'ackclock[cluster]'") from None
