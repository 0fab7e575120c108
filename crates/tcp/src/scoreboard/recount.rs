//! What the board keeps by increments, counted anew: for tests and fuzzing.

use super::{Scoreboard, LINKED, LOST, RETRANS, SACKED};

impl Scoreboard {
    /// Recount what the board keeps by increments. (Without SACK, sacked_out is an emulation and no segment is marked.)
    pub fn recount(&self, sack: bool) {
        let board = self;
        let numbers = || board.first..board.next;
        let count = |mask: u8| numbers().filter(|&n| board.get(n).is(mask)).count() as u32;
        assert_eq!(board.lost_out, count(LOST));
        assert_eq!(board.retrans_out, count(RETRANS));
        if sack {
            assert_eq!(board.sacked_out, count(SACKED));
        }
        assert!(
            board.packets_out() + board.retrans_out >= board.sacked_out + board.lost_out,
            "pipe below zero"
        );

        for pair in board.sacked.windows(2) {
            assert!(pair[0].1 < pair[1].0, "{:?}", board.sacked);
        }
        let mut in_list = Vec::new();
        let mut cursor = board.oldest_sent();
        while let Some(n) = cursor {
            assert!(board.get(n).is(LINKED) && in_list.len() < board.packets_out() as usize);
            in_list.push(n);
            cursor = board.sent_after(n);
        }
        assert!(
            in_list.windows(2).all(|w| board.get(w[0]).xmit <= board.get(w[1]).xmit),
            "order of {in_list:?}"
        );
        assert_eq!(in_list.len(), count(LINKED) as usize);

        for n in numbers() {
            let s = board.get(n);
            assert!(s.flags & (SACKED | LOST) != SACKED | LOST, "{n} is both SACKed and lost");
            assert_eq!(
                board.sacked.iter().any(|r| r.0 <= n && n < r.1),
                s.is(SACKED),
                "{n} in {:?}",
                board.sacked
            );
        }
    }
}
