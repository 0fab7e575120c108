"""Verdicts that have changed since an earlier version, each with the reason."""

from __future__ import annotations

from ackclock.study.changed import Before

BEFORE = Before(
    commit="2edf3b8",
    verdicts="""
C1 | holds, how much fails
C2 | holds, how much holds
C3 | holds
C4 | holds
C5 | fails, how much fails
C6 | holds, how much holds
C7 | not comparable
C8 | not comparable
C9 | undecided, how much undecided / holds
C10 | undecided, how much fails / undecided
C11 | undecided, how much undecided
C12 | holds
C13 | undecided / holds, how much undecided
C14 | undecided
C15 | not comparable
C16 | not comparable
C17 | fails, how much holds
C18 | fails / undecided
F1 | holds, how much fails
F2 | holds, how much holds
F3 | holds, how much fails
F4 | holds, how much holds
F5 | how much fails / holds
F6 | fails, how much undecided / holds
P1 | how much fails
P2 | holds, how much fails
P3 | holds, how much fails
P4 | holds / undecided
P5 | undecided, how much undecided
P6 | undecided / holds, how much fails
P7 | undecided / holds, how much fails
P8 | holds, how much fails
P9 | holds
P10 | holds, how much undecided
P11 | how much holds
P12 | holds, how much undecided / fails
P13 | fails
P14 | fails
P15 | undecided / holds, how much holds
P16 | how much fails
P17 | fails, how much fails
P18 | undecided, how much undecided
P19 | undecided / holds
P20 | undecided
P21 | holds, how much holds
P22 | undecided / holds
P23 | fails
P24 | not comparable
V1 | holds, how much holds / undecided
V2 | holds, how much holds
V3 | holds / undecided, how much holds / undecided
V4 | fails
V5 | undecided
""",
    why="""
C5 | the receiver measures what is read of packets that come in one instant as Linux does, and a link that acts at ticks delivers such: 4.5 points at paper scale on average over the sizes, 5.4 before, and the margin is 5
C7 | the hosts that the names of the machines stand for are modelled; behind 6 to 20 packets they do not differ by a point
C9 | three runs have no interval of a median; with six or more the second flow takes far longer than 50 s
C10 | windows of 10 s in stretches of 50 s are another question than windows of 100 s in stretches of 500 s, so that quick scale does not ask
C11 | the blog states it over the course of its experiment: the mean over all windows decides, and no longer each number of flows by itself
C12 | 200 s together at both scales, held against processors enough in the same experiment: PCC varies less on two processors, not more
C14 | twelve runs of 200 s together: with a cost for each packet the flows are fairer on few processors, not less fair
C18 | twelve runs in place of five at paper scale, 200 s together; quick scale, which has one short run of each for its pictures, does not ask
C19 | new: the delay that bufferbloat costs
C20 | new: "would do little" in virtual machines
C21 | new: batches, and what a small buffer drops of them
C22 | new: four flows that wake late
C23 | new: the two-flow run on two processors
F2 | one tolerance for one number: ten points, as for C1
F5 | windows of 10 s in stretches of 50 s are another question, so that quick scale does not ask
F6 | an effect within the margin fails no longer, and quick scale does not ask in short stretches
N1 | new: whether two sufficient causes can be told apart
P5 | 24 runs at paper scale decide that at least half of them get going
P15 | all three round-trip times are run at quick scale, as at paper scale, three times each, and held against TCP's run by run
P17 | the authors' incast sender is an arm: with ten senders TCP does as well, with more PCC has many times as much; at 64 KiB and ten senders more runs leave it undecided (1.00, 0.94 to 1.07)
P20 | more trials at paper scale, taken pair by pair by seed, so that the deviation of CUBIC beyond PCC's no longer reaches zero; quick scale does not ask
P22 | six runs in place of three at quick scale, as at paper scale, held against bundles seed by seed
V3 | more games at paper scale: with eight players the inefficiency of CUBIC is lower by -8 points (-18 to 1), which the printed size excludes
""",
)
