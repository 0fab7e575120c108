//! Contract of a congestion controller, defined in one place: every hook, every field of an ACK, and everything that a
//! controller may need from the connection. The tables here define the trait and its dispatch (`controller.rs`), the
//! legal orders of hooks in the conformance test, the structures of the C interface (`crates/native`) and the bridges
//! to Python and JavaScript (`own.rs`). `tools/contract.py` derives the C header, the Rust file for users, the names in
//! the web page and a page of the documentation from them. Each controller has its own file.
//!
//! Length: three tables, and what is made of their rows here.

use std::ops::Deref;

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::Custom;
use crate::window::Window;

/// Maximum number of variables that a controller may expose in a trace.
pub const MAX_VARS: usize = 8;

/// Table of hooks, passed by `hooks! { name }` to the macro `name`. A row has the description, signature and default
/// (`required` if there is none), the name in Linux, the permitted predecessors (`begin`: may be the first call of an
/// event), and the name in Python and JavaScript if it differs. Hooks under `itself` describe the controller and may be
/// called at any time.
#[macro_export]
macro_rules! hooks {
    ($then:ident) => {
        $then! {
            events {
                /// The handshake is complete. `accurate`: accurate ECN was negotiated.
                fn on_negotiated(self: &mut Self, accurate: bool) {}
                    ["", after seed begin] ;
                /// The SYN of the connecting end is acknowledged. `rtt`: RTT sample of the SYN.
                fn on_syn_acked(self: &mut Self, rtt: Span) {}
                    ["pkts_acked, before init", after on_negotiated] ;
                /// The connection is established. `srtt`: RTT of the handshake; zero if the handshake gave no sample.
                fn on_start(self: &mut Self, window: &mut Window, now: Time, srtt: Span, smss: u32) {}
                    ["init", after on_negotiated on_syn_acked] ;
                /// RTT sample and delivered segments of an ACK. Called for every ACK, in every state, before loss detection.
                fn on_sample(self: &mut Self, window: &mut Window, ack: &Arrival) {}
                    ["pkts_acked", after begin] inline;
                /// The ACK echoes a congestion mark. Return true to react as to a loss, once per window, in state CWR (RFC 3168 §6.1.2).
                fn on_ecn(self: &mut Self, window: &mut Window, ack: &Arrival) -> bool { true }
                    ["in_ack_event, CA_ACK_ECE", after on_sample on_state on_recovered undo_cwnd] ;
                /// A segment or its retransmission is marked lost. Called once per mark, when the mark is set, if the controller needs
                /// `losses`. `delivered`: segments delivered on the connection so far; `lost`: segments marked lost since the segment's
                /// last transmission, including the segment itself; `tx_in_flight`: segments in flight just after that transmission;
                /// `is_app_limited`: whether the application limited the sender at that transmission.
                fn on_lost(self: &mut Self, window: &mut Window, now: Time, delivered: u64, lost: u32, tx_in_flight: u32, is_app_limited: bool) {}
                    ["skb_marked_lost, of Google's version 3", after on_lost on_sample on_repaired on_state on_recovered undo_cwnd on_ecn begin] ;
                /// A tail loss probe has repaired a loss that was not detected otherwise, and a reduction follows. `delivered`: segments
                /// delivered on the connection so far; `is_app_limited`: whether the application limited the sender at the segment's first
                /// transmission. Called if the controller needs `losses`.
                fn on_repaired(self: &mut Self, window: &mut Window, now: Time, delivered: u64, is_app_limited: bool) {}
                    ["cwnd_event, CA_EVENT_TLP_RECOVERY, of Google's version 3", after on_sample] ;
                /// Return the target window after a congestion event, in segments, at least 2. Called once per reduction, before `window`
                /// changes. `in_flight`: the FlightSize that RFC 5681 §3.1 halves, in segments.
                fn ssthresh(self: &mut Self, window: &Window, in_flight: u32) -> u32 { (window.cwnd / 2).max(2) } required
                    ["ssthresh", after on_lost on_repaired on_sample on_state on_recovered undo_cwnd on_ecn on_timer reduces begin, own "on_congestion_event"] ;
                /// Called instead of the hook above if the reduction is caused by a mark and not by a loss.
                fn ssthresh_for_mark(self: &mut Self, window: &Window, in_flight: u32) -> u32 { self.ssthresh(window, in_flight) }
                    ["ssthresh", after on_sample on_state on_ecn, own "on_mark_event"] ;
                /// Return the minimum window for Linux's rate halving, in segments. Default: `ssthresh`.
                fn min_cwnd(self: &mut Self, ssthresh: u32) -> u32 { ssthresh }
                    ["min_cwnd, before 3.2", after ssthresh ssthresh_for_mark] ;
                /// The retransmission timer expired. `now`: current time, later than that of the last ACK. `ssthresh` is called next.
                fn on_timer(self: &mut Self, now: Time) {}
                    ["", after on_lost begin] ;
                /// A retransmission timeout occurred: ssthresh has been set, and cwnd is about to be set to the loss window.
                fn on_rto(self: &mut Self, window: &mut Window, now: Time) {}
                    ["cwnd_event, CA_EVENT_LOSS", after ssthresh] ;
                /// Totals of the connection: segments delivered and marked lost so far, and the time of the last delivery. Called if
                /// delivery rates are kept: before the state becomes Loss, and when a new segment is sent with nothing else outstanding,
                /// which resets that time.
                fn on_totals(self: &mut Self, delivered: u64, lost: u64, delivered_time: Time) {}
                    ["tcp_sock.delivered, lost, delivered_mstamp", after on_lost on_rto on_tx_start begin] ;
                /// The congestion state is set to `state`, which may equal the current state.
                fn on_state(self: &mut Self, window: &mut Window, state: CaState, now: Time) {}
                    ["set_state", after on_lost on_sample on_recovered undo_cwnd min_cwnd on_rto on_totals on_ecn begin] ;
                /// A reduction ended, and the recovery rule has set the window.
                fn on_recovered(self: &mut Self, window: &mut Window, now: Time) {}
                    ["cwnd_event, CA_EVENT_COMPLETE_CWR", after on_sample undo_cwnd] ;
                /// The reduction proved unnecessary. Return the window to restore, in segments.
                fn undo_cwnd(self: &mut Self, window: &Window) -> u32 { window.cwnd.max(window.prior_cwnd) }
                    ["undo_cwnd", after on_sample] ;
                /// Grow the window for an ACK that arrived outside recovery. Called only for ACKs that deliver data, in Open, Disorder and
                /// Loss. Not called if the controller needs `control`.
                fn on_ack(self: &mut Self, window: &mut Window, ack: &AckSample) {} required
                    ["cong_avoid", after on_lost on_sample on_state on_recovered undo_cwnd on_ecn] inline;
                /// Return true to reduce the window as for a loss, in state CWR, unless a reduction is in progress. Called after `on_ack`
                /// if the controller needs `reduces`.
                fn reduces(self: &mut Self) -> bool { false }
                    ["tcp_enter_cwr out of cong_avoid", after on_ack] ;
                /// Set the window and the pacing rate. Called on every ACK, in every state, after loss detection, if the controller needs
                /// `control`.
                fn on_control(self: &mut Self, window: &mut Window, ack: &AckSample) {}
                    ["cong_control", after on_lost on_sample on_state on_recovered undo_cwnd on_ecn] inline;
                /// Return true if the controller keeps less data in flight than it could, in order to probe the path. Rate samples of the
                /// data in flight then count as application-limited. Called after `on_control`.
                fn holds_back(self: &mut Self) -> bool { false }
                    ["tcp_sock.app_limited", after on_control] ;
                /// A segment that acknowledges nothing new arrived while nothing was outstanding. `slow_path`: the segment carries data or
                /// changes the window. Called if the controller needs `idle`.
                fn on_idle(self: &mut Self, now: Time, snd_una: u64, slow_path: bool) {}
                    ["in_ack_event", after begin] ;
                /// The application was idle for longer than the RTO, and the window is about to be reduced for that reason.
                fn on_restart(self: &mut Self, window: &mut Window, snd_nxt: u64) {}
                    ["cwnd_event, CA_EVENT_CWND_RESTART", after begin] ;
                /// A segment, new or retransmitted, is about to be sent with nothing in flight: all earlier data was acknowledged or is
                /// considered lost. `idle`: time since the last transmission; `snd_nxt`: offset of the next new data. If delivery rates are
                /// kept, called only after an application-limited period.
                fn on_tx_start(self: &mut Self, window: &mut Window, now: Time, idle: Span, snd_nxt: u64) {}
                    ["cwnd_event, CA_EVENT_TX_START", after on_restart begin] ;
            }
            itself {
                /// Needs of the controller. Constant for a connection.
                fn needs(self: &Self) -> Needs { Needs::default() }
                    ["", after begin, own "wants_..."] ;
                /// Write the variables for the trace, in the order of their names. A value that is not written remains NaN.
                fn vars(self: &Self, values: &mut [f64]) {}
                    ["get_info", after begin, own "variables"] ;
                /// Receive the connection's seed. Called once, before any other hook, if the controller needs `seed`.
                fn seed(self: &mut Self, seed: u64) {}
                    ["get_random_u32", after begin] ;
                /// Return a copy of the controller in the same state, for a run that forks, or the reason why it cannot be copied.
                fn copied(self: &Self) -> Result<Custom, String> { Err("found no hook that copies it".to_string()) }
                    ["the private area, icsk_ca_priv", after begin, own "copy"] ;
            }
        }
    };
}

/// Table of the fields of an ACK, passed by `fields! { name }` to the macro `name`. A row has the description, name and
/// type, the rule for combining several ACKs (`sum`, `any` for flags, `first`, `known` for the latest value present,
/// otherwise the latest value), and the name in Linux.
#[macro_export]
macro_rules! fields {
    ($then:ident) => {
        $then! {
            arrival {
                /// Time of arrival.
                now: Time [last, "tcp_mstamp"];
                /// Segments delivered by this ACK, before loss detection: cumulatively acknowledged or newly SACKed, each once.
                newly_acked: u32 [sum, ""];
                /// Delivered segments to which a congestion echo applies: with accurate ECN the newly reported marks, otherwise all
                /// segments if the ACK carries ECE.
                newly_acked_ce: u32 [sum, ""];
                /// Segments delivered since the newest segment that this ACK covers was sent; zero if delivery rates are not kept.
                since_sent: u32 [last, "ack_sample.in_flight"];
                /// Segments newly covered by the cumulative ACK, including those SACKed before. At the end of a recovery far more than
                /// `newly_acked`.
                covered: u32 [sum, "ack_sample.pkts_acked"];
                /// SACKed segments above the cumulative ACK.
                sacked: u32 [last, "sacked_out"];
                /// Bytes by which the cumulative ACK advanced. The value jumps at the end of a recovery.
                acked_bytes: u64 [sum, ""];
                /// RTT of the newest segment that this ACK covers, cumulatively or by SACK, or of the echoed timestamp if a covered segment
                /// was retransmitted; absent if the ACK gives no sample.
                rtt: Option<Span> [known, "ack_sample.rtt_us"];
                /// Smoothed RTT; zero before the first sample.
                srtt: Span [last, "srtt_us"];
                /// Minimum RTT of the connection so far; infinite before the first sample.
                min_rtt: Span [last, "tcp_min_rtt()"];
                /// Segments in flight before this ACK.
                prior_in_flight: u32 [first, "rate_sample.prior_in_flight"];
                /// Segments in flight after this ACK, before loss detection.
                left_in_flight: u32 [last, ""];
                /// First unacknowledged offset after this ACK.
                snd_una: u64 [last, "snd_una"];
                /// Next offset to send.
                snd_nxt: u64 [last, "snd_nxt"];
                /// The window limited the sender since the last ACK (RFC 7661). A controller must not grow the window when this is false.
                cwnd_limited: bool [last, "tcp_is_cwnd_limited()"];
                /// cwnd itself held data back in this round trip or the previous one. Stricter than `cwnd_limited`, which in slow start
                /// requires only half of cwnd to be used.
                window_held: bool [last, "is_cwnd_limited"];
                /// The sender paces its packets.
                paced: bool [last, "sk_pacing_status"];
                /// Time until the pacer allows the next segment to be sent; zero if it may be sent at once.
                departs_in: Span [last, "tcp_wstamp_ns - tcp_clock_cache"];
                /// Payload of a full segment, bytes.
                smss: u32 [last, "mss_cache"];
                /// The ACK echoes a congestion mark (ECE).
                ece: bool [any, "CA_ACK_ECE"];
                /// Congestion state before this ACK.
                prior_state: CaState [first, ""];
                /// Duplicate ACK: it acknowledges nothing new, carries no data and does not change the window (RFC 5681 §2).
                is_dup: bool [last, ""];
                /// The ACK has SACK blocks, a changed window or ECE: its header differs from the one that Linux's header prediction
                /// expects.
                slow_path: bool [last, "CA_ACK_SLOWPATH"];
            }
            sample {
                /// Segments that count towards growth: those delivered, or 1 in a stack that counts ACKs.
                acked: u32 [sum, "acked"];
                /// Segments delivered: `newly_acked` and, without SACK, the segment that a duplicate ACK implies.
                delivered: u32 [sum, "rate_sample.acked_sacked"];
                /// Delivered segments that carried a mark: their exact number with exact or accurate ECN, otherwise all of them if the ACK
                /// carries ECE.
                delivered_ce: u32 [sum, "rate_sample.delivered_ce"];
                /// Segments newly marked lost, including lost retransmissions; 0 before loss detection.
                newly_lost: u32 [sum, "rate_sample.losses"];
                /// Segments in flight after the ACK, excluding those newly marked lost.
                in_flight: u32 [last, "tcp_packets_in_flight()"];
                /// Congestion state after this ACK; before loss detection, the state before this ACK.
                ca_state: CaState [last, "icsk_ca_state"];
                /// Delivery rate sample; absent if delivery rates are not kept or this ACK gives no sample.
                rate: Option<RateSample> [known, "rate_sample"];
            }
            rate {
                /// Segments delivered over `interval`: those of a whole flight, not only of this ACK.
                delivered: u32 [last, "delivered"];
                /// Length of the sample: the larger of `send_elapsed` and `ack_elapsed`. Zero if the sample is invalid because it is
                /// shorter than the minimum RTT, which only an incorrect ACK can cause.
                interval: Span [last, "interval_us"];
                /// Time over which the delivered segments were sent.
                send_elapsed: Span [last, "snd_interval_us"];
                /// Time over which the delivered segments were acknowledged.
                ack_elapsed: Span [last, "rcv_interval_us"];
                /// Delivered count of the connection when the newest segment that the ACK covers was sent (P.delivered).
                prior_delivered: u64 [last, "prior_delivered"];
                /// Time of the connection's last delivery when that segment was sent (P.delivered_time).
                prior_time: Time [last, "prior_mstamp"];
                /// Delivered count of the connection now (C.delivered).
                total_delivered: u64 [last, "tcp_sock.delivered"];
                /// Segments marked lost on the connection; a segment marked twice counts twice (C.lost).
                total_lost: u64 [last, "tcp_sock.lost"];
                /// Segments of `delivered` that carried a mark.
                delivered_ce: u32 [last, "delivered_ce"];
                /// Segments marked lost between that segment's transmission and now (RS.lost).
                lost: u32 [last, ""];
                /// Segments in flight just after that segment was sent, including the segment itself (RS.tx_in_flight).
                tx_in_flight: u32 [last, ""];
                /// The application, not the window, limited the sender when that segment was sent.
                is_app_limited: bool [last, "is_app_limited"];
                /// Whether that segment was a retransmission.
                is_retrans: bool [last, "is_retrans"];
                /// The ACK may have been delayed by a delayed-ACK timer: it covers a single segment that is shorter than SMSS.
                is_ack_delayed: bool [last, "is_ack_delayed"];
                /// The ACK covers the end of a tail loss probe that retransmitted old data; whether the original or the probe arrived is
                /// not known yet.
                is_probe_ack: bool [last, "is_acking_tlp_retrans_seq, of Google's version 3"];
            }
        }
    };
}

/// Table of a controller's needs, passed by `needs! { name }` to the macro `name`. A row has the description, name and
/// type; for a flag also its bit in the C interface, and the hook whose presence declares the need in languages whose
/// controllers are classes.
#[macro_export]
macro_rules! needs {
    ($then:ident) => {
        $then! {
            flags {
                /// The controller itself sets the window and the pacing rate on every ACK (Linux `cong_control`): `on_control` replaces
                /// `on_ack` and the recovery rule.
                control [0, on_control];
                /// Delivery rates are kept, at the cost of a stamp per segment: `rate` and `since_sent` are filled in.
                rate [1];
                /// The sender paces at the window's `pacing_rate`, regardless of the stack's settings.
                pacing [2];
                /// The receiver echoes each mark exactly and every segment is sent ECN-capable (RFC 8257 §3.1, §3.2).
                exact_ecn [3];
                /// The controller requests accurate ECN (RFC 9768) and accepts no other form of ECN; its packets carry ECT(1) (RFC 9331).
                l4s [4];
                /// The controller may itself request a reduction, through `reduces`.
                reduces [5, reduces];
                /// The controller has its own start-up algorithm instead of the slow start of RFC 5681, so no other slow start can replace
                /// it.
                own_start [6];
                /// The controller draws random numbers and receives the connection's seed.
                seed [7, seed];
                /// HyStart is the controller's slow start, unless the stack specifies another.
                hystart [8];
                /// The window grows even while it does not limit the sender.
                unlimited [9];
                /// The controller is notified of segments that arrive while nothing is outstanding, through `on_idle`.
                idle [10, on_idle];
                /// The sender checks for an application limit at every ACK and timer, and not only when the application writes
                /// (draft-ietf-ccwg-bbr §4.1.2.4).
                watches_application [11];
                /// The controller is notified of each lost segment, through `on_lost` and `on_repaired`; this requires delivery rates,
                /// which are then kept.
                losses [12, on_lost];
            }
            numbers {
                /// Size of the send buffer as a multiple of cwnd (Linux `sndbuf_expand`); 0: two.
                buffer_windows: u8;
                /// Pacing rate, bytes/s, from which on a packet has at least two segments, instead of at least one (Linux `min_tso_segs`);
                /// 0: the stack's minimum.
                slow_packets: u32;
            }
        }
    };
}

/// Signature of one hook, for tools that generate bindings for other languages.
#[derive(Clone, Copy, Debug)]
pub struct HookRow {
    /// Hook described by this row.
    pub hook: Hook,
    /// Name in Rust and C.
    pub name: &'static str,
    /// Name in Python and JavaScript.
    pub own: &'static str,
    /// Hooks that may be called directly before this one; "begin" if it may be the first of an event.
    pub after: &'static [&'static str],
    /// Return type; empty if there is none.
    pub answer: &'static str,
    /// Whether a controller must implement it. One of `on_ack` and `on_control` is sufficient.
    pub required: bool,
    /// Whether the hook is part of a connection event; otherwise it describes the controller itself.
    pub is_event: bool,
}

/// Documentation of a hook.
#[derive(Clone, Copy, Debug)]
pub struct HookText {
    /// Hook description.
    pub about: &'static str,
    /// Linux counterpart; empty if there is none.
    pub linux: &'static str,
    /// Names and types of the arguments.
    pub arguments: &'static [(&'static str, &'static str)],
}

/// Description of one field.
#[derive(Clone, Copy, Debug)]
pub struct FieldRow {
    /// Structure that contains the field: "arrival", "sample" or "rate".
    pub part: &'static str,
    /// Field name, the same in every language.
    pub name: &'static str,
    /// Type in Rust.
    pub kind: &'static str,
    /// Field description.
    pub about: &'static str,
    /// Name in Linux; empty if it has no direct counterpart.
    pub linux: &'static str,
    /// Rule for combining several ACKs: `sum`, `any`, `known`, `first` or `last`.
    pub over: &'static str,
}

/// Description of one need.
#[derive(Clone, Copy, Debug)]
pub struct NeedRow {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Bit in the C interface; `None` for a number.
    pub bit: Option<u32>,
    /// Hook that declares the need in languages whose controllers are classes; empty if an attribute declares it.
    pub hook: &'static str,
    /// Maximum value; 1 for a flag.
    pub most: u32,
}

/// Define a hook of the trait, with its default or as required.
macro_rules! hook_of_trait {
    ([required] $(#[doc = $about:literal])+ $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) ($($answer:ty)?) $body:block) => {
        $(#[doc = $about])+ fn $hook($me: $me_ty $(, $arg: $type)*) $(-> $answer)?;
    };
    ([] $(#[doc = $about:literal])+ $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) ($($answer:ty)?) $body:block) => {
        $(#[doc = $about])+ fn $hook($me: $me_ty $(, $arg: $type)*) $(-> $answer)? $body
    };
}

macro_rules! is_required {
    (required) => {
        true
    };
    () => {
        false
    };
}

macro_rules! own_name {
    ($hook:ident) => {
        stringify!($hook)
    };
    ($hook:ident $own:literal) => {
        $own
    };
}

macro_rules! contract {
    ($($section:ident { $(
        $(#[doc = $about:literal])+
        fn $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) $(-> $answer:ty)? $body:block $($required:ident)?
        [$linux:literal, after $($before:ident)+ $(, own $own:literal)?] $($inline:ident)?;
    )* })*) => {
        /// The contract of a congestion controller. A controller keeps no recovery state: the recovery rule moves the
        /// window to [`CongestionControl::ssthresh`]. On each ACK `on_sample` is called first, then the hooks that the
        /// congestion state requires (`ssthresh`, `on_state`, `on_recovered`, `undo_cwnd`), then either `on_ack` or
        /// `on_control`.
        #[allow(unused_variables, clippy::needless_arbitrary_self_type, reason = "one form for all hooks")]
        pub trait CongestionControl {
            $($(hook_of_trait! {
                [$($required)?] $(#[doc = $about])+ $hook($me: $me_ty $(, $arg: $type)*) ($($answer)?) $body
            })*)*
        }

        /// All hooks, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(non_camel_case_types, missing_docs, reason = "each has the name of its hook")]
        pub enum Hook { $($($hook,)*)* }

        /// All hooks, in the order of the C interface.
        pub const HOOKS: &[HookRow] = &[$($(HookRow {
            hook: Hook::$hook,
            name: stringify!($hook),
            own: own_name!($hook $($own)?),
            after: &[$(stringify!($before)),+],
            answer: concat!($(stringify!($answer))?),
            required: is_required!($($required)?),
            is_event: matches!(stringify!($section).as_bytes(), b"events"),
        },)*)*];

        /// Documentation of all hooks, in the same order.
        pub const HOOK_TEXTS: &[HookText] = &[$($(HookText {
            about: concat!($($about, "\n"),+),
            linux: $linux,
            arguments: &[$((stringify!($arg), stringify!($type))),*],
        },)*)*];
    };
}

hooks!(contract);

impl Hook {
    /// Return this hook's table row.
    pub fn row(self) -> &'static HookRow {
        &HOOKS[self as usize]
    }

    /// Name in Python and JavaScript.
    pub fn own(self) -> &'static str {
        self.row().own
    }

    /// Whether the hook may be called directly after `before`; with `None`, as the first one of an event.
    pub fn may_follow(self, before: Option<Hook>) -> bool {
        self.row().after.contains(&before.map_or("begin", |hook| hook.row().name))
    }
}

macro_rules! structures {
    (
        arrival { $($(#[doc = $about:literal])+ $field:ident: $type:ty [$over:ident, $linux:literal];)* }
        sample { $($(#[doc = $s_about:literal])+ $s_field:ident: $s_type:ty [$s_over:ident, $s_linux:literal];)* }
        rate { $($(#[doc = $r_about:literal])+ $r_field:ident: $r_type:ty [$r_over:ident, $r_linux:literal];)* }
    ) => {
        /// An ACK after the scoreboard has been updated and before loss detection.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Arrival { $($(#[doc = $about])+ pub $field: $type,)* }

        /// An ACK after loss detection and the change of congestion state. It dereferences to [`Arrival`]; field names
        /// are distinct.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct AckSample {
            /// The ACK before loss detection.
            pub arrival: Arrival,
            $($(#[doc = $s_about])+ pub $s_field: $s_type,)*
        }

        /// Sample of the delivery rate over the flight of the newest segment that an ACK covers, taken by the sender's
        /// estimator (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate_gen`). Counts are in segments.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct RateSample { $($(#[doc = $r_about])+ pub $r_field: $r_type,)* }

        /// All fields of an ACK as passed to hooks.
        pub const FIELDS: &[FieldRow] = &[
            $(FieldRow { part: "arrival", name: stringify!($field), kind: stringify!($type), about: concat!($($about, "\n"),+), linux: $linux, over: stringify!($over) },)*
            $(FieldRow { part: "sample", name: stringify!($s_field), kind: stringify!($s_type), about: concat!($($s_about, "\n"),+), linux: $s_linux, over: stringify!($s_over) },)*
            $(FieldRow { part: "rate", name: stringify!($r_field), kind: stringify!($r_type), about: concat!($($r_about, "\n"),+), linux: $r_linux, over: stringify!($r_over) },)*
        ];

        impl AckSample {
            /// Combine this ACK with earlier, unreported ones.
            pub fn over(&self, before: &AckSample) -> AckSample {
                AckSample {
                    arrival: Arrival { $($field: merged!($over, before.arrival.$field, self.arrival.$field),)* },
                    $($s_field: merged!($s_over, before.$s_field, self.$s_field),)*
                }
            }
        }
    };
}

/// Merge an earlier and a later value by the given rule.
macro_rules! merged {
    (sum, $before:expr, $now:expr) => {
        $before + $now
    };
    (any, $before:expr, $now:expr) => {
        $before | $now
    };
    (known, $before:expr, $now:expr) => {
        $now.or($before)
    };
    (first, $before:expr, $now:expr) => {
        $before
    };
    (last, $before:expr, $now:expr) => {
        $now
    };
}

fields!(structures);

impl Deref for AckSample {
    type Target = Arrival;

    #[inline]
    fn deref(&self) -> &Arrival {
        &self.arrival
    }
}

impl From<Arrival> for AckSample {
    /// Convert an ACK that reports no loss and changes no state.
    #[inline(always)]
    fn from(arrival: Arrival) -> AckSample {
        let Arrival { newly_acked, newly_acked_ce, left_in_flight, prior_state, .. } = arrival;
        AckSample {
            arrival,
            acked: newly_acked,
            delivered: newly_acked,
            delivered_ce: newly_acked_ce,
            newly_lost: 0,
            in_flight: left_in_flight,
            ca_state: prior_state,
            rate: None,
        }
    }
}

impl RateSample {
    /// Return segments per second; `None` if the sample is invalid.
    pub fn segments_per_second(&self) -> Option<f64> {
        (self.interval > Span::ZERO).then(|| f64::from(self.delivered) * 1e9 / self.interval.0 as f64)
    }
}

macro_rules! said_by {
    ($hook:ident) => {
        stringify!($hook)
    };
    () => {
        ""
    };
}

macro_rules! wishes {
    (
        flags { $($(#[doc = $about:literal])+ $flag:ident [$bit:literal $(, $hook:ident)?];)* }
        numbers { $($(#[doc = $n_about:literal])+ $number:ident: $type:ty;)* }
    ) => {
        /// Requirements that a controller places on its connection.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Needs {
            $($(#[doc = $about])+ pub $flag: bool,)*
            $($(#[doc = $n_about])+ pub $number: $type,)*
            /// Names of the variables that `vars` writes, at most [`MAX_VARS`].
            pub vars: &'static [&'static str],
        }

        /// All needs; flags first, in the order of their bits.
        pub const NEEDS: &[NeedRow] = &[
            $(NeedRow { name: stringify!($flag), about: concat!($($about, "\n"),+), bit: Some($bit), hook: said_by!($($hook)?), most: 1 },)*
            $(NeedRow { name: stringify!($number), about: concat!($($n_about, "\n"),+), bit: None, hook: "", most: <$type>::MAX as u32 },)*
        ];

        impl Needs {
            /// Number of numeric needs.
            pub const NUMBERS: usize = [$(stringify!($number)),*].len();

            /// Return the needs whose flags are set in `bits` of the C interface.
            pub fn of_bits(bits: u32) -> Needs {
                Needs { $($flag: bits & 1 << $bit != 0,)* ..Needs::default() }
            }
        }
    };
}

needs!(wishes);

impl Needs {
    /// Whether delivery rates are kept, which requires a timestamp for each segment.
    pub fn keeps_rates(&self) -> bool {
        self.rate || self.losses
    }
}

/// Implement the trait for boxed controllers.
macro_rules! forwarded {
    ($($section:ident { $(
        $(#[doc = $about:literal])+
        fn $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) $(-> $answer:ty)? $body:block $($required:ident)?
        [$linux:literal, after $($before:ident)+ $(, own $own:literal)?] $($inline:ident)?;
    )* })*) => {
        #[allow(clippy::needless_arbitrary_self_type, reason = "one form for all hooks")]
        impl CongestionControl for Custom {
            $($(fn $hook($me: $me_ty $(, $arg: $type)*) $(-> $answer)? { (**$me).$hook($($arg),*) })*)*
        }
    };
}

hooks!(forwarded);

/// Return the nearest 1/1024, at least 1 and at most 1023.
pub(super) fn beta_from_permille(permille: u32) -> u32 {
    ((permille.min(1_000) * 1_024 + 500) / 1_000).clamp(1, 1_023)
}

/// Return `cwnd` times `beta` / 1024.
pub(super) fn scale(cwnd: u32, beta: u32) -> u32 {
    ((u64::from(cwnd) * u64::from(beta)) >> 10) as u32
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::controller::*;

    /// Return an ACK at `now_ns` for `acked` segments of a window-limited sender on a 100 ms path.
    pub(crate) fn sample(now_ns: u64, acked: u32) -> AckSample {
        arrival(now_ns, acked).into()
    }

    /// Return the fields of that ACK that are known before loss detection.
    pub(crate) fn arrival(now_ns: u64, delivered: u32) -> Arrival {
        Arrival {
            now: Time(now_ns),
            newly_acked: delivered,
            covered: delivered,
            acked_bytes: u64::from(delivered) * 1448,
            srtt: Span::from_ms(100),
            min_rtt: Span::from_ms(100),
            cwnd_limited: true,
            smss: 1448,
            ..Arrival::default()
        }
    }

    #[test]
    fn every_registered_name_is_known() {
        for (name, _) in REGISTRY {
            assert!(Controller::by_name(name).is_some(), "{name}");
        }
        assert!(Controller::by_name("bbrr").is_none());
    }

    #[test]
    fn overrides_reach_the_controller() {
        for (name, permille, want) in
            [("reno", 700, 70), ("cubic", 500, 50), ("cubic-rfc9438", 500, 50), ("cubic", 1_000, 99)]
        {
            let shared = Shared { beta_permille: Some(permille), ..Shared::default() };
            let mut c = Controller::build(name, &Options::new(), shared).expect("registered");
            assert_eq!(c.ssthresh(&Window::new(100), 100), want, "{name} {permille}");
            assert_eq!(c.ssthresh_for_mark(&Window::new(100), 100), want, "a mark is as a loss: {name}");
        }
        // RFC 8511: smaller reduction for a mark, unchanged for a loss; 0.8 and 0.85 are 819 and 870 of 1024
        for (name, permille, want) in
            [("reno", 800, (50, 79)), ("cubic", 850, (70, 84)), ("cubic-rfc9438", 850, (70, 85))]
        {
            let shared = Shared { ecn_beta_permille: Some(permille), ..Shared::default() };
            let mut c = Controller::build(name, &Options::new(), shared).expect("registered");
            assert_eq!(
                (c.ssthresh(&Window::new(100), 100), c.ssthresh_for_mark(&Window::new(100), 100)),
                want
            );
            assert_eq!(c.ssthresh_for_mark(&Window::new(2), 2), 2, "two segments at least");
        }
    }

    #[test]
    fn parameters_of_the_module_reach_cubic() {
        let options = Options::from([
            ("fast_convergence".to_string(), Value::Flag(false)),
            ("tcp_friendliness".to_string(), Value::Flag(false)),
        ]);
        let Ok(Controller::Cubic(c)) = Controller::build("cubic", &options, Shared::default()) else {
            panic!("cubic");
        };
        let want = CubicParams { fast_convergence: false, tcp_friendliness: false, ..CubicParams::LINUX };
        assert_eq!(c.params, want);
    }
}
