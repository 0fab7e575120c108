// The contract of a controller in Rust. Written by tools/contract.py from crates/cc/src/controller/contract.rs: change that and
// tools/templates/ackclock_contract.rs, not this file.

/// Version of the interface.
pub const ABI: u32 = 3;

/// Requirements of a controller on the connection around it, or'ed together in [`Controller::NEEDS`].
pub mod needs {
    /// The controller itself sets the window and the pacing rate on every ACK (Linux `cong_control`): `on_control` replaces `on_ack` and the recovery rule.
    pub const CONTROL: u32 = 1;
    /// Delivery rates are kept, at the cost of a stamp per segment: `rate` and `since_sent` are filled in.
    pub const RATE: u32 = 2;
    /// The sender paces at the window's `pacing_rate`, regardless of the stack's settings.
    pub const PACING: u32 = 4;
    /// The receiver echoes each mark exactly and every segment is sent ECN-capable (RFC 8257 §3.1, §3.2).
    pub const EXACT_ECN: u32 = 8;
    /// The controller requests accurate ECN (RFC 9768) and accepts no other form of ECN; its packets carry ECT(1) (RFC 9331).
    pub const L4S: u32 = 16;
    /// The controller may itself request a reduction, through `reduces`.
    pub const REDUCES: u32 = 32;
    /// The controller has its own start-up algorithm instead of the slow start of RFC 5681, so no other slow start can replace it.
    pub const OWN_START: u32 = 64;
    /// HyStart is the controller's slow start, unless the stack specifies another.
    pub const HYSTART: u32 = 256;
    /// The window grows even while it does not limit the sender.
    pub const UNLIMITED: u32 = 512;
    /// The controller is notified of segments that arrive while nothing is outstanding, through `on_idle`.
    pub const IDLE: u32 = 1024;
    /// The sender checks for an application limit at every ACK and timer, and not only when the application writes (draft-ietf-ccwg-bbr §4.1.2.4).
    pub const WATCHES_APPLICATION: u32 = 2048;
    /// The controller is notified of each lost segment, through `on_lost` and `on_repaired`; this requires delivery rates, which are then kept.
    pub const LOSSES: u32 = 4096;
}

/// Delivery rate sample over the flight of the newest segment that an ACK covers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    is_given: u32,
    /// Segments delivered over `interval`: those of a whole flight, not only of this ACK.
    pub delivered: u32,
    /// Length of the sample: the larger of `send_elapsed` and `ack_elapsed`. Zero if the sample is invalid because it is shorter than the minimum RTT, which only an incorrect ACK can cause.
    pub interval: u64,
    /// Time over which the delivered segments were sent.
    pub send_elapsed: u64,
    /// Time over which the delivered segments were acknowledged.
    pub ack_elapsed: u64,
    /// Delivered count of the connection when the newest segment that the ACK covers was sent (P.delivered).
    pub prior_delivered: u64,
    /// Time of the connection's last delivery when that segment was sent (P.delivered_time).
    pub prior_time: u64,
    /// Delivered count of the connection now (C.delivered).
    pub total_delivered: u64,
    /// Segments marked lost on the connection; a segment marked twice counts twice (C.lost).
    pub total_lost: u64,
    /// Segments of `delivered` that carried a mark.
    pub delivered_ce: u32,
    /// Segments marked lost between that segment's transmission and now (RS.lost).
    pub lost: u32,
    /// Segments in flight just after that segment was sent, including the segment itself (RS.tx_in_flight).
    pub tx_in_flight: u32,
    is_app_limited: u32,
    is_retrans: u32,
    is_ack_delayed: u32,
    is_probe_ack: u32,
}

impl Rate {
    /// The application, not the window, limited the sender when that segment was sent.
    pub fn is_app_limited(&self) -> bool {
        self.is_app_limited != 0
    }
    /// Whether that segment was a retransmission.
    pub fn is_retrans(&self) -> bool {
        self.is_retrans != 0
    }
    /// The ACK may have been delayed by a delayed-ACK timer: it covers a single segment that is shorter than SMSS.
    pub fn is_ack_delayed(&self) -> bool {
        self.is_ack_delayed != 0
    }
    /// The ACK covers the end of a tail loss probe that retransmitted old data; whether the original or the probe arrived is not known yet.
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
    /// Delivered segments to which a congestion echo applies: with accurate ECN the newly reported marks, otherwise all segments if the ACK carries ECE.
    pub newly_acked_ce: u32,
    /// Segments delivered since the newest segment that this ACK covers was sent; zero if delivery rates are not kept.
    pub since_sent: u32,
    /// Segments newly covered by the cumulative ACK, including those SACKed before. At the end of a recovery far more than `newly_acked`.
    pub covered: u32,
    /// SACKed segments above the cumulative ACK.
    pub sacked: u32,
    /// Bytes by which the cumulative ACK advanced. The value jumps at the end of a recovery.
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
    /// Time until the pacer allows the next segment to be sent; zero if it may be sent at once.
    pub departs_in: u64,
    /// Payload of a full segment, bytes.
    pub smss: u32,
    ece: u32,
    prior_state: u32,
    is_dup: u32,
    slow_path: u32,
    /// Segments that count towards growth: those delivered, or 1 in a stack that counts ACKs.
    pub acked: u32,
    /// Segments delivered: `newly_acked` and, without SACK, the segment that a duplicate ACK implies.
    pub delivered: u32,
    /// Delivered segments that carried a mark: their exact number with exact or accurate ECN, otherwise all of them if the ACK carries ECE.
    pub delivered_ce: u32,
    /// Segments newly marked lost, including lost retransmissions; 0 before loss detection.
    pub newly_lost: u32,
    /// Segments in flight after the ACK, excluding those newly marked lost.
    pub in_flight: u32,
    ca_state: u32,
    rate: Rate,
}

impl Ack {
    /// RTT of the newest segment that this ACK covers, cumulatively or by SACK, or of the echoed timestamp if a covered segment was retransmitted; absent if the ACK gives no sample.
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
    /// cwnd itself held data back in this round trip or the previous one. Stricter than `cwnd_limited`, which in slow start requires only half of cwnd to be used.
    pub fn window_held(&self) -> bool {
        self.window_held != 0
    }
    /// The sender paces its packets.
    pub fn paced(&self) -> bool {
        self.paced != 0
    }
    /// The ACK echoes a congestion mark (ECE).
    pub fn ece(&self) -> bool {
        self.ece != 0
    }
    /// Congestion state before this ACK.
    pub fn prior_state(&self) -> State {
        State::of(self.prior_state)
    }
    /// Duplicate ACK: it acknowledges nothing new, carries no data and does not change the window (RFC 5681 §2).
    pub fn is_dup(&self) -> bool {
        self.is_dup != 0
    }
    /// The ACK has SACK blocks, a changed window or ECE: its header differs from the one that Linux's header prediction expects.
    pub fn slow_path(&self) -> bool {
        self.slow_path != 0
    }
    /// Congestion state after this ACK; before loss detection, the state before this ACK.
    pub fn ca_state(&self) -> State {
        State::of(self.ca_state)
    }
    /// Delivery rate sample; absent if delivery rates are not kept or this ACK gives no sample.
    pub fn rate(&self) -> Option<&Rate> {
        (self.rate.is_given != 0).then_some(&self.rate)
    }
}

/// A congestion controller. One instance is created for each connection.
pub trait Controller: Sized {
    /// Requirements on the connection, see [`needs`].
    const NEEDS: u32 = 0;
    /// Names of the options; any other option is refused.
    const OPTIONS: &'static [&'static str] = &[];
    /// Names of the values that `variables` writes, for `record.controller`; at most eight.
    const VARIABLES: &'static [&'static str] = &[];
    /// Names of files that the controller reads.
    const READS: &'static [&'static str] = &[];
    /// Size of the send buffer as a multiple of cwnd; 0: two.
    const BUFFER_WINDOWS: u32 = 0;
    /// Pacing rate, bytes/s, from which on a packet has at least two segments; 0: the stack's minimum.
    const SLOW_PACKETS: u32 = 0;

    /// Create the controller of a connection.
    fn new(options: &Options, random: Random) -> Self;

    /// Return a copy in the same state, for a run that forks; `None` if the controller cannot be copied. By default its bytes are copied, unless
    /// it owns other memory, such as a `Vec`.
    fn copy(&self) -> Option<Self> {
        // SAFETY: a type with nothing to drop is its bytes.
        (!std::mem::needs_drop::<Self>()).then(|| unsafe { std::ptr::read(self) })
    }

    /// Write the values of `VARIABLES`. A value that is not written remains NaN.
    fn variables(&self, _values: &mut [f64]) {}

    /// The handshake is complete. `accurate`: accurate ECN was negotiated.
    fn on_negotiated(&mut self, accurate: bool) {}

    /// The SYN of the connecting end is acknowledged. `rtt`: RTT sample of the SYN.
    fn on_syn_acked(&mut self, rtt: u64) {}

    /// The connection is established. `srtt`: RTT of the handshake; zero if the handshake gave no sample.
    fn on_start(&mut self, window: &mut Window, now: u64, srtt: u64, smss: u32) {}

    /// RTT sample and delivered segments of an ACK. Called for every ACK, in every state, before loss detection.
    fn on_sample(&mut self, window: &mut Window, ack: &Ack) {}

    /// The ACK echoes a congestion mark. Return true to react as to a loss, once per window, in state CWR (RFC 3168 §6.1.2).
    fn on_ecn(&mut self, window: &mut Window, ack: &Ack) -> bool {
        true
    }

    /// A segment or its retransmission is marked lost. Called once per mark, when the mark is set, if the controller needs `losses`. `delivered`: segments delivered on the connection so far; `lost`: segments marked lost since the segment's last transmission, including the segment itself; `tx_in_flight`: segments in flight just after that transmission; `is_app_limited`: whether the application limited the sender at that transmission.
    fn on_lost(&mut self, window: &mut Window, now: u64, delivered: u64, lost: u32, tx_in_flight: u32, is_app_limited: bool) {}

    /// A tail loss probe has repaired a loss that was not detected otherwise, and a reduction follows. `delivered`: segments delivered on the connection so far; `is_app_limited`: whether the application limited the sender at the segment's first transmission. Called if the controller needs `losses`.
    fn on_repaired(&mut self, window: &mut Window, now: u64, delivered: u64, is_app_limited: bool) {}

    /// Return the target window after a congestion event, in segments, at least 2. Called once per reduction, before `window` changes. `in_flight`: the FlightSize that RFC 5681 §3.1 halves, in segments.
    fn ssthresh(&mut self, window: &Window, in_flight: u32) -> u32;

    /// Called instead of the hook above if the reduction is caused by a mark and not by a loss.
    fn ssthresh_for_mark(&mut self, window: &Window, in_flight: u32) -> u32 {
        self.ssthresh(window, in_flight)
    }

    /// Return the minimum window for Linux's rate halving, in segments. Default: `ssthresh`.
    fn min_cwnd(&mut self, ssthresh: u32) -> u32 {
        ssthresh
    }

    /// The retransmission timer expired. `now`: current time, later than that of the last ACK. `ssthresh` is called next.
    fn on_timer(&mut self, now: u64) {}

    /// A retransmission timeout occurred: ssthresh has been set, and cwnd is about to be set to the loss window.
    fn on_rto(&mut self, window: &mut Window, now: u64) {}

    /// Totals of the connection: segments delivered and marked lost so far, and the time of the last delivery. Called if delivery rates are kept: before the state becomes Loss, and when a new segment is sent with nothing else outstanding, which resets that time.
    fn on_totals(&mut self, delivered: u64, lost: u64, delivered_time: u64) {}

    /// The congestion state is set to `state`, which may equal the current state.
    fn on_state(&mut self, window: &mut Window, state: State, now: u64) {}

    /// A reduction ended, and the recovery rule has set the window.
    fn on_recovered(&mut self, window: &mut Window, now: u64) {}

    /// The reduction proved unnecessary. Return the window to restore, in segments.
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        window.cwnd.max(window.prior_cwnd)
    }

    /// Grow the window for an ACK that arrived outside recovery. Called only for ACKs that deliver data, in Open, Disorder and Loss. Not called if the controller needs `control`.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        window.grow_as_reno(ack);
    }

    /// Return true to reduce the window as for a loss, in state CWR, unless a reduction is in progress. Called after `on_ack` if the controller needs `reduces`.
    fn reduces(&mut self) -> bool {
        false
    }

    /// Set the window and the pacing rate. Called on every ACK, in every state, after loss detection, if the controller needs `control`.
    fn on_control(&mut self, window: &mut Window, ack: &Ack) {}

    /// Return true if the controller keeps less data in flight than it could, in order to probe the path. Rate samples of the data in flight then count as application-limited. Called after `on_control`.
    fn holds_back(&mut self) -> bool {
        false
    }

    /// A segment that acknowledges nothing new arrived while nothing was outstanding. `slow_path`: the segment carries data or changes the window. Called if the controller needs `idle`.
    fn on_idle(&mut self, now: u64, snd_una: u64, slow_path: bool) {}

    /// The application was idle for longer than the RTO, and the window is about to be reduced for that reason.
    fn on_restart(&mut self, window: &mut Window, snd_nxt: u64) {}

    /// A segment, new or retransmitted, is about to be sent with nothing in flight: all earlier data was acknowledged or is considered lost. `idle`: time since the last transmission; `snd_nxt`: offset of the next new data. If delivery rates are kept, called only after an application-limited period.
    fn on_tx_start(&mut self, window: &mut Window, now: u64, idle: u64, snd_nxt: u64) {}
}

/// Layout of `struct ackclock_controller`.
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
