//! For every combination of mechanisms, at every instant: arrivals = delivered + dropped + held; what was told to the
//! caller is what was counted; a run repeats bit for bit.

use ackclock_core::packet::Ecn;
use ackclock_core::{Distribution, Packet, Rate, Segment, Span, Time};
use ackclock_net::capacity::{
    DummynetParams, MahimahiParams, Opportunities, RandomParams, ScheduleParams, Step,
};
use ackclock_net::ecn_fault::{EcnChange, Place};
use ackclock_net::loss::{
    BernoulliParams, Drop, GilbertElliottParams, ListedParams, Per, PeriodicParams, PolicerParams,
    ScriptedParams,
};
use ackclock_net::outage::Arrivals;
use ackclock_net::queue::{
    CakeParams, ChokeParams, Classifier, DualPi2Params, Isolation, LineCode, Overload,
};
use ackclock_net::{
    AppliesTo, CapacityConfig, CodelParams, Counters, EcnFault, FqCodelParams, Limit, LinkConfig,
    LinuxRedParams, LossConfig, NetemLimitParams, Outage, PieParams, QueueConfig, RedParams, Refused,
    Reorder, SoleLink, ThresholdParams, WifiJitter,
};
use proptest::prelude::*;

fn queue() -> impl Strategy<Value = QueueConfig> {
    let limit = || prop::option::of(0u32..40);
    prop_oneof![
        limit().prop_map(|limit| QueueConfig::drop_tail(limit.map(Limit::Packets))),
        (0u64..40_000).prop_map(|bytes| QueueConfig::drop_tail(Some(Limit::Bytes(bytes)))),
        (0u32..60).prop_map(|limit| QueueConfig::NetemLimit(NetemLimitParams { limit })),
        // Short times, so that the dropping state is reached.
        (limit(), 0u64..20_000, 1u64..50_000, any::<bool>(), prop::option::of(0u64..9000)).prop_map(
            |(limit, target, interval, ecn, ce)| {
                let (target, interval) = (Span(target), Span(interval));
                QueueConfig::Codel(CodelParams { limit, target, interval, ecn, ce_threshold: ce.map(Span) })
            }
        ),
        (limit(), 1u32..9, 1u32..4000, 0u64..20_000, 1u64..50_000, any::<bool>()).prop_map(
            |(limit, queues, quantum, target, interval, ecn)| {
                let (target, interval) = (Span(target), Span(interval));
                QueueConfig::FqCodel(FqCodelParams {
                    limit,
                    target,
                    interval,
                    ecn,
                    queues,
                    quantum,
                    ce_threshold: None,
                    ce_threshold_for: Classifier::AnyEct,
                })
            }
        ),
        (limit(), 1u64..20_000, 1u64..20_000, 0u64..20_000, any::<bool>()).prop_map(
            |(limit, target, update, burst, ecn)| {
                let (target, update, max_burst) = (Span(target), Span(update), Span(burst));
                QueueConfig::Pie(PieParams { limit, target, update, max_burst, ecn })
            }
        ),
        (limit(), 0u32..20).prop_map(|(limit, mark)| QueueConfig::Threshold(ThresholdParams { limit, mark })),
        (0u32..40, 0.0..5.0, 0.0..10.0, 0.0..1.0, 0.001..1.0, any::<bool>()).prop_map(
            |(limit, min, width, max_p, weight, ecn)| {
                QueueConfig::Red(RedParams { limit, min, max: min + width, max_p, weight, ecn })
            }
        ),
        (4000u64..60_000, 0.0..1.0, any::<[bool; 4]>(), any::<bool>()).prop_map(
            |(limit, probability, [ecn, harddrop, nodrop, adaptive], idles)| {
                QueueConfig::LinuxRed(LinuxRedParams {
                    limit,
                    min: None,
                    max: None,
                    probability,
                    avpkt: limit / 40,
                    burst: None,
                    bandwidth: idles.then_some(Rate(1_000_000)),
                    ecn,
                    harddrop,
                    nodrop: nodrop && ecn,
                    adaptive,
                })
            }
        ),
        (0u32..40, 0.0..5.0, 0.1..10.0, 0.0..1.0, 0.001..1.0).prop_map(
            |(limit, min, width, max_p, weight)| {
                QueueConfig::Choke(ChokeParams { limit, min, max: min + width, max_p, weight })
            }
        ),
        (1000u64..60_000, any::<bool>(), 100_000u64..100_000_000, 1u64..200_000, 0usize..12).prop_map(
            |(limit, limited, rate, rtt, kind)| {
                QueueConfig::Cake(CakeParams {
                    rtt: Span(rtt),
                    limit: limited.then_some(limit),
                    bandwidth: (kind > 3).then_some(Rate(rate)),
                    overhead: (kind > 5).then_some(38),
                    mpu: 84,
                    framing: [LineCode::NoAtm, LineCode::Atm, LineCode::Ptm][kind % 3],
                    isolation: [Isolation::TripleIsolate, Isolation::Flows][kind % 2],
                })
            }
        ),
        (limit(), 0u64..20_000, 1u64..20_000, 1u32..5, 0u64..20_000, any::<[bool; 2]>()).prop_map(
            |(limit, target, update, coupling, step, [any_ect, overflow])| {
                QueueConfig::DualPi2(DualPi2Params {
                    limit,
                    target: Span(target),
                    update: Span(update),
                    alpha: 200.0,
                    beta: 200.0,
                    coupling,
                    step: Span(step),
                    step_from: coupling % 3,
                    classic_share: 0.1,
                    classifier: if any_ect { Classifier::AnyEct } else { Classifier::L4s },
                    overload: if overflow { Overload::Overflow } else { Overload::Drop },
                })
            }
        ),
    ]
}

fn loss() -> impl Strategy<Value = LossConfig> {
    let applies_to = || prop_oneof![Just(AppliesTo::All), Just(AppliesTo::Data), Just(AppliesTo::Syn)];
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
        (0u64..9, 0u64..9, applies_to()).prop_map(|(every, offset, applies_to)| {
            LossConfig::Periodic(PeriodicParams { every, offset, applies_to })
        }),
        (prop::collection::vec(1u64..200, 1..9), applies_to())
            .prop_map(|(packets, applies_to)| LossConfig::Listed(ListedParams { packets, applies_to })),
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
    let at = prop_oneof![Just(Place::Before), Just(Place::After)];
    let fault = prop::option::of((what, at, 0.0..1.0).prop_map(|(what, at, probability)| EcnFault {
        what,
        at,
        probability,
    }));
    let arrivals = prop_oneof![Just(Arrivals::Wait), Just(Arrivals::Lost)];
    let outage =
        prop::option::of((0u64..50_000, prop::option::of(1u64..50_000), 0.0..4e-5, arrivals).prop_map(
            |(at, every, high, arrivals)| Outage {
                at: Span(at),
                every: every.map(Span),
                lasts: Distribution::Uniform { low: 0.0, high },
                arrivals,
            },
        ));
    let more = (wifi, prop_oneof![Just(0u64), 0u64..20_000], fault, outage);
    (rate, 0u64..30_000, queue(), loss(), jitter, reorder, capacity(), more).prop_map(
        |(rate, delay, queue, loss, jitter, reorder, capacity, (wifi, aggregate, ecn_fault, outage))| {
            LinkConfig {
                queue,
                loss,
                jitter: Span(jitter),
                reorder,
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

fn run(config: &LinkConfig, arrivals: &[(u64, u32, bool)], seed: u64) -> Outcome {
    let mut link = SoleLink::new(config, seed);
    let mut out = Outcome::default();
    let mut t = 0;
    let check = |link: &mut SoleLink, out: &mut Outcome, now: Time| {
        out.dropped_queue += std::iter::from_fn(|| link.take_head_drops()).count() as u64;
        let c = link.counters(now);
        out.dropped_queue += std::iter::from_fn(|| link.take_head_drops()).count() as u64;
        assert_eq!(c.arrivals, c.delivered + c.dropped_loss + c.dropped_queue + c.held);
        assert_eq!(c.delivered as usize, out.delivered.len());
        assert_eq!((c.dropped_loss, c.dropped_queue), (out.dropped_loss, out.dropped_queue));
        let c = link.counters(now); // once more: head drops are told apart when they are taken
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
        prop_assert_eq!(arrivals.len() as u64, delivered + out.dropped_loss + out.dropped_queue);
        prop_assert_eq!(out.counters.bytes_delivered, out.delivered.iter().map(|(_, p)| p.bytes as u64).sum::<u64>());
        let marks = out.delivered.iter().filter(|(_, p)| p.ecn == Ecn::Ce).count() as u64;
        if config.ecn_fault.is_none() {
            prop_assert_eq!(out.counters.marked, marks);
        }
        let mut conns: Vec<u32> = out.delivered.iter().map(|(_, p)| p.conn).collect();
        if config.reorder.is_none() && !matches!(config.queue, QueueConfig::FqCodel(_) | QueueConfig::DualPi2(_) | QueueConfig::Cake(_)) {
            prop_assert!(conns.windows(2).all(|w| w[0] < w[1]), "order is kept");
        }
        conns.sort_unstable();
        conns.dedup();
        prop_assert_eq!(conns.len() as u64, delivered, "no packet twice");
        prop_assert!(out == run(&config, &arrivals, seed), "a run repeats bit for bit");
    }
}
