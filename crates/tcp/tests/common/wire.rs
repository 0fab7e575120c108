//! Two endpoints and the path between them. The test decides the fate of each segment when it is sent: lost, delayed or duplicated.

use ackclock_core::packet::Ecn;
use ackclock_core::rng::threshold;
use ackclock_core::{Segment, Span, Stream, Time};
use ackclock_tcp::{Config, Connection};
use std::collections::BTreeMap;

/// Endpoint that connects, and that sends the data in most tests.
pub const CLIENT: usize = 0;
/// Endpoint that listens.
pub const SERVER: usize = 1;

/// Segment that is being sent.
pub struct Leaving {
    pub from: usize,
    /// Number of packets this end has sent before.
    pub index: u64,
    pub seg: Segment,
}

impl Leaving {
    /// Whether the segment is the `rexmit`-th retransmission (0: the original) of the client's data segment
    /// `seg_no`, counted from 1.
    pub fn is(&self, seg_no: u32, rexmit: u8) -> bool {
        self.from == CLIENT && self.seg.seg_no == seg_no && self.seg.rexmit == rexmit
    }
}

/// Extra delay of each copy of a segment; empty if the segment is lost.
pub type Copies = Vec<Span>;

/// Return no copy if `lost`, otherwise one without extra delay.
pub fn lost_if(lost: bool) -> Copies {
    if lost {
        vec![]
    } else {
        vec![Span::ZERO]
    }
}

/// Return one copy, delayed by `by` if `late`.
pub fn late_if(late: bool, by: Span) -> Copies {
    vec![if late { by } else { Span::ZERO }]
}

/// Two endpoints with the same constant delay in each direction. Data segments are sent at least `gap` apart.
pub struct Wire {
    pub ends: [Connection; 2],
    /// Segments in flight, by arrival time and order of transmission: destination and segment.
    pub flying: BTreeMap<(Time, u64), (usize, Segment)>,
    pub now: Time,
    pub delay: Span,
    pub gap: Span,
    /// End of the current transmission on each end's link.
    pub busy: [Time; 2],
    fate: Box<dyn FnMut(&Leaving) -> Copies>,
    /// Mark with which a segment arrives, as a function of its destination and its original mark.
    pub marks: Box<dyn FnMut(usize, Ecn) -> Ecn>,
    sent: [u64; 2],
    inserted: u64,
    /// All segments sent: time, sending end, segment.
    pub log: Vec<(Time, usize, Segment)>,
    /// Whether trains are used where possible, as in a simulation, and the number of segments sent in trains.
    pub trains: bool,
    pub in_trains: u64,
}

impl Wire {
    /// Return a path of 20 ms in each direction, without a gap.
    pub fn new(client: &Config, server: &Config, fate: impl FnMut(&Leaving) -> Copies + 'static) -> Wire {
        Wire {
            ends: [Connection::initiator(0, client), Connection::responder(0, server)],
            flying: BTreeMap::new(),
            now: Time::ZERO,
            delay: Span::from_ms(20),
            gap: Span::ZERO,
            busy: [Time::ZERO; 2],
            fate: Box::new(fate),
            marks: Box::new(|_, left| left),
            sent: [0; 2],
            inserted: 0,
            log: Vec::new(),
            trains: false,
            in_trains: 0,
        }
    }

    /// Return two identical endpoints and a path that loses, reorders and duplicates segments with these probabilities.
    pub fn random(config: &Config, seed: u64, loss: f64, reorder: f64, duplicate: f64) -> Wire {
        let mut rng = Stream::new(seed, "wire");
        let (loss, reorder, duplicate) = (threshold(loss), threshold(reorder), threshold(duplicate));
        let mut inserted = 0;
        Wire::new(config, config, move |_| {
            if rng.chance(loss) {
                return vec![];
            }
            let copies = 1 + rng.chance(duplicate) as u32;
            (0..copies)
                .map(|_| {
                    let late = if rng.chance(reorder) { Span::from_ms(rng.below(15)) } else { Span::ZERO };
                    inserted += 1;
                    late + Span::from_us((inserted - 1) % 100) // spread over several instants
                })
                .collect()
        })
    }

    pub fn drain(&mut self, end: usize) {
        let (mut train, mut may_begin, mut common) = (0, self.trains, Segment::default());
        let mut alone = false;
        loop {
            if std::mem::take(&mut alone) && self.ends[end].ends_with_train(self.now) {
                break;
            }
            if may_begin {
                train = self.ends[end].train_length(self.now);
                alone = train == 1;
                if train > 0 {
                    self.ends[end].begin_train(self.now, train, &mut common);
                    self.in_trains += train as u64;
                }
            }
            may_begin = self.trains && train == 0;
            let seg = if train > 0 {
                let mut seg = common;
                self.ends[end].next_of_train(&mut seg);
                train -= 1;
                seg
            } else if let Some(seg) = self.ends[end].poll_transmit(self.now) {
                seg
            } else {
                break;
            };
            let copies = (self.fate)(&Leaving { from: end, index: self.sent[end], seg });
            self.sent[end] += 1;
            self.log.push((self.now, end, seg));
            for late in copies {
                let gap = if seg.len > 0 { self.gap } else { Span::ZERO };
                self.busy[end] = self.busy[end].max(self.now) + gap;
                self.inserted += 1;
                let at = self.busy[end] + self.delay + late;
                self.flying.insert((at, self.inserted), (1 - end, seg));
            }
        }
    }

    /// Time of the next event; `Time::NEVER` if there is none.
    fn next(&self) -> Time {
        let arrival = self.flying.keys().next().map_or(Time::NEVER, |k| k.0);
        self.ends.iter().map(Connection::next_deadline).fold(arrival, Time::min)
    }

    /// Process one event. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let next = self.next();
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        if self.flying.keys().next().is_some_and(|k| k.0 <= next) {
            let (_, (to, seg)) = self.flying.pop_first().expect("just seen");
            let mark = (self.marks)(to, self.ends[1 - to].mark_of(&seg));
            self.ends[to].on_packet(self.now, &seg, mark);
            self.drain(to);
        } else {
            let end = if self.ends[CLIENT].next_deadline() <= next { CLIENT } else { SERVER };
            self.ends[end].on_timer(self.now);
            self.drain(end);
        }
        true
    }

    /// Process all events up to `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.next() <= until && self.step() {}
        self.now = self.now.max(until);
    }

    /// Complete the handshake, and advance to 100 ms.
    pub fn connect(&mut self) {
        self.ends[CLIENT].connect(self.now);
        self.drain(CLIENT);
        self.run_until(Time(100_000_000));
    }

    /// Write this number of full segments at the client.
    pub fn write(&mut self, segments: u64) {
        self.ends[CLIENT].write(self.now, segments * 1448);
        self.drain(CLIENT);
    }

    /// Run a connection: handshake, `bytes` from the client, and close at both ends.
    pub fn run(&mut self, bytes: u64) {
        self.ends[CLIENT].connect(self.now);
        self.ends[CLIENT].write(self.now, bytes);
        self.ends[CLIENT].close(self.now);
        self.drain(CLIENT);
        let mut closing = false;
        for _ in 0..2_000_000 {
            if !self.step() || self.ends.iter().all(Connection::is_done) {
                break;
            }
            if self.ends[SERVER].peer_closed() && !closing {
                closing = true;
                self.ends[SERVER].close(self.now);
                self.drain(SERVER);
            }
        }
    }
}
