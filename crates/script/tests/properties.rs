//! Any text yields a result and never causes a panic. Any script is unchanged by printing and parsing.

use ackclock_core::{AccEcnOption, Flags, Span};
use ackclock_script::ast::*;
use ackclock_script::{parse, Limits, Options, Pos, Setup};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const SEEDS: &[&str] = &[
    include_str!("scripts/fast-retransmit.pkt"),
    include_str!("scripts/every-time.pkt"),
    include_str!("scripts/every-option.pkt"),
    include_str!("scripts/every-packet.pkt"),
    include_str!("scripts/every-call.pkt"),
];

/// Tokens with a meaning somewhere in the language.
const PIECES: &[&str] = &[
    "+",
    "0",
    "-1",
    ".5",
    "*",
    "~",
    "...",
    "<",
    ">",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "|",
    "=",
    ",",
    ":",
    "%{",
    "}%",
    "`",
    "\"",
    "\\",
    "//",
    "/*",
    "*/",
    "--",
    "--define",
    "-D",
    "S",
    "P.",
    "F.5",
    "1:1(0)",
    "4294967295:0(1)",
    "ack",
    "win",
    "urg",
    "mss",
    "nop",
    "eol",
    "sack",
    "sackOK",
    "TS",
    "val",
    "ecr",
    "ECN",
    "e0b",
    "e1b",
    "ceb",
    "FO",
    "md5",
    "icmp",
    "udp",
    "mtu",
    "tos",
    "ttl",
    "flowlabel",
    "ect01",
    "0x",
    "0xff",
    "99999999999999999999",
    "1e9",
    "\n",
    " ",
    "\t",
    "\u{feff}",
    "é",
    "\0",
    "1.0000000001",
    "1000000",
    "msg_iov(1)=",
    "EAGAIN",
];

/// Run every operation of this crate on a text. The only checks are that nothing panics and no run takes long.
fn exercise(text: &str) {
    let limits = Limits { events: 1_000, ..Limits::default() };
    let mut setup = Setup::kernel();
    let _ = setup.apply(text, Pos::default());
    match parse(text, &[("A".into(), "1".into())], &limits) {
        Ok(script) => {
            let _ = Options::of(&script.options);
            for command in script.init.iter().chain(&script.cleanup) {
                let _ = setup.apply(&command.text, command.at);
            }
            let printed = script.to_string();
            let again = parse(&printed, &[], &limits).unwrap_or_else(|e| panic!("{e}\n{printed}"));
            assert_eq!(without_places(again), without_places(script));
        }
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.chars().count() < 400 && !message.contains(['\n', '\u{1b}', '\0']),
                "{message:?}"
            );
        }
    }
}

fn without_places(mut script: Script) -> Script {
    script.options.iter_mut().for_each(|o| o.at = Pos::default());
    script.init.iter_mut().chain(&mut script.cleanup).for_each(|c| c.at = Pos::default());
    script.events.iter_mut().for_each(|e| e.at = Pos::default());
    script
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.min(2000)))]

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..400)) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_characters_never_panic(text in ".{0,200}") {
        exercise(&text);
    }

    #[test]
    fn random_pieces_never_panic(pieces in vec(select(PIECES), 0..60), glue in select(&["", " "][..])) {
        exercise(&pieces.join(glue));
        exercise(&format!("0 {}", pieces.join(glue)));
        exercise(&format!("0 > . 1:1(0) <{}", pieces.join(glue)));
        exercise(&format!("0 f({}", pieces.join(glue)));
    }

    #[test]
    fn mutations_of_scripts_never_panic(
        seed in select(SEEDS),
        edits in vec((any::<prop::sample::Index>(), 0u8..4, select(PIECES), 0usize..8), 1..6),
    ) {
        let mut text = seed.to_string();
        for (at, kind, piece, len) in edits {
            let mut from = at.index(text.len() + 1);
            while !text.is_char_boundary(from) {
                from -= 1;
            }
            let mut to = (from + len).min(text.len());
            while !text.is_char_boundary(to) {
                to += 1;
            }
            match kind {
                0 => text.insert_str(from, piece),
                1 => text.replace_range(from..to, ""),
                2 => text.replace_range(from..to, piece),
                _ => text.truncate(from),
            }
        }
        exercise(&text);
    }

    #[test]
    fn printed_scripts_read_the_same(script in script()) {
        let printed = script.to_string();
        let again = parse(&printed, &[], &Limits::default()).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        prop_assert_eq!(without_places(again), script, "{}", printed);
    }
}

fn script() -> impl Strategy<Value = Script> {
    let command = || option::of("[^`]{0,20}".prop_map(|text| Command { at: Pos::default(), text }));
    (vec(script_option(), 0..3), command(), vec((any::<bool>(), span(), span(), action()), 1..12), command())
        .prop_map(|(options, init, events, cleanup)| {
            let mut clock = Span::ZERO;
            let events = events.into_iter().enumerate().map(|(i, (absolute, a, b, action))| {
                let expects = matches!(action, Action::Expect(_));
                let (from, to) = (a.min(b), a.max(b));
                let mut time = match (absolute, expects && to.0 % 2 == 0) {
                    (false, false) => When::After(from),
                    (false, true) => When::AfterBetween(from, to),
                    (true, false) => {
                        clock = clock + from;
                        When::At(clock)
                    }
                    (true, true) if to.0 % 3 == 0 => When::Any,
                    (true, true) => {
                        clock = clock + from;
                        When::Between(clock, clock + to)
                    }
                };
                if i == 0 {
                    clock = Span::ZERO;
                    time = if absolute { When::At(Span::ZERO) } else { When::After(Span::ZERO) };
                }
                let begin = match time {
                    When::At(t) | When::After(t) => t,
                    _ => Span::ZERO,
                };
                let action = match action {
                    Action::Call(mut call) => {
                        call.until = call.until.map(|u| begin + u);
                        Action::Call(call)
                    }
                    action => action,
                };
                Event { at: Pos::default(), time, action }
            });
            let events = events.collect();
            Script { options, init, events, cleanup }
        })
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![(0..1_000_000_000u64).prop_map(Span::from_ns), (0..5_000u64).prop_map(Span::from_ms)]
}

fn script_option() -> impl Strategy<Value = ScriptOption> {
    let value = option::of(prop_oneof!["[a-z0-9.:]{0,8}", "[^\"\\\\]{0,8}"]);
    ("[a-z_]{1,8}", value)
        .prop_filter("definitions are resolved", |(name, _)| name != "define")
        .prop_map(|(name, value)| ScriptOption { at: Pos::default(), name, value })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        packet(false).prop_map(Action::Inject),
        packet(true).prop_map(Action::Expect),
        packet(true).prop_map(Action::Expect),
        call().prop_map(Action::Call),
        "[^`]{0,12}".prop_map(Action::Command),
        "[^}%]{0,12}".prop_map(Action::Code),
    ]
}

fn ip_info(expected: bool) -> impl Strategy<Value = IpInfo> {
    let marks = [EcnMark::NotEct, EcnMark::Ect0, EcnMark::Ect1, EcnMark::Ce, EcnMark::EitherEct];
    let marks = marks[..4 + expected as usize].to_vec();
    prop_oneof![
        Just(IpInfo::default()),
        select(marks).prop_map(|m| IpInfo { ecn: Some(m), ..IpInfo::default() }),
        any::<u8>().prop_map(|t| IpInfo { ttl: Some(t), ..IpInfo::default() }),
        (option::of(any::<u8>()), option::of(0..0x100000u32)).prop_map(|(tos, flow_label)| IpInfo {
            tos,
            flow_label,
            ..IpInfo::default()
        }),
    ]
}

fn packet(expected: bool) -> impl Strategy<Value = Packet> {
    let ports = || option::of(any::<(u16, u16)>());
    let datagram = (ip_info(expected), ports(), any::<u16>())
        .prop_map(|(ip, ports, len)| Packet::Udp(UdpPacket { ip, ports, len }));
    let quoted =
        option::of(prop_oneof![seq_range().prop_map(Quoted::Tcp), any::<u16>().prop_map(Quoted::Udp)]);
    let message = (
        ip_info(expected),
        "t[a-z_]{0,8}",
        option::of("c[a-z_]{0,8}"),
        any::<(Option<u32>, Option<u16>)>(),
        quoted,
    )
        .prop_map(|(ip, kind, code, (mtu, id), quoted)| {
            Packet::Icmp(IcmpPacket { ip, kind, code, mtu, id, quoted })
        });
    let options = prop_oneof![Just(TcpOptions::Any), tcp_options(), tcp_options()];
    let numbers = any::<(Option<u32>, Option<u16>, Option<u16>)>();
    let segment = (ip_info(expected), ports(), flags(), seq_range(), numbers, options).prop_map(
        move |(ip, ports, flags, seq, (ack, win, urg), options)| {
            let (win, options) = match (expected, options) {
                (true, options) => (win, options),
                (false, TcpOptions::Any) => (Some(win.unwrap_or(0)), TcpOptions::default()),
                (false, options) => (Some(win.unwrap_or(0)), options),
            };
            Packet::Tcp(TcpPacket { ip, ports, flags, seq, ack, win, urg, options })
        },
    );
    prop_oneof![1 => datagram, 1 => message, 6 => segment]
}

fn seq_range() -> impl Strategy<Value = SeqRange> {
    any::<(u32, u16)>().prop_map(|(start, len)| SeqRange { start, end: start.wrapping_add(len as u32), len })
}

fn flags() -> impl Strategy<Value = TcpFlags> {
    (0..0x200u16, option::of(0..8u8)).prop_map(|(bits, ace)| match ace {
        Some(_) => TcpFlags { bits: Flags(bits & 0x3f), ace },
        None => TcpFlags { bits: Flags(bits), ace },
    })
}

fn tcp_options() -> impl Strategy<Value = TcpOptions> {
    vec(tcp_option(), 0..5).prop_map(|mut list| {
        let bytes = |list: &[TcpOption]| list.iter().map(TcpOption::bytes).sum::<usize>();
        while bytes(&list) > 40 {
            list.pop();
        }
        while bytes(&list) % 4 != 0 {
            list.push(TcpOption::Nop);
        }
        TcpOptions::Exactly(list)
    })
}

fn tcp_option() -> impl Strategy<Value = TcpOption> {
    prop_oneof![
        Just(TcpOption::Nop),
        Just(TcpOption::Eol),
        Just(TcpOption::SackPermitted),
        any::<u16>().prop_map(TcpOption::Mss),
        any::<u8>().prop_map(TcpOption::WindowScale),
        vec(any::<(u32, u32)>(), 1..5).prop_map(TcpOption::Sack),
        any::<(u32, u32)>().prop_map(|(val, ecr)| TcpOption::Timestamps { val, ecr }),
        (any::<bool>(), vec(any::<u8>(), 0..17))
            .prop_map(|(experimental, cookie)| TcpOption::FastOpen { experimental, cookie }),
        any::<[u8; 16]>().prop_map(TcpOption::Md5),
        (any::<bool>(), vec(0..1u32 << 24, 1..4))
            .prop_map(|(order1, counters)| TcpOption::AccEcn(AccEcnOption::new(order1, &counters))),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let result = prop_oneof![
        any::<i64>().prop_map(|n| (Expr::Int(n), None)),
        Just((Expr::Ellipsis, None)),
        word().prop_map(|w| (Expr::Word(w), None)),
        word().prop_map(|errno| (Expr::Int(-1), Some(errno))),
    ];
    (option::of(span()), word(), vec(expr(), 0..5), result)
        .prop_map(|(until, name, args, (result, errno))| Call { until, name, args, result, errno })
}

fn word() -> impl Strategy<Value = String> {
    "[A-Za-z_][A-Za-z0-9_]{0,6}"
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Expr::Int),
        any::<u64>().prop_map(Expr::Hex),
        word().prop_map(Expr::Word),
        vec("[^\"\\\\]{0,5}", 1..3).prop_map(Expr::Text),
        Just(Expr::Ellipsis),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let primary = prop_oneof![
            (word(), vec(inner.clone(), 0..3)).prop_map(|(name, args)| Expr::Apply(name, args)),
            vec(inner.clone(), 0..4).prop_map(Expr::List),
            any::<i64>().prop_map(|n| Expr::Braces(vec![Expr::Ellipsis, Expr::Int(n)])),
            (field("onoff", inner.clone()), field("linger", inner.clone()))
                .prop_map(|(a, b)| Expr::Braces(vec![a, b])),
            (field("events", inner.clone()), field("fd", inner.clone()), field("revents", inner.clone()))
                .prop_map(|(a, b, c)| Expr::Braces(vec![a, b, c])),
        ];
        prop_oneof![
            primary,
            vec(inner.clone().prop_map(single), 2..4).prop_map(Expr::Or),
            (word(), inner.prop_map(unassigned))
                .prop_map(|(name, value)| Expr::Assign(Expr::Word(name).into(), value.into())),
        ]
    })
}

fn field(name: &'static str, value: impl Strategy<Value = Expr>) -> impl Strategy<Value = Expr> {
    value.prop_map(move |value| Expr::Assign(Expr::Word(name.into()).into(), unassigned(value).into()))
}

/// Expressions allowed on the right-hand side of a field.
fn unassigned(e: Expr) -> Expr {
    match e {
        Expr::Assign(..) => Expr::List(vec![e]),
        e => e,
    }
}

/// Expressions allowed beside a `|`.
fn single(e: Expr) -> Expr {
    match e {
        Expr::Or(_) => Expr::List(vec![e]),
        e => unassigned(e),
    }
}
