//! A simulated link for tests of transport stacks: rate, delay, queue, loss and other properties of real links, in
//! virtual time. It uses no clock, no threads and no sockets. The same calls give the same results, bit for bit, on
//! every machine.
//!
//! A [`Link`] carries packets in one direction. For each packet it knows an identifier that you choose, its size, its
//! ECN field and its flow. You keep the bytes. A path in both directions consists of two links.
//!
//! The crate is not published on a registry. Depend on it by its path in a copy of the repository, pinned to a commit:
//!
//! ```toml
//! [dev-dependencies]
//! ackclock-link = { path = "../ackclock/crates/link" }
//! ```
//!
//! # Four calls
//!
//! | call | effect |
//! |---|---|
//! | [`Link::new`] | creates a link from text or from the name of a preset |
//! | [`Link::enqueue`] | hands a packet to the near end now; the link accepts it or returns why it is lost |
//! | [`Link::next_event`] | returns the time of the link's next event |
//! | [`Link::dequeue`] | returns a packet that has reached the far end by now and its arrival time; the packet carries a mark if a queue has set one |
//!
//! Some queues (CoDel, FQ-CoDel, CAKE) drop packets that they have already accepted; [`Link::take_dropped`] returns
//! them, so that you can free the bytes. Once the number of packets on the link has reached its maximum, no packet
//! needs an allocation. Dropped packets are kept until you take them, so with such a queue call `take_dropped` after
//! each `enqueue` and `dequeue`, or memory use grows.
//!
//! # An example
//!
//! A sender keeps 40 packets in flight over a 10 Mbit/s path with a delay of 20 ms each way, and measures its
//! throughput:
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
//!         // a full-sized data packet, identified by its number
//!         // `?` works here because 40 packets always fit; in your test an `Err` is a lost packet, not a failure
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
//! The example runs unchanged in `main` or in a test that returns `Result<(), Box<dyn std::error::Error>>`.
//!
//! # Time
//!
//! All times are whole nanoseconds since the start of your test (`u64`). Time never goes back: a call panics if `now`
//! is earlier than in a previous call. Poll in this order: take the earliest of your own deadlines and
//! [`Link::next_event`] of all links, advance `now` to it (`now = now.max(event)`), call [`dequeue`](Link::dequeue)
//! until it returns `None`, take dropped packets, then let your stack act. An event need not deliver a packet: a
//! transmission may begin, or a queue may drop a packet. If your stack needs an `Instant`, use
//! `start + Duration::from_nanos(now)`.
//!
//! To drain a link at the end of a test, call `dequeue(u64::MAX)` until it returns `None`; it reports when each packet
//! arrived. The link cannot be used after that, because time does not go back.
//!
//! You may also poll later, or send first. The behaviour of the link and the arrival times do not depend on when you
//! poll, and [`dequeue`](Link::dequeue) reports the arrival time. Events of the link precede a packet that is enqueued
//! at the same instant. If your stack's clock is coarser than a nanosecond, round `now` down for the stack and its
//! deadlines up; otherwise it loops at one instant.
//!
//! A packet that is enqueued on an idle link arrives after `bytes * 8 / rate + delay`: 21.2 ms for 1,500 bytes at 10
//! Mbit/s and 20 ms.
//!
//! # Your responsibilities
//!
//! | topic | with this crate |
//! |---|---|
//! | largest packet (MTU) | a link accepts any size; drop larger packets before [`Link::enqueue`] |
//! | bytes of a packet | keep them by [`Packet::id`]; free them on arrival, when `enqueue` returns an error, and after [`Link::take_dropped`] |
//! | headers | the link transmits [`Packet::bytes`] bytes; include the headers below your stack (IPv4 and UDP: 28) |
//! | a loss | is reported to you at once; do not pass it to your stack |
//! | losing a specific packet | do not enqueue it, or use `loss = { kind = "listed", packets = [3, 5] }` for the third and the fifth packet on the link |
//! | changing rate or delay | on a schedule with `capacity`; at any time with a new link for further packets, while you drain the old one |
//! | threads | a [`Link`] may move between threads; calls need exclusive access |
//!
//! # The text of a link
//!
//! TOML, one key per line, with the same keys as a link in an ackclock scenario. All keys are optional, so `""` is a
//! link that delivers at once. Quantities have units: `ns`, `us`, `ms`, `s`, `min`; `kbit/s`, `Mbit/s`, `Gbit/s`;
//! `bytes`, `kB`, `KiB`, `MB`; `packets`; `%`.
//!
//! | key | example | meaning |
//! |---|---|---|
//! | `rate` | `"20 Mbit/s"` | transmission rate; infinite if absent |
//! | `delay` | `"25 ms"` | propagation delay, one way |
//! | `queue` | `{ kind = "drop-tail", limit = "1 BDP" }` | first in, first out without a limit if absent; others are `"codel"`, `"fq-codel"`, `"pie"`, `"red"`, `"cake"`, `"dualpi2"`, `"threshold"` and more |
//! | `loss` | `{ kind = "bernoulli", p = "1 %" }` | ahead of the queue; also `"listed"`, `"gilbert-elliott"`, `"policer"` |
//! | `jitter` | `"5 ms"` | extra delay, uniform from zero; packets keep their order |
//! | `reorder` | `{ probability = "0.1 %", extra_delay = "5 ms" }` | packets that are delayed so that others overtake them |
//! | `capacity` | `{ kind = "schedule", steps = [{ at = "1 s", rate = "5 Mbit/s" }] }` | rate, delay and loss over time |
//! | `wifi`, `aggregate` | `{ mean = "7 ms" }`, `"20 ms"` | jitter of Wi-Fi; packets that are delivered together |
//! | `outage` | `{ at = "2 s", lasts = "500 ms" }` | times without transmission; `every = "10 s"` repeats them |
//! | `ecn_fault` | `{ what = "bleach" }` | a middlebox that changes the ECN field |
//!
//! A BDP is the rate times twice the delay, in packets of 1,500 bytes. A queue's limit counts waiting packets, not the
//! one in transmission: with a limit of 50, 51 packets of a burst arrive. A schedule step has `at` and any of `rate`,
//! `delay` and `loss`; a packet gets the delay at the end of its transmission. ackclock's `docs/reference/scenario.md`
//! lists every key of every queue and loss model with its default. Keys that need TCP headers are rejected here:
//! `thin_acks`, `merging`, `applies_to = "syn"`. Files are rejected as well (`mahimahi`).
//!
//! Errors are reported as a [`Mistake`] with the key, the value found and the values allowed. For an unknown key it
//! lists all allowed keys.
//!
//! # Presets
//!
//! [`Link::new`] also accepts the name of a preset. [`PRESETS`] has the text of each; the values are round numbers for
//! tests, not measurements.
//!
//! | name | rate | delay, one way | other properties |
//! |---|---|---|---|
//! | `dsl` | 16 Mbit/s | 15 ms | drop-tail of 100 packets |
//! | `cable` | 100 Mbit/s | 10 ms | PIE |
//! | `fibre` | 1 Gbit/s | 5 ms | drop-tail of 1 BDP |
//! | `bufferbloat` | 10 Mbit/s | 20 ms | drop-tail of 1,000 packets |
//! | `shallow` | 100 Mbit/s | 20 ms | drop-tail of 10 packets |
//! | `fq-codel` | 50 Mbit/s | 10 ms | FQ-CoDel with ECN marking |
//! | `l4s` | 40 Mbit/s | 5 ms | DualPI2 |
//! | `datacentre` | 10 Gbit/s | 20 us | marks above 65 packets, limit of 1,000 packets |
//! | `wifi` | 50 Mbit/s | 3 ms | jitter of Wi-Fi with a mean of 7 ms; drop-tail of 500 packets |
//! | `mobile` | 20 Mbit/s | 25 ms | jitter up to 10 ms; drop-tail of 300 packets |
//! | `satellite` | 50 Mbit/s | 280 ms | 0.1 % loss; drop-tail of 1 BDP |
//! | `policed` | 100 Mbit/s | 10 ms | policer of 10 Mbit/s with 100 kB; drop-tail of 1 BDP |
//! | `lossy` | 10 Mbit/s | 20 ms | 2 % loss; drop-tail of 1 BDP, which a burst of 35 packets overflows |
//! | `outages` | 20 Mbit/s | 20 ms | outage of 500 ms every 10 s, first at 5 s; drop-tail of 1 BDP |
//!
//! # Seeds
//!
//! All random draws (loss, jitter, decisions of an AQM) depend only on the seed. Give the links of a test different
//! seeds; otherwise both directions lose packets with the same numbers.
//!
//! # ECN
//!
//! Queues with marking mark packets whose [`Packet::ecn`] is [`Ecn::Ect0`] or [`Ecn::Ect1`]; these arrive with
//! [`Ecn::Ce`]. CoDel, FQ-CoDel and PIE mark with `ecn = true`; `threshold` and `dualpi2` always mark.
//!
//! # From C
//!
//! ```text
//! cargo rustc --release -p ackclock-link --features c --crate-type staticlib
//! cc -I crates/link/c test.c target/release/libackclock_link.a -lpthread -ldl -lm
//! ```
//!
//! `c/ackclock_link.h` declares the same calls, and `c/example.c` is the example above. Use `--crate-type cdylib` for a
//! shared library.
//!
//! # Used by a stack's own tests
//!
//! `examples/link` runs the tests of quinn-proto with this link in place of their own.

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
    /// Not ECN-capable: a queue drops instead of marking.
    #[default]
    NotEct = 0,
    /// ECT(1), used by L4S.
    Ect1 = 1,
    /// ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Convert from the low two bits of a traffic class or TOS byte; `ecn as u8` converts back.
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            3 => Ecn::Ce,
            _ => Ecn::NotEct,
        }
    }
}

/// Packet properties used by a link. [`Packet::default`] is packet 0 of flow 0, with 1,500 bytes of data, not
/// ECN-capable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Identifier of your choice, used to find the packet's bytes again. The link does not interpret it.
    pub id: u64,
    /// Size on the link with all headers, bytes; at least 1, with no upper limit.
    pub bytes: u32,
    /// ECN field of the packet.
    pub ecn: Ecn,
    /// Flow number of the packet, for fair queues and for policers with a bucket per flow. Use small numbers from 0: a
    /// policer with `per = "flow"` keeps a table up to the largest number, so hashes and connection IDs are
    /// unsuitable.
    pub flow: u32,
    /// Whether the packet carries data rather than only an ACK. Used only by loss models with `applies_to = "data"`,
    /// which spare ACKs.
    pub data: bool,
}

impl Default for Packet {
    fn default() -> Packet {
        Packet { id: 0, bytes: 1500, ecn: Ecn::NotEct, flow: 0, data: true }
    }
}

/// Why a packet was lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Lost {
    /// Dropped by the loss model (medium or policer).
    OnTheWay = 1,
    /// The queue is full.
    QueueFull = 2,
    /// Dropped by the queueing discipline before the queue was full.
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

/// One direction of a link with the packets on it. It may be moved between threads.
pub struct Link {
    sole: SoleLink,
    now: u64,
    /// Packets that had reached the far end when a later packet was enqueued, but have not been dequeued yet.
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
    /// Create a link from a description or a preset name; see the crate documentation. Random draws depend only on
    /// `seed`.
    ///
    /// # Errors
    ///
    /// Returns a [`Mistake`] for an invalid key or value.
    pub fn new(text_or_preset: &str, seed: u64) -> Result<Link, Mistake> {
        let sole = SoleLink::new(&text::config(text_or_preset)?, seed);
        Ok(Link { sole, now: 0, arrived: VecDeque::new() })
    }

    /// Hand a packet to the near end at `now` (ns). Afterwards [`next_event`](Link::next_event) may be earlier than
    /// before.
    ///
    /// # Errors
    ///
    /// Returns why the packet is lost. The loss is reported at once, which a sender in a real network would not see.
    /// `Ok` does not guarantee delivery: FQ-CoDel at its limit accepts the packet and drops another, which
    /// [`take_dropped`](Link::take_dropped) returns.
    ///
    /// # Panics
    ///
    /// Panics if `now` is earlier than in a previous call, or if the packet has no bytes.
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

    /// Time of the link's next event, ns, at which [`dequeue`](Link::dequeue) should be called; `None` for an empty
    /// link. The time may be in the past if arrived packets have not been dequeued.
    pub fn next_event(&self) -> Option<u64> {
        let next = self.sole.next_event();
        let first = self.arrived.front().map(|(at, _)| *at);
        first.or((next != Time::NEVER).then_some(next.0))
    }

    /// Return the next packet that has reached the far end at or before `now` (ns), with its arrival time. Call it
    /// until it returns `None`.
    ///
    /// # Panics
    ///
    /// Panics if `now` is earlier than in a previous call.
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
            // process each event at its own time, so that the output does not depend on the times of calls
            if let Some(packet) = self.sole.poll(at) {
                return Some((at.0, own(&packet)));
            }
        }
    }

    /// Return a packet that the queue had accepted and then dropped, with the reason. Call it until it returns `None`.
    /// The time of the drop is not reported.
    pub fn take_dropped(&mut self) -> Option<(Packet, Lost)> {
        self.sole.take_head_drops().map(|(packet, why)| (own(&packet), why.into()))
    }

    /// Number of packets waiting in the queue at the time of the last call.
    pub fn waiting(&mut self) -> u32 {
        self.sole.waiting(Time(self.now))
    }

    fn go_on(&mut self, now: u64) {
        assert!(now >= self.now, "time goes back, from {} ns to {now} ns", self.now);
        self.now = now;
    }
}

/// Convert a packet of the engine to the crate's own type.
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
