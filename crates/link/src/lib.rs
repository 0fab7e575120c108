//! A simulated link for the tests of transport stacks: rate, delay, queue, loss and whatever else a real link does, in virtual time.
//! No clock, no thread, no socket; the same calls give the same answers, bit for bit, on every machine.
//!
//! A [`Link`] carries packets in one direction. It knows of a packet what a router knows: a number of yours that tells it from others,
//! its size, its ECN field and the flow it belongs to. The bytes stay with you. A path there and back is two links.
//!
//! # Four calls
//!
//! | call | what it does |
//! |---|---|
//! | [`Link::new`] | makes a link from text, or from the name of a preset |
//! | [`Link::enqueue`] | a packet reaches the near end now: the link takes it, or says why it is lost |
//! | [`Link::next_event`] | when the link has something to do next |
//! | [`Link::dequeue`] | a packet that has reached the far end by now, marked if a queue has marked it |
//!
//! Some queues (CoDel, FQ-CoDel, CAKE) drop packets that they had taken; [`Link::take_dropped`] names them, so that you can free the
//! bytes. Nothing is allocated for a packet, once as many have been on the link at a time as ever will be.
//!
//! # An example
//!
//! A sender that keeps 40 packets in flight over 10 Mbit/s and 20 ms each way, and measures what it gets:
//!
//! ```
//! use ackclock_link::{Link, Packet};
//!
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
//!         there.enqueue(now, Packet { id: sent, bytes: 1500, ..Packet::default() })?;
//!         sent += 1;
//!     }
//!     now = there.next_event().into_iter().chain(back.next_event()).min().expect("packets are on their way");
//!     while let Some(packet) = there.dequeue(now) {
//!         // the receiver acknowledges each packet at once
//!         back.enqueue(now, Packet { id: packet.id, bytes: 40, data: false, ..Packet::default() })?;
//!     }
//!     while back.dequeue(now).is_some() {
//!         acked += 1;
//!     }
//! }
//! let mbit_per_s = acked as f64 * 1500.0 * 8.0 / 5e6;
//! assert!((9.8..10.0).contains(&mbit_per_s), "{mbit_per_s}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Time
//!
//! All times are whole nanoseconds since the start of your test (`u64`). Time never goes back: `now` of a call is at least that of the
//! calls before it. Poll in this order: take the earliest of your own deadlines and [`Link::next_event`] of all links, set `now` to
//! it, [`dequeue`](Link::dequeue) until nothing comes, then let your stack act. A link may ask for an event at which no packet comes out
//! yet: a transmission begins, or a queue drops something. If your stack's clock is coarser than a nanosecond, round `now` down for the
//! stack and its deadlines up, or it spins at one instant.
//!
//! # The text of a link
//!
//! TOML, with the keys that a link has in scenarios of ackclock; quantities carry their unit. All keys may be left out.
//!
//! | key | example | meaning |
//! |---|---|---|
//! | `rate` | `"20 Mbit/s"` | transmission rate; infinite if absent |
//! | `delay` | `"25 ms"` | propagation delay, one way |
//! | `queue` | `{ kind = "drop-tail", limit = "1 BDP" }` | first in, first out without a limit if absent; others are `"codel"`, `"fq-codel"`, `"pie"`, `"red"`, `"cake"`, `"dualpi2"`, `"threshold"` and more |
//! | `loss` | `{ kind = "bernoulli", p = "1 %" }` | ahead of the queue; also `"gilbert-elliott"`, `"policer"` |
//! | `jitter` | `"5 ms"` | extra delay, uniform from zero; packets keep their order |
//! | `reorder` | `{ probability = "0.1 %", extra_delay = "5 ms" }` | packets that are held back, so that others overtake |
//! | `capacity` | `{ kind = "schedule", steps = [{ at = "1 s", rate = "5 Mbit/s" }] }` | rate, delay and loss over time |
//! | `wifi`, `aggregate` | `{ mean = "7 ms" }`, `"20 ms"` | jitter of Wi-Fi; packets that are delivered together |
//! | `outage` | `{ at = "2 s", lasts = "500 ms" }` | times without transmission |
//! | `ecn_fault` | `{ what = "bleach" }` | a middlebox that changes the ECN field |
//!
//! A BDP is the rate times twice the delay, counted in packets of 1,500 bytes. `docs/reference/scenario.md` of ackclock has every key of
//! every queue and loss model. Two keys need headers of TCP and are refused here: `thin_acks` and `merging`. So are files (`mahimahi`).
//!
//! A mistake is a [`Mistake`]: which key, what was found, what is allowed.
//!
//! # Presets
//!
//! Instead of a text, [`Link::new`] takes one of the names in [`PRESETS`]. They are round numbers for tests, not measurements.
//!
//! # Seeds
//!
//! Whatever is drawn (loss, jitter, an AQM's dice) follows from the seed and from nothing else. Give the links of a test different seeds.
//!
//! # ECN
//!
//! Queues that mark do so to packets whose [`Packet::ecn`] is [`Ecn::Ect0`] or [`Ecn::Ect1`]; what comes out has [`Ecn::Ce`] then. Marking
//! queues need `ecn = true` (CoDel, PIE), or mark by nature (`threshold`, `dualpi2`).
//!
//! # From C
//!
//! Build with feature `c` (`cargo build --release -p ackclock-link --features c`) and link `libackclock_link.a` or the shared library;
//! `c/ackclock_link.h` has the same calls with the same meaning, and `c/example.c` is the example above.

mod text;

#[cfg(feature = "c")]
mod c;

use ackclock_core::datagram::{Datagram, Opaque};
use ackclock_core::packet::Ecn as Field;
use ackclock_core::{Header, Time};
use ackclock_net::{Refused, SoleLink};

pub use text::{Mistake, PRESETS};

/// The ECN field of a packet (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
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

/// What a link knows of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// A number of yours, by which you find its bytes again.
    pub id: u64,
    /// Size on the link, all headers included, bytes; at least 1.
    pub bytes: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// The flow that it belongs to, for queues that are fair to flows, and policers with a bucket for each. Small numbers: some keep a
    /// table of them.
    pub flow: u32,
    /// Whether it has data, rather than only an ACK: loss models may spare ACKs (`applies_to`).
    pub data: bool,
}

impl Default for Packet {
    /// Number 0, 1,500 bytes of data, not ECN-capable, of flow 0.
    fn default() -> Packet {
        Packet { id: 0, bytes: 1500, ecn: Ecn::NotEct, flow: 0, data: true }
    }
}

/// Why a packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// One direction of a link, and the packets on it.
pub struct Link {
    sole: SoleLink,
    now: u64,
}

impl Link {
    /// A link from its text or the name of a preset; see the page of this crate. What it draws follows from `seed`.
    ///
    /// # Errors
    ///
    /// A key or a value that a link cannot have.
    pub fn new(text_or_preset: &str, seed: u64) -> Result<Link, Mistake> {
        Ok(Link { sole: SoleLink::new(&text::config(text_or_preset)?, seed), now: 0 })
    }

    /// A packet reaches the near end at `now`, ns. Afterwards [`next_event`](Link::next_event) may be earlier than before.
    ///
    /// # Errors
    ///
    /// The packet is lost, at once: its number does not come back.
    ///
    /// # Panics
    ///
    /// If `now` is before that of an earlier call, or the packet has no bytes.
    pub fn enqueue(&mut self, now: u64, packet: Packet) -> Result<(), Lost> {
        self.go_on(now);
        assert!(packet.bytes > 0, "a packet has bytes");
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

    /// When the link has something to do next, ns; none: it is empty. Call [`dequeue`](Link::dequeue) then.
    pub fn next_event(&self) -> Option<u64> {
        let next = self.sole.next_event();
        (next != Time::NEVER).then_some(next.0)
    }

    /// The next packet that has reached the far end at or before `now`, ns; call it until there is none.
    ///
    /// # Panics
    ///
    /// If `now` is before that of an earlier call.
    pub fn dequeue(&mut self, now: u64) -> Option<Packet> {
        self.go_on(now);
        loop {
            if let Some(packet) = self.sole.poll(Time(now)) {
                return Some(own(&packet));
            }
            if self.sole.next_event() > Time(now) {
                return None;
            }
        }
    }

    /// A packet that the queue had taken and dropped since the last call, and why; call it until there is none.
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
