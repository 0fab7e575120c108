"""The types of the tables that the engine describes. Written by `make docs`: change the mechanism, not this file.

Length: it is written, and grows with every mechanism.
"""

from typing import Literal, TypeAlias

from ackclock.scenario import _rules
from ackclock.scenario._described import Described
from ackclock.scenario.distribution import Choice, Constant, Exponential, Lognormal, Uniform

class DropTail(Described):
    """First in, first out. A packet that arrives at a full queue is dropped."""

    kind: Literal["drop-tail"]
    limit: str | None = None
    """Maximum length of the queue: packets, bytes or multiples of the bandwidth-delay product. Default: unlimited."""

class NetemLimit(Described):
    """Linux netem with its `limit`, below a shaper (HTB), as Mininet builds a link. The limit counts packets in netem's delay line, too. A packet of several segments (`tso`) counts once here; in other queues it counts as that many packets. A packet leaves the queue when its transmission starts."""

    kind: Literal["netem-limit"]
    limit: str
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product."""

class Codel(_rules.TargetWithinInterval):
    """CoDel (RFC 8289): drops packets when their sojourn time stays above a target."""

    kind: Literal["codel"]
    limit: str | None = None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str = "5 ms"
    """Acceptable standing queue delay (TARGET)."""
    interval: str = "100 ms"
    """Time for which the sojourn time may exceed the target before drops begin (INTERVAL); about a worst-case RTT."""
    ecn: bool = False
    """Mark ECN-capable packets instead of dropping them."""
    ce_threshold: str | None = None
    """An ECN-capable packet that waited longer than this is marked, whatever CoDel decides (Linux `ce_threshold`). Default: off."""

class FqCodel(_rules.TargetWithinInterval):
    """FQ-CoDel (RFC 8290): a queue for each connection, served in turn, each managed by CoDel.

    All queues share the limit. When it is exceeded, the queue with the most bytes drops the packet at its head.
    """

    kind: Literal["fq-codel"]
    limit: str | None = None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str = "5 ms"
    """Acceptable standing queue delay (TARGET)."""
    interval: str = "100 ms"
    """Time for which the sojourn time may exceed the target before drops begin (INTERVAL); about a worst-case RTT."""
    ecn: bool = False
    """Mark ECN-capable packets instead of dropping them."""
    queues: int = 1024
    """Number of queues; a hash assigns each connection to one (RFC 8290 §5.2)."""
    quantum: str = "1514 bytes"
    """Bytes that a queue may send in one round (§5.2)."""
    ce_threshold: str | None = None
    """An ECN-capable packet that waited longer than this is marked, whatever CoDel decides (Linux `ce_threshold`). Default: off."""
    ce_threshold_for: Literal["l4s", "any-ect"] = "any-ect"
    """Packets that `ce_threshold` marks: those with ECT(1) or CE ("l4s"), or all ECN-capable ones (Linux `ce_threshold_selector` 1 with mask 3, or none)."""

class Pie(Described):
    """PIE (RFC 8033): drops arriving packets at random to hold the queueing delay near a reference."""

    kind: Literal["pie"]
    limit: str | None = None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str = "15 ms"
    """Reference for the queueing delay (QDELAY_REF, §4.1)."""
    update: str = "15 ms"
    """Interval at which the drop probability is adjusted (T_UPDATE, §4.2)."""
    max_burst: str = "150 ms"
    """Length of a burst that passes without drops (MAX_BURST, §4.4)."""
    ecn: bool = False
    """Mark ECN-capable packets instead of dropping them while the drop probability is at most 10 % (§5.1)."""

class Threshold(_rules.MarkWithinLimit):
    """Marks every packet that arrives while at least `mark` packets wait, as a DCTCP switch does. Packets that are not ECN-capable pass."""

    kind: Literal["threshold"]
    mark: str
    """Length of the queue from which on arriving packets are marked: packets or multiples of the bandwidth-delay product."""
    limit: str | None = None
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited."""

class Red(_rules.MinBelowMaxAndLimit):
    """Gentle RED (Floyd and Jacobson 1993): drops at random, more often the longer the mean queue."""

    kind: Literal["red"]
    limit: str
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product."""
    min: str
    """Mean queue length at which drops begin (min_th)."""
    max: str
    """Mean queue length at which the drop probability reaches `max_p` (max_th). Above it the probability rises linearly, to 1 at twice `max`."""
    max_p: float | str = 0.1
    """Drop probability at a mean queue of `max`."""
    weight: float | str = 0.002
    """Weight of one arrival in the moving average of the queue length (w_q)."""
    ecn: bool = False
    """Mark ECN-capable packets instead of dropping them."""

class LinuxRed(_rules.MinBelowMaxAndLimit):
    """RED as in Linux: counts bytes, signals every packet above `max`, and can adapt its probability. A signal is a mark or a drop."""

    kind: Literal["linux-red"]
    limit: str
    """Maximum length of the queue."""
    min: str | None = None
    """Mean queue length at which signals begin. Default: a third of `max`."""
    max: str | None = None
    """Mean queue length above which every packet is signalled. Default: a quarter of `limit`."""
    probability: float | str = 0.02
    """Probability of a signal at a mean queue of `max`; with `adaptive`, its initial value."""
    avpkt: str = "1000 bytes"
    """Assumed packet size. The weight of the moving average and the duration of idle periods in packets are computed from it."""
    burst: int | None = None
    """Burst of packets that passes without a signal; the weight of the moving average is computed from it. Default: (2 min + max) / (3 avpkt)."""
    bandwidth: str | None = None
    """Rate at which the mean decays while the queue is empty. Default: it does not decay, as below a shaper (HTB), which never asks an empty queue for a packet."""
    ecn: bool = False
    """Mark ECN-capable packets instead of dropping them."""
    harddrop: bool = False
    """With `ecn`: above `max`, drop ECN-capable packets, too."""
    nodrop: bool = False
    """With `ecn`: packets that are not ECN-capable pass."""
    adaptive: bool = False
    """Adjust the probability every 504 ms to keep the mean queue between 40 and 60 % of the way from `min` to `max`."""

class Choke(_rules.MinBelowMaxAndLimit):
    """CHOKe (Pan, Prabhakar and Psounis 2000): RED that penalises the connections that fill the queue. Each arriving packet is compared with a randomly chosen one in the queue. If both belong to the same connection, both are dropped."""

    kind: Literal["choke"]
    limit: str
    """Maximum length of the queue: packets or multiples of the bandwidth-delay product."""
    min: str
    """Mean queue length at which comparisons and drops begin (min_th)."""
    max: str
    """Mean queue length at which the drop probability reaches `max_p` (max_th). Above it every arriving packet is dropped."""
    max_p: float | str = 0.1
    """Drop probability at a mean queue of `max`."""
    weight: float | str = 0.002
    """Weight of one arrival in the moving average of the queue length (w_q)."""

class Dualpi2(Described):
    """DualPI2 (RFC 9332, Linux `sch_dualpi2`): a queue for L4S traffic, coupled to a queue for all other traffic.

    It marks ECN-capable packets and drops others. Its rate is that of the link.
    """

    kind: Literal["dualpi2"]
    limit: str | None = None
    """Maximum length of both queues together: packets or multiples of the bandwidth-delay product. Default: unlimited."""
    target: str = "15 ms"
    """Target delay of the C queue (RFC 9332: the Classic queue)."""
    update: str = "16 ms"
    """Interval at which the base probability is adjusted (Tupdate)."""
    alpha: float = 0.16015625
    """Integral gain, 1/s per second of delay; rounded to a multiple of 1/256."""
    beta: float = 3.19921875
    """Proportional gain, 1/s per second of delay; rounded to a multiple of 1/256."""
    coupling: int = 2
    """Coupling factor k."""
    step: str = "1 ms"
    """A packet that waited longer than this in the L queue is marked (RFC 9332: the Low-Latency queue)."""
    step_from: int = 0
    """Apply `step` only to packets that found at least this many packets in the L queue on arrival."""
    classic_share: float = 0.1
    """Minimum share of the link for the C queue while both queues have packets; in steps of 1 %."""
    classifier: Literal["l4s", "any-ect"] = "l4s"
    """Packets that go into the L queue: those with ECT(1) or CE ("l4s"), or all ECN-capable ones ("any-ect")."""
    overload: Literal["drop", "overflow"] = "drop"
    """What happens when `coupling` times the base probability exceeds 1. "drop": both queues drop packets, and the L queue marks those it keeps. "overflow": the L queue marks every packet and drops none before the limit."""

class Cake(Described):
    """CAKE (Høiland-Jørgensen, Täht and Morton 2018): a shaper, fairness between hosts and flows, and the AQM COBALT."""

    kind: Literal["cake"]
    rtt: str = "100 ms"
    """Expected round-trip time; the intervals of COBALT follow from it."""
    limit: str | None = None
    """Maximum memory of the queued packets as the kernel counts it: payload plus 832 bytes per packet. Default: four times what `bandwidth` carries in `rtt`, at least 4 MiB; without `bandwidth`, unlimited."""
    bandwidth: str | None = None
    """Rate of CAKE's shaper. Default: no shaper (tc's `unlimited`); the link limits the rate."""
    overhead: int | None = None
    """Bytes that the shaper adds to each IP packet. Default: the network's `framing`. tc's keywords stand for: ethernet 38, docsis 18, pppoe-ptm 30, bridged-ptm 22, pppoe-vcmux 32, ipoa-vcmux 8, conservative 48."""
    mpu: int = 0
    """Minimum bytes that the shaper counts for a packet (ethernet 84, docsis 64)."""
    framing: Literal["noatm", "atm", "ptm"] = "noatm"
    """Compensation for the line's encoding: ATM (each 48 bytes take a cell of 53), PTM (each 64 bytes take 65), or none."""
    isolation: Literal["flows", "dual-srchost", "dual-dsthost", "triple-isolate"] = "triple-isolate"
    """Between whom the rate is shared equally. Hosts are those of the scenario's `hosts`; ends without one count as one host per group of flows."""

class NoLoss(Described):
    """No packet is lost."""

    kind: Literal["none"]

class Bernoulli(Described):
    """Each packet is lost with the same probability, independently of the others."""

    kind: Literal["bernoulli"]
    p: float | str
    """Probability that a packet is lost."""
    applies_to: Literal["all", "syn", "data"] = "all"
    """Packets to which the model applies; others pass and are not counted."""

class GilbertElliott(Described):
    """Gilbert-Elliott model: two states, good and bad, each with its own loss probability."""

    kind: Literal["gilbert-elliott"]
    p: float | str
    """Probability, per packet, of a change from the good to the bad state."""
    r: float | str
    """Probability, per packet, of a change from the bad to the good state."""
    loss_bad: float | str = 1.0
    """Loss probability in the bad state."""
    loss_good: float | str = 0.0
    """Loss probability in the good state."""
    applies_to: Literal["all", "syn", "data"] = "all"
    """Packets to which the model applies; others pass and are not counted."""

class Periodic(Described):
    """Every n-th packet is lost."""

    kind: Literal["periodic"]
    every: int
    """n: one packet in this many is lost."""
    offset: int = 0
    """Number of packets that pass before counting begins."""
    applies_to: Literal["all", "syn", "data"] = "all"
    """Packets to which the model applies; others pass and are not counted."""

class Listed(Described):
    """Exactly the listed packets are lost, numbered in their order of arrival at the link."""

    kind: Literal["listed"]
    packets: tuple[int, ...]
    """Numbers of the lost packets, counted from 1. With `applies_to = "syn"`, 1 is the first SYN or SYN-ACK."""
    applies_to: Literal["all", "syn", "data"] = "all"
    """Packets to which the model applies; others pass and are not counted."""

class Drop(_rules.LastNotBeforeFirst):
    """A range of data segments, one transmission of which is lost."""

    flow: int = 0
    """Number of the flow, from 0."""
    first: int
    """First segment of the range, counted from 1 in the order of first transmission."""
    last: int | None = None
    """Last segment of the range. Default: only the first segment."""
    transmission: int = 0
    """Which transmission is lost: 0 the original, 1 the first retransmission, and so on."""

class Scripted(Described):
    """Exactly the listed transmissions of data segments are lost."""

    kind: Literal["scripted"]
    drops: tuple[Drop, ...]
    """The transmissions that are lost."""

class Policer(Described):
    """A token-bucket policer: it drops packets beyond a rate and delays none."""

    kind: Literal["policer"]
    rate: str
    """Rate at which tokens arrive. IP packets and framing consume them."""
    bucket: str
    """Capacity of the bucket."""
    initial: str | None = None
    """Bytes in the bucket at the start. Default: the bucket is full."""
    per: Literal["link", "flow"] = "link"
    """One bucket for the whole link, or one for each flow."""

class Step(Described):
    """A change of the link. A key that is not given leaves its quantity unchanged."""

    at: str
    """Time of the change, from the start of the run or, with `repeat`, of the cycle."""
    rate: str | None = None
    """Transmission rate. Zero stops transmission."""
    delay: str | None = None
    """One-way propagation delay. Packets keep their order when it decreases."""
    loss: float | str | None = None
    """Probability that an arriving packet is lost, in addition to the link's own `loss`."""

class Schedule(_rules.StepsInOrder):
    """Rate, delay and loss change at listed times, once or in a cycle. Until the first change, the link's own keys apply."""

    kind: Literal["schedule"]
    steps: tuple[Step, ...]
    """The changes, in chronological order."""
    repeat: str | None = None
    """Period of the cycle. At the end of each period the link's own keys apply again. Default: the last step applies until the end of the run."""

class Random(Described):
    """Rate, delay and loss are drawn anew at fixed intervals. A quantity without a distribution keeps the link's own value."""

    kind: Literal["random"]
    every: str
    """Length of the intervals."""
    rate: Constant | Uniform | Lognormal | Exponential | Choice | None = None
    """Rate."""
    delay: Constant | Uniform | Lognormal | Exponential | Choice | None = None
    """One-way propagation delay. Packets keep their order when it decreases."""
    loss: Constant | Uniform | Lognormal | Exponential | Choice | None = None
    """Probability that an arriving packet is lost, in addition to the link's own `loss`."""

class Mahimahi(Described):
    """A Mahimahi trace, replayed exactly and in a loop. The link must not have a `rate`."""

    kind: Literal["mahimahi"]
    file: str
    """File with the trace; each line gives a millisecond at which one packet may leave. The path is relative to the scenario file."""
    opportunity: str = "1500 bytes"
    """Bytes that may leave at each of these times, framing included."""

class Dummynet(Described):
    """A pipe of FreeBSD's dummynet: at each clock tick it releases the packets that the rate allows for one tick."""

    kind: Literal["dummynet"]
    tick: str = "1 ms"
    """Period of the clock (1 ms for `kern.hz` = 1000)."""
    keeps_credit: bool = False
    """Whether credit that a tick leaves unused serves packets that arrive before the next tick (FreeBSD 8.1 and later) or is lost (earlier versions)."""

class Bulk(Described):
    """Always has data to send, until the flow stops."""

    kind: Literal["bulk"]

class Transfer(Described):
    """Sends a number of bytes, then closes the connection."""

    kind: Literal["transfer"]
    bytes: str
    """Number of bytes."""

class Fetch(Described):
    """A client at the receiving end fetches responses, each over a new connection: connect, request, response, close."""

    kind: Literal["fetch"]
    bytes: str
    """Size of the response."""
    request: str = "100 bytes"
    """Size of the request."""
    count: int = 1
    """Number of fetches, one after another."""
    pause: str = "0 s"
    """Time from the last byte of one response to the start of the next fetch."""
    timeout: str | None = None
    """Time after which the client gives up a fetch. Default: never."""
    common_random_numbers: bool = False
    """Make the losses of a fetch depend only on the seed and the number of the fetch. Two scenarios that are compared then meet the same losses, fetch by fetch."""

class Throttled(Described):
    """Writes blocks at a given rate, as video servers do."""

    kind: Literal["throttled"]
    rate: str
    """Rate at which the application writes."""
    chunk: str
    """Size of one write."""
    initial: str = "0 bytes"
    """Bytes written at once when the flow starts."""
    bytes: str | None = None
    """Total number of bytes. Default: the application writes until the flow stops."""

class Population(Described):
    """Clients, each alone on its own path, that fetch one response at a time. Each client draws the properties of its path and the size of its responses once."""

    kind: Literal["population"]
    clients: int
    """Number of clients."""
    requests: int = 1
    """Number of fetches of each client, each over a new connection."""
    rtt: Constant | Uniform | Lognormal | Exponential | Choice
    """Round-trip propagation delay of a client's path."""
    rate: Constant | Uniform | Lognormal | Exponential | Choice
    """Bottleneck rate of a client's path."""
    loss: Constant | Uniform | Lognormal | Exponential | Choice
    """Loss probability in each direction of a client's path."""
    bytes: Constant | Uniform | Lognormal | Exponential | Choice
    """Size of a client's responses."""
    queue: str = "100 packets"
    """Size of the bottleneck queue of each client."""
    throttle: float | None = None
    """After an initial burst, the server writes at this multiple of the client's rate. Default: it writes as fast as it can."""

class ConstantRate(Described):
    """Sends UDP datagrams of one size at a constant rate, until the flow stops."""

    kind: Literal["constant-rate"]
    rate: str
    """Rate of the IP packets, including their headers."""
    payload: str = "1472 bytes"
    """UDP payload of each datagram."""

class OnOff(Described):
    """Sends UDP datagrams at a constant rate in on-periods that are separated by silence. It begins with an on-period."""

    kind: Literal["on-off"]
    rate: str
    """Rate of the IP packets during an on-period, including their headers."""
    on: str
    """Mean length of an on-period."""
    off: str
    """Mean length of a silence."""
    periods: Literal["exponential", "fixed"] = "exponential"
    """Distribution of the lengths of both: exponential, or always the mean."""
    payload: str = "1472 bytes"
    """UDP payload of each datagram."""

class Voice(Described):
    """A telephone call over UDP. The defaults are those of G.711 over RTP: 160 bytes of speech every 20 ms."""

    kind: Literal["voice"]
    interval: str = "20 ms"
    """Time between datagrams."""
    payload: str = "172 bytes"
    """UDP payload of each datagram: speech and RTP header."""

class Poisson(_rules.RateOrLoad):
    """Clients arrive as a Poisson process; give its intensity as `rate` or as `load`."""

    kind: Literal["poisson"]
    rate: float | None = None
    """Clients per second, for all flows of the group together."""
    load: float | None = None
    """Offered load: the packets of all responses, each sent once, as a fraction of the bottleneck's rate."""
    load_counts: Literal["data", "all"] = "data"
    """What `load` counts: only data packets, or also the SYN-ACK, FIN and two ACKs of each connection."""

class Regular(Described):
    """Clients arrive at equal intervals, the first when the flow starts."""

    kind: Literal["periodic"]
    interval: str
    """Time from one client of a flow to the next."""

class At(_rules.TimesInOrder):
    """Clients arrive at given times."""

    kind: Literal["at"]
    times: tuple[str, ...]
    """Times from the start of the flow, in ascending order."""

class InitialWindow(Described):
    """An initial window of a mix, with its probability."""

    segments: int
    """Initial window, segments."""
    share: float | str
    """Probability that a connection draws this window."""

class Transactions(_rules.SharesSumToOneAndObjectsStandAlone):
    """Clients arrive at the receiving end. Each opens a connection, requests responses, and closes the connection.

    Each flow of the group is a pair of client and server. `arrivals`, `count` and `max_open` apply to the whole group. What the k-th transaction of a flow draws depends only on the seed, so scenarios that are compared see the same clients.
    """

    kind: Literal["transactions"]
    bytes: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Size of a response: a size, or a distribution of sizes."""
    request: str = "200 bytes"
    """Size of a request."""
    arrivals: Poisson | Regular | At
    """When clients arrive."""
    batch: int = 1
    """Number of connections that a client opens at once."""
    requests: int = 1
    """Number of requests on each connection, one after another (keep-alive)."""
    think: str | Constant | Uniform | Lognormal | Exponential | Choice = "0 s"
    """Time from the end of a response to the next request: a duration, or a distribution of durations."""
    objects: int | None = None
    """A Web page: number of responses that the client fetches over all its connections; each connection that becomes free takes the next one. Replaces `requests`."""
    together: bool = False
    """Incast: a client sends its requests on all its connections at the same time, and the next ones when the last connection has its response."""
    count: int | None = None
    """Total number of connections; with one request each, this is the number of transactions. Default: clients arrive until the flows stop."""
    max_open: int | None = None
    """Maximum number of open connections. A client that finds this many is turned away. Required for a load above 1."""
    initial_window_mix: tuple[InitialWindow, ...] = ()
    """Initial windows from which connections draw theirs, with probabilities. Default: all use `stack.initial_window`."""
    mix_by: Literal["transaction", "batch"] = "transaction"
    """Whether each connection draws an initial window ("transaction"), or each client draws one for all its connections ("batch")."""
    close: Literal["server", "client"] = "server"
    """Which side closes first: the server when it has written the last response, or the client when it has read it."""

class Festive(Described):
    """FESTIVE (CoNEXT 2012): harmonic mean of throughputs, one level at a time, delayed updates, randomised requests."""

    kind: Literal["festive"]
    window: int = 20
    """Number of chunks over which the harmonic mean of the throughput is taken."""
    safety: float = 0.85
    """Maximum bitrate as a multiple of the estimated throughput (p)."""
    alpha: float = 12.0
    """Weight of efficiency relative to stability (alpha)."""
    horizon: int = 5
    """Number of chunks over which switches are counted: with chunks of 4 s, the 20 s of the authors' slides."""
    randomised: bool = True
    """Draw the buffer level at which the player requests the next chunk at random around the target. If false, it is the target."""
    gradual: bool = True
    """Switch one level at a time, and up from level k only after k chunks at that level. If false, switch directly to the highest level that `safety` allows."""
    delayed: bool = True
    """Delay a switch until its gain in efficiency outweighs the instability that it adds."""

class RateBased(Described):
    """Chooses the highest bitrate below the throughput of the last chunk, or below its moving average."""

    kind: Literal["rate-based"]
    weight: float = 1.0
    """Weight of the last chunk in the moving average. 1 uses only the last chunk."""
    safety: float = 1.0
    """Maximum bitrate as a multiple of the estimated throughput."""

class Video(_rules.LadderAscendsAndBuffersHoldChunks):
    """A video player at the receiving end fetches chunks over one connection and chooses the bitrate of each.

    The player requests chunks back to back until its buffer reaches the target, then requests one whenever the buffer has drained to the target. The size of a chunk relative to its bitrate depends only on the seed, the flow and the number of the chunk, so scenarios that are compared show the same video. Over PCC the request is a datagram in the reverse direction.
    """

    kind: Literal["video"]
    ladder: tuple[str, ...]
    """Bitrates to choose from, in ascending order."""
    chunk: str = "4 s"
    """Playing time of a chunk."""
    chunks: int | None = None
    """Number of chunks of the video. Default: the player fetches chunks until the flow stops."""
    buffer: str = "30 s"
    """Playing time that the player tries to keep in its buffer (the target)."""
    buffer_max: str | None = None
    """Maximum playing time in the buffer, at least one chunk more than `buffer`. Default: two chunks more than `buffer`."""
    startup: str | None = None
    """Playing time in the buffer at which playback starts, and resumes after a stall. Default: one chunk, or `buffer` if that is less."""
    request: str = "200 bytes"
    """Size of a request. Over PCC at most 1456 bytes, the payload of a datagram."""
    size_variation: float = 0.0
    """Maximum deviation of a chunk's size from bitrate times length, as a share of it. Sizes are drawn uniformly."""
    adaptation: Festive | RateBased = ...
    """How the player chooses a bitrate."""

class Bursts(Described):
    """One connection sends bursts that are separated by silences. A silence begins when the previous burst is acknowledged."""

    kind: Literal["bursts"]
    bytes: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Size of a burst: a size, or a distribution of sizes."""
    pause: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Length of a silence: a duration, or a distribution of durations."""
    count: int | None = None
    """Number of bursts. Default: the flow sends bursts until it stops."""

class Media(Described):
    """Sends video frames in real time over one connection."""

    kind: Literal["media"]
    fps: int = 30
    """Frames per second."""
    group: int = 30
    """Number of frames in a group of pictures. The first frame of a group does not depend on others."""
    first: str
    """Size of the first frame of a group."""
    other: str
    """Size of each other frame."""
    drop_late: str | None = None
    """When the oldest unacknowledged frame is older than this, the sender skips frames until the next group. Default: it skips none."""

class Reorder(Described):
    """The link holds back some packets, and later packets overtake them."""

    probability: float | str
    """Probability that a packet is held back."""
    extra_delay: str
    """How much later such a packet arrives."""

class WifiJitter(Described):
    """Wi-Fi jitter as modelled by draft-huitema-ccwg-c4-test. Packets keep their order, so a late packet delays those behind it."""

    mean: str
    """Mean jitter (J of the draft) that one packet draws. Packets that follow each other closely are delayed more, because a late packet holds them up."""

class EcnFault(Described):
    """A middlebox that changes the ECN field of packets."""

    what: Literal["bleach", "strip-ce", "mark-all"]
    """What it does: "bleach" sets every packet to Not-ECT, "strip-ce" turns CE into ECT(0), "mark-all" turns every ECT into CE."""
    at: Literal["before", "after"] = "after"
    """Position of the middlebox: before the queue or after it."""
    probability: float | str = 1.0
    """Probability that it changes a packet."""

class Outage(Described):
    """The link starts no transmission for a while, once or repeatedly."""

    at: str
    """Start of the first outage."""
    every: str | None = None
    """Time from the start of one outage to the start of the next. Default: there is one outage only."""
    lasts: str | Constant | Uniform | Lognormal | Exponential | Choice
    """Length of each outage: a duration, or a distribution of durations. It must be shorter than `every`."""
    arrivals: Literal["wait", "lost"] = "wait"
    """Whether packets that arrive during an outage wait in the queue or are lost."""

class Merging(Described):
    """The NIC of a router that merges consecutive segments (generic receive offload, GRO). The link behind it drops and queues a packet of several segments as a whole."""

    receive_interval: str = "0 s"
    """Minimum time between two interrupts of the NIC. With "0 s" it merges only packets that arrive at the same instant."""
    gro_flush_timeout: str = "0 s"
    """Time after which the kernel polls the NIC again without an interrupt; until then GRO may hold packets (Linux `gro_flush_timeout`)."""
    napi_defer_hard_irqs: int = 0
    """With `gro_flush_timeout`: number of consecutive empty polls after which the NIC may interrupt again (Linux `napi_defer_hard_irqs`)."""

class Link(_rules.RateOrCapacity):
    """One direction of a link."""

    rate: str | None = None
    """Transmission rate. Default: infinite."""
    delay: str = "0 s"
    """One-way propagation delay."""
    queue: (
        DropTail | NetemLimit | Codel | FqCodel | Pie | Threshold | Red | LinuxRed | Choke | Dualpi2 | Cake | None
    ) = None
    """Queue. Default: first in, first out, without a limit."""
    loss: NoLoss | Bernoulli | GilbertElliott | Periodic | Listed | Scripted | Policer | None = None
    """Loss of packets before they reach the queue. Default: none."""
    jitter: str = "0 s"
    """Maximum random extra delay, drawn uniformly from zero to this value for each packet. Packets keep their order."""
    reorder: Reorder | None = None
    """Reordering of packets. Default: none."""
    capacity: Schedule | Random | Mahimahi | Dummynet | None = None
    """How rate, delay and loss vary over time. Default: they are constant."""
    wifi: WifiJitter | None = None
    """Jitter of a Wi-Fi link, in addition to `jitter`. Default: none."""
    aggregate: str = "0 s"
    """The link holds packets until the first of them has waited this long, then delivers them together. "0 s" holds none."""
    ecn_fault: EcnFault | None = None
    """A middlebox that changes the ECN field. Default: none."""
    outage: Outage | None = None
    """Periods during which the link starts no transmission. Default: none."""
    thin_acks: int = 1
    """ACK filtering (RFC 3449): of up to this many consecutive ACKs of a connection that wait in the queue, only the newest stays. 1 turns it off."""
    merging: Merging | None = None
    """The NIC of the router in front of this link merges segments (GRO). The link then drops and queues a merged packet as a whole. Default: no merging."""

class Times(Described):
    """Periods with and without the processor alternate, each drawn from a distribution. The first on-period is shortened at random."""

    kind: Literal["times"]
    on: Constant | Uniform | Lognormal | Exponential | Choice
    """Length of a period with the processor."""
    off: Constant | Uniform | Lognormal | Exponential | Choice
    """Length of a period without the processor."""

class Xen(Described):
    """A virtual machine under Xen's credit scheduler. It runs for one, two or three ticks of 10 ms, then stalls while each of its competitors runs for a slice of 30 ms."""

    kind: Literal["xen"]
    competitors: int = 1
    """Number of other virtual machines that compete for the processor and are always busy."""

class Fifo(Described):
    """Linux pfifo: first in, first out. When the queue is full it refuses packets. TCP reacts to a refusal as to a congestion mark."""

    kind: Literal["fifo"]
    limit: int = 1000
    """Maximum number of packets. A packet of several segments counts once."""

class Fq(Described):
    """Linux fq: a queue for each connection, served in turn, that holds packets until they are due. TCP therefore paces with every controller, at its pacing rate, and leaves it to fq to delay the packets."""

    kind: Literal["fq"]
    limit: int = 10000
    """Maximum number of packets in all queues."""
    flow_limit: int = 100
    """Maximum number of packets of a connection."""
    quantum: str = "3028 bytes"
    """Bytes that a connection may send in one round."""
    initial_quantum: str = "15140 bytes"
    """Bytes that a new connection may send in its first round."""
    refill_delay: str = "40 ms"
    """A connection that was idle for this long gets a full quantum again."""
    max_rate: str | None = None
    """Maximum rate of a connection, whatever its pacing rate. Default: no maximum."""
    low_rate_threshold: str = "550 kbit/s"
    """For datagrams limited by `max_rate`: at or below this rate each packet is paced by itself, above it a quantum at a time."""
    horizon: str = "10 s"
    """How far ahead a packet may be due. A packet due later than that is dropped, or its time is moved to the horizon."""
    horizon_drop: bool = True
    """Drop packets beyond the horizon; if false, they are sent at the horizon."""
    ce_threshold: str | None = None
    """An ECN-capable packet that leaves this much later than it was due is marked. Default: none is marked."""
    timer_slack: str = "10 us"
    """How late the timer may fire, so that it can release several packets at once."""

class Host(_rules.HostKeysFit):
    """A host that groups of flows name. A host that is not described is perfect.

    All senders and receivers that name the same host stall together and share its cores and its NIC.
    """

    name: str
    """Name by which groups of flows refer to the host."""
    shared: bool = True
    """One machine for all flows that name it; if false, one machine per flow."""
    preset: Literal["clean", "xen-shared", "light", "micro", "single-core", "modern"] | None = None
    """Sets several of these keys at once. Keys that you also give take precedence."""
    gate: Times | Xen | None = None
    """When the host loses its processor. In the meantime it receives and sends nothing, and no timer fires. Default: never."""
    receives_on: bool = False
    """The gate stops only sending and timers, as when the sending thread is delayed but the receiving thread is not."""
    emulates_links: bool = False
    """This machine also emulates the network. While the gate is closed the links stand still; when it opens, packets that are overdue leave at once."""
    cores: int | None = None
    """Number of cores. If there are more processes, they take turns. Default: as many cores as needed."""
    slice: str = "3 ms"
    """Maximum time for which a process runs while others wait for its core."""
    busy_wait: bool | None = None
    """A sender of datagrams never yields its core voluntarily while it is open (busy waiting). Default: the preset's value, or false."""
    send_cost: str = "0 s"
    """CPU time that a process needs for each packet it sends."""
    receive_cost: str = "0 s"
    """CPU time that a process needs for each packet it receives."""
    receive_interval: str | None = None
    """Minimum time between two interrupts of the NIC; packets wait for the next one. Default: every packet causes an interrupt."""
    interrupt_rate: int | None = None
    """Maximum number of interrupts per second (ITR), as another way to give `receive_interval`."""
    gro: bool | None = None
    """Generic receive offload: consecutive segments of one interrupt reach TCP as one packet, and TCP acknowledges them once. Default: the preset's value, or false."""
    gro_flush_timeout: str = "0 s"
    """With `gro`: time after which the kernel polls the NIC again without an interrupt; until then GRO may hold packets (Linux `gro_flush_timeout`)."""
    napi_defer_hard_irqs: int = 0
    """With `gro_flush_timeout`: number of consecutive empty polls after which the NIC may interrupt again (Linux `napi_defer_hard_irqs`)."""
    cuts_packets: bool | None = None
    """TCP segmentation offload: the NIC splits the packets of `stack.tso` into single segments, as on a real wire. Default: the preset's value, or false."""
    line_rate: str | None = None
    """Rate of the host's own network device, in front of the network. Default: infinite; without `queue`, the host has no device."""
    queue: Fifo | Fq | None = None
    """Queueing discipline of this device. TCP limits how much it leaves there (TCP small queues). Default with a device: first in, first out, up to 1000 packets."""
    transmit_interval: str | None = None
    """Minimum time between two batches of departing packets; the packets of a batch leave back to back. Default: each packet leaves at once."""
    batch: int = 1
    """Number of packets that the host collects before they leave together."""
    batch_flush: str = "1 ms"
    """Maximum time for which the oldest packet waits for the batch to fill."""
    tick: str | None = None
    """Period of the clock that wakes paced senders. Default: they wake exactly on time."""
    catch_up: Literal["none", "burst", "full"] = "none"
    """How much of the time that a paced sender is late, beyond a tick, it makes up for by packets sent back to back: none, at most `burst` packets, or all."""
    burst: int = 10
    """With `catch_up = "burst"`: maximum number of such packets."""

class ClassicSlowStart(Described):
    """Slow start of RFC 5681: cwnd grows by one segment per acknowledged segment, until ssthresh or a loss."""

    kind: Literal["classic"]

class HyStart(Described):
    """HyStart as in Linux: slow start ends when an ACK train becomes long or the RTT rises."""

    kind: Literal["hystart"]
    ack_train: bool = True
    """Detect by the length of ACK trains (bit 0 of Linux `hystart_detect`)."""
    delay: bool = True
    """Detect by the increase of the RTT (bit 1 of Linux `hystart_detect`)."""
    low_window: int = 16
    """Minimum cwnd for detection, segments (Linux `hystart_low_window`)."""
    ack_delta: str = "2 ms"
    """Maximum spacing of the ACKs of a train, in whole microseconds (Linux `hystart_ack_delta_us`)."""

class HyStartPlusPlus(Described):
    """HyStart++ (RFC 9406): an increase of the RTT slows down slow start and, if it persists, ends it."""

    kind: Literal["hystart++"]
    css_growth_divisor: int = 4
    """Divisor of the growth after the increase of the RTT (CSS_GROWTH_DIVISOR)."""
    css_rounds: int = 5
    """Number of rounds from the increase of the RTT to the end of slow start (CSS_ROUNDS)."""
    burst: int = 8
    """Maximum growth per ACK of a sender without pacing, segments (L)."""

class SearchSlowStart(Described):
    """SEARCH (draft-chung-ccwg-search-09): slow start ends when much less is delivered than was sent one RTT earlier."""

    kind: Literal["search"]
    drain: bool = True
    """At the end of slow start, reduce cwnd to what was delivered during the last initial RTT, which drains the queue. If false, set ssthresh to cwnd and keep cwnd."""

class LimitedSlowStart(Described):
    """Limited slow start (RFC 3742): above a threshold, slow start grows more slowly."""

    kind: Literal["limited"]
    max_ssthresh: int = 100
    """cwnd up to which slow start doubles it every round trip, segments. Above it, cwnd grows by at most half of this per round trip (RFC 3742)."""

class CarefulResume(Described):
    """Careful Resume (RFC 9959): jumps to half the cwnd of an earlier connection, and retreats if this causes loss."""

    kind: Literal["careful-resume"]
    saved_cwnd: int
    """Segments that an earlier connection delivered in one RTT."""
    saved_rtt: str
    """Minimum RTT of the earlier connection."""
    max_jump: int = 1000000000
    """Maximum cwnd after the jump, segments."""

class MetricsCache(Described):
    """What hosts remember of earlier connections to a destination and use for the next one (Linux tcp_metrics).

    Without `ssthresh` the first connection starts cold and later ones start warm.
    """

    destination: str = "peer"
    """Name of the destination. Groups with the same name share the memory."""
    ssthresh: int | None = None
    """Slow-start threshold remembered when the run starts, segments. Default: none."""
    cwnd: int | None = None
    """Congestion window remembered when the run starts, segments. Hosts record it, but no connection starts with it. Default: none."""

class Stack(_rules.OneBufferAndWhatDetectionNeeds):
    """Settings of TCP that override the host profile. The default of every key is the profile's value."""

    smss: str | None = None
    """Payload of a full segment in bytes, without TCP options: 64 to 65000."""
    initial_window: int | None = None
    """Initial congestion window, segments."""
    initial_ssthresh: int | None = None
    """Initial slow-start threshold, segments. Default: arbitrarily high (RFC 5681 §3.1). A value that `metrics_cache` remembers takes precedence."""
    first_burst_cap: int | None = None
    """Maximum number of segments sent before the first ACK of data, whatever the initial window. Default: no maximum."""
    fin_ignores_cwnd: Literal["off", "alone", "with-data"] | None = None
    """Whether a FIN may leave when the congestion window is full: never ("off"), if it carries no data ("alone"), or even with the last data ("with-data": an initial window of 10 then sends up to 11 segments)."""
    sack: bool | None = None
    """Selective acknowledgments (SACK, RFC 2018)."""
    timestamps: bool | None = None
    """TCP timestamps (RFC 7323)."""
    detection: Literal["dupthresh", "fack", "rack"] | None = None
    """How the sender detects losses. "fack" and "rack" need SACK."""
    initial_rto: str | None = None
    """Retransmission timeout (RTO) before the first RTT sample."""
    min_rto: str | None = None
    """Minimum retransmission timeout (RTO)."""
    delayed_ack: bool | None = None
    """Delayed ACKs."""
    quick_acks: bool | None = None
    """With delayed ACKs: acknowledge the first segments of a connection immediately, as Linux does."""
    response_carries_ack: bool | None = None
    """The server delays its ACKs whatever `delayed_ack` says, so its response carries the ACK of the request."""
    count_acks: bool | None = None
    """In slow start cwnd grows by one segment per ACK, not by the number of acknowledged segments (as in Linux until 2015)."""
    ack_splits: int | None = None
    """The receiver cheats: it acknowledges each segment in this many parts."""
    hide_marks: bool | None = None
    """The receiver cheats: it never reports ECN marks."""
    optimistic_acks: float | str | None = None
    """The receiver cheats: it acknowledges missing data as if it had arrived, and acknowledges data ahead of its arrival, by this share of what arrives in a round trip. Goodput counts only data that arrives."""
    reordering: int | None = None
    """Initial degree of reordering that a connection assumes, segments (`reordering` of a Linux route)."""
    tlp: bool | None = None
    """Tail loss probes (TLP, RFC 8985)."""
    frto: bool | None = None
    """F-RTO: detection of spurious timeouts (RFC 5682)."""
    undo: bool | None = None
    """Undo window reductions that prove unnecessary."""
    limited_transmit: bool | None = None
    """Limited transmit (RFC 3042)."""
    early_retransmit: Literal["off", "rfc5827", "delayed"] | None = None
    """Early retransmit: off, as in RFC 5827, or delayed as in Linux."""
    idle_restart: bool | None = None
    """Reduce cwnd after an idle period (RFC 5681 §4.1)."""
    sack_compression: bool | None = None
    """SACK compression: the receiver sends one ACK for several SACKs in close succession."""
    receive_buffer: str | None = None
    """Maximum receive window."""
    socket_buffer: str | None = None
    """Receive buffer that the application sets (SO_RCVBUF). It does not grow automatically. The profile decides which share of it the receive window may use."""
    packet_memory: Literal["copied", "handed-on"] | None = None
    """Memory that a received packet takes: as behind a device that copies it ("copied": 2304 bytes for 1448 of payload), or as between network namespaces of one machine (veth), which pass on the sender's buffer ("handed-on": 832 bytes plus the payload)."""
    mtu_probing: Literal["off", "after-timeouts", "always"] | None = None
    """Packetization layer path MTU discovery (RFC 4821, Linux `tcp_mtu_probing`): never, after repeated timeouts, or from the start. From the start, segments hold 1024 bytes and grow with each acknowledged probe."""
    initial_receive_window: int | None = None
    """First receive window that the receiver advertises, full segments. Default: the profile's (65160 bytes in `linux-6`)."""
    beta: float | None = None
    """Multiplicative decrease factor, for controllers that let it be chosen (cubic: 0.7)."""
    ecn_beta: float | None = None
    """Multiplicative decrease factor after an ECN mark (ABE, RFC 8511: 0.8 for reno, 0.85 for cubic). Default: the same as after a loss."""
    slow_start: (
        ClassicSlowStart | HyStart | HyStartPlusPlus | SearchSlowStart | LimitedSlowStart | CarefulResume | None
    ) = None
    """Slow-start algorithm, for any controller that begins with slow start. Default: "hystart" for cubic, except in the profiles `linux-2.6` and `freebsd-4`; "classic" for the others."""
    ecn: Literal["off", "accept", "ask", "accecn", "accecn-accept", "accecn-ask"] | None = None
    """Explicit congestion notification (RFC 3168): "off", "accept" if the peer asks, or "ask" for it. "accecn" asks for accurate ECN (RFC 9768). "accecn-accept" and "accecn-ask" agree to accurate ECN, but ask for nothing or for ECN of RFC 3168. Default: what the profile and the controller need."""
    ect1: bool | None = None
    """Send ECN-capable packets with ECT(1), the L4S identifier (RFC 9331), instead of ECT(0). Default: what the controller needs."""
    accecn_option: int | None = None
    """When to send the AccECN option: 0 never, 1 when it reports something new, 2 always if the path passes it, 3 always (Linux `tcp_ecn_option`)."""
    hz: int | None = None
    """Ticks per second of the kernel's timer clock (HZ)."""
    pacing: bool | None = None
    """Pace segments, from the eleventh on: at 200 % of cwnd per SRTT in slow start, 120 % later."""
    pace_initial_window: bool | None = None
    """Spread the initial window over the RTT measured by the handshake."""
    max_pacing_rate: str | None = None
    """Maximum pacing rate (SO_MAX_PACING_RATE). Setting it turns pacing on."""
    small_queues: bool | None = None
    """TCP small queues: TCP keeps only about a millisecond's worth of data in the queue of the host's own device, if it has one."""
    limit_output_bytes: str | None = None
    """With `small_queues`: maximum that TCP keeps in that queue at any rate, in memory as Linux counts it. Default: 4 MiB (Linux `tcp_limit_output_bytes`)."""
    tso: bool | None = None
    """Send packets of several segments, sized and deferred as Linux does for TCP segmentation offload. Unless a host's NIC splits them, they also arrive whole, as between virtual machines."""
    send_buffer: str | None = None
    """Maximum memory of written data; when it is full, the application waits. Counted as in Linux: payload plus 832 bytes per packet (456 in `linux-3.0` and `linux-2.6`). Without `tso` each segment is a packet."""
    metrics_cache: MetricsCache | None = None
    """Hosts remember ssthresh from one connection to the next. Default: they do not."""

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
