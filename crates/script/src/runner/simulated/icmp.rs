//! ICMP messages about the connection: a router's report about the path, or about an unreachable peer.

use ackclock_tcp::State;

use super::{unsupported, wire, Simulated, Stop};
use crate::ast::{IcmpPacket, Quoted};

/// Codes of "destination unreachable" and their effect on a connecting socket (Linux `icmp_err_convert`).
const UNREACHABLE: &[(&str, &str)] = &[
    ("net_unreachable", "ENETUNREACH"),
    ("host_unreachable", "EHOSTUNREACH"),
    ("protocol_unreachable", "ENOPROTOOPT"),
    ("port_unreachable", "ECONNREFUSED"),
    ("source_route_failed", "EOPNOTSUPP"),
    ("net_unknown", "ENETUNREACH"),
    ("host_unknown", "EHOSTDOWN"),
    ("source_host_isolated", "ENONET"),
    ("net_prohibited", "ENETUNREACH"),
    ("host_prohibited", "EHOSTUNREACH"),
    ("net_unreachable_for_tos", "ENETUNREACH"),
    ("host_unreachable_for_tos", "EHOSTUNREACH"),
    ("packet_filtered", "EHOSTUNREACH"),
];
/// Minimum path MTU accepted from a router, bytes (Linux `ip_rt_min_pmtu`).
const LEAST_MTU: u32 = 552;

/// Reject messages that cannot be played.
pub fn survey(line: u32, p: &IcmpPacket) -> Result<(), Stop> {
    let code = p.code.as_deref().unwrap_or("net_unreachable");
    let known = code == "frag_needed" || UNREACHABLE.iter().any(|(name, _)| *name == code);
    if p.kind != "unreachable" || !known || !matches!(p.quoted, None | Some(Quoted::Tcp(_))) {
        return unsupported(line, format!("ICMP message '{} {code}'", p.kind));
    }
    Ok(())
}

impl Simulated<'_> {
    /// Handle an ICMP message.
    pub(super) fn icmp(&mut self, line: u32, p: &IcmpPacket) -> Result<(), Stop> {
        let Some(conn) = &self.stack.conn else { return Ok(()) };
        let (una, nxt) = conn.sending();
        let seq = match p.quoted {
            Some(Quoted::Tcp(range)) => wire::unwrap(line, una, range.start)?,
            _ => una,
        };
        let opening = conn.state() == State::SynSent;
        if !opening && !(una..=nxt).contains(&seq) {
            return Ok(()); // about a segment that was never sent, or was acknowledged long ago
        }
        let code = p.code.as_deref().unwrap_or("net_unreachable");
        if code == "frag_needed" {
            let mtu = p.mtu.unwrap_or(0).max(LEAST_MTU);
            let now = self.stack.now;
            if let Some(mss) = self.stack.host.learn_mtu(mtu) {
                self.stack.act(|conn| conn.on_too_big(now, seq, mss));
            }
        } else if let (true, Some((_, error))) = (opening, UNREACHABLE.iter().find(|(name, _)| *name == code))
        {
            self.stack.act(|conn| conn.reset());
            self.stack.error = Some(error);
        }
        Ok(())
    }
}
