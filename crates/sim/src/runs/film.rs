//! Positions of all packets over time, to draw the network. The run is repeated, and each link records the packets
//! that cross it.

use ackclock_core::Time;

use crate::error::Error;
use crate::runs::build::build;
use crate::scenario::bounds::{Bounds, Guard, SLICE};
use crate::scenario::hosts::Customs;
use crate::scenario::spec::{CapturePoint, Scenario, TraceLevel};
use crate::tables::table::Table;
use crate::world::shortcuts::Shortcuts;

/// Packets on the links during a period.
pub struct Film {
    /// End of the recorded period: the end of the run, or earlier if the maximum number of legs was reached.
    pub until: Time,
    /// Link names.
    pub names: Vec<String>,
    /// Links of each flow's forward and return path.
    pub ways: Vec<[Vec<u32>; 2]>,
    /// `legs` has a row for each packet on a link, ordered by link, then by time. `falls` has a row for each packet
    /// dropped by a link, ordered by time.
    pub tables: [Table; 2],
}

/// Run the scenario and record the packets on links from `from` on, up to `most` legs. No other results of the
/// run are kept.
pub fn film(
    scenario: &Scenario,
    seed: u64,
    customs: &Customs,
    bounds: &Bounds,
    from: Time,
    most: usize,
) -> Result<Film, Error> {
    let mut scenario = scenario.clone();
    let record = &mut scenario.record;
    (record.trace, record.controller, record.capture) =
        (TraceLevel::None, TraceLevel::None, CapturePoint::None);
    (record.sample_interval_ns, record.queue_interval_ns, record.goodput_interval_ns) = (0, 0, 0);
    (record.drops, record.performance) = (true, None);
    let mut guard = Guard::new(bounds);
    let mut built =
        build(&scenario, seed, customs, Shortcuts { ahead: false, told_late: false, ..Shortcuts::ALL })?;
    built.world.film(from);
    built.app.begin(&mut built.world);
    guard.check(&built.world)?;
    let end = Time(scenario.duration_ns);
    let (mut legs, mut count) = (vec![Vec::new(); built.world.links()], 0);
    let until = loop {
        let over = built.world.run(&mut built.app, end, SLICE);
        for (all, new) in legs.iter_mut().zip(built.world.take_legs()) {
            count += new.len();
            all.extend(new);
        }
        if over || count >= most {
            break built.world.now();
        }
        guard.check(&built.world)?;
    };
    let rows = || legs.iter().enumerate().flat_map(|(link, legs)| legs.iter().map(move |leg| (link, leg)));
    let table = Table::new("legs")
        .u4("link", rows().map(|(link, _)| link as u32))
        .time("arrived_s", rows().map(|(_, leg)| leg.arrived))
        .time("leaves_s", rows().map(|(_, leg)| leg.leaves))
        .time("delivery_s", rows().map(|(_, leg)| leg.delivery))
        .u4("flow", rows().map(|(_, leg)| leg.flow))
        .u4("seg_no", rows().map(|(_, leg)| leg.seg_no))
        .u1("rexmit", rows().map(|(_, leg)| leg.rexmit))
        .i8("ack", rows().map(|(_, leg)| leg.ack))
        .flag("marked", rows().map(|(_, leg)| leg.marked));
    let mut drops = built.world.take_drops();
    drops.retain(|dropped| dropped.t >= from);
    let falls = Table::new("falls")
        .time("t_s", drops.iter().map(|dropped| dropped.t))
        .u4("link", drops.iter().map(|dropped| dropped.link))
        .u4("flow", drops.iter().map(|dropped| dropped.packet.flow))
        .u4("seg_no", drops.iter().map(|dropped| dropped.packet.header.ordinal().0));
    let ways = (0..built.app.flows.len() as u32).map(|flow| built.world.ways(flow)).collect();
    Ok(Film { until, names: built.world.link_names(), ways, tables: [table, falls] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::table::Column;
    use crate::{parse, run};

    fn numbers(table: &Table, name: &str) -> Vec<f64> {
        match &table.columns.iter().find(|(own, _)| *own == name).expect("a column").1 {
            Column::F8(values) => values.clone(),
            Column::U4(values) => values.iter().map(|&value| f64::from(value)).collect(),
            Column::I8(values) => values.iter().map(|&value| value as f64).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn filmed(queue: &str) -> (Film, crate::Output) {
        let scenario = parse(&format!(
            r#"{{"duration_ns": 3000000000, "record": {{"drops": true}}, "network": {{"topology": "dumbbell",
                "bottleneck": {{"rate": 10000000, "delay": 9000000, "queue": {queue}}}}},
                "flows": [{{"count": 2, "profile": "linux-6", "congestion_control": "cubic", "workload": {{"kind": "bulk"}}}}]}}"#
        ))
        .expect("a scenario");
        let none = Customs::new();
        let film = film(&scenario, 1, &none, &Bounds::NONE, Time::ZERO, usize::MAX).expect("a film");
        (film, run(&scenario, 1).expect("a run"))
    }

    /// Tests that a film agrees with its run: packets delivered and dropped by links, queueing delays, and each
    /// packet's path from link to link, without gaps.
    #[test]
    fn a_film_shows_the_packets_of_the_run() {
        for queue in [
            r#"{"kind": "drop-tail", "limit": {"packets": 20}}"#,
            r#"{"kind": "codel"}"#,
            r#"{"kind": "fq-codel", "target": 1000000}"#,
            r#"{"kind": "dualpi2"}"#,
        ] {
            let (film, output) = filmed(queue);
            let [legs, falls] = &film.tables;
            let (links, arrived, leaves) =
                (numbers(legs, "link"), numbers(legs, "arrived_s"), numbers(legs, "leaves_s"));
            let delivery = numbers(legs, "delivery_s");
            assert!(arrived.iter().zip(&leaves).all(|(a, b)| a <= b), "{queue}");
            assert!(leaves.iter().zip(&delivery).all(|(a, b)| a <= b), "{queue}");
            let table = output.table("links");
            for (link, delivered) in numbers(table, "delivered").into_iter().enumerate() {
                let seen =
                    links.iter().zip(&delivery).filter(|(l, d)| **l == link as f64 && **d <= 3.0).count();
                assert_eq!(seen as f64, delivered, "{queue}, {}", film.names[link]);
            }
            assert_eq!(falls.rows(), output.table("drops").rows(), "{queue}");
            assert!(falls.rows() > 0, "{queue}");
            // a packet delivered by a link reaches the next link of its path at the same instant
            let (flow, ways) = (numbers(legs, "flow"), &film.ways);
            for (i, way) in ways.iter().enumerate() {
                for pair in way.iter().flat_map(|way| way.windows(2)) {
                    let of = |link: u32, times: &[f64]| -> Vec<u64> {
                        let own =
                            |(at, _): &(usize, &f64)| links[*at] == f64::from(link) && flow[*at] == i as f64;
                        let mut found: Vec<u64> =
                            times.iter().enumerate().filter(own).map(|(_, t)| t.to_bits()).collect();
                        found.sort_unstable();
                        found
                    };
                    let (out, into) = (of(pair[0], &delivery), of(pair[1], &arrived));
                    assert!(into.iter().all(|t| out.binary_search(t).is_ok()), "{queue}, {pair:?}");
                    assert!(!into.is_empty());
                }
            }
        }
    }

    #[test]
    fn a_film_ends_where_there_is_enough_of_it() {
        let scenario = parse(
            r#"{"duration_ns": 30000000000, "network": {"topology": "chain", "bottleneck": {"rate": 10000000, "delay": 9000000}},
                "flows": [{"profile": "linux-6", "congestion_control": "cubic", "workload": {"kind": "bulk"}}]}"#,
        )
        .expect("a scenario");
        let none = Customs::new();
        let from = Time(1_000_000_000);
        let film = film(&scenario, 1, &none, &Bounds::NONE, from, 1000).expect("a film");
        assert!(film.until > from && film.until < Time(20_000_000_000), "{}", film.until);
        assert!(film.tables[0].rows() >= 1000);
        assert!(numbers(&film.tables[0], "delivery_s").iter().all(|&t| t >= 1.0));
    }
}
