//! Congestion states and their transitions: Linux `tcp_fastretrans_alert` and the functions it calls. A
//! reduction begins and ends here; the recovery rule computes the window.
//!
//! | state | meaning | ends |
//! |---|---|---|
//! | Open | nothing is dubious | |
//! | Disorder | SACKs or duplicate ACKs arrived, but no segment is lost yet (RFC 3042) | when no segment is SACKed any more |
//! | CWR | the window is reduced for an ECN mark (RFC 3168 §6.1.2) or for a loss repaired by a probe (RFC 8985 §7.4.2) | beyond `high_seq` |
//! | Recovery | lost segments are retransmitted (RFC 5681 §3.2, RFC 6675 §5) | at `high_seq`: the RecoveryPoint |
//! | Loss | the retransmission timer expired (RFC 5681 §3.1, RFC 5682) | at `high_seq` |
//!
//! Letters A to E are the steps of Linux's function. The full check of step B, a receiver that reneges on its SACKs,
//! is made when the timer expires (`timeout_mark_lost`). Step C checks an invariant, as the scoreboard's tests do.

use ackclock_cc::{Arrival, CongestionControl, RecoveryEntry, RecoveryExit, RecoveryRule, SlowStart, Window};
use ackclock_core::trace::{CaState, Event, ExitCause};
use ackclock_core::{Segment, Span, Time};

use super::intent::{First, Next};
use super::plain::Reasons;
use super::timers::TimerKind;
use super::{AckWork, Sender};
use crate::config::Detection;
use crate::scoreboard::{EVER_RETRANS, RETRANS, SACKED};
use crate::stats::SlowStartEnd;

/// Minimum time allowed for a receiver to acknowledge data that it has SACKed.
const LEAST_RENEGING_WAIT: Span = Span::from_ms(10);

impl Sender {
    /// Run the congestion state machine (Linux `tcp_fastretrans_alert`). True if this ACK enters recovery.
    pub(super) fn fast_retrans_alert(
        &mut self,
        now: Time,
        seg: &Segment,
        prior_una: u64,
        arrival: &Arrival,
        w: &mut AckWork,
    ) -> bool {
        // A. An ECN mark is genuine congestion: the reduction is not undone.
        if self.ecn.echo {
            self.undo.keep_reduction();
        }
        let num_dupack = (w.is_dup() && !w.dsack) as u32;
        if w.una_advanced {
            self.dupthresh.reset(); // RFC 6675 §5: DupAcks = 0, in every state
        }
        if !self.sack && self.board.packets_out() == 0 {
            self.board.set_emulated_sacked(0);
        }
        // B. The head is SACKed although the ACK did not cover it: the receiver may have dropped it. Wait
        // half a round trip to find out (Linux `tcp_check_sack_reneging`).
        let reneged = self.sack && w.una_advanced && self.board.head().is_some_and(|head| head.is(SACKED));
        if reneged && self.config.loss.detection == Detection::Rack {
            self.timer.arm(TimerKind::Rto, now, (self.rtt.srtt() / 2).max(LEAST_RENEGING_WAIT));
            w.set_timer = false;
            return false;
        }
        // D. States that end when high_seq is acknowledged.
        if self.ca_state == CaState::Open {
            self.undo.no_retransmission();
        } else if self.snd_una >= self.high_seq {
            match self.ca_state {
                // above high_seq, so that a segment with the CWR flag has reached the receiver
                CaState::Cwr if self.snd_una != self.high_seq => {
                    self.end_reduction(now, ExitCause::FullAck);
                    self.set_state(now, CaState::Open);
                }
                // RFC 6675 §5 step A; RFC 6582 §3.2 step 3, full ACK
                CaState::Recovery => {
                    if !self.sack {
                        self.board.set_emulated_sacked(0);
                    }
                    let undone = self.try_undo_recovery(now, seg);
                    if self.holds_for_non_sack() {
                        self.forget_retransmissions();
                        return false;
                    }
                    match undone {
                        true => self.cc.on_recovered(&mut self.window, now), // Westwood needs the event even after an undo
                        false => self.end_reduction(now, ExitCause::FullAck),
                    }
                    self.set_state(now, CaState::Open);
                }
                _ => {}
            }
        }
        // E. Process the ACK in each state.
        match self.ca_state {
            CaState::Recovery => {
                // a partial ACK may come from originals that were only delayed
                if !w.una_advanced {
                    self.add_emulated_sack(num_dupack);
                } else if self.try_undo_partial(now, seg, prior_una) {
                    return false;
                }
                if self.try_undo_dsack(now) {
                    self.try_to_open(now, arrival, w);
                }
                self.identify_loss(now, w);
                if self.ca_state != CaState::Recovery {
                    if !self.time_to_recover() {
                        return false;
                    }
                    self.enter_recovery(now, w, self.ecn.echo);
                    self.intent.set(Next::LostThenNew);
                    return true;
                }
            }
            CaState::Loss => {
                self.process_loss(now, seg, num_dupack, w);
                self.identify_loss(now, w);
                // A lost retransmission starts a new episode even in Loss (RACK detects it; FACK checks only in Recovery).
                if self.ca_state == CaState::Open || (w.lost_retrans && self.time_to_recover()) {
                    return self.look_at_order(now, num_dupack, arrival, w);
                }
                return false;
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if w.data_sacked {
                    self.dupthresh.count(); // RFC 6675 §5: DupAcks
                }
                return self.look_at_order(now, num_dupack, arrival, w);
            }
        }
        self.intent.set(Next::LostThenNew);
        false
    }

    /// Check for losses on an ACK outside of recovery. True if recovery begins.
    fn look_at_order(&mut self, now: Time, num_dupack: u32, arrival: &Arrival, w: &mut AckWork) -> bool {
        if !self.sack {
            if w.una_advanced {
                self.board.set_emulated_sacked(0);
            }
            w.dups_counted = self.add_emulated_sack(num_dupack);
        }
        if self.ca_state <= CaState::Disorder {
            self.try_undo_dsack(now);
        }
        self.identify_loss(now, w);
        self.try_enter(now, arrival, w)
    }

    /// Begin recovery if a segment is lost; otherwise respond to an ECN mark, and enter or leave Disorder
    /// (the end of Linux's function; `tcp_try_to_open`). True if recovery begins.
    fn try_enter(&mut self, now: Time, arrival: &Arrival, w: &AckWork) -> bool {
        if !self.time_to_recover() {
            self.try_to_open(now, arrival, w);
            return false;
        }
        if self.mtu_search.is_some() && self.mtu_probe_failed(now) {
            return false;
        }
        self.enter_recovery(now, w, self.ecn.echo);
        self.intent.set(Next::LostThenNew);
        true
    }

    /// Respond to an ECN mark, and enter or leave Disorder, when no segment is lost (Linux `tcp_try_to_open`).
    fn try_to_open(&mut self, now: Time, arrival: &Arrival, w: &AckWork) {
        self.forget_retransmissions();
        if self.ecn.echo && self.cc.on_ecn(&mut self.window, arrival) {
            self.enter_cwr_for_mark(now, w);
        }
        if self.ca_state != CaState::Cwr {
            self.try_keep_open(now);
            // Linux up to 3.1 `tcp_moderate_cwnd`: no burst after dubious ACKs
            if self.config.sending.moderate_open {
                self.window.cwnd = self.window.cwnd.min(self.board.pipe() + self.dupthresh.degree());
            }
        }
    }

    /// Whether a segment is believed lost (Linux `tcp_time_to_recover`).
    pub(super) fn time_to_recover(&self) -> bool {
        self.board.lost_out > 0
    }

    /// Process an ACK in Loss: F-RTO (RFC 5682 §2.1; §3.1 with SACK), undo, or the end of the episode (Linux `tcp_process_loss`).
    fn process_loss(&mut self, now: Time, seg: &Segment, num_dupack: u32, w: &AckWork) {
        let recovered = self.snd_una >= self.high_seq;
        if w.una_advanced && self.try_undo_loss(now, seg, false) {
            return;
        }
        if self.frto {
            // Step 3.b: data that was never retransmitted was delivered, so the timeout was spurious. With
            // SACK this applies from the first ACK on (RFC 5682 §3.1); Linux accepts it at any time.
            if w.orig_sack_acked && self.try_undo_loss(now, seg, true) {
                return;
            }
            if self.snd_nxt > self.high_seq {
                if w.data_sacked || num_dupack > 0 {
                    self.frto = false; // step 3.a: the loss was real
                }
            } else if w.una_advanced && !recovered {
                // step 2: the first ACK after the timeout acknowledges part of the data
                self.high_seq = self.snd_nxt;
                if self.has_new_data() && self.window_room() {
                    self.intent.set(Next::NewThenLost); // step 2.b: send new data, whose ACK decides
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(now, seg);
            if self.holds_for_non_sack() {
                self.forget_retransmissions();
            } else {
                self.set_state(now, CaState::Open);
            }
            return;
        }
        // Duplicate ACKs for data sent since the timeout indicate holes; earlier ones do not.
        if !self.sack {
            if self.snd_nxt > self.high_seq && num_dupack > 0 {
                self.add_emulated_sack(num_dupack);
            } else if w.una_advanced {
                self.board.set_emulated_sacked(0);
            }
        }
        self.intent.set(Next::LostThenNew);
    }

    /// Change the congestion state and notify the controller (Linux `tcp_set_ca_state`).
    #[inline]
    pub(super) fn set_state(&mut self, now: Time, state: CaState) {
        if state == CaState::Loss {
            self.tell_totals();
            self.slow_start.on_rto();
        }
        self.cc.on_state(&mut self.window, state, now);
        // A recovery rule may set cwnd to zero during a reduction (CRB of RFC 6937), because later deliveries raise
        // it again. In other states nothing would raise it.
        if !matches!(state, CaState::Recovery | CaState::Cwr) {
            self.window.cwnd = self.window.cwnd.max(1);
        }
        if state.max(self.ca_state) == CaState::Loss {
            self.board.fit();
        }
        self.ca_state = state;
        let waits = state == CaState::Disorder && !self.config.loss.limited_transmit;
        self.reasons.set(Reasons::DISORDER, waits);
    }

    /// Enter Open if no segment is SACKed, lost or retransmitted, else Disorder (Linux `tcp_try_keep_open`).
    pub(super) fn try_keep_open(&mut self, now: Time) {
        let clear = self.board.sacked_out + self.board.lost_out == 0 && !self.any_retrans_done();
        let state = if clear { CaState::Open } else { CaState::Disorder };
        if state != self.ca_state {
            self.set_state(now, state);
            self.high_seq = self.snd_nxt;
        }
    }

    /// Clear the stamp of the first retransmission if none is outstanding (Linux
    /// `tcp_retrans_stamp_cleanup`).
    pub(super) fn forget_retransmissions(&mut self) {
        if !self.any_retrans_done() {
            self.undo.no_retransmission();
        }
    }

    /// Whether a retransmission is outstanding (Linux `tcp_any_retrans_done`).
    fn any_retrans_done(&self) -> bool {
        self.board.retrans_out > 0 || self.board.head().is_some_and(|h| h.is(EVER_RETRANS))
    }

    /// ssthresh to remember for an undo (Linux `tcp_current_ssthresh`).
    pub(super) fn current_ssthresh(&self) -> u32 {
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            return self.window.ssthresh;
        }
        self.window.current_ssthresh()
    }

    /// Begin recovery (RFC 6675 §5 step 4, RFC 6582 §3.2 step 2; Linux `tcp_enter_recovery`). In CWR the
    /// current reduction continues, because there is at most one per window. `marked`: the ACK carries ECE,
    /// so the reduction is genuine.
    pub(super) fn enter_recovery(&mut self, now: Time, w: &AckWork, marked: bool) {
        let pipe = self.board.pipe();
        let cwnd = self.window.cwnd;
        self.forget_retransmissions();
        self.undo.keep_reduction();
        self.init_undo();
        if !matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
            if !marked {
                self.undo.remember(self.current_ssthresh());
            }
            self.init_reduction(now, Some(w), false);
        }
        self.set_state(now, CaState::Recovery);
        self.stats.recoveries += 1;
        self.next_seg.enter_recovery(self.board.first);
        // RFC 6675 §5 step 4.3: the first segment is sent regardless of pipe
        let head_under_way = self.board.head().is_some_and(|h| h.is(RETRANS));
        match self.rule.forces_first_retransmit() && !head_under_way {
            true => self.intent.force(First::Head),
            false => self.intent.spare_head(),
        }
        self.begin_episode(now, pipe, cwnd);
        if self.trace.is_on() {
            self.record(now, Event::Enter, self.snd_una, 0, 0);
        }
    }

    /// Begin a reduction: RecoveryPoint (RFC 6675 §5 step 4.1), ssthresh (step 4.2, RFC 5681 §3.1 equation 4; the
    /// controller computes it, for a loss or for a mark), and the rule's state (Linux `tcp_init_cwnd_reduction`).
    /// RecoverFS includes the segments that the current ACK, with effects `w`, delivers (RFC 9937 §6).
    pub(super) fn init_reduction(&mut self, now: Time, w: Option<&AckWork>, marked: bool) {
        let flight = self.board.packets_out();
        self.high_seq = self.snd_nxt;
        self.dupthresh.note_recover(self.snd_nxt);
        self.loss_probe.end();
        self.tell_reduction();
        self.window.cwnd_cnt = 0;
        self.window.prior_cwnd = self.window.cwnd;
        let cwnd = self.window.cwnd;
        let target = match marked {
            true => self.cc.ssthresh_for_mark(&self.window, flight),
            false => self.cc.ssthresh(&self.window, flight),
        };
        self.window.ssthresh = self.slow_start.on_reduction(&mut self.window, target, self.snd_nxt);
        let why = if marked { SlowStartEnd::Mark } else { SlowStartEnd::Loss };
        self.look_at_slow_start(now, Some(why));
        self.rule.enter(&RecoveryEntry {
            cwnd,
            ssthresh: self.window.ssthresh,
            flight_size: flight,
            sacked: self.board.sacked_out,
            newly_sacked: w.map_or(0, |w| w.newly_sacked + w.dups_counted),
            newly_acked: w.map_or(0, |w| w.newly_acked - w.sacked_before),
            min_cwnd: self.cc.min_cwnd(self.window.ssthresh),
        });
    }

    /// End the reduction (Linux `tcp_end_cwnd_reduction`). The recovery rule sets the final cwnd.
    pub(super) fn end_reduction(&mut self, now: Time, cause: ExitCause) {
        let before = self.window.cwnd;
        if self.window.ssthresh < Window::INFINITE && !self.controls {
            let exit = RecoveryExit {
                cwnd: before,
                ssthresh: self.window.ssthresh,
                pipe: self.board.pipe(),
                undone: false,
            };
            self.window.cwnd = self.rule.exit(&exit).max(1);
        }
        self.cc.on_recovered(&mut self.window, now);
        self.usage.window_changed(now);
        self.finish_episode(now, before, cause);
    }

    /// Process an expired RTO (RFC 5681 §3.1, RFC 6675 §5.1; Linux `tcp_enter_loss`). ssthresh is set once
    /// per window of data, and not again when a retransmission times out (RFC 5681 §3.1, below equation 4).
    pub(super) fn enter_loss(&mut self, now: Time) {
        let new_recovery = self.ca_state < CaState::Recovery;
        let cwnd_before = self.window.cwnd;
        self.timeout_mark_lost(now);
        let first_of_window = self.ca_state <= CaState::Disorder
            || self.high_seq <= self.snd_una
            || (self.ca_state == CaState::Loss && self.patience.timeouts == 0);
        if first_of_window {
            self.undo.remember(self.current_ssthresh());
            self.window.prior_cwnd = self.window.cwnd;
            self.cc.on_timer(now); // the controller's clock still shows the last ACK, long ago
            let target = self.cc.ssthresh(&self.window, self.board.packets_out());
            self.window.ssthresh = self.slow_start.on_reduction(&mut self.window, target, self.snd_nxt);
            self.look_at_slow_start(now, Some(SlowStartEnd::Timeout));
            self.cc.on_rto(&mut self.window, now);
            self.init_undo();
        }
        // Loss window of one segment (RFC 5681 §3.1), plus the segments believed by RACK to be in flight.
        self.window.cwnd = self.board.pipe() + 1;
        self.window.cwnd_cnt = 0;
        self.usage.window_changed(now);
        if self.ca_state <= CaState::Disorder && self.board.sacked_out >= self.config.loss.dup_thresh {
            self.dupthresh.lower(self.config.loss.dup_thresh);
        }
        self.finish_episode(now, cwnd_before, ExitCause::Rto);
        self.set_state(now, CaState::Loss);
        self.high_seq = self.snd_nxt;
        self.dupthresh.note_recover(self.snd_nxt);
        self.tell_reduction();
        self.loss_probe.end();
        self.dupthresh.reset();
        // RFC 5682 §2.1 step 1: no F-RTO if the timer expires in Recovery, unless the timeout is a repeated one
        let probing = self.mtu_search.as_ref().is_some_and(|search| search.is_out());
        self.frto = self.config.loss.frto && (new_recovery || self.patience.timeouts > 0) && !probing;
    }

    /// Mark all segments lost that are not SACKed (RFC 5681 §3.1); with RACK only those sent long enough ago
    /// (RFC 8985 §6.3; Linux `tcp_timeout_mark_lost`).
    fn timeout_mark_lost(&mut self, now: Time) {
        let (now, first) = (self.clock(now), self.board.first);
        let reneged = self.board.get(first).is(SACKED);
        if reneged {
            if self.config.loss.detection == Detection::Rack {
                let queue = &mut self.queue;
                self.board.join_sacked(|start, end| {
                    if let Some(queue) = queue {
                        queue.join_sent(start, end);
                    }
                });
            }
            self.board.forget_sacks(); // the receiver reneged (RFC 2018 §8): mark its segments regardless of when they were sent
        }
        if !self.sack {
            self.board.set_emulated_sacked(0);
        }
        let spare_recent = !reneged && self.sack && self.config.loss.detection == Detection::Rack;
        for n in first..self.board.next {
            let s = self.board.get(n);
            if spare_recent && n != first && s.xmit + self.rack.rtt() > now {
                continue; // sent too recently
            }
            self.mark_lost(n);
        }
        self.next_seg.lost_from(first);
        self.dupthresh.look_from(self.board.next);
    }
}
