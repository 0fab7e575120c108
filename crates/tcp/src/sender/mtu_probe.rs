//! Path MTU discovery by the sender (RFC 4821; Linux `tcp_mtu_probing`). A probe is an occasional larger
//! segment. If it is acknowledged, all segments grow to its size; the loss of the probe alone does not
//! indicate congestion. After repeated timeouts the path may be dropping large packets silently, and segments
//! shrink. Off by default, as in Linux.
//!
//! Sizes are those of packets, including all headers. Differs: Linux sends no probe while it has SACKs to report itself.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::intent::Next;
use super::Sender;
use crate::config::{Config, Detection, MtuProbing};
use crate::scoreboard::{FIN, SACKED};

/// Linux `tcp_probe_threshold`: the search ends when the range is smaller than this, bytes.
const NARROWEST: u32 = 8;
/// Linux `tcp_probe_interval`: time after which probing restarts.
const AGAIN_AFTER: Span = Span::from_secs(600);
/// Linux `tcp_mtu_probe_floor`, `tcp_min_snd_mss`: minimum length of payload and options, bytes.
const FLOOR: u32 = 48;
/// Minimum cwnd for a probe, segments (Linux `tcp_mtu_probe`).
const LEAST_CWND: u32 = 11;
/// Linux `tcp_retries1`: number of timeouts after which a black hole is suspected.
const DOUBTFUL: u32 = 3;
const TCP_HEADER: u32 = 20;

/// Probe in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    size: u32,
    start: u64,
    end: u64,
}

/// Search state (Linux `icsk_mtup`).
#[derive(Clone, Debug)]
pub(super) struct MtuSearch {
    enabled: bool,
    /// Length of the IP and TCP headers, and of the options in each segment, bytes.
    headers: u32,
    options: u32,
    base: u32,
    /// Payload and options that both ends accept, bytes.
    clamp: u32,
    /// Largest packet the path is known to carry, bytes.
    path: u32,
    low: u32,
    high: u32,
    /// Whether this end initiated the connection.
    active: bool,
    /// Largest window offered by the peer, bytes.
    max_window: u64,
    since: Time,
    probe: Option<Probe>,
    /// A probe has already been tried in this round of sending.
    tried: bool,
}

impl MtuSearch {
    pub fn new(config: &Config, active: bool) -> Option<Box<MtuSearch>> {
        (config.switches.mtu_probing != MtuProbing::Off).then(|| {
            Box::new(MtuSearch {
                enabled: config.switches.mtu_probing == MtuProbing::Always,
                headers: config.ip_header + TCP_HEADER,
                options: 0,
                base: config.sending.base_mss,
                clamp: 0,
                path: u32::MAX,
                low: 0,
                high: 0,
                active,
                max_window: 0,
                since: Time::ZERO,
                probe: None,
                tried: false,
            })
        })
    }

    /// Payload of a packet of this size (Linux `tcp_mtu_to_mss`).
    fn payload(&self, packet: u32) -> u32 {
        packet.saturating_sub(self.headers).min(self.clamp).max(FLOOR).saturating_sub(self.options).max(1)
    }

    fn packet(&self, payload: u32) -> u32 {
        payload + self.options + self.headers
    }

    /// Payload of a full segment (Linux `tcp_sync_mss`).
    fn segment(&mut self) -> u32 {
        self.high = self.high.min(self.path);
        let most = self.payload(self.path);
        if self.enabled {
            most.min(self.payload(self.low))
        } else {
            most
        }
    }

    /// Record the end of a round of sending.
    pub fn round_over(&mut self) {
        self.tried = false;
    }

    /// Whether a probe is outstanding.
    pub fn is_out(&self) -> bool {
        self.probe.is_some()
    }
}

/// Outcome of an attempt to send a probe.
pub(super) enum Attempt {
    /// No probe is sent.
    None,
    /// A probe is to be sent but the window is too small for now; no other data is sent until then.
    Waits,
    /// Send a probe with this payload, bytes.
    Leaves(u32),
}

impl Sender {
    /// Start the search after the handshake agreed on `smss` bytes of payload and `options` bytes of options.
    /// Sets the initial segment size (Linux `tcp_mtup_init`). The passive end does not switch to small
    /// segments until the peer's window first grows.
    #[cold]
    pub(super) fn begin_mtu_search(&mut self, now: Time, options: u32) {
        let Some(search) = &mut self.mtu_search else { return };
        search.options = options;
        search.clamp = self.smss + options;
        search.path = search.clamp + search.headers;
        search.high = search.path;
        search.low = search.packet(search.base);
        search.since = now;
        search.max_window = self.snd_wnd;
        if search.active {
            let payload = search.segment();
            self.resize_segments(payload);
        }
    }

    /// Record the window offered by the peer. If it exceeds all earlier ones, the segment size is recomputed
    /// (Linux `tcp_ack_update_window`).
    #[cold]
    pub(super) fn offered_to_mtu_search(&mut self, window: u64) {
        let Some(search) = self.mtu_search.as_mut().filter(|s| window > s.max_window && s.clamp > 0) else {
            return;
        };
        search.max_window = window;
        let payload = search.segment();
        self.resize_segments(payload);
    }

    /// Try to send a probe now (Linux `tcp_mtu_probe`).
    #[cold]
    pub(super) fn try_mtu_probe(&mut self, now: Time) -> Attempt {
        let waiting = self.stream.from(self.snd_nxt);
        let (pipe, room) = (self.board.pipe(), (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt));
        let Some(search) = &mut self.mtu_search else { return Attempt::None };
        let free = search.enabled && search.probe.is_none() && !std::mem::replace(&mut search.tried, true);
        if !free || self.ca_state != CaState::Open || self.window.cwnd < LEAST_CWND {
            return Attempt::None;
        }
        let len = search.payload((search.low + search.high) / 2);
        if len > search.payload(search.high) || search.high.saturating_sub(search.low) < NARROWEST {
            if now.since(search.since) >= AGAIN_AFTER {
                search.high = search.clamp + search.headers;
                search.low = search.packet(self.smss);
                search.since = now;
            }
            return Attempt::None;
        }
        // Enough segments must follow the probe to reveal its loss.
        let needed = len as u64 + (self.dupthresh.degree() as u64 + 1) * self.smss as u64;
        if waiting < needed || self.snd_wnd < needed {
            return Attempt::None;
        }
        if room < needed {
            return Attempt::Waits;
        }
        if pipe + 2 > self.window.cwnd {
            return if pipe == 0 { Attempt::None } else { Attempt::Waits };
        }
        let (start, end) = (self.snd_nxt, self.snd_nxt + len as u64);
        if let Some(queue) = &mut self.queue {
            let whole = queue.buffer_at(start, len as u64).is_some_and(|(to, ..)| to >= end);
            if !whole {
                return Attempt::None; // a record ends within the probe
            }
            queue.begin(start, end, false);
            queue.sent_up_to(now, end, self.snd_una);
        }
        let search = self.mtu_search.as_mut().expect("invariant: seen above");
        search.probe = Some(Probe { size: search.packet(len), start, end });
        self.window.cwnd -= 1; // the probe counts as two segments
        if let Some(buffer) = &mut self.buffer {
            buffer.look(); // the probe merged several segments into one
        }
        Attempt::Leaves(len)
    }

    /// Check whether an ACK covers the probe. If so, segments grow, and cwnd shrinks to the same number of
    /// bytes (Linux `tcp_mtup_probe_success`).
    #[cold]
    pub(super) fn look_for_mtu_probe(&mut self, now: Time) {
        let (una, smss) = (self.snd_una, self.smss);
        let Some(search) = &mut self.mtu_search else { return };
        let Some(probe) = search.probe.filter(|p| p.end <= una) else { return };
        let bytes = self.window.cwnd as u64 * search.packet(smss) as u64;
        search.low = probe.size;
        search.probe = None;
        let payload = search.segment();
        self.resize_segments(payload);
        self.window.cwnd = ((bytes / probe.size as u64) as u32).max(1);
        self.window.cwnd_cnt = 0;
        self.window.ssthresh = self.current_ssthresh();
        self.usage.window_changed(now);
    }

    /// Check whether the segment believed lost is the probe, in which case the path does not carry its size. Its data
    /// is sent again in smaller segments, and cwnd is not reduced (Linux `tcp_mtup_probe_failed`). Returns false if
    /// another segment is lost.
    #[cold]
    pub(super) fn mtu_probe_failed(&mut self, now: Time) -> bool {
        let una = self.snd_una;
        let open = self.ca_state < CaState::Cwr;
        let Some(search) = self.mtu_search.as_mut().filter(|_| open) else { return false };
        let Some(probe) = search.probe.filter(|p| p.start == una) else { return false };
        search.high = probe.size - 1;
        search.probe = None;
        self.window.cwnd += 1;
        self.retransmit_larger(now);
        self.intent.set(Next::LostThenNew);
        true
    }

    /// Prepare segment `n` for retransmission. Any probe in flight is abandoned, and a segment larger than
    /// a full one is split (Linux `__tcp_retransmit_skb`). Returns the number of the first piece.
    #[cold]
    pub(super) fn end_mtu_probe(&mut self, n: u64) -> u64 {
        if let Some(search) = &mut self.mtu_search {
            search.probe = None;
        }
        let s = *self.board.get(n);
        if s.space() - s.is(FIN) as u32 <= self.smss {
            return n;
        }
        self.cut_segments();
        self.board.at_or_after(s.start().max(self.snd_una), self.smss)
    }

    /// Process a timeout. After several in a row, segments shrink, because the path may be a black hole
    /// for larger ones (Linux `tcp_mtu_probing`).
    #[cold]
    pub(super) fn doubt_path(&mut self, now: Time) {
        if !self.waited_for(now, DOUBTFUL) {
            return;
        }
        let Some(search) = &mut self.mtu_search else { return };
        if !std::mem::replace(&mut search.enabled, true) {
            search.since = now;
        } else {
            let mss = (search.payload(search.low) / 2).min(search.base).max(FLOOR);
            search.low = search.packet(mss);
        }
        let payload = search.segment();
        self.resize_segments(payload);
        self.cut_segments();
    }

    /// Record the path MTU reported by a router. Returns the largest payload that fits into it.
    pub(super) fn learn_path(&mut self, smss: u32) -> u32 {
        let Some(search) = &mut self.mtu_search else { return smss };
        search.path = search.path.min(search.packet(smss));
        search.segment()
    }

    /// Split segments larger than a full one. Returns the numbers of the pieces that are not SACKed.
    pub(super) fn cut_segments(&mut self) -> Vec<u64> {
        self.trim(self.board.first);
        let mut pieces = self.board.cut_to(self.smss, self.config.loss.detection == Detection::Fack);
        let first = self.board.first;
        self.dupthresh.look_from(first);
        self.next_seg.start_over(first);
        pieces.retain(|&n| !self.board.get(n).is(SACKED));
        pieces
    }
}
