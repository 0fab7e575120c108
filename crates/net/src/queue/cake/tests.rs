//! Shares, charges and drops of CAKE.

use super::*;
use ackclock_core::Segment;

const MS: u64 = 1_000_000;

fn params() -> CakeParams {
    CakeParams {
        rtt: Span::from_ms(100),
        limit: None,
        bandwidth: None,
        overhead: None,
        mpu: 0,
        framing: LineCode::NoAtm,
        isolation: Isolation::TripleIsolate,
    }
}

fn cake(params: CakeParams, hosts: &[[u32; 2]]) -> Cake {
    let mut cake = Cake::new(params, Stream::new(1, "test"));
    cake.learn_hosts(hosts);
    cake
}

fn packet(flow: u32) -> Packet {
    let seg = Segment { len: 1448, has_ts: true, ..Segment::default() };
    Packet { header: seg.into(), flow, conn: flow, bytes: 1514, forward: true, ..Packet::default() }
}

/// Packets of each flow among the next `n`, with every flow always backlogged.
fn shares(cake: &mut Cake, flows: u32, n: usize) -> Vec<usize> {
    let mut sent = vec![0; flows as usize];
    for flow in 0..flows {
        for _ in 0..4 {
            cake.enqueue(Time(0), packet(flow), true);
        }
    }
    for _ in 0..n {
        let (taken, _) = cake.dequeue(Time(1)).expect("a packet");
        sent[taken.flow as usize] += 1;
        cake.enqueue(Time(1), packet(taken.flow), true);
    }
    sent
}

#[test]
fn charges_are_those_of_tc() {
    let charge =
        |overhead, mpu, framing| CakeParams { overhead, mpu, framing, ..params() }.charge(&packet(0));
    assert_eq!(charge(None, 0, LineCode::NoAtm), 1514);
    assert_eq!(charge(Some(38), 84, LineCode::NoAtm), 1538, "ethernet");
    assert_eq!(charge(Some(48), 0, LineCode::Atm), 33 * 53, "conservative: 1548 bytes are 32.25 cells");
    assert_eq!(charge(Some(30), 0, LineCode::Ptm), 1530 + 24, "pppoe-ptm");
    let ack = Packet { header: Segment::default().into(), bytes: 54, ..packet(0) };
    assert_eq!(CakeParams { overhead: Some(38), mpu: 84, ..params() }.charge(&ack), 84);
    let two = Packet {
        more: 1,
        header: Segment { len: 2896, has_ts: true, ..Segment::default() }.into(),
        ..packet(0)
    };
    assert_eq!(CakeParams { overhead: Some(38), ..params() }.charge(&two), 2 * 1538);
}

#[test]
fn memory_is_four_times_the_path_and_at_least_4_mib() {
    let memory = |mbit: u64| CakeParams { bandwidth: Some(Rate(mbit * 1_000_000)), ..params() }.memory();
    assert_eq!((memory(10), memory(1000)), (4 << 20, 50_000_000));
    assert_eq!(params().memory(), u32::MAX as u64);
}

#[test]
fn the_shaper_spaces_packets_by_its_rate() {
    let mut shaped = cake(
        CakeParams { bandwidth: Some(Rate(12_112_000)), rtt: Span::from_secs(10), ..params() },
        &[[0, 1]],
    );
    for _ in 0..50 {
        shaped.enqueue(Time(5 * MS), packet(0), false);
    }
    let mut times = Vec::new();
    while let Some(at) = shaped.head_arrival() {
        times.push(at.0);
        assert!(shaped.dequeue(at).is_some());
    }
    assert_eq!(times, (0..50).map(|i| (5 + i) * MS).collect::<Vec<_>>(), "1 ms each, no burst");
    shaped.enqueue(Time(100 * MS), packet(0), false);
    assert_eq!(shaped.head_arrival(), Some(Time(100 * MS)), "idle time earns nothing");
}

/// Host 0 has three flows to three hosts, host 1 has one flow. Each host gets half of the link; with fairness by
/// flow, each flow gets a quarter.
#[test]
fn hosts_share_and_flows_share_within_them() {
    let hosts = [[0, 10], [0, 11], [0, 12], [1, 13]];
    let of = |isolation, hosts: &[[u32; 2]]| {
        let sent = shares(&mut cake(CakeParams { isolation, ..params() }, hosts), 4, 60_000);
        sent.iter().map(|&n| (n as f64 / 600.0).round() as u32).collect::<Vec<_>>()
    };
    for isolation in [Isolation::TripleIsolate, Isolation::DualSrchost] {
        let shares = of(isolation, &hosts);
        assert!(
            shares[3].abs_diff(50) <= 1 && shares[..3].iter().all(|&n| n.abs_diff(17) <= 1),
            "{shares:?}"
        );
    }
    for isolation in [Isolation::Flows, Isolation::DualDsthost] {
        assert!(of(isolation, &hosts).iter().all(|&n| n.abs_diff(25) <= 1));
    }
    let back: Vec<[u32; 2]> = hosts.iter().map(|&[a, b]| [b, a]).collect();
    assert_eq!(of(Isolation::TripleIsolate, &back)[3].abs_diff(50).min(2), 0);
}

#[test]
fn the_longest_queue_pays_for_the_overflow() {
    let mut full = cake(CakeParams { limit: Some(10 * 2280), ..params() }, &[[0, 1], [0, 1]]);
    for _ in 0..10 {
        full.enqueue(Time(0), packet(0), true);
    }
    for _ in 0..3 {
        full.enqueue(Time(0), packet(1), true);
    }
    let dropped: Vec<_> =
        std::iter::from_fn(|| full.take_head_drop()).map(|(_, p, why)| (p.flow, why)).collect();
    assert_eq!(dropped, [(0, Refused::QueueFull); 3]);
    assert_eq!((full.len(), full.figures(Time(0)).2), (10, 3));
}

#[test]
fn eight_flows_of_a_set_do_not_meet() {
    let mut queue = cake(params(), &[]);
    let mut of_set: Vec<u32> = Vec::new();
    for conn in 0.. {
        let at = queue.classify(&Packet { conn, ..packet(0) });
        if at / WAYS == 7 {
            of_set.push(conn);
        }
        if of_set.len() == 9 {
            break;
        }
    }
    let mut queue = cake(params(), &[]);
    let mut used: Vec<u32> = Vec::new();
    for &conn in &of_set {
        queue.enqueue(Time(0), Packet { conn, ..packet(0) }, true);
        used.push(queue.classify(&Packet { conn, ..packet(0) }));
    }
    let mut eight = used[..8].to_vec();
    eight.sort();
    assert_eq!(eight, (56..64).collect::<Vec<_>>());
    assert!(eight.contains(&used[8]), "the ninth shares");
}

#[test]
fn a_flow_that_begins_goes_first_and_a_standing_queue_is_cut() {
    let mut queue = cake(params(), &[[0, 1], [0, 1]]);
    let mut drops = 0;
    for ms in 0..3000 {
        for _ in 0..2 {
            queue.enqueue(Time(ms * MS), packet(0), true);
        }
        queue.dequeue(Time(ms * MS));
        drops += std::iter::from_fn(|| queue.take_head_drop()).count();
    }
    assert!(drops > 100, "{drops}");
    queue.enqueue(Time(3000 * MS), packet(1), true);
    let next: Vec<u32> = (0..2).map(|_| queue.dequeue(Time(3000 * MS)).unwrap().0.flow).collect();
    assert!(next.contains(&1), "{next:?}");
}
