"""Verdicts that have changed since an earlier version, each with the reason."""

from __future__ import annotations

from ackclock.study.changed import Before

BEFORE = Before(
    commit="2edf3b8",
    verdicts="""
W1 | holds
W2 | holds, how much fails
W3 | undecided / holds, how much fails
W4 | undecided, how much fails
W5 | how much holds
W6 | holds, how much holds
W7 | how much fails
W8 | how much fails
W9 | fails
W10 | fails, how much fails
W11 | holds
W12 | undecided / fails
W13 | holds, how much holds
W14 | holds, how much holds
W15 | holds, how much holds
W16 | fails
W17 | holds
W18 | fails
W19 | holds
W20 | not comparable
W21 | holds, how much fails
W22 | holds, how much holds
W23 | undecided / fails, how much fails
W24 | holds, how much holds
W25 | how much fails
W26 | fails
W27 | holds
W28 | holds
W29 | holds
N1 | holds
N2 | how much holds
N3 | holds
N4 | holds
""",
    why="""
W2 | it was slowest over fastest of four, which is never below one; now it asks whether the senders that the slides call fast are sooner, and TCPW is the last
W3 | the bound was looked at before the margin, so that an effect smaller than what counts held at paper scale; and quick scale, which has two groups of ten runs in place of three, no longer tells how much
W11 | slide 16 is a figure without words; the sentence was ours
W13 | the quoted filter: the stability filter costs less time, though it still costs some
W14 | "in proportion" asks for a power of one of the variance, no longer for a rank correlation above zero, and with the quoted filter the power is near zero
W19 | the swing of the round-trip time, which every sender shows behind a short queue, decides no longer; the correlation of windows does, and new is whether FAST's are more in step than those of HSTCP and NewReno
W22 | the starts of the four flows are drawn: before, one run stood for all seeds, and its interval had no width
W23 | the quoted filter: the interval follows the queue
W24 | five runs at quick scale, all alike without coalescing and skewed with it, leave both halves undecided
W26 | slide 2 names a criterion and has no result; and its three seeds were one run
W28 | six runs at quick scale, of which one carries the ratio, leave it undecided
W29 | the one cell in which it held, one loss of a flow alone, has two beside it: random loss, and four flows
W30 | new: ABSE itself beside pairs and trains
""",
)
