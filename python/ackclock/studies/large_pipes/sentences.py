"""Every sentence and figure of the slides, and what became of it."""

from __future__ import annotations

from ackclock.study.sentence import Sentence

_SLIDES = "PATHNets 2004 slides"

SENTENCES = (
    Sentence(source=_SLIDES, place="slides 1, 25", says="title, thanks", none="no statement"),
    Sentence(source=_SLIDES, place="slide 2", says="NewReno converges slowly to full utilisation", claims=("W27",)),
    Sentence(source=_SLIDES, place="slide 2", says="not intended to handle non-congestion loss", claims=("W10",)),
    Sentence(
        source=_SLIDES,
        place="slide 2",
        says="criteria: utilisation, stability, fast ramp-up, friendliness",
        claims=(
            "W17",
            "W3",
            "W4",
            "W2",
            "W12",
            "W20",
        ),
    ),
    Sentence(source=_SLIDES, place="slide 2", says="criterion: fairness under differing RTTs", claims=("W26",)),
    Sentence(
        source=_SLIDES,
        place="slide 3",
        says="ERE from congestion level, capacity, achieved rate",
        claims=(
            "W23",
            "W30",
        ),
    ),
    Sentence(source=_SLIDES, place="slide 3", says="exponential filtering avoids instability", claims=("W14",)),
    Sentence(source=_SLIDES, place="slide 3", says="ERE sets the congestion window after loss", claims=("W29",)),
    Sentence(
        source=_SLIDES,
        place="slide 3",
        says="ERE resets ssthresh repeatedly for a fast start",
        claims=(
            "W2",
            "W5",
        ),
    ),
    Sentence(
        source=_SLIDES,
        place="slide 4",
        says="packet pairs: effective under random loss, overestimate under congestion",
        claims=("W21",),
    ),
    Sentence(
        source=_SLIDES,
        place="slide 4",
        says="packet trains: fair under congestion, underestimate under random loss",
        claims=("W22",),
    ),
    Sentence(
        source=_SLIDES, place="slide 4", says="the sampling interval adapts to the congestion level", claims=("W23",)
    ),
    Sentence(
        source=_SLIDES,
        place="slide 5",
        says="one receiver for all senders; Gigabit hosts",
        beside="readings window and ACKs",
    ),
    Sentence(
        source=_SLIDES,
        place="slide 6",
        says="other users in the background; traffic figure",
        beside="on-off traffic, 2 % of the bottleneck; no numbers",
    ),
    Sentence(
        source=_SLIDES,
        place="slide 7",
        says="rebooted between protocols; 2 MB of buffers",
        beside="groups begin with an empty cache; reading window",
    ),
    Sentence(
        source=_SLIDES,
        place="slide 8",
        says="155 Mb/s, 64 ms; 1 Gb/s, 4 ms; ten successive runs",
        beside="the two paths; every experiment in a row",
    ),
    Sentence(
        source=_SLIDES,
        place="slide 8",
        says="PER 0.1 to 0.5",
        claims=(
            "W10",
            "W11",
        ),
    ),
    Sentence(source=_SLIDES, place="slide 9", says="155 Mb/s as measured by PathRate", claims=("W1",)),
    Sentence(source=_SLIDES, place="slides 10, 11", says="convergence varies among protocols", claims=("W2",)),
    Sentence(source=_SLIDES, place="slide 10", says="high deviation among runs in HSTCP and NewReno", claims=("W3",)),
    Sentence(source=_SLIDES, place="slide 10", says="HSTCP's deviation decreases over time", claims=("W4",)),
    Sentence(
        source=_SLIDES,
        place="slide 12",
        says="0 to 100 MB in 5.8, 5.8, 7.5, 11 s",
        claims=(
            "W5",
            "W6",
            "W7",
            "W8",
            "W25",
            "N1",
            "N2",
        ),
    ),
    Sentence(source=_SLIDES, place="slide 12", says="their order", claims=("W9",)),
    Sentence(source=_SLIDES, place="slide 13", says="friendliness, path 1 (a figure)", claims=("W20",)),
    Sentence(
        source=_SLIDES,
        place="slide 14",
        says="FAST's RTT and window over time (figures)",
        claims=(
            "W19",
            "N3",
        ),
    ),
    Sentence(
        source=_SLIDES, place="slide 15", says="TCPW throughput much higher than all other schemes", claims=("W10",)
    ),
    Sentence(
        source=_SLIDES,
        place="slide 16",
        says="results of random loss (a figure)",
        claims=(
            "W10",
            "W11",
            "N4",
        ),
    ),
    Sentence(source=_SLIDES, place="slide 17", says="path 2", beside="the second path"),
    Sentence(
        source=_SLIDES,
        place="slide 18",
        says="NewReno starts high by its cached threshold and fast feedback",
        claims=("W12",),
    ),
    Sentence(
        source=_SLIDES,
        place="slide 18",
        says="cached threshold versus adaptive start: pros and cons",
        claims=(
            "W12",
            "W28",
        ),
    ),
    Sentence(source=_SLIDES, place="slide 18", says="TCPW is delayed by its own stability filter", claims=("W13",)),
    Sentence(
        source=_SLIDES, place="slide 18", says="the filter dampens in proportion to the variance", claims=("W14",)
    ),
    Sentence(source=_SLIDES, place="slide 19", says="throughput, path 2 (a figure)", beside="figure *path 2*"),
    Sentence(source=_SLIDES, place="slide 20", says="samples vary a lot due to coalescing", claims=("W15",)),
    Sentence(
        source=_SLIDES,
        place="slide 20",
        says="fixed gain as the solution; TCPW ramps up as HSTCP and FAST",
        claims=("W16",),
    ),
    Sentence(
        source=_SLIDES, place="slide 21", says="start-up with a fixed exponential average (a figure)", claims=("W16",)
    ),
    Sentence(source=_SLIDES, place="slide 22", says="friendliness, path 2 (a figure)", claims=("W20",)),
    Sentence(source=_SLIDES, place="slide 23", says="TCPW and FAST equal in average throughput", claims=("W17",)),
    Sentence(source=_SLIDES, place="slide 23", says="excellent intra-protocol fairness of all", claims=("W18",)),
    Sentence(
        source=_SLIDES, place="slide 23", says="FAST appears to suffer a synchronisation problem", claims=("W19",)
    ),
    Sentence(source=_SLIDES, place="slide 23", says="TCPW more robust under non-congestion errors", claims=("W10",)),
    Sentence(
        source=_SLIDES,
        place="slide 23",
        says="coalescing and other bottlenecks affect moving average filters",
        claims=(
            "W15",
            "W24",
        ),
    ),
    Sentence(
        source=_SLIDES,
        place="slide 24",
        says="an algorithm that knows about coalescing",
        beside="`abse-batch`, figure *coalescing*",
    ),
    Sentence(source=_SLIDES, place="slide 24", says="agile and stable filter; better test tool", beside="plans"),
)
