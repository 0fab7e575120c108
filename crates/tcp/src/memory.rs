//! Memory that a packet occupies in a receive buffer, and the fraction of it that is payload (Linux
//! `truesize`, `scaling_ratio`; sizes as measured on 64 bits).

use ackclock_core::choice;

/// Aligned sizes of Linux `struct sk_buff` and `skb_shared_info`, bytes.
const SK_BUFF: u32 = 256;
const SHARED_INFO: u32 = 320;
/// Cache line, bytes. Sizes are multiples of it.
const LINE: u32 = 64;
/// Maximum size of a head taken from the separate small-head cache (Linux SKB_SMALL_HEAD_CACHE_SIZE), bytes.
const SMALL_HEAD: u32 = 576;
/// Unused bytes before the headers (Linux NET_SKB_PAD).
const PAD: u32 = 64;

/// Page size, and number of bytes that fit into a packet's head. The rest of a larger packet is stored in pages.
const PAGE: u32 = 4096;
const LINEAR: u32 = PAGE - SHARED_INFO - PAD;

/// Maximum number of fragments per packet (Linux MAX_SKB_FRAGS). Up to this number, following data is
/// merged into the packet and its own head is freed (`skb_try_coalesce`).
pub const MOST_PIECES: u32 = 17;

/// Bytes that the sender's application writes into one page (Linux SKB_FRAG_PAGE_ORDER).
const SENT_PAGE: u64 = 32_768;

/// Payload per page after packets have been collapsed, bytes.
pub const COPY: u64 = (PAGE - SHARED_INFO) as u64;

/// Memory used by this many bytes once they have been collapsed (Linux `tcp_collapse`).
pub fn copied_together(bytes: u64) -> u64 {
    let rest = (bytes % COPY) as u32;
    let whole = bytes / COPY * (PAGE + SK_BUFF) as u64;
    whole + if rest > 0 { (head(rest) + SK_BUFF) as u64 } else { 0 }
}

/// Bytes that can still be copied into the last packet after this many bytes have been collapsed.
pub fn room_behind_copies(bytes: u64) -> u32 {
    match (bytes % COPY) as u32 {
        0 => 0,
        rest => head(rest) - SHARED_INFO - rest,
    }
}

/// Size of the memory block that stores this many bytes and the kernel's data after them.
fn head(bytes: u32) -> u32 {
    match bytes.next_multiple_of(LINE) + SHARED_INFO {
        size if size <= SMALL_HEAD => SMALL_HEAD,
        size => size.next_power_of_two(),
    }
}

/// Origin of an arriving packet's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketMemory {
    /// The device, which copies the packet (TUN).
    Copied,
    /// The sender on the same machine: a head, and exactly the payload (veth).
    HandedOn,
}

choice! { PacketMemory: Copied "copied", HandedOn "handed-on" }

impl PacketMemory {
    /// Memory used by a packet with `len` bytes of payload and `overhead` bytes of headers.
    #[inline]
    pub fn of(self, len: u32, overhead: u32) -> u64 {
        match self {
            PacketMemory::Copied => copied(len, overhead),
            PacketMemory::HandedOn => (SMALL_HEAD + SK_BUFF + len) as u64,
        }
    }

    /// Number of fragments of a packet that can be merged into another packet; 0 if its memory belongs to the
    /// device. `start` is the packet's offset in the stream. A packet that arrived `whole` has one fragment
    /// per page of its sender; one that was split and merged again has one per segment of `mss` bytes. (Linux
    /// `skb_shinfo(skb)->nr_frags`. Differs: a page begins where the previous one is full, whereas Linux
    /// leaves its last 31 bytes empty.)
    pub fn pieces(self, start: u64, len: u32, mss: u32, whole: bool) -> u32 {
        if self == PacketMemory::Copied || len == 0 {
            return 0;
        }
        let (first, mss) = (start.saturating_sub(1), mss.max(1) as u64);
        let (from, to) = (first / SENT_PAGE, (first + len as u64 - 1) / SENT_PAGE);
        if whole {
            return 1 + (to - from) as u32;
        }
        let cut = (from + 1..=to).filter(|page| !(page * SENT_PAGE - first).is_multiple_of(mss));
        (len as u64).div_ceil(mss) as u32 + cut.count() as u32
    }

    /// Bytes of the next packet that can be appended to a packet with `len` bytes of payload.
    pub fn room_behind(self, len: u32, overhead: u32) -> u32 {
        let used = PAD + len + overhead;
        match self {
            PacketMemory::Copied if len + overhead <= LINEAR => head(used) - SHARED_INFO - used,
            _ => 0,
        }
    }

    /// Payload ratio of full Ethernet segments.
    pub fn full(self) -> Share {
        Share::of(1448, self.of(1448, 52))
    }
}

fn copied(len: u32, overhead: u32) -> u64 {
    if len + overhead > LINEAR {
        return ((len + overhead - LINEAR).next_multiple_of(PAGE) + PAGE + SK_BUFF) as u64;
    }
    (head(PAD + len + overhead) + SK_BUFF) as u64
}

/// Payload as a fraction of memory, in units of 1/256 (Linux `scaling_ratio`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share(u64);

impl Default for Share {
    /// Ratio before the first segment (Linux TCP_DEFAULT_SCALING_RATIO).
    fn default() -> Share {
        Share(128)
    }
}

impl Share {
    /// Return the minimum memory needed for a window of `window` bytes.
    pub fn needed(self, window: u64) -> u64 {
        (window << 8).div_ceil(self.0)
    }

    /// Return the ratio for segments of this length, each of which occupies `memory` bytes.
    pub fn of(len: u32, memory: u64) -> Share {
        Share(((len as u64) << 8).checked_div(memory).unwrap_or(0).max(1))
    }

    /// Return the window that `memory` bytes provide (Linux `tcp_win_from_space`).
    #[inline]
    pub fn window(self, memory: u64) -> u64 {
        (memory * self.0) >> 8
    }

    /// Return the memory for a window of `window` bytes, rounded down (Linux `tcp_space_from_win`).
    #[inline]
    pub fn memory(self, window: u64) -> u64 {
        (window << 8) / self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_a_piece_in_each_page_of_its_sender_and_a_segment_of_it_too() {
        let pieces = |start, len, whole| PacketMemory::HandedOn.pieces(start, len, 1448, whole);
        assert_eq!((pieces(1, 1448, true), pieces(1, 14_480, true)), (1, 1));
        assert_eq!((pieces(1, 32_768, true), pieces(1, 32_769, true), pieces(32_769, 10, true)), (1, 2, 1));
        assert_eq!((pieces(1, 14_480, false), pieces(32_000, 1448, false)), (10, 2));
        // page and segment end at the same byte: 32768 = 31320 + 1448
        assert_eq!((pieces(31_321, 2896, false), pieces(30_001, 2896, false)), (2, 3));
        assert_eq!(PacketMemory::Copied.pieces(1, 1448, 1448, true), 0);
    }

    #[test]
    fn sizes_as_measured_behind_a_tun_device() {
        let memory = |len| PacketMemory::Copied.of(len, 52);
        assert_eq!(memory(1448), 2304);
        assert_eq!(memory(1000), 2304);
        assert_eq!(memory(500), 1280);
        assert_eq!(memory(10), 832);
        assert_eq!(memory(640), 2304);
        assert_eq!(memory(10_000), 256 + 3 * 4096);
        assert_eq!(PacketMemory::Copied.full(), Share(160));
        assert_eq!(Share::of(1000, memory(1000)).window(2304), 999);
    }

    #[test]
    fn sizes_as_measured_behind_a_veth() {
        let memory = |len| PacketMemory::HandedOn.of(len, 52);
        assert_eq!(memory(1448), 2280);
        assert_eq!(PacketMemory::HandedOn.full(), Share(162));
        assert_eq!(Share(162).window(131_072), 82_944);
    }
}
