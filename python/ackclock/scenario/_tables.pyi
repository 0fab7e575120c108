"""The types of the tables that the engine describes. Written by `make docs`: change the mechanism, not this file."""

from typing import Literal, TypeAlias

from ackclock.scenario._described import Described

class DropTail(Described):
    """First in, first out; an arrival that finds the queue full is dropped."""

    kind: Literal["drop-tail"]
    limit: str | None = None
    """Packets, bytes or multiples of the bandwidth-delay product; absent: unlimited."""

class NetemLimit(Described):
    """The limit of Linux netem: packets in the delay line count too, and one of several segments (`tso`) counts once; elsewhere it counts as so many."""

    kind: Literal["netem-limit"]
    limit: str
    """Packets or multiples of the bandwidth-delay product."""

class Codel(Described):
    """CoDel (RFC 8289): drops by the time that packets waited."""

    kind: Literal["codel"]
    limit: str | None = None
    """Packets or multiples of the bandwidth-delay product; absent: unlimited."""
    target: str = "5 ms"
    """Acceptable standing wait."""
    interval: str = "100 ms"
    """How long the wait may exceed the target; of the order of a worst-case RTT."""
    ecn: bool = False
    """Mark packets that can be marked instead of dropping them."""

class FqCodel(Described):
    """FQ-CoDel (RFC 8290): a queue for each connection, served in turn, each under CoDel.

    Beyond the limit, which all queues share, the one with the most bytes loses the packet at its head.
    """

    kind: Literal["fq-codel"]
    limit: str | None = None
    """Packets or multiples of the bandwidth-delay product; absent: unlimited."""
    target: str = "5 ms"
    """Acceptable standing wait."""
    interval: str = "100 ms"
    """How long the wait may exceed the target; of the order of a worst-case RTT."""
    ecn: bool = False
    """Mark packets that can be marked instead of dropping them."""
    queues: int = 1024
    """Number of queues, over which connections are spread by a hash (RFC 8290 §5.2)."""
    quantum: str = "1514 bytes"
    """What a queue may send in one round: credit for each (§5.2)."""

class Pie(Described):
    """PIE (RFC 8033): drops arrivals at random, so that the queueing delay stays near a reference."""

    kind: Literal["pie"]
    limit: str | None = None
    """Packets or multiples of the bandwidth-delay product; absent: unlimited."""
    target: str = "15 ms"
    """Queueing delay aimed at (QDELAY_REF, §4.1)."""
    update: str = "15 ms"
    """Interval at which the drop probability is adjusted (T_UPDATE, §4.2)."""
    max_burst: str = "150 ms"
    """Time for which a burst is let through (MAX_BURST, §4.4)."""
    ecn: bool = False
    """Mark packets that can be marked instead of dropping them, while the drop probability is at most 10 % (§5.1)."""

class Threshold(Described):
    """Marks every packet that arrives while at least `mark` wait (DCTCP's switch); what cannot be marked passes."""

    kind: Literal["threshold"]
    mark: str
    """Packets that wait from which on arrivals are marked: packets or multiples of the bandwidth-delay product."""
    limit: str | None = None
    """Packets or multiples of the bandwidth-delay product; absent: unlimited."""

class Red(Described):
    """RED (Floyd and Jacobson 1993), gentle: drops at random as the mean queue grows."""

    kind: Literal["red"]
    limit: str
    """Packets or multiples of the bandwidth-delay product."""
    min: str
    """Mean queue at which drops begin (min_th)."""
    max: str
    """Mean queue at which the drop probability reaches `max_p` (max_th); above it the probability rises to 1 at twice `max`."""
    max_p: float | str = 0.1
    """Drop probability at `max`."""
    weight: float | str = 0.002
    """Weight of one arrival in the mean (w_q)."""
    ecn: bool = False
    """Mark packets that can be marked instead of dropping them."""

class Choke(Described):
    """CHOKe (Pan, Prabhakar and Psounis 2000): RED, and an arrival that meets a packet of its own connection in a random place of the queue is dropped together with it."""

    kind: Literal["choke"]
    limit: str
    """Packets or multiples of the bandwidth-delay product."""
    min: str
    """Mean queue at which comparisons and drops begin (min_th)."""
    max: str
    """Mean queue at which the drop probability reaches `max_p` (max_th); above it every arrival is dropped."""
    max_p: float | str = 0.1
    """Drop probability at `max`."""
    weight: float | str = 0.002
    """Weight of one arrival in the mean (w_q)."""

class Cake(Described):
    """CAKE (Høiland-Jørgensen, Täht and Morton 2018), of a real kernel only: the simulator refuses it."""

    kind: Literal["cake"]
    rtt: str = "100 ms"
    """Round-trip time to expect."""
    limit: str | None = None
    """Memory; absent: the kernel's own choice."""

Queue: TypeAlias = DropTail | NetemLimit | Codel | FqCodel | Pie | Threshold | Red | Choke | Cake

__all__ = [
    "Cake",
    "Choke",
    "Codel",
    "DropTail",
    "FqCodel",
    "NetemLimit",
    "Pie",
    "Red",
    "Threshold",
]
