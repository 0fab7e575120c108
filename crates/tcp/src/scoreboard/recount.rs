//! Check of the board's incremental counters against a full count, for tests and fuzzing. The check needs one
//! walk by number and one along the list, because the fuzzer runs it after every input.

use super::{Scoreboard, LINKED, LOST, RETRANS, SACKED};

impl Scoreboard {
    /// Check the incremental counters. (Without SACK, sacked_out is emulated and no segment is marked.)
    pub fn recount(&self, sack: bool) {
        let board = self;
        for (range, next) in board.sacked.iter().zip(board.sacked.iter().skip(1)) {
            assert!(range.1 < next.0, "{:?}", board.sacked);
        }
        let (mut lost, mut retrans, mut sacked, mut linked) = (0, 0, 0, 0);
        let mut ranges = board.sacked.iter().peekable();
        for n in board.first..board.next {
            let s = board.get(n);
            lost += s.is(LOST) as u32;
            retrans += s.is(RETRANS) as u32;
            sacked += s.is(SACKED) as u32;
            linked += s.is(LINKED) as u32;
            assert!(s.flags & (SACKED | LOST) != SACKED | LOST, "{n} is both SACKed and lost");
            while ranges.next_if(|r| r.1 <= n).is_some() {}
            assert_eq!(ranges.peek().is_some_and(|r| r.0 <= n), s.is(SACKED), "{n} in {:?}", board.sacked);
        }
        let apart = |&n: &u64| n > board.first && board.get(n).is(SACKED) && board.get(n - 1).is(SACKED);
        assert!(board.breaks.iter().all(apart), "{:?} in {:?}", board.breaks, board.sacked);
        assert!(
            board.breaks.iter().zip(board.breaks.iter().skip(1)).all(|(a, b)| a < b),
            "{:?}",
            board.breaks
        );
        assert_eq!((board.lost_out, board.retrans_out), (lost, retrans + board.leaked));
        if sack {
            assert_eq!(board.sacked_out, sacked);
        }
        assert!(
            board.packets_out() + board.retrans_out >= board.sacked_out + board.lost_out,
            "pipe below zero"
        );

        let (mut in_list, mut before) = (0, None);
        let mut cursor = board.oldest_sent();
        while let Some(n) = cursor {
            let s = board.get(n);
            assert!(s.is(LINKED) && in_list < linked, "{n} in a list of {linked}");
            assert!(before.is_none_or(|at| at <= s.xmit), "{n} was sent earlier than the one before it");
            (in_list, before) = (in_list + 1, Some(s.xmit));
            cursor = board.sent_after(n);
        }
        assert_eq!(in_list, linked);
    }
}
