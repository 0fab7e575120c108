//! TCP captures, read as untrusted files: streaming, with bounded memory and every length checked.
//!
//! [`mod@file`] splits pcap and pcapng into frames, [`packet`] decodes a frame into a TCP segment ([`layers`] handles
//! the layers around IP), [`ranges`] are sets of sequence space, [`way`] is the scoreboard of one direction and
//! [`counts`] its results, and [`connection`] joins both directions and finds the connections of a file.
//!
//! Losses are inferred from SACK, DSACK and timestamps, not from time thresholds: a retransmission counts as a loss
//! unless a DSACK (RFC 2883), the echo of an older timestamp (RFC 3522) or an earlier ACK shows that it was
//! unnecessary.

pub mod connection;
pub mod counts;
pub mod file;
pub mod layers;
pub mod packet;
pub mod ranges;
pub mod way;

pub use connection::{read, read_once, Connection, Connections, Place, Row};
pub use file::{Frame, Frames};

/// Errors in a capture. Messages state the value found and the values allowed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is not a capture, or is damaged.
    #[error("{0}")]
    Format(String),
    /// The caller cancelled.
    #[error("stopped")]
    Stopped,
}

pub(crate) fn broken<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error::Format(what.into()))
}
