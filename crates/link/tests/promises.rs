//! Tests of the guarantees in the crate documentation: no allocation per packet, reproducible results, no packet
//! unaccounted for, marks.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ackclock_link::{Ecn, Link, Lost, Packet, PRESETS};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: it only counts, and hands everything to the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Enqueue `packets` 1,500-byte packets starting with number `first`, one every `gap` ns, and report delivered and
/// lost packets to `heard`.
fn drive(
    link: &mut Link,
    first: u64,
    packets: u64,
    gap: u64,
    heard: &mut impl FnMut(u64, Packet, Option<Lost>),
) {
    for id in first..first + packets {
        let now = id * gap;
        while let Some(at) = link.next_event().filter(|&at| at <= now) {
            while let Some((reached, packet)) = link.dequeue(at) {
                assert_eq!(reached, at);
                heard(at, packet, None);
            }
            while let Some((packet, why)) = link.take_dropped() {
                heard(at, packet, Some(why));
            }
        }
        let packet = Packet { id, ecn: Ecn::Ect0, flow: (id % 3) as u32, ..Packet::default() };
        if let Err(why) = link.enqueue(now, packet) {
            heard(now, packet, Some(why));
        }
        while let Some((packet, why)) = link.take_dropped() {
            heard(now, packet, Some(why));
        }
    }
}

fn drain(link: &mut Link, heard: &mut impl FnMut(u64, Packet, Option<Lost>)) {
    while let Some(at) = link.next_event() {
        while let Some((reached, packet)) = link.dequeue(at) {
            heard(reached, packet, None);
        }
        while let Some((packet, why)) = link.take_dropped() {
            heard(at, packet, Some(why));
        }
    }
}

/// Return the gap between packets for a load of 120 % of the preset's rate, ns.
fn gap(name: &str) -> u64 {
    let text = PRESETS.iter().find(|(own, _)| *own == name).expect("a preset").1;
    let rate = text.split('\'').nth(1).expect("a rate first");
    let (number, unit) = rate.split_once(' ').expect("a unit");
    let bps = number.parse::<f64>().expect("a number") * if unit.starts_with('G') { 1e9 } else { 1e6 };
    (1500.0 * 8e9 / bps / 1.2) as u64
}

#[test]
fn every_packet_comes_out_or_is_said_to_be_lost_and_all_of_it_again() {
    for (name, _) in PRESETS {
        let run = |seed| {
            let mut link = Link::new(name, seed).expect("a preset");
            let mut all = Vec::new();
            let mut heard = |at: u64, packet: Packet, lost: Option<Lost>| all.push((at, packet, lost));
            drive(&mut link, 0, 20_000, gap(name), &mut heard);
            drain(&mut link, &mut heard);
            assert_eq!(link.next_event(), None, "{name}");
            all
        };
        let all = run(1);
        let mut ids: Vec<u64> = all.iter().map(|(_, packet, _)| packet.id).collect();
        ids.sort_unstable();
        assert!(ids.iter().copied().eq(0..20_000), "{name}: each once");
        assert!(all == run(1), "{name}");
    }
}

/// Arrivals do not change if they are polled only after the last packet has been sent.
#[test]
fn who_asks_late_hears_the_same() {
    for (name, _) in PRESETS {
        let run = |late: bool| {
            let mut link = Link::new(name, 1).expect("a preset");
            let mut arrivals = Vec::new();
            let mut heard = |at: u64, packet: Packet, lost: Option<Lost>| {
                if lost.is_none() {
                    arrivals.push((at, packet));
                }
            };
            if late {
                for id in 0..20_000 {
                    let packet = Packet { id, ecn: Ecn::Ect0, flow: (id % 3) as u32, ..Packet::default() };
                    let _lost = link.enqueue(id * gap(name), packet);
                }
                assert!(link.next_event().is_some_and(|at| at < 19_999 * gap(name)), "{name}");
                while let Some((at, packet)) = link.dequeue(u64::MAX / 2) {
                    heard(at, packet, None);
                }
            } else {
                drive(&mut link, 0, 20_000, gap(name), &mut heard);
                drain(&mut link, &mut heard);
            }
            arrivals
        };
        assert!(run(true) == run(false), "{name}");
    }
}

#[test]
fn a_link_may_move_to_another_thread() {
    let mut link = Link::new("dsl", 1).expect("a preset");
    link.enqueue(0, Packet::default()).expect("taken");
    let arrived = std::thread::spawn(move || link.dequeue(1_000_000_000)).join().expect("no panic");
    assert_eq!(arrived.map(|(at, _)| at), Some(15_750_000));
}

#[test]
fn nothing_is_allocated_for_a_packet() {
    for (name, _) in PRESETS {
        let mut link = Link::new(name, 1).expect("a preset");
        let mut packets = 0;
        let mut count = |_: u64, _: Packet, _: Option<Lost>| packets += 1;
        drive(&mut link, 0, 30_000, gap(name), &mut count);
        let before = ALLOCATIONS.with(Cell::get);
        drive(&mut link, 30_000, 30_000, gap(name), &mut count);
        let allocations = ALLOCATIONS.with(Cell::get) - before;
        assert!(allocations <= 8, "{name}: {allocations} for 30,000 packets");
        assert!(packets > 40_000, "{name}");
    }
}

#[test]
fn queues_mark_what_may_be_marked() {
    for (name, marks) in [("datacentre", true), ("fq-codel", true), ("dsl", false)] {
        let mut link = Link::new(name, 1).expect("a preset");
        let mut marked = 0;
        drive(&mut link, 0, 20_000, gap(name), &mut |_, packet, lost| {
            marked += u32::from(packet.ecn == Ecn::Ce && lost.is_none());
        });
        assert_eq!(marked > 0, marks, "{name}: {marked}");
    }
}

#[test]
fn a_packet_takes_its_time_to_the_nanosecond() {
    let mut link = Link::new("rate = '12 Mbit/s'\ndelay = '10 ms'", 1).expect("a link");
    link.enqueue(500, Packet { id: 7, ..Packet::default() }).expect("taken");
    assert_eq!(link.next_event(), Some(11_000_500));
    assert_eq!(link.dequeue(11_000_499), None);
    assert_eq!(link.dequeue(12_000_000).map(|(at, packet)| (at, packet.id)), Some((11_000_500, 7)));
    assert_eq!((link.next_event(), link.waiting()), (None, 0));
}

#[test]
#[should_panic(expected = "time goes back, from 5 ns to 4 ns")]
fn time_that_goes_back_is_said() {
    let mut link = Link::new("", 1).expect("a link");
    assert_eq!(link.dequeue(5), None);
    link.dequeue(4);
}
