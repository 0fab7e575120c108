//! Ends on imperfect hosts (`ackclock_net::host`). Each end is a process of its host. Its work (packets in its inbox,
//! timers, packets to send) is done step by step, and the host must permit every step.
//!
//! A process sends all that it can before it handles its timers, and handles those before its next packet, in the
//! same order as on a perfect host. If sending costs time, outgoing and incoming packets take turns.

use ackclock_core::{FlowId, Packet, Span, Time};
use ackclock_net::host::{Device, Direction, HostSums, Permit};
use ackclock_net::PacketId;
use ackclock_net::{Host, HostConfig};

use super::process::{Blocked, Process};
use super::{Application, ConnId, World, KIND_BITS, SENDER, SLOT_MASK, TICK};
use crate::transport::Transport;

/// First number of the recurring events of hosts.
pub const HOST_TICKS: u32 = 1 << 12;
/// Maximum number of hosts in a run: their event numbers must fit into an event id.
pub const MAX_HOSTS: usize = 1 << 20;

/// Host events: delivery of arrivals, delivery of departures, end of a slice, work of the host's own device.
const EVENTS: usize = 4;
const OUT: usize = 1;
const SLICE: usize = 2;
const DEVICE: usize = 3;

/// The imperfect hosts of a run, and the ends on them.
#[derive(Clone)]
pub(super) struct Hosts {
    slots: Vec<Slot>,
    /// Hosts of each flow's sending and receiving end; `None` for a perfect host.
    of: Vec<[Option<u32>; 2]>,
    /// Host that emulates the links and can freeze them; `None` if there is none.
    emulator: Option<u32>,
    /// Ends and connections whose writers are suspended until the end of a poll.
    suspended: Vec<(usize, u32)>,
}

#[derive(Clone)]
struct Slot {
    host: Host,
    /// Time of the pending event for the end of a slice.
    armed: Time,
}

impl Hosts {
    /// Create the process for the end of `flow` at `side`; `None` on a perfect host.
    pub fn process(&self, flow: FlowId, side: usize, transport: &mut Transport) -> Option<Box<Process>> {
        let host = self.of.get(flow as usize)?[side]?;
        let on = &self.slots[host as usize].host;
        transport.set_pacer(on.pacer());
        if on.cuts() {
            transport.cut_packets();
        }
        if let Some(device) = &on.device {
            transport.queue_behind(device.paces());
        }
        // TCP runs in the kernel, driven by interrupts; a process that paces datagrams may busy-wait
        let busy = on.cpu().busy_wait && side == SENDER && transport.datagram().is_some();
        Some(Box::new(Process::new(host, busy)))
    }

    /// Whether a host may freeze the links.
    pub fn links_may_stand(&self) -> bool {
        self.emulator.is_some()
    }

    /// Time at which frozen links resume; `None` if they are not frozen.
    #[inline]
    pub fn links_stand_until(&mut self, now: Time) -> Option<Time> {
        let emulator = self.emulator?;
        self.slots[emulator as usize].host.links_stand_until(now)
    }
}

impl World {
    /// Create the hosts and assign them to the ends: for each flow, the hosts of the sending and of the receiving
    /// end.
    pub fn place(&mut self, hosts: &[HostConfig], of: Vec<[Option<u32>; 2]>) {
        if hosts.is_empty() {
            return;
        }
        let slots: Vec<Slot> =
            hosts.iter().map(|c| Slot { host: Host::new(c, self.seed), armed: Time::NEVER }).collect();
        let emulator = slots.iter().position(|slot| slot.host.emulates_links()).map(|at| at as u32);
        self.hosts = Some(Box::new(Hosts { slots, of, emulator, suspended: Vec::new() }));
    }

    /// Name and counters of each host.
    pub fn host_sums(&mut self) -> Vec<(String, HostSums)> {
        let now = self.now;
        let slots = self.hosts.iter_mut().flat_map(|hosts| &mut hosts.slots);
        slots.map(|slot| (slot.host.name().to_string(), slot.host.sums(now))).collect()
    }

    /// Hand a packet to the host of end `index`.
    #[cold]
    #[inline(never)]
    pub(super) fn reach_host(&mut self, app: &mut impl Application, index: usize, id: PacketId) {
        let (now, packet) = (self.now, self.net.pool.remove(id));
        self.net.gauges.iter_mut().for_each(|gauges| gauges.arrive(now, &packet));
        let process = self.process(index);
        let at = process.host;
        let host = &mut self.hosts_mut().slots[at as usize].host;
        if !host.batches(Direction::In) {
            self.process(index).inbox.push_back(packet);
            return self.run_process(app, index);
        }
        if let Some(due) = host.push(now, Direction::In, packet) {
            self.host_tick(at, 0, due);
        }
    }

    /// Hand a packet from a process to the network through `host`.
    pub(super) fn leave_host(&mut self, host: u32, packet: Packet) {
        let now = self.now;
        let on = &mut self.hosts_mut().slots[host as usize].host;
        if !on.batches(Direction::Out) {
            return self.net.send(now, &packet);
        }
        match on.push(now, Direction::Out, packet) {
            Some(due) if due == now => self.hand_out(host as usize),
            Some(due) => self.host_tick(host, OUT, due),
            None => {}
        }
    }

    /// Remove end `index` from `host`.
    pub(super) fn leave(&mut self, host: u32, index: usize) {
        let now = self.now;
        let next = self.hosts_mut().slots[host as usize].host.release(now, index as u32);
        self.kick(next);
        self.arm_slice(host as usize);
    }

    /// Let the process of end `index` run after a call of its application.
    pub(super) fn wake_process(&mut self, index: usize) {
        let now = self.now;
        let process = self.process(index);
        process.sends = true;
        if process.state == Blocked::No {
            process.state = Blocked::Until(now.max(process.free_at));
        }
        self.arm(index);
    }

    /// Run a process as long as its host permits.
    pub(super) fn run_process(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        loop {
            // the application's callback may close the connection
            let Some(end) = self.ends[index].as_mut() else { return };
            let (conn, flow, watched) = (ConnId(end.conn), end.flow, end.is_watched());
            let due = end.transport.next_deadline() <= now;
            let process = end.process.as_mut().expect("invariant: asked for processes only");
            let at = process.host as usize;
            process.state = Blocked::No;
            if process.free_at > now {
                process.state = Blocked::Until(process.free_at);
                return self.arm(index);
            }
            let work = process.sends || due || !process.inbox.is_empty();
            let host = &mut self.hosts.as_mut().expect("invariant: there are hosts").slots[at].host;
            if !work && !process.busy {
                let next = host.release(now, index as u32);
                self.arm(index);
                self.kick(next);
                return self.arm_slice(at);
            }
            match host.permit(now, index as u32) {
                Permit::Now if !work => return self.arm(index),
                Permit::Now => {}
                Permit::At(open) => {
                    process.state = Blocked::Until(open);
                    let waits = !host.receives_on() || process.inbox.is_empty();
                    if waits {
                        return self.arm(index);
                    }
                    self.take_in(app, index, conn, flow, watched);
                    continue;
                }
                Permit::InTurn => {
                    process.state = Blocked::InTurn;
                    return self.arm_slice(at);
                }
            }
            let cost = *host.cpu();
            // If packets cost time, a process could send or receive forever, so it alternates between the two.
            let takes_in = process.sent && !process.inbox.is_empty();
            if process.sends && !takes_in {
                let (mut packet, framing_bytes) = (Packet::default(), self.net.framing_bytes);
                let mut due = now;
                let sends = match &mut host.device {
                    None => end
                        .send_into(now, index & 1, framing_bytes, || &mut packet, &mut self.captured)
                        .is_some(),
                    Some(device) => {
                        due = end.transport.departure(now);
                        end.transport.set_queue_full(!device.takes(now, end.key(index & 1), due));
                        let sends =
                            end.send_into(due, index & 1, framing_bytes, || &mut packet, &mut None).is_some();
                        device.note_refused(end.transport.take_refused());
                        sends
                    }
                };
                let process = end.process.as_mut().expect("invariant: asked above");
                match sends {
                    true => {
                        process.sent = cost.send > Span::ZERO;
                        process.free_at = now + cost.send;
                        match self.hosts_mut().slots[at].host.device.is_some() {
                            true => self.hand_down(index, at, packet, due),
                            false => self.leave_host(at as u32, packet),
                        }
                    }
                    false => {
                        process.sends = false;
                        if std::mem::take(&mut process.tell) {
                            app.progress(self, conn, flow, index & 1);
                        }
                    }
                }
                continue;
            }
            process.sends = true;
            if due && !takes_in {
                process.tell = true;
                end.transport.on_timer(now);
                continue;
            }
            (process.tell, process.sent) = (watched, false);
            let packet = process.inbox.pop_front().expect("invariant: there is work");
            process.free_at = now + cost.receive;
            self.receive(index, &packet);
        }
    }

    /// Process a packet at an end.
    fn receive(&mut self, index: usize, packet: &Packet) {
        let end = self.ends[index].as_mut().expect("invariant: open");
        let (captured, gauges) = (&mut self.captured, &mut self.net.gauges);
        end.receive_noted(self.now, index & 1, packet, &mut self.digest, captured, gauges);
    }

    /// Process the next packet of the inbox while the process may not send.
    fn take_in(
        &mut self,
        app: &mut impl Application,
        index: usize,
        conn: ConnId,
        flow: FlowId,
        watched: bool,
    ) {
        let process = self.process(index);
        process.sends = true;
        let packet = process.inbox.pop_front().expect("invariant: asked for by the caller");
        self.receive(index, &packet);
        if watched {
            app.progress(self, conn, flow, index & 1);
        }
    }

    /// Process a host event.
    pub(super) fn host_event(&mut self, app: &mut impl Application, event: usize) {
        let now = self.now;
        let (at, what) = (event / EVENTS, event % EVENTS);
        match what {
            OUT => self.hand_out(at),
            DEVICE => self.device_event(at),
            SLICE => {
                let slot = &mut self.hosts_mut().slots[at];
                if slot.armed != now {
                    return; // replaced by an earlier event
                }
                slot.armed = Time::NEVER;
                while let Some(next) = self.hosts_mut().slots[at].host.rotate(now) {
                    self.kick(Some(next));
                }
                self.arm_slice(at);
            }
            _ => {
                let (packets, again) = self.hosts_mut().slots[at].host.hand_over(now, Direction::In);
                if let Some(again) = again {
                    self.host_tick(at as u32, 0, again);
                }
                for _ in 0..packets {
                    let packet = self.hosts_mut().slots[at].host.take(Direction::In);
                    let index = 2 * (packet.conn & SLOT_MASK) as usize + packet.forward as usize;
                    let end = self.ends[index].as_mut().filter(|end| end.conn == packet.conn);
                    let Some(end) = end else { continue }; // the connection was closed in the meantime
                    end.process.as_mut().expect("invariant: came to its host").inbox.push_back(packet);
                    if packets > 1 {
                        end.transport.suspend_writer(true);
                        self.hosts_mut().suspended.push((index, packet.conn));
                    }
                    self.run_process(app, index);
                }
                self.resume_writers(app);
            }
        }
    }

    /// Resume the writers that were suspended, once all packets of a poll have been processed. (In Linux a process
    /// runs after the softirq.)
    fn resume_writers(&mut self, app: &mut impl Application) {
        let mut suspended = std::mem::take(&mut self.hosts_mut().suspended);
        for &(index, conn) in &suspended {
            if let Some(end) = self.ends[index].as_mut().filter(|end| end.conn == conn) {
                end.transport.suspend_writer(false);
                end.process.as_mut().expect("invariant: came to its host").sends = true;
                self.run_process(app, index);
            }
        }
        suspended.clear();
        self.hosts_mut().suspended = suspended;
    }

    /// Send the packets that are batched in a host's NIC.
    fn hand_out(&mut self, at: usize) {
        let now = self.now;
        for _ in 0..self.hosts_mut().slots[at].host.hand_over(now, Direction::Out).0 {
            let packet = self.hosts_mut().slots[at].host.take(Direction::Out);
            self.net.send(now, &packet);
        }
    }

    /// Queue a packet at a host's own device.
    fn hand_down(&mut self, index: usize, at: usize, packet: Packet, due: Time) {
        let now = self.now;
        let end = self.ends[index].as_mut().expect("invariant: it sends");
        let device = &mut self.hosts.as_mut().expect("invariant: there are hosts").slots[at].host.device;
        let device = device.as_mut().expect("invariant: asked by the caller");
        let (start, payload) = (packet.header.start(), packet.header.payload());
        end.transport.queued(start, payload);
        let due = end.transport.tcp().map(|_| due);
        if !device.push(now, end.key(index & 1), packet, end.transport.smss(), due) {
            end.transport.left_queue(start, payload);
        }
        self.arm_device(at);
    }

    /// Process an event of the host's own device.
    fn device_event(&mut self, at: usize) {
        let now = self.now;
        if !self.device(at).begin(now) {
            return; // replaced by another event
        }
        while let Some((start, key, packet)) = self.device(at).take_sent(now) {
            if let Some(captured) = &mut self.captured {
                captured.leaves(start, packet.flow, (key >> 1) as u32, &packet);
            }
            self.net.send(now, &packet);
        }
        while let Some(gone) = self.device(at).take_gone() {
            let index = 2 * (gone.conn & SLOT_MASK) as usize + !gone.forward as usize;
            let end = self.ends[index].as_mut().filter(|end| end.conn == gone.conn);
            let Some(end) = end else { continue }; // the connection was closed in the meantime
            if end.transport.left_queue(gone.start, gone.payload) {
                self.wake_process(index);
            }
        }
        self.arm_device(at);
    }

    fn arm_device(&mut self, at: usize) {
        let now = self.now;
        if let Some(due) = self.device(at).arm(now) {
            self.host_tick(at as u32, DEVICE, due);
        }
    }

    fn device(&mut self, at: usize) -> &mut Device {
        self.hosts_mut().slots[at].host.device.as_mut().expect("invariant: asked for hosts with one only")
    }

    /// Resume, at the current time, a process that has been given a core.
    fn kick(&mut self, process: Option<u32>) {
        let Some(index) = process else { return };
        let now = self.now;
        let process = self.process(index as usize);
        process.state = Blocked::Until(now.max(process.free_at));
        self.arm(index as usize);
    }

    fn arm_slice(&mut self, at: usize) {
        let slot = &mut self.hosts_mut().slots[at];
        let due = slot.host.slice_end();
        if due < slot.armed {
            slot.armed = due;
            self.host_tick(at as u32, SLICE, due);
        }
    }

    fn host_tick(&mut self, host: u32, what: usize, at: Time) {
        let id = HOST_TICKS + host * EVENTS as u32 + what as u32;
        self.net.agenda.add(at, id << KIND_BITS | TICK);
    }

    fn arm(&mut self, index: usize) {
        let end = self.ends[index].as_mut().expect("invariant: open");
        end.arm(index, &mut self.net.agenda);
    }

    fn process(&mut self, index: usize) -> &mut Process {
        self.end_at(index).process.as_mut().expect("invariant: asked for processes only")
    }

    fn hosts_mut(&mut self) -> &mut Hosts {
        self.hosts.as_mut().expect("invariant: there are hosts")
    }
}
