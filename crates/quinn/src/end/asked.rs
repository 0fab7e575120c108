//! Operations on an end, called by the application and the result tables.

use std::sync::atomic::Ordering::Relaxed;

use ackclock_core::datagram::Opaque;
use ackclock_core::foreign::{Failure, Foreign, Row, Sample, Stats};
use ackclock_core::packet::Ecn;
use ackclock_core::{Span, Time};
use bytes::{Bytes, BytesMut};
use quinn_proto::{DatagramEvent, Dir, EcnCodepoint, VarInt};

use super::{End, CLIENT, SERVER};

impl Foreign for End {
    fn connect(&mut self, now: Time) {
        let Some(config) = self.client.take() else { return };
        match self.endpoint.connect(self.clock.instant(now), config, SERVER, "server") {
            Ok(opened) => self.connection = Some(Box::new(opened)),
            Err(_) => self.failure = Some(Failure::Refused),
        }
        self.work(now);
    }

    fn write(&mut self, now: Time, bytes: u64) {
        self.to_write += bytes;
        self.work(now);
    }

    fn write_forever(&mut self, now: Time) {
        self.forever = true;
        self.work(now);
    }

    fn close(&mut self, now: Time) {
        self.closes = true;
        self.work(now);
    }

    fn stop_writing(&mut self, now: Time) {
        (self.to_write, self.forever) = (0, false);
        if let (false, Some(opened)) = (self.is_through, &mut self.connection) {
            opened.1.close(self.clock.instant(now), VarInt::from_u32(0), Bytes::new());
        }
        self.is_through = true;
        self.work(now);
    }

    fn arrive(&mut self, now: Time, datagram: &Opaque, ecn: Ecn) {
        let before = self.trace.is_some().then(|| (self.stats(), self.sample()));
        let bytes = self.carried.take(datagram, |bytes| BytesMut::from(bytes));
        let (own, peer) = if self.side.is_client() { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let at = self.clock.instant(now);
        self.scratch.clear();
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        match self.endpoint.handle(at, peer, Some(own.ip()), ecn, bytes, &mut self.scratch) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(opened) = self.connection.as_mut().filter(|opened| opened.0 == handle) {
                    opened.1.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, at, &mut self.scratch, None) {
                    Ok(accepted) => self.connection = Some(Box::new(accepted)),
                    Err(error) => {
                        self.failure = Some(Failure::Refused);
                        self.respond(error.response.map_or(0, |transmit| transmit.size));
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(transmit)) => self.respond(transmit.size),
            None => {}
        }
        self.work(now);
        if let Some((stats, Some(sample))) = before {
            self.note_ack(now, &stats, sample.window);
        }
    }

    fn is_established(&self) -> bool {
        self.is_established
    }

    fn acked(&self) -> u64 {
        if self.is_through {
            self.written
        } else {
            0
        }
    }

    fn received(&self) -> u64 {
        self.received
    }

    fn peer_closed(&self) -> bool {
        self.peer_finished
    }

    fn is_closing(&self) -> bool {
        self.closes
    }

    fn is_done(&self) -> bool {
        let closed = self.connection.as_ref().is_some_and(|opened| opened.1.is_closed());
        closed || self.closes && self.peer_finished && self.dir == Dir::Uni && self.side.is_server()
    }

    fn failure(&self) -> Option<Failure> {
        self.failure
    }

    fn rtt_samples(&self) -> (u128, u64) {
        (self.log.rtt_sum_ns.load(Relaxed).into(), self.log.rtt_samples.load(Relaxed))
    }

    fn is_responder(&self) -> bool {
        self.side.is_server()
    }

    fn set_trace(&mut self, on: bool) {
        self.trace = on.then(Vec::new);
    }

    fn take_trace(&mut self) -> Vec<Row> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn stats(&self) -> Stats {
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

    fn sample(&self) -> Option<Sample> {
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

impl End {
    pub(super) fn note_sent(&mut self, t: Time, datagram: &Opaque) {
        let (stats, Some(sample)) = (self.stats(), self.sample()) else { return };
        let row = Row {
            t,
            is_sent: true,
            number: datagram.number,
            len: datagram.len,
            acks: stats.acks,
            lost: self.newly_lost(&stats),
            window_before: sample.window,
            sample,
            min_rtt: Span(self.log.min_rtt_ns.load(Relaxed)),
        };
        self.trace.iter_mut().for_each(|rows| rows.push(row));
    }

    /// Return the losses not yet reported by a row. The loss timer declares some between two ACKs: the next row has them.
    fn newly_lost(&mut self, stats: &Stats) -> u64 {
        stats.lost - std::mem::replace(&mut self.lost_in_trace, stats.lost)
    }

    /// Record a trace row if the arriving datagram contained an ACK.
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
            lost: self.newly_lost(&stats),
            window_before,
            sample,
            min_rtt: stats.min_rtt,
        };
        self.trace.iter_mut().for_each(|rows| rows.push(row));
    }
}
