//! Timing of the ACK of a FIN.

use super::*;

/// An application that has read everything closes as well, and its FIN carries the ACK (Linux `tcp_fin` enters pingpong mode).
#[test]
fn the_ack_of_a_fin_waits_for_the_own_fin() {
    for len in [0, 500] {
        let mut peer = Peer::after(40);
        peer.receiver.acks.quick = 8;
        let came = peer.now;
        assert_eq!(peer.fin(40, len), [], "quick ACKs are over, and one push is no reason");
        assert!((40..=41).contains(&peer.wait().since(came).as_ms()), "like any delayed ACK");
        assert_eq!(peer.acks().len(), 1);
        assert!(!peer.receiver.acks.pingpong, "it was not answered in time");
    }
}

/// Other triggers of an immediate ACK still apply (Linux `__tcp_ack_snd_check`, `tcp_data_queue`,
/// `__tcp_cleanup_rbuf`), and after the application's own FIN there is nothing left for the ACK to wait for (`tcp_fin`
/// in FIN-WAIT).
#[test]
fn the_ack_of_a_fin_leaves_at_once_where_one_is_due() {
    let mut peer = Peer::after(40);
    assert_eq!(peer.segment(40, false), []);
    assert_eq!(peer.fin(41, 0), [(41, vec![])], "more than a full segment is not acknowledged");

    let mut peer = Peer::after(40);
    assert_eq!(peer.fin(41, 0), [(40, vec![(41, 41)])], "beyond a hole it is data like any other");
    assert_eq!(peer.segment(40, false), [(41, vec![])], "the hole is filled");

    let mut peer = Peer::after(40);
    assert_eq!(peer.fin(40, 0), []);
    assert_eq!(peer.fin(40, 0).len(), 1, "it came again");

    let mut peer = Peer::after(40);
    peer.receiver.acks.pingpong = true;
    assert_eq!(peer.arrives(1 + 40 * SMSS, 500, Flags::ACK | Flags::PSH), []);
    assert_eq!(peer.fin(40, 600).len(), 1, "two pushes are read");

    let mut peer = Peer::after(40);
    peer.receiver.acks.closing = true;
    assert_eq!(peer.fin(40, 0), [(40, vec![])], "the application has closed");
}
