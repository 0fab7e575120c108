"""The simulator, compiled from `crates/python`. Text and numbers in, columns as raw little-endian buffers out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, final

__all__ = [
    "Ack",
    "Fault",
    "Library",
    "Rate",
    "Refusal",
    "Scenario",
    "Steering",
    "Stop",
    "Tables",
    "Trace",
    "Window",
    "build",
    "check_conformance",
    "check_stack",
    "columns",
    "controller_options",
    "cpu_time",
    "describe_quantity",
    "dimensions",
    "estimate_capture",
    "estimate_memory",
    "estimate_time",
    "ideal_path",
    "load_stack",
    "loaded_stacks",
    "mean_bps",
    "netem",
    "path_facts",
    "peak_rss_bytes",
    "play_script",
    "profile",
    "qdisc",
    "quantity",
    "read_capture",
    "read_share",
    "read_table",
    "read_toml",
    "registry",
    "run",
    "run_batch",
    "run_each",
    "run_many",
    "schema",
    "shown",
    "stack_checks",
    "unjudged",
    "version",
    "yardstick",
]

_Place: TypeAlias = tuple[int, int, int]

class Fault(RuntimeError):
    """What a controller in a library did wrong."""

@final
class Library:
    """A library with a controller, loaded: what the user's code does from here on, it does in this process.

    Parameters
    ----------
    path
        Of the library.
    options
        Lines NAME=VALUE.
    file
        What messages call it.
    """

    def __new__(cls, path: str, options: str, file: str) -> Library: ...
    @property
    def name(self) -> str: ...
    @property
    def __name__(self) -> str: ...

class Refusal(ValueError):
    """A value that a scenario may not have: `args` are key, what was found, what is allowed."""

_Wrong: TypeAlias = list[tuple[str, str, str]]

class _Files(Protocol):
    """Finds what a scenario refers to."""

    @staticmethod
    def trace(name: str, /) -> Trace: ...
    @staticmethod
    def controller(name: str, options: Mapping[str, Any], /) -> str: ...

@final
class Trace:
    """How many packets may leave in each millisecond of a Mahimahi trace."""

    counts: tuple[int, ...]
    @staticmethod
    def read(data: bytes) -> Trace: ...

@final
class Scenario:
    """A scenario that may run."""

    @staticmethod
    def read(values: Mapping[str, Any], files: type[_Files]) -> tuple[Scenario | None, _Wrong]: ...
    def written(self) -> dict[str, Any]: ...
    def values(self) -> dict[str, Any]: ...
    def text(self, capture: str | None = None) -> str: ...
    def capturing(self, side: str) -> Scenario: ...
    def flow_count(self) -> int: ...

def unjudged(values: Mapping[str, Any], files: type[_Files]) -> str | None: ...
def read_table(
    family: str | None, kind: str, values: Mapping[str, Any], files: type[_Files]
) -> tuple[_Wrong, dict[str, Any], dict[str, Any]]: ...
def shown(family: str | None, kind: str, key: str, value: object) -> Any: ...
def qdisc(family: str, queue: Mapping[str, Any], delay_ns: int) -> dict[str, Any]: ...
def netem(
    *,
    limit: int,
    delay_ns: int,
    rate: int,
    overhead: int,
    loss: int,
    gemodel: Sequence[int] | None,
    seed: int,
) -> dict[str, Any]: ...
def path_facts(network: object, path: str | None, files: type[_Files]) -> tuple[int, int | None, int, int]: ...
def mean_bps(link: object, files: type[_Files]) -> int | None: ...
def dimensions() -> list[tuple[str, str, list[tuple[str, int]], str, int, str, bool]]: ...
def quantity(value: object, dimensions: Sequence[str], zero: bool, parts: bool) -> tuple[int, int, int, str]: ...
def describe_quantity(dimensions: Sequence[str], zero: bool) -> str: ...
def read_share(value: object) -> float: ...
def read_toml(
    text: str,
) -> tuple[dict[str, Any], list[tuple[str, _Place, _Place]], tuple[_Place, str] | None]: ...
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
    def prior_cwnd(self) -> int:
        """The window at the last reduction, segments."""
    @property
    def in_slow_start(self) -> bool:
        """Whether cwnd is below ssthresh."""

@final
class Rate:
    """A sample of the delivery rate: times in seconds, counts in segments."""

    @property
    def delivered(self) -> int:
        """Segments delivered over `interval`: a flight, not this ACK alone."""
    @property
    def interval(self) -> float:
        """The longer one of `send_elapsed` and `ack_elapsed`, s; 0 if the sample is not valid (shorter than the least RTT)."""
    @property
    def send_elapsed(self) -> float:
        """Time over which these segments were sent, s."""
    @property
    def ack_elapsed(self) -> float:
        """Time over which they were acknowledged, s."""
    @property
    def prior_delivered(self) -> int:
        """`total_delivered` when the newest segment that this ACK covers was sent."""
    @property
    def prior_time(self) -> float:
        """When that count was reached, s from the start of the run."""
    @property
    def total_delivered(self) -> int:
        """Segments delivered over the connection so far."""
    @property
    def delivered_ce(self) -> int:
        """Of `delivered`, segments that carried a mark."""
    @property
    def lost(self) -> int:
        """Segments marked lost since that newest segment was sent."""
    @property
    def tx_in_flight(self) -> int:
        """Segments in flight when it had been sent, itself included."""
    @property
    def is_app_limited(self) -> bool:
        """Whether the application, not the window, limited the sender when it was sent."""
    @property
    def is_retrans(self) -> bool:
        """Whether it was a retransmission."""
    @property
    def is_ack_delayed(self) -> bool:
        """Whether the ACK may have been held back by a delayed-ACK timer."""

@final
class Ack:
    """What one ACK tells: times in seconds, counts in segments unless said otherwise."""

    @property
    def now(self) -> float:
        """Time of arrival, s from the start of the run."""
    @property
    def acked(self) -> int:
        """Segments of this ACK that count for growth: `delivered`, or 1 in a stack that counts ACKs. With `every`, the sum since the last call, as all counts here."""
    @property
    def delivered(self) -> int:
        """Segments that this ACK delivered: acknowledged cumulatively or SACKed, each once."""
    @property
    def acked_bytes(self) -> int:
        """Bytes by which the cumulative ACK advanced; after a recovery it jumps."""
    @property
    def newly_lost(self) -> int:
        """Segments marked lost on this ACK, retransmissions found lost included. In `on_sample` 0: losses are looked for later."""
    @property
    def rtt(self) -> float | None:
        """RTT of the newest segment that this ACK covers, s; None if one of them was retransmitted, or it covers none."""
    @property
    def srtt(self) -> float:
        """Smoothed RTT, s; 0 before the first sample."""
    @property
    def min_rtt(self) -> float:
        """Least RTT of the connection so far, s; infinite before the first sample."""
    @property
    def prior_in_flight(self) -> int:
        """Segments in flight before this ACK."""
    @property
    def in_flight(self) -> int:
        """Segments in flight after this ACK, without those newly marked lost."""
    @property
    def snd_una(self) -> int:
        """First unacknowledged offset after this ACK, bytes."""
    @property
    def snd_nxt(self) -> int:
        """Next offset to send, bytes."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the window limited the sender since the last ACK; if not, a controller must not grow it (RFC 7661)."""
    @property
    def paced(self) -> bool:
        """Whether the sender paces its packets."""
    @property
    def smss(self) -> int:
        """Payload of a full segment, bytes."""
    @property
    def ece(self) -> bool:
        """Whether the ACK echoes a mark of congestion (ECE)."""
    @property
    def delivered_ce(self) -> int:
        """Of `delivered`, segments that carried a mark: exact with `wants_exact_ecn`, else all of them under ECE."""
    @property
    def ca_state(self) -> str:
        """Congestion state: "Open", "Disorder", "CWR", "Recovery", "Loss"; in `on_sample` the one before this ACK, elsewhere the one after it."""
    @property
    def is_dup(self) -> bool:
        """Whether it is a duplicate ACK (RFC 5681 §2)."""
    @property
    def rate(self) -> Rate | None:
        """Sample of the delivery rate; None without `wants_rate`, or if this ACK gives none."""

@final
class Stop:
    """A flag that ends the runs to which it was given, once and for all."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...

@final
class Steering:
    """Runs whose agents decide after each step, many at once on threads."""

    def __new__(cls, runs: int, agents: Sequence[int], step: int, paced: bool, threads: int) -> Steering: ...
    @staticmethod
    def fields() -> list[str]: ...
    def begin(self, runs: Sequence[tuple[int, Scenario | str, int]]) -> None: ...
    def step(self, actions: bytes) -> tuple[bytes, bytes]: ...
    def digest(self, at: int) -> str | None: ...

@final
class Tables(Mapping[str, dict[str, _Column]]):
    """Tables of a run by name, each a column's type and values by name; they become Python's when they are first asked for."""

    def __getitem__(self, name: str, /) -> dict[str, _Column]: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def get(self, name: str, default: Any = None) -> Any: ...

class _Kept(TypedDict):
    digests: list[str | None]
    errors: list[str | None]
    metrics: dict[str, _Column]
    tables: Tables

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
def check_conformance(class_: Callable[[], object] | Library) -> dict[str, Any] | None: ...
def run(
    scenario: Scenario | str,
    seed: int,
    pcap: str | None = None,
    controllers: Mapping[str, Callable[[], object]] | None = None,
    memory: int | None = None,
    stop: Stop | None = None,
    snaplen: int | None = None,
    progress: Callable[[float], None] | None = None,
    shortcuts: str = "all",
) -> dict[str, Any]: ...
def run_batch(
    scenario: Scenario | str,
    seeds: Sequence[int],
    threads: int,
    progress: Callable[[int], None] | None = None,
    controllers: Mapping[str, Callable[[], object]] | None = None,
    memory: int | None = None,
    stop: Stop | None = None,
) -> dict[str, Any]: ...
def run_many(
    runs: Sequence[tuple[Scenario | str, int]],
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
def read_capture(
    path: str,
    connection: int | None = None,
    most_packets: int = 10_000_000,
    progress: Callable[[int], object] | None = None,
    stop: Stop | None = None,
) -> dict[str, Any]: ...
def estimate_capture(scenario: Scenario | str) -> int: ...
def estimate_memory(scenario: Scenario | str) -> int: ...
def estimate_time(scenario: Scenario | str) -> float: ...
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
def load_stack(file: str) -> tuple[str, str, list[str]]: ...
def loaded_stacks() -> list[tuple[str, str, list[str]]]: ...
def stack_checks() -> list[tuple[str, str]]: ...
def check_stack(name: str, controller: str, what: str, pauses: bool) -> tuple[bool, str]: ...
