//! Reads frames of pcap and pcapng files, in either byte order and with any time unit. Memory: one block, at most
//! [`MAX_BLOCK`].
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.

use std::io::{self, BufReader, Read};

use crate::{broken, Error};

/// Maximum size of a pcapng block, bytes.
pub const MAX_BLOCK: u32 = 1 << 24;

/// Maximum size of a frame, bytes: the maximum snap length of libpcap.
pub const MAX_FRAME: u32 = 262_144;

/// Maximum number of interfaces in a section.
const MAX_INTERFACES: usize = 4096;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Time, nanoseconds since 1970.
    pub t_ns: i64,
    /// Number of the interface, counted over all sections.
    pub interface: u32,
    /// Link type, as numbered by tcpdump.org.
    pub link: u16,
    /// Captured bytes of the frame.
    pub bytes: &'a [u8],
    /// Length of the frame on the wire, bytes.
    pub on_wire: u32,
}

#[derive(Clone, Copy)]
struct Interface {
    link: u16,
    /// Clock ticks per second.
    ticks: u64,
    offset_s: i64,
    number: u32,
}

enum Format {
    Pcap(Interface),
    Pcapng,
}

/// Reader that returns a capture frame by frame.
pub struct Frames<R> {
    input: BufReader<R>,
    format: Format,
    big_endian: bool,
    interfaces: Vec<Interface>,
    known: u32,
    block: Vec<u8>,
    read: u64,
    frames: u64,
    /// Whether the last frame is truncated, as happens when the capturing program is killed.
    pub cut: bool,
    /// Packets reported as missed by the capturing program.
    pub dropped: u64,
    /// Frames without a capture time, which are skipped.
    pub without_time: u64,
}

/// Frame header.
struct Found {
    t_ns: i64,
    interface: Interface,
    at: usize,
    kept: usize,
    on_wire: u32,
}

impl<R: Read> Frames<R> {
    /// Open a capture.
    ///
    /// # Errors
    /// If the input is not a capture.
    pub fn open(input: R) -> Result<Self, Error> {
        let mut frames = Frames {
            input: BufReader::with_capacity(1 << 20, input),
            format: Format::Pcapng,
            big_endian: false,
            interfaces: Vec::new(),
            known: 0,
            block: Vec::new(),
            read: 0,
            frames: 0,
            cut: false,
            dropped: 0,
            without_time: 0,
        };
        let mut magic = [0; 4];
        if !frames.fill(&mut magic)? {
            return broken("found an empty file; allowed: a capture, pcap or pcapng");
        }
        if u32::from_le_bytes(magic) == SECTION_HEADER {
            frames.section()?;
            return Ok(frames);
        }
        let (big_endian, ticks) = match u32::from_be_bytes(magic) {
            0xa1b2_c3d4 => (true, 1_000_000),
            0xd4c3_b2a1 => (false, 1_000_000),
            0xa1b2_3c4d => (true, 1_000_000_000),
            0x4d3c_b2a1 => (false, 1_000_000_000),
            found => {
                return broken(format!(
                    "found a file that begins with {found:#010x}; allowed: a capture, pcap or pcapng"
                ))
            }
        };
        frames.big_endian = big_endian;
        let mut head = [0; 20];
        if !frames.fill(&mut head)? {
            return broken("found a pcap file that ends within its header");
        }
        let link = frames.u32(&head, 16) as u16; // the upper half describes the frame check sequence
        frames.format = Format::Pcap(Interface { link, ticks, offset_s: 0, number: 0 });
        Ok(frames)
    }

    /// Number of bytes read so far.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// Number of frames returned so far.
    pub fn count(&self) -> u64 {
        self.frames
    }

    /// Return the next frame; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read or violates its format.
    #[allow(clippy::should_implement_trait, reason = "it lends its buffer, which an iterator cannot")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Error> {
        let found = match self.format {
            Format::Pcap(interface) => self.next_pcap(interface)?,
            Format::Pcapng => self.next_pcapng()?,
        };
        Ok(found.map(|found| {
            self.frames += 1;
            Frame {
                t_ns: found.t_ns,
                interface: found.interface.number,
                link: found.interface.link,
                bytes: &self.block[found.at..found.at + found.kept],
                on_wire: found.on_wire,
            }
        }))
    }

    fn next_pcap(&mut self, interface: Interface) -> Result<Option<Found>, Error> {
        let mut head = [0; 16];
        if !self.fill(&mut head)? {
            return Ok(None);
        }
        let (seconds, part) = (self.u32(&head, 0), self.u32(&head, 4));
        let (kept, on_wire) = (self.u32(&head, 8), self.u32(&head, 12));
        if kept > MAX_FRAME {
            return broken(format!(
                "frame {}: found {kept} captured bytes; allowed: at most {MAX_FRAME}",
                self.frames + 1
            ));
        }
        if !self.take(kept as usize)? {
            return Ok(None);
        }
        let part_ns = u64::from(part) * (1_000_000_000 / interface.ticks);
        let t_ns = i64::from(seconds) * 1_000_000_000 + part_ns as i64;
        Ok(Some(Found { t_ns, interface, at: 0, kept: kept as usize, on_wire: on_wire.max(kept) }))
    }

    fn next_pcapng(&mut self) -> Result<Option<Found>, Error> {
        loop {
            let mut head = [0; 4];
            if !self.fill(&mut head)? {
                return Ok(None);
            }
            if u32::from_le_bytes(head) == SECTION_HEADER {
                self.section()?;
                continue;
            }
            let kind = self.u32(&head, 0);
            if !self.fill(&mut head)? {
                self.cut = true;
                return Ok(None);
            }
            let length = self.u32(&head, 0);
            if length < 12 || !length.is_multiple_of(4) || length > MAX_BLOCK {
                return broken(format!(
                    "byte {}: found a block of {length} bytes; allowed: a multiple of 4 from 12 to {MAX_BLOCK}",
                    self.read - 8
                ));
            }
            if !self.take(length as usize - 8)? {
                return Ok(None);
            }
            let tail = self.u32(&self.block, length as usize - 12);
            if tail != length {
                return broken(format!(
                    "byte {}: found a block of {length} bytes that ends as one of {tail}; allowed: the same twice",
                    self.read - u64::from(length)
                ));
            }
            let body = length as usize - 12;
            match kind {
                1 => self.interface(body)?,
                2 | 6 => {
                    if let Some(found) = self.packet(body, kind == 6)? {
                        return Ok(Some(found));
                    }
                }
                3 => self.without_time += 1,
                5 => self.statistics(body),
                _ => {}
            }
        }
    }

    /// Read the rest of a section header, after its type.
    fn section(&mut self) -> Result<(), Error> {
        let mut head = [0; 8];
        if !self.fill(&mut head)? {
            return broken("found a section header that the file's end cuts off");
        }
        self.big_endian = match u32::from_be_bytes([head[4], head[5], head[6], head[7]]) {
            BYTE_ORDER_MAGIC => true,
            0x4d3c_2b1a => false,
            found => {
                return broken(format!("found the byte-order magic {found:#010x}; allowed: 0x1a2b3c4d"));
            }
        };
        let length = self.u32(&head, 0);
        if length < 28 || !length.is_multiple_of(4) || length > MAX_BLOCK {
            return broken(format!(
                "found a section header of {length} bytes; allowed: a multiple of 4 from 28 to {MAX_BLOCK}"
            ));
        }
        if !self.take(length as usize - 12)? {
            return broken("found a section header that the file's end cuts off");
        }
        let major = self.u16(&self.block, 0);
        if major != 1 {
            return broken(format!("found version {major} of pcapng; allowed: 1"));
        }
        self.interfaces.clear();
        Ok(())
    }

    fn interface(&mut self, body: usize) -> Result<(), Error> {
        if body < 8 {
            return broken("found an interface's block of less than 8 bytes");
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return broken(format!("found more than {MAX_INTERFACES} interfaces; allowed: at most so many"));
        }
        let mut made =
            Interface { link: self.u16(&self.block, 0), ticks: 1_000_000, offset_s: 0, number: self.known };
        for (code, value) in self.options(8, body) {
            match (code, value) {
                (9, [resolution, ..]) => {
                    let exponent = u32::from(resolution & 0x7f);
                    let ticks = match resolution & 0x80 {
                        0 => 10u64.checked_pow(exponent),
                        _ => 2u64.checked_pow(exponent),
                    };
                    match ticks {
                        Some(ticks) => made.ticks = ticks,
                        None => {
                            return broken(format!(
                                "found a resolution of time of {resolution:#04x}; allowed: down to 10^-19 and 2^-63 s"
                            ))
                        }
                    }
                }
                (14, value) if value.len() >= 8 => {
                    let (low, high) = (self.u32(value, 0), self.u32(value, 4));
                    let (low, high) = if self.big_endian { (high, low) } else { (low, high) };
                    made.offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
        }
        self.interfaces.push(made);
        self.known += 1;
        Ok(())
    }

    /// Parse an enhanced packet block, or a packet block, its predecessor.
    fn packet(&mut self, body: usize, enhanced: bool) -> Result<Option<Found>, Error> {
        let block = &self.block;
        let at = 20;
        if body < at {
            return broken(format!("byte {}: found a packet's block of {body} bytes", self.read));
        }
        let which = if enhanced { self.u32(block, 0) } else { u32::from(self.u16(block, 0)) };
        let missed = if enhanced { 0 } else { self.u16(block, 2) };
        let ticks = u64::from(self.u32(block, 4)) << 32 | u64::from(self.u32(block, 8));
        let (kept, on_wire) = (self.u32(block, 12), self.u32(block, 16));
        let Some(&interface) = self.interfaces.get(which as usize) else {
            return broken(format!(
                "frame {}: found interface {which}; allowed: one of the {} that the section describes",
                self.frames + 1,
                self.interfaces.len()
            ));
        };
        if kept as usize > body - at || kept > MAX_FRAME {
            return broken(format!(
                "frame {}: found {kept} captured bytes in a block of {body}; allowed: what fits, at most {MAX_FRAME}",
                self.frames + 1
            ));
        }
        if missed != u16::MAX {
            self.dropped += u64::from(missed);
        }
        let whole = i128::from(ticks) * 1_000_000_000 / i128::from(interface.ticks)
            + i128::from(interface.offset_s) * 1_000_000_000;
        let t_ns = whole.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let behind = (at + kept as usize).next_multiple_of(4).min(body);
        let mut lost = 0;
        for (code, value) in self.options(behind, body) {
            if code == 4 && value.len() >= 8 {
                lost = u64::from(self.u32(value, if self.big_endian { 4 } else { 0 }));
            }
        }
        self.dropped += lost;
        // simple packet blocks and old packet blocks do not always contain the length on the wire
        Ok(Some(Found { t_ns, interface, at, kept: kept as usize, on_wire: on_wire.max(kept) }))
    }

    /// Read statistics at the end of a capture: packets missed by the capturing program or the kernel.
    fn statistics(&mut self, body: usize) {
        if body < 12 {
            return;
        }
        let mut missed = 0;
        for (code, value) in self.options(12, body) {
            if matches!(code, 5 | 7) && value.len() >= 8 {
                missed += u64::from(self.u32(value, if self.big_endian { 4 } else { 0 }));
            }
        }
        self.dropped = self.dropped.saturating_add(missed);
    }

    /// Iterate over the options of the block, starting at `at`.
    fn options(&self, mut at: usize, end: usize) -> impl Iterator<Item = (u16, &[u8])> {
        std::iter::from_fn(move || {
            if at + 4 > end {
                return None;
            }
            let (code, length) = (self.u16(&self.block, at), usize::from(self.u16(&self.block, at + 2)));
            let from = at + 4;
            if code == 0 || from + length > end {
                return None;
            }
            at = from + length.next_multiple_of(4);
            Some((code, &self.block[from..from + length]))
        })
    }

    /// Fill a header. Returns false at the end of the file, even if it truncates the header.
    fn fill(&mut self, into: &mut [u8]) -> Result<bool, Error> {
        let mut got = 0;
        while got < into.len() {
            match self.input.read(&mut into[got..]) {
                Ok(0) => {
                    self.cut |= got > 0;
                    return Ok(false);
                }
                Ok(n) => got += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.read += got as u64;
        Ok(true)
    }

    /// Read this many bytes into `block`. Returns false if the file ends first.
    fn take(&mut self, bytes: usize) -> Result<bool, Error> {
        if self.block.len() < bytes {
            self.block.resize(bytes, 0);
        }
        let mut block = std::mem::take(&mut self.block);
        let whole = self.fill(&mut block[..bytes]);
        self.block = block;
        self.cut |= matches!(whole, Ok(false));
        whole
    }

    fn u16(&self, from: &[u8], at: usize) -> u16 {
        let two = [from[at], from[at + 1]];
        if self.big_endian {
            u16::from_be_bytes(two)
        } else {
            u16::from_le_bytes(two)
        }
    }

    fn u32(&self, from: &[u8], at: usize) -> u32 {
        let four = [from[at], from[at + 1], from[at + 2], from[at + 3]];
        if self.big_endian {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    }
}
