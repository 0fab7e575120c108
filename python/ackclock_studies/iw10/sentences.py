"""Every sentence, number, table and figure in the slides and in RFC 6928's section on them, with its outcome."""

from __future__ import annotations

from ackclock.study.sentence import read

SENTENCES = read(
    """
= Slides of IETF 79
questions | how IW10 affects competing sessions and long-lived cross traffic | I15 I16 I17 I18 I19 I20 I32
questions | how it performs on slow links | I6 I8 I14
questions | with four to six simultaneous connections | I5 I10 I11
questions | when SACK is not available | I21 I23
questions | the earlier testbed had single connections that arrive as Poisson |  | none: about another testbed; the mode *single opens*
testbed setup | two independent testbeds, Google and NCSU | I29
testbed setup | dumbbell, Ethernet switches, Linux end hosts and routers |  | none: the set-up, as read
testbed setup | 2.6.26 and 2.6.35 kernels, one patched to raise the advertised window |  | none: the set-up; profile `linux-3.0`, which offers ten segments and more
testbed setup | some differences to be investigated | I29
testbed at NCSU | equal delay in both directions by netem, rate and queue by HTB |  | none: the set-up, as read
testbed at NCSU | details at a page of the laboratory |  | none: no longer public; reading *set-up* has pairs that differ
kernel bugs | FIN regardless of cwnd: IW10 is really IW11 | I26 | reading *set-up*, eleven segments
kernel bugs | TSO, tcp_wmem, size of writes, splitting of buffers may limit the initial burst | I36 | figure *write sizes*
kernel bugs | TSO off and the default tcp_wmem: nine packets in the first burst | I33 I36 | reading *set-up*, first burst of nine
kernel bugs | certain sizes always trigger RST at the end | I34 | table of closes: a client that leaves data unread
tools | `initcwnd` on a route |  | reading *mixed*
tools | `initrwnd` is in iproute2 |  | none: about a tool; `initial_receive_window` does the same
tools | netperf, iperf |  | reading *arrivals*: its request-response test waits for answers; reading *connect*
test parameters | Poisson arrivals, single and simultaneous opens, 64 kb/s and 20 Mb/s, 40 and 500 packets, 300 ms |  | none: the set-up, as printed
test parameters | IW3, IW10, half and half |  | none: the arms; reading *mixed*
test parameters | requests of 200 B, responses of 15 KB, the largest burst of IW10 |  | none: the set-up; reading *set-up*, eleven segments
test parameters | SACK on or off | I21 I22
performance metrics | completion time from the client, for each transaction |  | none: the measure; reading *connect*
performance metrics | throughput of long flows | I19 I32
performance metrics | loss rate at the router | I1 I2 I3 I4 I5
performance metrics | link utilisation: share of 1-s samples with a queue |  | reading *extreme*; column of the table of cells, sampled as on the slide
performance metrics | queue, cwnd and ssthresh graphs | I13 I20 | figures *queues*, *windows*
key findings | IW10 tends to cause higher PLR, at extreme load a lot higher | I1 I2 I3
key findings | regardless of PLR always improves, or does not hurt completion time | I6
key findings | no serious fairness problem | I18
key findings | long-lived flows equal or better | I19
key findings | SACK is not required | I21
slow link tests | round trips of up to many seconds | I9
slow link tests | serialisation of about 2 s, queueing up to 7.5 s | I9
slow link tests | five simultaneous opens are the worst case | I5
slow link tests | five IW10 bursts always overflow, five IW3 never | I10
slow link tests | unless colliding with two other bursts | I30
slow link tests | numbers unstable | I27
average UCT, two plots | four client-server pairs, a bar each | I35 | figure *pairs*
average UCT, two plots | faster links: dominated by RTTs, three against one | I7
average UCT, two plots | lightly loaded slow links: dominated by serialisation, slightly lower | I8
UCT comparison (20 Mb/s) | completion times at 72 and 96 % | I11 | figure *distributions*
UCT comparison (20 Mb/s) | queues of IW3 and IW10 at 96 % | I13 | figure *queues*
UCT comparison (20 Mb/s) | under heavy load the advantage is lost | I11
UCT comparison (20 Mb/s) | due to high PLR | I31 | figure *parts*
UCT comparison (20 Mb/s) | long tails | I12 | figure *distributions*
higher load slow links | dominated by queueing at 75 %, single opens | I14
higher load slow links | longer average queue offsets the round-trip saving | I13 I14 | figure *queues*
higher load slow links | much better when mixed, subject to the same smaller queue | I15
PLR comparison, three plots | single opens at 97.5 %, five at 75 and 97.5 % | I1 I4 | figure *loss rates*
PLR comparison, three plots | IW10 > mix > IW3 | I4
PLR comparison, three plots | simultaneous opens much more than single open | I5
PLR comparison, three plots | UCT above 70 s from several rounds of queueing | I25 | figure *parts*
fairness | IW3 suffered only a limited loss in light to median loads | I16
fairness | but not at high load; why? | I17 | section *Why IW3 gains*
fairness | often improved when mixed under heavy load | I17
cross traffic, windows of two long flows | no more damage than IW3 | I19 | figure *windows*
cross traffic, windows of two long flows | sometimes the other way round | I20
comparison of impacts, two plots | long flows better under IW10, more obvious under high load | I32 | figure *cross-traffic*
is SACK required | SACK helps by a small percentage | I22
is SACK required | 24-hour experiment: IW10 with NewReno beats IW3 with SACK | I23
is SACK required | table: mean response 2.6, 2.8 and 3.0 s | I23 | figure *photographs*
is SACK required | table: retransmission rate 4.1, 4.1 and 3.3 % | I24 | figure *photographs*

= RFC 6928
section 2 | table of round trips | I28
section 2 | example of 32 segments in two rounds |  | none: contradicts the RFC's own table, by which 32 segments need three
sections 10 to 12 | latency and retransmission rates at Google's front ends |  | none: production traffic of 2010, whose paths are not given
Appendix A | findings of the testbed | I1 I2 I3 I6 I16 I17 I19 I21 I23
"""
)
