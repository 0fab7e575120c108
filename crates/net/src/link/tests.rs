use super::*;
use crate::loss::LossConfig;
use crate::queue::QueueConfig;
use crate::reorder::Reorder;
use crate::{CodelParams, FqCodelParams};
use ackclock_core::Segment;

fn packet(conn: u32) -> Packet {
    Packet { conn, bytes: 1514, ..Packet::default() }
}

/// Return all deliveries as (time, conn) until the link is empty; polls as the world does.
fn drain(link: &mut SoleLink) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    while link.next_event() != Time::NEVER {
        let now = link.next_event();
        while let Some(p) = link.poll(now) {
            out.push((now.0, p.conn));
        }
    }
    out
}

#[test]
fn full_frames_leave_one_transmission_time_apart() {
    // 1514 bytes at 10 Mb/s take 1,211,200 ns; the delay is 20 ms.
    let mut link = SoleLink::new(&LinkConfig::new("l", Rate(10_000_000), Span::from_ms(20)), 1);
    for conn in 0..4 {
        link.offer(Time::ZERO, packet(conn)).expect("no limit");
    }
    assert_eq!(link.next_event(), Time(21_211_200));
    assert_eq!(link.waiting(Time::ZERO), 3);
    assert_eq!(link.waiting(Time(1_211_199)), 3);
    assert_eq!(link.waiting(Time(1_211_200)), 2);
    assert!(link.poll(Time(21_211_199)).is_none());
    let expected: Vec<_> = (0..4).map(|i| (20_000_000 + 1_211_200 * (i + 1), i as u32)).collect();
    assert_eq!(drain(&mut link), expected);
    let counters = link.counters(Time(30_000_000));
    assert_eq!((counters.delivered, counters.bytes_delivered, counters.held), (4, 4 * 1514, 0));
    assert_eq!((counters.busy, counters.max_packets), (Span(4 * 1_211_200), 3));
    assert_eq!(counters.mean_packets, (6 * 1_211_200) as f64 / 30_000_000.0);
}

#[test]
fn sums_count_no_future() {
    let mut link = SoleLink::new(&LinkConfig::new("l", Rate(10_000_000), Span::ZERO), 1);
    for conn in 0..3 {
        link.offer(Time::ZERO, packet(conn)).expect("no limit");
    }
    let counters = link.counters(Time(1_000_000));
    assert_eq!((counters.busy, counters.held, counters.mean_packets), (Span(1_000_000), 3, 2.0));
}

#[test]
fn an_infinite_rate_only_delays() {
    let mut link = SoleLink::new(&LinkConfig::new("l", Rate::INFINITE, Span(7)), 1);
    for conn in 0..3 {
        link.offer(Time(conn as u64), packet(conn)).expect("no limit");
    }
    assert_eq!(drain(&mut link), [(7, 0), (8, 1), (9, 2)]);
    assert_eq!(link.counters(Time(9)).max_packets, 0);
}

#[test]
fn losses_take_no_place_and_restart_with_their_seed() {
    let loss = LossConfig::bernoulli(0.3);
    let queue = QueueConfig::packets(0);
    let config = LinkConfig { loss, queue, ..LinkConfig::new("l", Rate(1_000_000), Span::ZERO) };
    let fates = |link: &mut SoleLink, t: u64| -> Vec<bool> {
        (0..200).map(|i| link.offer(Time((t + i) * 1_000_000_000), packet(0)) != Err(Refused::Loss)).collect()
    };
    let mut link = SoleLink::new(&config, 1);
    let first = fates(&mut link, 0);
    let second = fates(&mut link, 200);
    link.restart_loss(1);
    let third = fates(&mut link, 400);
    assert_eq!(first, third);
    assert_ne!(first, second);
    let counters = link.counters(Time(600_000_000_000));
    assert_eq!(counters.dropped_queue, 0);
    assert!((120..240).contains(&counters.dropped_loss));
    let mut other = SoleLink::new(&LinkConfig { name: "m".into(), ..config }, 1);
    assert_ne!(fates(&mut other, 0), first, "each link has a stream of its own");
}

#[test]
fn scripted_losses_hit_the_segments_named() {
    let drops = vec![crate::loss::Drop { flow: 0, first: 2, last: Some(3), transmission: 0 }];
    let loss = LossConfig::Scripted(crate::loss::ScriptedParams { drops });
    let mut link = SoleLink::new(&LinkConfig { loss, ..LinkConfig::new("l", Rate::INFINITE, Span::ZERO) }, 1);
    for seg_no in 1..=4 {
        let seg = Segment { seg_no, len: 1448, ..Segment::default() };
        let fate = link.offer(Time::ZERO, Packet { header: seg.into(), forward: true, ..packet(seg_no) });
        assert_eq!(fate.is_err(), seg_no == 2 || seg_no == 3);
    }
}

#[test]
fn held_back_packets_are_overtaken_and_the_others_keep_their_order() {
    let reorder = Some(Reorder { probability: 0.2, extra_delay: Span::from_ms(5) });
    let config = LinkConfig {
        reorder,
        jitter: Span::from_us(300),
        ..LinkConfig::new("l", Rate::INFINITE, Span::from_ms(1))
    };
    let mut link = SoleLink::new(&config, 1);
    let sent = |conn: u32| conn as u64 * 100_000;
    for conn in 0..1000 {
        link.offer(Time(sent(conn)), packet(conn)).expect("no limit");
    }
    let out = drain(&mut link);
    assert_eq!(out.len(), 1000);
    assert!(out.windows(2).all(|w| w[0].0 <= w[1].0), "in order of time");
    let (late, in_time): (Vec<_>, Vec<_>) =
        out.into_iter().partition(|&(t, conn)| t - sent(conn) >= 6_000_000);
    assert!((150..250).contains(&late.len()), "{}", late.len());
    for group in [&late, &in_time] {
        assert!(group.windows(2).all(|w| w[0].1 < w[1].1), "each group keeps its order");
    }
    assert!(in_time.iter().all(|&(t, conn)| (1_000_000..=1_300_000).contains(&(t - sent(conn)))));
}

fn codel(limit: Option<u32>, target: Span, interval: Span, ecn: bool) -> QueueConfig {
    QueueConfig::Codel(CodelParams { limit, target, interval, ecn, ce_threshold: None })
}

#[test]
fn codel_drops_at_the_head_of_a_standing_queue() {
    let queue = codel(Some(1000), Span::from_ms(5), Span::from_ms(100), false);
    let config = LinkConfig { queue, ..LinkConfig::new("l", Rate(10_000_000), Span::from_ms(20)) };
    let mut link = SoleLink::new(&config, 1);
    // 20 % above the link rate.
    let mut head_drops = Vec::new();
    let mut last = 0;
    let mut now = Time::ZERO;
    for conn in 0..2000 {
        let arrival = Time(conn as u64 * 1_009_333);
        while link.next_event() <= arrival {
            now = link.next_event();
            if let Some(p) = link.poll(now) {
                assert!(p.conn >= last);
                last = p.conn;
            }
            head_drops.extend(std::iter::from_fn(|| link.take_head_drops()).map(|(p, _)| (now.0, p.conn)));
        }
        link.offer(arrival, packet(conn)).expect("far from the limit");
        assert!(link.take_head_drops().is_none(), "a busy link drops at its departures only");
        now = arrival;
    }
    let counters = link.counters(now);
    assert_eq!(counters.dropped_queue, head_drops.len() as u64);
    assert_eq!(counters.arrivals, counters.delivered + counters.dropped_queue + counters.held);
    assert!(counters.busy.0 >= now.0 - 1_211_200, "never idle");
    // The queueing delay grows by 0.2 ms per ms: it crosses the target near 30 ms, and the first drop follows 100 ms
    // later.
    assert!((100_000_000..160_000_000).contains(&head_drops[0].0), "{:?}", head_drops[0]);
    assert!(head_drops.len() > 10);
    let mean_gap = |d: &[(u64, u32)]| (d[d.len() - 1].0 - d[0].0) / (d.len() as u64 - 1);
    let (early, late) = head_drops.split_at(head_drops.len() / 2);
    assert!(mean_gap(early) > mean_gap(late), "drops come faster and faster");
}

#[test]
fn codel_has_an_event_for_each_departure() {
    let queue = codel(None, Span::from_ms(5), Span::from_ms(100), false);
    let config = LinkConfig { queue, ..LinkConfig::new("l", Rate(10_000_000), Span::from_ms(20)) };
    let mut link = SoleLink::new(&config, 1);
    link.offer(Time::ZERO, packet(0)).expect("no limit");
    assert_eq!(link.next_event(), Time(21_211_200), "the first is in transmission at once");
    link.offer(Time::ZERO, packet(1)).expect("no limit");
    assert_eq!(link.next_event(), Time(1_211_200));
    assert!(link.poll(Time(1_211_200)).is_none());
    assert_eq!(link.next_event(), Time(21_211_200));
    assert_eq!(drain(&mut link), [(21_211_200, 0), (22_422_400, 1)]);
}

#[test]
fn codel_marks_capable_packets() {
    let queue = codel(None, Span::from_ms(5), Span::from_ms(100), true);
    let mut link =
        SoleLink::new(&LinkConfig { queue, ..LinkConfig::new("l", Rate(10_000_000), Span::ZERO) }, 1);
    for conn in 0..500 {
        link.offer(Time::ZERO, Packet { ecn: Ecn::Ect0, ..packet(conn) }).expect("no limit");
    }
    let mut marks = 0;
    while link.next_event() != Time::NEVER {
        marks += link.poll(link.next_event()).is_some_and(|p| p.ecn == Ecn::Ce) as u64;
    }
    let counters = link.counters(Time(1_000_000_000));
    assert_eq!((counters.delivered, counters.dropped_queue, counters.marked), (500, 0, marks));
    assert!(marks > 5);
}

#[test]
fn registries_hold_kebab_case_names_and_descriptions() {
    for (name, line) in
        crate::QueueConfig::FAMILY.registry().iter().chain(&crate::LossConfig::FAMILY.registry())
    {
        assert!(
            name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
                && !line.is_empty()
        );
    }
}

/// Oracle: a monitor that samples the link every second, and Little's law.
#[test]
fn figures_are_those_of_a_monitor_that_looks() {
    let (target, interval) = (Span::from_secs(50), Span::from_secs(50));
    let fair = FqCodelParams {
        limit: None,
        target,
        interval,
        ecn: false,
        queues: 8,
        quantum: 1500,
        ce_threshold: None,
        ce_threshold_for: crate::queue::Classifier::AnyEct,
    };
    let second = 1_000_000_000u64;
    for queue in [QueueConfig::UNLIMITED, QueueConfig::FqCodel(fair)] {
        let config = LinkConfig { queue, ..LinkConfig::new("l", Rate(8_000), Span(5)) }; // one byte per ms
        let mut arrivals = Stream::new(3, "test");
        let (mut link, mut now, mut seen, mut seen_late) = (SoleLink::new(&config, 1), 0, 0, 0);
        let (mut came, mut next) = (Vec::new(), 0);
        while now < 4000 {
            // the monitor samples at each tick, before the packets of this tick arrive
            let waiting = link.waiting(Time(now * second)) > 0;
            (seen, seen_late) = (seen + waiting as u64, seen_late + (waiting && now > 2000) as u64);
            if now == 2000 {
                link.count_from(Time(now * second));
            }
            while next <= now {
                let bytes = 100 + arrivals.below(1400) as u32;
                let at = now * second + 1 + arrivals.below(second - 1);
                came.push((at, bytes, arrivals.below(5) as u32));
                next = now + 1 + arrivals.below(2);
            }
            came.sort_unstable();
            for (at, bytes, conn) in came.drain(..) {
                while link.next_event() <= Time(at) {
                    link.poll(link.next_event());
                }
                link.offer(Time(at), Packet { bytes, conn, ..Packet::default() }).expect("room");
            }
            now += 1;
        }
        let end = Time(now * second - 1);
        let c = link.counters(end);
        assert!(seen > 100 && seen < 3900, "{seen}");
        assert_eq!(c.seconds_queued, seen_late, "{:?}", config.queue);
        assert_eq!(c.arrivals + c.held_before, c.delivered + c.dropped_queue + c.held);
        // Little's law: mean number of waiting packets = arrival rate x mean wait
        let little = c.mean_wait_s * c.arrivals as f64 / 2000.0;
        assert!((little / c.mean_packets - 1.0).abs() < 0.05, "{little} {}", c.mean_packets);
        assert!(c.max_wait.as_secs() > c.mean_wait_s && c.max_wait.as_secs() < 200.0);
    }
}
