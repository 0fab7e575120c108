"""The types of the tables that the engine describes. Written by `make docs`: change the mechanism, not this file.

Length: it is written, and grows with every mechanism.
"""

from typing import Literal, TypeAlias

from ackclock.scenario import _rules
from ackclock.scenario._described import Described
from ackclock.scenario.distribution import Choice, Constant, Exponential, Lognormal, Uniform

class DropTail(Described):
    """First in, first out; an arrival that finds the queue full is dropped."""

    kind: Literal["drop-tail"]
    limit: str | None = None
    """Packets, bytes or multiples of the bandwidth-delay product; absent: unlimited."""

class NetemLimit(Described):
    """The limit of Linux netem under a shaper (HTB), as Mininet builds a link: packets in the delay line count too, and one of several segments (`tso`) counts once; elsewhere it counts as so many. A packet leaves when its transmission starts."""

    kind: Literal["netem-limit"]
    limit: str
    """Packets or multiples of the bandwidth-delay product."""

class Codel(_rules.TargetWithinInterval):
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
    ce_threshold: str | None = None
    """A packet that waited longer and can be marked is marked, whatever else is decided (Linux `ce_threshold`)."""

class FqCodel(_rules.TargetWithinInterval):
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
    ce_threshold: str | None = None
    """A packet that waited longer and can be marked is marked, whatever else is decided (Linux `ce_threshold`)."""
    ce_threshold_for: Literal["l4s", "any-ect"] = "any-ect"
    """Which packets `ce_threshold` marks (Linux `ce_threshold_selector` 1 and mask 3, or none)."""

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

class Threshold(_rules.MarkWithinLimit):
    """Marks every packet that arrives while at least `mark` wait (DCTCP's switch); what cannot be marked passes."""

    kind: Literal["threshold"]
    mark: str
    """Packets that wait from which on arrivals are marked: packets or multiples of the bandwidth-delay product."""
    limit: str | None = None
    """Packets or multiples of the bandwidth-delay product; absent: unlimited."""

class Red(_rules.MinBelowMaxAndLimit):
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

class LinuxRed(_rules.MinBelowMaxAndLimit):
    """RED as in Linux: in bytes, all signalled above `max`; adaptive, if asked for."""

    kind: Literal["linux-red"]
    limit: str
    """Bytes that wait at most."""
    min: str | None = None
    """Mean of the waiting bytes at which signals begin; absent: a third of `max`."""
    max: str | None = None
    """Mean above which every packet gets one; absent: a quarter of `limit`."""
    probability: float | str = 0.02
    """Probability of a signal at `max`; where it adapts, the first."""
    avpkt: str = "1000 bytes"
    """Size of a packet, from which the weight and the length of idle times come."""
    burst: int | None = None
    """Packets that may arrive at once without a signal, from which the weight comes; absent: (2 min + max) / (3 avpkt)."""
    bandwidth: str | None = None
    """Rate at which the mean falls while the queue is idle; absent: it does not, as below a shaper (HTB), which never asks an empty queue."""
    ecn: bool = False
    """Mark packets that can be marked instead of dropping them."""
    harddrop: bool = False
    """Above `max`, drop even those."""
    nodrop: bool = False
    """With `ecn`: packets that cannot be marked pass."""
    adaptive: bool = False
    """Every 504 ms the probability moves, so that the mean stays between 40 and 60 % of the way from `min` to `max`."""

class Choke(_rules.MinBelowMaxAndLimit):
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

class Dualpi2(Described):
    """DualPI2 (RFC 9332, Linux's `sch_dualpi2`): a queue for L4S beside one for all others, coupled.

    Packets that can be marked are marked, others are dropped. Its rate is that of the link.
    """

    kind: Literal["dualpi2"]
    limit: str | None = None
    """Packets of both queues together, or multiples of the bandwidth-delay product; absent: unlimited."""
    target: str = "15 ms"
    """Delay of the C queue aimed at."""
    update: str = "16 ms"
    """Interval at which the base probability is adjusted (Tupdate)."""
    alpha: float = 0.16015625
    """Integral gain, 1/s per second of delay; used in steps of 1/256."""
    beta: float = 3.19921875
    """Proportional gain, likewise."""
    coupling: int = 2
    """Coupling factor k."""
    step: str = "1 ms"
    """A packet that waited longer in the L queue is marked."""
    step_from: int = 0
    """Only if so many packets waited there when it came."""
    classic_share: float = 0.1
    """Share of the link that the C queue gets at least, if both have packets; in steps of 1 %."""
    classifier: Literal["l4s", "any-ect"] = "l4s"
    """Which packets go into the L queue."""
    overload: Literal["drop", "overflow"] = "drop"
    """What happens where `coupling` times the base probability passes 1."""

class Cake(Described):
    """CAKE (Høiland-Jørgensen, Täht and Morton 2018): a shaper, fair shares for hosts and flows, and COBALT."""

    kind: Literal["cake"]
    rtt: str = "100 ms"
    """Round-trip time to expect."""
    limit: str | None = None
    """Memory, counted as the kernel does: payload and 832 bytes a packet; absent: four times what `bandwidth` carries in `rtt`, at least 4 MiB; without `bandwidth`: unlimited."""
    bandwidth: str | None = None
    """Rate of its own shaper; absent: none (`unlimited`), the link sets the pace."""
    overhead: int | None = None
    """Bytes charged beyond the IP packet; absent: the framing of the network. tc's words: ethernet 38, docsis 18, pppoe-ptm 30, bridged-ptm 22, pppoe-vcmux 32, ipoa-vcmux 8, conservative 48."""
    mpu: int = 0
    """Least bytes charged for a packet (ethernet 84, docsis 64)."""
    framing: Literal["noatm", "atm", "ptm"] = "noatm"
    """Code of the line: cells of 53 bytes for 48 (ATM), 65 bytes for 64 (PTM), or none."""
    isolation: Literal["flows", "dual-srchost", "dual-dsthost", "triple-isolate"] = "triple-isolate"
    """Who gets equal shares. Hosts are the described ones, and for ends without one those of each group of flows."""

class NoLoss(Described):
    """Nothing is lost."""

    kind: Literal["none"]

class Bernoulli(Described):
    """Each packet is lost with the same probability, independently."""

    kind: Literal["bernoulli"]
    p: float | str
    """Probability."""
    applies_to: Literal["all", "syn", "data"] = "all"
    """Packets that it is for; others pass and are not counted."""

class GilbertElliott(Described):
    """Two states, good and bad, each with its own loss."""

    kind: Literal["gilbert-elliott"]
    p: float | str
    """Probability, per packet, of going from good to bad."""
    r: float | str
    """Probability, per packet, of going from bad to good."""
    loss_bad: float | str = 1.0
    """Loss in the bad state."""
    loss_good: float | str = 0.0
    """Loss in the good state."""
    applies_to: Literal["all", "syn", "data"] = "all"
    """Packets that it is for; others pass and are not counted."""

class Periodic(Described):
    """Every n-th packet is lost."""

    kind: Literal["periodic"]
    every: int
    """n."""
    offset: int = 0
    """Packets that pass before the counting begins."""
    applies_to: Literal["all", "syn", "data"] = "all"
    """Packets that it is for; others pass and are not counted."""

class Listed(Described):
    """Exactly the listed packets are lost, counted as they come to the link."""

    kind: Literal["listed"]
    packets: tuple[int, ...]
    """Counted from 1: with `applies_to = "syn"`, 1 is the first SYN or SYN-ACK."""
    applies_to: Literal["all", "syn", "data"] = "all"
    """Packets that it is for; others pass and are not counted."""

class Drop(_rules.LastNotBeforeFirst):
    """Data segments that a scripted loss drops."""

    flow: int = 0
    """Flow, counted from 0."""
    first: int
    """First segment, counted from 1 in the order of first transmission."""
    last: int | None = None
    """Last segment; absent: the first one only."""
    transmission: int = 0
    """Which transmission of them: 0 the original, 1 the first retransmission, ..."""

class Scripted(Described):
    """Exactly the listed transmissions are lost."""

    kind: Literal["scripted"]
    drops: tuple[Drop, ...]
    """The list."""

class Policer(Described):
    """A token-bucket policer: packets beyond a rate are dropped, none is delayed."""

    kind: Literal["policer"]
    rate: str
    """Rate at which the bucket fills, of IP packets and framing."""
    bucket: str
    """What it holds."""
    initial: str | None = None
    """What it holds at the start; absent: it is full."""
    per: Literal["link", "flow"] = "link"
    """One bucket for the link, or one for each flow."""

class Step(Described):
    """What a link is like from an instant on; what is absent stays as it was."""

    at: str
    """Since the start of the run, or of the cycle."""
    rate: str | None = None
    """Rate; zero: nothing is transmitted."""
    delay: str | None = None
    """Propagation delay. Packets keep their order when it falls."""
    loss: float | str | None = None
    """Share of arriving packets that is lost, besides what the link's own loss takes."""

class Schedule(_rules.StepsInOrder):
    """Rate, delay and loss change at listed times, once or in a cycle. Up to the first, the link is as its own keys say."""

    kind: Literal["schedule"]
    steps: tuple[Step, ...]
    """The changes, in order of time."""
    repeat: str | None = None
    """After this long, all begins again, with the link's own keys; absent: the last step lasts."""

class Random(Described):
    """Rate, delay and loss are drawn anew at fixed intervals; what has no distribution stays as the link has it."""

    kind: Literal["random"]
    every: str
    """Length of an interval."""
    rate: Constant | Uniform | Lognormal | Exponential | Choice | None = None
    """Rate."""
    delay: Constant | Uniform | Lognormal | Exponential | Choice | None = None
    """Propagation delay. Packets keep their order when it falls."""
    loss: Constant | Uniform | Lognormal | Exponential | Choice | None = None
    """Share of arriving packets that is lost, besides what the link's own loss takes."""

class Mahimahi(Described):
    """A Mahimahi trace, replayed exactly and again and again; the link has no rate of its own."""

    kind: Literal["mahimahi"]
    file: str
    """The trace: in each line a millisecond at which one packet may leave. Relative to the scenario's file."""
    opportunity: str = "1500 bytes"
    """What may leave at each of them, framing included."""

class Dummynet(Described):
    """The pipe of FreeBSD's dummynet: packets leave at the ticks of a clock, as many as the rate gives in a tick."""

    kind: Literal["dummynet"]
    tick: str = "1 ms"
    """Length of a tick (`kern.hz` 1000: 1 ms)."""
    keeps_credit: bool = False
    """Whether what a tick leaves over serves packets that come before the next one, as since FreeBSD 8.1; before, it is lost."""

class Bulk(Described):
    """As much as the connection takes, until the flow's stop."""

    kind: Literal["bulk"]

class Transfer(Described):
    """A number of bytes, then close."""

    kind: Literal["transfer"]
    bytes: str
    """Bytes."""

class Fetch(Described):
    """A client at the receiving end: connect, request, response, close; again and again."""

    kind: Literal["fetch"]
    bytes: str
    """Response."""
    request: str = "100 bytes"
    """Request."""
    count: int = 1
    """Fetches, one after another."""
    pause: str = "0 s"
    """From the last byte of one to the start of the next."""
    timeout: str | None = None
    """Give up a fetch after this long; absent: never."""
    common_random_numbers: bool = False
    """Each fetch meets losses that depend on the seed and on its number only, so that two arms of a comparison meet the same losses fetch by fetch."""

class Throttled(Described):
    """Blocks at a rate, as video servers write."""

    kind: Literal["throttled"]
    rate: str
    """Rate of the application."""
    chunk: str
    """One write."""
    initial: str = "0 bytes"
    """Written at once at the start."""
    bytes: str | None = None
    """In all; absent: until the flow's stop."""

class Population(Described):
    """Clients, each alone on a path of its own whose properties are drawn once; one fetch at a time."""

    kind: Literal["population"]
    clients: int
    """How many."""
    requests: int = 1
    """Fetches of each, on one connection each."""
    rtt: Constant | Uniform | Lognormal | Exponential | Choice
    """Round-trip propagation delay."""
    rate: Constant | Uniform | Lognormal | Exponential | Choice
    """Bottleneck rate."""
    loss: Constant | Uniform | Lognormal | Exponential | Choice
    """Loss probability, each direction."""
    bytes: Constant | Uniform | Lognormal | Exponential | Choice
    """Response."""
    queue: str = "100 packets"
    """Bottleneck buffer of each client."""
    throttle: float | None = None
    """The server writes at this many times the client's rate after an initial burst; absent: as fast as it can."""

class ConstantRate(Described):
    """UDP datagrams of one size at a constant rate, until the flow's stop."""

    kind: Literal["constant-rate"]
    rate: str
    """Rate of the IP packets, headers included."""
    payload: str = "1472 bytes"
    """UDP payload of a datagram."""

class OnOff(Described):
    """UDP datagrams at a constant rate in on-periods separated by silence, beginning with an on-period."""

    kind: Literal["on-off"]
    rate: str
    """Rate of the IP packets in an on-period, headers included."""
    on: str
    """Mean length of an on-period."""
    off: str
    """Mean length of the silence."""
    periods: Literal["exponential", "fixed"] = "exponential"
    """How the lengths are distributed."""
    payload: str = "1472 bytes"
    """UDP payload of a datagram."""

class Voice(Described):
    """A telephone call over UDP. The defaults are those of G.711 in RTP: 160 bytes of speech every 20 ms."""

    kind: Literal["voice"]
    interval: str = "20 ms"
    """Between datagrams."""
    payload: str = "172 bytes"
    """UDP payload of a datagram: speech and RTP header."""

class Poisson(_rules.RateOrLoad):
    """Clients come at random, independently: exponential intervals. `rate` or `load` says how often."""

    kind: Literal["poisson"]
    rate: float | None = None
    """Clients per second, over all flows of the group."""
    load: float | None = None
    """Offered load: the responses' packets, each sent once, as a share of the bottleneck's rate."""
    load_counts: Literal["data", "all"] = "data"
    """What `load` counts: data packets, or also SYN-ACK, FIN and two ACKs of each connection."""

class Regular(Described):
    """Clients come at equal intervals, the first at the flow's start."""

    kind: Literal["periodic"]
    interval: str
    """From one to the next, for each flow."""

class At(_rules.TimesInOrder):
    """Clients come at given times."""

    kind: Literal["at"]
    times: tuple[str, ...]
    """After the flow's start, in order."""

class InitialWindow(Described):
    """One entry of a mix of initial windows."""

    segments: int
    """Initial window."""
    share: float | str
    """Probability."""

class Transactions(_rules.SharesSumToOneAndObjectsStandAlone):
    """Clients at the receiving end come and go: connect, request, response, close, each on a connection of its own.

    The flows of the group are client-server pairs; arrivals, `count` and `max_open` are those of the whole group. What the k-th transaction of a flow draws depends on the seed alone: arms of a comparison see the same clients.
    """

    kind: Literal["transactions"]
    bytes: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Response: a size, or a distribution of sizes."""
    request: str = "200 bytes"
    """Request."""
    arrivals: Poisson | Regular | At
    """When clients come."""
    batch: int = 1
    """Connections that a client opens at once."""
    requests: int = 1
    """Requests on each connection, one after another (keep-alive)."""
    think: str | Constant | Uniform | Lognormal | Exponential | Choice = "0 s"
    """From the end of a response to the next request: a duration, or a distribution of durations."""
    objects: int | None = None
    """A page: so many responses, which the client's connections share out, whoever is free taking the next; replaces `requests`."""
    together: bool = False
    """Incast: a client asks on all of its connections at the same time, again when the last one has its response."""
    count: int | None = None
    """Connections in all, which are as many transactions if each has one request; absent: until the flows stop."""
    max_open: int | None = None
    """Most connections open at a time; a client who finds as many is turned away. Needed above a load of 1."""
    initial_window_mix: tuple[InitialWindow, ...] = ()
    """Initial windows that connections draw, with their probabilities; empty: the stack's."""
    mix_by: Literal["transaction", "batch"] = "transaction"
    """Whether each connection draws its initial window, or each client for all of its connections."""
    close: Literal["server", "client"] = "server"
    """Who closes first: the server when it has written the last response, or the client when it has read it."""

class Festive(Described):
    """FESTIVE (CoNEXT 2012): harmonic mean, one level at a time, delayed updates, requests at random times."""

    kind: Literal["festive"]
    window: int = 20
    """Chunks in the harmonic mean of the throughput."""
    safety: float = 0.85
    """Share of the estimate that a bitrate may have (p)."""
    alpha: float = 12.0
    """Weight of efficiency against stability."""
    horizon: int = 5
    """Chunks over which switches are counted: the 20 s of the authors' slides with chunks of 4 s."""
    randomised: bool = True
    """The buffer at which the next chunk is asked for is drawn around the target; else it is the target."""
    gradual: bool = True
    """One level at a time, up from the k-th only after k chunks there; else straight to the highest that `safety` allows."""
    delayed: bool = True
    """A switch waits until the efficiency that it wins outweighs the instability that it adds."""

class RateBased(Described):
    """The highest bitrate below the throughput of the last chunk, or below its moving average."""

    kind: Literal["rate-based"]
    weight: float = 1.0
    """Weight of the last chunk in the moving average; 1: the last chunk alone."""
    safety: float = 1.0
    """Share of the estimate that a bitrate may have."""

class Video(_rules.LadderAscendsAndBuffersHoldChunks):
    """A player at the receiving end: fetches chunks over one connection, at bitrates of its choice, and plays them.

    It asks for the next chunk at once until the buffer has reached its target, then each time that it has run down to it. A chunk's size, relative to its bitrate, depends on the seed, the flow and its number only: arms of a comparison watch the same video. Over PCC the request is a datagram on the way back.
    """

    kind: Literal["video"]
    ladder: tuple[str, ...]
    """Bitrates, ascending."""
    chunk: str = "4 s"
    """Length of a chunk."""
    chunks: int | None = None
    """Chunks of the video; absent: until the flow's stop."""
    buffer: str = "30 s"
    """Buffer that the player aims at."""
    buffer_max: str | None = None
    """Buffer that it never exceeds, at least one chunk above `buffer`; absent: two chunks above."""
    startup: str | None = None
    """Buffer with which playback begins, and goes on after a stall; absent: one chunk, or `buffer` if that is less."""
    request: str = "200 bytes"
    """Request; over PCC at most a datagram's payload, 1456 bytes."""
    size_variation: float = 0.0
    """A chunk's size is uniform within this share of its bitrate's."""
    adaptation: Festive | RateBased = ...
    """How the player chooses."""

class Bursts(Described):
    """One connection that writes bursts, each after a silence that begins when the one before is acknowledged."""

    kind: Literal["bursts"]
    bytes: str | Constant | Uniform | Lognormal | Exponential | Choice
    """A burst: a size, or a distribution of sizes."""
    pause: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Silence between two bursts: a duration, or a distribution of durations."""
    count: int | None = None
    """Bursts; absent: until the flow's stop."""

class Media(Described):
    """Video frames in real time over one connection."""

    kind: Literal["media"]
    fps: int = 30
    """Frames per second."""
    group: int = 30
    """Frames of a group, of which the first stands for itself."""
    first: str
    """Size of the first frame of a group."""
    other: str
    """Size of each of the others."""
    drop_late: str | None = None
    """When the oldest frame that is not acknowledged is older than this, frames are left out up to the next group; absent: never."""

class Reorder(Described):
    """A share of the packets is held back, so that later ones overtake them."""

    probability: float | str
    """Share of packets held back."""
    extra_delay: str
    """How much later they arrive."""

class WifiJitter(Described):
    """Wi-Fi jitter of draft-huitema-ccwg-c4-test; order is kept, so that a late packet blocks those behind it."""

    mean: str
    """Mean of a packet's own delay; what is delivered is later where packets are close together."""

class EcnFault(Described):
    """A box that changes the ECN field of packets."""

    what: Literal["bleach", "strip-ce", "mark-all"]
    """What it does: "bleach" makes every packet Not-ECT, "strip-ce" turns CE into ECT(0), "mark-all" every ECT into CE."""
    at: Literal["before", "after"] = "after"
    """Ahead of the queue, or behind it."""
    probability: float | str = 1.0
    """Share of packets that it changes."""

class Outage(Described):
    """A link that is out of order for a while, once or again and again."""

    at: str
    """Start of the first one."""
    every: str | None = None
    """From the start of one to that of the next; absent: there is one."""
    lasts: str | Constant | Uniform | Lognormal | Exponential | Choice
    """How long each lasts: a duration, or a distribution of durations; always shorter than `every`."""
    arrivals: Literal["wait", "lost"] = "wait"
    """What comes in meanwhile waits in the queue, or is lost."""

class Merging(Described):
    """The card of a router that merges segments which follow one another (generic receive offload): the link behind it loses and queues packets of several segments whole."""

    receive_interval: str = "0 s"
    """Least time between two interrupts of the card; 0: packets of one instant are merged."""
    gro_flush_timeout: str = "0 s"
    """Time after which the kernel looks into the card again by itself, and for which it may hold packets (Linux `gro_flush_timeout`)."""
    napi_defer_hard_irqs: int = 0
    """With `gro_flush_timeout`: looks in a row that find nothing before the card may interrupt again."""

class Link(_rules.RateOrCapacity):
    """One direction of a link."""

    rate: str | None = None
    """Rate; absent: infinite."""
    delay: str = "0 s"
    """Propagation delay, one way."""
    queue: (
        DropTail | NetemLimit | Codel | FqCodel | Pie | Threshold | Red | LinuxRed | Choke | Dualpi2 | Cake | None
    ) = None
    """Queue; absent: unlimited, first in, first out."""
    loss: NoLoss | Bernoulli | GilbertElliott | Periodic | Listed | Scripted | Policer | None = None
    """Loss ahead of the queue; absent: none."""
    jitter: str = "0 s"
    """Random extra delay, uniform from zero to this; order is kept."""
    reorder: Reorder | None = None
    """Reordering; absent: none."""
    capacity: Schedule | Random | Mahimahi | Dummynet | None = None
    """How rate, delay and loss vary in time; absent: they do not."""
    wifi: WifiJitter | None = None
    """Jitter as of a radio link, on top of `jitter`; absent: none."""
    aggregate: str = "0 s"
    """Packets are held until the first of them has waited this long, and leave together."""
    ecn_fault: EcnFault | None = None
    """A box that changes the ECN field; absent: none."""
    outage: Outage | None = None
    """For a while it transmits nothing; absent: it always does."""
    thin_acks: int = 1
    """Of so many ACKs of a connection that wait, only the newest stays."""
    merging: Merging | None = None
    """The card of the router in front merges segments, which the link then loses and queues whole; absent: it does not."""

class Times(Described):
    """On-times and off-times drawn in turn; the first on-time is cut at a random point."""

    kind: Literal["times"]
    on: Constant | Uniform | Lognormal | Exponential | Choice
    """How long the processor is there."""
    off: Constant | Uniform | Lognormal | Exponential | Choice
    """How long it is not."""

class Xen(Described):
    """A virtual machine under Xen's credit scheduler: on for one, two or three ticks of 10 ms, off while each of its competitors has a slice of 30 ms."""

    kind: Literal["xen"]
    competitors: int = 1
    """Other virtual machines that are always busy."""

class Fifo(Described):
    """Linux pfifo: first in, first out; what finds it full is refused, which TCP takes as it takes a mark of congestion."""

    kind: Literal["fifo"]
    limit: int = 1000
    """Packets as TCP hands them down."""

class Fq(Described):
    """Linux fq: a queue for each connection, served in turn; it holds packets until they are due, so TCP paces (every controller, at its pacing rate) and leaves the waiting to it."""

    kind: Literal["fq"]
    limit: int = 10000
    """Packets in all."""
    flow_limit: int = 100
    """Packets of a connection."""
    quantum: str = "3028 bytes"
    """What a connection may send in a turn."""
    initial_quantum: str = "15140 bytes"
    """What a new connection may send in its first turn."""
    refill_delay: str = "40 ms"
    """A connection that was idle for so long has a full quantum again."""
    max_rate: str | None = None
    """No connection sends faster, whatever its pacing rate; absent: no such bound."""
    low_rate_threshold: str = "550 kbit/s"
    """Of datagrams under `max_rate`: at or below this rate each is paced by itself, above it a quantum at a time."""
    horizon: str = "10 s"
    """A packet that is due later than this from now is dropped or sent at that time."""
    horizon_drop: bool = True
    """It is dropped."""
    ce_threshold: str | None = None
    """A packet that leaves so much later than it was due is marked, if it can be; absent: none is."""
    timer_slack: str = "10 us"
    """How much later than due packets may be looked at, so that one timer serves several."""

class Host(_rules.HostKeysFit):
    """A host that flow groups name; a host that is not described is perfect.

    Flows, senders and receivers alike, that name one host freeze together and share its cores and its card.
    """

    name: str
    """Name that flow groups use."""
    shared: bool = True
    """One machine for all that name it; otherwise one for each flow."""
    preset: Literal["clean", "xen-shared", "light", "micro", "single-core", "modern"] | None = None
    """Several of these settings at once; keys given beside it take precedence."""
    gate: Times | Xen | None = None
    """When the processor is taken away: meanwhile nothing is received or sent, and no timer fires; absent: never."""
    receives_on: bool = False
    """The gate stops sending and timers only, as when the thread that sends is held up and the one that receives is not."""
    emulates_links: bool = False
    """The network is emulated in this machine: its links freeze with it, and what is overdue leaves them at once."""
    cores: int | None = None
    """Cores; processes beyond that number take turns; absent: as many as needed."""
    slice: str = "3 ms"
    """Longest time that a process runs while others wait for its core."""
    busy_wait: bool | None = None
    """A sender of datagrams never gives its core away while it is open; absent: false, or as the preset says."""
    send_cost: str = "0 s"
    """Work of a process for each packet it sends."""
    receive_cost: str = "0 s"
    """Work of a process for each packet it receives."""
    receive_interval: str | None = None
    """Least time between two interrupts of the card; packets wait for the next one; absent: each interrupts."""
    interrupt_rate: int | None = None
    """The same as interrupts per second (ITR)."""
    gro: bool | None = None
    """Segments that follow one another in one interrupt reach TCP as one packet, which it acknowledges once (generic receive offload); absent: false, or as the preset says."""
    gro_flush_timeout: str = "0 s"
    """With `gro`: time after which the kernel looks into the card again by itself, and for which it may hold packets (Linux `gro_flush_timeout`)."""
    napi_defer_hard_irqs: int = 0
    """With `gro_flush_timeout`: looks in a row that find nothing before the card may interrupt again."""
    cuts_packets: bool | None = None
    """The card cuts the packets of stack key `tso` up, so that single segments cross the network, as on a real wire; absent: false, or as the preset says."""
    line_rate: str | None = None
    """Rate of its own device, in front of the network; absent: infinite, or no device if `queue` is absent, too."""
    queue: Fifo | Fq | None = None
    """What waits there, and TCP knows of it (TCP small queues); absent: first in, first out, up to 1000 packets."""
    transmit_interval: str | None = None
    """Least time between two hand-overs to the line; packets leave back to back; absent: each at once."""
    batch: int = 1
    """Packets that leave together (segmentation offload; reports in batches)."""
    batch_flush: str = "1 ms"
    """How long the oldest waits for that number."""
    tick: str | None = None
    """Period of the clock that wakes paced senders; absent: exact."""
    catch_up: Literal["none", "burst", "full"] = "none"
    """What of a paced sender's lateness beyond a tick is made up by packets back to back."""
    burst: int = 10
    """With catch_up = "burst": at most this many packets."""

class ClassicSlowStart(Described):
    """Slow start of RFC 5681: one segment for each one acknowledged, until ssthresh or a loss."""

    kind: Literal["classic"]

class HyStart(Described):
    """HyStart as in Linux: slow start ends when a train of ACKs grows long, or the RTT rises."""

    kind: Literal["hystart"]
    ack_train: bool = True
    """The length of ACK trains counts (bit 0 of Linux `hystart_detect`)."""
    delay: bool = True
    """The rise in RTT counts (bit 1 of it)."""
    low_window: int = 16
    """cwnd below which nothing is detected, segments (Linux `hystart_low_window`)."""
    ack_delta: str = "2 ms"
    """ACKs at most this far apart form a train, in whole microseconds (Linux `hystart_ack_delta_us`)."""

class HyStartPlusPlus(Described):
    """HyStart++ (RFC 9406): a rise in RTT slows slow start down, and ends it if it lasts."""

    kind: Literal["hystart++"]
    css_growth_divisor: int = 4
    """What growth is divided by after the rise (CSS_GROWTH_DIVISOR)."""
    css_rounds: int = 5
    """Rounds after the rise until slow start ends (CSS_ROUNDS)."""
    burst: int = 8
    """Most segments by which one ACK lets an unpaced sender grow (L)."""

class SearchSlowStart(Described):
    """SEARCH (draft-chung-ccwg-search-09): slow start ends when less is delivered than was sent a round trip before."""

    kind: Literal["search"]
    drain: bool = True
    """After slow start cwnd falls to what was delivered in the last first RTT, that is without what stands in queues; else ssthresh is cwnd, and nothing falls."""

class LimitedSlowStart(Described):
    """Limited slow start (RFC 3742): from some window on it grows by a given number of segments per round trip at most."""

    kind: Literal["limited"]
    max_ssthresh: int = 100
    """Window up to which slow start doubles it, segments; above, a round trip adds half of this (RFC 3742)."""

class CarefulResume(Described):
    """Careful Resume (RFC 9959): jumps to half of the window that an earlier connection had, and retreats if that was too much."""

    kind: Literal["careful-resume"]
    saved_cwnd: int
    """What an earlier connection had delivered in one RTT, segments."""
    saved_rtt: str
    """Its least RTT."""
    max_jump: int = 1000000000
    """Most segments to jump to, whatever was saved."""

class MetricsCache(Described):
    """What the hosts remember of earlier connections to a destination (Linux tcp_metrics), and start the next with.

    Without ssthresh the first connection is a cold start; those after it are warm.
    """

    destination: str = "peer"
    """Name; groups that give the same one share what is remembered."""
    ssthresh: int | None = None
    """Slow-start threshold remembered at the start, segments; absent: none."""
    cwnd: int | None = None
    """Window remembered at the start, segments; no connection starts with it."""

class Stack(_rules.OneBufferAndWhatDetectionNeeds):
    """Settings of a host that override its profile; every one absent: as in the profile."""

    smss: str | None = None
    """Payload of a full segment, options taken off: 64 to 65000 bytes."""
    initial_window: int | None = None
    """Segments."""
    initial_ssthresh: int | None = None
    """Slow-start threshold before the first loss, segments: slow start ends there; absent: arbitrarily high (RFC 5681 §3.1). What `metrics_cache` remembers comes first."""
    first_burst_cap: int | None = None
    """Segments that leave before the first ACK of data at most, whatever the initial window; absent: no such bound."""
    fin_ignores_cwnd: Literal["off", "alone", "with-data"] | None = None
    """Whether a FIN leaves though the congestion window is full: never, if it carries no data, or even with the last data (an initial window of 10 is then really one of 11)."""
    sack: bool | None = None
    """Selective acknowledgements."""
    timestamps: bool | None = None
    """TCP timestamps."""
    detection: Literal["dupthresh", "fack", "rack"] | None = None
    """How losses are detected; "fack" and "rack" need SACK."""
    initial_rto: str | None = None
    """Retransmission timeout before the first RTT sample."""
    min_rto: str | None = None
    """Least retransmission timeout."""
    delayed_ack: bool | None = None
    """Delayed ACKs."""
    quick_acks: bool | None = None
    """Of delayed ACKs: the first segments of a connection are acknowledged at once, as Linux does."""
    response_carries_ack: bool | None = None
    """The end that is connected to delays its ACKs whatever `delayed_ack` says, so that its response carries the ACK of the request."""
    count_acks: bool | None = None
    """In slow start the window grows by one segment per ACK, not by the segments acknowledged (as Linux did until 2015)."""
    ack_splits: int | None = None
    """The receiver cheats: it acknowledges each segment in so many pieces."""
    hide_marks: bool | None = None
    """The receiver cheats: it never echoes marks."""
    optimistic_acks: float | str | None = None
    """The receiver cheats: it acknowledges what is missing as if it had come, and this share of what comes in a round trip ahead of it. Goodput is of what comes."""
    reordering: int | None = None
    """Reordering degree that a connection begins with, segments (a Linux route's `reordering`)."""
    tlp: bool | None = None
    """Tail loss probes."""
    frto: bool | None = None
    """F-RTO."""
    undo: bool | None = None
    """Undo of needless window reductions."""
    limited_transmit: bool | None = None
    """Limited transmit (RFC 3042)."""
    early_retransmit: Literal["off", "rfc5827", "delayed"] | None = None
    """Early retransmit: RFC 5827's or Linux's delayed form."""
    idle_restart: bool | None = None
    """Small window after an idle time."""
    sack_compression: bool | None = None
    """The receiver joins SACKs that follow each other closely."""
    receive_buffer: str | None = None
    """Greatest receive window."""
    socket_buffer: str | None = None
    """Receive buffer set by the application (SO_RCVBUF), which then does not grow by itself; how much of it the window may fill is the profile's."""
    packet_memory: Literal["copied", "handed-on"] | None = None
    """What a packet takes of the memory for received data: as behind a device that copies it (2304 bytes for 1448 of payload), or as between namespaces of one machine (veth), where the sender's memory is handed on (832 bytes and the payload)."""
    mtu_probing: Literal["off", "after-timeouts", "always"] | None = None
    """The sender looks for the path's MTU by itself (RFC 4821; Linux `tcp_mtu_probing`): never, after repeated timeouts, or from the start, when segments hold 1024 bytes and grow with each probe that is acknowledged."""
    initial_receive_window: int | None = None
    """First window that a receiver advertises, full segments; absent: the profile's 65160 bytes."""
    beta: float | None = None
    """Multiplicative decrease, where the controller has a choice (cubic: 0.7)."""
    ecn_beta: float | None = None
    """The same after a mark instead of a loss (ABE, RFC 8511: 0.8 for reno, 0.85 for cubic); absent: as after a loss."""
    slow_start: (
        ClassicSlowStart | HyStart | HyStartPlusPlus | SearchSlowStart | LimitedSlowStart | CarefulResume | None
    ) = None
    """How a connection grows until it knows the path, beside any controller that begins with slow start; absent: as the controller does ("hystart" for cubic, "classic" for the others)."""
    ecn: Literal["off", "accept", "ask", "accecn", "accecn-accept", "accecn-ask"] | None = None
    """Explicit congestion notification (RFC 3168): never, if the peer asks, or ask for it; "accecn" asks for accurate ECN (RFC 9768), "accecn-accept" and "accecn-ask" agree to it and ask for none or for that of RFC 3168; absent: as the profile and the controller want it."""
    ect1: bool | None = None
    """ECN-capable packets carry ECT(1), the mark of L4S (RFC 9331), and not ECT(0); absent: as the controller wants it."""
    accecn_option: int | None = None
    """The option of accurate ECN: 0 never, 1 where it tells something new, 2 always if the path lets it through, 3 always (Linux `tcp_ecn_option`)."""
    hz: int | None = None
    """Ticks of the kernel's clock per second."""
    pacing: bool | None = None
    """Departures wait for the pacing rate, from the eleventh segment on: 200 % of cwnd per SRTT in slow start, 120 % later."""
    pace_initial_window: bool | None = None
    """The initial window is spread over the RTT of the handshake."""
    max_pacing_rate: str | None = None
    """Bound of the pacing rate (SO_MAX_PACING_RATE); it turns pacing on."""
    small_queues: bool | None = None
    """TCP small queues: where the host has a device of its own, TCP leaves about a millisecond's worth in its queue."""
    limit_output_bytes: str | None = None
    """Most that TCP leaves there, whatever the rate, as Linux counts memory; absent: 4 MiB (Linux `tcp_limit_output_bytes`)."""
    tso: bool | None = None
    """Data leaves in packets of several segments, sized and deferred as Linux does for segmentation offload, and arrives in them, as between virtual machines."""
    send_buffer: str | None = None
    """What written data may take in memory before the application waits, as Linux counts it: payload, and 832 bytes a packet (456 in `linux-3.0` and `linux-2.6`). Without `tso` each segment is a packet."""
    metrics_cache: MetricsCache | None = None
    """The hosts remember ssthresh from one connection to the next; absent: they do not."""

Queue: TypeAlias = DropTail | NetemLimit | Codel | FqCodel | Pie | Threshold | Red | LinuxRed | Choke | Dualpi2 | Cake
Loss: TypeAlias = NoLoss | Bernoulli | GilbertElliott | Periodic | Listed | Scripted | Policer
Capacity: TypeAlias = Schedule | Random | Mahimahi | Dummynet
Workload: TypeAlias = (
    Bulk | Transfer | Fetch | Throttled | Population | ConstantRate | OnOff | Voice | Transactions | Video | Bursts | Media
)

__all__ = [
    "At",
    "Bernoulli",
    "Bulk",
    "Bursts",
    "Cake",
    "CarefulResume",
    "Choke",
    "ClassicSlowStart",
    "Codel",
    "ConstantRate",
    "Drop",
    "DropTail",
    "Dualpi2",
    "Dummynet",
    "EcnFault",
    "Festive",
    "Fetch",
    "Fifo",
    "Fq",
    "FqCodel",
    "GilbertElliott",
    "Host",
    "HyStart",
    "HyStartPlusPlus",
    "InitialWindow",
    "LimitedSlowStart",
    "Link",
    "LinuxRed",
    "Listed",
    "Mahimahi",
    "Media",
    "Merging",
    "MetricsCache",
    "NetemLimit",
    "NoLoss",
    "OnOff",
    "Outage",
    "Periodic",
    "Pie",
    "Poisson",
    "Policer",
    "Population",
    "Random",
    "RateBased",
    "Red",
    "Regular",
    "Reorder",
    "Schedule",
    "Scripted",
    "SearchSlowStart",
    "Stack",
    "Step",
    "Threshold",
    "Throttled",
    "Times",
    "Transactions",
    "Transfer",
    "Video",
    "Voice",
    "WifiJitter",
    "Xen",
]
