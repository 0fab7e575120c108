//! What an application and the tables ask of an end.

use std::sync::atomic::Ordering::Relaxed;

use ackclock_core::Span;
use quinn_proto::Dir;

use ackclock_core::datagram::Opaque;
use ackclock_core::Time;

use super::{End, Failure, Row, Sample, Stats};

impl End {
    /// The handshake is complete at this end.
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// Bytes written that the peer is known to have, as far as the stack tells: all or none.
    pub fn acked(&self) -> u64 {
        if self.is_through {
            self.written
        } else {
            0
        }
    }

    /// Bytes read by the application.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The peer has sent all of its data, and it is here, or it has closed.
    pub fn peer_closed(&self) -> bool {
        self.peer_finished
    }

    /// The application has closed this end.
    pub fn is_closing(&self) -> bool {
        self.closes
    }

    /// Nothing is left to do.
    pub fn is_done(&self) -> bool {
        let closed = self.connection.as_ref().is_some_and(|opened| opened.1.is_closed());
        closed || self.closes && self.peer_finished && self.dir == Dir::Uni && self.side.is_server()
    }

    /// Why it gave up, if it did.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Datagrams sent with data of a stream.
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Round-trip times of this end: their sum in ns, and how many.
    pub fn rtt_samples(&self) -> (u128, u64) {
        (self.log.rtt_sum_ns.load(Relaxed).into(), self.log.rtt_samples.load(Relaxed))
    }

    /// Whether the peer opened the connection.
    pub fn is_responder(&self) -> bool {
        self.side.is_server()
    }

    /// Keep a row of each ACK and each datagram with data that leaves, or no longer.
    pub fn set_trace(&mut self, on: bool) {
        self.trace = on.then(Vec::new);
    }

    /// The rows kept so far.
    pub fn take_trace(&mut self) -> Vec<Row> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn note_sent(&mut self, t: Time, datagram: &Opaque) {
        let Some(sample) = self.sample() else { return };
        let row = Row {
            t,
            is_sent: true,
            number: datagram.number,
            len: datagram.len,
            acks: self.stats().acks,
            lost: 0,
            window_before: sample.window,
            sample,
            min_rtt: Span(self.log.min_rtt_ns.load(Relaxed)),
        };
        self.trace.iter_mut().for_each(|rows| rows.push(row));
    }

    /// A row, if what arrived held an ACK.
    pub(super) fn note_ack(&mut self, t: Time, before: &Stats, window_before: u64) {
        let (stats, Some(sample)) = (self.stats(), self.sample()) else { return };
        if stats.acks == before.acks {
            return;
        }
        let row = Row {
            t,
            is_sent: false,
            number: 0,
            len: 0,
            acks: stats.acks,
            lost: stats.lost - before.lost,
            window_before,
            sample,
            min_rtt: stats.min_rtt,
        };
        self.trace.iter_mut().for_each(|rows| rows.push(row));
    }

    /// Counts.
    pub fn stats(&self) -> Stats {
        let stats = self.connection.as_ref().map(|opened| opened.1.stats()).unwrap_or_default();
        let (rtt_sum_ns, rtt_samples) = self.rtt_samples();
        Stats {
            sent: stats.path.sent_packets,
            lost: stats.path.lost_packets,
            sent_bytes: stats.udp_tx.bytes,
            acks: stats.frame_rx.acks,
            reductions: self.log.reductions.load(Relaxed),
            rtt_sum_ns,
            rtt_samples,
            min_rtt: Span(self.log.min_rtt_ns.load(Relaxed)),
        }
    }

    /// What it is doing, once there is a connection.
    pub fn sample(&self) -> Option<Sample> {
        let connection = &self.connection.as_ref()?.1;
        let ssthresh = self.log.ssthresh.load(Relaxed);
        Some(Sample {
            window: connection.congestion_state().window(),
            in_flight: self.log.in_flight.load(Relaxed),
            ssthresh: (ssthresh != u64::MAX).then_some(ssthresh),
            srtt: Span(connection.rtt().as_nanos() as u64),
            mtu: connection.current_mtu(),
        })
    }
}
