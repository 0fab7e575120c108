//! Captures of TCP, read as one reads a stranger's file: streaming, with bounded memory, every length checked.
//!
//! [`mod@file`] takes pcap and pcapng apart into frames, [`packet`] a frame into what TCP sees of it ([`layers`] is what lies around IP), [`ranges`] are sets of sequence
//! space, [`way`] is the scoreboard of one direction and [`counts`] what it comes to, and [`connection`] joins both and finds the connections of a file.
//!
//! What was lost is told from SACK, DSACK and timestamps, not from thresholds of time: a retransmission is counted as a loss unless a
//! DSACK (RFC 2883), the echo of an older timestamp (RFC 3522) or an ACK that had come before it shows that it was sent for nothing.

pub mod connection;
pub mod counts;
pub mod file;
pub mod layers;
pub mod packet;
pub mod ranges;
pub mod way;

pub use connection::{read, read_once, Connection, Connections, Place, Row};
pub use file::{Frame, Frames};

/// Errors in a file. The texts give the found and the allowed value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is not a capture, or a broken one.
    #[error("{0}")]
    Format(String),
    /// The caller has cancelled.
    #[error("stopped")]
    Stopped,
}

pub(crate) fn broken<T>(what: impl Into<String>) -> Result<T, Error> {
    Err(Error::Format(what.into()))
}
