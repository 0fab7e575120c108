"""The simulator, compiled from `crates/python`. Text and numbers in, columns as raw little-endian buffers out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, final

__all__ = [
    "Ack",
    "Rate",
    "Refusal",
    "Stop",
    "Window",
    "build",
    "check_conformance",
    "check_controller",
    "columns",
    "controller_options",
    "cpu_time",
    "estimate_capture",
    "estimate_memory",
    "ideal_path",
    "peak_rss_bytes",
    "play_script",
    "profile",
    "registry",
    "run",
    "run_batch",
    "run_each",
    "schema",
    "version",
    "yardstick",
]

class Refusal(ValueError):
    """A value that a scenario may not have: `args` are key, what was found, what is allowed."""

def check_controller(name: str, options: dict[str, Any]) -> tuple[str, str, str] | None: ...
def schema() -> dict[str, Any]: ...
def columns() -> list[tuple[str, str, list[tuple[str, str, str, str, str]]]]: ...
def controller_options() -> dict[str, list[tuple[str, str, str, str]]]: ...

_Column: TypeAlias = tuple[str, bytes | list[str]]

@final
class Window:
    """cwnd, ssthresh and pacing rate of one sender. A hook may set them."""

    cwnd: float
    """Congestion window, segments; fractions are kept, the sender sees the whole part."""
    ssthresh: float
    """Slow-start threshold, segments; infinite until it is first set."""
    pacing_rate: float
    """bytes/s; infinite where none is set."""
    @property
    def prior_cwnd(self) -> int: ...
    @property
    def in_slow_start(self) -> bool: ...

@final
class Rate:
    """A sample of the delivery rate: times in seconds, counts in segments."""

    @property
    def delivered(self) -> int: ...
    @property
    def interval(self) -> float: ...
    @property
    def send_elapsed(self) -> float: ...
    @property
    def ack_elapsed(self) -> float: ...
    @property
    def prior_delivered(self) -> int: ...
    @property
    def prior_time(self) -> float: ...
    @property
    def total_delivered(self) -> int: ...
    @property
    def delivered_ce(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def tx_in_flight(self) -> int: ...
    @property
    def is_app_limited(self) -> bool: ...
    @property
    def is_retrans(self) -> bool: ...
    @property
    def is_ack_delayed(self) -> bool: ...

@final
class Ack:
    """What one ACK tells: times in seconds, counts in segments unless said otherwise."""

    @property
    def now(self) -> float: ...
    @property
    def acked(self) -> int: ...
    @property
    def delivered(self) -> int: ...
    @property
    def acked_bytes(self) -> int: ...
    @property
    def newly_lost(self) -> int: ...
    @property
    def rtt(self) -> float | None: ...
    @property
    def srtt(self) -> float: ...
    @property
    def min_rtt(self) -> float: ...
    @property
    def prior_in_flight(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def snd_una(self) -> int: ...
    @property
    def snd_nxt(self) -> int: ...
    @property
    def cwnd_limited(self) -> bool: ...
    @property
    def paced(self) -> bool: ...
    @property
    def smss(self) -> int: ...
    @property
    def ece(self) -> bool: ...
    @property
    def delivered_ce(self) -> int: ...
    @property
    def ca_state(self) -> str: ...
    @property
    def is_dup(self) -> bool: ...
    @property
    def rate(self) -> Rate | None: ...

@final
class Stop:
    """A flag that ends the runs to which it was given, once and for all."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...

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
def profile() -> str: ...
def registry() -> dict[str, list[tuple[str, str]]]: ...
def check_conformance(class_: Callable[[], object]) -> dict[str, Any] | None: ...
def run(
    scenario_json: str,
    seed: int,
    pcap: str | None = None,
    controllers: Mapping[str, Callable[[], object]] | None = None,
    memory: int | None = None,
    stop: Stop | None = None,
    snaplen: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]: ...
def run_batch(
    scenario_json: str,
    seeds: Sequence[int],
    threads: int,
    progress: Callable[[int], None] | None = None,
    controllers: Mapping[str, Callable[[], object]] | None = None,
    memory: int | None = None,
    stop: Stop | None = None,
) -> dict[str, Any]: ...
def run_each(
    scenarios: Sequence[str],
    runs: Sequence[tuple[int, int]],
    metrics: Sequence[str],
    tables: Sequence[tuple[str, Sequence[str] | None]],
    budget_s: float,
    memory: int | None = None,
    stop: Stop | None = None,
    controllers: Mapping[str, Callable[[], object]] | None = None,
    limit_s: float | None = None,
) -> _Kept: ...
def estimate_capture(scenario_json: str) -> int: ...
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
