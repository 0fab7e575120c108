"""Every sentence, number, table and figure of the publications about PRR, and what became of it."""

from __future__ import annotations

from ackclock.study.sentence import read

SENTENCES = read(
    """
= CS244'13 blog
first paragraph | responses with losses last 7 to 10 times longer | T7
first paragraph | PRR recovers quickly, smoothly, by pacing out retransmissions across ACKs | T1 P7
first paragraph | improves fast recovery under burst losses | T12
first paragraph | and for losses near the end of short flows | P21 T3 P8
second paragraph | proportional part reduces cwnd gradually | T1
second paragraph | ends recovery close to ssthresh | P2
second paragraph | below ssthresh it slow-starts back | T2
second paragraph | application stalls during recovery | P13
original results | pipe against ssthresh at the start; cwnd against ssthresh at the end | P1 P16 P2
original results | time in recovery, retransmissions, timeouts, latency | P7 P4 P3 P11 P5
original results | India YouTube | V1 V2 V3 V4
section 1, two figures | cwnd of a long flow without and with PRR | T1 T2 | figure *long flow*
section 2, bars with retransmission | significantly lower with PRR | T3 T10 | figure *kernel bars*, above
section 2, bars with almost none | pretty much the same | T4 | figure *kernel bars*, below
section 2 | with 100 fetches the variance is large | T8
section 2 | flows outside two sigmas are outliers |  | the split of T10's bars: two standard deviations above the fastest, as in the script; the text says from the average
section 3, two figures | rises dramatically without PRR, not as much with it | T5 T11 | figure *kernel rises*
section 3, two figures | helps especially when link loss is high | T6
challenges | the kernels differ in more than PRR | T10 T11 | `--backend linux`
challenges | tcp_probe lacks pipe and time in recovery |  | `ackclock export --as tcp-probe` writes its lines; the traces have pipe and recovery
challenges | kernels right before and after the commit of PRR could not be built |  | one kernel with one rule exchanged for another, `--backend linux`; kernels 3.0 and 3.2 themselves are not run
comments | 75 KB and 750 KB nearly equal; the loss plot without PRR reversed, with PRR the same trend | T9 T5
comments | graphs of part 3 were not produced |  | none: about a script
comments | mostly matching graphs of cwnd | T1 T2

= IETF-84 slides
motivation | RFC 3517 waits for half of the ACKs | P20 | figure *ideal path*
motivation | rate halving does not compensate for heavy losses | P7 T2
motivation | both are prone to timeouts | P3 P11
all positive results, rate halving | more accurate reduction; depressed cwnd | P2
all positive results, rate halving | less prone to timeouts; better performance | P3 P5
all positive results, RFC 3517 | gradual, no silence | T1 P20
all positive results, RFC 3517 | fewer timeouts following burst losses | P12
all positive results, RFC 3517 | no bursts when losses exceed the reduction | P7 P14
all positive results, RFC 3517 | less prone to lost retransmissions | P4
all positive results, RFC 3517 | better overall performance | P6
Proportional Rate Reduction | sending rate = reduction factor × data rate at the receiver | P19
Proportional Rate Reduction | faster but smoother than 3517; less aggressive below ssthresh | P20 P18
slow start while in recovery | RFC 3517 sends bursts of 40 | P7
slow start while in recovery | as much as was delivered and one segment more, for about 40 ACKs | P22
algorithm comparisons | rows ACK by ACK, of one loss and of 15 |  | the tables of the RFCs, which print the same numbers
algorithm comparisons | row RB: where the reduction bound acts |  | row *rb* of the table of RFC 6937, which prints the same
is the high loss case common | 45, 13 and 32 % | P1
is the high loss case common | distribution of pipe - ssthresh | P16
is the high loss case common | contributing: CUBIC | P1
is the high loss case common | contributing: better SACK retransmit algorithms | P15
measurement setup | CUBIC, limited transmit, lost retransmission detection; mixed services without streaming video |  | profile `linux-3.2`; the Web population
measurement summary, RFC 3517 | 2.6 % more timeouts | P11
measurement summary, RFC 3517 | 3 % more retransmissions, 29 % more lost ones | P4
measurement summary, RFC 3517 | similar completion times; aggressiveness gains nothing | P6
measurement summary, rate halving | 5 % more timeouts | P3
measurement summary, rate halving | lower cwnd at the end | P2
measurement summary, rate halving | 3 to 5 % longer transactions | P5
conclusion | lower tail latencies | P25
conclusion | possible indirect costs of sending early | P26
packet conservation | a standing queue has constant length | P17 | figure *standing queue*
packet conservation | any more aggressive algorithm makes the queue grow | P18
packet conservation | DeliveredData is no estimator with SACK; its sum is forward progress |  | none: a property of every run, tested in `crates/tcp/tests`
packet conservation | DeliveredData can be estimated without SACK | P24
PRR pseudo code; reduction bound variants | pseudo code; reduction bounds CRB, SSRB and UB |  | the tables of the RFCs, in which each rule is compared
PRR-UB | mirrors RFC 3517 | P14
PRR-CRB | lower measured performance than RFC 3517 | P10
PRR-SSRB | a compromise | P7 P10
properties | spreads out the reduction; converges to the target | P19 T1 P2
properties | keeps the ACK clock under large burst losses | T12 P12
properties | banks missed opportunities | P13
properties | less sensitive to errors of pipe | P23
example flows | PRR, PRR without a bound, Linux, RFC 3517 |  | figures *sequence*
last slide | Linux often ends in slow start after short responses | P8

= IMC 2011 paper, as far as its abstract and the RFCs quote it
abstract | early retransmit for short transfers | P9
abstract | latency of responses that meet loss | P5
"""
)
