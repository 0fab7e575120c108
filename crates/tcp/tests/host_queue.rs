//! Tests of senders whose packets wait in a queue of their own host.

use crate::common::server::{Server, SMSS};
use ackclock_tcp::Config;

/// Server whose host's queue holds what it sends, at most two segments, until it is told that a packet has left.
fn behind_a_queue(segments: u64) -> Server {
    let base = Config::profile("linux-6").expect("a profile");
    let mut s = Server::new(&base.with(|set| set.sending.small_queues = Some(3_000)));
    s.conn.queue_behind(false);
    s.conn.write(s.now, segments * SMSS);
    while let Some(seg) = s.conn.poll_transmit(s.now) {
        s.conn.queued(seg.seq, seg.len);
    }
    s
}

/// Release the packet of segment `n`.
fn leaves(s: &mut Server, n: u64) -> String {
    s.conn.left_queue(1 + n * SMSS, SMSS as u32);
    s.sent().join(" ")
}

#[test]
fn what_still_waits_in_the_hosts_queue_is_not_probed_linux_skb_still_in_host_queue() {
    for n in [0, 1] {
        let mut s = behind_a_queue(2);
        if n > 0 {
            leaves(&mut s, 0);
            leaves(&mut s, 1);
        }
        assert_eq!(s.timer(), ["", "R1"][n], "the last segment, if it has left");
    }
}

#[test]
fn the_head_waits_for_its_first_copy_at_a_timeout_too() {
    let mut s = behind_a_queue(2);
    let mut timeouts = 0;
    while s.conn.stats().rtos == 0 && timeouts < 5 {
        assert_eq!(s.timer(), "");
        timeouts += 1;
    }
    assert_eq!(leaves(&mut s, 0), "R0");
}

#[test]
fn a_probe_sends_nothing_if_new_data_waits_for_the_hosts_queue_linux_tcp_send_loss_probe() {
    let mut s = behind_a_queue(10);
    assert!(s.conn.info().unacked < 10, "small queues");
    assert_eq!(s.timer(), "", "no segment is sent again, although the window allows new ones");
}
