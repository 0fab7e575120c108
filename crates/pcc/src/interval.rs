//! Monitor intervals: the datagrams sent in a period, and the receiver's reports on them.
//!
//! An interval begins and ends when a datagram is due, so that it spans a whole number of inter-packet gaps. The
//! measured rate then equals the set rate, without rounding to whole datagrams or to a host's ticks, unless
//! the pacer did not catch up after late transmissions.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

/// A finished interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// 0-based interval number.
    pub id: u32,
    /// Set rate, bit/s of IP packets.
    pub rate: f64,
    /// Time of the first transmission.
    pub start: Time,
    /// Time of the first transmission of the following interval.
    pub end: Time,
    /// Time at which the result became complete.
    pub known: Time,
    /// Number of datagrams sent.
    pub sent: u32,
    /// Number of datagrams lost.
    pub lost: u32,
    /// IP bytes of the datagrams sent.
    pub bytes: u64,
    /// Mean RTT, s; 0 without samples.
    pub rtt_mean: f64,
    /// dRTT/dT by least squares over (transmission time, RTT); 0 with fewer than two samples.
    pub rtt_gradient: f64,
    /// Standard error of `rtt_gradient`.
    pub gradient_error: f64,
    /// Standard deviation of the RTT, s.
    pub rtt_deviation: f64,
    /// Whether the sender had nothing to send for part of the interval, which is then uninformative about the path.
    pub limited: bool,
    /// Whether x is the set rate, regardless of the packets sent.
    pub nominal: bool,
}

impl Measured {
    /// x: sending rate used by the utility, Mbit/s.
    pub fn rate_mbps(&self) -> f64 {
        if self.nominal {
            self.rate * 1e-6
        } else {
            self.sent_mbps()
        }
    }

    /// Rate at which datagrams were sent, delivered or not, Mbit/s. It is below the set rate on a host that cannot keep
    /// up.
    pub fn sent_mbps(&self) -> f64 {
        let seconds = self.end.since(self.start).as_secs();
        if seconds > 0.0 {
            self.bytes as f64 * 8e-6 / seconds
        } else {
            self.rate * 1e-6
        }
    }

    /// L: ratio of lost to sent datagrams.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 {
            0.0
        } else {
            self.lost as f64 / self.sent as f64
        }
    }

    /// T = x (1 - L), Mbit/s.
    pub fn throughput_mbps(&self) -> f64 {
        self.rate_mbps() * (1.0 - self.loss())
    }
}

/// An interval in which some datagrams are neither acknowledged nor considered lost yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub id: u32,
    /// Purpose set by the controller.
    pub purpose: u32,
    pub rate: f64,
    pub start: Time,
    /// End of the interval; `Time::NEVER` while it is being sent.
    pub end: Time,
    pub sent: u32,
    pub bytes: u64,
    pub limited: bool,
    acked: u32,
    lost: u32,
    // sums over the RTT samples; times in s from the start of the interval
    n: f64,
    t: f64,
    r: f64,
    tt: f64,
    tr: f64,
    rr: f64,
}

impl Interval {
    fn finished(&self) -> bool {
        self.end != Time::NEVER && self.acked + self.lost == self.sent
    }

    fn measured(&self, known: Time, nominal: bool) -> Measured {
        let n = self.n;
        let (mut gradient, mut error, mut deviation, mut mean) = (0.0, 0.0, 0.0, 0.0);
        if n >= 1.0 {
            mean = self.r / n;
            let srr = (self.rr - self.r * mean).max(0.0);
            deviation = libm::sqrt(srr / n);
            let stt = self.tt - self.t * self.t / n;
            if n >= 2.0 && stt > 0.0 {
                let str_ = self.tr - self.t * mean;
                gradient = str_ / stt;
                if n > 2.0 {
                    let residual = (srr - gradient * str_).max(0.0);
                    error = libm::sqrt(residual / (n - 2.0) / stt);
                }
            }
        }
        Measured {
            id: self.id,
            rate: self.rate,
            start: self.start,
            end: self.end,
            known,
            sent: self.sent,
            lost: self.lost,
            bytes: self.bytes,
            rtt_mean: mean,
            rtt_gradient: gradient,
            gradient_error: error,
            rtt_deviation: deviation,
            limited: self.limited,
            nominal,
        }
    }
}

/// Unfinished intervals, oldest first. Datagrams are sent in the last one.
#[derive(Clone, Default)]
pub(crate) struct Intervals {
    ring: VecDeque<Interval>,
    next: u32,
}

impl Intervals {
    /// Begin an interval and end the previous one.
    pub fn begin(&mut self, now: Time, rate: f64, purpose: u32) {
        self.finish(now);
        self.ring.push_back(Interval {
            id: self.next,
            purpose,
            rate,
            start: now,
            end: Time::NEVER,
            sent: 0,
            bytes: 0,
            limited: false,
            acked: 0,
            lost: 0,
            n: 0.0,
            t: 0.0,
            r: 0.0,
            tt: 0.0,
            tr: 0.0,
            rr: 0.0,
        });
        self.next += 1;
    }

    /// End the current interval.
    pub fn finish(&mut self, now: Time) {
        if let Some(last) = self.ring.back_mut() {
            if last.end == Time::NEVER {
                last.end = now;
            }
        }
    }

    /// Return the interval in which datagrams are being sent.
    #[inline]
    pub fn current(&mut self) -> Option<&mut Interval> {
        self.ring.back_mut().filter(|i| i.end == Time::NEVER)
    }

    #[inline]
    fn get(&mut self, id: u32) -> Option<&mut Interval> {
        let first = self.ring.front()?.id;
        self.ring.get_mut(id.wrapping_sub(first) as usize)
    }

    /// Record that a datagram of interval `id`, sent at `sent`, was reported, with its RTT sample if there is one.
    #[inline]
    pub fn on_acked(&mut self, id: u32, sent: Time, rtt: Option<Span>) {
        let Some(interval) = self.get(id) else { return };
        interval.acked += 1;
        if let Some(rtt) = rtt {
            let t = sent.since(interval.start).as_secs();
            let r = rtt.as_secs();
            interval.n += 1.0;
            interval.t += t;
            interval.r += r;
            interval.tt += t * t;
            interval.tr += t * r;
            interval.rr += r * r;
        }
    }

    /// Record that a datagram of interval `id` is considered lost.
    #[inline]
    pub fn on_lost(&mut self, id: u32) {
        if let Some(interval) = self.get(id) {
            interval.lost += 1;
        }
    }

    /// Remove the oldest interval and return its result, if it is complete.
    #[inline]
    pub fn take_result(&mut self, now: Time, nominal: bool) -> Option<(Measured, u32)> {
        let front = self.ring.front()?;
        if !front.finished() {
            return None;
        }
        let done = self.ring.pop_front().expect("invariant: peeked");
        Some((done.measured(now, nominal), done.purpose))
    }
}
