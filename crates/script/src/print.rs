//! Prints a script in canonical form. Parsing the printed text yields the same script.

use std::fmt::{self, Display, Formatter, Write};

use ackclock_core::packet::Ecn;
use ackclock_core::Flags;

use crate::ast::*;
use crate::parser::seconds;

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for option in &self.options {
            writeln!(f, "{option}")?;
        }
        if let Some(init) = &self.init {
            writeln!(f, "`{}`", init.text)?;
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        if let Some(cleanup) = &self.cleanup {
            writeln!(f, "`{}`", cleanup.text)?;
        }
        Ok(())
    }
}

impl Display for ScriptOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "--{}", self.name)?;
        match &self.value {
            Some(value) => write!(f, "=\"{value}\""),
            None => Ok(()),
        }
    }
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.time)?;
        match &self.action {
            Action::Inject(packet) => write!(f, "< {packet}"),
            Action::Expect(packet) => write!(f, "> {packet}"),
            Action::Call(call) => write!(f, "{call}"),
            Action::Command(text) => write!(f, "`{text}`"),
            Action::Code(text) => write!(f, "%{{{text}}}%"),
        }
    }
}

impl Display for When {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            When::At(t) => f.write_str(&seconds(t)),
            When::After(t) => write!(f, "+{}", seconds(t)),
            When::Between(a, b) => write!(f, "{}~{}", seconds(a), seconds(b)),
            When::AfterBetween(a, b) => write!(f, "+{}~+{}", seconds(a), seconds(b)),
            When::Any => f.write_char('*'),
        }
    }
}

impl Display for Packet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Packet::Tcp(p) => write!(f, "{p}"),
            Packet::Icmp(p) => write!(f, "{p}"),
            Packet::Udp(p) => {
                write!(f, "{}", p.ip)?;
                ports(f, p.ports)?;
                write!(f, "udp({})", p.len)
            }
        }
    }
}

/// The text followed by a space, or nothing if it is empty.
impl Display for IpInfo {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mark = match self.ecn {
            Some(EcnMark::NotEct) => "noecn",
            Some(EcnMark::Ect0) => "ect0",
            Some(EcnMark::Ect1) => "ect1",
            Some(EcnMark::Ce) => "ce",
            Some(EcnMark::EitherEct) => "ect01",
            None => "",
        };
        match (self.tos, self.flow_label, self.ttl) {
            _ if !mark.is_empty() => write!(f, "[{mark}] "),
            (Some(tos), Some(label), _) => write!(f, "[tos 0x{tos:02x}, flowlabel 0x{label:x}] "),
            (Some(tos), None, _) => write!(f, "[tos 0x{tos:02x}] "),
            (None, Some(label), _) => write!(f, "[flowlabel 0x{label:x}] "),
            (None, None, Some(ttl)) => write!(f, "[ttl {ttl}] "),
            (None, None, None) => Ok(()),
        }
    }
}

fn ports(f: &mut Formatter<'_>, ports: Option<(u16, u16)>) -> fmt::Result {
    match ports {
        Some((from, to)) => write!(f, "{from} > {to} "),
        None => Ok(()),
    }
}

impl Display for TcpPacket {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ip)?;
        ports(f, self.ports)?;
        write!(f, "{} {}", self.flags, self.seq)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(win) = self.win {
            write!(f, " win {win}")?;
        }
        if let Some(urg) = self.urg {
            write!(f, " urg {urg}")?;
        }
        write!(f, "{}", self.options)
    }
}

impl Display for SeqRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}({})", self.start, self.end, self.len)
    }
}

impl Display for TcpFlags {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const LETTERS: [(Flags, char); 9] = [
            (Flags::AE, 'A'),
            (Flags::FIN, 'F'),
            (Flags::SYN, 'S'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::URG, 'U'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::ACK, '.'),
        ];
        if *self == TcpFlags::default() {
            return f.write_char('-');
        }
        for (_, letter) in LETTERS.iter().filter(|(flag, _)| self.bits.has(*flag)) {
            f.write_char(*letter)?;
        }
        match self.ace {
            Some(digit) => write!(f, "{digit}"),
            None => Ok(()),
        }
    }
}

/// The text preceded by a space, or nothing if it is empty.
impl Display for TcpOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TcpOptions::Any => f.write_str(" <...>"),
            TcpOptions::Exactly(list) if list.is_empty() => Ok(()),
            TcpOptions::Exactly(list) => {
                f.write_str(" <")?;
                separated(f, list, ",")?;
                f.write_char('>')
            }
        }
    }
}

impl Display for TcpOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Nop => f.write_str("nop"),
            TcpOption::Eol => f.write_str("eol"),
            TcpOption::Mss(n) => write!(f, "mss {n}"),
            TcpOption::WindowScale(n) => write!(f, "wscale {n}"),
            TcpOption::SackPermitted => f.write_str("sackOK"),
            TcpOption::Sack(blocks) => {
                f.write_str("sack")?;
                blocks.iter().try_for_each(|(left, right)| write!(f, " {left}:{right}"))
            }
            TcpOption::Timestamps { val, ecr } => write!(f, "TS val {val} ecr {ecr}"),
            TcpOption::FastOpen { experimental, cookie } => {
                f.write_str(if *experimental { "FOEXP" } else { "FO" })?;
                hex(f, cookie)
            }
            TcpOption::Md5(digest) => {
                f.write_str("md5")?;
                hex(f, digest)
            }
            TcpOption::AccEcn(option) => {
                f.write_str("ECN")?;
                option.by_mark().try_for_each(|(mark, counter)| {
                    let name = match mark {
                        Ecn::Ect1 => "e1b",
                        Ecn::Ect0 => "e0b",
                        _ => "ceb",
                    };
                    write!(f, " {name} {counter}")
                })
            }
        }
    }
}

fn hex(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    if !bytes.is_empty() {
        f.write_char(' ')?;
    }
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl Display for IcmpPacket {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}icmp {}", self.ip, self.kind)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, " mtu {mtu}")?;
        }
        if let Some(id) = self.id {
            write!(f, " id {id}")?;
        }
        match self.quoted {
            Some(Quoted::Tcp(seq)) => write!(f, " [{seq}]"),
            Some(Quoted::Udp(len)) => write!(f, " [udp({len})]"),
            None => Ok(()),
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(until) = self.until {
            write!(f, "...{} ", seconds(until))?;
        }
        write!(f, "{}(", self.name)?;
        separated(f, &self.args, ", ")?;
        write!(f, ") = {}", self.result)?;
        match &self.errno {
            Some(errno) => write!(f, " {errno}"),
            None => Ok(()),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Int(n) => write!(f, "{n}"),
            Expr::Hex(n) => write!(f, "0x{n:x}"),
            Expr::Word(word) => f.write_str(word),
            Expr::Text(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    write!(f, "{}\"{part}\"", if i > 0 { " " } else { "" })?;
                }
                Ok(())
            }
            Expr::Ellipsis => f.write_str("..."),
            Expr::Or(all) => separated(f, all, "|"),
            Expr::Assign(left, right) => write!(f, "{left}={right}"),
            Expr::Apply(name, args) => {
                write!(f, "{name}(")?;
                separated(f, args, ", ")?;
                f.write_char(')')
            }
            Expr::List(items) => {
                f.write_char('[')?;
                separated(f, items, ", ")?;
                f.write_char(']')
            }
            Expr::Braces(items) => {
                f.write_char('{')?;
                separated(f, items, ", ")?;
                f.write_char('}')
            }
        }
    }
}

fn separated<T: Display>(f: &mut Formatter<'_>, items: &[T], by: &str) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(by)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}
