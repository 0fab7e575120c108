"""The types of the tables that the engine describes. Written by `make docs`: change the mechanism, not this file.

Length: it is written, and grows with every mechanism.
"""

from typing import Literal, TypeAlias

from ackclock.scenario._base import Table
from ackclock.scenario._parts import FlowsBase, NetworkBase

class DropTail(Table):
    """First in, first out. A packet that arrives at a full queue is dropped."""

    kind: Literal["drop-tail"]
    limit: str | None
    """Maximum length of the queue: packets, bytes or multiples of the bandwidth-delay product. Default: unlimited."""
    def __init__(
        self,
        *,
        kind: Literal["drop-tail"],
        limit: str | None = ...,
    ) -> None: ...

class NetemLimit(Table):
    """Linux netem with its `limit`, below a shaper (HTB), as in a Mininet link; on a link with a delay and no rate, netem alone. The limit also counts packets in netem's delay line. A packet of several segments (`tso`) counts once here; in other queues it counts as that many packets. A packet leaves the queue when its transmission starts."""

    kind: Literal["netem-limit"]
    limit: str
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product."""
    def __init__(
        self,
        *,
        kind: Literal["netem-limit"],
        limit: str,
    ) -> None: ...

class Codel(Table):
    """CoDel (RFC 8289): drops packets when their sojourn time stays above a target."""

    kind: Literal["codel"]
    limit: str | None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str
    """Acceptable standing queue delay (TARGET)."""
    interval: str
    """Time for which the sojourn time may exceed the target before drops begin (INTERVAL); about a worst-case RTT."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""
    ce_threshold: str | None
    """Queueing delay beyond which an ECN-capable packet is marked, regardless of CoDel's decision (Linux `ce_threshold`). Default: off."""
    def __init__(
        self,
        *,
        kind: Literal["codel"],
        limit: str | None = ...,
        target: str = ...,
        interval: str = ...,
        ecn: bool = ...,
        ce_threshold: str | None = ...,
    ) -> None: ...

class FqCodel(Table):
    """FQ-CoDel (RFC 8290): one queue per connection, served in turn, each managed by CoDel.

    All queues share the limit. When it is exceeded, the queue with the most bytes drops the packet at its head.
    """

    kind: Literal["fq-codel"]
    limit: str | None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str
    """Acceptable standing queue delay (TARGET)."""
    interval: str
    """Time for which the sojourn time may exceed the target before drops begin (INTERVAL); about a worst-case RTT."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""
    queues: int
    """Number of queues; a hash assigns each connection to one (RFC 8290 §5.2)."""
    quantum: str
    """Bytes that a queue may send in one round (§5.2)."""
    ce_threshold: str | None
    """Queueing delay beyond which an ECN-capable packet is marked, regardless of CoDel's decision (Linux `ce_threshold`). Default: off."""
    ce_threshold_for: Literal["l4s", "any-ect"]
    """Packets that `ce_threshold` marks: those with ECT(1) or CE ("l4s"), or all ECN-capable ones (Linux `ce_threshold_selector` 1 with mask 3, or none)."""
    def __init__(
        self,
        *,
        kind: Literal["fq-codel"],
        limit: str | None = ...,
        target: str = ...,
        interval: str = ...,
        ecn: bool = ...,
        queues: int = ...,
        quantum: str = ...,
        ce_threshold: str | None = ...,
        ce_threshold_for: Literal["l4s", "any-ect"] = ...,
    ) -> None: ...

class FqPie(Table):
    """FQ-PIE (Linux `fq_pie`): one queue per connection, served in turn, each managed by PIE.

    All queues share the limit. When it is exceeded, the arriving packet is dropped.
    """

    kind: Literal["fq-pie"]
    limit: str | None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str
    """Reference for the queueing delay of each queue."""
    update: str
    """Interval at which drop probabilities are adjusted."""
    alpha: int
    """Gain for the distance of the delay from its reference, in sixteenths per second."""
    beta: int
    """Gain for the growth of the delay, in sixteenths per second."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them while the drop probability is at most `ecn_prob`."""
    ecn_prob: int
    """Maximum drop probability at which packets are marked, percent."""
    queues: int
    """Number of queues; a hash assigns each connection to one."""
    quantum: str
    """Bytes that a queue may send in one round."""
    def __init__(
        self,
        *,
        kind: Literal["fq-pie"],
        limit: str | None = ...,
        target: str = ...,
        update: str = ...,
        alpha: int = ...,
        beta: int = ...,
        ecn: bool = ...,
        ecn_prob: int = ...,
        queues: int = ...,
        quantum: str = ...,
    ) -> None: ...

class Pie(Table):
    """PIE (RFC 8033): drops arriving packets at random to keep the queueing delay near a reference."""

    kind: Literal["pie"]
    limit: str | None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str
    """Reference for the queueing delay (QDELAY_REF, §4.1)."""
    update: str
    """Interval at which the drop probability is adjusted (T_UPDATE, §4.2)."""
    max_burst: str
    """Length of a burst that passes without drops (MAX_BURST, §4.4)."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them while the drop probability is at most 10 % (§5.1)."""
    def __init__(
        self,
        *,
        kind: Literal["pie"],
        limit: str | None = ...,
        target: str = ...,
        update: str = ...,
        max_burst: str = ...,
        ecn: bool = ...,
    ) -> None: ...

class Threshold(Table):
    """Marks every packet that arrives while at least `mark` packets wait, as a DCTCP switch does. Packets that are not ECN-capable are not affected."""

    kind: Literal["threshold"]
    mark: str
    """Minimum length of the queue at which arriving packets are marked: packets or multiples of the bandwidth-delay product."""
    limit: str | None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    def __init__(
        self,
        *,
        kind: Literal["threshold"],
        mark: str,
        limit: str | None = ...,
    ) -> None: ...

class Red(Table):
    """Gentle RED (Floyd and Jacobson 1993): drops packets with a probability that rises with the mean queue length."""

    kind: Literal["red"]
    limit: str
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product."""
    min: str
    """Mean queue length at which drops begin (min_th)."""
    max: str
    """Mean queue length at which the drop probability reaches `max_p` (max_th). Above it the probability rises linearly, to 1 at twice `max`."""
    max_p: float | str
    """Drop probability at a mean queue of `max`."""
    weight: float | str
    """Weight of one arrival in the moving average of the queue length (w_q)."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""
    def __init__(
        self,
        *,
        kind: Literal["red"],
        limit: str,
        min: str,
        max: str,
        max_p: float | str = ...,
        weight: float | str = ...,
        ecn: bool = ...,
    ) -> None: ...

class LinuxRed(Table):
    """RED as in Linux: counts bytes, signals every packet above `max`, and can adapt its probability. A signal is a mark or a drop."""

    kind: Literal["linux-red"]
    limit: str
    """Maximum length of the queue."""
    min: str | None
    """Mean queue length at which signals begin. Default: a third of `max`."""
    max: str | None
    """Mean queue length above which every packet is signalled. Default: a quarter of `limit`."""
    probability: float | str
    """Probability of a signal at a mean queue of `max`; with `adaptive`, its initial value."""
    avpkt: str
    """Assumed packet size. The weight of the moving average and the duration of idle periods in packets are computed from it."""
    burst: int | None
    """Burst of packets that passes without a signal; the weight of the moving average is computed from it. Default: (2 min + max) / (3 avpkt)."""
    bandwidth: str | None
    """Rate at which the mean decays while the queue is empty. Default: the mean does not decay, as below a shaper (HTB), which never requests a packet from an empty queue."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""
    harddrop: bool
    """With `ecn`: above `max`, also drop ECN-capable packets."""
    nodrop: bool
    """With `ecn`: RED does not drop packets that are not ECN-capable."""
    adaptive: bool
    """Adjust the probability every 504 ms to keep the mean queue between 40 and 60 % of the way from `min` to `max`."""
    def __init__(
        self,
        *,
        kind: Literal["linux-red"],
        limit: str,
        min: str | None = ...,
        max: str | None = ...,
        probability: float | str = ...,
        avpkt: str = ...,
        burst: int | None = ...,
        bandwidth: str | None = ...,
        ecn: bool = ...,
        harddrop: bool = ...,
        nodrop: bool = ...,
        adaptive: bool = ...,
    ) -> None: ...

class Choke(Table):
    """CHOKe (Pan, Prabhakar and Psounis 2000): RED that penalises the connections that fill the queue. Each arriving packet is compared with a randomly chosen one in the queue. If both belong to the same connection, both are dropped."""

    kind: Literal["choke"]
    limit: str
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product."""
    min: str
    """Mean queue length at which comparisons and drops begin (min_th)."""
    max: str
    """Mean queue length at which the drop probability reaches `max_p` (max_th). Above it every arriving packet is dropped."""
    max_p: float | str
    """Drop probability at a mean queue of `max`."""
    weight: float | str
    """Weight of one arrival in the moving average of the queue length (w_q)."""
    def __init__(
        self,
        *,
        kind: Literal["choke"],
        limit: str,
        min: str,
        max: str,
        max_p: float | str = ...,
        weight: float | str = ...,
    ) -> None: ...

class Dualpi2(Table):
    """DualPI2 (RFC 9332, Linux `sch_dualpi2`): a queue for L4S traffic, coupled to a queue for all other traffic.

    It marks ECN-capable packets and drops others. Its rate is that of the link.
    """

    kind: Literal["dualpi2"]
    limit: str | None
    """Maximum length of both queues together: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str
    """Target delay of the C queue (RFC 9332: the Classic queue)."""
    update: str
    """Interval at which the base probability is adjusted (Tupdate)."""
    alpha: float
    """Integral gain, 1/s per second of delay; rounded to a multiple of 1/256."""
    beta: float
    """Proportional gain, 1/s per second of delay; rounded to a multiple of 1/256."""
    coupling: int
    """Coupling factor k."""
    step: str
    """Queueing delay beyond which a packet of the L queue is marked (RFC 9332: the Low-Latency queue)."""
    step_from: int
    """Apply `step` only to packets that found at least this many packets in the L queue on arrival."""
    classic_share: float
    """Minimum share of the link for the C queue while both queues have packets; in steps of 1 %."""
    classifier: Literal["l4s", "any-ect"]
    """Packets that are assigned to the L queue: those with ECT(1) or CE ("l4s"), or all ECN-capable ones ("any-ect")."""
    overload: Literal["drop", "overflow"]
    """Behaviour when `coupling` times the base probability exceeds 1. "drop": both queues drop packets, and the L queue marks those that it does not drop. "overflow": the L queue marks every packet and drops none below the limit."""
    def __init__(
        self,
        *,
        kind: Literal["dualpi2"],
        limit: str | None = ...,
        target: str = ...,
        update: str = ...,
        alpha: float = ...,
        beta: float = ...,
        coupling: int = ...,
        step: str = ...,
        step_from: int = ...,
        classic_share: float = ...,
        classifier: Literal["l4s", "any-ect"] = ...,
        overload: Literal["drop", "overflow"] = ...,
    ) -> None: ...

class Cake(Table):
    """CAKE (Høiland-Jørgensen, Täht and Morton 2018): a shaper, fairness between hosts and flows, and the AQM COBALT."""

    kind: Literal["cake"]
    rtt: str
    """Expected round-trip time; the intervals of COBALT follow from it."""
    limit: str | None
    """Maximum memory of the queued packets as the kernel counts it: payload plus 832 bytes per packet. Default: four times the product of `bandwidth` and `rtt`, at least 4 MiB; without `bandwidth`, unlimited."""
    bandwidth: str | None
    """Rate of CAKE's shaper. Default: no shaper (tc's `unlimited`); the link limits the rate."""
    overhead: int | None
    """Bytes that the shaper adds to each IP packet. Default: the network's `framing`. Values of tc's keywords: ethernet 38, docsis 18, pppoe-ptm 30, bridged-ptm 22, pppoe-vcmux 32, ipoa-vcmux 8, conservative 48."""
    mpu: int
    """Minimum size that the shaper assumes for a packet, bytes (ethernet 84, docsis 64)."""
    framing: Literal["noatm", "atm", "ptm"]
    """Compensation for the line's encoding: ATM (48 bytes of data occupy a cell of 53), PTM (64 bytes occupy 65), or none."""
    isolation: Literal["flows", "dual-srchost", "dual-dsthost", "triple-isolate"]
    """Parties among which the rate is shared equally. Hosts are those of the scenario's `hosts`; endpoints without a host count as one host per group of flows."""
    def __init__(
        self,
        *,
        kind: Literal["cake"],
        rtt: str = ...,
        limit: str | None = ...,
        bandwidth: str | None = ...,
        overhead: int | None = ...,
        mpu: int = ...,
        framing: Literal["noatm", "atm", "ptm"] = ...,
        isolation: Literal["flows", "dual-srchost", "dual-dsthost", "triple-isolate"] = ...,
    ) -> None: ...

class NoLoss(Table):
    """No packet is lost."""

    kind: Literal["none"]
    def __init__(
        self,
        *,
        kind: Literal["none"],
    ) -> None: ...

class Bernoulli(Table):
    """Each packet is lost with the same probability, independently of the others."""

    kind: Literal["bernoulli"]
    p: float | str
    """Probability that a packet is lost."""
    applies_to: Literal["all", "syn", "data", "originals"]
    """Packets to which the model applies; others pass and are not counted."""
    def __init__(
        self,
        *,
        kind: Literal["bernoulli"],
        p: float | str,
        applies_to: Literal["all", "syn", "data", "originals"] = ...,
    ) -> None: ...

class GilbertElliott(Table):
    """Gilbert-Elliott model: two states, good and bad, each with its own loss probability."""

    kind: Literal["gilbert-elliott"]
    p: float | str
    """Probability, per packet, of a change from the good to the bad state."""
    r: float | str
    """Probability, per packet, of a change from the bad to the good state."""
    loss_bad: float | str
    """Loss probability in the bad state."""
    loss_good: float | str
    """Loss probability in the good state."""
    applies_to: Literal["all", "syn", "data", "originals"]
    """Packets to which the model applies; others pass and are not counted."""
    def __init__(
        self,
        *,
        kind: Literal["gilbert-elliott"],
        p: float | str,
        r: float | str,
        loss_bad: float | str = ...,
        loss_good: float | str = ...,
        applies_to: Literal["all", "syn", "data", "originals"] = ...,
    ) -> None: ...

class GilbertElliottInTime(Table):
    """Gilbert-Elliott model in time: the duration of each state is drawn, independently of the packets."""

    kind: Literal["gilbert-elliott-in-time"]
    good: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Time spent in the good state: a duration, or a distribution of durations. Exponential distributions for both states give a Markov chain."""
    bad: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Time spent in the bad state: a duration, or a distribution of durations."""
    loss_bad: float | str
    """Loss probability in the bad state."""
    loss_good: float | str
    """Loss probability in the good state."""
    applies_to: Literal["all", "syn", "data", "originals"]
    """Packets to which the model applies; others pass."""
    def __init__(
        self,
        *,
        kind: Literal["gilbert-elliott-in-time"],
        good: str | Constant | Uniform | Lognormal | Exponential | Choice,
        bad: str | Constant | Uniform | Lognormal | Exponential | Choice,
        loss_bad: float | str = ...,
        loss_good: float | str = ...,
        applies_to: Literal["all", "syn", "data", "originals"] = ...,
    ) -> None: ...

class Periodic(Table):
    """Every n-th packet is lost."""

    kind: Literal["periodic"]
    every: int
    """The number n: one packet in n is lost."""
    offset: int
    """Number of packets that pass before counting begins."""
    applies_to: Literal["all", "syn", "data", "originals"]
    """Packets to which the model applies; others pass and are not counted."""
    def __init__(
        self,
        *,
        kind: Literal["periodic"],
        every: int,
        offset: int = ...,
        applies_to: Literal["all", "syn", "data", "originals"] = ...,
    ) -> None: ...

class Listed(Table):
    """Exactly the listed packets are lost, numbered in their order of arrival at the link."""

    kind: Literal["listed"]
    packets: tuple[int, ...]
    """Numbers of the lost packets, counted from 1. With `applies_to = "syn"`, 1 is the first SYN or SYN-ACK."""
    applies_to: Literal["all", "syn", "data", "originals"]
    """Packets to which the model applies; others pass and are not counted."""
    def __init__(
        self,
        *,
        kind: Literal["listed"],
        packets: tuple[int, ...],
        applies_to: Literal["all", "syn", "data", "originals"] = ...,
    ) -> None: ...

class Scripted(Table):
    """Exactly the listed transmissions of data segments are lost."""

    kind: Literal["scripted"]
    drops: tuple[Drop, ...]
    """The transmissions that are lost."""
    def __init__(
        self,
        *,
        kind: Literal["scripted"],
        drops: tuple[Drop, ...],
    ) -> None: ...

class Policer(Table):
    """A token-bucket policer: it drops packets that exceed a rate, and delays none."""

    kind: Literal["policer"]
    rate: str
    """Rate at which tokens arrive. IP packets and framing consume them."""
    bucket: str
    """Capacity of the bucket."""
    initial: str | None
    """Bytes in the bucket at the start. Default: the bucket is full."""
    per: Literal["link", "flow"]
    """One bucket for the whole link, or one for each flow."""
    def __init__(
        self,
        *,
        kind: Literal["policer"],
        rate: str,
        bucket: str,
        initial: str | None = ...,
        per: Literal["link", "flow"] = ...,
    ) -> None: ...

class Load(Table):
    """Loss that grows with the load, the rate at which packets arrive: linearly, from `idle` at no load to `full` at the load `rate` and above."""

    kind: Literal["load"]
    rate: str
    """Load at which the loss probability reaches `full`."""
    full: float | str
    """Loss probability at this load and above."""
    idle: float | str
    """Loss probability without load."""
    window: str
    """Time over which the load is averaged: earlier arrivals count exponentially less."""
    def __init__(
        self,
        *,
        kind: Literal["load"],
        rate: str,
        full: float | str,
        idle: float | str = ...,
        window: str = ...,
    ) -> None: ...

class Schedule(Table):
    """Rate, delay and loss change at listed times, once or in a cycle. Until the first change, the link's own keys apply."""

    kind: Literal["schedule"]
    steps: tuple[Step, ...]
    """The changes, in chronological order."""
    repeat: str | None
    """Period of the cycle. At the end of each period the link's own keys apply again. Default: the last step applies until the end of the run."""
    def __init__(
        self,
        *,
        kind: Literal["schedule"],
        steps: tuple[Step, ...],
        repeat: str | None = ...,
    ) -> None: ...

class Random(Table):
    """Rate, delay and loss are drawn anew at fixed intervals. A quantity without a distribution keeps the link's own value."""

    kind: Literal["random"]
    every: str
    """Length of the intervals."""
    rate: Constant | Uniform | Lognormal | Exponential | Choice | None
    """Rate."""
    delay: Constant | Uniform | Lognormal | Exponential | Choice | None
    """One-way propagation delay. Packets keep their order when it decreases."""
    loss: Constant | Uniform | Lognormal | Exponential | Choice | None
    """Probability that an arriving packet is lost, in addition to the link's own `loss`."""
    def __init__(
        self,
        *,
        kind: Literal["random"],
        every: str,
        rate: Constant | Uniform | Lognormal | Exponential | Choice | None = ...,
        delay: Constant | Uniform | Lognormal | Exponential | Choice | None = ...,
        loss: Constant | Uniform | Lognormal | Exponential | Choice | None = ...,
    ) -> None: ...

class Mahimahi(Table):
    """A Mahimahi trace, replayed exactly and in a loop. The link must not have a `rate`."""

    kind: Literal["mahimahi"]
    file: str
    """File with the trace; each line gives a millisecond at which one packet may be sent. The path is relative to the scenario file."""
    opportunity: str
    """Bytes that may be sent at each of these times, including framing."""
    def __init__(
        self,
        *,
        kind: Literal["mahimahi"],
        file: str,
        opportunity: str = ...,
    ) -> None: ...

class Dummynet(Table):
    """A pipe of FreeBSD's dummynet: at each clock tick it releases the packets that the rate allows for one tick."""

    kind: Literal["dummynet"]
    tick: str
    """Period of the clock (1 ms for `kern.hz` = 1000)."""
    keeps_credit: bool
    """Whether credit unused at a tick is available to packets that arrive before the next tick (FreeBSD 8.1 and later) or is lost (earlier versions)."""
    def __init__(
        self,
        *,
        kind: Literal["dummynet"],
        tick: str = ...,
        keeps_credit: bool = ...,
    ) -> None: ...

class TokenBucket(Table):
    """A token bucket like that of Linux TBF (`tbf rate RATE burst BURST limit LIMIT`): after a pause, up to `burst` bytes are sent at once. The link's `rate` fills the bucket, which is full at the start. The limit of the link's queue takes the place of TBF's limit."""

    kind: Literal["token-bucket"]
    burst: str
    """Size of the bucket."""
    def __init__(
        self,
        *,
        kind: Literal["token-bucket"],
        burst: str,
    ) -> None: ...

class Bulk(Table):
    """Always has data to send, until the flow stops."""

    kind: Literal["bulk"]
    def __init__(
        self,
        *,
        kind: Literal["bulk"],
    ) -> None: ...

class Transfer(Table):
    """Sends a number of bytes, then closes the connection."""

    kind: Literal["transfer"]
    bytes: str
    """Number of bytes."""
    def __init__(
        self,
        *,
        kind: Literal["transfer"],
        bytes: str,
    ) -> None: ...

class Fetch(Table):
    """A client at the receiving end fetches responses, each over a new connection: connect, request, response, close."""

    kind: Literal["fetch"]
    bytes: str
    """Size of the response."""
    request: str
    """Size of the request."""
    count: int
    """Number of successive fetches."""
    pause: str
    """Time from the last byte of one response to the start of the next fetch."""
    timeout: str | None
    """Time after which the client abandons a fetch. Default: never."""
    common_random_numbers: bool
    """Make the losses of a fetch depend only on the seed and the number of the fetch. Compared scenarios then have the same losses, fetch by fetch."""
    def __init__(
        self,
        *,
        kind: Literal["fetch"],
        bytes: str,
        request: str = ...,
        count: int = ...,
        pause: str = ...,
        timeout: str | None = ...,
        common_random_numbers: bool = ...,
    ) -> None: ...

class Throttled(Table):
    """Writes blocks at a given rate, as video servers do."""

    kind: Literal["throttled"]
    rate: str
    """Rate at which the application writes."""
    chunk: str
    """Size of one write."""
    initial: str
    """Bytes written at once when the flow starts."""
    bytes: str | None
    """Total number of bytes. Default: the application writes until the flow stops."""
    def __init__(
        self,
        *,
        kind: Literal["throttled"],
        rate: str,
        chunk: str,
        initial: str = ...,
        bytes: str | None = ...,
    ) -> None: ...

class Population(Table):
    """Clients, each alone on its own path, fetch one response at a time. Each client draws the properties of its path and the size of its responses once."""

    kind: Literal["population"]
    clients: int
    """Number of clients."""
    requests: int
    """Number of fetches of each client, each over a new connection."""
    rtt: Constant | Uniform | Lognormal | Exponential | Choice
    """Round-trip propagation delay of a client's path."""
    rate: Constant | Uniform | Lognormal | Exponential | Choice
    """Bottleneck rate of a client's path."""
    loss: Constant | Uniform | Lognormal | Exponential | Choice
    """Loss probability in each direction of a client's path."""
    bytes: Constant | Uniform | Lognormal | Exponential | Choice
    """Size of a client's responses."""
    queue: str
    """Size of the bottleneck queue of each client."""
    throttle: float | None
    """After an initial burst, the server writes at this multiple of the client's rate. Default: it writes as fast as it can."""
    def __init__(
        self,
        *,
        kind: Literal["population"],
        clients: int,
        requests: int = ...,
        rtt: Constant | Uniform | Lognormal | Exponential | Choice,
        rate: Constant | Uniform | Lognormal | Exponential | Choice,
        loss: Constant | Uniform | Lognormal | Exponential | Choice,
        bytes: Constant | Uniform | Lognormal | Exponential | Choice,
        queue: str = ...,
        throttle: float | None = ...,
    ) -> None: ...

class ConstantRate(Table):
    """Sends UDP datagrams of one size at a constant rate, until the flow stops."""

    kind: Literal["constant-rate"]
    rate: str
    """Rate of the IP packets, including their headers."""
    payload: str
    """UDP payload of each datagram."""
    def __init__(
        self,
        *,
        kind: Literal["constant-rate"],
        rate: str,
        payload: str = ...,
    ) -> None: ...

class OnOff(Table):
    """Sends UDP datagrams at a constant rate in on-periods that are separated by silence. The flow begins with an on-period."""

    kind: Literal["on-off"]
    rate: str
    """Rate of the IP packets during an on-period, including their headers."""
    on: str
    """Mean length of an on-period."""
    off: str
    """Mean length of a silence."""
    periods: Literal["exponential", "fixed"]
    """Distribution of both lengths: exponential, or constant at the mean."""
    payload: str
    """UDP payload of each datagram."""
    def __init__(
        self,
        *,
        kind: Literal["on-off"],
        rate: str,
        on: str,
        off: str,
        periods: Literal["exponential", "fixed"] = ...,
        payload: str = ...,
    ) -> None: ...

class Voice(Table):
    """A telephone call over UDP. The defaults are those of G.711 over RTP: 160 bytes of speech every 20 ms."""

    kind: Literal["voice"]
    interval: str
    """Time between datagrams."""
    payload: str
    """UDP payload of each datagram: speech and RTP header."""
    def __init__(
        self,
        *,
        kind: Literal["voice"],
        interval: str = ...,
        payload: str = ...,
    ) -> None: ...

class Transactions(Table):
    """Clients arrive at the receiving end. Each opens a connection, requests responses, and closes the connection.

    Each flow of the group is a pair of client and server. `arrivals`, `count` and `max_open` apply to the whole group. The values that the k-th transaction of a flow draws depend only on the seed, so compared scenarios have the same clients.
    """

    kind: Literal["transactions"]
    bytes: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Size of a response: a size, or a distribution of sizes."""
    request: str
    """Size of a request."""
    arrivals: Poisson | Regular | At
    """Arrival process of the clients."""
    batch: int
    """Number of connections that a client opens at once."""
    requests: int
    """Number of requests on each connection, one after another (keep-alive)."""
    think: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Time from the end of a response to the next request: a duration, or a distribution of durations."""
    objects: int | None
    """A Web page: number of responses that the client fetches over all its connections; each connection that becomes free fetches the next one. Replaces `requests`."""
    together: bool
    """Incast: a client sends its requests on all its connections at the same time, and the next ones when the last connection has its response."""
    count: int | None
    """Total number of connections; with one request each, this is the number of transactions. Default: clients arrive until the flows stop."""
    max_open: int | None
    """Maximum number of open connections. A client that arrives while this many are open is refused. Required for a load above 1."""
    initial_window_mix: tuple[InitialWindow, ...]
    """Initial windows from which connections draw, with probabilities. Default: all connections use `stack.initial_window`."""
    mix_by: Literal["transaction", "batch"]
    """Whether each connection draws an initial window ("transaction"), or each client draws one for all its connections ("batch")."""
    close: Literal["server", "client"]
    """Which side closes first: the server when it has written the last response, or the client when it has read it."""
    def __init__(
        self,
        *,
        kind: Literal["transactions"],
        bytes: str | Constant | Uniform | Lognormal | Exponential | Choice,
        request: str = ...,
        arrivals: Poisson | Regular | At,
        batch: int = ...,
        requests: int = ...,
        think: str | Constant | Uniform | Lognormal | Exponential | Choice = ...,
        objects: int | None = ...,
        together: bool = ...,
        count: int | None = ...,
        max_open: int | None = ...,
        initial_window_mix: tuple[InitialWindow, ...] = ...,
        mix_by: Literal["transaction", "batch"] = ...,
        close: Literal["server", "client"] = ...,
    ) -> None: ...

class Video(Table):
    """A video player at the receiving end fetches chunks over one connection and chooses the bitrate of each.

    The player requests chunks back to back until its buffer reaches the target, then requests one whenever the buffer has drained to the target. The size of a chunk relative to its bitrate depends only on the seed, the flow and the number of the chunk, so compared scenarios play the same video. Over PCC the request is a datagram in the reverse direction.
    """

    kind: Literal["video"]
    ladder: tuple[str, ...]
    """Bitrates to choose from, in ascending order."""
    chunk: str
    """Playing time of a chunk."""
    chunks: int | None
    """Number of chunks of the video. Default: the player fetches chunks until the flow stops."""
    buffer: str
    """Playing time that the player tries to keep in its buffer (the target)."""
    buffer_max: str | None
    """Maximum playing time in the buffer, at least one chunk more than `buffer`. Default: two chunks more than `buffer`."""
    startup: str | None
    """Playing time in the buffer at which playback starts, and resumes after a stall. Default: one chunk, or `buffer` if that is less."""
    request: str
    """Size of a request. Over PCC at most 1456 bytes, the payload of a datagram."""
    size_variation: float
    """Maximum deviation of a chunk's size from bitrate times length, as a share of it. Sizes are drawn uniformly."""
    adaptation: Festive | RateBased
    """Algorithm by which the player chooses a bitrate."""
    def __init__(
        self,
        *,
        kind: Literal["video"],
        ladder: tuple[str, ...],
        chunk: str = ...,
        chunks: int | None = ...,
        buffer: str = ...,
        buffer_max: str | None = ...,
        startup: str | None = ...,
        request: str = ...,
        size_variation: float = ...,
        adaptation: Festive | RateBased = ...,
    ) -> None: ...

class Bursts(Table):
    """Sends bursts that are separated by pauses over one connection. A pause begins when the previous burst is acknowledged."""

    kind: Literal["bursts"]
    bytes: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Size of a burst: a size, or a distribution of sizes."""
    pause: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Length of a pause: a duration, or a distribution of durations."""
    count: int | None
    """Number of bursts. Default: the flow sends bursts until it stops."""
    def __init__(
        self,
        *,
        kind: Literal["bursts"],
        bytes: str | Constant | Uniform | Lognormal | Exponential | Choice,
        pause: str | Constant | Uniform | Lognormal | Exponential | Choice,
        count: int | None = ...,
    ) -> None: ...

class Media(Table):
    """Sends video frames in real time over one connection."""

    kind: Literal["media"]
    fps: int
    """Frames per second."""
    group: int
    """Number of frames in a group of pictures. The first frame of a group does not depend on others."""
    first: str
    """Size of the first frame of a group."""
    other: str
    """Size of each other frame."""
    drop_late: str | None
    """When the oldest unacknowledged frame is older than this, the sender skips frames until the next group. Default: it skips none."""
    def __init__(
        self,
        *,
        kind: Literal["media"],
        fps: int = ...,
        group: int = ...,
        first: str,
        other: str,
        drop_late: str | None = ...,
    ) -> None: ...

class Writes(Table):
    """Writes listed blocks at listed times, then closes the connection."""

    kind: Literal["writes"]
    writes: tuple[Write, ...]
    """The blocks, in the order of their times."""
    def __init__(
        self,
        *,
        kind: Literal["writes"],
        writes: tuple[Write, ...],
    ) -> None: ...

class Conversation(Table):
    """A client at the receiving end and a server at the sending end exchange messages, step by step, over one connection.

    The client opens the connection, and closes it after the last step. A step begins when the previous step has arrived. Each message has a row in the table `conversations`. The values that a step draws depend only on the seed, the flow and the number of the step, so compared scenarios have the same conversation. Nagle's algorithm is on, the default of a socket; `stack.nodelay` turns it off.
    """

    kind: Literal["conversation"]
    steps: tuple[Turn, ...]
    """Steps of the conversation, in order."""
    repeat: int | None
    """Number of rounds through the steps. Default: the steps are repeated until the flow stops."""
    think: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Time from the arrival of the last step of a round to the first step of the next round: a duration, or a distribution of durations."""
    streams: int
    """Number of concurrent conversations on the connection. Their messages share its byte stream, in the order of the writes."""
    def __init__(
        self,
        *,
        kind: Literal["conversation"],
        steps: tuple[Turn, ...],
        repeat: int | None = ...,
        think: str | Constant | Uniform | Lognormal | Exponential | Choice = ...,
        streams: int = ...,
    ) -> None: ...

class Constant(Table):
    """Always the same value."""

    kind: Literal["constant"]
    value: str | float
    """The value with its unit; a probability may be a bare number."""
    def __init__(
        self,
        *,
        kind: Literal["constant"],
        value: str | float,
    ) -> None: ...

class Uniform(Table):
    """Uniform distribution between two values."""

    kind: Literal["uniform"]
    low: str | float
    """Minimum, with its unit; a probability may be a bare number."""
    high: str | float
    """Maximum, with its unit; a probability may be a bare number."""
    def __init__(
        self,
        *,
        kind: Literal["uniform"],
        low: str | float,
        high: str | float,
    ) -> None: ...

class Lognormal(Table):
    """Lognormal distribution."""

    kind: Literal["lognormal"]
    median: str | float
    """Median, with its unit; a probability may be a bare number."""
    sigma: float
    """Standard deviation of the natural logarithm."""
    def __init__(
        self,
        *,
        kind: Literal["lognormal"],
        median: str | float,
        sigma: float,
    ) -> None: ...

class Exponential(Table):
    """Exponential distribution."""

    kind: Literal["exponential"]
    mean: str | float
    """Mean, with its unit; a probability may be a bare number."""
    def __init__(
        self,
        *,
        kind: Literal["exponential"],
        mean: str | float,
    ) -> None: ...

class Choice(Table):
    """One of several values, all equally likely."""

    kind: Literal["choice"]
    values: tuple[str | float, ...]
    """The values with their units; probabilities may be bare numbers."""
    def __init__(
        self,
        *,
        kind: Literal["choice"],
        values: tuple[str | float, ...],
    ) -> None: ...

class Poisson(Table):
    """Clients arrive as a Poisson process; give its intensity as `rate` or as `load`."""

    kind: Literal["poisson"]
    rate: float | None
    """Clients per second, for all flows of the group together."""
    load: float | None
    """Offered load: the packets of all responses, each sent once, as a fraction of the bottleneck's rate."""
    load_counts: Literal["data", "all"]
    """Packets that `load` counts: only data packets, or also the SYN-ACK, FIN and two ACKs of each connection."""
    def __init__(
        self,
        *,
        kind: Literal["poisson"],
        rate: float | None = ...,
        load: float | None = ...,
        load_counts: Literal["data", "all"] = ...,
    ) -> None: ...

class Regular(Table):
    """Clients arrive at equal intervals, the first when the flow starts."""

    kind: Literal["periodic"]
    interval: str
    """Time from one client of a flow to the next."""
    def __init__(
        self,
        *,
        kind: Literal["periodic"],
        interval: str,
    ) -> None: ...

class At(Table):
    """Clients arrive at given times."""

    kind: Literal["at"]
    times: tuple[str, ...]
    """Times from the start of the flow, in ascending order."""
    def __init__(
        self,
        *,
        kind: Literal["at"],
        times: tuple[str, ...],
    ) -> None: ...

class Times(Table):
    """Periods with and without the processor alternate, each drawn from a distribution. The first on-period is shortened at random."""

    kind: Literal["times"]
    on: Constant | Uniform | Lognormal | Exponential | Choice
    """Length of a period with the processor."""
    off: Constant | Uniform | Lognormal | Exponential | Choice
    """Length of a period without the processor."""
    def __init__(
        self,
        *,
        kind: Literal["times"],
        on: Constant | Uniform | Lognormal | Exponential | Choice,
        off: Constant | Uniform | Lognormal | Exponential | Choice,
    ) -> None: ...

class Xen(Table):
    """A virtual machine under Xen's credit scheduler. It runs for one, two or three ticks of 10 ms, then stalls while each of its competitors runs for a slice of 30 ms."""

    kind: Literal["xen"]
    competitors: int
    """Number of other virtual machines that compete for the processor and are always busy."""
    def __init__(
        self,
        *,
        kind: Literal["xen"],
        competitors: int = ...,
    ) -> None: ...

class Fifo(Table):
    """Linux pfifo: first in, first out. A full queue refuses packets. TCP reacts to a refusal as to a congestion mark."""

    kind: Literal["fifo"]
    limit: int
    """Maximum number of packets. A packet of several segments counts once."""
    def __init__(
        self,
        *,
        kind: Literal["fifo"],
        limit: int = ...,
    ) -> None: ...

class Fq(Table):
    """Linux fq: one queue per connection, served in turn; packets wait until they are due. With fq, TCP paces with every controller, at its pacing rate, and fq delays the packets."""

    kind: Literal["fq"]
    limit: int
    """Maximum number of packets in all queues."""
    flow_limit: int
    """Maximum number of packets of a connection."""
    quantum: str
    """Bytes that a connection may send in one round."""
    initial_quantum: str
    """Bytes that a new connection may send in its first round."""
    refill_delay: str
    """A connection that was idle for this long gets a full quantum again."""
    max_rate: str | None
    """Maximum rate of a connection, whatever its pacing rate. Default: no maximum."""
    low_rate_threshold: str
    """For datagrams limited by `max_rate`: rate up to which each packet is paced individually. Above it, packets are paced in units of a quantum."""
    horizon: str
    """Maximum time until a packet is due. A packet due later is dropped, or its departure time is moved to the horizon."""
    horizon_drop: bool
    """Drop packets beyond the horizon; if false, they are sent at the horizon."""
    ce_threshold: str | None
    """Delay after the departure time beyond which an ECN-capable packet is marked. Default: no packet is marked."""
    timer_slack: str
    """Maximum delay of the timer, which lets it release several packets at once."""
    def __init__(
        self,
        *,
        kind: Literal["fq"],
        limit: int = ...,
        flow_limit: int = ...,
        quantum: str = ...,
        initial_quantum: str = ...,
        refill_delay: str = ...,
        max_rate: str | None = ...,
        low_rate_threshold: str = ...,
        horizon: str = ...,
        horizon_drop: bool = ...,
        ce_threshold: str | None = ...,
        timer_slack: str = ...,
    ) -> None: ...

class Festive(Table):
    """FESTIVE (CoNEXT 2012): harmonic mean of throughputs, one level at a time, delayed updates, randomised requests."""

    kind: Literal["festive"]
    window: int
    """Number of chunks over which the harmonic mean of the throughput is taken."""
    safety: float
    """Maximum bitrate as a multiple of the estimated throughput (p)."""
    alpha: float
    """Weight of efficiency relative to stability (alpha)."""
    horizon: int
    """Number of chunks over which switches are counted: with chunks of 4 s, the 20 s of the authors' slides."""
    randomised: bool
    """Draw the buffer level at which the player requests the next chunk at random around the target. If false, it is the target."""
    gradual: bool
    """Switch one level at a time, and up from level k only after k chunks at that level. If false, switch directly to the highest level that `safety` allows."""
    delayed: bool
    """Delay a switch until its gain in efficiency outweighs the instability that it adds."""
    def __init__(
        self,
        *,
        kind: Literal["festive"],
        window: int = ...,
        safety: float = ...,
        alpha: float = ...,
        horizon: int = ...,
        randomised: bool = ...,
        gradual: bool = ...,
        delayed: bool = ...,
    ) -> None: ...

class RateBased(Table):
    """Chooses the highest bitrate below the throughput of the last chunk, or below its moving average."""

    kind: Literal["rate-based"]
    weight: float
    """Weight of the last chunk in the moving average. 1 uses only the last chunk."""
    safety: float
    """Maximum bitrate as a multiple of the estimated throughput."""
    def __init__(
        self,
        *,
        kind: Literal["rate-based"],
        weight: float = ...,
        safety: float = ...,
    ) -> None: ...

class ClassicSlowStart(Table):
    """Slow start of RFC 5681: cwnd grows by one segment per acknowledged segment, until ssthresh or a loss."""

    kind: Literal["classic"]
    def __init__(
        self,
        *,
        kind: Literal["classic"],
    ) -> None: ...

class HyStart(Table):
    """HyStart as in Linux: slow start ends when an ACK train becomes long or the RTT rises."""

    kind: Literal["hystart"]
    ack_train: bool
    """Detect by the length of ACK trains (bit 0 of Linux `hystart_detect`)."""
    delay: bool
    """Detect by the increase of the RTT (bit 1 of Linux `hystart_detect`)."""
    low_window: int
    """Minimum cwnd for detection, segments (Linux `hystart_low_window`)."""
    ack_delta: str
    """Maximum spacing of the ACKs of a train, in whole microseconds (Linux `hystart_ack_delta_us`)."""
    def __init__(
        self,
        *,
        kind: Literal["hystart"],
        ack_train: bool = ...,
        delay: bool = ...,
        low_window: int = ...,
        ack_delta: str = ...,
    ) -> None: ...

class HyStartPlusPlus(Table):
    """HyStart++ (RFC 9406): an increase of the RTT slows down slow start and, if it persists, ends it."""

    kind: Literal["hystart++"]
    css_growth_divisor: int
    """Divisor of the growth after the increase of the RTT (CSS_GROWTH_DIVISOR)."""
    css_rounds: int
    """Number of rounds from the increase of the RTT to the end of slow start (CSS_ROUNDS)."""
    burst: int
    """Maximum growth per ACK of a sender without pacing, segments (L)."""
    def __init__(
        self,
        *,
        kind: Literal["hystart++"],
        css_growth_divisor: int = ...,
        css_rounds: int = ...,
        burst: int = ...,
    ) -> None: ...

class SearchSlowStart(Table):
    """SEARCH (draft-chung-ccwg-search-09): slow start ends when much less is delivered than was sent one RTT earlier."""

    kind: Literal["search"]
    drain: bool
    """At the end of slow start, reduce cwnd to the number of segments delivered during the last initial RTT, which drains the queue. If false, set ssthresh to cwnd and keep cwnd."""
    def __init__(
        self,
        *,
        kind: Literal["search"],
        drain: bool = ...,
    ) -> None: ...

class LimitedSlowStart(Table):
    """Limited slow start (RFC 3742): above a threshold, slow start grows more slowly."""

    kind: Literal["limited"]
    max_ssthresh: int
    """cwnd up to which slow start doubles it every round trip, segments. Above it, cwnd grows by at most half of this per round trip (RFC 3742)."""
    def __init__(
        self,
        *,
        kind: Literal["limited"],
        max_ssthresh: int = ...,
    ) -> None: ...

class CarefulResume(Table):
    """Careful Resume (RFC 9959): jumps to half the cwnd of an earlier connection, and retreats if this causes loss."""

    kind: Literal["careful-resume"]
    saved_cwnd: int
    """Segments that an earlier connection delivered in one RTT."""
    saved_rtt: str
    """Minimum RTT of the earlier connection."""
    max_jump: int
    """Maximum cwnd after the jump, segments."""
    def __init__(
        self,
        *,
        kind: Literal["careful-resume"],
        saved_cwnd: int,
        saved_rtt: str,
        max_jump: int = ...,
    ) -> None: ...

class Network(NetworkBase):
    """Links of the network and the paths of flows across them.

    `chain`: sender, access, bottleneck, egress, receiver; all flows share every link. `dumbbell`: each flow has its own access and egress link, and all share the bottleneck. `wishbone`: like `dumbbell`, but `access_list` gives the access links one by one. `graph`: you list links and paths yourself.
    """

    topology: Literal["chain", "dumbbell", "wishbone", "graph"]
    """Shape of the network."""
    framing: str
    """Bytes that a link transmits in addition to each IP packet (Ethernet without FCS: 14 bytes)."""
    access: Link | None
    """Link from the sender to the bottleneck. Default: the sender is attached to the bottleneck directly."""
    access_list: tuple[Link, ...]
    """Wishbone: the access links. Flow 0 uses the first, flow 1 the second, and so on, starting over after the last."""
    bottleneck: Link | None
    """The link that all flows share. Required in every topology except `graph`."""
    egress: Link | None
    """Link from the bottleneck to the receiver. Default: the receiver is attached to the bottleneck directly."""
    reverse: Reverse
    """Links of the reverse direction that differ from the forward direction."""
    links: tuple[NamedLink, ...]
    """Graph: the links, each in one direction."""
    paths: tuple[Path, ...]
    """Graph: the paths over these links."""
    def __init__(
        self,
        *,
        topology: Literal["chain", "dumbbell", "wishbone", "graph"] = ...,
        framing: str = ...,
        access: Link | None = ...,
        access_list: tuple[Link, ...] = ...,
        bottleneck: Link | None = ...,
        egress: Link | None = ...,
        reverse: Reverse = ...,
        links: tuple[NamedLink, ...] = ...,
        paths: tuple[Path, ...] = ...,
    ) -> None: ...

class Link(Table):
    """One direction of a link."""

    rate: str | None
    """Transmission rate. Default: infinite."""
    delay: str
    """One-way propagation delay."""
    queue: (
        DropTail
        | NetemLimit
        | Codel
        | FqCodel
        | FqPie
        | Pie
        | Threshold
        | Red
        | LinuxRed
        | Choke
        | Dualpi2
        | Cake
        | None
    )
    """Queue. Default: first in, first out, without a limit."""
    loss: (
        NoLoss
        | Bernoulli
        | GilbertElliott
        | GilbertElliottInTime
        | Periodic
        | Listed
        | Scripted
        | Policer
        | Load
        | None
    )
    """Loss of packets before they reach the queue. Default: none."""
    jitter: str
    """Maximum random extra delay, drawn uniformly from zero to this value for each packet. Packets keep their order."""
    netem_jitter: NetemJitter | None
    """Jitter of Linux netem, around `delay`. Default: none."""
    reorder: Reorder | None
    """Reordering of packets. Default: none."""
    duplicate: float | str
    """Probability that a packet is duplicated. The copy crosses the link separately and counts as an arrival."""
    corrupt: float | str
    """Probability that a packet is corrupted: it is queued and transmitted like any other, and discarded at the end of the link."""
    capacity: Schedule | Random | Mahimahi | Dummynet | TokenBucket | None
    """Variation of rate, delay and loss over time. Default: none."""
    wifi: WifiJitter | None
    """Jitter of a Wi-Fi link, in addition to `jitter`. Default: none."""
    aggregate: str
    """The link holds packets until the first of them has waited this long, then delivers them together. "0 s" turns this off."""
    ecn_fault: EcnFault | None
    """A middlebox that changes the ECN field. Default: none."""
    outage: Outage | None
    """Periods during which the link starts no transmission. Default: none."""
    thin_acks: int
    """ACK filtering (RFC 3449): of up to this many consecutive ACKs of a connection that wait in the queue, only the newest is kept. 1 turns this off."""
    merging: Merging | None
    """The NIC of the router in front of this link merges segments (GRO). The link then drops and queues a merged packet as a whole. Default: no merging."""
    def __init__(
        self,
        *,
        rate: str | None = ...,
        delay: str = ...,
        queue: DropTail | NetemLimit | Codel | FqCodel | FqPie | Pie | Threshold | Red | LinuxRed | Choke | Dualpi2 | Cake | None = ...,
        loss: NoLoss | Bernoulli | GilbertElliott | GilbertElliottInTime | Periodic | Listed | Scripted | Policer | Load | None = ...,
        jitter: str = ...,
        netem_jitter: NetemJitter | None = ...,
        reorder: Reorder | None = ...,
        duplicate: float | str = ...,
        corrupt: float | str = ...,
        capacity: Schedule | Random | Mahimahi | Dummynet | TokenBucket | None = ...,
        wifi: WifiJitter | None = ...,
        aggregate: str = ...,
        ecn_fault: EcnFault | None = ...,
        outage: Outage | None = ...,
        thin_acks: int = ...,
        merging: Merging | None = ...,
    ) -> None: ...

class NetemJitter(Table):
    """Jitter of Linux netem (`delay TIME JITTER CORRELATION distribution NAME`): the delay of each packet is drawn around the link's `delay`. The delay is at least zero. On a link without a rate, packets overtake each other. On a link with a rate or a capacity they keep their order. For overtaking behind a rate, put the jitter on a separate link, e.g. `egress`."""

    deviation: str
    """Deviation: half the range of "uniform", the unit of the other distributions."""
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"]
    """Distribution. "normal": cut off at 4 deviations. "pareto": shape 3, moved by its mean; most packets are early, few are late by up to 4 deviations. "paretonormal": a quarter of "normal" and three quarters of "pareto"."""
    correlation: float | str
    """Correlation of successive draws of netem's generator. As in Linux, it applies to numbers that are then taken modulo the range, so the delays themselves are only weakly correlated."""
    before_rate: bool
    """With a rate: packets are delayed before their transmission, as by netem with `delay` and `rate` in one discipline, whose limit is a queue of kind "netem-limit". Otherwise they are delayed after it."""
    def __init__(
        self,
        *,
        deviation: str,
        distribution: Literal["uniform", "normal", "pareto", "paretonormal"] = ...,
        correlation: float | str = ...,
        before_rate: bool = ...,
    ) -> None: ...

class Reorder(Table):
    """The link holds back some packets, and later packets overtake them."""

    probability: float | str
    """Probability that a packet is held back."""
    extra_delay: str
    """Extra delay of a packet that is held back."""
    def __init__(
        self,
        *,
        probability: float | str,
        extra_delay: str,
    ) -> None: ...

class WifiJitter(Table):
    """Wi-Fi jitter as modelled by draft-huitema-ccwg-c4-test. Packets keep their order, so a late packet delays those behind it."""

    mean: str
    """Mean jitter drawn for one packet (J of the draft). Packets in close succession are delayed more, because a late packet delays those behind it."""
    def __init__(
        self,
        *,
        mean: str,
    ) -> None: ...

class EcnFault(Table):
    """A middlebox that changes the ECN field of packets."""

    what: Literal["bleach", "strip-ce", "mark-all"]
    """Change: "bleach" sets every packet to Not-ECT, "strip-ce" turns CE into ECT(0), "mark-all" turns every ECT into CE."""
    at: Literal["before", "after"]
    """Position of the middlebox: before the queue or after it."""
    probability: float | str
    """Probability that a packet is changed."""
    def __init__(
        self,
        *,
        what: Literal["bleach", "strip-ce", "mark-all"],
        at: Literal["before", "after"] = ...,
        probability: float | str = ...,
    ) -> None: ...

class Outage(Table):
    """A period, single or repeated, during which the link starts no transmission."""

    at: str
    """Start of the first outage."""
    every: str | None
    """Time from the start of one outage to the start of the next. Default: there is only one outage."""
    apart: str | Constant | Uniform | Lognormal | Exponential | Choice | None
    """Instead of `every`: time from the end of one outage to the start of the next, a duration or a distribution of durations."""
    lasts: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Length of each outage: a duration, or a distribution of durations. It must be shorter than `every`."""
    arrivals: Literal["wait", "lost"]
    """Whether packets that arrive during an outage wait in the queue or are lost."""
    def __init__(
        self,
        *,
        at: str,
        every: str | None = ...,
        apart: str | Constant | Uniform | Lognormal | Exponential | Choice | None = ...,
        lasts: str | Constant | Uniform | Lognormal | Exponential | Choice,
        arrivals: Literal["wait", "lost"] = ...,
    ) -> None: ...

class Merging(Table):
    """The NIC of a router that merges consecutive segments (generic receive offload, GRO). The link behind it drops and queues a packet of several segments as a whole."""

    receive_interval: str
    """Minimum time between two interrupts of the NIC. With "0 s" it merges only packets that arrive at the same instant."""
    gro_flush_timeout: str
    """Time after which the kernel polls the NIC again without an interrupt; until then GRO may hold packets (Linux `gro_flush_timeout`)."""
    napi_defer_hard_irqs: int
    """With `gro_flush_timeout`: number of consecutive empty polls after which the NIC may interrupt again (Linux `napi_defer_hard_irqs`)."""
    def __init__(
        self,
        *,
        receive_interval: str = ...,
        gro_flush_timeout: str = ...,
        napi_defer_hard_irqs: int = ...,
    ) -> None: ...

class Reverse(Table):
    """The reverse direction, link by link. A link that is not given is the same as the forward link."""

    access: Link | None
    """Link from the bottleneck to the sender."""
    bottleneck: Link | None
    """The reverse direction of the bottleneck."""
    egress: Link | None
    """Link from the receiver to the bottleneck."""
    def __init__(
        self,
        *,
        access: Link | None = ...,
        bottleneck: Link | None = ...,
        egress: Link | None = ...,
    ) -> None: ...

class NamedLink(Table):
    """A link of the topology `graph`."""

    rate: str | None
    """Transmission rate. Default: infinite."""
    delay: str
    """One-way propagation delay."""
    queue: (
        DropTail
        | NetemLimit
        | Codel
        | FqCodel
        | FqPie
        | Pie
        | Threshold
        | Red
        | LinuxRed
        | Choke
        | Dualpi2
        | Cake
        | None
    )
    """Queue. Default: first in, first out, without a limit."""
    loss: (
        NoLoss
        | Bernoulli
        | GilbertElliott
        | GilbertElliottInTime
        | Periodic
        | Listed
        | Scripted
        | Policer
        | Load
        | None
    )
    """Loss of packets before they reach the queue. Default: none."""
    jitter: str
    """Maximum random extra delay, drawn uniformly from zero to this value for each packet. Packets keep their order."""
    netem_jitter: NetemJitter | None
    """Jitter of Linux netem, around `delay`. Default: none."""
    reorder: Reorder | None
    """Reordering of packets. Default: none."""
    duplicate: float | str
    """Probability that a packet is duplicated. The copy crosses the link separately and counts as an arrival."""
    corrupt: float | str
    """Probability that a packet is corrupted: it is queued and transmitted like any other, and discarded at the end of the link."""
    capacity: Schedule | Random | Mahimahi | Dummynet | TokenBucket | None
    """Variation of rate, delay and loss over time. Default: none."""
    wifi: WifiJitter | None
    """Jitter of a Wi-Fi link, in addition to `jitter`. Default: none."""
    aggregate: str
    """The link holds packets until the first of them has waited this long, then delivers them together. "0 s" turns this off."""
    ecn_fault: EcnFault | None
    """A middlebox that changes the ECN field. Default: none."""
    outage: Outage | None
    """Periods during which the link starts no transmission. Default: none."""
    thin_acks: int
    """ACK filtering (RFC 3449): of up to this many consecutive ACKs of a connection that wait in the queue, only the newest is kept. 1 turns this off."""
    merging: Merging | None
    """The NIC of the router in front of this link merges segments (GRO). The link then drops and queues a merged packet as a whole. Default: no merging."""
    name: str
    """Name by which paths refer to this link."""
    def __init__(
        self,
        *,
        rate: str | None = ...,
        delay: str = ...,
        queue: DropTail | NetemLimit | Codel | FqCodel | FqPie | Pie | Threshold | Red | LinuxRed | Choke | Dualpi2 | Cake | None = ...,
        loss: NoLoss | Bernoulli | GilbertElliott | GilbertElliottInTime | Periodic | Listed | Scripted | Policer | Load | None = ...,
        jitter: str = ...,
        netem_jitter: NetemJitter | None = ...,
        reorder: Reorder | None = ...,
        duplicate: float | str = ...,
        corrupt: float | str = ...,
        capacity: Schedule | Random | Mahimahi | Dummynet | TokenBucket | None = ...,
        wifi: WifiJitter | None = ...,
        aggregate: str = ...,
        ecn_fault: EcnFault | None = ...,
        outage: Outage | None = ...,
        thin_acks: int = ...,
        merging: Merging | None = ...,
        name: str,
    ) -> None: ...

class Path(Table):
    """A path of the topology `graph`."""

    name: str
    """Name by which flows refer to this path."""
    forward: tuple[str, ...]
    """Names of the links from sender to receiver, in order."""
    backward: tuple[str, ...]
    """Names of the links from receiver to sender, in order. Default: for each link of `forward` a copy named NAME.backward, in reverse order. Paths that share the link also share the copy."""
    def __init__(
        self,
        *,
        name: str,
        forward: tuple[str, ...],
        backward: tuple[str, ...] = ...,
    ) -> None: ...

class Flows(FlowsBase):
    """A group of identical flows."""

    count: int
    """Number of flows."""
    name: str | None
    """Name of the group in tables and figures. Default: the name of its controller or, for a group without a controller, of its workload."""
    transport: Literal["tcp", "udp", "pcc", "quinn", "stack"] | None
    """Transport protocol. Default: the one that the controller and the workload need."""
    profile: str
    """TCP behaviour of the hosts: that of an operating system, or that of the RFCs."""
    congestion_control: str
    """Congestion controller. "FILE.py:CLASS" is your own class, "FILE.c" your own Linux module, "custom:NAME" a class that you pass to the run under this name, "kernel:NAME" a controller that only the kernel of the linux backend has, "quinn:NAME" a controller of quinn, a QUIC stack, and "stack:NAME:CONTROLLER" a controller of a library that you pass to the run (`--stack`)."""
    congestion_control_options: dict[str, bool | float | str]
    """Options of the controller, by name; `ackclock list` shows them. For a controller of your own: keyword arguments of its class, or parameters of the module."""
    recovery: str | None
    """Recovery rule. Default: the profile's."""
    stack: Stack
    """Settings of TCP that differ from the profile."""
    workload: (
        Bulk
        | Transfer
        | Fetch
        | Throttled
        | Population
        | ConstantRate
        | OnOff
        | Voice
        | Transactions
        | Video
        | Bursts
        | Media
        | Writes
        | Conversation
    )
    """Data that the application sends, and when."""
    reader: Reader | None
    """Application that reads slowly. Default: data is read as soon as it arrives."""
    start: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Start of the first flow: a duration or a distribution. From a distribution each flow of the group draws its own offset, which is added to the staggered start; averages over seeds then do not depend on how the flows' phases happen to align."""
    stagger: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Time from the start of one flow of the group to that of the next: a duration, or a distribution of durations (`exponential` makes a Poisson process). With drawn times, flows that would start after the end of the run do not run."""
    stop: str | None
    """Time at which the application stops writing, from the start of the run. Default: the end of the run."""
    path: str | None
    """Graph: name of the path. Default: the first one."""
    host: str | None
    """Name in `hosts` of the host on which the senders run. Default: perfect hosts."""
    peer_host: str | None
    """Name of the host on which the receivers run. The same name in `host` and `peer_host` puts both ends on one machine. Default: perfect hosts."""
    def __init__(
        self,
        *,
        count: int = ...,
        name: str | None = ...,
        transport: Literal["tcp", "udp", "pcc", "quinn", "stack"] | None = ...,
        profile: str = ...,
        congestion_control: str = ...,
        congestion_control_options: dict[str, bool | float | str] = ...,
        recovery: str | None = ...,
        stack: Stack = ...,
        workload: Bulk | Transfer | Fetch | Throttled | Population | ConstantRate | OnOff | Voice | Transactions | Video | Bursts | Media | Writes | Conversation = ...,
        reader: Reader | None = ...,
        start: str | Constant | Uniform | Lognormal | Exponential | Choice = ...,
        stagger: str | Constant | Uniform | Lognormal | Exponential | Choice = ...,
        stop: str | None = ...,
        path: str | None = ...,
        host: str | None = ...,
        peer_host: str | None = ...,
    ) -> None: ...

class Stack(Table):
    """Settings of TCP that override the host profile. The default of every key is the profile's value."""

    smss: str | None
    """Payload of a full segment in bytes, without TCP options: 64 to 65000."""
    initial_window: int | None
    """Initial congestion window, segments."""
    initial_ssthresh: int | None
    """Initial slow-start threshold, segments. Default: arbitrarily high (RFC 5681 §3.1). A value that `metrics_cache` remembers takes precedence."""
    first_burst_cap: int | None
    """Maximum number of segments sent before the first ACK of data, regardless of the initial window. Default: no maximum."""
    fin_ignores_cwnd: Literal["off", "alone", "with-data"] | None
    """Whether a FIN may be sent when the congestion window is full: never ("off"), if it carries no data ("alone"), or even with the last data ("with-data": an initial window of 10 then sends up to 11 segments)."""
    sack: bool | None
    """Selective acknowledgments (SACK, RFC 2018)."""
    timestamps: bool | None
    """TCP timestamps (RFC 7323)."""
    detection: Literal["dupthresh", "fack", "rack"] | None
    """Loss detection of the sender. "fack" and "rack" require SACK."""
    initial_rto: str | None
    """Retransmission timeout (RTO) before the first RTT sample."""
    min_rto: str | None
    """Minimum retransmission timeout (RTO)."""
    delayed_ack: bool | None
    """Delayed ACKs."""
    quick_acks: bool | None
    """With delayed ACKs: acknowledge the first segments of a connection immediately, as Linux does."""
    response_carries_ack: bool | None
    """The server delays its ACKs regardless of `delayed_ack`, so its response carries the ACK of the request."""
    count_acks: bool | None
    """In slow start cwnd grows by one segment per ACK, not by the number of acknowledged segments (as in Linux until 2015)."""
    ack_splits: int | None
    """The receiver cheats: it acknowledges each segment in this many parts."""
    hide_marks: bool | None
    """The receiver cheats: it never reports ECN marks."""
    optimistic_acks: float | str | None
    """The receiver cheats: it acknowledges missing data as if it had arrived, and acknowledges data ahead of its arrival, by this share of the data that arrives in a round trip. Goodput counts only data that arrives."""
    reordering: int | None
    """Degree of reordering that connections assume initially, segments (Linux `tcp_reordering`). Default: 3."""
    tlp: bool | None
    """Tail loss probes (TLP, RFC 8985)."""
    frto: bool | None
    """F-RTO: detection of spurious timeouts (RFC 5682)."""
    undo: bool | None
    """Undo window reductions that prove unnecessary."""
    limited_transmit: bool | None
    """Limited transmit (RFC 3042)."""
    early_retransmit: Literal["off", "rfc5827", "delayed"] | None
    """Early retransmit: off, as in RFC 5827, or delayed as in Linux."""
    idle_restart: bool | None
    """Reduce cwnd after an idle period (RFC 5681 §4.1)."""
    sack_compression: bool | None
    """SACK compression: the receiver sends one ACK for several SACKs in close succession."""
    packet_memory: Literal["copied", "handed-on"] | None
    """Memory charged for a received packet: as with a device that copies it ("copied": 2304 bytes for 1448 of payload), or as between network namespaces of one machine (veth), which pass on the sender's buffer ("handed-on": 832 bytes plus the payload)."""
    receive_buffer: str | None
    """Maximum receive window. In `linux-6` it is the payload of the full Ethernet segments that fit in the largest receive buffer. A value smaller than the initial buffer also replaces that buffer, and so reduces the first window."""
    socket_buffer: str | None
    """Receive buffer that the application sets (SO_RCVBUF). It does not grow automatically. The profile determines the share of it that the receive window may use."""
    mtu_probing: Literal["off", "after-timeouts", "always"] | None
    """Packetization layer path MTU discovery (RFC 4821, Linux `tcp_mtu_probing`): never, after repeated timeouts, or from the start. In the last case, segments begin at 1024 bytes and grow with each acknowledged probe."""
    initial_receive_window: int | None
    """First receive window that the receiver advertises, full segments. Default: the profile's (65160 bytes in `linux-6`)."""
    beta: float | None
    """Multiplicative decrease factor, for controllers that allow it to be set (cubic: 0.7)."""
    ecn_beta: float | None
    """Multiplicative decrease factor after an ECN mark (ABE, RFC 8511: 0.8 for reno, 0.85 for cubic). Default: the same as after a loss."""
    slow_start: ClassicSlowStart | HyStart | HyStartPlusPlus | SearchSlowStart | LimitedSlowStart | CarefulResume | None
    """Slow-start algorithm, for any controller that begins with slow start. Default: "hystart" for cubic, except in the profiles `linux-2.6` and `freebsd-4`; "classic" for the others."""
    ecn: Literal["off", "accept", "ask", "accecn", "accecn-accept", "accecn-ask"] | None
    """Explicit congestion notification (RFC 3168): "off", "accept" it if the peer requests it, or "ask" for it. "accecn" requests accurate ECN (RFC 9768). "accecn-accept" and "accecn-ask" accept accurate ECN, but request no ECN or that of RFC 3168, respectively. Default: the mode that the profile and the controller need."""
    ect1: bool | None
    """Send ECN-capable packets with ECT(1), the L4S identifier (RFC 9331), instead of ECT(0). Default: on if the controller needs it."""
    accecn_option: int | None
    """When to send the AccECN option: 0 never, 1 when it reports something new, 2 always if the path passes it, 3 always (Linux `tcp_ecn_option`)."""
    hz: int | None
    """Ticks per second of the kernel's timer clock (HZ)."""
    pacing: bool | None
    """Pace segments after the first ten, at 200 % of cwnd per SRTT in slow start and 120 % later."""
    pace_initial_window: bool | None
    """Spread the initial window over the RTT measured by the handshake."""
    max_pacing_rate: str | None
    """Maximum pacing rate (SO_MAX_PACING_RATE). Setting it turns pacing on."""
    small_queues: bool | None
    """TCP small queues: TCP keeps only about a millisecond's worth of data in the queue of the host's own device, if it has one."""
    limit_output_bytes: str | None
    """With `small_queues`: maximum memory, as Linux counts it, of TCP's packets in that queue, regardless of the rate. Default: 4 MiB (Linux `tcp_limit_output_bytes`)."""
    tso: bool | None
    """Send packets of several segments, sized and deferred as Linux does for TCP segmentation offload. Unless a host's NIC splits them, they also arrive whole, as between virtual machines."""
    send_buffer: str | None
    """Maximum memory of written data; when it is full, the application waits. Counted as in Linux: payload plus 832 bytes per packet (456 in `linux-3.0` and `linux-2.6`). Without `tso` each segment is a packet."""
    nodelay: bool | None
    """Both applications set TCP_NODELAY: a partial segment does not wait for the ACK of an earlier one (Nagle's algorithm is off)."""
    cork: bool | None
    """Both applications set TCP_CORK: a partial segment waits until it is full, until the FIN, or for at most 200 ms."""
    quickack: bool | None
    """Both applications set TCP_QUICKACK after each read: the data read is acknowledged at once, and exchanges of requests and responses do not lead to delayed ACKs."""
    metrics_cache: MetricsCache | None
    """Hosts remember ssthresh from one connection to the next. Default: they do not."""
    def __init__(
        self,
        *,
        smss: str | None = ...,
        initial_window: int | None = ...,
        initial_ssthresh: int | None = ...,
        first_burst_cap: int | None = ...,
        fin_ignores_cwnd: Literal["off", "alone", "with-data"] | None = ...,
        sack: bool | None = ...,
        timestamps: bool | None = ...,
        detection: Literal["dupthresh", "fack", "rack"] | None = ...,
        initial_rto: str | None = ...,
        min_rto: str | None = ...,
        delayed_ack: bool | None = ...,
        quick_acks: bool | None = ...,
        response_carries_ack: bool | None = ...,
        count_acks: bool | None = ...,
        ack_splits: int | None = ...,
        hide_marks: bool | None = ...,
        optimistic_acks: float | str | None = ...,
        reordering: int | None = ...,
        tlp: bool | None = ...,
        frto: bool | None = ...,
        undo: bool | None = ...,
        limited_transmit: bool | None = ...,
        early_retransmit: Literal["off", "rfc5827", "delayed"] | None = ...,
        idle_restart: bool | None = ...,
        sack_compression: bool | None = ...,
        packet_memory: Literal["copied", "handed-on"] | None = ...,
        receive_buffer: str | None = ...,
        socket_buffer: str | None = ...,
        mtu_probing: Literal["off", "after-timeouts", "always"] | None = ...,
        initial_receive_window: int | None = ...,
        beta: float | None = ...,
        ecn_beta: float | None = ...,
        slow_start: ClassicSlowStart | HyStart | HyStartPlusPlus | SearchSlowStart | LimitedSlowStart | CarefulResume | None = ...,
        ecn: Literal["off", "accept", "ask", "accecn", "accecn-accept", "accecn-ask"] | None = ...,
        ect1: bool | None = ...,
        accecn_option: int | None = ...,
        hz: int | None = ...,
        pacing: bool | None = ...,
        pace_initial_window: bool | None = ...,
        max_pacing_rate: str | None = ...,
        small_queues: bool | None = ...,
        limit_output_bytes: str | None = ...,
        tso: bool | None = ...,
        send_buffer: str | None = ...,
        nodelay: bool | None = ...,
        cork: bool | None = ...,
        quickack: bool | None = ...,
        metrics_cache: MetricsCache | None = ...,
    ) -> None: ...

class MetricsCache(Table):
    """Metrics of earlier connections to a destination, which hosts store and use for the next connection (Linux tcp_metrics).

    Without `ssthresh` the first connection starts cold and later ones start warm.
    """

    destination: str
    """Name of the destination. Groups with the same name share the stored metrics."""
    ssthresh: int | None
    """Slow-start threshold remembered when the run starts, segments. Default: none."""
    cwnd: int | None
    """Congestion window remembered when the run starts, segments. Hosts record it, but no connection starts with it. Default: none."""
    def __init__(
        self,
        *,
        destination: str = ...,
        ssthresh: int | None = ...,
        cwnd: int | None = ...,
    ) -> None: ...

class Reader(Table):
    """An application that reads slowly: at most `read` bytes at a time, with a time between its reads. Without data it waits for some. Data that it has not read fills the receive buffer, so that the receive window closes."""

    end: Literal["receiver", "sender", "both"]
    """End of the flow that reads slowly: the receiver, in a conversation the client; the sender, in a conversation the server; or both."""
    read: str
    """Largest number of bytes in one read."""
    rate: str | None
    """Mean rate of the reads while data waits: after each read, the application waits for the time that its bytes take at this rate. Default: no such time."""
    pause: str
    """Time after each read, in addition to that of `rate`."""
    wait: str
    """Time from the handshake to the first read."""
    def __init__(
        self,
        *,
        end: Literal["receiver", "sender", "both"] = ...,
        read: str = ...,
        rate: str | None = ...,
        pause: str = ...,
        wait: str = ...,
    ) -> None: ...

class Host(Table):
    """A host to which groups of flows refer by name. A host that is not described is perfect.

    All senders and receivers that name the same host stall together and share its cores and its NIC.
    """

    name: str
    """Name by which groups of flows refer to the host."""
    shared: bool
    """One machine for all flows that name the host; if false, one machine per flow."""
    preset: Literal["clean", "xen-shared", "light", "micro", "single-core", "modern"] | None
    """Sets several of these keys at once. Keys that you also give take precedence."""
    gate: Times | Xen | None
    """Periods during which the host has no processor: it receives and sends nothing, and no timer fires. Default: none."""
    receives_on: bool
    """The gate stops only sending and timers, as when the sending thread is delayed but the receiving thread is not."""
    emulates_links: bool
    """This machine also emulates the network. While the gate is closed, the links transmit nothing; when it opens, overdue packets are sent at once."""
    cores: int | None
    """Number of cores. If there are more processes, they take turns. Default: as many cores as needed."""
    slice: str
    """Maximum time for which a process runs while others wait for its core."""
    busy_wait: bool | None
    """A sender of datagrams never yields its core voluntarily while its flow is open (busy waiting). Default: the preset's value, or false."""
    send_cost: str
    """CPU time of a process for each packet it sends."""
    receive_cost: str
    """CPU time of a process for each packet it receives."""
    receive_interval: str | None
    """Minimum time between two interrupts of the NIC; packets wait for the next one. Default: every packet causes an interrupt."""
    interrupt_rate: int | None
    """Maximum number of interrupts per second (ITR), as another way to give `receive_interval`."""
    gro: bool | None
    """Generic receive offload: consecutive segments of one interrupt reach TCP as one packet, and TCP acknowledges them once. Default: the preset's value, or false."""
    gro_flush_timeout: str
    """With `gro`: time after which the kernel polls the NIC again without an interrupt; until then GRO may hold packets (Linux `gro_flush_timeout`)."""
    napi_defer_hard_irqs: int
    """With `gro_flush_timeout`: number of consecutive empty polls after which the NIC may interrupt again (Linux `napi_defer_hard_irqs`)."""
    cuts_packets: bool | None
    """TCP segmentation offload: the NIC splits the packets of `stack.tso` into single segments, as on a real wire. Default: the preset's value, or false."""
    line_rate: str | None
    """Rate of the host's own network device, in front of the network. Default: infinite; without `queue`, the host has no device."""
    queue: Fifo | Fq | None
    """Queueing discipline of this device. TCP limits the data that it queues there (TCP small queues). Default with a device: first in, first out, up to 1000 packets."""
    transmit_interval: str | None
    """Minimum time between two batches of outgoing packets; the packets of a batch are sent back to back. Default: each packet is sent at once."""
    batch: int
    """Number of packets that the host collects before it sends them together."""
    batch_flush: str
    """Maximum time for which the oldest packet waits for the batch to fill."""
    tick: str | None
    """Period of the clock that wakes paced senders. Default: senders wake exactly on time."""
    catch_up: Literal["none", "burst", "full"]
    """Part of a paced sender's delay beyond one tick that it makes up for with packets sent back to back: none, at most `burst` packets, or all."""
    burst: int
    """With `catch_up = "burst"`: maximum number of packets sent back to back."""
    def __init__(
        self,
        *,
        name: str,
        shared: bool = ...,
        preset: Literal["clean", "xen-shared", "light", "micro", "single-core", "modern"] | None = ...,
        gate: Times | Xen | None = ...,
        receives_on: bool = ...,
        emulates_links: bool = ...,
        cores: int | None = ...,
        slice: str = ...,
        busy_wait: bool | None = ...,
        send_cost: str = ...,
        receive_cost: str = ...,
        receive_interval: str | None = ...,
        interrupt_rate: int | None = ...,
        gro: bool | None = ...,
        gro_flush_timeout: str = ...,
        napi_defer_hard_irqs: int = ...,
        cuts_packets: bool | None = ...,
        line_rate: str | None = ...,
        queue: Fifo | Fq | None = ...,
        transmit_interval: str | None = ...,
        batch: int = ...,
        batch_flush: str = ...,
        tick: str | None = ...,
        catch_up: Literal["none", "burst", "full"] = ...,
        burst: int = ...,
    ) -> None: ...

class Record(Table):
    """Records of a run. An interval of "0 s" turns its record off."""

    trace: Literal["none", "flow", "all"]
    """Record every ACK, transmission and timer event (table `acks`): of no flow, of flow 0, or of all flows."""
    controller: Literal["none", "flow", "all"]
    """Record the controller's own variables at each ACK (PCC: at the end of each monitor interval): of no flow, of flow 0, or of all flows."""
    controller_interval: str
    """Minimum time between two rows of a flow in the record of `controller`. "0 s" records every ACK."""
    sample_interval: str
    """Time between samples of each open flow (cwnd, ssthresh, RTT, state)."""
    queue_interval: str
    """Time between samples of each queue's length."""
    goodput_interval: str
    """Length of the intervals over which the goodput of each flow is measured."""
    limits_interval: str
    """Length of the intervals for which table `limits` reports what limited each TCP flow (the sums are columns of `flows`)."""
    transactions: Literal["rows", "summary"]
    """"rows": a row for each transaction, and the summary. "summary": only totals and a histogram, whose size does not depend on the number of transactions."""
    warm_up: str
    """Warm-up, from the start of the run. The tables of links, `performance` and the summary of transactions exclude it; a client that arrives during the warm-up appears only in `transactions`."""
    drops: bool
    """Record each dropped packet (table `drops`)."""
    performance: bool | None
    """Record the performance of each flow, each group and the whole run after the warm-up, with quantiles of RTT and one-way delay. The size of this table does not grow with the run; measuring takes 5 to 10 % more time. Default: on in sweeps and comparisons with up to 100 flows, off elsewhere."""
    def __init__(
        self,
        *,
        trace: Literal["none", "flow", "all"] = ...,
        controller: Literal["none", "flow", "all"] = ...,
        controller_interval: str = ...,
        sample_interval: str = ...,
        queue_interval: str = ...,
        goodput_interval: str = ...,
        limits_interval: str = ...,
        transactions: Literal["rows", "summary"] = ...,
        warm_up: str = ...,
        drops: bool = ...,
        performance: bool | None = ...,
    ) -> None: ...

class Drop(Table):
    """A range of data segments, one transmission of which is lost."""

    flow: int
    """Number of the flow, from 0."""
    first: int
    """First segment of the range, counted from 1 in the order of first transmission."""
    last: int | None
    """Last segment of the range. Default: only the first segment."""
    transmission: int
    """Which transmission is lost: 0 the original, 1 the first retransmission, and so on."""
    def __init__(
        self,
        *,
        flow: int = ...,
        first: int,
        last: int | None = ...,
        transmission: int = ...,
    ) -> None: ...

class Step(Table):
    """A change of the link. A key that is not given leaves its quantity unchanged."""

    at: str
    """Time of the change, from the start of the run or, with `repeat`, of the cycle."""
    rate: str | None
    """Transmission rate. Zero stops transmission."""
    delay: str | None
    """One-way propagation delay. Packets keep their order when it decreases."""
    loss: float | str | None
    """Probability that an arriving packet is lost, in addition to the link's own `loss`."""
    def __init__(
        self,
        *,
        at: str,
        rate: str | None = ...,
        delay: str | None = ...,
        loss: float | str | None = ...,
    ) -> None: ...

class InitialWindow(Table):
    """An initial window of a mix, with its probability."""

    segments: int
    """Initial window, segments."""
    share: float | str
    """Probability that a connection draws this window."""
    def __init__(
        self,
        *,
        segments: int,
        share: float | str,
    ) -> None: ...

class Write(Table):
    """A block that an application writes at once."""

    at: str
    """Time of the write, from the start of the flow."""
    bytes: str
    """Size of the block."""
    def __init__(
        self,
        *,
        at: str = ...,
        bytes: str,
    ) -> None: ...

class Turn(Table):
    """A step of a conversation: one end writes a message, in one write or several."""

    client: str | Constant | Uniform | Lognormal | Exponential | Choice | None
    """Writes of the client: a size, several writes of one size ("2 x 1 kB"), or a distribution of sizes."""
    server: str | Constant | Uniform | Lognormal | Exponential | Choice | None
    """Writes of the server. A step has either `client` or `server`."""
    gap: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Time from one write to the next: a duration, or a distribution of durations."""
    wait: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Time before the first write, for example the writer's processing time: a duration, or a distribution of durations."""
    separate: bool
    """Whether each write is a separate message."""
    together: bool
    """Whether the step begins together with the previous step, instead of after its arrival."""
    corked: bool
    """Whether TCP_CORK is set before the first write and cleared after the last one."""
    def __init__(
        self,
        *,
        client: str | Constant | Uniform | Lognormal | Exponential | Choice | None = ...,
        server: str | Constant | Uniform | Lognormal | Exponential | Choice | None = ...,
        gap: str | Constant | Uniform | Lognormal | Exponential | Choice = ...,
        wait: str | Constant | Uniform | Lognormal | Exponential | Choice = ...,
        separate: bool = ...,
        together: bool = ...,
        corked: bool = ...,
    ) -> None: ...

Queue: TypeAlias = (
    DropTail | NetemLimit | Codel | FqCodel | FqPie | Pie | Threshold | Red | LinuxRed | Choke | Dualpi2 | Cake
)
Loss: TypeAlias = (
    NoLoss | Bernoulli | GilbertElliott | GilbertElliottInTime | Periodic | Listed | Scripted | Policer | Load
)
Capacity: TypeAlias = Schedule | Random | Mahimahi | Dummynet | TokenBucket
Workload: TypeAlias = (
    Bulk | Transfer | Fetch | Throttled | Population | ConstantRate | OnOff | Voice | Transactions | Video | Bursts | Media | Writes | Conversation
)
Distribution: TypeAlias = Constant | Uniform | Lognormal | Exponential | Choice

__all__ = [
    "At",
    "Bernoulli",
    "Bulk",
    "Bursts",
    "Cake",
    "CarefulResume",
    "Choice",
    "Choke",
    "ClassicSlowStart",
    "Codel",
    "Constant",
    "ConstantRate",
    "Conversation",
    "Drop",
    "DropTail",
    "Dualpi2",
    "Dummynet",
    "EcnFault",
    "Exponential",
    "Festive",
    "Fetch",
    "Fifo",
    "Flows",
    "Fq",
    "FqCodel",
    "FqPie",
    "GilbertElliott",
    "GilbertElliottInTime",
    "Host",
    "HyStart",
    "HyStartPlusPlus",
    "InitialWindow",
    "LimitedSlowStart",
    "Link",
    "LinuxRed",
    "Listed",
    "Load",
    "Lognormal",
    "Mahimahi",
    "Media",
    "Merging",
    "MetricsCache",
    "NamedLink",
    "NetemJitter",
    "NetemLimit",
    "Network",
    "NoLoss",
    "OnOff",
    "Outage",
    "Path",
    "Periodic",
    "Pie",
    "Poisson",
    "Policer",
    "Population",
    "Random",
    "RateBased",
    "Reader",
    "Record",
    "Red",
    "Regular",
    "Reorder",
    "Reverse",
    "Schedule",
    "Scripted",
    "SearchSlowStart",
    "Stack",
    "Step",
    "Threshold",
    "Throttled",
    "Times",
    "TokenBucket",
    "Transactions",
    "Transfer",
    "Turn",
    "Uniform",
    "Video",
    "Voice",
    "WifiJitter",
    "Write",
    "Writes",
    "Xen",
]
