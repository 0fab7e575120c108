"""Every sentence and figure of the blog, and what became of it.

The papers' sentences are the claims themselves, which stand behind these.
"""

from __future__ import annotations

from ackclock.study.sentence import Sentence

_BLOG = "CS244'16 blog"

SENTENCES = (
    Sentence(source=_BLOG, place="blog, key results", says="PCC degrades in virtual environments", claims=("C2",)),
    Sentence(
        source=_BLOG,
        place="blog, key results",
        says="even there PCC flows converge more stably and fairly than TCP flows",
        claims=("C11", "C22"),
    ),
    Sentence(source=_BLOG, place="blog, introduction", says="PCC outperforms TCP by nearly ten times", claims=("C15",)),
    Sentence(
        source=_BLOG,
        place="blog, introduction",
        says="PCC is built on UDP and needs no new hardware",
        none="no measurement",
    ),
    Sentence(
        source=_BLOG,
        place="blog, goals",
        says="small buffers with PCC could mitigate bufferbloat",
        claims=(
            "C19",
            "F1",
        ),
    ),
    Sentence(
        source=_BLOG,
        place="blog, goals",
        says="fairness and stability suit adaptive video",
        claims=(
            "V1",
            "V2",
            "V3",
            "V4",
            "V5",
        ),
    ),
    Sentence(
        source=_BLOG,
        place="blog, figure 7 as reprinted",
        says="throughput against the buffer",
        claims=(
            "F1",
            "F2",
            "F3",
            "F4",
        ),
    ),
    Sentence(
        source=_BLOG,
        place="blog, figure 12 as reprinted",
        says="flows that come and go",
        claims=(
            "F5",
            "F6",
        ),
    ),
    Sentence(source=_BLOG, place="blog, setup", says="smaller instances crash with four flows", claims=("C8",)),
    Sentence(source=_BLOG, place="blog, setup", says="the instance should have at least 8 cores", claims=("C14",)),
    Sentence(source=_BLOG, place="blog, sweep", says="on Emulab PCC holds up to expectations", claims=("C1",)),
    Sentence(
        source=_BLOG,
        place="blog, sweep",
        says="in Mininet it does not rise as it should",
        claims=(
            "C2",
            "C3",
        ),
    ),
    Sentence(source=_BLOG, place="blog, sweep", says="CUBIC is virtually the same in both", claims=("C5",)),
    Sentence(
        source=_BLOG,
        place="blog, sweep",
        says="the host is interrupted, and paced packets leave in batches",
        claims=("C21", "N1"),
    ),
    Sentence(source=_BLOG, place="blog, sweep", says="a small buffer drops more of such a batch", claims=("C21",)),
    Sentence(
        source=_BLOG,
        place="blog, sweep",
        says="a previous reproduction saw similar degradation with shallow buffers in a virtual machine",
        claims=("C2",),
    ),
    Sentence(
        source=_BLOG, place="blog, sweep", says="it approaches the expected value as the buffer grows", claims=("C4",)
    ),
    Sentence(
        source=_BLOG,
        place="blog, sweep",
        says="a dedicated single core is worse, behind large buffers too",
        claims=("C6",),
    ),
    Sentence(
        source=_BLOG,
        place="blog, two flows",
        says="on Emulab they converge quickly, with little variation",
        claims=("C9",),
    ),
    Sentence(source=_BLOG, place="blog, two flows", says="in Mininet, on two processors (a figure)", claims=("C23",)),
    Sentence(
        source=_BLOG,
        place="blog, four flows",
        says="on two processors fairer and steadier than TCP, more variable than the paper",
        claims=("C12",),
    ),
    Sentence(
        source=_BLOG, place="blog, four flows", says="on eight processors comparable to the paper", claims=("C10",)
    ),
    Sentence(
        source=_BLOG,
        place="blog, fairness graph",
        says="better stability and fairness over the course of the experiment",
        claims=("C11",),
    ),
    Sentence(source=_BLOG, place="blog, fairness graph", says="the paper's indices are 0.98 to 0.99", claims=("F5",)),
    Sentence(
        source=_BLOG,
        place="blog, challenges",
        says="little time on Emulab; unpredictable instances",
        none="no measurement",
    ),
    Sentence(source=_BLOG, place="blog, challenges", says="an m3-medium is worse than a t2-medium", claims=("C7",)),
    Sentence(
        source=_BLOG,
        place="blog, challenges",
        says="on an m3-medium flows are fair, but have 30 % of the link",
        claims=("C13",),
    ),
    Sentence(
        source=_BLOG,
        place="blog, conclusions",
        says="it breaks down the worst where the paper's advantage is greatest",
        claims=(
            "C3",
            "F4",
        ),
    ),
    Sentence(
        source=_BLOG,
        place="blog, conclusions",
        says="PCC would do little for virtual servers behind shallow buffers",
        claims=("C20",),
    ),
    Sentence(source=_BLOG, place="blog, conclusions", says="the pacing can be fixed", claims=("C17",)),
    Sentence(
        source=_BLOG,
        place="blog, conclusions",
        says="fairer than CUBIC as long as buffers are big enough",
        claims=("C18",),
    ),
    Sentence(
        source=_BLOG,
        place="blog, conclusions",
        says="lost on fewer than 8 cores, even behind 250 packets",
        claims=("C14",),
    ),
    Sentence(
        source=_BLOG,
        place="blog, conclusions",
        says="each sender and receiver ought to have a core of its own",
        claims=("C14",),
    ),
    Sentence(
        source=_BLOG, place="reader's comment", says="reproducibility 3 of 5; division by zero; hangs", claims=("C16",)
    ),
)
