//! Connections of a capture: both directions combined, the capture point, and optionally the packets of one
//! connection.

use std::collections::BTreeMap;
use std::io::Read;

use crate::counts::Kind;
use crate::file::Frames;
use crate::packet::{decode, flags, Content, End, Segment};
use crate::way::Way;
use crate::{broken, Error};

/// Maximum number of connections in a file.
pub const MOST_CONNECTIONS: usize = 1 << 18;

/// Number of frames between checks whether the caller still wants the result.
const LOOK_EVERY: u64 = 1 << 14;

/// Pause after which a SYN begins a new connection, although the previous one was not closed.
const FORGOTTEN_NS: i64 = 60_000_000_000;

/// Maximum time that a slow host takes to respond to a packet.
const LATE_NS: i64 = 500_000;

/// Capture point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The host that opened the connection.
    Client,
    /// The host that accepted the connection.
    Server,
    /// A point on the path between the hosts.
    Between,
    /// Unknown without the handshake.
    Unknown,
}

impl Place {
    /// Short name for output.
    pub fn name(self) -> &'static str {
        match self {
            Place::Client => "client",
            Place::Server => "server",
            Place::Between => "between",
            Place::Unknown => "unknown",
        }
    }
}

/// One connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Number of the interface on which the connection was captured.
    pub interface: u32,
    /// End that opened the connection, or else the sender of the first captured packet.
    pub client: End,
    /// End that accepted the connection, or else the receiver of the first captured packet.
    pub server: End,
    /// Data from the client and data from the server.
    pub ways: [Way; 2],
    /// Times of the first and last packet, nanoseconds since 1970.
    pub span_ns: (i64, i64),
    /// Times of SYN, SYN/ACK and the following ACK; `None` for packets that were not captured.
    pub handshake_ns: [Option<i64>; 3],
    /// Whether a reset ended the connection.
    pub reset: bool,
}

impl Connection {
    fn new(interface: u32, seg: &Segment, t_ns: i64) -> Self {
        let answer = seg.flags & flags::SYN != 0 && seg.flags & flags::ACK != 0;
        let (client, server) = if answer { (seg.to, seg.from) } else { (seg.from, seg.to) };
        Connection {
            interface,
            client,
            server,
            ways: Default::default(),
            span_ns: (t_ns, t_ns),
            handshake_ns: [None; 3],
            reset: false,
        }
    }

    /// Handshake RTT; `None` unless its SYN and its final ACK were captured.
    pub fn handshake_rtt_ns(&self) -> Option<i64> {
        let [Some(syn), _, Some(done)] = self.handshake_ns else { return None };
        Some(done - syn)
    }

    /// Capture point, inferred from the fraction of the handshake RTT spent beyond it. If the RTT is too short to
    /// decide because a host may have responded late, the capture point is inferred from properties of a host's
    /// packets that the path would have changed: the TTL, or the missing padding of short frames.
    pub fn place(&self) -> Place {
        let [Some(syn), Some(answer), Some(done)] = self.handshake_ns else {
            return self.fresh().unwrap_or(Place::Unknown);
        };
        let (far, near) = ((answer - syn).max(0), (done - answer).max(0));
        match far as f64 / ((far + near) as f64).max(1.0) {
            share if share >= 0.9 => Place::Client,
            share if share <= 0.1 => Place::Server,
            _ if far.min(near) <= LATE_NS => self.fresh().unwrap_or(Place::Between),
            _ => Place::Between,
        }
    }

    /// The only end with packets that show no sign of having crossed the path.
    fn fresh(&self) -> Option<Place> {
        let routed = self.ways.each_ref().map(|way| way.ttl.map(|ttl| !matches!(ttl, 64 | 128 | 255)));
        let places = [Place::Client, Place::Server];
        match (routed, self.ways.each_ref().map(|way| way.unpadded)) {
            ([Some(false), Some(true)], _) | ([Some(false), Some(false)], [true, false]) => Some(places[0]),
            ([Some(true), Some(false)], _) | ([Some(false), Some(false)], [false, true]) => Some(places[1]),
            _ => None,
        }
    }

    /// Whether both SYNs were captured with all options. Otherwise the window scale is unknown.
    pub fn is_scaled(&self) -> bool {
        self.ways.iter().all(|way| way.syn_whole)
    }

    /// Whether this segment begins a new connection between the same ports.
    fn is_over_for(&self, seg: &Segment, t_ns: i64) -> bool {
        let opens = seg.flags & (flags::SYN | flags::ACK) == flags::SYN;
        let way = &self.ways[self.way_of(seg)];
        opens
            && way.begins_anew(seg.seq)
            && (self.reset
                || self.ways.iter().any(Way::is_over)
                || t_ns - self.span_ns.1 > FORGOTTEN_NS
                || self.handshake_ns[2].is_some()
                || self.handshake_ns[1].is_none())
    }

    fn way_of(&self, seg: &Segment) -> usize {
        usize::from(seg.from != self.client)
    }

    fn packet(&mut self, seg: &Segment, t_ns: i64, mut row: impl FnMut(Row)) {
        let at = self.way_of(seg);
        self.span_ns.1 = self.span_ns.1.max(t_ns);
        self.reset |= seg.flags & flags::RST != 0;
        let opens = seg.flags & (flags::SYN | flags::ACK);
        match opens {
            flags::SYN if at == 0 => self.handshake_ns[0] = Some(t_ns), // the last SYN, which this SYN-ACK belongs to
            _ if opens == flags::SYN | flags::ACK && at == 1 => {
                self.handshake_ns[1].get_or_insert(t_ns);
            }
            flags::ACK if at == 0 && self.handshake_ns[1].is_some() => {
                self.handshake_ns[2].get_or_insert(t_ns);
            }
            _ => {}
        }
        let (first, second) = self.ways.split_at_mut(1);
        let (own, other) = match at {
            0 => (&mut first[0], &mut second[0]),
            _ => (&mut second[0], &mut first[0]),
        };
        let (kind, seq) = own.sends(seg, t_ns, other.mss);
        let shift = own.wscale.filter(|_| other.wscale.is_some()).unwrap_or(0);
        let mut base = Row {
            t_ns,
            from_server: at == 1,
            kind,
            seq,
            length: seg.payload,
            ack: None,
            window: 0,
            flags: seg.flags,
            timestamps: seg.timestamps.unwrap_or((0, 0)),
            ip_id: seg.ip_id,
        };
        let mut sacks = [(0, 0, false); 4];
        let mut count = 0;
        let told = other.is_told(seg, t_ns, shift, own.mss, |start, end, dsack| {
            sacks[count] = (start, end, dsack);
            count += 1;
        });
        if seg.flags & flags::ACK != 0 {
            base.ack = Some(other.acknowledged(seg.ack));
            base.window = u64::from(seg.window) << if seg.flags & flags::SYN == 0 { shift } else { 0 };
        }
        if kind == Kind::Bare {
            base.kind = told;
        }
        row(base);
        for &(start, end, dsack) in &sacks[..count] {
            let kind = if dsack { Kind::Dsack } else { Kind::Sack };
            row(Row { kind, seq: start, length: (end - start) as u32, ..base });
        }
    }
}

/// A packet of one connection, or one of its SACK blocks.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Time, nanoseconds since 1970.
    pub t_ns: i64,
    /// Whether the server sent the packet.
    pub from_server: bool,
    /// Segment kind.
    pub kind: Kind,
    /// Offset in the sender's data; for a block, offset in the other side's data. 0 is the SYN, 1 the first byte.
    pub seq: i64,
    /// Packet payload or block length, bytes.
    pub length: u32,
    /// Acknowledged offset in the other side's data; `None` without an ACK number.
    pub ack: Option<i64>,
    /// Advertised window, bytes.
    pub window: u64,
    /// Header flags.
    pub flags: u16,
    /// Timestamp and echo; 0 without the option.
    pub timestamps: (u32, u32),
    /// IPv4 identification field; 0 for IPv6.
    pub ip_id: u16,
}

/// Contents of a capture file.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// All connections, in order of their first packets.
    pub all: Vec<Connection>,
    /// Packets of the requested connection.
    pub rows: Vec<Row>,
    /// Number of frames.
    pub frames: u64,
    /// Number of frames with a TCP segment.
    pub segments: u64,
    /// Fragments of packets other than the first.
    pub fragments: u64,
    /// Frames that end within their headers, or with contradictory lengths.
    pub short: u64,
    /// Frames with an unknown link layer.
    pub unknown_links: u64,
    /// Frames with an earlier capture time than the previous frame.
    pub backwards: u64,
    /// Frames without a capture time.
    pub without_time: u64,
    /// Link type of the first frame with an unknown link layer; `None` if there is none.
    pub unknown_link: Option<u16>,
    /// Segments captured a second time, for example on several network devices of a host.
    pub copies: u64,
    /// Whether copies were removed.
    pub without_copies: bool,
    /// Largest backward clock step, nanoseconds.
    pub back_ns: i64,
    /// Frames reported as missed by the capturing program.
    pub dropped: u64,
    /// Whether the file ends within a frame.
    pub cut: bool,
}

type Key = (u32, End, End);

/// A file is assumed to contain copies if at least one segment in this many is a copy. Networks duplicate packets
/// less often.
const COPIED: u64 = 4;

/// Maximum time between the captures of a packet and its copy: at most a router's queue lies between them.
const COPIED_WITHIN_NS: i64 = 1_000_000_000;

/// Recent packets, for recognising copies: a hash of the endpoints, numbers and identification, and the time. Limited
/// to [`Seen::ROOM`] entries; a newer one may replace an older one.
struct Seen(Vec<(u64, i64)>);

impl Seen {
    const ROOM: usize = 1 << 12;

    /// Whether the same packet has been seen before. Retransmissions have a new IP identification; without one, the
    /// timestamp distinguishes data packets.
    fn holds(&mut self, seg: &Segment, interface: u32, t_ns: i64) -> bool {
        if seg.ip_id == 0 && (seg.timestamps.is_none() || seg.payload == 0) {
            return false;
        }
        let mut mixed = 0xcbf2_9ce4_8422_2325u64;
        let mut mix =
            |value: u64| mixed = (mixed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        mix(u64::from(seg.seq) << 32 | u64::from(seg.ack));
        mix(u64::from(seg.ip_id) << 48 | u64::from(seg.window) << 32 | u64::from(seg.payload));
        mix(u64::from(seg.flags) << 48
            | u64::from(seg.from.port) << 32
            | u64::from(seg.to.port) << 16
            | u64::from(interface & 0xffff));
        let (value, echo) = seg.timestamps.unwrap_or_default();
        mix(u64::from(value) << 32 | u64::from(echo));
        let place = &mut self.0[mixed as usize % Seen::ROOM];
        let within = if seg.ip_id == 0 { COPIED_WITHIN_NS / 1000 } else { COPIED_WITHIN_NS };
        let copy = place.0 == mixed && (0..within).contains(&t_ns.saturating_sub(place.1));
        if !copy {
            *place = (mixed, t_ns);
        }
        copy
    }
}

/// Read a capture. If at least a quarter of its segments are copies, it is read again without them.
///
/// `input` opens the file. `rows_of` is the index of the connection whose packets are returned, at most `most_rows`
/// of them. `go_on` is called periodically with the number of bytes read; if it returns false, reading is cancelled.
///
/// # Errors If the file cannot be read, is not a capture, exceeds a limit, or `go_on` returns false.
pub fn read<R: Read>(
    mut input: impl FnMut() -> std::io::Result<R>,
    rows_of: Option<usize>,
    most_rows: usize,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<Connections, Error> {
    let found = read_once(input()?, rows_of, most_rows, false, &mut go_on)?;
    if found.copies * COPIED < found.segments || found.copies < COPIED {
        return Ok(found);
    }
    read_once(input()?, rows_of, most_rows, true, go_on)
}

/// Read a capture in one pass. `without_copies`: ignore copies.
///
/// # Errors
/// As for [`read`].
pub fn read_once(
    input: impl Read,
    rows_of: Option<usize>,
    most_rows: usize,
    without_copies: bool,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<Connections, Error> {
    let mut seen = Seen(vec![(0, i64::MIN / 2); Seen::ROOM]);
    let mut frames = Frames::open(input)?;
    let mut found = Connections { without_copies, ..Connections::default() };
    let mut known: BTreeMap<Key, usize> = BTreeMap::new();
    let mut last_ns = i64::MIN;
    loop {
        if frames.count() % LOOK_EVERY == 0 && !go_on(frames.position()) {
            return Err(Error::Stopped);
        }
        let Some(frame) = frames.next()? else { break };
        if frame.t_ns < last_ns {
            found.backwards += 1;
            found.back_ns = found.back_ns.max(last_ns.saturating_sub(frame.t_ns));
        }
        last_ns = frame.t_ns;
        let (t_ns, interface) = (frame.t_ns, frame.interface);
        let link = frame.link;
        let seg = match decode(link, frame.bytes, frame.on_wire) {
            Content::Tcp(seg) => seg,
            Content::Other => continue,
            Content::Fragment => {
                found.fragments += 1;
                continue;
            }
            Content::Short => {
                found.short += 1;
                continue;
            }
            Content::UnknownLink => {
                found.unknown_links += 1;
                found.unknown_link.get_or_insert(link);
                continue;
            }
        };
        found.segments += 1;
        if seen.holds(&seg, interface, t_ns) {
            found.copies += 1;
            if without_copies {
                continue;
            }
        }
        let key = (interface, seg.from.min(seg.to), seg.from.max(seg.to));
        let at = match known.get(&key) {
            Some(&at) if !found.all[at].is_over_for(&seg, t_ns) => at,
            _ if found.all.len() == MOST_CONNECTIONS => {
                return broken(format!(
                    "found more than {MOST_CONNECTIONS} connections; allowed: at most so many"
                ));
            }
            _ => {
                found.all.push(Connection::new(interface, &seg, t_ns));
                known.insert(key, found.all.len() - 1);
                found.all.len() - 1
            }
        };
        let rows = &mut found.rows;
        let mut full = false;
        found.all[at].packet(&seg, t_ns, |row| {
            if rows_of == Some(at) {
                full = rows.len() == most_rows;
                if !full {
                    rows.push(row);
                }
            }
        });
        if full {
            return broken(format!(
                "found a connection of more than {most_rows} packets and blocks; allowed: at most so many"
            ));
        }
    }
    found.frames = frames.count();
    found.dropped = frames.dropped;
    found.without_time = frames.without_time;
    found.cut = frames.cut;
    Ok(found)
}
