//! A simulated link for the tests of transport stacks: rate, delay, queue, loss and whatever else a real link does, in virtual time.
//! No clock, no thread, no socket; the same calls give the same answers, bit for bit, on every machine.
//!
//! A [`Link`] carries packets in one direction. It knows of a packet what a router knows: a number of yours that tells it from others,
//! its size, its ECN field and the flow it belongs to. The bytes stay with you. A path there and back is two links.
//!
//! It is not on a registry. Name it by its place in a copy of the repository, and pin that:
//!
//! ```toml
//! [dev-dependencies]
//! ackclock-link = { path = "../ackclock/crates/link" }
//! ```
//!
//! # Four calls
//!
//! | call | what it does |
//! |---|---|
//! | [`Link::new`] | makes a link from text, or from the name of a preset |
//! | [`Link::enqueue`] | a packet reaches the near end now: the link takes it, or says why it is lost |
//! | [`Link::next_event`] | when the link has something to do next |
//! | [`Link::dequeue`] | a packet that has reached the far end by now, and when; marked if a queue has marked it |
//!
//! Some queues (CoDel, FQ-CoDel, CAKE) drop packets that they had taken; [`Link::take_dropped`] names them, so that you can free the
//! bytes. Nothing is allocated for a packet, once as many have been on the link at a time as ever will be. Dropped packets are kept until
//! you take them: behind such a queue call `take_dropped` after each `enqueue` and `dequeue`, even if you do not care, or memory grows.
//!
//! # An example
//!
//! A sender that keeps 40 packets in flight over 10 Mbit/s and 20 ms each way, and measures what it gets:
//!
//! ```
//! use ackclock_link::{Link, Packet};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut there = Link::new(r#"
//!     rate = "10 Mbit/s"
//!     delay = "20 ms"
//!     queue = { kind = "drop-tail", limit = "50 packets" }
//! "#, 1)?;
//! let mut back = Link::new(r#"delay = "20 ms""#, 2)?;
//!
//! let (mut now, mut sent, mut acked) = (0, 0, 0);
//! while now < 5_000_000_000 {
//!     while sent - acked < 40 {
//!         // a full packet with data; the number says which it is
//!         // `?` only since 40 always find room: in your test an `Err` is a lost packet, not a failure
//!         there.enqueue(now, Packet { id: sent, bytes: 1500, ..Packet::default() })?;
//!         sent += 1;
//!     }
//!     now = there.next_event().into_iter().chain(back.next_event()).min().expect("packets are on their way");
//!     while let Some((_, packet)) = there.dequeue(now) {
//!         // the receiver acknowledges each packet at once
//!         back.enqueue(now, Packet { id: packet.id, bytes: 40, data: false, ..Packet::default() })?;
//!     }
//!     while back.dequeue(now).is_some() {
//!         acked += 1;
//!     }
//! }
//! let mbit_per_s = acked as f64 * 1500.0 * 8.0 / 5e6;
//! assert!((9.8..10.0).contains(&mbit_per_s), "{mbit_per_s}");
//! # Ok(())
//! # }
//! ```
//!
//! In `main` or a test that returns `Result<(), Box<dyn std::error::Error>>`, it runs as it stands.
//!
//! # Time
//!
//! All times are whole nanoseconds since the start of your test (`u64`). Time never goes back: `now` of a call is at least that of the
//! calls before it, or the call panics. Poll in this order: take the earliest of your own deadlines and [`Link::next_event`] of all
//! links, set `now` to it unless it is later already (`now = now.max(event)`), [`dequeue`](Link::dequeue) until nothing comes, take what
//! was dropped, then let your stack act. A link may ask for an event at which no packet comes out yet: a transmission begins, or a queue
//! drops something. `start + Duration::from_nanos(now)` is an `Instant` for a stack that wants one.
//!
//! To empty a link at the end of a test, `dequeue(u64::MAX)` until nothing comes: it says when each packet arrived. It takes nothing more
//! after that, since time does not go back.
//!
//! You may also ask later, or send first: what the link does and when a packet arrives does not depend on when you ask, and
//! [`dequeue`](Link::dequeue) says when it arrived. At one instant, what is due on the link comes before a packet that is enqueued.
//! If your stack's clock is coarser than a nanosecond, round `now` down for the stack and its deadlines up, or it spins at one instant.
//!
//! A packet that finds the link free leaves it after `bytes * 8 / rate + delay`: 1,500 bytes over 10 Mbit/s and 20 ms after 21.2 ms.
//!
//! # What is yours to do
//!
//! | matter | with this crate |
//! |---|---|
//! | largest packet (MTU) | a link takes any size; drop longer ones before [`Link::enqueue`] |
//! | bytes of a packet | keep them by [`Packet::id`]; free them on arrival, when `enqueue` says lost, and after [`Link::take_dropped`] |
//! | headers | a link charges [`Packet::bytes`]; add those below your stack (IPv4 and UDP: 28) |
//! | a loss | you learn of it at once; do not tell your stack |
//! | losing one packet on purpose | do not enqueue it, or `loss = { kind = "listed", packets = [3, 5] }`: the third and the fifth on the link |
//! | another rate or delay in the middle | on a schedule: `capacity`; at your word: a new link for what comes, and the old one until it is empty |
//! | threads | a [`Link`] may move between them; calls need it alone |
//!
//! # The text of a link
//!
//! TOML, one key a line, with the keys that a link has in scenarios of ackclock. All keys may be left out, so `""` is a link that
//! delivers at once. Quantities carry their unit: `ns`, `us`, `ms`, `s`, `min`; `kbit/s`, `Mbit/s`, `Gbit/s`; `bytes`, `kB`, `KiB`, `MB`;
//! `packets`; `%`.
//!
//! | key | example | meaning |
//! |---|---|---|
//! | `rate` | `"20 Mbit/s"` | transmission rate; infinite if absent |
//! | `delay` | `"25 ms"` | propagation delay, one way |
//! | `queue` | `{ kind = "drop-tail", limit = "1 BDP" }` | first in, first out without a limit if absent; others are `"codel"`, `"fq-codel"`, `"pie"`, `"red"`, `"cake"`, `"dualpi2"`, `"threshold"` and more |
//! | `loss` | `{ kind = "bernoulli", p = "1 %" }` | ahead of the queue; also `"listed"`, `"gilbert-elliott"`, `"policer"` |
//! | `jitter` | `"5 ms"` | extra delay, uniform from zero; packets keep their order |
//! | `reorder` | `{ probability = "0.1 %", extra_delay = "5 ms" }` | packets that are held back, so that others overtake |
//! | `capacity` | `{ kind = "schedule", steps = [{ at = "1 s", rate = "5 Mbit/s" }] }` | rate, delay and loss over time |
//! | `wifi`, `aggregate` | `{ mean = "7 ms" }`, `"20 ms"` | jitter of Wi-Fi; packets that are delivered together |
//! | `outage` | `{ at = "2 s", lasts = "500 ms" }` | times without transmission; `every = "10 s"` repeats them |
//! | `ecn_fault` | `{ what = "bleach" }` | a middlebox that changes the ECN field |
//!
//! A BDP is the rate times twice the delay, counted in packets of 1,500 bytes. The limit of a queue counts packets that wait, not the one
//! in transmission: of a burst at a limit of 50, 51 arrive. A step of a schedule has `at` and any of `rate`, `delay` and `loss`; the
//! delay of a packet is that at the end of its transmission. `docs/reference/scenario.md` of ackclock has every key of every queue and
//! loss model, with its default. What needs headers of TCP is refused here: `thin_acks`, `merging`, `applies_to = "syn"`. So are files
//! (`mahimahi`).
//!
//! A mistake is a [`Mistake`]: which key, what was found, what is allowed. A wrong key names all that are allowed in its place.
//!
//! # Presets
//!
//! Instead of a text, [`Link::new`] takes a name. [`PRESETS`] has the text of each; they are round numbers for tests, not measurements.
//!
//! | name | rate | delay, one way | what else |
//! |---|---|---|---|
//! | `dsl` | 16 Mbit/s | 15 ms | drop-tail of 100 packets |
//! | `cable` | 100 Mbit/s | 10 ms | PIE |
//! | `fibre` | 1 Gbit/s | 5 ms | drop-tail of 1 BDP |
//! | `bufferbloat` | 10 Mbit/s | 20 ms | drop-tail of 1,000 packets |
//! | `shallow` | 100 Mbit/s | 20 ms | drop-tail of 10 packets |
//! | `fq-codel` | 50 Mbit/s | 10 ms | FQ-CoDel that marks |
//! | `l4s` | 40 Mbit/s | 5 ms | DualPI2 |
//! | `datacentre` | 10 Gbit/s | 20 us | marks above 65 packets, holds 1,000 |
//! | `wifi` | 50 Mbit/s | 3 ms | jitter of Wi-Fi, 7 ms in the mean; drop-tail of 500 packets |
//! | `mobile` | 20 Mbit/s | 25 ms | jitter up to 10 ms; drop-tail of 300 packets |
//! | `satellite` | 50 Mbit/s | 280 ms | 0.1 % loss; drop-tail of 1 BDP |
//! | `policed` | 100 Mbit/s | 10 ms | policer of 10 Mbit/s with 100 kB; drop-tail of 1 BDP |
//! | `lossy` | 10 Mbit/s | 20 ms | 2 % loss; drop-tail of 1 BDP, which a burst of 35 packets fills |
//! | `outages` | 20 Mbit/s | 20 ms | 500 ms of silence every 10 s, first at 5 s; drop-tail of 1 BDP |
//!
//! # Seeds
//!
//! Whatever is drawn (loss, jitter, an AQM's dice) follows from the seed and from nothing else. Give the links of a test different seeds,
//! or both directions lose the packets of the same numbers.
//!
//! # ECN
//!
//! Queues that mark do so to packets whose [`Packet::ecn`] is [`Ecn::Ect0`] or [`Ecn::Ect1`]; what comes out has [`Ecn::Ce`] then. Marking
//! queues need `ecn = true` (CoDel, FQ-CoDel, PIE), or mark by nature (`threshold`, `dualpi2`).
//!
//! # From C
//!
//! ```text
//! cargo rustc --release -p ackclock-link --features c --crate-type staticlib
//! cc -I crates/link/c test.c target/release/libackclock_link.a -lpthread -ldl -lm
//! ```
//!
//! `c/ackclock_link.h` has the same calls with the same meaning, and `c/example.c` is the example above. `--crate-type cdylib` makes a
//! shared library instead.
//!
//! # Used by a stack's own tests
//!
//! `examples/link` puts this link into the tests of quinn-proto, in place of their own, and runs them.

mod text;

#[cfg(feature = "c")]
mod c;

use std::collections::VecDeque;

use ackclock_core::datagram::{Datagram, Opaque};
use ackclock_core::packet::Ecn as Field;
use ackclock_core::{Header, Time};
use ackclock_net::{Refused, SoleLink};

pub use text::{Mistake, PRESETS};

/// The ECN field of a packet (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: a queue that would mark drops.
    #[default]
    NotEct = 0,
    /// ECT(1), as L4S has it.
    Ect1 = 1,
    /// ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// From the low two bits of a traffic class or TOS byte. The way back is `ecn as u8`.
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            3 => Ecn::Ce,
            _ => Ecn::NotEct,
        }
    }
}

/// Facts on a packet that a link uses. [`Packet::default`] is number 0, 1,500 bytes of data, not ECN-capable, of flow 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// A number of yours, by which you find its bytes again. The link does not look at it.
    pub id: u64,
    /// Size on the link, all headers included, bytes; at least 1. There is no largest size.
    pub bytes: u32,
    /// ECN field of the packet.
    pub ecn: Ecn,
    /// The flow that it belongs to, for queues that are fair to flows, and policers with a bucket for each. Number them 0, 1, 2 and so
    /// on: a policer with `per = "flow"` keeps a table as long as the largest number, so a hash or a connection ID does not belong here.
    pub flow: u32,
    /// Whether it has data, rather than only an ACK. Only a loss model with `applies_to = "data"` looks at it, and spares ACKs.
    pub data: bool,
}

impl Default for Packet {
    fn default() -> Packet {
        Packet { id: 0, bytes: 1500, ecn: Ecn::NotEct, flow: 0, data: true }
    }
}

/// Why a packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Lost {
    /// By the loss model: the medium, or a policer.
    OnTheWay = 1,
    /// The queue is full.
    QueueFull = 2,
    /// By the queue's discipline, ahead of its limit.
    Aqm = 3,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Lost::OnTheWay => "lost on the way",
            Lost::QueueFull => "the queue is full",
            Lost::Aqm => "dropped by the queue's discipline",
        })
    }
}

impl std::error::Error for Lost {}

impl From<Refused> for Lost {
    fn from(why: Refused) -> Lost {
        match why {
            Refused::Loss => Lost::OnTheWay,
            Refused::QueueFull => Lost::QueueFull,
            Refused::Aqm => Lost::Aqm,
        }
    }
}

/// One direction of a link, and the packets on it. It may move from thread to thread.
pub struct Link {
    sole: SoleLink,
    now: u64,
    /// Packets that had reached the far end when a later packet came to the near one, and had not been taken yet.
    arrived: VecDeque<(u64, Packet)>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("now", &self.now)
            .field("next_event", &self.next_event())
            .finish_non_exhaustive()
    }
}

impl Link {
    /// A link from its text or the name of a preset; see the page of this crate. What it draws follows from `seed`.
    ///
    /// # Errors
    ///
    /// A key or a value that a link cannot have.
    pub fn new(text_or_preset: &str, seed: u64) -> Result<Link, Mistake> {
        let sole = SoleLink::new(&text::config(text_or_preset)?, seed);
        Ok(Link { sole, now: 0, arrived: VecDeque::new() })
    }

    /// A packet reaches the near end at `now`, ns. Afterwards [`next_event`](Link::next_event) may be earlier than before.
    ///
    /// # Errors
    ///
    /// The packet is lost, and does not come back. You are told at once; a sender in a real network is not. `Ok` is no promise: FQ-CoDel
    /// at its limit takes the packet and drops another, which [`take_dropped`](Link::take_dropped) names.
    ///
    /// # Panics
    ///
    /// If `now` is before that of an earlier call, or the packet has no bytes.
    pub fn enqueue(&mut self, now: u64, packet: Packet) -> Result<(), Lost> {
        self.go_on(now);
        assert!(packet.bytes > 0, "a packet has bytes");
        while self.sole.next_event() <= Time(now) && self.sole.next_event() != Time::NEVER {
            let at = self.sole.next_event();
            let reached = self.sole.poll(at).map(|packet| (at.0, own(&packet)));
            self.arrived.extend(reached);
        }
        let opaque = Opaque {
            number: packet.id,
            len: packet.bytes,
            piece: u32::from(packet.data),
            ..Opaque::default()
        };
        let held = ackclock_core::Packet {
            header: Header::Datagram(Datagram::Opaque(opaque)),
            flow: packet.flow,
            conn: packet.flow,
            bytes: packet.bytes,
            forward: true,
            ecn: match packet.ecn {
                Ecn::NotEct => Field::NotEct,
                Ecn::Ect1 => Field::Ect1,
                Ecn::Ect0 => Field::Ect0,
                Ecn::Ce => Field::Ce,
            },
            more: 0,
        };
        self.sole.offer(Time(now), held).map_err(Lost::from)
    }

    /// Time of the link's next event, ns; `None` for an empty link. Call [`dequeue`](Link::dequeue) then. The time may be in the past
    /// if you have not asked for what has arrived.
    pub fn next_event(&self) -> Option<u64> {
        let next = self.sole.next_event();
        let first = self.arrived.front().map(|(at, _)| *at);
        first.or((next != Time::NEVER).then_some(next.0))
    }

    /// The next packet that has reached the far end at or before `now`, ns, and when it did; call it until there is none.
    ///
    /// # Panics
    ///
    /// If `now` is before that of an earlier call.
    pub fn dequeue(&mut self, now: u64) -> Option<(u64, Packet)> {
        self.go_on(now);
        if let Some(first) = self.arrived.pop_front() {
            return Some(first);
        }
        loop {
            let at = self.sole.next_event();
            if at > Time(now) || at == Time::NEVER {
                return None;
            }
            // each event at its own time, however late the call: the output does not depend on the times of calls
            if let Some(packet) = self.sole.poll(at) {
                return Some((at.0, own(&packet)));
            }
        }
    }

    /// A packet that the queue had accepted and dropped since the last call, and the reason; call it until there is none. The time of the
    /// drop is not reported.
    pub fn take_dropped(&mut self) -> Option<(Packet, Lost)> {
        self.sole.take_head_drops().map(|(packet, why)| (own(&packet), why.into()))
    }

    /// Packets that wait in the queue at the time of the last call.
    pub fn waiting(&mut self) -> u32 {
        self.sole.waiting(Time(self.now))
    }

    fn go_on(&mut self, now: u64) {
        assert!(now >= self.now, "time goes back, from {} ns to {now} ns", self.now);
        self.now = now;
    }
}

/// A packet as its owner knows it.
fn own(packet: &ackclock_core::Packet) -> Packet {
    let Header::Datagram(Datagram::Opaque(opaque)) = packet.header else {
        unreachable!("invariant: only such packets are put on the link")
    };
    Packet {
        id: opaque.number,
        bytes: packet.bytes,
        ecn: match packet.ecn {
            Field::NotEct => Ecn::NotEct,
            Field::Ect1 => Ecn::Ect1,
            Field::Ect0 => Ecn::Ect0,
            Field::Ce => Ecn::Ce,
        },
        flow: packet.flow,
        data: opaque.piece > 0,
    }
}
