"""Every sentence, number, table and figure of the publications about PRR, and what became of it."""

from __future__ import annotations

from ackclock.study.sentence import Sentence

_CS244_13_BLOG = "CS244'13 blog"
_IETF_84_SLIDES = "IETF-84 slides"
_IMC_2011_PAPER = "IMC 2011 paper, as far as its abstract and the RFCs quote it"

SENTENCES = (
    Sentence(
        source=_CS244_13_BLOG,
        place="first paragraph",
        says="responses with losses last 7 to 10 times longer",
        claims=("T7",),
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="first paragraph",
        says="PRR recovers quickly, smoothly, by pacing out retransmissions across ACKs",
        claims=("T1", "P7"),
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="first paragraph",
        says="improves fast recovery under burst losses",
        claims=("T12",),
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="first paragraph",
        says="and for losses near the end of short flows",
        claims=("P21", "T3", "P8"),
    ),
    Sentence(
        source=_CS244_13_BLOG, place="second paragraph", says="proportional part reduces cwnd gradually", claims=("T1",)
    ),
    Sentence(source=_CS244_13_BLOG, place="second paragraph", says="ends recovery close to ssthresh", claims=("P2",)),
    Sentence(
        source=_CS244_13_BLOG, place="second paragraph", says="below ssthresh it slow-starts back", claims=("T2",)
    ),
    Sentence(
        source=_CS244_13_BLOG, place="second paragraph", says="application stalls during recovery", claims=("P13",)
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="original results",
        says="pipe against ssthresh at the start; cwnd against ssthresh at the end",
        claims=("P1", "P16", "P2"),
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="original results",
        says="time in recovery, retransmissions, timeouts, latency",
        claims=("P7", "P4", "P3", "P11", "P5"),
    ),
    Sentence(source=_CS244_13_BLOG, place="original results", says="India YouTube", claims=("V1", "V2", "V3", "V4")),
    Sentence(
        source=_CS244_13_BLOG,
        place="section 1, two figures",
        says="cwnd of a long flow without and with PRR",
        claims=("T1", "T2"),
        beside="figure *long flow*",
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="section 2, bars with retransmission",
        says="significantly lower with PRR",
        claims=("T3", "T10"),
        beside="figure *kernel bars*, above",
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="section 2, bars with almost none",
        says="pretty much the same",
        claims=("T4",),
        beside="figure *kernel bars*, below",
    ),
    Sentence(source=_CS244_13_BLOG, place="section 2", says="with 100 fetches the variance is large", claims=("T8",)),
    Sentence(
        source=_CS244_13_BLOG,
        place="section 2",
        says="flows outside two sigmas are outliers",
        beside="the split of T10's bars: two standard deviations above the fastest, as in the script; the text says from the average",
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="section 3, two figures",
        says="rises dramatically without PRR, not as much with it",
        claims=("T5", "T11"),
        beside="figure *kernel rises*",
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="section 3, two figures",
        says="helps especially when link loss is high",
        claims=("T6",),
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="challenges",
        says="the kernels differ in more than PRR",
        claims=("T10", "T11"),
        beside="`--backend linux`",
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="challenges",
        says="tcp_probe lacks pipe and time in recovery",
        beside="`ackclock export --as tcp-probe` writes its lines; the traces have pipe and recovery",
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="challenges",
        says="kernels right before and after the commit of PRR could not be built",
        beside="one kernel with one rule exchanged for another, `--backend linux`; kernels 3.0 and 3.2 themselves are not run",
    ),
    Sentence(
        source=_CS244_13_BLOG,
        place="comments",
        says="75 KB and 750 KB nearly equal; the loss plot without PRR reversed, with PRR the same trend",
        claims=("T9", "T5"),
    ),
    Sentence(source=_CS244_13_BLOG, place="comments", says="graphs of part 3 were not produced", none="about a script"),
    Sentence(source=_CS244_13_BLOG, place="comments", says="mostly matching graphs of cwnd", claims=("T1", "T2")),
    Sentence(
        source=_IETF_84_SLIDES,
        place="motivation",
        says="RFC 3517 waits for half of the ACKs",
        claims=("P20",),
        beside="figure *ideal path*",
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="motivation",
        says="rate halving does not compensate for heavy losses",
        claims=("P7", "T2"),
    ),
    Sentence(source=_IETF_84_SLIDES, place="motivation", says="both are prone to timeouts", claims=("P3", "P11")),
    Sentence(
        source=_IETF_84_SLIDES,
        place="all positive results, rate halving",
        says="more accurate reduction; depressed cwnd",
        claims=("P2",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="all positive results, rate halving",
        says="less prone to timeouts; better performance",
        claims=("P3", "P5"),
    ),
    Sentence(
        source=_IETF_84_SLIDES, place="all positive results, RFC 3517", says="gradual, no silence", claims=("T1", "P20")
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="all positive results, RFC 3517",
        says="fewer timeouts following burst losses",
        claims=("P12",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="all positive results, RFC 3517",
        says="no bursts when losses exceed the reduction",
        claims=("P7", "P14"),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="all positive results, RFC 3517",
        says="less prone to lost retransmissions",
        claims=("P4",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="all positive results, RFC 3517",
        says="better overall performance",
        claims=("P6",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="Proportional Rate Reduction",
        says="sending rate = reduction factor × data rate at the receiver",
        claims=("P19",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="Proportional Rate Reduction",
        says="faster but smoother than 3517; less aggressive below ssthresh",
        claims=("P20", "P18"),
    ),
    Sentence(
        source=_IETF_84_SLIDES, place="slow start while in recovery", says="RFC 3517 sends bursts of 40", claims=("P7",)
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="slow start while in recovery",
        says="as much as was delivered and one segment more, for about 40 ACKs",
        claims=("P22",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="algorithm comparisons",
        says="rows ACK by ACK, of one loss and of 15",
        beside="the tables of the RFCs, which print the same numbers",
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="algorithm comparisons",
        says="row RB: where the reduction bound acts",
        beside="row *rb* of the table of RFC 6937, which prints the same",
    ),
    Sentence(source=_IETF_84_SLIDES, place="is the high loss case common", says="45, 13 and 32 %", claims=("P1",)),
    Sentence(
        source=_IETF_84_SLIDES,
        place="is the high loss case common",
        says="distribution of pipe - ssthresh",
        claims=("P16",),
    ),
    Sentence(source=_IETF_84_SLIDES, place="is the high loss case common", says="contributing: CUBIC", claims=("P1",)),
    Sentence(
        source=_IETF_84_SLIDES,
        place="is the high loss case common",
        says="contributing: better SACK retransmit algorithms",
        claims=("P15",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="measurement setup",
        says="CUBIC, limited transmit, lost retransmission detection; mixed services without streaming video",
        beside="profile `linux-3.2`; the Web population",
    ),
    Sentence(
        source=_IETF_84_SLIDES, place="measurement summary, RFC 3517", says="2.6 % more timeouts", claims=("P11",)
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="measurement summary, RFC 3517",
        says="3 % more retransmissions, 29 % more lost ones",
        claims=("P4",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="measurement summary, RFC 3517",
        says="similar completion times; aggressiveness gains nothing",
        claims=("P6",),
    ),
    Sentence(
        source=_IETF_84_SLIDES, place="measurement summary, rate halving", says="5 % more timeouts", claims=("P3",)
    ),
    Sentence(
        source=_IETF_84_SLIDES, place="measurement summary, rate halving", says="lower cwnd at the end", claims=("P2",)
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="measurement summary, rate halving",
        says="3 to 5 % longer transactions",
        claims=("P5",),
    ),
    Sentence(source=_IETF_84_SLIDES, place="conclusion", says="lower tail latencies", claims=("P25",)),
    Sentence(
        source=_IETF_84_SLIDES, place="conclusion", says="possible indirect costs of sending early", claims=("P26",)
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="packet conservation",
        says="a standing queue has constant length",
        claims=("P17",),
        beside="figure *standing queue*",
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="packet conservation",
        says="any more aggressive algorithm makes the queue grow",
        claims=("P18",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="packet conservation",
        says="DeliveredData is no estimator with SACK; its sum is forward progress",
        none="a property of every run, tested in `crates/tcp/tests`",
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="packet conservation",
        says="DeliveredData can be estimated without SACK",
        claims=("P24",),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="PRR pseudo code; reduction bound variants",
        says="pseudo code; reduction bounds CRB, SSRB and UB",
        beside="the tables of the RFCs, in which each rule is compared",
    ),
    Sentence(source=_IETF_84_SLIDES, place="PRR-UB", says="mirrors RFC 3517", claims=("P14",)),
    Sentence(source=_IETF_84_SLIDES, place="PRR-CRB", says="lower measured performance than RFC 3517", claims=("P10",)),
    Sentence(source=_IETF_84_SLIDES, place="PRR-SSRB", says="a compromise", claims=("P7", "P10")),
    Sentence(
        source=_IETF_84_SLIDES,
        place="properties",
        says="spreads out the reduction; converges to the target",
        claims=("P19", "T1", "P2"),
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="properties",
        says="keeps the ACK clock under large burst losses",
        claims=("T12", "P12"),
    ),
    Sentence(source=_IETF_84_SLIDES, place="properties", says="banks missed opportunities", claims=("P13",)),
    Sentence(source=_IETF_84_SLIDES, place="properties", says="less sensitive to errors of pipe", claims=("P23",)),
    Sentence(
        source=_IETF_84_SLIDES,
        place="example flows",
        says="PRR, PRR without a bound, Linux, RFC 3517",
        beside="figures *sequence*",
    ),
    Sentence(
        source=_IETF_84_SLIDES,
        place="last slide",
        says="Linux often ends in slow start after short responses",
        claims=("P8",),
    ),
    Sentence(source=_IMC_2011_PAPER, place="abstract", says="early retransmit for short transfers", claims=("P9",)),
    Sentence(source=_IMC_2011_PAPER, place="abstract", says="latency of responses that meet loss", claims=("P5",)),
)
