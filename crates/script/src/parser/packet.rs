//! Packets: TCP, ICMP, UDP, and the IP header before them.

use ackclock_core::Flags;

use super::{unexpected, Parser};
use crate::ast::{EcnMark, IcmpPacket, IpInfo, Packet, Quoted, SeqRange, TcpFlags, TcpPacket, UdpPacket};
use crate::error::Error;
use crate::lexer::Kind;

const MAX16: u64 = u16::MAX as u64;
const MAX32: u64 = u32::MAX as u64;

impl Parser<'_> {
    /// Parse a packet, starting after its direction.
    pub(super) fn packet(&mut self) -> Result<Packet, Error> {
        let ip = self.ip_info()?;
        let mut ports = self.ports()?;
        let token = self.peek()?;
        if token.is_word("icmp") {
            self.next()?;
            return self.icmp(ip).map(Packet::Icmp);
        }
        if token.is_word("udp") {
            self.next()?;
            if ports.is_none() {
                ports = self.ports()?;
            }
            let len = self.in_parentheses("payload bytes of the datagram")?;
            return Ok(Packet::Udp(UdpPacket { ip, ports, len }));
        }
        if token.kind == Kind::Word && !is_flags(token.text) {
            return Err(Error::unsupported(token.at, format_args!("packet of kind '{}'", token.text)));
        }
        self.tcp(ip, ports).map(Packet::Tcp)
    }

    fn ip_info(&mut self) -> Result<IpInfo, Error> {
        let mut ip = IpInfo::default();
        let close = match self.peek()?.kind {
            Kind::Symbol('[') => ']',
            Kind::Symbol('(') => ')',
            _ => return Ok(ip),
        };
        self.next()?;
        let mut first = true;
        loop {
            let token = self.next()?;
            let expected =
                "noecn, ect0, ect1, ce, ect01, tos, ttl or flowlabel; of these only tos and flowlabel go together";
            if token.kind != Kind::Word {
                return Err(unexpected(&token, expected));
            }
            let mark = match token.text {
                "noecn" => Some(EcnMark::NotEct),
                "ect0" => Some(EcnMark::Ect0),
                "ect1" => Some(EcnMark::Ect1),
                "ce" => Some(EcnMark::Ce),
                "ect01" => Some(EcnMark::EitherEct),
                _ => None,
            };
            match token.text {
                _ if mark.is_some() && first => ip.ecn = mark,
                "tos" if first => ip.tos = Some(self.number("tos", 255)? as u8),
                "ttl" if first => ip.ttl = Some(self.number("ttl", 255)? as u8),
                "flowlabel" if first || (ip.tos.is_some() && ip.flow_label.is_none()) => {
                    ip.flow_label = Some(self.number("flowlabel", 0xfffff)? as u32);
                }
                "tos" | "ttl" | "flowlabel" => return Err(unexpected(&token, expected)),
                _ if mark.is_some() => return Err(unexpected(&token, expected)),
                other => return Err(Error::unsupported(token.at, format_args!("IP field '{other}'"))),
            }
            first = false;
            if self.take_if(close)? {
                return Ok(ip);
            }
            self.take_if(',')?;
        }
    }

    fn ports(&mut self) -> Result<Option<(u16, u16)>, Error> {
        if self.peek()?.kind != Kind::Integer || !self.peek_second()?.is('>') {
            return Ok(None);
        }
        let from = self.number("source port", MAX16)? as u16;
        self.expect('>', "'>' between the ports")?;
        Ok(Some((from, self.number("destination port", MAX16)? as u16)))
    }

    fn tcp(&mut self, ip: IpInfo, ports: Option<(u16, u16)>) -> Result<TcpPacket, Error> {
        let mut p =
            TcpPacket { ip, ports, flags: self.flags()?, seq: self.seq_range()?, ..TcpPacket::default() };
        if self.take_if_word("ack")? {
            p.ack = Some(self.number("ack", MAX32)? as u32);
        }
        if self.take_if_word("win")? {
            p.win = Some(self.number("win (the raw field of the header)", MAX16)? as u16);
        }
        if self.take_if_word("urg")? {
            p.urg = Some(self.number("urg", MAX16)? as u16);
        }
        if self.take_if('<')? {
            p.options = self.tcp_options()?;
        }
        let token = self.peek()?;
        if token.kind == Kind::Word {
            if ["ack", "win", "urg"].contains(&token.text) {
                return Err(unexpected(&token, "ack, win and urg once each and in this order"));
            }
            return Err(Error::unsupported(token.at, format_args!("packet field '{}'", token.text)));
        }
        Ok(p)
    }

    /// Parse flags (letters, a dot, a digit) up to the sequence numbers.
    fn flags(&mut self) -> Result<TcpFlags, Error> {
        let start = self.peek()?;
        let mut letters = String::new();
        while letters.len() <= 16 {
            let token = self.peek()?;
            let more = match token.kind {
                Kind::Word | Kind::Float | Kind::Symbol('.' | '-') => true,
                Kind::Integer => !self.peek_second()?.is(':'),
                _ => false,
            };
            if !more {
                break;
            }
            self.next()?;
            letters.push_str(token.text);
        }
        let refuse = |allowed: &str| Err(Error::value(start.at, "flags", &letters, allowed));
        if letters.is_empty() {
            return Err(unexpected(
                &start,
                "the flags of a segment: letters of FSRPUEWA, '.', a digit, or '-'",
            ));
        }
        let mut flags = TcpFlags::default();
        if letters == "-" {
            return Ok(flags);
        }
        for c in letters.chars() {
            let before = flags;
            match c {
                'F' => flags.bits |= Flags::FIN,
                'S' => flags.bits |= Flags::SYN,
                'R' => flags.bits |= Flags::RST,
                'P' => flags.bits |= Flags::PSH,
                '.' => flags.bits |= Flags::ACK,
                'U' => flags.bits |= Flags::URG,
                'E' => flags.bits |= Flags::ECE,
                'W' => flags.bits |= Flags::CWR,
                'A' => flags.bits |= Flags::AE,
                '0'..='7' if flags.ace.is_none() => flags.ace = Some(c as u8 - b'0'),
                _ => return refuse("letters of FSRPUEWA, '.', one digit from 0 to 7, or '-' alone"),
            }
            if flags == before {
                return refuse("each flag once");
            }
        }
        if flags.ace.is_some() && flags.bits.ace() != 0 {
            return refuse("a digit for the ACE field, or E, W and A");
        }
        Ok(flags)
    }

    fn seq_range(&mut self) -> Result<SeqRange, Error> {
        let at = self.peek()?.at;
        let start = self.number("first sequence number", MAX32)? as u32;
        self.expect(':', "':' and the end of the sequence numbers")?;
        let end = self.number("end of the sequence numbers", MAX32)? as u32;
        let len: u16 = self.in_parentheses("payload length")?;
        let right = start.wrapping_add(len as u32);
        if end != right {
            let found = format_args!("{start}:{end}({len})").to_string();
            return Err(Error::value(at, "sequence numbers", found, format_args!("{start}:{right}({len})")));
        }
        Ok(SeqRange { start, end, len })
    }

    fn in_parentheses(&mut self, what: &str) -> Result<u16, Error> {
        self.expect('(', &format!("'(' and a number: {what}"))?;
        let n = self.number(what, MAX16)? as u16;
        self.expect(')', "')'")?;
        Ok(n)
    }

    fn icmp(&mut self, ip: IpInfo) -> Result<IcmpPacket, Error> {
        let kind = self.next()?;
        if kind.kind != Kind::Word {
            return Err(unexpected(&kind, "a type of ICMP message"));
        }
        let mut p = IcmpPacket { ip, kind: kind.text.to_string(), ..IcmpPacket::default() };
        let code = self.peek()?;
        if code.kind == Kind::Word && !["mtu", "id"].contains(&code.text) {
            p.code = Some(self.next()?.text.to_string());
        }
        if self.take_if_word("mtu")? {
            p.mtu = Some(self.number("mtu", MAX32)? as u32);
        }
        if self.take_if_word("id")? {
            p.id = Some(self.number("id", MAX16)? as u16);
        }
        if self.take_if('[')? {
            let token = self.peek()?;
            p.quoted = Some(match token.kind {
                Kind::Integer => Quoted::Tcp(self.seq_range()?),
                Kind::Word if token.text == "udp" => {
                    self.next()?;
                    Quoted::Udp(self.in_parentheses("payload bytes of the datagram")?)
                }
                Kind::Word => {
                    return Err(Error::unsupported(token.at, format_args!("quoted packet '{}'", token.text)))
                }
                _ => return Err(unexpected(&token, "start:end(length) or udp(length)")),
            });
            self.expect(']', "']'")?;
        }
        let token = self.peek()?;
        if token.kind == Kind::Word {
            return Err(Error::unsupported(token.at, format_args!("ICMP field '{}'", token.text)));
        }
        Ok(p)
    }
}

/// Whether a word consists of flags and is therefore not a packet kind.
fn is_flags(word: &str) -> bool {
    word.chars().all(|c| "FSRPUEWA".contains(c) || c.is_ascii_digit())
}
