//! Applies a script's settings: kernel parameters, the device with its queue and offloads, the route.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use ackclock_script::setup::{CubicModule, Qdisc, Route, Setup, Sysctls};

use super::wire::{HOST4, HOST6, PEER4, PEER6};
use crate::netlink::{Message, Netlink};
use crate::sys;
use crate::sys::raw;

/// Name of the device in scripts.
const DEVICE: &str = "tun0";
/// Length of the device's queue towards the player, packets.
const TX_QUEUE: u32 = 10_000;

/// The device, and the sockets that configure it.
pub struct Host {
    tun: OwnedFd,
    netlink: Netlink,
    index: u32,
    v6: bool,
    /// Current settings.
    pub setup: Setup,
}

impl Host {
    /// Set up the host with a script's initial settings.
    pub fn new(setup: Setup) -> Result<Host> {
        let netlink = Netlink::new()?;
        let tun = raw::tun_with_offloads(DEVICE)?;
        let index = sys::interface_index(DEVICE)?;
        let v6 = setup.ip_header == 40;
        let mut host = Host { tun, netlink, index, v6, setup: Setup::kernel() };
        host.parameters(&setup.sysctls)?;
        raw::set_tso(host.tun.as_raw_fd(), setup.tso)?;
        let loopback = sys::interface_index("lo")?;
        host.netlink.request(link(loopback), "lo")?;
        if v6 {
            // addresses become usable at once, without duplicate address detection
            for name in ["accept_dad", "router_solicitations", "autoconf", "accept_ra"] {
                std::fs::write(format!("/proc/sys/net/ipv6/conf/{DEVICE}/{name}"), "0")?;
            }
        }
        let message = link(index).u32(IFLA_MTU, setup.mtu).u32(IFLA_TXQLEN, TX_QUEUE);
        host.netlink.request(message, DEVICE)?;
        host.address()?;
        host.setup.mtu = setup.mtu;
        host.setup.ip_header = setup.ip_header;
        host.change(setup, true)?;
        Ok(host)
    }

    /// Descriptor of the device.
    pub fn device(&self) -> RawFd {
        self.tun.as_raw_fd()
    }

    /// Apply the settings that have changed, or every setting with `all`, as at the start.
    pub fn change(&mut self, setup: Setup, all: bool) -> Result<()> {
        let before = std::mem::replace(&mut self.setup, setup);
        let setup = &self.setup;
        if setup.sysctls != before.sysctls {
            let changed = setup.sysctls.clone();
            self.parameters(&changed)?;
        }
        let setup = &self.setup;
        cubic(&setup.cubic, &before.cubic)?;
        if setup.mtu != before.mtu {
            self.netlink.request(link(self.index).u32(IFLA_MTU, setup.mtu), "mtu")?;
        }
        if setup.single && !before.single {
            self.netlink.request(link(self.index).u32(IFLA_GSO_MAX_SEGS, 1), "gso_max_segs")?;
        }
        if setup.tso != before.tso {
            raw::set_tso(self.tun.as_raw_fd(), setup.tso)?;
        }
        if (setup.gso, setup.gro) != (before.gso, before.gro) {
            sys::set_segmentation(DEVICE, setup.gso)?;
            sys::set_aggregation(DEVICE, setup.gro)?;
        }
        if all || setup.route != before.route {
            self.route(&setup.route)?;
        }
        if all || setup.qdisc != before.qdisc {
            self.queue(setup.qdisc, all)?;
        }
        for (path, bytes) in &setup.files {
            if before.files.get(path) != Some(bytes) {
                std::fs::write(path, vec![0; *bytes as usize])?;
            }
        }
        Ok(())
    }

    /// Write the kernel parameters that differ from the current values or from those after boot.
    fn parameters(&self, sysctls: &Sysctls) -> Result<()> {
        let (boot, before) = (Sysctls::kernel(), &self.setup.sysctls);
        let lists = sysctls.list().into_iter().zip(boot.list()).zip(before.list());
        for (((name, value), (_, usual)), (_, is)) in lists {
            // Values derived by the kernel from its memory size are always written.
            let sized = name.starts_with("rmem") || name.starts_with("wmem") || name.contains("mem");
            let value = match name {
                "tcp_congestion_control" => controller(&value, &sysctls.recovery)?,
                _ => value,
            };
            if value == is && value == usual && !sized {
                continue;
            }
            let folder = if name.starts_with("rmem_") || name.starts_with("wmem_") { "core" } else { "ipv4" };
            let path = format!("/proc/sys/net/{folder}/{name}");
            let absent = |error: &Error| error.kind() == ErrorKind::NotFound && value == usual;
            match std::fs::write(&path, &value) {
                Err(error) if !absent(&error) => {
                    return Err(Error::new(error.kind(), format!("{name} = {value}: {error}")))
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn address(&self) -> Result<()> {
        let (family, bits, ip): (i32, u8, &[u8]) =
            if self.v6 { (libc::AF_INET6, 64, &HOST6) } else { (libc::AF_INET, 16, &HOST4) };
        let mut body = vec![family as u8, bits, IFA_F_NODAD, 0];
        body.extend_from_slice(&self.index.to_ne_bytes());
        let message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE, &body);
        self.netlink.request(message.attr(IFA_LOCAL, ip).attr(IFA_ADDRESS, ip), "address")
    }

    /// Add the route to the peer's network, or with IPv6 to the peer itself.
    fn route(&self, route: &Route) -> Result<()> {
        let (family, bits, to): (i32, u8, &[u8]) = if self.v6 {
            (libc::AF_INET6, 128, &PEER6)
        } else {
            (libc::AF_INET, 24, &[PEER4[0], PEER4[1], PEER4[2], 0])
        };
        let scope = if self.v6 { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        let mut body = vec![family as u8, bits, 0, 0, libc::RT_TABLE_MAIN, RTPROT_BOOT, scope, RTN_UNICAST];
        body.extend_from_slice(&0u32.to_ne_bytes());
        let message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &body)
            .u32(RTA_OIF, self.index)
            .attr(RTA_DST, to);
        let rto_min = route.rto_min.map(|span| span.as_us() as u32 / 1000);
        let mut lock = 0;
        if route.mtu_locked {
            lock |= 1 << RTAX_MTU;
        }
        if rto_min.is_some() {
            lock |= 1 << RTAX_RTO_MIN; // overrides the destination's cached RTT history
        }
        let metrics = [
            (RTAX_LOCK, Some(lock).filter(|bits| *bits != 0)),
            (RTAX_MTU, route.mtu),
            (RTAX_WINDOW, route.window),
            (RTAX_SSTHRESH, route.ssthresh),
            (RTAX_CWND, route.cwnd),
            (RTAX_ADVMSS, route.advmss),
            (RTAX_REORDERING, route.reordering),
            (RTAX_INITCWND, route.initcwnd),
            (RTAX_RTO_MIN, rto_min),
            (RTAX_INITRWND, route.initrwnd),
            (RTAX_QUICKACK, route.quickack.map(u32::from)),
        ];
        let message = message.nest(RTA_METRICS, &[], |m| {
            let m = metrics
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)))
                .fold(m, |m, (name, value)| m.u32(name, value));
            match &route.congctl {
                Some(name) => m.text(RTAX_CC_ALGO, name),
                None => m,
            }
        });
        self.netlink.request(message, "route")
    }

    fn queue(&self, qdisc: Qdisc, first: bool) -> Result<()> {
        const ROOT: u32 = 0xffff_ffff;
        let about = |kind: u16, flags: i32| {
            let mut body = vec![0; 4];
            for word in [self.index, 0, ROOT, 0] {
                body.extend_from_slice(&word.to_ne_bytes());
            }
            Message::new(kind, flags, &body)
        };
        if !first {
            self.netlink.request(about(libc::RTM_DELQDISC, 0), "queue")?;
        }
        let new = about(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        let message = match qdisc {
            Qdisc::Fq => new.text(TCA_KIND, "fq"),
            // a queue that the few packets of a script never fill
            Qdisc::Fifo => new.text(TCA_KIND, "pfifo").u32(TCA_OPTIONS, TX_QUEUE),
            Qdisc::DropAll => new.text(TCA_KIND, "pfifo").u32(TCA_OPTIONS, 0),
        };
        self.netlink.request(message, "queue")
    }
}

/// Kernel name of a controller with a recovery rule.
fn controller(name: &str, recovery: &str) -> Result<String> {
    let rule = match recovery {
        "" | "prr-linux-6" => return Ok(name.to_string()),
        "rate-halving" => "rh",
        "prr-rfc9937" => "prr_9937",
        "prr-linux-3.2" => "prr_3_2",
        rule => &rule.replace('-', "_"),
    };
    Ok(format!("{name}_{rule}"))
}

fn cubic(now: &CubicModule, before: &CubicModule) -> Result<()> {
    let of = |c: &CubicModule| {
        [
            ("hystart", u32::from(c.hystart)),
            ("hystart_detect", c.hystart_detect),
            ("hystart_low_window", c.hystart_low_window),
            ("hystart_ack_delta_us", c.hystart_ack_delta_us),
            ("initial_ssthresh", c.initial_ssthresh),
            ("fast_convergence", u32::from(c.fast_convergence)),
            ("tcp_friendliness", u32::from(c.tcp_friendliness)),
        ]
    };
    for ((name, value), (_, is)) in of(now).into_iter().zip(of(before)) {
        if value != is {
            std::fs::write(format!("/sys/module/tcp_cubic/parameters/{name}"), value.to_string())?;
        }
    }
    Ok(())
}

/// Request that brings a device up.
fn link(index: u32) -> Message {
    let mut body = vec![0; 4];
    for word in [index, libc::IFF_UP as u32, libc::IFF_UP as u32] {
        body.extend_from_slice(&word.to_ne_bytes());
    }
    Message::new(libc::RTM_NEWLINK, 0, &body)
}

const IFA_F_NODAD: u8 = 2;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_METRICS: u16 = 8;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const RTAX_WINDOW: u16 = 3;
const RTAX_SSTHRESH: u16 = 6;
const RTAX_CWND: u16 = 7;
const RTAX_ADVMSS: u16 = 8;
const RTAX_REORDERING: u16 = 9;
const RTAX_INITCWND: u16 = 11;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_INITRWND: u16 = 14;
const RTAX_QUICKACK: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;
const RTPROT_BOOT: u8 = 3;
const RTN_UNICAST: u8 = 1;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
