//! Source of datagrams of a fixed size, sent at a constant rate or in on-periods separated by silence.

use ackclock_core::datagram::{Data, Datagram, DatagramEndpoint, UDP_IP_BYTES};
use ackclock_core::{HostPacing, Rate, Span, Stream, Time};

/// Schedule of a source's datagrams.
#[derive(Clone, Debug)]
pub struct SourceParams {
    /// Payload of a datagram, bytes.
    pub payload: u32,
    /// Rate of IP packets during on-periods; determines the gap between datagrams.
    pub rate: Rate,
    /// On-periods and silences; `None` = always on.
    pub on_off: Option<OnOff>,
}

impl SourceParams {
    /// Return a source of `payload` bytes every `interval`.
    pub fn every(interval: Span, payload: u32) -> SourceParams {
        let bits = (payload + UDP_IP_BYTES) as u128 * 8_000_000_000;
        let rate = Rate(((bits + interval.0 as u128 / 2) / interval.0.max(1) as u128) as u64);
        SourceParams { payload, rate, on_off: None }
    }

    /// Time from the start of an on-period to its `n`-th datagram, free of drift.
    fn offset(&self, n: u64) -> Span {
        let bits = (self.payload + UDP_IP_BYTES) as u128 * 8;
        Span((bits * n as u128 * 1_000_000_000 / self.rate.0.max(1) as u128) as u64)
    }
}

/// Alternating on-periods and silences, starting with an on-period.
#[derive(Clone, Copy, Debug)]
pub struct OnOff {
    /// Mean length of an on-period.
    pub on: Span,
    /// Mean length of a silence.
    pub off: Span,
    /// Distribution of both lengths.
    pub periods: Periods,
}

/// Distribution of period lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Periods {
    /// Constant lengths, equal to the mean.
    Fixed,
    /// Exponential.
    Exponential,
}

/// The sending end.
#[derive(Clone)]
pub struct Source {
    params: SourceParams,
    stream: Stream,
    /// Start and end of the current on-period.
    on: (Time, Time),
    /// Datagrams sent in the current on-period.
    in_period: u64,
    next: Time,
    sent: u64,
    pacer: HostPacing,
}

impl Source {
    /// Return a source that sends nothing until it is started. It draws from its own random stream.
    pub fn new(params: SourceParams, stream: Stream) -> Source {
        Source {
            params,
            stream,
            on: (Time::NEVER, Time::NEVER),
            in_period: 0,
            next: Time::NEVER,
            sent: 0,
            pacer: HostPacing::default(),
        }
    }

    /// Start with an on-period.
    pub fn start(&mut self, now: Time) {
        self.begin_period(now);
    }

    /// Set the host's pacing policy. By default lateness is not made up.
    pub fn set_pacer(&mut self, pacer: HostPacing) {
        self.pacer = pacer;
    }

    /// Stop sending for good.
    pub fn stop(&mut self) {
        self.next = Time::NEVER;
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    fn begin_period(&mut self, start: Time) {
        let end = match self.params.on_off {
            None => Time::NEVER,
            Some(OnOff { on, periods, .. }) => start + draw(on, periods, &mut self.stream),
        };
        self.on = (start, end);
        self.in_period = 0;
        self.next = start;
    }

    /// Compute the time of the datagram that follows one sent at `now`. Lateness that is not made up shifts the whole
    /// period.
    fn advance(&mut self, now: Time) {
        self.in_period += 1;
        let next = self.on.0 + self.params.offset(self.in_period);
        let put_off = self.pacer.following(self.next, now, next - self.next) - next;
        self.on = (self.on.0 + put_off, self.on.1 + put_off);
        self.next = next + put_off;
        if let (Some(OnOff { off, periods, .. }), true) = (self.params.on_off, self.next >= self.on.1) {
            let start = self.on.1 + draw(off, periods, &mut self.stream);
            self.begin_period(start);
        }
    }
}

impl DatagramEndpoint for Source {
    fn on_packet(&mut self, _now: Time, _datagram: &Datagram) {}

    fn on_timer(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        if self.next_deadline() > now || self.next == Time::NEVER {
            return None;
        }
        let number = self.sent;
        self.sent += 1;
        self.advance(now);
        let data = Data { number, chunk: number, sent: now, len: self.params.payload, ..Data::default() };
        Some(Datagram::Data(data))
    }

    fn next_deadline(&self) -> Time {
        self.pacer.release(self.next)
    }
}

/// Draw a length with this mean, at least 1 ns.
fn draw(mean: Span, periods: Periods, stream: &mut Stream) -> Span {
    match periods {
        Periods::Fixed => Span(mean.0.max(1)),
        Periods::Exponential => Span(((mean.0 as f64 * stream.exponential()) as u64).max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(params: SourceParams, end: Time) -> Vec<u64> {
        let mut source = Source::new(params, Stream::new(3, "test"));
        source.start(Time::ZERO);
        let mut times = Vec::new();
        while source.next_deadline() <= end {
            let now = source.next_deadline();
            let sent = source.poll_transmit(now).expect("due");
            assert!(matches!(sent, Datagram::Data(d) if d.number as usize == times.len() && d.sent == now));
            times.push(now.0);
        }
        times
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        // 1500-byte IP packets at 7 Mbit/s: 1 714 285.71 ns apart
        let params = SourceParams { payload: 1472, rate: Rate(7_000_000), on_off: None };
        let times = times(params, Time(10_000_000_000));
        assert_eq!(times.len(), 5834); // 5833 intervals fit into 10 s
        for (n, &t) in times.iter().enumerate() {
            assert_eq!(t, n as u64 * 12_000 * 1_000_000_000 / 7_000_000);
        }
    }

    #[test]
    fn voice_is_fifty_a_second() {
        let times = times(SourceParams::every(Span::from_ms(20), 172), Time(10_000_000_000));
        assert_eq!((times[1], times[500]), (20_000_000, 10_000_000_000));
    }

    #[test]
    fn on_off_of_fixed_lengths() {
        let on_off = Some(OnOff { on: Span::from_ms(5), off: Span::from_ms(10), periods: Periods::Fixed });
        // 1000-byte packets at 8 Mbit/s: one per ms, five in an on-period
        let params = SourceParams { payload: 972, rate: Rate(8_000_000), on_off };
        let ms: Vec<u64> = times(params, Time(32_000_000)).iter().map(|t| t / 1_000_000).collect();
        assert_eq!(ms, [0, 1, 2, 3, 4, 15, 16, 17, 18, 19, 30, 31, 32]);
    }

    #[test]
    fn exponential_periods_have_the_mean_they_should() {
        let on_off =
            Some(OnOff { on: Span::from_ms(50), off: Span::from_ms(150), periods: Periods::Exponential });
        let params = SourceParams { payload: 97, rate: Rate(1_000_000), on_off };
        let seconds = 2000;
        let sent = times(params, Time(seconds * 1_000_000_000)).len() as f64;
        // a quarter of 1000 packets/s, plus half a packet per period, because a period begins with a packet
        let expected = seconds as f64 * (250.0 + 5.0 * 0.5);
        assert!((sent / expected - 1.0).abs() < 0.03, "{sent} of {expected}");
    }
}
