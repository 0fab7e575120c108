//! Behaviour of Linux and the RFCs in corner cases that a plausible TCP gets wrong. Each test covers one behaviour from
//! one source. Segments of a [`Server`] are numbered from 0, as in its ACKs; those on a [`Wire`] from 1, as in traces.

use crate::common::server::{Server, RTT};
use crate::common::wire::{late_if, lost_if, Wire, CLIENT, SERVER};

use ackclock_cc::controller::Recipe;
use ackclock_cc::Rule;
use ackclock_core::packet::Ecn;
use ackclock_core::trace::CaState;
use ackclock_core::{Flags, Span, Time};
use ackclock_tcp::Config;

fn ms(x: u64) -> Span {
    Span::from_ms(x)
}
fn at(x: u64) -> Time {
    Time::ZERO + ms(x)
}

/// Return a profile with Reno's arithmetic, which is easy to follow.
fn reno(profile: &str) -> Config {
    Config::profile(profile)
        .expect("a profile")
        .with(|set| set.sending.controller = Recipe::by_name("reno").expect("a controller"))
}

fn with_rule(profile: &str, rule: &str) -> Config {
    reno(profile).with(|set| set.loss.rule = Rule::by_name(rule).expect("a rule"))
}

/// Return a server in its state one RTT after sending `segments`.
fn after_writing(config: &Config, segments: u64) -> Server {
    let mut s = Server::new(config);
    s.write(segments);
    s.now += RTT;
    s
}

#[test]
fn an_overtaken_ack_is_no_duplicate_ack_linux_tcp_ack_old_ack() {
    let mut s = after_writing(&Config { sack: false, ..reno("linux-6") }, 10);
    s.ack(5, &[]);
    for late in 1..5 {
        assert_eq!(s.ack(late, &[]), "");
    }
    assert_eq!((s.state(), s.info().sacked), (CaState::Open, 0));
}

#[test]
fn a_fin_is_no_duplicate_ack_rfc_5681_section_2() {
    let mut s = after_writing(&Config { sack: false, ..reno("linux-6") }, 10);
    let mut fin = Server::segment(0, &[]);
    s.conn.on_packet(s.now, &fin, Ecn::NotEct); // sets the window that the FIN repeats
    let counted = s.info().sacked;
    fin.flags |= Flags::FIN;
    s.conn.on_packet(s.now, &fin, Ecn::NotEct);
    assert_eq!(s.info().sacked, counted);
}

#[test]
fn without_sack_the_window_does_not_grow_on_out_of_order_data_linux_tcp_data_queue_ofo() {
    let config = Config { sack: false, ..reno("linux-6") };
    let mut wire = Wire::new(&config, &config, |l| lost_if(l.is(32, 0)));
    wire.connect();
    wire.write(45);
    wire.run_until(at(5000));
    let stats = wire.ends[CLIENT].stats();
    assert_eq!((stats.recoveries, stats.rtos), (1, 0), "every duplicate ACK looked like a window update");
}

#[test]
fn a_cumulative_ack_resets_the_duplicate_acks_in_every_state_rfc_6675_section_5() {
    let config = reno("rfc");
    let mut wire = Wire::new(&config, &config, |l| late_if(l.is(60, 0), ms(15)));
    wire.gap = ms(1);
    wire.connect();
    wire.write(400);
    wire.run_until(at(3000));
    let stats = wire.ends[CLIENT].stats();
    assert_eq!((stats.recoveries, stats.retransmissions), (1, 1), "one late segment, one needless episode");
}

#[test]
fn kernels_before_2015_grow_by_one_segment_on_a_stretch_ack() {
    for (profile, cwnd) in [("linux-6", 20), ("linux-3.2", 11), ("linux-3.0", 11), ("rfc", 20)] {
        let mut s = after_writing(&reno(profile), 10);
        s.ack(10, &[]);
        assert_eq!(s.cwnd(), cwnd, "{profile}");
    }
}

// Reordering

#[test]
fn two_new_sack_blocks_on_one_ack_are_not_reordering_linux_tcp_sacktag_write_queue() {
    for profile in ["linux-6", "linux-3.2"] {
        let mut s = after_writing(&reno(profile), 10);
        s.ack(0, &[(8, 9), (1, 7)]); // RFC 2018: the latest arrival first
        assert_eq!(s.info().reordering, 3, "{profile}");
    }
}

#[test]
fn a_fifo_path_that_loses_data_and_acks_never_looks_reordered() {
    for profile in ["linux-6", "linux-3.2"] {
        let config = reno(profile);
        let mut rng = ackclock_core::Stream::new(5, "losses");
        let mut wire = Wire::new(&config, &config, move |l| {
            let per_mille = if l.from == CLIENT { 20 } else { 300 };
            lost_if(l.index > 3 && rng.below(1000) < per_mille)
        });
        wire.gap = Span::from_us(100);
        wire.connect();
        wire.write(3000);
        wire.run_until(at(200_000));
        assert_eq!(wire.ends[SERVER].received(), 3000 * 1448, "{profile}");
        assert_eq!(wire.ends[CLIENT].info().reordering, 3, "{profile}");
    }
}

#[test]
fn after_reordering_holes_are_losses_no_more_linux_tcp_disable_fack() {
    let mut s = after_writing(&reno("linux-3.2"), 10);
    s.ack(0, &[(5, 6)]);
    assert_eq!(s.state(), CaState::Recovery); // six segments "forward": FACK infers losses
    s.ack(6, &[(0, 1)]); // the segments were only late, and the retransmission was spurious
    s.ack(10, &[]);
    assert_eq!((s.state(), s.info().reordering), (CaState::Open, 5));
    assert_eq!(s.write(10).len(), 10);
    s.now += RTT;
    s.ack(10, &[(18, 20)]);
    assert_eq!((s.state(), s.info().lost), (CaState::Disorder, 0));
}

#[test]
fn the_dsack_of_a_probe_leaves_the_reordering_window_alone_linux_tcp_dsack_seen() {
    for reordered in [false, true] {
        let mut s = after_writing(&reno("linux-6"), 5);
        if reordered {
            s.ack(0, &[(1, 2)]);
            s.ack(1, &[(1, 2)]);
        }
        s.ack(5, &[]);
        s.write(5);
        assert_eq!(s.timer(), "R9");
        s.ack(10, &[]); // the originals arrived, but their ACKs were late
        s.write(5);
        s.conn.set_trace(true);
        s.ack(10, &[(9, 10)]);
        s.now += RTT;
        s.ack(12, &[]);
        s.ack(15, &[]);
        assert_eq!(s.conn.stats().dsacks_received, 1);
        assert_eq!(s.conn.take_records().last().expect("a record").timers.reo_wnd, s.info().min_rtt / 4);
    }
}

// Retransmission timer and RTT

#[test]
fn sacks_do_not_put_off_the_timeout_rfc_6298_section_5_3() {
    for (profile, rule) in [("rfc", "rfc6675"), ("linux-3.2", ""), ("linux-6", "")] {
        let mut config = reno(profile);
        if !rule.is_empty() {
            config.loss.rule = Rule::by_name(rule).expect("a rule");
        }
        let mut s = after_writing(&config, 10);
        for n in 1..5 {
            s.ack(0, &[(1, n + 1)]);
        }
        assert_eq!(s.state(), CaState::Recovery);
        let deadline = s.conn.next_deadline();
        s.now += ms(20);
        s.ack(0, &[(1, 9)]);
        // Linux since 4.x restarts the timer on a SACK of data older than the head's last transmission (tcp_clean_rtx_queue).
        assert_eq!(s.conn.next_deadline() > deadline, profile == "linux-6", "{profile}");
    }
}

#[test]
fn a_segment_sent_again_by_a_probe_gives_no_rtt_sample_karn() {
    let mut s = Server::new(&reno("linux-6"));
    s.write(5);
    assert_eq!(s.timer(), "R4"); // all ACKs were lost
    s.now += RTT;
    s.ack(5, &[]);
    assert_eq!(s.info().srtt, RTT);
}

#[test]
fn a_timestamp_sample_is_never_below_one_tick_of_its_clock_linux_tcp_rtt_tsopt_us() {
    let config = reno("linux-6");
    let mut first = true;
    let mut wire = Wire::new(&config, &config, move |l| lost_if(l.is(50, 0) && std::mem::take(&mut first)));
    wire.delay = Span::from_us(150);
    wire.gap = Span::from_us(5);
    wire.connect();
    wire.write(200);
    wire.run_until(at(3000));
    let info = wire.ends[CLIENT].info();
    assert!(wire.ends[CLIENT].stats().recoveries > 0);
    assert!(info.min_rtt >= Span::from_us(300), "{:?} on a path of 300 us", info.min_rtt);
}

#[test]
fn a_retransmission_ends_the_idle_time_linux_tcp_event_data_sent() {
    let config = reno("linux-6").with(|set| set.loss.tlp = false);
    let mut wire = Wire::new(&config, &config, |l| {
        lost_if(l.from == CLIENT && l.seg.rexmit == 0 && (311..615).contains(&l.seg.seg_no))
    });
    wire.gap = Span::from_us(5);
    wire.connect();
    wire.write(630);
    while wire.ends[CLIENT].acked() < 630 * 1448 {
        assert!(wire.step());
    }
    let cwnd = wire.ends[CLIENT].info().cwnd;
    assert!(cwnd > 10 && wire.now > at(500)); // long after the last transmission of new data
    wire.write(100);
    assert_eq!(wire.ends[CLIENT].info().cwnd, cwnd);
}

// Undo

#[test]
fn a_dsack_undoes_after_recovery_has_ended_linux_tcp_try_undo_dsack() {
    for outstanding in [0, 5] {
        let mut s = after_writing(&reno("linux-6"), 10);
        for n in 1..4 {
            s.ack(0, &[(1, n + 1)]);
        }
        assert_eq!(s.state(), CaState::Recovery);
        s.ack(10, &[]);
        assert_eq!((s.state(), s.info().ssthresh), (CaState::Open, 5));
        s.write(outstanding);
        s.ack(10, &[(0, 1)]);
        assert_eq!(s.conn.stats().dsacks_received, 1);
        assert_eq!(s.conn.stats().undos, 1, "{outstanding} outstanding");
        assert!(s.cwnd() >= 10 && s.info().ssthresh > 10);
    }
}

#[test]
fn a_dsack_undoes_a_needless_timeout_although_nothing_is_outstanding() {
    let mut s = after_writing(&reno("linux-6").with(|set| set.loss.tlp = false), 10);
    s.ack(9, &[]);
    let cwnd = s.cwnd();
    assert_eq!(s.timer(), "R9");
    assert_eq!(s.state(), CaState::Loss);
    s.ack(10, &[]);
    s.ack(10, &[(9, 10)]);
    assert_eq!(s.conn.stats().undos, 1);
    assert!(s.cwnd() >= cwnd);
}

/// Return a server that has had a spurious timeout of segment 0, and the segments sent on the ACK that reveals it.
/// F-RTO clears all loss marks.
fn after_a_spurious_timeout(config: &Config, ack: u64, sacks: &[(u64, u64)]) -> (Server, String) {
    let mut s = Server::new(&config.clone().with(|set| set.loss.tlp = false));
    s.write(10);
    assert_eq!(s.timer(), "R0");
    let sent = s.ack(ack, sacks);
    assert_eq!(s.conn.stats().undos, 1);
    (s, sent)
}

#[test]
fn a_loss_is_detected_although_its_mark_was_once_taken_back_rfc_8985() {
    let (mut s, _) = after_a_spurious_timeout(&reno("linux-6"), 5, &[]);
    assert_eq!(s.state(), CaState::Open);
    let sent: Vec<String> = (7..11).map(|n| s.ack(5, &[(6, n)])).collect();
    assert_eq!((s.state(), sent.concat().as_str()), (CaState::Recovery, "R5"));
}

#[test]
fn the_ack_that_undoes_a_timeout_may_start_a_recovery_linux_tcp_fastretrans_alert() {
    let (s, sent) = after_a_spurious_timeout(&reno("linux-6"), 5, &[(6, 10)]);
    assert_eq!((s.state(), sent.as_str()), (CaState::Recovery, "R5"));
}

#[test]
fn rate_halving_moderates_cwnd_on_undo_linux_tcp_moderate_cwnd() {
    let mut s = after_writing(&reno("linux-3.0"), 10);
    s.ack(0, &[(1, 5)]);
    assert_eq!(s.state(), CaState::Recovery);
    s.ack(6, &[]);
    s.ack(6, &[(0, 1)]);
    assert_eq!(s.conn.stats().undos, 1);
    assert!(s.cwnd() <= s.info().in_flight + 3, "cwnd {} pipe {}", s.cwnd(), s.info().in_flight);
}

#[test]
fn linux_up_to_3_1_moderates_cwnd_in_disorder_linux_tcp_try_to_open() {
    for (profile, moderated) in [("linux-3.0", true), ("linux-3.2", false)] {
        let mut s = after_writing(&reno(profile), 10);
        s.ack(6, &[]);
        let cwnd = s.cwnd();
        s.ack(6, &[(7, 8)]);
        assert_eq!(s.state(), CaState::Disorder);
        assert_eq!(s.cwnd(), if moderated { s.info().in_flight + 3 } else { cwnd }, "{profile}");
    }
}

#[test]
fn a_head_older_than_the_rto_is_lost_linux_tcp_head_timedout() {
    for (wait, state, sent) in [(150, CaState::Disorder, ""), (200, CaState::Recovery, "R5 R7 R8 R9")] {
        let mut s = after_writing(&reno("linux-3.2"), 10);
        s.now += RTT;
        s.deliver(5, &[]); // the sample of 200 ms gives an RTO of 363 ms and restarts the timer
        assert_eq!(s.conn.info().rto.as_ms(), 363);
        s.now += ms(wait);
        let first = s.ack(5, &[(6, 7)]);
        let rest: Vec<String> = (0..3).map(|_| s.ack(5, &[(6, 7)])).collect();
        assert_eq!((s.state(), s.conn.stats().rtos), (state, 0));
        assert_eq!(format!("{first} {}", rest.join(" ")).trim(), sent, "{wait} ms");
    }
}

// Recovery

#[test]
fn no_rescue_of_what_was_just_retransmitted_rfc_6675_section_5_step_4_3() {
    let mut s = after_writing(&with_rule("rfc", "rfc6675"), 10);
    let sent: Vec<String> = (1..10).map(|n| s.ack(0, &[(1, n + 1)])).collect();
    assert_eq!(sent.concat(), "R0");
    s.ack(10, &[]);
    assert_eq!((s.state(), s.conn.stats().retransmissions), (CaState::Open, 1));
}

#[test]
fn a_rescue_once_the_ack_is_beyond_the_first_retransmission_rfc_6675_next_seg_rule_4() {
    let mut s = after_writing(&with_rule("rfc", "rfc6675"), 10);
    for n in 1..9 {
        s.ack(0, &[(1, n + 1)]);
    }
    assert_eq!(s.ack(9, &[]), "R9"); // the tail was lost too, and no SACK will report it
    assert_eq!(s.state(), CaState::Recovery);
}

#[test]
fn no_rescue_while_the_ack_is_at_the_end_of_the_first_retransmission_rfc_6675_next_seg_rule_4() {
    let mut s = after_writing(&with_rule("rfc", "rfc6675"), 10);
    let sent: Vec<String> = (2..10).map(|n| s.ack(0, &[(2, n + 1)])).collect();
    assert_eq!(sent.concat(), "R0R1");
    assert_eq!(s.ack(1, &[(2, 10)]), "", "HighACK is not greater than RescueRxt, and 1 is under way");
}

#[test]
fn what_is_sacked_is_not_in_the_pipe_and_what_is_lost_is_sent_rfc_6675_section_4() {
    // 0 and 10 are lost, 7 is late; NextSeg rule (3) retransmits 7, which is never marked lost
    let mut s = after_writing(&with_rule("rfc", "rfc6675").with(|set| set.sending.iw = 14), 14);
    for n in 1..7 {
        s.ack(0, &[(1, n + 1)]);
    }
    s.ack(0, &[(8, 9), (1, 7)]);
    assert_eq!(s.ack(0, &[(8, 10), (1, 7)]), "R7");
    assert_eq!(s.ack(0, &[(1, 10)]), "");
    assert_eq!((s.info().sacked, s.info().in_flight), (9, 5)); // the retransmission of 0, and 10 to 13
    assert_eq!(s.ack(0, &[(11, 12), (1, 10)]), "R10");
}

#[test]
fn a_rescue_is_no_high_rxt_rfc_6675_next_seg_rule_4() {
    let mut s = after_writing(&with_rule("rfc", "rfc6675").with(|set| set.sending.iw = 16), 16);
    for n in 1..10 {
        s.ack(0, &[(1, n + 1)]);
    }
    assert_eq!(s.ack(10, &[]), "R15");
    assert_eq!(s.ack(10, &[(11, 12)]), "R10"); // rule (3) continues below the rescue
}

#[test]
fn a_rescue_holds_no_lost_segment_back_rfc_6675_next_seg_rule_1() {
    let mut s = after_writing(&with_rule("rfc", "rfc6675").with(|set| set.sending.iw = 16), 16);
    for n in 1..10 {
        s.ack(0, &[(1, n + 1)]);
    }
    assert_eq!(s.ack(10, &[]), "R15"); // the rescue; 15 is not marked lost
    s.write(20);
    for n in 12..14 {
        assert!(s.ack(10, &[(11, n)]).starts_with('N'));
    }
    assert!(s.ack(10, &[(11, 14)]).starts_with("R10"), "lost segments first");
}

#[test]
fn a_head_under_way_is_not_forced_out_again_on_entry() {
    let config = with_rule("rfc", "rfc6675");
    let (mut s, sent) = after_a_spurious_timeout(&config, 0, &[(1, 5)]);
    assert_eq!((s.state(), sent.as_str()), (CaState::Recovery, "")); // R0 is not sent a second time
    let sent: Vec<String> = (7..10).map(|n| s.ack(0, &[(6, n), (1, 5)])).collect();
    assert_eq!(sent.concat(), "R5");
}

#[test]
fn a_retransmission_lost_in_loss_starts_a_recovery_linux_tcp_fastretrans_alert() {
    let mut s = Server::new(&reno("linux-6").with(|set| set.loss.tlp = false));
    s.write(10);
    assert_eq!(s.timer(), "R0");
    s.now += RTT;
    assert_eq!(s.ack(1, &[]), "R1 R2"); // the retransmission of 2 is lost
    s.now += RTT;
    assert_eq!(s.ack(2, &[]), "R3 R4");
    assert_eq!(s.state(), CaState::Loss);
    s.now += RTT;
    let sent = s.ack(2, &[(3, 4)]);
    assert_eq!(s.conn.stats().lost_retransmits, 1);
    assert_eq!((s.state(), s.conn.stats().recoveries), (CaState::Recovery, 1));
    assert!(sent.contains("R2"), "{sent}");
}

#[test]
fn a_loss_that_a_probe_repaired_reduces_the_window_under_every_rule_rfc_8985_section_7_4() {
    for rule in ["prr-linux-6", "prr-ssrb", "prr-crb", "prr-ub", "rfc6675", "rate-halving"] {
        let mut s = after_writing(&with_rule("linux-6", rule), 10);
        s.ack(9, &[]);
        assert_eq!(s.timer(), "R9", "{rule}");
        s.write(1);
        s.now += RTT;
        s.ack(11, &[]);
        let info = s.info();
        assert!(info.ssthresh < 10, "{rule}: no reduction");
        assert!(info.cwnd <= info.ssthresh + 1, "{rule}: cwnd {} ssthresh {}", info.cwnd, info.ssthresh);
    }
}
