//! Syntax tree of a packet script. Numbers are as written: sequence numbers 32 bits wide, windows the raw 16 bits of
//! the header, times as distances from the start or from the event before. The player works out what each is relative
//! to.

use ackclock_core::{AccEcnOption, Flags, Span};

use crate::error::Pos;

/// A whole script. `--define` and its uses are already resolved.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// `--name=value` lines, in order.
    pub options: Vec<ScriptOption>,
    /// A command before the first event.
    pub init: Option<Command>,
    /// The events, in order.
    pub events: Vec<Event>,
    /// A command after the last event, whether or not the script passed.
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

/// The text between back-quotes. It is read, never executed.
#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    /// Position.
    pub at: Pos,
    /// Text between the marks.
    pub text: String,
}

/// Something at some time.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Position.
    pub at: Pos,
    /// Time when it happens, or must happen.
    pub time: When,
    /// Action of the event.
    pub action: Action,
}

/// Time of an event. Windows and [`When::Any`] stand only before expected packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// `t`: since the start of the script.
    At(Span),
    /// `+t`: since the end of the event before.
    After(Span),
    /// `a~b`: since the start of the script.
    Between(Span, Span),
    /// `+a~+b`: since the end of the event before.
    AfterBetween(Span, Span),
    /// `*`.
    Any,
}

/// Actions of an event.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// `<`: the network delivers this to the stack.
    Inject(Packet),
    /// `>`: the stack must send this.
    Expect(Packet),
    /// The application calls the socket interface.
    Call(Call),
    /// A back-quoted command.
    Command(String),
    /// Text of a code block.
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

/// Fields of the IP header that are set or checked.
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

/// The words for the ECN field.
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
    /// `ect01`: either ECT; on expectations only.
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
    /// Payload bytes; SYN and FIN not counted.
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
    /// The flags of the header.
    pub fn header(&self) -> Flags {
        self.ace.map_or(self.bits, |ace| self.bits.with_ace(ace))
    }
}

/// Options of a segment.
#[derive(Clone, PartialEq, Debug)]
pub enum TcpOptions {
    /// `<...>`: not checked; on expectations only.
    Any,
    /// Exactly these, in this order, padding included; without a list in the script: none.
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
    /// Bytes.
    Mss(u16),
    /// Shift.
    WindowScale(u8),
    SackPermitted,
    /// Edges as written.
    Sack(Vec<(u32, u32)>),
    Timestamps {
        val: u32,
        ecr: u32,
    },
    /// `FO` (RFC 7413) or `FOEXP` (its experimental number); an empty cookie asks for one.
    FastOpen {
        experimental: bool,
        cookie: Vec<u8>,
    },
    Md5([u8; 16]),
    /// `ECN`: the AccECN option.
    AccEcn(AccEcnOption),
}

impl TcpOption {
    /// Bytes on the wire.
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

/// An ICMP message about the connection.
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
    /// Quoted part of the packet that caused the message.
    pub quoted: Option<Quoted>,
}

/// The quoted part of a packet in an ICMP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quoted {
    /// Sequence numbers of a segment.
    Tcp(SeqRange),
    /// Payload bytes of a datagram.
    Udp(u16),
}

/// A UDP datagram: of the language, but no part of a TCP's behaviour.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UdpPacket {
    /// IP header.
    pub ip: IpInfo,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// Payload bytes.
    pub len: u16,
}

/// A call of the socket interface, and its required result.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Time when it must return if it blocks; counted from the same instant as the event's own time.
    pub until: Option<Span>,
    /// Name.
    pub name: String,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Value that it must return.
    pub result: Expr,
    /// Error that it must return, by name.
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
    /// Strings side by side, escapes as written.
    Text(Vec<String>),
    /// `...`: anything, or filled in.
    Ellipsis,
    /// `a|b|c`.
    Or(Vec<Expr>),
    /// `field = value`; the field is a word or an application such as `msg_iov(2)`.
    Assign(Box<Expr>, Box<Expr>),
    /// `name(arguments)`: `htons(80)`.
    Apply(String, Vec<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `{a, b}`; see [`crate::shape`].
    Braces(Vec<Expr>),
}

impl Expr {
    /// A plain number, if it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Expr::Int(n) => Some(*n),
            Expr::Hex(n) => i64::try_from(*n).ok(),
            _ => None,
        }
    }

    /// A lone word, if it is one.
    pub fn word(&self) -> Option<&str> {
        match self {
            Expr::Word(w) => Some(w),
            _ => None,
        }
    }
}
