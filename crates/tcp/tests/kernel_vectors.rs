//! Behaviour of current Linux in fast recovery, segment by segment: four vectors observed with the kernel's public
//! packetdrill suite (facts only; MSS 1000, initial window 10, CUBIC, so ssthresh 7), and limited transmit.

use crate::common::server::Server;
use ackclock_core::trace::CaState;
use ackclock_core::Span;
use ackclock_tcp::Config;

fn server(sack: bool) -> Server {
    Server::new(&Config { sack, ..Config::profile("linux-6").expect("a profile") })
}

#[test]
fn one_of_ten_lost() {
    let mut s = server(true);
    assert_eq!(s.write(10).len(), 10);
    s.now += Span::from_ms(100);
    assert_eq!(s.ack(0, &[(1, 2)]), "");
    assert_eq!(s.ack(0, &[(1, 3)]), "");
    assert_eq!(s.ack(0, &[(1, 4)]), "R0");
    assert_eq!((s.state(), s.cwnd(), s.conn.info().ssthresh), (CaState::Recovery, 7, 7));
    assert!(s.write(7).is_empty());
    for n in 4..10 {
        assert_eq!(s.ack(0, &[(1, n + 1)]), format!("N{}", n + 6));
    }
    assert_eq!(s.ack(10, &[]), "N16");
    assert_eq!((s.state(), s.cwnd()), (CaState::Open, 7));
}

#[test]
fn the_first_four_of_ten_lost_and_nothing_more_to_send() {
    let mut s = server(true);
    s.write(10);
    s.now += Span::from_ms(100);
    assert_eq!(s.ack(0, &[(4, 5)]), "");
    assert_eq!(s.ack(0, &[(4, 6)]), "");
    assert_eq!(s.ack(0, &[(4, 7)]), "R0");
    assert_eq!(s.ack(0, &[(4, 8)]), "R1");
    assert_eq!(s.ack(0, &[(4, 9)]), "R2");
    assert_eq!(s.ack(0, &[(4, 10)]), "R3");
    s.now += Span::from_ms(100);
    for n in [1, 2, 3] {
        assert_eq!(s.ack(n, &[(4, 10)]), "");
    }
    assert_eq!(s.ack(10, &[]), "");
    assert_eq!((s.state(), s.cwnd()), (CaState::Open, 7));
    assert_eq!(s.write(10).len(), 7); // cwnd = ssthresh on exit, so the whole window is sent at once
}

#[test]
fn a_retransmission_is_lost_too() {
    let mut s = server(true);
    assert_eq!(s.write(20).len(), 10);
    s.now += Span::from_ms(100);
    let steps =
        [((4, 5), "N10"), ((4, 6), "N11"), ((4, 7), "R0"), ((4, 8), "R1"), ((4, 9), "R2"), ((4, 10), "R3")];
    for (block, sent) in steps {
        assert_eq!(s.ack(0, &[block]), sent);
    }
    s.now += Span::from_ms(100);
    assert_eq!(s.ack(0, &[(4, 11)]), "N12");
    assert_eq!(s.ack(0, &[(4, 12)]), "N13");
    assert_eq!(s.ack(1, &[(4, 12)]), "N14 N15"); // SafeACK: slow start
    assert_eq!(s.ack(1, &[(2, 4), (4, 12)]), "R1 N16"); // R1 is now known to be lost: no extra segment
    s.now += Span::from_ms(100);
    assert_eq!(s.ack(1, &[(2, 13)]), "N17");
    assert_eq!(s.ack(1, &[(2, 14)]), "N18");
}

#[test]
fn data_sacked_below_snd_una_still_counts_as_delivered() {
    let mut s = server(true);
    s.write(20);
    s.now += Span::from_ms(100);
    for n in 4..7 {
        s.ack(0, &[(4, n + 1)]);
    }
    assert_eq!(s.state(), CaState::Recovery);
    s.now += Span::from_ms(100);
    s.ack(2, &[(4, 7)]);
    // overtaken ACK: its ACK number is old, its SACK block is new
    let before = s.conn.info().sacked;
    s.ack(0, &[(4, 9)]);
    assert_eq!(s.conn.info().sacked, before + 2);
}

#[test]
fn limited_transmit_sends_one_new_segment_on_each_of_the_first_two_duplicate_acks() {
    for sack in [true, false] {
        let mut s = server(sack);
        s.write(20);
        s.now += Span::from_ms(100);
        let block = |n| if sack { vec![(1, n)] } else { vec![] };
        assert_eq!(s.ack(0, &block(2)), "N10");
        assert_eq!(s.ack(0, &block(3)), "N11");
        assert_eq!(s.ack(0, &block(4)), "R0");
    }
}
