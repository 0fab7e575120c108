//! Settings of sender and receiver.

use ackclock_core::{HostPacing, Span};

/// How often the receiver sends reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// Number of datagrams per report.
    pub every: u32,
    /// Maximum time a datagram waits for its report.
    pub flush: Span,
    /// Whether a report repeats earlier ones. If not, the datagrams of a lost report appear to be lost.
    pub repeats: bool,
}

impl Default for Feedback {
    fn default() -> Feedback {
        Feedback { every: 1, flush: Span::from_ms(10), repeats: true }
    }
}

/// Transport settings of one flow. Settings of the algorithm belong to its controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Payload of a full datagram, bytes.
    pub payload: u32,
    /// Size of the transport's own header, bytes.
    pub header: u32,
    /// How often the receiver sends reports.
    pub feedback: Feedback,
    /// Reordering tolerance: an unreported datagram is considered lost once this many later ones have been
    /// reported; at least 1.
    pub reordering: u32,
    /// How the sender catches up after late transmissions.
    pub pacer: HostPacing,
    /// Whether unacknowledged data is retransmitted while there is no new data.
    pub fills_up: bool,
    /// Whether the utility uses the set rate instead of the measured sending rate, so that sender stalls do
    /// not affect it.
    pub nominal: bool,
    /// Maximum number of outstanding datagrams.
    pub window: u32,
    /// RTT assumed before the first sample.
    pub initial_rtt: Span,
}

impl Default for Config {
    /// Values for UDT: 1500-byte IP packets of 20 + 8 + 16 + 1456 bytes.
    fn default() -> Config {
        Config {
            payload: 1456,
            header: 16,
            feedback: Feedback::default(),
            reordering: 3,
            pacer: HostPacing::default(),
            fills_up: false,
            nominal: false,
            window: 100_000,
            initial_rtt: Span::from_ms(100),
        }
    }
}

impl Config {
    /// IP packet size of a full datagram, bytes.
    pub fn packet_bytes(&self) -> u32 {
        self.payload + self.header + ackclock_core::datagram::UDP_IP_BYTES
    }
}
