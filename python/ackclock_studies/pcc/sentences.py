"""Every sentence and figure in the blog, with its outcome. The papers' sentences are
covered by the claims, which follow them.
"""

from __future__ import annotations

from ackclock.study.sentence import read

SENTENCES = read(
    """
= CS244'16 blog
blog, key results | PCC degrades in virtual environments | C2
blog, key results | even there PCC flows converge more stably and fairly than TCP flows | C11 C22
blog, introduction | PCC outperforms TCP by nearly ten times | C15
blog, introduction | PCC is built on UDP and needs no new hardware |  | none: no measurement
blog, goals | small buffers with PCC could mitigate bufferbloat | C19 F1
blog, goals | fairness and stability suit adaptive video | V1 V2 V3 V4 V5
blog, figure 7 as reprinted | throughput against the buffer | F1 F2 F3 F4
blog, figure 12 as reprinted | flows that come and go | F5 F6
blog, setup | smaller instances crash with four flows | C8
blog, setup | the instance should have at least 8 cores | C14
blog, sweep | on Emulab PCC holds up to expectations | C1
blog, sweep | in Mininet it does not rise as it should | C2 C3
blog, sweep | CUBIC is virtually the same in both | C5
blog, sweep | the host is interrupted, and paced packets leave in batches | C21 N1
blog, sweep | a small buffer drops more of such a batch | C21
blog, sweep | a previous reproduction saw similar degradation with shallow buffers in a virtual machine | C2
blog, sweep | it approaches the expected value as the buffer grows | C4
blog, sweep | a dedicated single core is worse, behind large buffers too | C6
blog, two flows | on Emulab they converge quickly, with little variation | C9
blog, two flows | in Mininet, on two processors (a figure) | C23
blog, four flows | on two processors fairer and steadier than TCP, more variable than the paper | C12
blog, four flows | on eight processors comparable to the paper | C10
blog, fairness graph | better stability and fairness over the course of the experiment | C11
blog, fairness graph | the paper's indices are 0.98 to 0.99 | F5
blog, challenges | little time on Emulab; unpredictable instances |  | none: no measurement
blog, challenges | an m3-medium is worse than a t2-medium | C7
blog, challenges | on an m3-medium flows are fair, but have 30 % of the link | C13
blog, conclusions | it breaks down the worst where the paper's advantage is greatest | C3 F4
blog, conclusions | PCC would do little for virtual servers behind shallow buffers | C20
blog, conclusions | the pacing can be fixed | C17
blog, conclusions | fairer than CUBIC as long as buffers are big enough | C18
blog, conclusions | lost on fewer than 8 cores, even behind 250 packets | C14
blog, conclusions | each sender and receiver ought to have a core of its own | C14
reader's comment | reproducibility 3 of 5; division by zero; hangs | C16
"""
)
