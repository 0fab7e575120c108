"""The simulator, compiled from `crates/python`. Text and numbers in, columns as raw little-endian buffers out."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

__all__ = [
    "build",
    "check_controller",
    "controller_options",
    "cpu_time",
    "estimate_memory",
    "ideal_path",
    "peak_rss_bytes",
    "play_script",
    "registry",
    "run",
    "run_batch",
    "run_each",
    "version",
    "yardstick",
]

def check_controller(name: str, options: dict[str, Any]) -> tuple[str, str, str] | None: ...
def controller_options() -> dict[str, list[tuple[str, str, str, str]]]: ...

_Column: TypeAlias = tuple[str, bytes | list[str]]

class _Run(TypedDict):
    digest: str
    tables: dict[str, dict[str, _Column]]

class _Batch(TypedDict):
    digests: list[str]
    tables: dict[str, dict[str, _Column]]

class _Kept(TypedDict):
    digests: list[str | None]
    errors: list[str | None]
    metrics: dict[str, _Column]
    tables: dict[str, dict[str, _Column]]

class _IdealPath(TypedDict):
    rows: list[dict[str, Any]]
    summary: dict[str, Any]

class _Played(TypedDict):
    verdict: Literal["pass", "fail", "unsupported"]
    line: int
    expected: str | None
    actual: str | None
    unsupported: str | None
    blocks: list[tuple[int, str, dict[str, int]]]
    deviation_s: float
    trace: list[str]

def version() -> str: ...
def build() -> str: ...
def registry() -> dict[str, list[tuple[str, str]]]: ...
def run(scenario_json: str, seed: int, pcap: str | None = None) -> _Run: ...
def run_batch(
    scenario_json: str,
    seeds: Sequence[int],
    threads: int,
    progress: Callable[[int], None] | None = None,
) -> _Batch: ...
def run_each(
    scenarios: Sequence[str],
    runs: Sequence[tuple[int, int]],
    metrics: Sequence[str],
    tables: Sequence[tuple[str, Sequence[str] | None]],
    budget_s: float,
) -> _Kept: ...
def estimate_memory(scenario_json: str) -> int: ...
def ideal_path(
    rule: str,
    window: int,
    lost: Sequence[int],
    ssthresh: int | None = None,
    recover_fs: int | None = None,
    more_data: bool = True,
) -> _IdealPath: ...
def play_script(
    path: str,
    profile: str,
    hz: int,
    tolerance_us: int | None,
    sysctls: Sequence[tuple[str, str]],
    defines: Sequence[tuple[str, str]],
    strict: bool,
) -> _Played: ...
def yardstick(flows: int, packets: int) -> float: ...
def cpu_time() -> float: ...
def peak_rss_bytes() -> int: ...
