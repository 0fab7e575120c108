"""Every sentence, number, table and figure of the slides and of RFC 6928's section on them, and what became of it."""

from __future__ import annotations

from ackclock.study.sentence import Sentence

_SLIDES_OF_IETF_79 = "Slides of IETF 79"
_RFC_6928 = "RFC 6928"

SENTENCES = (
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="questions",
        says="how IW10 affects competing sessions and long-lived cross traffic",
        claims=("I15", "I16", "I17", "I18", "I19", "I20", "I32"),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79, place="questions", says="how it performs on slow links", claims=("I6", "I8", "I14")
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="questions",
        says="with four to six simultaneous connections",
        claims=("I5", "I10", "I11"),
    ),
    Sentence(source=_SLIDES_OF_IETF_79, place="questions", says="when SACK is not available", claims=("I21", "I23")),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="testbed setup",
        says="two independent testbeds, Google and NCSU",
        claims=("I29",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="testbed setup",
        says="dumbbell, Ethernet switches, Linux end hosts and routers",
        none="the set-up, as read",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="testbed setup",
        says="2.6.26 and 2.6.35 kernels, one patched to raise the advertised window",
        none="the set-up; profile `linux-3.0`, which offers ten segments and more",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79, place="testbed setup", says="some differences to be investigated", claims=("I29",)
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="testbed at NCSU",
        says="equal delay in both directions by netem, rate and queue by HTB",
        none="the set-up, as read",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="testbed at NCSU",
        says="details at a page of the laboratory",
        none="no longer public; reading *set-up* has pairs that differ",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="kernel bugs",
        says="FIN regardless of cwnd: IW10 is really IW11",
        claims=("I26",),
        beside="reading *set-up*, eleven segments",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="kernel bugs",
        says="send-side buffers limit the initial burst; nine packets",
        claims=("I33",),
        beside="reading *set-up*, first burst of nine",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="kernel bugs",
        says="certain sizes always trigger RST at the end",
        claims=("I34",),
    ),
    Sentence(source=_SLIDES_OF_IETF_79, place="tools", says="`initcwnd` on a route", beside="reading *mixed*"),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="tools",
        says="`initrwnd` is in iproute2",
        none="about a tool; `initial_receive_window` does the same",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="tools",
        says="netperf, iperf",
        beside="reading *arrivals*: its request-response test waits for answers; reading *connect*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="test parameters",
        says="Poisson arrivals, single and simultaneous opens, 64 kb/s and 20 Mb/s, 40 and 500 packets, 300 ms",
        none="the set-up, as printed",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="test parameters",
        says="IW3, IW10, half and half",
        none="the arms; reading *mixed*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="test parameters",
        says="requests of 200 B, responses of 15 KB, the largest burst of IW10",
        none="the set-up; reading *set-up*, eleven segments",
    ),
    Sentence(source=_SLIDES_OF_IETF_79, place="test parameters", says="SACK on or off", claims=("I21", "I22")),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="performance metrics",
        says="completion time from the client, for each transaction",
        none="the measure; reading *connect*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79, place="performance metrics", says="throughput of long flows", claims=("I19", "I32")
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="performance metrics",
        says="loss rate at the router",
        claims=("I1", "I2", "I3", "I4", "I5"),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="performance metrics",
        says="link utilisation: share of 1-s samples with a queue",
        beside="reading *extreme*; column of the table of cells, sampled as on the slide",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="performance metrics",
        says="queue, cwnd and ssthresh graphs",
        claims=("I13", "I20"),
        beside="figures *queues*, *windows*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="key findings",
        says="IW10 tends to cause higher PLR, at extreme load a lot higher",
        claims=("I1", "I2", "I3"),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="key findings",
        says="regardless of PLR always improves, or does not hurt completion time",
        claims=("I6",),
    ),
    Sentence(source=_SLIDES_OF_IETF_79, place="key findings", says="no serious fairness problem", claims=("I18",)),
    Sentence(source=_SLIDES_OF_IETF_79, place="key findings", says="long-lived flows equal or better", claims=("I19",)),
    Sentence(source=_SLIDES_OF_IETF_79, place="key findings", says="SACK is not required", claims=("I21",)),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="slow link tests",
        says="serialisation of about 2 s, queueing up to 7.5 s",
        claims=("I9",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="slow link tests",
        says="five simultaneous opens are the worst case",
        claims=("I5",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="slow link tests",
        says="five IW10 bursts always overflow, five IW3 never",
        claims=("I10",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="slow link tests",
        says="unless colliding with two other bursts",
        claims=("I30",),
    ),
    Sentence(source=_SLIDES_OF_IETF_79, place="slow link tests", says="numbers unstable", claims=("I27",)),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="average UCT, two plots",
        says="four client-server pairs, a bar each",
        claims=("I35",),
        beside="figure *pairs*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="average UCT, two plots",
        says="faster links: dominated by RTTs, three against one",
        claims=("I7",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="average UCT, two plots",
        says="lightly loaded slow links: dominated by serialisation, slightly lower",
        claims=("I8",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="UCT comparison (20 Mb/s)",
        says="completion times at 72 and 96 %",
        claims=("I11",),
        beside="figure *distributions*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="UCT comparison (20 Mb/s)",
        says="queues of IW3 and IW10 at 96 %",
        claims=("I13",),
        beside="figure *queues*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="UCT comparison (20 Mb/s)",
        says="under heavy load the advantage is lost",
        claims=("I11",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="UCT comparison (20 Mb/s)",
        says="due to high PLR",
        claims=("I31",),
        beside="figure *parts*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="UCT comparison (20 Mb/s)",
        says="long tails",
        claims=("I12",),
        beside="figure *distributions*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="higher load slow links",
        says="dominated by queueing at 75 %, single opens",
        claims=("I14",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="higher load slow links",
        says="longer average queue offsets the round-trip saving",
        claims=("I13", "I14"),
        beside="figure *queues*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="higher load slow links",
        says="much better when mixed, subject to the same smaller queue",
        claims=("I15",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="PLR comparison, three plots",
        says="single opens at 97.5 %, five at 75 and 97.5 %",
        claims=("I1", "I4"),
        beside="figure *loss rates*",
    ),
    Sentence(source=_SLIDES_OF_IETF_79, place="PLR comparison, three plots", says="IW10 > mix > IW3", claims=("I4",)),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="PLR comparison, three plots",
        says="simultaneous opens much more than single open",
        claims=("I5",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="PLR comparison, three plots",
        says="UCT above 70 s from several rounds of queueing",
        claims=("I25",),
        beside="figure *parts*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="fairness",
        says="IW3 suffered only a limited loss in light to median loads",
        claims=("I16",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="fairness",
        says="but not at high load; why?",
        claims=("I17",),
        beside="section *Why IW3 gains*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79, place="fairness", says="often improved when mixed under heavy load", claims=("I17",)
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="cross traffic, windows of two long flows",
        says="no more damage than IW3",
        claims=("I19",),
        beside="figure *windows*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="cross traffic, windows of two long flows",
        says="sometimes the other way round",
        claims=("I20",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="comparison of impacts, two plots",
        says="long flows better under IW10, more obvious under high load",
        claims=("I32",),
        beside="figure *cross-traffic*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79, place="is SACK required", says="SACK helps by a small percentage", claims=("I22",)
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="is SACK required",
        says="24-hour experiment: IW10 with NewReno beats IW3 with SACK",
        claims=("I23",),
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="is SACK required",
        says="table: mean response 2.6, 2.8 and 3.0 s",
        claims=("I23",),
        beside="figure *photographs*",
    ),
    Sentence(
        source=_SLIDES_OF_IETF_79,
        place="is SACK required",
        says="table: retransmission rate 4.1, 4.1 and 3.3 %",
        claims=("I24",),
        beside="figure *photographs*",
    ),
    Sentence(source=_RFC_6928, place="section 2", says="table of round trips", claims=("I28",)),
    Sentence(
        source=_RFC_6928,
        place="section 2",
        says="example of 32 segments in two rounds",
        none="contradicts the RFC's own table, by which 32 segments need three",
    ),
    Sentence(
        source=_RFC_6928,
        place="sections 10 to 12",
        says="latency and retransmission rates at Google's front ends",
        none="production traffic of 2010, whose paths are not given",
    ),
    Sentence(
        source=_RFC_6928,
        place="Appendix A",
        says="findings of the testbed",
        claims=("I1", "I2", "I3", "I6", "I16", "I17", "I19", "I21", "I23"),
    ),
)
