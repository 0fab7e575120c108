//! Packets seen at the hosts' devices: written to a pcapng file, and collected for the ACK table of traced flows.

use std::fs::File;
use std::io::{BufWriter, Error, Result, Write};
use std::os::fd::RawFd;

use ackclock_sim::scenario::spec::{CapturePoint, TraceLevel};

use crate::flows::SENDER_PORT;
use crate::job::{Job, Live};
use crate::network::{Wiring, DEVICE, SWITCH};
use crate::packet::{Header, Udp};
use crate::sys::{self, Ring, Seen};

/// A packet of a traced flow, captured at the sending host.
pub struct Row {
    pub t: u64,
    pub flow: u32,
    pub peer: u16,
    pub outgoing: bool,
    pub header: Header,
}

/// Purpose of the packets in a ring.
#[derive(Clone, Copy)]
enum Use {
    /// Packets of flows, for the table of ACKs. With an interface number they are also written to the file.
    Flows(Option<u32>),
    /// All packets but those of this device, written to the file of this program host.
    Program(usize, u32),
}

/// Number of the interface that stands for all of them.
const ANY: u32 = 0;

/// Capture rings on the hosts' devices.
pub struct Capture {
    rings: Vec<(Ring, Use)>,
    /// CLOCK_REALTIME at the start of the run, ns.
    zero: u64,
    file: Option<BufWriter<File>>,
    /// Captures, one per program host.
    programs: Vec<BufWriter<File>>,
    traced: TraceLevel,
    /// Packets of traced flows, in time order.
    pub rows: Vec<Row>,
    failed: Option<Error>,
}

impl Capture {
    /// Open rings where the job requests them, and on every program host; `realtime` is the wall clock at the start of
    /// the run, ns.
    pub fn new(job: &Job, wiring: &Wiring, realtime: u64, path: &str) -> Result<Capture> {
        let record = &job.scenario.record;
        let point = if job.capture { record.capture } else { CapturePoint::None };
        let wanted = |side: usize| match side {
            0 => point == CapturePoint::Sender,
            _ => point == CapturePoint::Receiver,
        };
        let mut rings = Vec::new();
        for pair in &wiring.hosts[..job.scenario.flows.len()] {
            for (side, node) in pair.iter().enumerate() {
                let traced = side == 0 && record.trace != TraceLevel::None;
                if traced || wanted(side) {
                    sys::enter(node.fd())?;
                    let kept = wanted(side) || job.program.is_some();
                    rings.push((Ring::new(sys::interface_index(DEVICE)?)?, Use::Flows(kept.then_some(0))));
                }
            }
        }
        let mut places = 1;
        if job.program.is_some() {
            let between = (wiring.routers[0].fd(), SWITCH);
            let ends = wiring.hosts[0].each_ref().map(|node| (node.fd(), DEVICE));
            rings.clear();
            for (place, (node, device)) in (0..).zip([ends[0], between, ends[1]]) {
                sys::enter(node)?;
                rings.push((Ring::new(sys::interface_index(device)?)?, Use::Flows(Some(place))));
                places = place + 1;
            }
        }
        let file = match point {
            CapturePoint::None => None,
            _ => {
                let mut file = BufWriter::new(File::create(path)?);
                file.write_all(&preamble(places))?;
                Some(file)
            }
        };
        let mut programs = Vec::new();
        for (i, name) in job.live.iter().flat_map(Live::names).enumerate() {
            sys::enter(wiring.programs[i].fd())?;
            let alone = job.live.as_ref().is_some_and(|live| live.devices(i).count() == 1);
            let device = if alone { sys::interface_index(DEVICE)? } else { ANY };
            rings.push((Ring::new(device)?, Use::Program(i, sys::interface_index("lo")?)));
            let mut file = BufWriter::new(File::create(format!("/out/{name}/{name}.pcapng"))?);
            file.write_all(&preamble(1))?;
            programs.push(file);
        }
        Ok(Capture {
            rings,
            zero: realtime,
            file,
            programs,
            traced: record.trace,
            rows: Vec::new(),
            failed: None,
        })
    }

    /// Descriptors that become readable when a ring has packets to drain.
    pub fn fds(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.rings.iter().map(|(ring, _)| ring.fd())
    }

    /// Drain the full blocks of every ring; with `all`, at the end of the run, partly filled ones as well.
    pub fn drain(&mut self, all: bool) -> Result<()> {
        let Capture { rings, zero, file, programs, traced, rows, failed } = self;
        for (ring, use_) in rings {
            let each = |seen: Seen<'_>| {
                let t = seen.t.saturating_sub(*zero);
                let kept = match *use_ {
                    Use::Flows(kept) => kept,
                    Use::Program(_, but) if seen.device == but => return,
                    Use::Program(host, _) => {
                        if let Err(error) = programs[host].write_all(&record(0, t, seen.len, seen.head)) {
                            failed.get_or_insert(error);
                        }
                        return;
                    }
                };
                let header = Header::parse(seen.head);
                if header.is_none() && Udp::parse(seen.head).is_none() {
                    return;
                }
                if let (Some(file), Some(place)) = (file.as_mut(), kept) {
                    if let Err(error) = file.write_all(&record(place, t, seen.len, seen.head)) {
                        failed.get_or_insert(error);
                    }
                }
                let Some(header) = header else { return };
                let outgoing = seen.outgoing;
                let (ours, peer) =
                    if outgoing { (header.source, header.target) } else { (header.target, header.source) };
                let flow = ours.wrapping_sub(SENDER_PORT) as u32;
                if *traced == TraceLevel::All || (*traced == TraceLevel::Flow && flow == 0) {
                    rows.push(Row { t, flow, peer, outgoing, header });
                }
            };
            match all {
                true => ring.drain_all(each),
                false => ring.drain(each),
            }
        }
        failed.take().map_or(Ok(()), Err)
    }

    /// Close the file; fails if packets were missed.
    pub fn finish(&mut self) -> Result<()> {
        self.drain(true)?;
        for (ring, _) in &self.rings {
            let lost = ring.lost()?;
            if lost > 0 {
                return Err(Error::other(format!("{lost} packets missed the capture")));
            }
        }
        // Each ring is in time order, but packets of several rings are interleaved.
        if self.rings.len() > 1 {
            self.rows.sort_by_key(|row| row.t);
        }
        self.file.iter_mut().chain(&mut self.programs).try_for_each(|file| file.flush())
    }
}

/// Section header and interface descriptions: raw IP packets, nanosecond timestamps.
fn preamble(interfaces: u32) -> Vec<u8> {
    let mut out =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    let resolution = [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]; // if_tsresol = 9, end of options
    for _ in 0..interfaces {
        out.extend(block(1, &[&[101, 0, 0, 0, 0, 0, 0, 0][..], &resolution].concat()));
    }
    out
}

/// An enhanced packet block.
fn record(interface: u32, t: u64, len: u32, head: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(20 + head.len());
    for word in [interface, (t >> 32) as u32, t as u32, head.len() as u32, len] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(head);
    body.resize(body.len().next_multiple_of(4), 0);
    block(6, &body)
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let total = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &total, body, &total].concat()
}
