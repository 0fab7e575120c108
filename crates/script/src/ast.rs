//! Syntax tree of a packet script. Numbers are stored as written: sequence numbers with 32 bits, windows as the raw
//! 16 bits of the header, times relative to the start or to the previous event. The player resolves them.

use ackclock_core::{AccEcnOption, Flags, Span};

use crate::error::Pos;

/// A complete script, with `--define` and its uses already resolved.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// `--name=value` lines, in order.
    pub options: Vec<ScriptOption>,
    /// Command before the first event.
    pub init: Option<Command>,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Command after the last event, run whether or not the script passed.
    pub cleanup: Option<Command>,
}

/// `--name` or `--name=value`.
#[derive(Clone, PartialEq, Debug)]
pub struct ScriptOption {
    /// Position.
    pub at: Pos,
    /// Name without the hyphens.
    pub name: String,
    /// Value without quotation marks.
    pub value: Option<String>,
}

/// Text between back-quotes. Parsed, never executed.
#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    /// Position.
    pub at: Pos,
    /// Text between the back-quotes.
    pub text: String,
}

/// An event of the script.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Position.
    pub at: Pos,
    /// Time at which the event occurs or must occur.
    pub time: When,
    /// Event action.
    pub action: Action,
}

/// Time of an event. Windows and [`When::Any`] occur only on expected packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// `t`: since the start of the script.
    At(Span),
    /// `+t`: since the end of the previous event.
    After(Span),
    /// `a~b`: since the start of the script.
    Between(Span, Span),
    /// `+a~+b`: since the end of the previous event.
    AfterBetween(Span, Span),
    /// `*`: any time.
    Any,
}

/// Action of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// `<`: the network delivers this packet to the stack.
    Inject(Packet),
    /// `>`: the stack must send this packet.
    Expect(Packet),
    /// The application makes a socket call.
    Call(Call),
    /// A back-quoted command.
    Command(String),
    /// A code block.
    Code(String),
}

/// A packet.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "one protocol each, documented at its type")]
pub enum Packet {
    Tcp(TcpPacket),
    Icmp(IcmpPacket),
    Udp(UdpPacket),
}

/// IP header fields that are set or checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IpInfo {
    /// ECN field alone.
    pub ecn: Option<EcnMark>,
    /// The whole type-of-service byte.
    pub tos: Option<u8>,
    /// Time to live.
    pub ttl: Option<u8>,
    /// IPv6 flow label.
    pub flow_label: Option<u32>,
}

/// Keywords for the ECN field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnMark {
    /// `noecn`.
    NotEct,
    /// `ect0`.
    Ect0,
    /// `ect1`.
    Ect1,
    /// `ce`.
    Ce,
    /// `ect01`: either ECT codepoint; on expectations only.
    EitherEct,
}

/// A TCP segment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TcpPacket {
    /// IP header.
    pub ip: IpInfo,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// Flags.
    pub flags: TcpFlags,
    /// Sequence numbers.
    pub seq: SeqRange,
    /// ACK number.
    pub ack: Option<u32>,
    /// Raw window field, never scaled; always present on injected packets.
    pub win: Option<u16>,
    /// Urgent pointer.
    pub urg: Option<u16>,
    /// Options.
    pub options: TcpOptions,
}

/// `start:end(len)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeqRange {
    /// Number of the first byte, or of SYN or FIN.
    pub start: u32,
    /// `start + len`, modulo 2^32.
    pub end: u32,
    /// Payload bytes, without SYN and FIN.
    pub len: u16,
}

/// Header flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpFlags {
    /// The eight flags of RFC 9293 and AE (RFC 9768); AE, CWR and ECE are compared only without `ace`.
    pub bits: Flags,
    /// AE, CWR and ECE as one number, the ACE field of AccECN.
    pub ace: Option<u8>,
}

impl TcpFlags {
    /// Header flags.
    pub fn header(&self) -> Flags {
        self.ace.map_or(self.bits, |ace| self.bits.with_ace(ace))
    }
}

/// Segment options.
#[derive(Clone, PartialEq, Debug)]
pub enum TcpOptions {
    /// `<...>`: not checked; on expectations only.
    Any,
    /// Exactly these options, in this order, padding included. Without a list, there must be none.
    Exactly(Vec<TcpOption>),
}

impl Default for TcpOptions {
    fn default() -> TcpOptions {
        TcpOptions::Exactly(Vec::new())
    }
}

/// One TCP option.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "options by the name under which IANA registered them")]
pub enum TcpOption {
    Nop,
    Eol,
    /// Maximum segment size, bytes.
    Mss(u16),
    /// Window shift.
    WindowScale(u8),
    SackPermitted,
    /// Edges of the blocks, as written.
    Sack(Vec<(u32, u32)>),
    Timestamps {
        val: u32,
        ecr: u32,
    },
    /// `FO` (RFC 7413) or `FOEXP` (its experimental number). An empty cookie requests one.
    FastOpen {
        experimental: bool,
        cookie: Vec<u8>,
    },
    Md5([u8; 16]),
    /// `ECN`: the AccECN option.
    AccEcn(AccEcnOption),
}

impl TcpOption {
    /// Length on the wire, bytes.
    pub fn bytes(&self) -> usize {
        match self {
            TcpOption::Nop | TcpOption::Eol => 1,
            TcpOption::Mss(_) => 4,
            TcpOption::WindowScale(_) => 3,
            TcpOption::SackPermitted => 2,
            TcpOption::Sack(blocks) => 2 + 8 * blocks.len(),
            TcpOption::Timestamps { .. } => 10,
            TcpOption::FastOpen { experimental, cookie } => 2 + 2 * *experimental as usize + cookie.len(),
            TcpOption::Md5(_) => 18,
            TcpOption::AccEcn(a) => a.bytes() as usize,
        }
    }
}

/// ICMP message about the connection.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct IcmpPacket {
    /// IP header.
    pub ip: IpInfo,
    /// Type, by name: `unreachable`.
    pub kind: String,
    /// Code, by name: `frag_needed`.
    pub code: Option<String>,
    /// Next-hop MTU.
    pub mtu: Option<u32>,
    /// Identifier of an echo.
    pub id: Option<u16>,
    /// Quoted part of the packet that triggered the message.
    pub quoted: Option<Quoted>,
}

/// Part of a packet quoted in an ICMP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quoted {
    /// Sequence numbers of a segment.
    Tcp(SeqRange),
    /// Payload bytes of a datagram.
    Udp(u16),
}

/// UDP datagram: part of the language, but irrelevant to TCP.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UdpPacket {
    /// IP header.
    pub ip: IpInfo,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// Payload bytes.
    pub len: u16,
}

/// Socket call, and its required result.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Time at which the call must return if it blocks, relative to the same instant as the event's own time.
    pub until: Option<Span>,
    /// Function name.
    pub name: String,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Required return value.
    pub result: Expr,
    /// Required error, by name.
    pub errno: Option<String>,
}

/// An expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expr {
    /// Decimal number.
    Int(i64),
    /// Hexadecimal number.
    Hex(u64),
    /// Name of a constant.
    Word(String),
    /// Adjacent strings, with escapes as written.
    Text(Vec<String>),
    /// `...`: any value, or a value filled in by the player.
    Ellipsis,
    /// `a|b|c`.
    Or(Vec<Expr>),
    /// `field = value`. The field is a word, or has arguments like `msg_iov(2)`.
    Assign(Box<Expr>, Box<Expr>),
    /// `name(arguments)`: `htons(80)`.
    Apply(String, Vec<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `{a, b}`; see [`crate::shape`].
    Braces(Vec<Expr>),
}

impl Expr {
    /// The number, if the expression is a plain number.
    pub fn number(&self) -> Option<i64> {
        match self {
            Expr::Int(n) => Some(*n),
            Expr::Hex(n) => i64::try_from(*n).ok(),
            _ => None,
        }
    }

    /// The word, if the expression is a single word.
    pub fn word(&self) -> Option<&str> {
        match self {
            Expr::Word(w) => Some(w),
            _ => None,
        }
    }
}
