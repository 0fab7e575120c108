//! The yardstick: the minimum cost of a packet-level event loop with a heap, per data packet. Fixed windows, one 100
//! Mbit/s FIFO bottleneck, one ACK per packet, no loss, no congestion control, four heap events per packet (reach the
//! queue, end of transmission, reach the receiver, ACK reaches the sender). Dividing by this cost, measured in the
//! same minute, turns nanoseconds per packet into a ratio that is comparable between machines.
//!
//! The yardstick has its own arithmetic and its own heap, so that changes of the engine do not affect it.

use std::collections::VecDeque;

use crate::cpu;

/// CPU time of the loop per data packet with `flows` flows, averaged over `packets` packets, ns.
pub fn yardstick(flows: u32, packets: u64) -> f64 {
    let mut net = Net::new(flows.max(1) as usize);
    let start = cpu::thread_seconds();
    net.events4(packets);
    (cpu::thread_seconds() - start) * 1e9 / packets.max(1) as f64
}

#[derive(Clone, Copy, Default)]
struct Packet {
    flow: u32,
    seq: u32,
    sent: u64,
}

#[derive(Clone, Default)]
struct Flow {
    next: u32,
    una: u32,
    wnd: u32,
    rcv: u32,
    srtt: u64,
}

struct Net {
    /// Serialisation time of a packet at the bottleneck, ns.
    ser: u64,
    /// One-way delay, and its part before the bottleneck queue, ns.
    owd: u64,
    access: u64,
    limit: usize,
    flows: Vec<Flow>,
    delivered: u64,
    heap: Heap,
    slab: Vec<Packet>,
    free: Vec<u32>,
    queue: VecDeque<u32>,
    inserted: u64,
}

impl Net {
    fn new(n: usize) -> Net {
        let ser = (WIRE_BYTES * 8e3 / MBPS) as u64;
        let owd = (RTT_MS * 0.5e6) as u64;
        let bdp = (2 * owd / ser) as usize;
        let wnd = ((bdp + bdp / 2) / n).max(1) as u32; // 1.5 BDP in flight: half a BDP is queued
        Net {
            ser,
            owd,
            access: 1_000_000,
            limit: 2 * bdp + 2 * n, // room for the initial burst: nothing is lost
            flows: vec![Flow { wnd, ..Flow::default() }; n],
            delivered: 0,
            heap: Heap::default(),
            slab: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            inserted: 0,
        }
    }

    fn at(&mut self, t: u64, slot: u32, kind: u32) {
        self.heap.push((t as u128) << 64 | (self.inserted << 24 | (slot << 2 | kind) as u64) as u128);
        self.inserted += 1;
    }

    fn send(&mut self, now: u64, f: usize) {
        while self.flows[f].next.wrapping_sub(self.flows[f].una) < self.flows[f].wnd {
            let packet = Packet { flow: f as u32, seq: self.flows[f].next, sent: now };
            self.flows[f].next += 1;
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slab.push(Packet::default());
                self.slab.len() as u32 - 1
            });
            self.slab[slot as usize] = packet;
            self.at(now + self.access, slot, 0);
        }
    }

    fn events4(&mut self, packets: u64) {
        for f in 0..self.flows.len() {
            self.send(f as u64 * 1000, f);
        }
        while self.delivered < packets {
            let key = self.heap.pop();
            let now = (key >> 64) as u64;
            let id = key as u32 & 0xff_ffff;
            let slot = id >> 2;
            match id & 3 {
                0 => {
                    assert!(self.queue.len() < self.limit, "invariant: nothing is lost");
                    self.queue.push_back(slot);
                    if self.queue.len() == 1 {
                        self.at(now + self.ser, slot, 1);
                    }
                }
                1 => {
                    self.queue.pop_front();
                    self.at(now + self.owd - self.access, slot, 2);
                    if let Some(&next) = self.queue.front() {
                        self.at(now + self.ser, next, 1);
                    }
                }
                2 => {
                    let flow = &mut self.flows[self.slab[slot as usize].flow as usize];
                    flow.rcv += 1;
                    self.delivered += 1;
                    self.slab[slot as usize].seq = flow.rcv;
                    self.at(now + self.owd, slot, 3);
                }
                _ => {
                    let packet = self.slab[slot as usize];
                    self.free.push(slot);
                    let f = packet.flow as usize;
                    let flow = &mut self.flows[f];
                    flow.una = packet.seq;
                    flow.srtt = flow.srtt.wrapping_add((now - packet.sent).wrapping_sub(flow.srtt) / 8);
                    self.send(now, f);
                }
            }
        }
    }
}

/// 4-ary heap of 128-bit keys with plain push and pop.
#[derive(Default)]
struct Heap(Vec<u128>);

impl Heap {
    #[inline]
    fn push(&mut self, key: u128) {
        let v = &mut self.0;
        let mut i = v.len();
        v.push(key);
        while i > 0 {
            let parent = (i - 1) / 4;
            if v[parent] <= key {
                break;
            }
            v[i] = v[parent];
            i = parent;
        }
        v[i] = key;
    }

    #[inline]
    fn pop(&mut self) -> u128 {
        let top = self.0[0];
        let last = self.0.pop().expect("invariant: packets are in flight");
        let v = &mut self.0[..];
        let n = v.len();
        if n == 0 {
            return top;
        }
        let mut i = 0;
        loop {
            let first = i * 4 + 1;
            if first >= n {
                break;
            }
            let mut best = first;
            for j in first + 1..n.min(first + 4) {
                if v[j] < v[best] {
                    best = j;
                }
            }
            if last <= v[best] {
                break;
            }
            v[i] = v[best];
            i = best;
        }
        v[i] = last;
        top
    }
}

const WIRE_BYTES: f64 = 1500.0;
const MBPS: f64 = 100.0;
const RTT_MS: f64 = 40.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivers_what_was_asked_for() {
        for flows in [1, 10] {
            let mut net = Net::new(flows);
            net.events4(5_000);
            assert_eq!(net.delivered, 5_000);
        }
    }
}
