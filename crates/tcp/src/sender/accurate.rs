//! Accurate ECN at the sender (RFC 9768 §3.2.2.5, appendix A; Linux `tcp_accecn_process`). The sender infers how many of its
//! packets arrived CE-marked from a counter of three bits that wraps, and from the byte counters of the option if it is present.
//!
//! | symbol | meaning |
//! |---|---|
//! | N | segments newly delivered by the ACK |
//! | delta | (ACE - s.cep) mod 8, the smallest possible increase |
//! | safe | N - ((N - delta) mod 8), the largest increase that N allows |
//!
//! Linux also uses delta if the mean ACK covers more than four segments: the receiver then thins its ACKs, so
//! a large N does not mean that ACKs were lost.

use ackclock_cc::CongestionControl;
use ackclock_core::accecn::CEP_START;
use ackclock_core::packet::Ecn;
use ackclock_core::trace::CaState;
use ackclock_core::{AccEcnOption, Segment};

use super::plain::Reasons;
use super::Sender;
use crate::config::{Config, DelayedAck};

/// Contents of the peer's AccECN option so far (Linux TCP_ACCECN_OPT_*).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Saw {
    Nothing,
    Empty,
    Counters,
    Zeroed,
}

impl Saw {
    /// State after the first option. A counter whose initial value is one but that reads zero was zeroed on the path (§3.2.3.2.5).
    pub fn of(option: &AccEcnOption) -> Saw {
        let zeroed = option.by_mark().any(|(mark, counter)| mark != Ecn::Ce && counter == 0);
        match option.counters().next() {
            None => Saw::Empty,
            Some(_) if zeroed => Saw::Zeroed,
            Some(_) => Saw::Counters,
        }
    }
}

/// The peer's ECN counters, as known to the sender.
#[derive(Clone, Debug)]
pub(crate) struct Feedback {
    thin_rule: bool,
    /// Packets that arrived CE at the peer (s.cep - 5).
    pub(crate) ce: u32,
    /// Payload bytes that arrived as ECT(1), ECT(0) and CE, taken from the option or estimated.
    pub(crate) bytes: [u32; 3],
    /// Index of the byte counter that increased last; `None` if unknown or ambiguous.
    growing: Option<usize>,
    pub(crate) saw: Saw,
    /// The byte counters of the option are ignored.
    pub(crate) distrusts: bool,
    /// Mean number of segments acknowledged by one ACK, in units of 1/64.
    mean: u32,
    /// ACE field of the last ACK.
    ace: u8,
    /// The current ACK has a newer timestamp than earlier ones.
    pub(crate) newer: bool,
    /// The marks of the current ACK have been processed.
    pub(crate) looked: bool,
}

impl Feedback {
    pub fn new(config: &Config) -> Feedback {
        Feedback {
            thin_rule: config.receiving.delayed_ack == DelayedAck::Linux,
            ce: 0,
            bytes: [0; 3],
            growing: None,
            saw: Saw::Nothing,
            distrusts: false,
            mean: 0,
            ace: CEP_START as u8,
            newer: false,
            looked: false,
        }
    }

    /// Record the option of a handshake segment.
    pub fn sees(&mut self, option: &AccEcnOption) {
        if option.is_some() && self.saw < Saw::Counters {
            self.saw = Saw::of(option);
            self.distrusts |= self.saw == Saw::Zeroed;
        }
    }

    /// Update the byte counters from an ACK that delivers `bytes`. Return true if they can be used (Linux `tcp_accecn_process_option`).
    fn read(&mut self, option: &AccEcnOption, bytes: u64, sent: u64) -> bool {
        if self.distrusts {
            return false;
        }
        if !option.is_some() {
            if self.saw == Saw::Nothing {
                if sent >= (1 << 23) - 1 {
                    (self.saw, self.distrusts) = (Saw::Zeroed, true); // the counters may have wrapped
                }
                return false;
            }
            if let Some(i) = self.growing {
                self.bytes[i] = self.bytes[i].wrapping_add(bytes as u32);
            }
            return self.growing.is_some();
        }
        self.sees(option);
        let before = self.growing;
        let (mut usable, mut ambiguous, mut changed) = (before.is_some(), false, false);
        for (mark, counter) in option.by_mark() {
            let i = mark as usize - 1;
            let start = u32::from(mark != Ecn::Ce);
            // difference modulo 2^24, signed
            let delta = (counter.wrapping_sub(start).wrapping_sub(self.bytes[i]) << 8) as i32 >> 8;
            self.bytes[i] = self.bytes[i].wrapping_add(delta as u32);
            ambiguous |= delta < 0;
            if delta != 0 && before != Some(i) {
                ambiguous |= changed;
                if !changed {
                    self.growing = Some(i);
                }
                changed = true;
            }
        }
        if ambiguous {
            (usable, self.growing) = (false, None);
        }
        usable
    }

    /// Return the number of newly CE-marked packets reported by an ACK for `n` segments and `bytes`.
    fn increase(&self, ace: u8, n: u32, bytes: u64, ce_bytes: Option<u32>, told: &Told) -> u32 {
        let delta = u32::from(ace).wrapping_sub(CEP_START).wrapping_sub(self.ce) & 7;
        if n <= 7 {
            return delta;
        }
        let safe = n - (n.wrapping_sub(delta) & 7);
        let Some(marked) = ce_bytes else {
            return if self.thin_rule && self.mean > 4 << 6 { delta } else { safe };
        };
        let marked = u64::from(marked);
        if marked == 0 {
            return delta;
        }
        if n >= 16 && told.all {
            if bytes <= marked {
                return safe;
            }
            let estimate = (marked * u64::from(n)).div_ceil(bytes) as u32;
            return safe.min(delta + (estimate & !7));
        }
        let smss = u64::from(told.smss);
        match marked {
            _ if marked > u64::from(delta) * smss => safe,
            _ if marked < (u64::from(safe) * smss) >> 1 => delta,
            _ => safe,
        }
    }
}

/// Progress made by an ACK. Passed by value, so that `on_ack` keeps its copy in registers.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    /// Counters before the ACK.
    pub snd_una: u64,
    pub delivered: u64,
    /// The ACK delivers data.
    pub forward: bool,
    /// The ACK carries new SACKs, or some segments remain SACKed.
    pub sacked: bool,
    pub slow_path: bool,
}

/// Further inputs to the estimate of CE-marked packets.
struct Told {
    /// The ACK accounts for every delivered segment: the connection uses SACK, or its state is Open or CWR.
    all: bool,
    smss: u32,
}

impl Sender {
    /// Set up accurate ECN after the handshake agreed on it. `segments`: number of segments acknowledged by the peer by
    /// then. Linux counts a SYN, but not a SYN-ACK (`tcp_ack`, `__tcp_accecn_process`).
    pub(crate) fn hear_accurately(&mut self, option: &AccEcnOption, segments: u32) {
        let mut feedback = Feedback { mean: segments << 6, ..Feedback::new(&self.config) };
        feedback.sees(option);
        self.feedback = Some(Box::new(feedback));
        self.ecn.accurate = true;
        self.reasons.set(Reasons::ACCURATE_ECN, true);
    }

    /// Record at the end of the handshake whether ECN is used.
    pub(crate) fn agree_on_ecn(&mut self, on: bool) {
        self.ecn.on = on;
        self.cc.on_negotiated(self.ecn.accurate);
    }

    /// Record the option of a repeated SYN-ACK; that of the first one may have been stripped.
    pub(crate) fn see_option(&mut self, option: &AccEcnOption) {
        self.feedback.iter_mut().for_each(|f| f.sees(option));
    }

    /// Whether the peer's option has been received, which shows that the path passes it.
    pub(crate) fn saw_option(&self) -> bool {
        self.feedback.as_ref().is_some_and(|f| f.saw != Saw::Nothing)
    }

    pub(crate) fn distrust_option(&mut self) {
        self.feedback.iter_mut().for_each(|f| f.distrusts = true);
    }

    /// Count our SYN-ACK as CE-marked.
    pub(crate) fn count_marked_synack(&mut self) {
        self.feedback.iter_mut().for_each(|f| f.ce = f.ce.max(1));
    }

    /// Reset the marks for a newly arrived segment. `newer`: its timestamp is newer than that of earlier segments.
    pub(crate) fn await_marks(&mut self, newer: bool) {
        (self.ecn.newly, self.ecn.echo) = (0, false);
        if let Some(f) = &mut self.feedback {
            (f.newer, f.looked) = (newer, false);
        }
    }

    /// Whether the marks of the last segment have been processed.
    pub(crate) fn looked_at_marks(&self) -> bool {
        self.feedback.as_ref().is_some_and(|f| f.looked)
    }

    /// Reserve `room` bytes of each later segment's payload for the AccECN option and SACK blocks.
    pub(crate) fn make_option_room(&mut self, room: u32) {
        self.smss = self.mss_cache.saturating_sub(room).max(1);
    }

    /// Set the payload of full segments, without changing the bytes reserved for options.
    pub(super) fn resize_segments(&mut self, payload: u32) {
        let room = self.mss_cache - self.smss;
        self.smss = payload;
        self.mss_cache = payload + room;
    }

    /// Return an empty progress: nothing acknowledged or SACKed.
    #[cold]
    pub(super) fn standing(&self) -> Progress {
        let (snd_una, delivered) = (self.snd_una, self.delivered);
        Progress { snd_una, delivered, forward: false, sacked: false, slow_path: false }
    }

    /// Process the marks that this ACK reports. An ACK without progress may be an old one and is ignored.
    #[cold]
    pub(super) fn hear_marks(&mut self, seg: &Segment, by: Progress) {
        let n = (self.delivered - by.delivered) as u32;
        let bytes = if by.sacked { u64::from(n) * u64::from(self.smss) } else { self.snd_una - by.snd_una };
        let told =
            Told { all: self.sack || matches!(self.ca_state, CaState::Open | CaState::Cwr), smss: self.smss };
        let sent = self.snd_nxt - 1;
        let Some(f) = &mut self.feedback else { return };
        if !(by.forward || f.newer) {
            return;
        }
        let before = f.bytes[Ecn::Ce as usize - 1];
        let usable = f.read(&seg.accecn, bytes, sent);
        if n > 0 {
            f.mean = match f.mean {
                0 => n << 6,
                mean => (((mean << 6) - mean + (n << 6)) >> 6).min(0xffff),
            };
        }
        let ace = seg.flags.ace();
        let expected = !by.slow_path && ace == f.ace && !seg.accecn.is_some();
        f.ace = ace;
        if expected && n <= 7 {
            return;
        }
        f.looked = true;
        let ce_bytes = usable.then(|| f.bytes[Ecn::Ce as usize - 1].wrapping_sub(before));
        self.ecn.newly = f.increase(ace, n, bytes, ce_bytes, &told);
        f.ce = f.ce.wrapping_add(self.ecn.newly);
        self.ecn.echo = self.ecn.newly > 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feedback(cep: u32, mean: u32) -> Feedback {
        Feedback { ce: cep - CEP_START, mean, ..Feedback::new(&Config::profile("linux-6").expect("known")) }
    }

    const TOLD: Told = Told { all: true, smss: 1460 };

    #[test]
    fn the_counter_of_three_bits_wraps_safely() {
        // s.cep, ACE, N, mean, CE bytes of the option, expected increase
        for (cep, ace, n, mean, marked, want) in [
            (5, 0, 3, 0, None, 3),
            (13, 2, 12, 64, None, 5),
            (5, 4, 10, 64, None, 7),
            (5, 5, 9, 72, None, 8),    // mean of 1.1: ACKs were lost
            (5, 5, 10, 640, None, 0),  // mean of 10: the receiver thins its ACKs
            (5, 5, 9, 72, Some(0), 0), // the option reports no marks
            (5, 7, 10, 64, Some(2_920), 2),
            (5, 5, 10, 64, Some(14_600), 8),
            (5, 7, 20, 64, Some(14_600), 10),
        ] {
            let f = feedback(cep, mean);
            assert_eq!(f.increase(ace, n, u64::from(n) * 1460, marked, &TOLD), want, "{cep} {ace} {n}");
        }
        let rfc = Feedback { mean: 640, ..Feedback::new(&Config::profile("rfc").expect("known")) };
        assert_eq!(rfc.increase(5, 10, 14_600, None, &TOLD), 8, "only Linux takes ACKs for thin by nature");
    }

    #[test]
    fn byte_counters_wrap_and_backward_ones_are_not_used() {
        let mut f = feedback(5, 0);
        let told = |e1b, ceb, e0b| AccEcnOption::new(true, &[e1b, ceb, e0b]);
        assert!(!f.read(&told(1, 0, 1461), 1460, 1460), "the first says which counter grows");
        assert_eq!((f.saw, f.bytes), (Saw::Counters, [0, 1460, 0]));
        assert!(f.read(&told(1, 0, 2921), 1460, 2920));
        assert!(f.read(&AccEcnOption::default(), 1460, 4380), "without an option the same one grows");
        assert_eq!(f.bytes, [0, 4380, 0]);
        assert!(!f.read(&told(1, 0, 2921), 0, 4380), "back again");
        f.bytes = [0, (1 << 24) - 100, 0];
        f.growing = Some(1);
        assert!(f.read(&AccEcnOption::new(false, &[101]), 200, 1 << 24), "order 0, one field");
        assert_eq!(f.bytes[1], (1 << 24) + 100);
    }

    #[test]
    fn a_counter_that_was_zeroed_is_not_trusted() {
        for (option, saw) in [
            (AccEcnOption::new(true, &[]), Saw::Empty),
            (AccEcnOption::new(true, &[1]), Saw::Counters),
            (AccEcnOption::new(true, &[0, 0, 0]), Saw::Zeroed),
            (AccEcnOption::new(false, &[1, 0, 0]), Saw::Zeroed),
        ] {
            let mut f = feedback(5, 0);
            f.sees(&option);
            assert_eq!((f.saw, f.distrusts), (saw, saw == Saw::Zeroed));
        }
    }
}
