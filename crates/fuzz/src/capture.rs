//! Captures of any origin: each is read or rejected, in bounded memory, and its counts are consistent.

use ackclock_capture::{read, Connections};

/// Maximum number of requested rows of a connection.
const MOST_ROWS: usize = 10_000;

/// Read arbitrary bytes as a capture, including the packets of its first connection. Return whether they are a valid
/// capture.
///
/// # Panics
/// Panics if counts are inconsistent.
pub fn play(data: &[u8]) -> bool {
    let Ok(found) = read(|| Ok(data), Some(0), MOST_ROWS, |_| true) else { return false };
    check(&found, data.len());
    true
}

fn check(found: &Connections, bytes: usize) {
    assert!(found.frames as usize <= bytes / 16 && found.segments <= found.frames);
    assert!(found.all.len() <= found.segments as usize);
    assert!(found.rows.len() <= 5 * found.segments as usize, "a segment carries at most four blocks");
    let mut packets = 0;
    for one in &found.all {
        assert!(one.span_ns.0 <= one.span_ns.1);
        for way in &one.ways {
            let counts = &way.counts;
            packets += counts.packets;
            assert!(counts.spurious <= counts.retransmitted, "{counts:?}");
            assert!(counts.retransmitted <= counts.segments, "{counts:?}");
            assert!(
                counts.bytes >= 0 && counts.retransmitted_bytes >= 0 && counts.unseen_bytes >= 0,
                "{counts:?}"
            );
            assert!(counts.rtts == 0 || counts.rtt_min_ns <= counts.rtt_max_ns, "{counts:?}");
        }
    }
    assert!(found.copies <= found.segments);
    let left_out = if found.without_copies { found.copies } else { 0 };
    assert_eq!(packets, found.segments - left_out);
}
