"""Every sentence and figure on the slides, with its outcome."""

from __future__ import annotations

from ackclock.study.sentence import read

SENTENCES = read(
    """
= PATHNets 2004 slides
slides 1, 25 | title, thanks |  | none: no statement
slide 2 | NewReno converges slowly to full utilisation | W27
slide 2 | not intended to handle non-congestion loss | W10
slide 2 | criteria: utilisation, stability, fast ramp-up, friendliness | W17 W3 W4 W2 W12 W20
slide 2 | criterion: fairness under differing RTTs | W26
slide 3 | ERE from congestion level, capacity, achieved rate | W23 W30
slide 3 | exponential filtering avoids instability | W14
slide 3 | ERE sets the congestion window after loss | W29
slide 3 | ERE resets ssthresh repeatedly for a fast start | W2 W5
slide 4 | packet pairs: effective under random loss, overestimate under congestion | W21
slide 4 | packet trains: fair under congestion, underestimate under random loss | W22
slide 4 | the sampling interval adapts to the congestion level | W23
slide 5 | one receiver for all senders; Gigabit hosts |  | readings window and ACKs
slide 6 | other users in the background; traffic figure |  | on-off traffic, 2 % of the bottleneck; no numbers
slide 7 | rebooted between protocols; 2 MB of buffers |  | groups begin with an empty cache; reading window
slide 8 | 155 Mb/s, 64 ms; 1 Gb/s, 4 ms; ten successive runs |  | the two paths; every experiment in a row
slide 8 | PER 0.1 to 0.5 | W10 W11
slide 9 | 155 Mb/s as measured by PathRate | W1
slides 10, 11 | convergence varies among protocols | W2
slide 10 | high deviation among runs in HSTCP and NewReno | W3
slide 10 | HSTCP's deviation decreases over time | W4
slide 12 | 0 to 100 MB in 5.8, 5.8, 7.5, 11 s | W5 W6 W7 W8 W25 N1 N2
slide 12 | their order | W9
slide 13 | friendliness, path 1 (a figure) | W20
slide 14 | FAST's RTT and window over time (figures) | W19 N3
slide 15 | TCPW throughput much higher than all other schemes | W10
slide 16 | results of random loss (a figure) | W10 W11 N4
slide 17 | path 2 |  | the second path
slide 18 | NewReno starts high by its cached threshold and fast feedback | W12
slide 18 | cached threshold versus adaptive start: pros and cons | W12 W28
slide 18 | TCPW is delayed by its own stability filter | W13
slide 18 | the filter dampens in proportion to the variance | W14
slide 19 | throughput, path 2 (a figure) |  | figure *path 2*
slide 20 | samples vary a lot due to coalescing | W15
slide 20 | fixed gain as the solution; TCPW ramps up as HSTCP and FAST | W16
slide 21 | start-up with a fixed exponential average (a figure) | W16
slide 22 | friendliness, path 2 (a figure) | W20
slide 23 | TCPW and FAST equal in average throughput | W17
slide 23 | excellent intra-protocol fairness of all | W18
slide 23 | FAST appears to suffer a synchronisation problem | W19
slide 23 | TCPW more robust under non-congestion errors | W10
slide 23 | coalescing and other bottlenecks affect moving average filters | W15 W24
slide 24 | an algorithm that knows about coalescing |  | `abse-batch`, figure *coalescing*
slide 24 | agile and stable filter; better test tool |  | plans
"""
)
