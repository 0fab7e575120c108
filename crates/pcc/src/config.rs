//! Settings of both ends.

use ackclock_core::{HostPacing, Span};

/// Frequency of the receiver's reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// Datagrams per report.
    pub every: u32,
    /// Longest that a datagram waits for its report.
    pub flush: Span,
    /// Whether a report repeats earlier ones. Otherwise a lost report makes its datagrams look lost.
    pub repeats: bool,
}

impl Default for Feedback {
    fn default() -> Feedback {
        Feedback { every: 1, flush: Span::from_ms(10), repeats: true }
    }
}

/// Settings of one flow's transport; those of the algorithm belong to its controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Payload of a full datagram, bytes.
    pub payload: u32,
    /// The transport's own header, bytes.
    pub header: u32,
    /// Frequency of the receiver's reports.
    pub feedback: Feedback,
    /// A datagram counts as lost when this many later ones were reported, and it was not; at least 1.
    pub reordering: u32,
    /// How much of a late sender's delay is made up.
    pub pacer: HostPacing,
    /// With nothing new to send, data not yet acknowledged is sent again.
    pub fills_up: bool,
    /// Utility takes the rate set instead of the rate at which datagrams left: stalls of the sender go unseen.
    pub nominal: bool,
    /// Datagrams that may be outstanding.
    pub window: u32,
    /// RTT assumed before the first sample.
    pub initial_rtt: Span,
}

impl Default for Config {
    /// Over UDT: 1500-byte IP packets of 20 + 8 + 16 + 1456 bytes.
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
