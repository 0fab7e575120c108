"""Every sentence, number, table and figure in the publications about PRR, with its outcome."""

from __future__ import annotations

from ackclock.study.sentence import read

SENTENCES = read(
    """
= CS244'13 blog
first paragraph | responses with losses last 7 to 10 times longer | T7
first paragraph | fast recovery speeds up the retransmission of what was lost |  | none: a definition
first paragraph | PRR recovers quickly, smoothly and accurately, by pacing out retransmissions across ACKs | T1 P7 P19 P2
first paragraph | improves fast recovery under burst losses | T12
first paragraph | and for losses near the end of short flows | P21 T3 P8
second paragraph | how many segments an ACK lets out balances a speedy recovery against an end close to ssthresh | P5 P2
second paragraph | the proportional part acts while more is outstanding than ssthresh, typically in recovery and under light losses | P1 P16 | figure *population start*
second paragraph | proportional part reduces cwnd gradually, clocked by ACKs | T1 P19
second paragraph | ends recovery close to ssthresh | P2
second paragraph | the second part acts below ssthresh, after excess losses or application stalls, and allows no further reduction | P7 P13
second paragraph | below ssthresh it slow-starts back | T2 P22
original results | pipe against ssthresh at the start; cwnd against ssthresh at the end | P1 P16 P2
original results | time in recovery, retransmissions, timeouts, latency | P7 P4 P3 P11 P5
original results | India YouTube | V1 V2 V3 V4
validation targets | change of cwnd upon loss as expected | T1 T2
validation targets | latency improved over Linux's former recovery | T3 P5
validation targets | light and heavy loss | T6
validation targets | the network of India YouTube is hard to characterize |  | the video population, whose distributions are assumptions
experiment setup | Mininet, kernels 3.0 (without) and 3.2 (with PRR) | T10 T11 | profiles `linux-3.0` and `linux-3.2`
experiment setup | kernel 3.5 has more improvements, which the paper does not document |  | none: not run by the publication; rule `prr-linux-6` stands in every figure
experiment setup | server, switch, client; pages of several sizes; loss set on the links; several loss rates |  | none: the set-up, as read
section 1 | a long flow of iperf, a queue of 100 packets, 1.2 Mbit/s |  | none: the set-up, as printed
section 1, two figures | cwnd of a long flow without and with PRR | T1 T2 | figure *long flow*
section 1 | patterned after rate halving, with the fraction that the controller asks for | P19
section 1 | below ssthresh no further reduction, and slow start if there is new data | T2 P8
section 2 | 1 % loss, each file 1000 times, nine hours; 100 times in the script | T8
section 2 | a small amount of the fetches suffers from losses | T7 T10 | the share that lost a SYN stands with T10
section 2 | with 100 fetches the variance is large | T8
section 2 | flows outside two sigmas are outliers |  | the split of T10's bars: two standard deviations above the fastest, as in the script; the text says from the average
section 2, bars with retransmission | significantly lower with PRR | T3 T10 | figure *kernel bars*, above
section 2, bars with almost none | pretty much the same | T4 | figure *kernel bars*, below
section 2 | this demonstrates PRR's effect | T10 T3
section 3 | above 3 % it would be too slow to run |  | none: about their simulator; paths with up to 15 % stand in the population of paths
section 3, two figures | rises dramatically without PRR, not as much with it | T5 T11 | figure *kernel rises*
section 3, two figures | helps under light and heavy loss, especially when link loss is high | T6
challenges | openvswitch could not be compiled on their own kernels |  | none: about a tool
challenges | kernels right before and after the commit of PRR could not be built |  | one kernel with one rule exchanged for another, `--backend linux`; kernels 3.0 and 3.2 themselves are not run
challenges | the kernels differ in more than PRR, which can make the results imprecise | T10 T11 | `--backend linux`
challenges | tcp_probe lacks pipe and time in recovery |  | `ackclock export --as tcp-probe` writes its lines; the traces have pipe and recovery
challenges | no real traffic; India mimicked by link loss | V1 V2 V3 V4
instructions | machines, images, installation; three pictures come out |  | none: about their tool; the three pictures are figures *long flow* and *kernel bars*
comments | where the machines' images are |  | none: about their tool
comments | mostly matching graphs of cwnd, approximately matching ones of delay at 1 % | T1 T2 T8
comments | 75 KB higher and 750 KB lower, nearly equal, where the plot has more than double | T9
comments | graphs of part 3 were not produced; they were in another folder |  | none: about a script
comments | 0.75 KB and 750 KB exchanged without PRR | T9
comments | the same trend with PRR as in the plot | T5
comments | fewer repetitions bring noise; stable results take several hours | T8

= IETF-84 slides
motivation | two widely deployed recoveries, RFC 3517 and rate halving |  | none: about 2012; both are arms of every experiment
motivation | both are prone to timeouts | P3 P11
motivation | RFC 3517 waits for half of the ACKs | P20 | figure *ideal path*
motivation | rate halving does not compensate for heavy losses | P7 T2
motivation | goal: fewer timeouts, by no excessive reduction of the window | P3 P2
motivation | goal: converge to the window that the controller chose | P2 P19
single loss example, a figure | one loss, PRR | T1 P19 | figures *long flow*, *ideal path*; the figure has no text
all positive results, rate halving | more accurate reduction of cwnd | P2
all positive results, rate halving | less prone to timeouts | P3
all positive results, rate halving | avoids excess recovery time of a depressed cwnd | P7 P2
all positive results, rate halving | better overall performance | P5
all positive results, RFC 3517 | gradual, no silence | T1 P20
all positive results, RFC 3517 | fewer timeouts following burst losses | P12
all positive results, RFC 3517 | no bursts when losses exceed the reduction | P7 P14
all positive results, RFC 3517 | less prone to lost retransmissions | P4
all positive results, RFC 3517 | better overall performance | P28
ID status | nits, references, last call |  | none: about a draft
Proportional Rate Reduction | above ssthresh patterned after rate halving, at the rate of the controller: sending rate = reduction factor × data rate at the receiver | P19
Proportional Rate Reduction | faster but smoother than 3517 | P28 P20
Proportional Rate Reduction | below ssthresh a segment more per ACK, to bring pipe back up to ssthresh | T2 P22
Proportional Rate Reduction | less aggressive than 3517 there | P18 P7
slow start while in recovery | RFC 3517 sends ssthresh - pipe on every ACK: of 100, with 1 to 90 lost, 40 on one ACK; not conservative | P7 P14
slow start while in recovery | as much as was delivered and one segment more, for about 40 ACKs | P22
algorithm comparisons, single loss | rows ACK by ACK |  | table of the slides' rows beside RFC 6937's and ours
algorithm comparisons, single loss | row RB: where the reduction bound acts |  | row *rb* of the table of RFC 6937, which prints the same
algorithm comparisons, 15 losses | rows ACK by ACK |  | table of the slides' rows beside RFC 6937's and ours
is the high loss case common | 32 % below ssthresh | P1
is the high loss case common | 45 % above and 13 % at ssthresh |  | shown in figure *population start*, and held against nothing: the three do not add up to 100
is the high loss case common | distribution of pipe - ssthresh | P16
is the high loss case common | losses exceed the reduction in 32 %, where RFC 3517 would send a burst | P1 P14
is the high loss case common | contributing: CUBIC | P1
is the high loss case common | contributing: better SACK retransmit algorithms | P15
is the high loss case common | still unexpectedly large | P1
measurement setup | CUBIC, limited transmit, lost retransmission detection; mixed services without streaming video |  | profile `linux-3.2`; the Web population
measurement setup | rate halving, RFC 3517 and PRR-SSRB on Linux 2.6; to be deployed |  | none: the set-up, as printed; PRR-SSRB of RFC 6937 beside the rule of Linux 3.2
measurement summary | PRR-SSRB does best | P3 P4 P5 P6 P11
measurement summary, RFC 3517 | 2.6 % more timeouts | P11
measurement summary, RFC 3517 | 3 % more retransmissions, 29 % more lost ones | P4
measurement summary, RFC 3517 | similar completion times; aggressiveness gains nothing | P6
measurement summary, rate halving | 5 % more timeouts | P3
measurement summary, rate halving | lower cwnd at the end | P2
measurement summary, rate halving | 3 to 5 % longer transactions | P5
measurement summary | details in a paper to come |  | none: the paper's text was not at hand
conclusion | more accurate and smoother adjustments | P2 P19 T1
conclusion | fewer symptoms of bursts (timeouts) | P11 P12
conclusion | lower tail latencies | P25
conclusion | better performance than rate halving | P5
conclusion | possible indirect costs of sending early | P26
conclusion; going forward; more details | recommendation, working group, outline |  | none: no statement about a network
packet conservation | exactly as much is sent as arrives at the receiver; a standing queue has constant length | P17 | figure *standing queue*
packet conservation | any more aggressive algorithm makes the queue grow | P18
packet conservation | which may force losses in drop-tail | P4 P26
packet conservation | DeliveredData is no estimator with SACK; its sum is forward progress |  | none: a property of every run, tested in `crates/tcp/tests`
packet conservation | it can be observed anywhere on the ACK path |  | none: it is computed from ACKs alone; `ackclock read` does so from a capture
packet conservation | DeliveredData can be estimated without SACK | P24
PRR pseudo code | ssthresh, RecoverFS, DeliveredData, prr_delivered, prr_out |  | the tables of the RFCs, in which each rule is compared
reduction bound variants | UB: none, parallels RFC 3517, bursts | P14
reduction bound variants | CRB: prr_out never exceeds prr_delivered | P17
reduction bound variants | SSRB: one segment more per ACK | P22
PRR-UB | pipe = cwnd = 100, 1 to 90 lost: packet 93 brings up to 40 | P7 P14
PRR-UB | mirrors RFC 3517 | P14
PRR-CRB | strict packet conservation, a standing queue of constant size | P17
PRR-CRB | as aggressive as can be without additional losses | P17 P18
PRR-CRB | lower measured performance than RFC 3517 | P10 P27
PRR-CRB | burst losses that depress cwnd seem to be common | P1 P10
PRR-SSRB | slow start after excess loss, without the burst of RFC 3517 | P7 P22
PRR-SSRB | one segment more is a good compromise | P7 P10 P18
properties | spreads out the reduction evenly | P19
properties | for moderate loss it converges to the target | P2 P19
properties | keeps the ACK clock under large burst losses | P7 | 15 of 20 and 90 of 100 lost: what each rule sends on each ACK, in the tables
properties | precision from DeliveredData, which is no estimator |  | none: a property of the rule, tested in `crates/tcp/tests`
properties | banks missed opportunities | P13
properties | less sensitive to errors of pipe | P23
example flows, four figures | PRR, PRR without a bound, Linux, RFC 3517 |  | figures *sequence*
last slide | Linux often ends in slow start after short responses | P8

= IMC 2011 paper, as far as its abstract and the RFCs quote it
abstract | early retransmit for short transfers | P9
abstract | latency of responses that meet loss | P5
"""
)
