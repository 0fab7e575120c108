//! Namespaces and the wires between them.
//!
//! With the kernel's queueing disciplines the path is sender - r0 - r1 - ... - receiver. Each forward stage is on a
//! router's egress towards the receiver, each backward stage on one towards the sender. Hosts have no queue, so packets
//! reach every stage one by one. With several flow groups, each group has its own pair of hosts, and only the wires
//! between routers carry stages. With the relay there are no routers: each host has a device of the relay.

mod ipv6;

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use ackclock_sim::scenario::spec::WorkloadConfig;
use ackclock_sim::workload::transactions::InitialWindow;

use crate::job::{Card, Host, Job, Live, Network, Stage};
use crate::netlink::{Message, Netlink};
use crate::sys::relay::Device;
use crate::{qdisc, sys};

pub use ipv6::program_ip6;

/// Name of a host's first device, for most hosts the only one.
pub const DEVICE: &str = "eth0";
/// Device of the first router towards the receivers, in runs where the router cuts packets into segments.
pub const SWITCH: &str = "right";

/// A network namespace.
pub struct Node {
    namespace: OwnedFd,
    /// Netlink socket that configures the namespace.
    pub netlink: Netlink,
}

impl Node {
    fn new() -> Result<Node> {
        let namespace = sys::new_namespace()?;
        let netlink = Netlink::new()?;
        let node = Node { namespace, netlink };
        node.up("lo", 65536, false)?;
        Ok(node)
    }

    /// Set the kernel parameters of a host.
    fn set(&self, host: &Host) -> Result<()> {
        sys::enter(self.fd())?;
        host.sysctl.iter().try_for_each(|(name, value)| write_sysctl(name, value))
    }

    /// Descriptor through which a thread enters the namespace.
    pub fn fd(&self) -> RawFd {
        self.namespace.as_raw_fd()
    }

    fn up(&self, device: &str, mtu: u32, tso: bool) -> Result<()> {
        let index = sys::interface_index(device)?;
        let body = interface(index, libc::IFF_UP as u32, libc::IFF_UP as u32);
        let mut message = Message::new(libc::RTM_NEWLINK, 0, &body);
        if device != "lo" {
            let segments = if tso { MOST_SEGMENTS } else { 1 };
            message = message.u32(IFLA_MTU, mtu).u32(IFLA_TXQLEN, TX_QUEUE).u32(IFLA_GSO_MAX_SEGS, segments);
        }
        self.netlink.request(message, device)
    }

    fn route(&self, to: [u8; 4], bits: u8, device: &str, gateway: bool, metrics: Metrics) -> Result<()> {
        let whole = (bits > 0).then_some((&to[..], bits));
        self.route_of(libc::AF_INET as u8, whole, device, gateway, metrics)
    }

    /// Add a route to an address of this family; `None`: the default route.
    fn route_of(
        &self,
        family: u8,
        to: Option<(&[u8], u8)>,
        device: &str,
        gateway: bool,
        metrics: Metrics,
    ) -> Result<()> {
        let index = sys::interface_index(device)?;
        let flags = if gateway { RTNH_F_ONLINK } else { 0 };
        let scope = if gateway { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        let bits = to.map_or(0, |(_, bits)| bits);
        let mut body = vec![family, bits, 0, 0, libc::RT_TABLE_MAIN, RTPROT_BOOT, scope, RTN_UNICAST];
        body.extend_from_slice(&u32::to_ne_bytes(flags));
        let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut message = Message::new(libc::RTM_NEWROUTE, create, &body).u32(RTA_OIF, index);
        if let Some((to, _)) = to {
            message = message.attr(RTA_DST, to);
        }
        if gateway {
            message = message.attr(RTA_GATEWAY, &NEIGHBOUR);
        }
        let Metrics { initcwnd, initrwnd, rto_min_ms } = metrics;
        if initcwnd > 0 || initrwnd > 0 || rto_min_ms > 0 {
            message = message.nest(RTA_METRICS, &[], |m| {
                let m = if initcwnd > 0 { m.u32(RTAX_INITCWND, initcwnd) } else { m };
                let m = if initrwnd > 0 { m.u32(RTAX_INITRWND, initrwnd) } else { m };
                if rto_min_ms > 0 {
                    // the lock makes this metric override the destination's cached RTT history
                    m.u32(RTAX_LOCK, 1 << RTAX_RTO_MIN).u32(RTAX_RTO_MIN, rto_min_ms)
                } else {
                    m
                }
            });
        }
        self.netlink.request(message, "route")
    }

    fn address(&self, ip: [u8; 4], device: &str) -> Result<()> {
        let mut body = vec![libc::AF_INET as u8, 32, 0, 0];
        body.extend_from_slice(&sys::interface_index(device)?.to_ne_bytes());
        let message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE, &body);
        self.netlink.request(message.attr(IFA_LOCAL, &ip).attr(IFA_ADDRESS, &ip), "address")
    }

    /// Install a permanent neighbour entry for the peer of `device`, so that no ARP is needed.
    fn neighbour(&self, device: &str, mac: [u8; 6]) -> Result<()> {
        let mut body = vec![libc::AF_INET as u8, 0, 0, 0];
        body.extend_from_slice(&sys::interface_index(device)?.to_ne_bytes());
        body.extend_from_slice(&NUD_PERMANENT.to_ne_bytes());
        body.extend_from_slice(&[0, RTN_UNICAST]);
        let message = Message::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE, &body);
        self.netlink.request(message.attr(NDA_DST, &NEIGHBOUR).attr(NDA_LLADDR, &mac), "neighbour")
    }
}

/// Address of the sending (0) or receiving (1) host of a group.
pub fn host_ip(side: usize, group: usize) -> [u8; 4] {
    [10, side as u8, group as u8, 1]
}

/// Address of the group's client for connections that use entry `window` of a mix of initial windows; the host's own
/// address if there is none.
pub fn client_ip(group: usize, window: Option<usize>) -> [u8; 4] {
    [10, 1, group as u8, 1 + window.map_or(0, |at| at as u8 + 1)]
}

/// Address of a host of the user's programs.
pub fn program_ip(job: &Job, live: &Live, host: usize) -> [u8; 4] {
    let (side, group) = program_place(job, live, host);
    host_ip(side, group)
}

/// Side of a program host, and its number on that side, counted after the flows' hosts.
fn program_place(job: &Job, live: &Live, host: usize) -> (usize, usize) {
    let side = live.hosts[host].side;
    let before = live.hosts[..host].iter().filter(|one| one.side == side).count();
    (side, job.scenario.flows.len() + before)
}

/// Name of a host's device, by its number.
fn device(at: usize) -> String {
    format!("eth{at}")
}

/// Initial windows and their fractions; empty unless the workload mixes several.
fn mix(workload: &WorkloadConfig) -> &[InitialWindow] {
    match workload {
        WorkloadConfig::Transactions(params) => &params.initial_window_mix,
        _ => &[],
    }
}

/// TCP metrics of a route; 0 = not set.
#[derive(Clone, Copy, Default)]
struct Metrics {
    initcwnd: u32,
    initrwnd: u32,
    rto_min_ms: u32,
}

impl Metrics {
    fn of(host: &Host) -> Metrics {
        Metrics { initcwnd: host.initcwnd, initrwnd: host.initrwnd, rto_min_ms: host.rto_min_ms }
    }
}

/// Hosts, routers and everything between them.
pub struct Wiring {
    /// Sending and receiving host of each group.
    pub hosts: Vec<[Node; 2]>,
    /// Hosts of the user's programs.
    pub programs: Vec<Node>,
    /// Routers, in order from the senders to the receivers.
    pub routers: Vec<Node>,
    /// Stages, each with the number of its router and the index of the interface that carries it.
    pub stages: Vec<(Stage, usize, u32)>,
    /// Relay device, on which the two hosts of a group have consecutive numbers; `None` without the relay.
    pub relay: Option<Device>,
}

impl Wiring {
    /// Create all namespaces, devices and routes.
    pub fn new(job: &Job) -> Result<Wiring> {
        let (hosts, programs) = (Vec::new(), Vec::new());
        let mut wiring = Wiring { hosts, programs, routers: Vec::new(), stages: Vec::new(), relay: None };
        let (flows, others) = job.hosts.split_at(job.scenario.flows.len());
        for host in flows {
            let pair = [Node::new()?, Node::new()?];
            pair.iter().try_for_each(|node| node.set(host))?;
            wiring.hosts.push(pair);
        }
        if let (Some(live), Some(host)) = (&job.live, others.first()) {
            wiring.programs = live.hosts.iter().map(|_| Node::new()).collect::<Result<_>>()?;
            wiring.programs.iter().try_for_each(|node| node.set(host))?;
        }
        match &job.network {
            Network::Relay { whole, .. } => wiring.lay_relay(job, *whole)?,
            Network::Qdisc { forward, backward, .. } => wiring.lay_routers(job, forward, backward)?,
        }
        for (group, pair) in wiring.hosts.iter().enumerate() {
            for (side, node) in pair.iter().enumerate() {
                sys::enter(node.fd())?;
                node.address(host_ip(side, group), DEVICE)?;
                let gateway = !wiring.routers.is_empty();
                let host = &job.hosts[group];
                let metrics = Metrics::of(host);
                node.route([0; 4], 0, DEVICE, gateway, metrics)?;
                let mixed = job.scenario.flows.get(group).map_or(&[][..], |flow| mix(&flow.workload));
                for (at, entry) in mixed.iter().enumerate() {
                    let ip = client_ip(group, Some(at));
                    match side {
                        0 => node.route(
                            ip,
                            32,
                            DEVICE,
                            gateway,
                            Metrics { initcwnd: entry.segments, ..metrics },
                        )?,
                        _ => node.address(ip, DEVICE)?,
                    }
                }
            }
        }
        if let Some(live) = &job.live {
            wiring.address_programs(job, live)?;
            if live.ipv6 {
                wiring.address_programs_6(job, live)?;
            }
        }
        Ok(wiring)
    }

    /// Give the programs' hosts an address each, and routes. With a single path between two hosts everything goes there.
    fn address_programs(&self, job: &Job, live: &Live) -> Result<()> {
        let metrics = Metrics::of(job.hosts.last().expect("invariant: that of the programs"));
        for (i, node) in self.programs.iter().enumerate() {
            sys::enter(node.fd())?;
            node.address(program_ip(job, live, i), DEVICE)?;
            if live.pairs.len() == 1 {
                node.route([0; 4], 0, DEVICE, false, metrics)?;
                continue;
            }
            for (at, (_, peer)) in live.devices(i).enumerate() {
                node.route(program_ip(job, live, peer), 32, &device(at), false, metrics)?;
            }
        }
        Ok(())
    }

    fn lay_relay(&mut self, job: &Job, whole: bool) -> Result<()> {
        let relay = Device::new()?;
        for (pair, host) in self.hosts.iter().zip(&job.hosts) {
            for (node, card) in pair.iter().zip(&host.cards) {
                sys::enter(node.fd())?;
                relay.new_host(DEVICE)?;
                node.up(DEVICE, host.mtu, false)?;
                if whole {
                    sys::relay::offloads(DEVICE)?;
                    set_card(node, host, card)?;
                }
            }
        }
        if let (Some(live), Some(host)) = (&job.live, job.hosts.last()) {
            for (i, pair) in live.pairs.iter().enumerate() {
                for end in pair.ends {
                    let at = live.devices(end).position(|(number, _)| number == i);
                    let name = device(at.expect("invariant: an end of this pair"));
                    let node = &self.programs[end];
                    sys::enter(node.fd())?;
                    relay.new_host(&name)?;
                    node.up(&name, host.mtu, false)?;
                }
            }
        }
        self.relay = Some(relay);
        Ok(())
    }

    fn lay_routers(&mut self, job: &Job, forward: &[Stage], backward: &[Stage]) -> Result<()> {
        let groups = self.hosts.len();
        let mtu = job.hosts.iter().map(|h| h.mtu).max().unwrap_or(1500);
        let stages = forward.len().max(backward.len()).max(1);
        let merge = forward.iter().chain(backward).any(|stage| stage.merging.is_some());
        let any = merge || job.hosts.iter().any(|h| h.cards.iter().any(|card| h.tso && !card.cuts));
        let alone = groups == 1;
        // A switch is also needed in front of a card that merges segments. A router orphans packets, so they no longer
        // count against their sender's socket; a card that holds packets back does not, so TCP small queues would wait
        // for the card.
        let first_merges = forward.first().is_some_and(|stage| stage.merging.is_some());
        let switch = usize::from(job.program.is_some() || first_merges);
        let routers = switch + if alone { stages } else { stages + 1 };
        for _ in 0..routers {
            self.routers.push(Node::new()?);
            write_sysctl("net/ipv4/ip_forward", "1")?;
        }
        let (first, last) = (0, routers - 1);
        for group in 0..groups {
            let [left, right] = [format!("left{group}"), format!("right{group}")];
            veth(&self.hosts[group][0], DEVICE, &self.routers[first], &left, mtu, any)?;
            veth(&self.routers[last], &right, &self.hosts[group][1], DEVICE, mtu, any)?;
            let before = [(first, &left), (last, &right)];
            for ((node, card), (router, device)) in
                self.hosts[group].iter().zip(&job.hosts[group].cards).zip(before)
            {
                set_card(node, &job.hosts[group], card)?;
                if card.gro {
                    // a veth merges only packets that come from a device without segmentation offload
                    sys::enter(self.routers[router].fd())?;
                    sys::no_segmentation_by_device(device)?;
                }
            }
            sys::enter(self.routers[first].fd())?;
            self.routers[first].route([10, 0, group as u8, 0], 24, &left, true, Metrics::default())?;
            sys::enter(self.routers[last].fd())?;
            self.routers[last].route([10, 1, group as u8, 0], 24, &right, true, Metrics::default())?;
        }
        for i in 1..routers {
            let (a, b) = (&self.routers[i - 1], &self.routers[i]);
            veth(a, "right", b, "left", mtu, any)?;
            sys::enter(a.fd())?;
            a.route([10, 1, 0, 0], 16, "right", true, Metrics::default())?;
            sys::enter(b.fd())?;
            b.route([10, 0, 0, 0], 16, "left", true, Metrics::default())?;
        }
        if switch > 0 {
            sys::enter(self.routers[first].fd())?;
            sys::no_segmentation_by_device(SWITCH)?;
        }
        for (i, stage) in forward.iter().enumerate().map(|(i, stage)| (i + switch, stage)) {
            let device = if i == last { "right0" } else { "right" };
            self.lay_stage(i, device, stage)?;
            if let Some(card) = &stage.merging {
                let sender = i.checked_sub(1);
                self.merge_before(i, "left", sender.map(|router| (router, "right")), groups, card)?;
            }
        }
        for (i, stage) in backward.iter().enumerate() {
            let router = last - i;
            let device = if router == first { "left0" } else { "left" };
            self.lay_stage(router, device, stage)?;
            if let Some(card) = &stage.merging {
                let sender = (router < last).then_some((router + 1, "left"));
                self.merge_before(router, "right", sender, groups, card)?;
            }
        }
        Ok(())
    }

    /// Make the devices of a router merge packets that arrive from one side. Without `before`, packets come from hosts,
    /// whose cards have the setting already. A veth merges only packets from a device without segmentation offload.
    fn merge_before(
        &self,
        router: usize,
        side: &str,
        before: Option<(usize, &str)>,
        groups: usize,
        card: &Card,
    ) -> Result<()> {
        let node = &self.routers[router];
        let Some((from, device)) = before else {
            return (0..groups).try_for_each(|group| set_polls(node, &format!("{side}{group}"), card));
        };
        sys::enter(self.routers[from].fd())?;
        sys::no_segmentation_by_device(device)?;
        set_polls(node, side, card)
    }

    fn lay_stage(&mut self, router: usize, device: &str, stage: &Stage) -> Result<()> {
        let node = &self.routers[router];
        sys::enter(node.fd())?;
        let index = sys::interface_index(device)?;
        qdisc::install(&node.netlink, index, &stage.qdisc)?;
        self.stages.push((stage.clone(), router, index));
        Ok(())
    }
}

/// Create a veth pair between two namespaces, up at both ends; with `tso` packets of several segments cross it uncut.
fn veth(a: &Node, a_name: &str, b: &Node, b_name: &str, mtu: u32, tso: bool) -> Result<()> {
    sys::enter(a.fd())?;
    let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let message = Message::new(libc::RTM_NEWLINK, create, &interface(0, 0, 0))
        .text(IFLA_IFNAME, a_name)
        .attr(IFLA_ADDRESS, &LEFT_MAC)
        .nest(IFLA_LINKINFO, &[], |m| {
            m.text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, &[], |m| {
                m.nest(VETH_INFO_PEER, &interface(0, 0, 0), |m| {
                    m.text(IFLA_IFNAME, b_name)
                        .attr(IFLA_ADDRESS, &RIGHT_MAC)
                        .u32(IFLA_NET_NS_FD, b.fd() as u32)
                })
            })
        });
    a.netlink.request(message, "veth")?;
    for (node, name, peer) in [(a, a_name, RIGHT_MAC), (b, b_name, LEFT_MAC)] {
        sys::enter(node.fd())?;
        sys::no_offloads(name, tso)?;
        node.up(name, mtu, tso)?;
        node.neighbour(name, peer)?;
    }
    Ok(())
}

/// Apply the segmentation settings of a host's card; the wire was created without any.
fn set_card(node: &Node, host: &Host, card: &Card) -> Result<()> {
    sys::enter(node.fd())?;
    sys::set_segmentation(DEVICE, host.tso)?;
    node.up(DEVICE, host.mtu, host.tso)?;
    if card.cuts || !host.tso {
        sys::no_segmentation_by_device(DEVICE)?;
    }
    if let Some(device) = &card.device {
        qdisc::install(&node.netlink, sys::interface_index(DEVICE)?, device)?;
    }
    set_polls(node, DEVICE, card)
}

/// Set whether the kernel merges segments at a device, and when it takes packets out of it.
fn set_polls(node: &Node, device: &str, card: &Card) -> Result<()> {
    sys::enter(node.fd())?;
    sys::set_aggregation(device, card.gro)?;
    if card.gro_flush_timeout > 0 {
        // sysfs shows the network namespace of the process that mounts it
        sys::mount("sysfs", "/sys")?;
        let set = |name: &str, value: u64| {
            std::fs::write(format!("/sys/class/net/{device}/{name}"), value.to_string())
                .map_err(|error| std::io::Error::new(error.kind(), format!("{name} = {value}: {error}")))
        };
        let done = set("gro_flush_timeout", card.gro_flush_timeout)
            .and_then(|()| set("napi_defer_hard_irqs", card.napi_defer_hard_irqs as u64));
        sys::unmount("/sys")?;
        done?;
    }
    Ok(())
}

/// Build a struct ifinfomsg.
fn interface(index: u32, flags: u32, change: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    for word in [index, flags, change] {
        body.extend_from_slice(&word.to_ne_bytes());
    }
    body
}

/// Set a kernel parameter of the namespace of the calling thread.
fn write_sysctl(name: &str, value: &str) -> Result<()> {
    std::fs::write(format!("/proc/sys/{name}"), value)
        .map_err(|error| std::io::Error::new(error.kind(), format!("{name} = {value}: {error}")))
}

/// MAC addresses of the two ends, identical on every wire.
const LEFT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RIGHT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Transmit queue length of a device in front of its discipline, packets: more than can arrive at one instant.
const TX_QUEUE: u32 = 32_767;
/// GSO_MAX_SEGS of Linux, the default for a device.
const MOST_SEGMENTS: u32 = 65_535;
const NEIGHBOUR: [u8; 4] = [169, 254, 0, 1];

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_METRICS: u16 = 8;
const RTAX_LOCK: u16 = 1;
const RTAX_INITCWND: u16 = 11;
const RTAX_INITRWND: u16 = 14;
const RTAX_RTO_MIN: u16 = 13;
const RTPROT_BOOT: u8 = 3;
const RTN_UNICAST: u8 = 1;
const RTNH_F_ONLINK: u32 = 4;
