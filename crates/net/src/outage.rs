//! Outages: a link starts no transmission for a random time, once or repeatedly, as on radio links during a
//! hand-over, or on low-orbit satellite paths, which change every 15 s (with gaps under 100 ms). Packets in flight
//! are still delivered, as is a packet whose transmission has begun. Waiting packets are sent afterwards, in order,
//! unless the queue's limit refuses them. With `arrivals = "lost"`, packets that arrive during the outage are lost.

use ackclock_core::schema::{Takes, Unit, DURATION, DURATION_OR_ZERO};
use ackclock_core::{choice, table, Distribution, Span, Stream, Time};

table! {
    /// A period, single or repeated, during which the link starts no transmission.
    pub struct Outage "outage" {
        /// Start of the first outage.
        at: Span = DURATION_OR_ZERO;
        /// Time from the start of one outage to the start of the next. Default: there is only one outage.
        every: Option<Span> = DURATION;
        /// Instead of `every`: time from the end of one outage to the start of the next, a duration or a distribution of durations.
        apart: Option<Distribution> = Takes::DrawnOr(Unit::Duration, 0);
        /// Length of each outage: a duration, or a distribution of durations. It must be shorter than `every`.
        lasts: Distribution = Takes::DrawnOr(Unit::Duration, 0);
        /// Whether packets that arrive during an outage wait in the queue or are lost.
        arrivals: Arrivals = Arrivals::TAKES, Arrivals::Wait;
    }
    rules |params, rules| {
        if params.apart.is_some() && params.every.is_some() {
            let found = format!("{} beside every", rules.shown("apart"));
            rules.refuse_as("apart", found, "one of the two");
        }
        if params.apart.as_ref().is_some_and(|apart| apart.mean() < LEAST_APART_S) {
            rules.refuse("apart", "1 us on average, or more");
        }
    }
}

/// Treatment of packets that arrive during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Packets wait in the queue.
    Wait,
    /// Packets are lost.
    Lost,
}

choice! { Arrivals: Wait "wait", Lost "lost" }

/// State of a link's outages. Arrivals and starts of transmissions are each in order, but not relative to each other,
/// so there are two walks over the same outages.
#[derive(Clone)]
pub(crate) struct Outages {
    here: Walk,
    there: Walk,
    lost: bool,
}

impl Outages {
    pub(crate) fn new(config: Option<&Outage>, stream: Stream) -> Option<Outages> {
        let config = config?;
        let mut here = Walk {
            from: Time::ZERO + config.at,
            until: Time::ZERO,
            every: config.every,
            apart: config.apart.clone(),
            lasts: config.lasts.clone(),
            stream,
        };
        here.draw();
        Some(Outages { there: here.clone(), here, lost: config.arrivals == Arrivals::Lost })
    }

    /// Whether a packet that arrives at `now` is lost.
    pub(crate) fn loses(&mut self, now: Time) -> bool {
        self.lost && self.here.over(now) > now
    }

    /// Start of a transmission that may begin no earlier than `earliest`, which must not decrease from call to call.
    pub(crate) fn start(&mut self, earliest: Time) -> Time {
        self.there.over(earliest)
    }

    /// Variant of [`Outages::start`] that does not change the state, for a planned transmission.
    pub(crate) fn start_at(&self, earliest: Time) -> Time {
        match earliest < self.there.from {
            true => earliest,
            false => self.there.clone().over(earliest),
        }
    }
}

/// Position in the sequence of outages.
#[derive(Clone)]
struct Walk {
    from: Time,
    until: Time,
    every: Option<Span>,
    apart: Option<Distribution>,
    lasts: Distribution,
    stream: Stream,
}

impl Walk {
    /// Return `now`, or the end of the outage in progress at `now`.
    fn over(&mut self, now: Time) -> Time {
        if now == Time::NEVER {
            return now; // after a transmission that never ends
        }
        while self.until <= now && self.from != Time::NEVER {
            self.from = match &self.apart {
                Some(apart) => self.until + drawn(apart, &mut self.stream).max(Span(1)),
                None => self.every.map_or(Time::NEVER, |every| self.from + every),
            };
            self.draw();
        }
        match now < self.from {
            true => now,
            false => self.until,
        }
    }

    /// Draw the end of the outage that begins at `from`.
    fn draw(&mut self) {
        if self.from == Time::NEVER {
            self.until = Time::NEVER;
            return;
        }
        let lasts = drawn(&self.lasts, &mut self.stream);
        // leave at least one nanosecond of each period, so that time advances
        self.until = self.from + self.every.map_or(lasts, |every| lasts.min(every - Span(1)));
    }
}

fn drawn(from: &Distribution, stream: &mut Stream) -> Span {
    Span((from.draw(stream).clamp(0.0, LONGEST_S) * 1e9) as u64)
}

/// Maximum length of an outage, s: one hour.
const LONGEST_S: f64 = 3600.0;
/// Minimum mean time between outages, s. The outages of a long pause are stepped through one by one.
const LEAST_APART_S: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::{Packet, Rate};

    fn outage(at: u64, every: Option<u64>, lasts: f64, arrivals: Arrivals) -> Outage {
        let lasts = Distribution::Constant { value: lasts };
        Outage { at: Span(at), every: every.map(Span), apart: None, lasts, arrivals }
    }

    fn at_work(config: &Outage) -> Outages {
        Outages::new(Some(config), Stream::new(1, "test")).expect("given")
    }

    #[test]
    fn a_start_in_an_outage_is_put_off_to_its_end() {
        let mut once = at_work(&outage(100, None, 50e-9, Arrivals::Wait));
        let starts: Vec<u64> = [0, 99, 100, 149, 150, 1000].iter().map(|&t| once.start(Time(t)).0).collect();
        assert_eq!(starts, [0, 99, 150, 150, 150, 1000]);
        assert!(!once.loses(Time(120)), "arrivals wait");
        let mut again = at_work(&outage(0, Some(100), 50e-9, Arrivals::Lost));
        assert_eq!(again.start_at(Time::NEVER), Time::NEVER, "at once: no walk over all outages up to there");
        let starts: Vec<u64> = [0, 60, 110, 333, 360].iter().map(|&t| again.start(Time(t)).0).collect();
        assert_eq!(starts, [50, 60, 150, 350, 360]);
        assert_eq!(again.start_at(Time(410)), Time(450));
        assert_eq!(again.start(Time(399)), Time(399), "asking changes nothing");
        let lost: Vec<bool> = [0, 49, 50, 100, 160].iter().map(|&t| again.loses(Time(t))).collect();
        assert_eq!(lost, [true, true, false, true, false]);
    }

    #[test]
    fn the_time_between_outages_may_be_drawn() {
        let drawn = |low, high| Distribution::Uniform { low, high };
        let config = Outage {
            apart: Some(drawn(100e-9, 300e-9)),
            lasts: drawn(10e-9, 30e-9),
            ..outage(50, None, 0.0, Arrivals::Lost)
        };
        let mut outages = at_work(&config);
        let out: Vec<bool> = (0..440_000).map(|t| outages.loses(Time(t))).collect();
        let starts: Vec<usize> = (1..out.len()).filter(|&t| out[t] && !out[t - 1]).collect();
        assert_eq!(starts[0], 50);
        let apart: Vec<usize> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = apart.iter().sum::<usize>() as f64 / apart.len() as f64;
        assert!(apart.iter().all(|gap| (109..=330).contains(gap)) && (mean - 220.0).abs() < 6.0, "{mean}");
        let share = out.iter().filter(|&&out| out).count() as f64 / out.len() as f64;
        assert!((share - 20.0 / 220.0).abs() < 0.008, "{share}");
        assert!((0..200u64).all(|t| outages_agree(&config, t * 1111)), "starts follow the same outages");
    }

    fn outages_agree(config: &Outage, t: u64) -> bool {
        let (mut one, mut other) = (at_work(config), at_work(config));
        one.loses(Time(t)) == (other.start(Time(t)) > Time(t))
    }

    #[test]
    fn one_that_never_ends_leaves_a_nanosecond() {
        let mut always = at_work(&outage(0, Some(100), 1.0, Arrivals::Wait));
        assert_eq!([always.start(Time(0)).0, always.start(Time(100)).0], [99, 199]);
    }

    /// Departures of ten packets that arrive together at 5 us and take 1 us each; the outage lasts from 8 to 20 us.
    fn through(queue: QueueConfig, arrivals: Arrivals) -> Vec<u64> {
        let config = LinkConfig {
            queue,
            outage: Some(outage(8_000, None, 12e-6, arrivals)),
            ..LinkConfig::new("l", Rate(8_000_000_000), Span::ZERO)
        };
        let mut link = SoleLink::new(&config, 1);
        let packet = Packet { bytes: 1000, ..Packet::default() };
        for i in 0..10 {
            assert!(link.offer(Time(5_000), Packet { conn: i, ..packet }).is_ok());
        }
        let during = link.offer(Time(9_000), Packet { conn: 10, ..packet }).is_ok();
        assert_eq!(during, arrivals == Arrivals::Wait);
        let mut left = Vec::new();
        while link.next_event() != Time::NEVER {
            let at = link.next_event();
            while let Some(packet) = link.poll(at) {
                assert_eq!(packet.conn as usize, left.len(), "in order");
                left.push(at.0 / 1000);
            }
        }
        left
    }

    #[test]
    fn what_waits_leaves_afterwards_whether_the_queue_decides_on_arrival_or_not() {
        let held = QueueConfig::Codel(crate::CodelParams {
            limit: None,
            target: Span::from_ms(5),
            interval: Span::from_ms(100),
            ecn: false,
            ce_threshold: None,
        });
        for queue in [QueueConfig::UNLIMITED, held] {
            let waits = through(queue.clone(), Arrivals::Wait);
            assert_eq!(waits, [6, 7, 8, 21, 22, 23, 24, 25, 26, 27, 28]);
            assert_eq!(through(queue, Arrivals::Lost), waits[..10]);
        }
    }
}
