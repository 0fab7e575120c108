//! Conservation for every combination of mechanisms, at every instant: arrivals = delivered + dropped + held. The
//! counters match the reports to the caller, and a run repeats bit for bit.

use ackclock_core::packet::Ecn;
use ackclock_core::schema::{Absent, Described, Place, Table, Takes, Value};
use ackclock_core::{Distribution, Packet, Rate, Segment, Span, Time};
use ackclock_net::capacity::{
    DummynetParams, MahimahiParams, Opportunities, RandomParams, ScheduleParams, Step, TokenBucketParams,
};
use ackclock_net::ecn_fault::{EcnChange, Place as Where};
use ackclock_net::loss::{
    BernoulliParams, ByLoadParams, Drop, GilbertElliottParams, InTimeParams, ListedParams, Per,
    PeriodicParams, PolicerParams, ScriptedParams,
};
use ackclock_net::netem_jitter::{NetemJitter, Shape};
use ackclock_net::outage::Arrivals;
use ackclock_net::{
    AppliesTo, CapacityConfig, Counters, EcnFault, LinkConfig, LossConfig, Outage, QueueConfig, Refused,
    Reorder, SoleLink, WifiJitter,
};
use proptest::prelude::*;

/// Draw a queue of any kind available to scenarios, as described by its `table!`, with short times and small limits
/// so that all states are reached. `None` if its rules reject the draw.
fn queue_of(table: &Table, draws: &[u64]) -> Option<QueueConfig> {
    let mut draws = draws.iter().copied().cycle();
    let mut next = || draws.next().expect("invariant: endless");
    let kind = ("kind".to_string(), Value::Text(table.kind.to_string()));
    let given = table.keys.iter().filter_map(|key| {
        let (absent, drawn) = (next() % 4 < 2, next());
        let left_out = absent && (key.absent)() != Absent::Required;
        (!left_out).then(|| (key.compiled.to_string(), value_of(&key.takes, drawn)))
    });
    let queue = QueueConfig::read(&Value::Table(std::iter::once(kind).chain(given).collect())).ok()?;
    let mut broken = Vec::new();
    queue.judge(&Place::whole(None), &mut broken);
    broken.is_empty().then_some(queue)
}

fn value_of(takes: &Takes, drawn: u64) -> Value {
    let share = (drawn % 1000) as f64 / 1000.0;
    let whole =
        |least: u64, most: u64, width: u64| Value::Whole(least + drawn % ((most - least).min(width) + 1));
    match *takes {
        Takes::Flag => Value::Flag(drawn & 1 == 0),
        Takes::Whole(least, most) => whole(least, most, 40),
        Takes::Number(least, most) => Value::Number(least + share * (most - least).min(10.0)),
        Takes::Above(least, most) => Value::Number(least + (share + 0.001) * (most - least).min(200.0)),
        Takes::Share => Value::Number(share),
        Takes::Duration(least) => whole(least, u64::MAX, 50_000),
        Takes::Rate(least) => whole(least.max(100_000), u64::MAX, 100_000_000),
        Takes::Size(least, most) => whole(least, most, 60_000),
        Takes::Packets | Takes::PacketLimit => whole(1, u64::MAX, 40),
        Takes::MeanPackets => Value::Number(15.0 * share),
        Takes::Limit => {
            let (unit, most) = [("packets", 40), ("bytes", 40_000)][drawn as usize % 2];
            Value::Table(vec![(unit.to_string(), whole(1, u64::MAX, most))])
        }
        Takes::Choice(names) => Value::Text(names[drawn as usize % names.len()].to_string()),
        ref other => panic!("say here what is drawn for a key that takes {other:?}"),
    }
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    (0..QueueConfig::FAMILY.tables.len(), prop::collection::vec(any::<u64>(), 24))
        .prop_filter_map("its rules refuse it", |(kind, draws)| {
            queue_of(QueueConfig::FAMILY.tables[kind], &draws)
        })
}

#[test]
fn of_every_kind_of_queue_enough_is_drawn() {
    let mut random = 1u64;
    for table in QueueConfig::FAMILY.tables {
        let fits = (0..200).filter(|_| {
            let draws: Vec<u64> = std::iter::repeat_with(|| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                random >> 11
            })
            .take(24)
            .collect();
            queue_of(table, &draws).is_some()
        });
        let fits = fits.count();
        assert!(fits >= 20, "{}: {fits} of 200", table.kind);
    }
}

fn loss() -> impl Strategy<Value = LossConfig> {
    let applies_to = || {
        prop_oneof![
            Just(AppliesTo::All),
            Just(AppliesTo::Data),
            Just(AppliesTo::Syn),
            Just(AppliesTo::Originals)
        ]
    };
    let drop = Drop { flow: 0, first: 3, last: Some(9), transmission: 0 };
    prop_oneof![
        Just(LossConfig::NONE),
        (0.0..1.0, applies_to())
            .prop_map(|(p, applies_to)| LossConfig::Bernoulli(BernoulliParams { p, applies_to })),
        (0.0..1.0, 0.0..1.0, applies_to()).prop_map(|(p, r, applies_to)| {
            LossConfig::GilbertElliott(GilbertElliottParams {
                p,
                r,
                loss_bad: 0.9,
                loss_good: 0.01,
                applies_to,
            })
        }),
        (1e-6..1e-3, 1e-6..1e-3, applies_to()).prop_map(|(good, bad, applies_to)| {
            LossConfig::InTime(InTimeParams {
                good: Distribution::Exponential { mean: good },
                bad: Distribution::Uniform { low: 0.0, high: bad },
                loss_bad: 0.9,
                loss_good: 0.01,
                applies_to,
            })
        }),
        (0u64..9, 0u64..9, applies_to()).prop_map(|(every, offset, applies_to)| {
            LossConfig::Periodic(PeriodicParams { every, offset, applies_to })
        }),
        (prop::collection::vec(1u64..200, 1..9), applies_to())
            .prop_map(|(packets, applies_to)| LossConfig::Listed(ListedParams { packets, applies_to })),
        (1u64..10_000_000_000, 0.0..1.0, 1u64..200_000).prop_map(|(rate, full, window)| {
            LossConfig::ByLoad(ByLoadParams { rate: Rate(rate), full, idle: 0.01, window: Span(window) })
        }),
        Just(LossConfig::Scripted(ScriptedParams { drops: vec![drop] })),
        (1u64..10_000_000_000, 0u64..90_000).prop_map(|(rate, bucket)| {
            LossConfig::Policer(PolicerParams { rate: Rate(rate), bucket, initial: None, per: Per::Flow })
        }),
    ]
}

fn capacity() -> impl Strategy<Value = Option<CapacityConfig>> {
    let drawn = |low: f64, high: f64| Some(Distribution::Uniform { low, high });
    let step = |at, rate, delay, loss| Step {
        at: Span(at),
        rate: Some(Rate(rate)),
        delay: Some(Span(delay)),
        loss: Some(loss),
    };
    prop_oneof![
        4 => Just(None),
        1 => (1u64..200_000).prop_map(move |every| Some(CapacityConfig::Random(RandomParams {
            every: Span(every),
            rate: drawn(1e6, 1e10),
            delay: drawn(0.0, 1e-4),
            loss: drawn(0.0, 0.5),
        }))),
        1 => (1u64..100_000, 0u64..10_000_000_000).prop_map(move |(at, rate)| Some(CapacityConfig::Schedule(ScheduleParams {
            steps: [step(0, 8_000_000_000, 9_000, 0.0), step(at, rate, 0, 0.1)].into(),
            repeat: Some(Span(at + 50_000)),
        }))),
        1 => prop::collection::vec(0u32..50, 1..5).prop_map(|mut counts| {
            counts.push(1);
            let file = Opportunities(counts.into());
            Some(CapacityConfig::Mahimahi(MahimahiParams { file, opportunity: 1500 }))
        }),
        1 => (1u64..30_000).prop_map(|burst| Some(CapacityConfig::TokenBucket(TokenBucketParams { burst }))),
        1 => (1u64..100_000, any::<bool>()).prop_map(|(tick, keeps_credit)| {
            Some(CapacityConfig::Dummynet(DummynetParams { tick: Span(tick), keeps_credit }))
        }),
    ]
}

fn link() -> impl Strategy<Value = LinkConfig> {
    let rate = prop_oneof![
        Just(Rate(8_000_000_000)),
        Just(Rate::INFINITE),
        (1_000_000u64..20_000_000_000).prop_map(Rate)
    ];
    let jitter = prop_oneof![Just(0u64), 0u64..5000];
    let reorder = prop::option::of(
        (0.0..1.0, 0u64..20_000)
            .prop_map(|(probability, extra_delay)| Reorder { probability, extra_delay: Span(extra_delay) }),
    );
    let wifi = prop::option::of((1u64..20_000_000).prop_map(|mean| WifiJitter { mean: Span(mean) }));
    let what = prop_oneof![Just(EcnChange::Bleach), Just(EcnChange::StripCe), Just(EcnChange::MarkAll)];
    let at = prop_oneof![Just(Where::Before), Just(Where::After)];
    let fault = prop::option::of((what, at, 0.0..1.0).prop_map(|(what, at, probability)| EcnFault {
        what,
        at,
        probability,
    }));
    let arrivals = prop_oneof![Just(Arrivals::Wait), Just(Arrivals::Lost)];
    let again = (prop::option::of(1u64..50_000), any::<bool>());
    let outage = prop::option::of((0u64..50_000, again, 0.0..4e-5, arrivals).prop_map(
        |(at, (every, drawn), high, arrivals)| Outage {
            at: Span(at),
            every: every.filter(|_| !drawn).map(Span),
            apart: drawn.then_some(Distribution::Exponential { mean: 1e-5 }),
            lasts: Distribution::Uniform { low: 0.0, high },
            arrivals,
        },
    ));
    let shape = prop_oneof![Just(Shape::Uniform), Just(Shape::Normal), Just(Shape::Pareto)];
    let netem = prop::option::of((1u64..20_000, shape, 0.0..1.0, any::<bool>()).prop_map(
        |(deviation, distribution, correlation, before_rate)| NetemJitter {
            deviation: Span(deviation),
            distribution,
            correlation,
            before_rate,
        },
    ));
    let odd = prop_oneof![3 => Just((0.0, 0.0)), 1 => (0.0..0.5, 0.0..0.5)];
    let more = (wifi, prop_oneof![Just(0u64), 0u64..20_000], fault, outage, netem, odd);
    (rate, 0u64..30_000, queue(), loss(), jitter, reorder, capacity(), more).prop_map(
        |(rate, delay, queue, loss, jitter, reorder, capacity, more)| {
            let (wifi, aggregate, ecn_fault, outage, mut netem_jitter, (duplicate, corrupt)) = more;
            // a token bucket needs a finite rate; netem jitter that reorders excludes `reorder`
            let bucket = matches!(capacity, Some(CapacityConfig::TokenBucket(_)));
            let rate = if bucket && rate == Rate::INFINITE { Rate(1_000_000_000) } else { rate };
            let overtake = netem_jitter.is_some() && rate == Rate::INFINITE && capacity.is_none();
            let reorder = reorder.filter(|_| !overtake);
            // jitter before the rate needs a rate, and netem's own limit
            let netem = queue == QueueConfig::UNLIMITED || matches!(queue, QueueConfig::NetemLimit(_));
            if let Some(jitter) = &mut netem_jitter {
                jitter.before_rate &= netem && rate != Rate::INFINITE && capacity.is_none();
            }
            LinkConfig {
                netem_jitter,
                queue,
                loss,
                jitter: Span(jitter),
                reorder,
                duplicate,
                corrupt,
                capacity,
                wifi,
                aggregate: Span(aggregate),
                ecn_fault,
                outage,
                ..LinkConfig::new("l", rate, Span(delay))
            }
        },
    )
}

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    delivered: Vec<(u64, Packet)>,
    dropped_loss: u64,
    dropped_queue: u64,
    counters: Counters,
}

impl Outcome {
    /// Count the losses and drops reported by the link since the last call.
    fn hear(&mut self, link: &mut SoleLink) {
        while let Some((_, why)) = link.take_head_drops() {
            match why {
                Refused::Loss => self.dropped_loss += 1,
                _ => self.dropped_queue += 1,
            }
        }
    }
}

fn run(config: &LinkConfig, arrivals: &[(u64, u32, bool)], seed: u64) -> Outcome {
    let mut link = SoleLink::new(config, seed);
    let mut out = Outcome::default();
    let mut t = 0;
    let check = |link: &mut SoleLink, out: &mut Outcome, now: Time| {
        out.hear(link);
        let c = link.counters(now);
        out.hear(link);
        assert_eq!(c.arrivals, c.delivered + c.dropped_loss + c.dropped_queue + c.held);
        assert_eq!(c.delivered as usize, out.delivered.len());
        assert_eq!((c.dropped_loss, c.dropped_queue), (out.dropped_loss, out.dropped_queue));
        let c = link.counters(now); // again, because head drops are counted when they are taken
        assert_eq!(c.dropped_by_class.iter().sum::<u64>(), c.dropped_queue);
        assert_eq!(c.arrivals_by_class.iter().sum::<u64>(), c.arrivals);
        assert!(c.mean_wait_s <= c.max_wait.as_secs());
        assert!(c.busy.0 <= now.0 && c.mean_packets <= c.max_packets as f64);
        let waiting = link.waiting(now);
        assert!(waiting <= c.max_packets && waiting as u64 <= c.held);
        out.counters = c;
    };
    for (i, &(gap, bytes, ect)) in arrivals.iter().enumerate() {
        t += gap;
        while link.next_event() < Time(t) {
            let now = link.next_event();
            while let Some(p) = link.poll(now) {
                out.delivered.push((now.0, p));
            }
            assert!(link.next_event() > now, "no event twice");
            check(&mut link, &mut out, now);
        }
        let seg = Segment { seg_no: i as u32 + 1, len: bytes, ..Segment::default() };
        let ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
        match link.offer(
            Time(t),
            Packet { header: seg.into(), bytes, ecn, conn: i as u32, forward: true, ..Packet::default() },
        ) {
            Ok(()) => {}
            Err(Refused::Loss) => out.dropped_loss += 1,
            Err(Refused::QueueFull | Refused::Aqm) => out.dropped_queue += 1,
        }
        check(&mut link, &mut out, Time(t));
    }
    while link.next_event() != Time::NEVER {
        let now = link.next_event();
        out.delivered.extend(std::iter::from_fn(|| link.poll(now)).map(|p| (now.0, p)));
        check(&mut link, &mut out, now);
    }
    out
}

proptest! {
    #[test]
    fn nothing_is_lost_twice_or_made(
        config in link(),
        arrivals in prop::collection::vec(
            (prop_oneof![Just(0u64), 0u64..3000, 0u64..60_000], 40u32..1600, any::<bool>()), 1..250),
        seed in 0u64..1000,
    ) {
        let out = run(&config, &arrivals, seed);
        let delivered = out.delivered.len() as u64;
        prop_assert_eq!(out.counters.arrivals, delivered + out.dropped_loss + out.dropped_queue);
        let copies = out.counters.arrivals - arrivals.len() as u64;
        prop_assert!(copies == 0 || config.duplicate > 0.0);
        prop_assert_eq!(out.counters.bytes_delivered, out.delivered.iter().map(|(_, p)| p.bytes as u64).sum::<u64>());
        let marks = out.delivered.iter().filter(|(_, p)| p.ecn == Ecn::Ce).count() as u64;
        if config.ecn_fault.is_none() {
            prop_assert!(marks == out.counters.marked || config.corrupt > 0.0 && marks < out.counters.marked);
        }
        let mut conns: Vec<u32> = out.delivered.iter().map(|(_, p)| p.conn).collect();
        let overtake = config.reorder.is_some() || config.netem_jitter.is_some() && config.overtakes();
        if !overtake && !matches!(config.queue, QueueConfig::FqCodel(_) | QueueConfig::FqPie(_) | QueueConfig::DualPi2(_) | QueueConfig::Cake(_)) {
            prop_assert!(conns.windows(2).all(|w| w[0] < w[1] || copies > 0 && w[0] == w[1]), "order is kept");
        }
        conns.sort_unstable();
        conns.dedup();
        prop_assert!(conns.len() as u64 + copies >= delivered, "no packet more than twice");
        prop_assert!(out == run(&config, &arrivals, seed), "a run repeats bit for bit");
    }
}
