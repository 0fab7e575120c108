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
    "contract",
    "controller_options",
    "cpu_time",
    "describe_quantity",
    "dimensions",
    "end_with_parent",
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
    "prove",
    "prove_case",
    "prove_tasks",
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
    "share_calls",
    "shortcuts",
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
    def reads(self) -> list[str]:
        """Names of the files read by its controllers."""
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
    duplicate: int = 0,
    corrupt: int = 0,
    jitter: Mapping[str, Any] | None = None,
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
    cwnd_cnt: float
    """Segments acknowledged since cwnd last grew by one of them; 0 when a reduction begins."""
    @property
    def cwnd_clamp(self) -> int:
        """The most that cwnd may grow to, segments."""
    @property
    def prior_cwnd(self) -> int:
        """The window at the last reduction, segments."""
    @property
    def in_slow_start(self) -> bool:
        """Whether cwnd is below ssthresh."""

# written by tools/contract.py: begin
@final
class Rate:
    """A sample of the delivery rate: times in seconds, counts in segments."""

    @property
    def delivered(self) -> int:
        """Segments delivered over `interval`: those of a whole flight, not only of this ACK."""
    @property
    def interval(self) -> float:
        """Length of the sample: the larger of `send_elapsed` and `ack_elapsed`. Zero if the sample is invalid because it is shorter than the minimum RTT, which only an incorrect ACK can cause."""
    @property
    def send_elapsed(self) -> float:
        """Time over which the delivered segments were sent."""
    @property
    def ack_elapsed(self) -> float:
        """Time over which the delivered segments were acknowledged."""
    @property
    def prior_delivered(self) -> int:
        """Delivered count of the connection when the newest segment that the ACK covers was sent (P.delivered)."""
    @property
    def prior_time(self) -> float:
        """Time of the connection's last delivery when that segment was sent (P.delivered_time)."""
    @property
    def total_delivered(self) -> int:
        """Delivered count of the connection now (C.delivered)."""
    @property
    def total_lost(self) -> int:
        """Segments marked lost on the connection; a segment marked twice counts twice (C.lost)."""
    @property
    def delivered_ce(self) -> int:
        """Segments of `delivered` that carried a mark."""
    @property
    def lost(self) -> int:
        """Segments marked lost between that segment's transmission and now (RS.lost)."""
    @property
    def tx_in_flight(self) -> int:
        """Segments in flight just after that segment was sent, including the segment itself (RS.tx_in_flight)."""
    @property
    def is_app_limited(self) -> bool:
        """The application, not the window, limited the sender when that segment was sent."""
    @property
    def is_retrans(self) -> bool:
        """Whether that segment was a retransmission."""
    @property
    def is_ack_delayed(self) -> bool:
        """The ACK may have been delayed by a delayed-ACK timer: it covers a single segment that is shorter than SMSS."""
    @property
    def is_probe_ack(self) -> bool:
        """The ACK covers the end of a tail loss probe that retransmitted old data; whether the original or the probe arrived is not known yet."""

@final
class Ack:
    """One ACK: times in seconds, counts in segments unless stated otherwise."""

    @property
    def now(self) -> float:
        """Time of arrival."""
    @property
    def newly_acked(self) -> int:
        """Segments delivered by this ACK, before loss detection: cumulatively acknowledged or newly SACKed, each once."""
    @property
    def newly_acked_ce(self) -> int:
        """Delivered segments to which a congestion echo applies: with accurate ECN the newly reported marks, otherwise all segments if the ACK carries ECE."""
    @property
    def since_sent(self) -> int:
        """Segments delivered since the newest segment that this ACK covers was sent; zero if delivery rates are not kept."""
    @property
    def covered(self) -> int:
        """Segments newly covered by the cumulative ACK, including those SACKed before. At the end of a recovery far more than `newly_acked`."""
    @property
    def sacked(self) -> int:
        """SACKed segments above the cumulative ACK."""
    @property
    def acked_bytes(self) -> int:
        """Bytes by which the cumulative ACK advanced. The value jumps at the end of a recovery."""
    @property
    def rtt(self) -> float | None:
        """RTT of the newest segment that this ACK covers, cumulatively or by SACK, or of the echoed timestamp if a covered segment was retransmitted; absent if the ACK gives no sample."""
    @property
    def srtt(self) -> float:
        """Smoothed RTT; zero before the first sample."""
    @property
    def min_rtt(self) -> float:
        """Minimum RTT of the connection so far; infinite before the first sample."""
    @property
    def prior_in_flight(self) -> int:
        """Segments in flight before this ACK."""
    @property
    def left_in_flight(self) -> int:
        """Segments in flight after this ACK, before loss detection."""
    @property
    def snd_una(self) -> int:
        """First unacknowledged offset after this ACK."""
    @property
    def snd_nxt(self) -> int:
        """Next offset to send."""
    @property
    def cwnd_limited(self) -> bool:
        """The window limited the sender since the last ACK (RFC 7661). A controller must not grow the window when this is false."""
    @property
    def window_held(self) -> bool:
        """cwnd itself held data back in this round trip or the previous one. Stricter than `cwnd_limited`, which in slow start requires only half of cwnd to be used."""
    @property
    def paced(self) -> bool:
        """The sender paces its packets."""
    @property
    def departs_in(self) -> float:
        """Time until the pacer allows the next segment to be sent; zero if it may be sent at once."""
    @property
    def smss(self) -> int:
        """Payload of a full segment, bytes."""
    @property
    def ece(self) -> bool:
        """The ACK echoes a congestion mark (ECE)."""
    @property
    def prior_state(self) -> str:
        """Congestion state before this ACK."""
    @property
    def is_dup(self) -> bool:
        """Duplicate ACK: it acknowledges nothing new, carries no data and does not change the window (RFC 5681 §2)."""
    @property
    def slow_path(self) -> bool:
        """The ACK has SACK blocks, a changed window or ECE: its header differs from the one that Linux's header prediction expects."""
    @property
    def acked(self) -> int:
        """Segments that count towards growth: those delivered, or 1 in a stack that counts ACKs."""
    @property
    def delivered(self) -> int:
        """Segments delivered: `newly_acked` and, without SACK, the segment that a duplicate ACK implies."""
    @property
    def delivered_ce(self) -> int:
        """Delivered segments that carried a mark: their exact number with exact or accurate ECN, otherwise all of them if the ACK carries ECE."""
    @property
    def newly_lost(self) -> int:
        """Segments newly marked lost, including lost retransmissions; 0 before loss detection."""
    @property
    def in_flight(self) -> int:
        """Segments in flight after the ACK, excluding those newly marked lost."""
    @property
    def ca_state(self) -> str:
        """Congestion state after this ACK; before loss detection, the state before this ACK."""
    @property
    def rate(self) -> Rate | None:
        """Delivery rate sample; absent if delivery rates are not kept or this ACK gives no sample."""

# written by tools/contract.py: end

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
def contract() -> dict[str, Any]: ...
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

_Adversary = tuple[str, str, int, int, int | None, int | None]

def prove_tasks(
    scenario: Scenario | str,
    seed: int,
    adversary: _Adversary,
    split: int,
    shared: bool = True,
    controllers: Mapping[str, Callable[[], object]] | None = None,
) -> tuple[str | None, int]: ...
def prove(
    scenario: Scenario | str,
    seed: int,
    adversary: _Adversary,
    split: int,
    wanted: Sequence[int],
    threads: int,
    shared: bool = True,
    progress: Callable[[int], object] | None = None,
    controllers: Mapping[str, Callable[[], object]] | None = None,
    stop: Stop | None = None,
) -> dict[str, Any]: ...
def prove_case(
    scenario: Scenario | str,
    seed: int,
    adversary: _Adversary,
    answers: int,
    whole: bool = False,
    controllers: Mapping[str, Callable[[], object]] | None = None,
) -> dict[str, Any]: ...
def shortcuts() -> list[str]: ...
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
def end_with_parent() -> None: ...
def share_calls(page: Any) -> None: ...
def load_stack(file: str) -> tuple[str, str, list[str]]: ...
def loaded_stacks() -> list[tuple[str, str, list[str]]]: ...
def stack_checks() -> list[tuple[str, str]]: ...
def check_stack(name: str, controller: str, what: str, pauses: bool) -> tuple[bool, str]: ...
