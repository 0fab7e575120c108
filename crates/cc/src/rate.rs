//! A sample of the delivery rate, as controllers see it. The estimator that makes it is the sender's
//! (draft-cheng-iccrg-delivery-rate-estimation; Linux `tcp_rate_gen`). Counts are segments.

use ackclock_core::{Span, Time};

/// Delivery over the flight of the newest segment that an ACK covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Segments delivered over `interval`.
    pub delivered: u32,
    /// The longer one of the times that sending and acknowledging them took; zero if the sample is not valid: shorter
    /// than the least RTT, which only a wrong ACK can cause.
    pub interval: Span,
    /// Time over which they were sent.
    pub send_elapsed: Span,
    /// Time over which they were acknowledged.
    pub ack_elapsed: Span,
    /// Delivered count of the connection when that segment was sent (P.delivered).
    pub prior_delivered: u64,
    /// When that count was reached.
    pub prior_time: Time,
    /// Delivered count of the connection now (C.delivered).
    pub total_delivered: u64,
    /// Segments marked lost on the connection, again and again if so (C.lost).
    pub total_lost: u64,
    /// Segments that carried marks, of those delivered over `interval`.
    pub delivered_ce: u32,
    /// Segments marked lost between that segment's transmission and now (RS.lost).
    pub lost: u32,
    /// Segments in flight when that segment had been sent, itself included (RS.tx_in_flight).
    pub tx_in_flight: u32,
    /// The application, not the window, limited the sender when it was sent.
    pub is_app_limited: bool,
    /// It was a retransmission.
    pub is_retrans: bool,
    /// The ACK may have been held back by a delayed-ACK timer: a single segment, shorter than SMSS.
    pub is_ack_delayed: bool,
}

impl RateSample {
    /// Segments per second, if the sample is valid.
    pub fn segments_per_second(&self) -> Option<f64> {
        (self.interval > Span::ZERO).then(|| f64::from(self.delivered) * 1e9 / self.interval.0 as f64)
    }
}
