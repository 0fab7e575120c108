//! IPv6 on the program hosts: one address per host in addition to its IPv4 address, and no packets sent by the host
//! itself (no link-local address, no duplicate address detection, no router solicitation, and no multicast reports,
//! because devices without ARP join no groups).

use std::io::Result;
use std::os::fd::AsRawFd;

use super::{device, program_place, write_sysctl, Metrics, Node, Wiring, DEVICE};
use crate::job::{Job, Live};
use crate::netlink::Message;
use crate::sys;

/// IPv6 address of a program host, formed from its IPv4 address: 10.1.2.1 -> fd0a:1:2::1.
pub fn program_ip6(job: &Job, live: &Live, host: usize) -> [u8; 16] {
    let (side, group) = program_place(job, live, host);
    let mut ip = [0; 16];
    [ip[0], ip[1], ip[3], ip[5], ip[15]] = [0xfd, 0x0a, side as u8, group as u8, 1];
    ip
}

impl Wiring {
    /// Assign IPv6 addresses to the program hosts, with the same routes as for IPv4.
    pub(super) fn address_programs_6(&self, job: &Job, live: &Live) -> Result<()> {
        let metrics = Metrics::of(job.hosts.last().expect("invariant: that of the programs"));
        for (i, node) in self.programs.iter().enumerate() {
            sys::enter(node.namespace.as_raw_fd())?;
            set("lo", "disable_ipv6", "0")?; // adds ::1
            for (at, (_, peer)) in live.devices(i).enumerate() {
                let name = device(at);
                set(&name, "accept_ra", "0")?;
                set(&name, "addr_gen_mode", "1")?; // none
                set(&name, "disable_ipv6", "0")?;
                if at == 0 {
                    node.address_6(program_ip6(job, live, i))?;
                }
                let to = program_ip6(job, live, peer);
                let to = (live.pairs.len() > 1).then_some((&to[..], 128)); // otherwise the default route
                node.route_of(libc::AF_INET6 as u8, to, &name, false, metrics)?;
            }
        }
        Ok(())
    }
}

impl Node {
    fn address_6(&self, ip: [u8; 16]) -> Result<()> {
        let mut body = vec![libc::AF_INET6 as u8, 128, NO_DETECTION, 0];
        body.extend_from_slice(&sys::interface_index(DEVICE)?.to_ne_bytes());
        let message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE, &body);
        self.netlink.request(message.attr(super::IFA_LOCAL, &ip).attr(super::IFA_ADDRESS, &ip), "address")
    }
}

fn set(device: &str, name: &str, value: &str) -> Result<()> {
    write_sysctl(&format!("net/ipv6/conf/{device}/{name}"), value)
}

/// IFA_F_NODAD.
const NO_DETECTION: u8 = 0x02;
