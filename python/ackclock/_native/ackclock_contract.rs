// The contract of a controller in Rust. Written by tools/contract.py from crates/cc/src/controller/contract.rs: change that and
// tools/templates/ackclock_contract.rs, not this file.

/// Version of the interface.
pub const ABI: u32 = 3;

/// Needs of a controller towards the connection around it; [`Controller::NEEDS`] has them or'ed together.
pub mod needs {
    /// The controller sets window and pacing rate by itself on every ACK (Linux `cong_control`): `on_control` is called in place of `on_ack` and the recovery rule.
    pub const CONTROL: u32 = 1;
    /// Delivery rates, which cost a stamp per segment: `rate` and `since_sent` are filled in.
    pub const RATE: u32 = 2;
    /// The sender paces by the window's `pacing_rate`, regardless of the stack's settings.
    pub const PACING: u32 = 4;
    /// The receiver echoes each mark exactly and every segment is sent ECN-capable (RFC 8257 §3.1, §3.2).
    pub const EXACT_ECN: u32 = 8;
    /// The controller asks for accurate ECN (RFC 9768) and accepts no other, and its packets carry ECT(1) (RFC 9331).
    pub const L4S: u32 = 16;
    /// The controller may ask for a reduction by itself, by `reduces`.
    pub const REDUCES: u32 = 32;
    /// The controller's start is not the slow start of RFC 5681, so that no other can replace it.
    pub const OWN_START: u32 = 64;
    /// HyStart is the controller's slow start, unless the stack names another.
    pub const HYSTART: u32 = 256;
    /// The window grows even while it does not limit the sender.
    pub const UNLIMITED: u32 = 512;
    /// The controller learns of segments that arrive while nothing is outstanding, by `on_idle`.
    pub const IDLE: u32 = 1024;
    /// The sender checks whether the application leaves its window unfilled also at every ACK and timer, and not only when the application writes (draft-ietf-ccwg-bbr §4.1.2.4).
    pub const WATCHES_APPLICATION: u32 = 2048;
    /// The controller learns of each lost segment, by `on_lost` and `on_repaired`; rates are kept for that.
    pub const LOSSES: u32 = 4096;
}

/// A sample of the delivery rate, over the flight of the newest segment that an ACK covers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    is_given: u32,
    /// Segments delivered over `interval`: a flight, not this ACK alone.
    pub delivered: u32,
    /// The longer one of the times that sending and acknowledging them took; zero if the sample is not valid: shorter than the minimum RTT, which only a wrong ACK can cause.
    pub interval: u64,
    /// Time over which they were sent.
    pub send_elapsed: u64,
    /// Time over which they were acknowledged.
    pub ack_elapsed: u64,
    /// Delivered count of the connection when the newest segment that the ACK covers was sent (P.delivered).
    pub prior_delivered: u64,
    /// Time when that count was reached.
    pub prior_time: u64,
    /// Delivered count of the connection now (C.delivered).
    pub total_delivered: u64,
    /// Segments marked lost on the connection; a segment marked twice counts twice (C.lost).
    pub total_lost: u64,
    /// Segments of `delivered` that carried a mark.
    pub delivered_ce: u32,
    /// Segments marked lost between that segment's transmission and now (RS.lost).
    pub lost: u32,
    /// Segments in flight when that segment had been sent, itself included (RS.tx_in_flight).
    pub tx_in_flight: u32,
    is_app_limited: u32,
    is_retrans: u32,
    is_ack_delayed: u32,
    is_probe_ack: u32,
}

impl Rate {
    /// The application, not the window, limited the sender when it was sent.
    pub fn is_app_limited(&self) -> bool {
        self.is_app_limited != 0
    }
    /// The segment was a retransmission.
    pub fn is_retrans(&self) -> bool {
        self.is_retrans != 0
    }
    /// The ACK may have been held back by a delayed-ACK timer: a single segment, shorter than SMSS.
    pub fn is_ack_delayed(&self) -> bool {
        self.is_ack_delayed != 0
    }
    /// The ACK reaches the end of a tail loss probe of old data; whether the original or the probe arrived is not known yet.
    pub fn is_probe_ack(&self) -> bool {
        self.is_probe_ack != 0
    }
}

/// An ACK.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Time of arrival.
    pub now: u64,
    /// Segments delivered by this ACK, before loss detection: cumulatively acknowledged or newly SACKed, each once.
    pub newly_acked: u32,
    /// Delivered segments to which an echo of congestion applies: all of them under ECE, else none.
    pub newly_acked_ce: u32,
    /// Segments delivered since the newest segment that this ACK covers was sent; zero where rates are not kept.
    pub since_sent: u32,
    /// Segments that the cumulative ACK covers, those SACKed before included, as a counter of ACKs sees them. After a recovery far more than were delivered.
    pub covered: u32,
    /// SACKed segments above the cumulative ACK.
    pub sacked: u32,
    /// Bytes by which the cumulative ACK advanced; after a recovery it jumps.
    pub acked_bytes: u64,
    rtt: u64,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: u64,
    min_rtt: u64,
    /// Segments in flight before this ACK.
    pub prior_in_flight: u32,
    /// Segments in flight after this ACK, before loss detection.
    pub left_in_flight: u32,
    /// First unacknowledged offset after this ACK.
    pub snd_una: u64,
    /// Next offset to send.
    pub snd_nxt: u64,
    cwnd_limited: u32,
    window_held: u32,
    paced: u32,
    /// Time until the pacer lets the next segment leave; zero if it may leave at once.
    pub departs_in: u64,
    /// Payload of a full segment, bytes.
    pub smss: u32,
    ece: u32,
    prior_state: u32,
    is_dup: u32,
    slow_path: u32,
    /// Segments that count for growth: those delivered, or 1 in a stack that counts ACKs.
    pub acked: u32,
    /// Segments delivered: `newly_acked`, with what a duplicate ACK stands for without SACK.
    pub delivered: u32,
    /// Delivered segments that carried a mark: their exact number with exact or accurate ECN, else all of them under ECE.
    pub delivered_ce: u32,
    /// Segments newly marked lost, retransmissions found lost included; 0 before loss detection.
    pub newly_lost: u32,
    /// Segments in flight after the ACK, without those newly marked lost.
    pub in_flight: u32,
    ca_state: u32,
    rate: Rate,
}

impl Ack {
    /// RTT of the newest segment that this ACK covers, if none of them was retransmitted.
    pub fn rtt(&self) -> Option<u64> {
        (self.rtt != u64::MAX).then_some(self.rtt)
    }
    /// Minimum RTT of the connection so far; infinite before the first sample.
    pub fn min_rtt(&self) -> Option<u64> {
        (self.min_rtt != u64::MAX).then_some(self.min_rtt)
    }
    /// The window limited the sender since the last ACK (RFC 7661). A controller must not grow the window when this is false.
    pub fn cwnd_limited(&self) -> bool {
        self.cwnd_limited != 0
    }
    /// The window itself held data back in this round trip or the last, in slow start too, where `cwnd_limited` asks for half of it only.
    pub fn window_held(&self) -> bool {
        self.window_held != 0
    }
    /// The sender paces its packets.
    pub fn paced(&self) -> bool {
        self.paced != 0
    }
    /// The ACK echoes a mark of congestion (ECE).
    pub fn ece(&self) -> bool {
        self.ece != 0
    }
    /// Congestion state before this ACK.
    pub fn prior_state(&self) -> State {
        State::of(self.prior_state)
    }
    /// Duplicate ACK: it acknowledges nothing new, carries no data and leaves the window as it is (RFC 5681 §2).
    pub fn is_dup(&self) -> bool {
        self.is_dup != 0
    }
    /// SACK blocks, a changed window or ECE: the header differs from the one that Linux's header prediction expects.
    pub fn slow_path(&self) -> bool {
        self.slow_path != 0
    }
    /// Congestion state after this ACK; before loss detection, the state before it.
    pub fn ca_state(&self) -> State {
        State::of(self.ca_state)
    }
    /// Delivery rate, where the controller needs it and this ACK gives a sample.
    pub fn rate(&self) -> Option<&Rate> {
        (self.rate.is_given != 0).then_some(&self.rate)
    }
}

/// A congestion controller. One is made for each connection.
pub trait Controller: Sized {
    /// See [`needs`].
    const NEEDS: u32 = 0;
    /// Names of the options; another is refused.
    const OPTIONS: &'static [&'static str] = &[];
    /// Names of what `variables` writes, for `record.controller`; eight at most.
    const VARIABLES: &'static [&'static str] = &[];
    /// Names of files that the controller reads.
    const READS: &'static [&'static str] = &[];
    /// Windows for which the send buffer is to have room; 0: two.
    const BUFFER_WINDOWS: u32 = 0;
    /// Pacing rate, bytes/s, below which one segment is a packet; 0: as the stack is set.
    const SLOW_PACKETS: u32 = 0;

    /// For a connection.
    fn new(options: &Options, random: Random) -> Self;

    /// Another one in the same state, for a run that forks; None: it cannot be copied. Without this method its bytes are copied, unless it
    /// keeps something elsewhere, such as a `Vec`.
    fn copy(&self) -> Option<Self> {
        // SAFETY: a type with nothing to drop is its bytes.
        (!std::mem::needs_drop::<Self>()).then(|| unsafe { std::ptr::read(self) })
    }

    /// The values of `VARIABLES`; unknown values are left as they are (NaN).
    fn variables(&self, _values: &mut [f64]) {}

    /// The handshake is over; `accurate`: it agreed on accurate ECN.
    fn on_negotiated(&mut self, accurate: bool) {}

    /// The end that connects has its SYN acknowledged, which gave this RTT.
    fn on_syn_acked(&mut self, rtt: u64) {}

    /// The connection is established, with this RTT (zero if the handshake gave no sample).
    fn on_start(&mut self, window: &mut Window, now: u64, srtt: u64, smss: u32) {}

    /// RTT sample and delivery of every ACK, in every state, before loss detection.
    fn on_sample(&mut self, window: &mut Window, ack: &Ack) {}

    /// The ACK echoes a mark of congestion. True: react as to a loss, once per window, in state CWR (RFC 3168 §6.1.2).
    fn on_ecn(&mut self, window: &mut Window, ack: &Ack) -> bool {
        true
    }

    /// A segment, or its retransmission, is marked lost: one call each, as the marks are set. `delivered`: segments delivered on the connection so far; `lost`: segments marked lost since its last transmission, itself included; `tx_in_flight`: segments in flight just after that; `is_app_limited`: the application limited the sender then. Called if the controller needs `losses`.
    fn on_lost(&mut self, window: &mut Window, now: u64, delivered: u64, lost: u32, tx_in_flight: u32, is_app_limited: bool) {}

    /// A tail loss probe has repaired a loss that nothing else detected, and a reduction follows. `delivered`: segments delivered on the connection so far; `is_app_limited`: the application limited the sender at the segment's first transmission. Called if the controller needs `losses`.
    fn on_repaired(&mut self, window: &mut Window, now: u64, delivered: u64, is_app_limited: bool) {}

    /// Asked at a congestion event: the target window in segments, at least 2. Asked once per reduction, before `window` changes; `in_flight` is the FlightSize that RFC 5681 §3.1 halves, in segments.
    fn ssthresh(&mut self, window: &Window, in_flight: u32) -> u32;

    /// Asked in place of the hook above if the reason is a mark and not a loss.
    fn ssthresh_for_mark(&mut self, window: &Window, in_flight: u32) -> u32 {
        self.ssthresh(window, in_flight)
    }

    /// Asked for the minimum window of Linux's rate halving, given ssthresh, if it differs from ssthresh.
    fn min_cwnd(&mut self, ssthresh: u32) -> u32 {
        ssthresh
    }

    /// The retransmission timer expires: time has passed since the last ACK, and `ssthresh` is asked next.
    fn on_timer(&mut self, now: u64) {}

    /// A retransmission timeout: ssthresh is set, the window about to collapse.
    fn on_rto(&mut self, window: &mut Window, now: u64) {}

    /// Segments delivered and marked lost on the connection so far, and the time of the last delivery. Called before the state becomes Loss, and, where rates are kept, when a segment leaves with nothing else outstanding, which sets that time.
    fn on_totals(&mut self, delivered: u64, lost: u64, delivered_time: u64) {}

    /// The congestion state becomes `state`, which may be the present one.
    fn on_state(&mut self, window: &mut Window, state: State, now: u64) {}

    /// A reduction ended and the rule has set the window.
    fn on_recovered(&mut self, window: &mut Window, now: u64) {}

    /// The reduction was a mistake: the window to go back to, in segments.
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        window.cwnd.max(window.prior_cwnd)
    }

    /// Grow the window for an ACK that arrived outside recovery. Called only for ACKs that deliver data, in Open, Disorder and Loss. Not called if the controller needs `control`.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        window.grow_as_reno(ack);
    }

    /// Asked after `on_ack`: reduce as for a loss, in state CWR, unless a reduction is in progress. Asked if the controller needs `reduces`.
    fn reduces(&mut self) -> bool {
        false
    }

    /// Set window and pacing rate, on every ACK in every state, after loss detection. Called if the controller needs `control`.
    fn on_control(&mut self, window: &mut Window, ack: &Ack) {}

    /// Asked after `on_control`: the controller keeps less in flight than it could, to probe the path. Rate samples of the data in flight then count as application-limited.
    fn holds_back(&mut self) -> bool {
        false
    }

    /// A segment arrived while nothing was outstanding, and acknowledges nothing new. `slow_path`: it carries data, or another window. Called if the controller needs `idle`.
    fn on_idle(&mut self, now: u64, snd_una: u64, slow_path: bool) {}

    /// The application was idle for longer than the RTO, and the window is about to be reset for that.
    fn on_restart(&mut self, window: &mut Window, snd_nxt: u64) {}

    /// A segment, new or sent again, leaves after `idle` with nothing in flight: everything was acknowledged, or is considered lost. `snd_nxt` is the offset of the next new data.
    fn on_tx_start(&mut self, window: &mut Window, now: u64, idle: u64, snd_nxt: u64) {}
}

/// `struct ackclock_controller`.
#[repr(C)]
pub struct Hooks {
    abi: u32,
    needs: u32,
    name: *const c_char,
    variables: *const c_char,
    reads: *const c_char,
    buffer_windows: u32,
    slow_packets: u32,
    open: unsafe extern "C" fn(*const Host) -> *mut c_void,
    close: unsafe extern "C" fn(*mut c_void),
    said: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    copy: unsafe extern "C" fn(*mut c_void, *const Host) -> *mut c_void,
    variables_of: unsafe extern "C" fn(*mut c_void, *mut f64) -> c_int,
    on_negotiated: Option<unsafe extern "C" fn(*mut c_void, u32) -> c_int>,
    on_syn_acked: Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>,
    on_start: Option<unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u32) -> c_int>,
    on_sample: Option<unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack) -> c_int>,
    on_ecn: Option<unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack, *mut c_int) -> c_int>,
    on_lost: Option<unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u32, u32, u32) -> c_int>,
    on_repaired: Option<unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u32) -> c_int>,
    ssthresh: Option<unsafe extern "C" fn(*mut c_void, *const Window, u32, *mut u32) -> c_int>,
    ssthresh_for_mark: Option<unsafe extern "C" fn(*mut c_void, *const Window, u32, *mut u32) -> c_int>,
    min_cwnd: Option<unsafe extern "C" fn(*mut c_void, u32, *mut u32) -> c_int>,
    on_timer: Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>,
    on_rto: Option<unsafe extern "C" fn(*mut c_void, *mut Window, u64) -> c_int>,
    on_totals: Option<unsafe extern "C" fn(*mut c_void, u64, u64, u64) -> c_int>,
    on_state: Option<unsafe extern "C" fn(*mut c_void, *mut Window, u32, u64) -> c_int>,
    on_recovered: Option<unsafe extern "C" fn(*mut c_void, *mut Window, u64) -> c_int>,
    undo_cwnd: Option<unsafe extern "C" fn(*mut c_void, *const Window, *mut u32) -> c_int>,
    on_ack: Option<unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack) -> c_int>,
    reduces: Option<unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int>,
    on_control: Option<unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack) -> c_int>,
    holds_back: Option<unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int>,
    on_idle: Option<unsafe extern "C" fn(*mut c_void, u64, u64, u32) -> c_int>,
    on_restart: Option<unsafe extern "C" fn(*mut c_void, *mut Window, u64) -> c_int>,
    on_tx_start: Option<unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u64) -> c_int>,
}

impl Hooks {
    fn of<C: Controller>() -> Hooks {
        Hooks {
            abi: ABI,
            needs: C::NEEDS,
            name: c"rust".as_ptr(),
            variables: listed(C::VARIABLES),
            reads: listed(C::READS),
            buffer_windows: C::BUFFER_WINDOWS,
            slow_packets: C::SLOW_PACKETS,
            open: open::<C>,
            close: close::<C>,
            said: said::<C>,
            copy: copy::<C>,
            variables_of: variables_of::<C>,
        on_negotiated: Some(on_negotiated::<C> as unsafe extern "C" fn(*mut c_void, u32) -> c_int),
        on_syn_acked: Some(on_syn_acked::<C> as unsafe extern "C" fn(*mut c_void, u64) -> c_int),
        on_start: Some(on_start::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u32) -> c_int),
        on_sample: Some(on_sample::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack) -> c_int),
        on_ecn: Some(on_ecn::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack, *mut c_int) -> c_int),
        on_lost: (C::NEEDS & needs::LOSSES != 0).then_some(on_lost::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u32, u32, u32) -> c_int),
        on_repaired: Some(on_repaired::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u32) -> c_int),
        ssthresh: Some(ssthresh::<C> as unsafe extern "C" fn(*mut c_void, *const Window, u32, *mut u32) -> c_int),
        ssthresh_for_mark: Some(ssthresh_for_mark::<C> as unsafe extern "C" fn(*mut c_void, *const Window, u32, *mut u32) -> c_int),
        min_cwnd: Some(min_cwnd::<C> as unsafe extern "C" fn(*mut c_void, u32, *mut u32) -> c_int),
        on_timer: Some(on_timer::<C> as unsafe extern "C" fn(*mut c_void, u64) -> c_int),
        on_rto: Some(on_rto::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, u64) -> c_int),
        on_totals: Some(on_totals::<C> as unsafe extern "C" fn(*mut c_void, u64, u64, u64) -> c_int),
        on_state: Some(on_state::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, u32, u64) -> c_int),
        on_recovered: Some(on_recovered::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, u64) -> c_int),
        undo_cwnd: Some(undo_cwnd::<C> as unsafe extern "C" fn(*mut c_void, *const Window, *mut u32) -> c_int),
        on_ack: Some(on_ack::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack) -> c_int),
        reduces: (C::NEEDS & needs::REDUCES != 0).then_some(reduces::<C> as unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int),
        on_control: (C::NEEDS & needs::CONTROL != 0).then_some(on_control::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, *const Ack) -> c_int),
        holds_back: Some(holds_back::<C> as unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int),
        on_idle: (C::NEEDS & needs::IDLE != 0).then_some(on_idle::<C> as unsafe extern "C" fn(*mut c_void, u64, u64, u32) -> c_int),
        on_restart: Some(on_restart::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, u64) -> c_int),
        on_tx_start: Some(on_tx_start::<C> as unsafe extern "C" fn(*mut c_void, *mut Window, u64, u64, u64) -> c_int),
        }
    }
}

unsafe extern "C" fn on_negotiated<C: Controller>(cc: *mut c_void, accurate: u32) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_negotiated(accurate != 0)) }
}

unsafe extern "C" fn on_syn_acked<C: Controller>(cc: *mut c_void, rtt: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_syn_acked(rtt)) }
}

unsafe extern "C" fn on_start<C: Controller>(cc: *mut c_void, window: *mut Window, now: u64, srtt: u64, smss: u32) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_start(&mut *window, now, srtt, smss)) }
}

unsafe extern "C" fn on_sample<C: Controller>(cc: *mut c_void, window: *mut Window, ack: *const Ack) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_sample(&mut *window, &*ack)) }
}

unsafe extern "C" fn on_ecn<C: Controller>(cc: *mut c_void, window: *mut Window, ack: *const Ack, answer: *mut c_int) -> c_int {
    unsafe { called::<C>(cc, |cc| *answer = c_int::from(cc.on_ecn(&mut *window, &*ack))) }
}

unsafe extern "C" fn on_lost<C: Controller>(cc: *mut c_void, window: *mut Window, now: u64, delivered: u64, lost: u32, tx_in_flight: u32, is_app_limited: u32) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_lost(&mut *window, now, delivered, lost, tx_in_flight, is_app_limited != 0)) }
}

unsafe extern "C" fn on_repaired<C: Controller>(cc: *mut c_void, window: *mut Window, now: u64, delivered: u64, is_app_limited: u32) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_repaired(&mut *window, now, delivered, is_app_limited != 0)) }
}

unsafe extern "C" fn ssthresh<C: Controller>(cc: *mut c_void, window: *const Window, in_flight: u32, answer: *mut u32) -> c_int {
    unsafe { called::<C>(cc, |cc| *answer = cc.ssthresh(&*window, in_flight)) }
}

unsafe extern "C" fn ssthresh_for_mark<C: Controller>(cc: *mut c_void, window: *const Window, in_flight: u32, answer: *mut u32) -> c_int {
    unsafe { called::<C>(cc, |cc| *answer = cc.ssthresh_for_mark(&*window, in_flight)) }
}

unsafe extern "C" fn min_cwnd<C: Controller>(cc: *mut c_void, ssthresh: u32, answer: *mut u32) -> c_int {
    unsafe { called::<C>(cc, |cc| *answer = cc.min_cwnd(ssthresh)) }
}

unsafe extern "C" fn on_timer<C: Controller>(cc: *mut c_void, now: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_timer(now)) }
}

unsafe extern "C" fn on_rto<C: Controller>(cc: *mut c_void, window: *mut Window, now: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_rto(&mut *window, now)) }
}

unsafe extern "C" fn on_totals<C: Controller>(cc: *mut c_void, delivered: u64, lost: u64, delivered_time: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_totals(delivered, lost, delivered_time)) }
}

unsafe extern "C" fn on_state<C: Controller>(cc: *mut c_void, window: *mut Window, state: u32, now: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_state(&mut *window, State::of(state), now)) }
}

unsafe extern "C" fn on_recovered<C: Controller>(cc: *mut c_void, window: *mut Window, now: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_recovered(&mut *window, now)) }
}

unsafe extern "C" fn undo_cwnd<C: Controller>(cc: *mut c_void, window: *const Window, answer: *mut u32) -> c_int {
    unsafe { called::<C>(cc, |cc| *answer = cc.undo_cwnd(&*window)) }
}

unsafe extern "C" fn on_ack<C: Controller>(cc: *mut c_void, window: *mut Window, ack: *const Ack) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_ack(&mut *window, &*ack)) }
}

unsafe extern "C" fn reduces<C: Controller>(cc: *mut c_void, answer: *mut c_int) -> c_int {
    unsafe { called::<C>(cc, |cc| *answer = c_int::from(cc.reduces())) }
}

unsafe extern "C" fn on_control<C: Controller>(cc: *mut c_void, window: *mut Window, ack: *const Ack) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_control(&mut *window, &*ack)) }
}

unsafe extern "C" fn holds_back<C: Controller>(cc: *mut c_void, answer: *mut c_int) -> c_int {
    unsafe { called::<C>(cc, |cc| *answer = c_int::from(cc.holds_back())) }
}

unsafe extern "C" fn on_idle<C: Controller>(cc: *mut c_void, now: u64, snd_una: u64, slow_path: u32) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_idle(now, snd_una, slow_path != 0)) }
}

unsafe extern "C" fn on_restart<C: Controller>(cc: *mut c_void, window: *mut Window, snd_nxt: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_restart(&mut *window, snd_nxt)) }
}

unsafe extern "C" fn on_tx_start<C: Controller>(cc: *mut c_void, window: *mut Window, now: u64, idle: u64, snd_nxt: u64) -> c_int {
    unsafe { called::<C>(cc, |cc| cc.on_tx_start(&mut *window, now, idle, snd_nxt)) }
}
