//! smoltcp's TCP behind `ackclock_stack.h`: one socket on a separate interface. smoltcp does no I/O and takes the time
//! as an argument, in us; packets wait in two queues.
//!
//! smoltcp exposes neither its congestion window nor its round-trip time, so both ends inspect the headers of passing
//! packets for retransmissions, acknowledged data and round-trip times.

mod abi;

use std::collections::VecDeque;
use std::ffi::CStr;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State as Tcp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpProtocol, Ipv4Address, Ipv4Packet, TcpPacket};

pub const CONTROLLERS: &CStr = c"cubic,reno,none";
const NONE: u64 = u64::MAX;
/// Length of an IPv4 header, bytes.
pub const IP: usize = 20;
const CLIENT: Ipv4Address = Ipv4Address::new(10, 0, 0, 1);
const SERVER: Ipv4Address = Ipv4Address::new(10, 0, 0, 2);
const PORTS: [u16; 2] = [40_000, 443];

/// Counterpart of `ack_sample` in the header.
#[repr(C)]
pub struct Sample {
    window: u64,
    in_flight: u64,
    ssthresh: u64,
    sent: u64,
    lost: u64,
    acks: u64,
    acked: u64,
    latest_rtt_ns: u64,
    srtt_ns: u64,
    min_rtt_ns: u64,
    pacing_bps: u64,
    mtu: u64,
}

pub enum State {
    Opening,
    Open,
    Closed,
    Failed(&'static str),
}

/// A packet to be sent.
pub struct Sent {
    pub bytes: Vec<u8>,
    pub has_data: bool,
}

/// Queues of arrived packets and of packets to be sent.
struct Queues {
    mtu: usize,
    arrived: VecDeque<Vec<u8>>,
    leaving: VecDeque<Vec<u8>>,
}

struct Arrived(Vec<u8>);
struct Leaving<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut bytes = vec![0; len];
        let result = f(&mut bytes);
        self.0.push_back(bytes);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leaving<'_>)> {
        self.arrived.pop_front().map(|bytes| (Arrived(bytes), Leaving(&mut self.leaving)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut caps = DeviceCapabilities::default();
        caps.medium = Medium::Ip;
        caps.max_transmission_unit = self.mtu;
        caps.checksum.ipv4 = Checksum::None; // the IPv4 header is not sent
        caps
    }
}

/// State gathered from the headers.
#[derive(Default)]
struct Seen {
    /// Sequence number of this end's SYN; `None` until it has been sent.
    first: Option<u32>,
    /// Ends of sent and of acknowledged data, as offsets from the SYN.
    sent_to: u64,
    acked_to: u64,
    sent: u64,
    again: u64,
    acks: u64,
    /// Segment being timed: offset of its end, and its send time, ns.
    timed: Option<(u64, u64)>,
    latest: Option<u64>,
    smoothed: Option<u64>,
    least: Option<u64>,
    reset: bool,
}

pub struct Stack {
    is_server: bool,
    queues: Queues,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    to_write: u64,
    finishes: bool,
    received: u64,
    was_open: bool,
    deadline: u64,
    seen: Seen,
}

fn instant(now: u64) -> Instant {
    Instant::from_micros((now / 1000) as i64) // rounded down, as the header asks
}

/// Settings of a flow.
struct Options {
    buffer: usize,
    mtu: usize,
    nagle: bool,
    ack_delay_ms: Option<u64>,
    timeout_s: Option<u64>,
}

impl Options {
    /// Parse a JSON object of numbers and flags.
    fn read(text: &str) -> Result<Options, String> {
        let mut read = Options { buffer: 262_144, mtu: 1500, nagle: true, ack_delay_ms: Some(10), timeout_s: None };
        let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let inner = inner.ok_or("an object of JSON")?;
        for pair in inner.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair.split_once(':').ok_or("an object of JSON")?;
            let (key, value) = (key.trim().trim_matches('"'), value.trim());
            let number = |least: u64, most: u64| match value.parse::<u64>() {
                Ok(n) if (least..=most).contains(&n) => Ok(n),
                _ => Err(format!("{key}: {least} to {most}")),
            };
            match key {
                "buffer" => read.buffer = number(4096, 1 << 28)? as usize,
                "mtu" => read.mtu = number(576, 1500)? as usize,
                "nagle" => read.nagle = value.parse().map_err(|_| "nagle: true or false")?,
                "ack_delay_ms" => read.ack_delay_ms = Some(number(0, 1000)?).filter(|&ms| ms > 0),
                "timeout_s" => read.timeout_s = Some(number(1, 86_400)?),
                _ => return Err("buffer, mtu, nagle, ack_delay_ms, timeout_s".to_string()),
            }
        }
        Ok(read)
    }
}

impl Stack {
    pub fn open(
        is_server: bool,
        controller: &str,
        options: &str,
        seed: &[u8; 32],
        now: u64,
    ) -> Result<Stack, String> {
        let options = Options::read(options)?;
        let control = match controller {
            "cubic" => CongestionControl::Cubic,
            "reno" => CongestionControl::Reno,
            "none" => CongestionControl::None,
            _ => return Err("the controllers cubic, reno, none".to_string()),
        };
        let mut queues = Queues { mtu: options.mtu, arrived: VecDeque::new(), leaving: VecDeque::new() };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = u64::from_le_bytes(seed[..8].try_into().expect("eight bytes"));
        let mut interface = Interface::new(config, &mut queues, instant(now));
        let [own, peer] = if is_server { [SERVER, CLIENT] } else { [CLIENT, SERVER] };
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(own), 24)); // the list has one free entry left
        });
        let buffer = || SocketBuffer::new(vec![0; options.buffer]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(control);
        socket.set_nagle_enabled(options.nagle);
        socket.set_ack_delay(options.ack_delay_ms.map(Duration::from_millis));
        socket.set_timeout(options.timeout_s.map(Duration::from_secs));
        if is_server {
            socket.listen(PORTS[1]).map_err(|error| error.to_string())?;
        } else {
            let context = interface.context();
            socket.connect(context, (peer, PORTS[1]), PORTS[0]).map_err(|error| error.to_string())?;
        }
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Ok(Stack {
            is_server,
            queues,
            interface,
            sockets,
            handle,
            to_write: 0,
            finishes: false,
            received: 0,
            was_open: false,
            deadline: now,
            seen: Seen::default(),
        })
    }

    fn socket(&self) -> &Socket<'static> {
        self.sockets.get(self.handle)
    }

    /// Let the application read and write as much as possible.
    fn work(&mut self) {
        let socket = self.sockets.get_mut::<Socket>(self.handle);
        self.was_open |= socket.may_send();
        while socket.can_recv() {
            match socket.recv(|bytes| (bytes.len(), bytes.len())) {
                Ok(len) if len > 0 => self.received += len as u64,
                _ => break,
            }
        }
        while self.to_write > 0 && socket.can_send() {
            let most = self.to_write;
            let taken = socket.send(|room| {
                let len = room.len().min(usize::try_from(most).unwrap_or(usize::MAX));
                room[..len].fill(0);
                (len, len as u64)
            });
            match taken {
                Ok(len) if len > 0 && most != NONE => self.to_write -= len,
                Ok(len) if len > 0 => {}
                _ => break,
            }
        }
        if self.finishes && self.to_write == 0 && socket.may_send() {
            socket.close();
        }
    }

    fn look_ahead(&mut self, now: u64) {
        let at = self.interface.poll_at(instant(now), &self.sockets);
        self.deadline = match at {
            Some(at) => (at.total_micros().max(0) as u64).saturating_mul(1000).max(now / 1000 * 1000),
            None => NONE,
        };
    }

    pub fn datagram(&mut self, now: u64, bytes: &[u8]) {
        let [own, peer] = if self.is_server { [SERVER, CLIENT] } else { [CLIENT, SERVER] };
        let mut packet = vec![0; IP + bytes.len()];
        packet[IP..].copy_from_slice(bytes);
        let mut header = Ipv4Packet::new_unchecked(&mut packet[..]);
        header.set_version(4);
        header.set_header_len(IP as u8);
        header.set_total_len((IP + bytes.len()).min(0xffff) as u16);
        header.set_hop_limit(64);
        header.set_next_header(IpProtocol::Tcp);
        header.set_src_addr(peer);
        header.set_dst_addr(own);
        self.seen.arrived(now, bytes);
        self.queues.arrived.push_back(packet);
        self.interface.poll(instant(now), &mut self.queues, &mut self.sockets);
        self.work();
        self.look_ahead(now);
    }

    pub fn timer(&mut self, now: u64) {
        self.interface.poll(instant(now), &mut self.queues, &mut self.sockets);
        self.work();
        self.look_ahead(now);
    }

    pub fn transmit(&mut self, now: u64) -> Option<Sent> {
        if self.queues.leaving.is_empty() {
            self.interface.poll(instant(now), &mut self.queues, &mut self.sockets);
            self.work();
            self.look_ahead(now);
        }
        let bytes = self.queues.leaving.pop_front()?;
        let has_data = self.seen.left(now, &bytes[IP..]);
        Some(Sent { bytes, has_data })
    }

    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    pub fn write(&mut self, now: u64, bytes: u64) {
        self.to_write = self.to_write.saturating_add(bytes);
        self.work();
        self.look_ahead(now);
    }

    pub fn finish(&mut self, now: u64) {
        if self.to_write == NONE {
            self.to_write = 0;
        }
        self.finishes = true;
        self.work();
        self.look_ahead(now);
    }

    pub fn received(&self) -> u64 {
        self.received
    }

    pub fn peer_finished(&self) -> bool {
        let ended = [Tcp::CloseWait, Tcp::LastAck, Tcp::Closing, Tcp::TimeWait].contains(&self.socket().state());
        (ended || self.is_through()) && !self.socket().can_recv()
    }

    /// Whether the connection closed after both ends had finished.
    fn is_through(&self) -> bool {
        let everything = self.seen.acked_to > 0 && self.seen.acked_to == self.seen.sent_to;
        self.socket().state() == Tcp::Closed && self.finishes && self.to_write == 0 && everything && !self.seen.reset
    }

    pub fn state(&self) -> State {
        match self.socket().state() {
            Tcp::Listen | Tcp::SynSent | Tcp::SynReceived => State::Opening,
            Tcp::TimeWait => State::Closed,
            Tcp::Closed if self.is_through() => State::Closed,
            Tcp::Closed if self.seen.reset => State::Failed("closed by the peer"),
            Tcp::Closed if self.was_open => State::Failed("idle timeout"),
            Tcp::Closed => State::Failed("refused"),
            _ => State::Open,
        }
    }

    pub fn sample(&self) -> Sample {
        let seen = &self.seen;
        Sample {
            window: NONE,
            in_flight: seen.sent_to.saturating_sub(seen.acked_to),
            ssthresh: NONE,
            sent: seen.sent,
            lost: seen.again,
            acks: seen.acks,
            acked: self.acked(),
            latest_rtt_ns: seen.latest.unwrap_or(NONE),
            srtt_ns: seen.smoothed.unwrap_or(NONE),
            min_rtt_ns: seen.least.unwrap_or(NONE),
            pacing_bps: NONE,
            mtu: (self.queues.mtu - IP) as u64,
        }
    }

    /// Application bytes acknowledged, without the SYN and the FIN, which occupy one sequence number each.
    fn acked(&self) -> u64 {
        let fin = [Tcp::FinWait2, Tcp::TimeWait].contains(&self.socket().state()) || self.is_through();
        self.seen.acked_to.saturating_sub(1 + u64::from(fin))
    }
}

impl Seen {
    /// Offset of one of this end's sequence numbers from its SYN, unwrapped to a value near `around`.
    fn offset(&self, number: u32, around: u64) -> u64 {
        let from = around as u32;
        let far = number.wrapping_sub(self.first.unwrap_or(number)).wrapping_sub(from) as i32;
        around.saturating_add_signed(i64::from(far))
    }

    /// Record a sent segment; returns whether it carries data.
    fn left(&mut self, now: u64, bytes: &[u8]) -> bool {
        let Ok(tcp) = TcpPacket::new_checked(bytes) else { return false };
        if tcp.syn() {
            self.first.get_or_insert(tcp.seq_number().0 as u32);
        }
        let (begin, len) = (self.offset(tcp.seq_number().0 as u32, self.sent_to), tcp.segment_len() as u64);
        self.sent += 1;
        if len > 0 && begin < self.sent_to {
            self.again += 1;
            self.timed = None; // Karn's algorithm: a retransmitted segment gives no sample
        } else if len > 0 && self.timed.is_none() {
            self.timed = Some((begin + len, now));
        }
        self.sent_to = self.sent_to.max(begin + len);
        !tcp.payload().is_empty()
    }

    fn arrived(&mut self, now: u64, bytes: &[u8]) {
        let Ok(tcp) = TcpPacket::new_checked(bytes) else { return };
        self.reset |= tcp.rst();
        if !tcp.ack() || self.first.is_none() {
            return;
        }
        let to = self.offset(tcp.ack_number().0 as u32, self.acked_to);
        if to > self.sent_to {
            return;
        }
        self.acks += 1;
        self.acked_to = self.acked_to.max(to);
        if let Some((_, left)) = self.timed.filter(|&(end, _)| end <= to) {
            let rtt = now - left;
            self.timed = None;
            self.latest = Some(rtt);
            self.smoothed = Some(self.smoothed.map_or(rtt, |smoothed| (7 * smoothed + rtt) / 8));
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        }
    }
}
