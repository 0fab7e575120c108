//! Encoding of datagrams after the UDP header, with the lengths assumed by the simulator. Numbers are big-endian.
//!
//! | bytes | data of PCC | report of PCC | plain traffic |
//! | --- | --- | --- | --- |
//! | 0 | kind | 0x80 | number, 4 |
//! | 1 | which transmission | largest number, 5 | |
//! | 2 | number, 5 | | |
//! | 4 | | | time of sending, ns, 8 |
//! | 6 | | next piece, 5 | |
//! | 7 | piece, 5 | | |
//! | 11 | | delay of the report, ns, 4 | |
//! | 12 | time of sending, us, 4 | | payload |
//! | 15 | | bitmap of arrivals below the largest, 17 | |
//! | 16 | payload | | |
//!
//! Differs: a report covers 136 numbers, the simulator's 256. The difference shows only if more than 136 datagrams are
//! lost in a row or joined in one report.

use ackclock_core::datagram::{Data, DataKind, Datagram, Report, UDP_IP_BYTES};
use ackclock_core::{Span, Time};

/// Header size of PCC data, bytes.
pub const HEADER: usize = 16;
/// Header size of plain traffic (number and time), bytes.
pub const PLAIN: usize = 12;
/// Report size, bytes.
const REPORT: usize = 32;
/// First byte of a report.
const IS_REPORT: u8 = 0x80;

/// Encode a datagram; returns its length. `out` must be zero wherever payload lies.
pub fn encode(datagram: &Datagram, out: &mut [u8]) -> usize {
    let bytes = (datagram.ip_bytes() - UDP_IP_BYTES) as usize;
    match datagram {
        Datagram::Data(data) if data.header == 0 => {
            out[..4].copy_from_slice(&(data.number as u32).to_be_bytes());
            out[4..12].copy_from_slice(&data.sent.0.to_be_bytes());
        }
        Datagram::Data(data) => {
            out[0] = data.kind as u8;
            out[1] = data.rexmit;
            put(&mut out[2..7], data.number);
            put(&mut out[7..12], data.chunk);
            put(&mut out[12..16], data.sent.0 / 1000);
        }
        Datagram::Report(report) => {
            out[0] = IS_REPORT;
            put(&mut out[1..6], report.largest);
            put(&mut out[6..11], report.next_chunk);
            put(&mut out[11..15], report.held.0.min(u32::MAX as u64));
            for (i, byte) in out[15..REPORT].iter_mut().enumerate() {
                *byte = (report.received[i / 8] >> (8 * (i % 8))) as u8;
            }
        }
        Datagram::Opaque(_) => {} // the kernel's endpoints send none
    }
    bytes
}

/// Decode a `len`-byte PCC or plain-traffic datagram, of which at least the header is present; `None` if it is neither.
pub fn decode(bytes: &[u8], len: usize, plain: bool) -> Option<Datagram> {
    if plain {
        let number = get(bytes.get(..4)?);
        let sent = Time(get(bytes.get(4..PLAIN)?));
        let len = len as u32;
        return Some(Datagram::Data(Data { number, chunk: number, sent, len, ..Data::default() }));
    }
    if *bytes.first()? == IS_REPORT {
        let bits = bytes.get(15..REPORT)?;
        let mut report = Report {
            largest: get(&bytes[1..6]),
            next_chunk: get(&bytes[6..11]),
            held: Span(get(&bytes[11..15])),
            len: len as u32,
            ..Report::default()
        };
        for (i, &byte) in bits.iter().enumerate() {
            report.received[i / 8] |= (byte as u64) << (8 * (i % 8));
        }
        return Some(Datagram::Report(report));
    }
    let kind = KINDS.into_iter().find(|kind| *kind as u8 == bytes[0])?;
    let header = bytes.get(..HEADER)?;
    Some(Datagram::Data(Data {
        number: get(&header[2..7]),
        chunk: get(&header[7..12]),
        sent: Time(get(&header[12..16]) * 1000),
        len: len.checked_sub(HEADER)? as u32,
        header: HEADER as u16,
        rexmit: header[1],
        kind,
    }))
}

const KINDS: [DataKind; 5] =
    [DataKind::Payload, DataKind::Last, DataKind::Hello, DataKind::Close, DataKind::Request];

/// Low-order bytes of a number.
fn put(out: &mut [u8], value: u64) {
    let bytes = value.to_be_bytes();
    out.copy_from_slice(&bytes[8 - out.len()..]);
}

fn get(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, &byte| sum << 8 | byte as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(datagram: &Datagram, plain: bool) -> Datagram {
        let mut bytes = [0; 2000];
        let n = encode(datagram, &mut bytes);
        assert_eq!(n as u32 + UDP_IP_BYTES, datagram.ip_bytes());
        for cut in 0..n {
            // a packet truncated in the payload decodes as a shorter one; one truncated in the header does not decode
            if let Some(Datagram::Data(data)) = decode(&bytes[..cut], cut, plain) {
                assert!(cut >= if plain { PLAIN } else { HEADER }, "{cut} {data:?}");
            }
        }
        decode(&bytes[..n.min(64)], n, plain).expect("a datagram")
    }

    #[test]
    fn data_comes_out_as_it_went_in() {
        for kind in KINDS {
            let data = Data {
                number: 0x12_3456_789a,
                chunk: 0xff_0000_0001,
                sent: Time(4_000_001_000),
                len: if matches!(kind, DataKind::Hello | DataKind::Close) { 0 } else { 1456 },
                header: 16,
                rexmit: 3,
                kind,
            };
            assert_eq!(round(&Datagram::Data(data), false), Datagram::Data(data));
        }
        let plain = Data { number: 9, chunk: 9, sent: Time(77), len: 172, ..Data::default() };
        assert_eq!(round(&Datagram::Data(plain), true), Datagram::Data(plain));
    }

    #[test]
    fn a_report_says_what_arrived_among_the_136_below_the_largest() {
        let bits = |i: u64| [3, 63, 64, 127, 128, 135].contains(&i);
        let mut received = [0; 4];
        for i in (0..136).filter(|&i| bits(i)) {
            received[i as usize / 64] |= 1 << (i % 64);
        }
        let report =
            Report { next_chunk: 5, largest: 1 << 39, held: Span(9_999), received, fresh: 0, len: 32 };
        assert_eq!(round(&Datagram::Report(report), false), Datagram::Report(report));
    }

    #[test]
    fn what_is_no_datagram_is_none() {
        assert_eq!(decode(&[], 0, false), None);
        assert_eq!(decode(&[5; 100], 100, false), None);
        assert_eq!(decode(&[IS_REPORT; 31], 31, false), None);
        assert_eq!(decode(&[0; 11], 11, true), None);
    }
}
