//! Every construct of the language is parsed, and every printed script parses to the same script.

use ackclock_core::{Flags, Span};
use ackclock_script::ast::*;
use ackclock_script::{parse, Error, Limits, Options, Pos, Setup};

const SCRIPTS: &[(&str, &str)] = &[
    ("fast-retransmit", include_str!("scripts/fast-retransmit.pkt")),
    ("every-time", include_str!("scripts/every-time.pkt")),
    ("every-option", include_str!("scripts/every-option.pkt")),
    ("every-packet", include_str!("scripts/every-packet.pkt")),
    ("every-call", include_str!("scripts/every-call.pkt")),
];

fn read(text: &str) -> Result<Script, Error> {
    parse(text, &[], &Limits::default())
}

/// Parse a script with one event line after the first, and return the action of that event.
fn second(line: &str) -> Result<Action, Error> {
    let mut script = read(&format!("0 close(3) = 0\n{line}\n"))?;
    Ok(script.events.swap_remove(1).action)
}

fn tcp(line: &str) -> TcpPacket {
    match second(line) {
        Ok(Action::Inject(Packet::Tcp(p)) | Action::Expect(Packet::Tcp(p))) => p,
        other => panic!("{line}: {other:?}"),
    }
}

fn call(line: &str) -> Call {
    match second(line) {
        Ok(Action::Call(call)) => call,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn examples_are_read_and_printed() {
    for (name, text) in SCRIPTS {
        let script = read(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let printed = script.to_string();
        let again = read(&printed).unwrap_or_else(|e| panic!("{name}: {e}\n{printed}"));
        assert_eq!(again.to_string(), printed, "{name}");
        Options::of(&script.options).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut setup = Setup::kernel();
        for command in script.init.iter().chain(&script.cleanup) {
            setup.apply(&command.text, command.at).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

#[test]
fn times() {
    let script = read(SCRIPTS[1].1).unwrap();
    let times: Vec<When> = script.events.iter().map(|e| e.time).collect();
    let ms = Span::from_ms;
    assert_eq!(
        times,
        [
            When::At(ms(0)),
            When::At(ms(0)),
            When::After(ms(0)),
            When::After(ms(0)),
            When::Between(ms(0), ms(10)),
            When::At(ms(20)),
            When::AfterBetween(ms(0), ms(4)),
            When::Any,
            When::After(Span::from_ns(1)),
            When::After(ms(2500)),
        ]
    );
    assert_eq!(script.events[4].at, Pos { line: 6, column: 1 });
}

#[test]
fn a_segment() {
    let p = tcp("+0 < [ect0] 8080 > 42 . 11:21(10) ack 7 win 65535 urg 3 <mss 9,nop,nop,TS val 1 ecr 2>");
    assert_eq!((p.ports, p.seq.start, p.seq.end, p.seq.len), (Some((8080, 42)), 11, 21, 10));
    assert_eq!((p.ack, p.win, p.urg), (Some(7), Some(65535), Some(3)));
    assert_eq!(p.ip, IpInfo { ecn: Some(EcnMark::Ect0), ..IpInfo::default() });
    let options =
        vec![TcpOption::Mss(9), TcpOption::Nop, TcpOption::Nop, TcpOption::Timestamps { val: 1, ecr: 2 }];
    assert_eq!(p.options, TcpOptions::Exactly(options));
    let p = tcp("+0 > . 1:1(0)");
    assert_eq!((p.ack, p.win, p.options), (None, None, TcpOptions::default()));
    assert_eq!(tcp("+0 > . 1:1(0) <...>").options, TcpOptions::Any);
    assert_eq!(tcp("+0 > (tos 0x02 flowlabel 0x9) . 1:1(0)").ip.flow_label, Some(9));
    assert_eq!(tcp("+0 > . 4294967290:4(10)").seq.len, 10);
}

#[test]
fn flags_in_any_order_and_the_ace_digit() {
    let flags = |text: &str| tcp(&format!("+0 > {text} 1:1(0)")).flags;
    assert_eq!(flags("SF."), flags(".FS"));
    assert_eq!(flags("-"), TcpFlags::default());
    for (text, ace) in [(".5", 5), ("P5.", 5), ("F.0", 0), ("S7", 7), ("3", 3)] {
        assert_eq!(flags(text).ace, Some(ace), "{text}");
    }
    assert!(flags("A.").bits.has(Flags::AE) && !flags(".").bits.has(Flags::AE));
    for bad in ["PP", ".8", ".55", "E5.", "W.1", "A2", "-."] {
        let error = second(&format!("+0 > {bad} 1:1(0)")).unwrap_err();
        assert!(matches!(error, Error::Value { .. }), "{bad}: {error}");
    }
}

#[test]
fn calls_and_expressions() {
    let c = call("+.5...0.75 read(4, ..., 0x10) = -1 EAGAIN (try again (later)) (note)");
    assert_eq!((c.until, c.errno.as_deref()), (Some(Span::from_ms(750)), Some("EAGAIN")));
    assert_eq!(c.args, [Expr::Int(4), Expr::Ellipsis, Expr::Hex(16)]);
    assert_eq!(c.result, Expr::Int(-1));
    let c = call("+0 f(A|B, x = [1, -2], \"s\" \"t\") = O_RDWR|O_NONBLOCK (flags)");
    let word = |w: &str| Expr::Word(w.into());
    assert_eq!(
        c.args,
        [
            Expr::Or(vec![word("A"), word("B")]),
            Expr::Assign(word("x").into(), Expr::List(vec![Expr::Int(1), Expr::Int(-2)]).into()),
            Expr::Text(vec!["s".into(), "t".into()]),
        ]
    );
    assert_eq!(c.result, Expr::Or(vec![word("O_RDWR"), word("O_NONBLOCK")]));
    assert_eq!(call("+0 f() = ...").args, []);
}

#[test]
fn structures_are_told_from_their_fields() {
    use ackclock_script::shape::{field, of, Shape};
    let shape = |text: &str| match &call(&format!("+0 f({text}) = 0")).args[0] {
        Expr::Braces(items) => of(items).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(shape("{..., 100}"), Shape::Iovec);
    assert_eq!(
        shape("{sa_family=AF_INET, sin_port=htons(1), sin_addr=inet_addr(\"192.0.2.9\")}"),
        Shape::Sockaddr
    );
    assert_eq!(shape("{msg_name(...)=..., msg_iov(1)=[{..., 1}], msg_flags=0}"), Shape::Msghdr);
    assert_eq!(shape("{fd=1, events=POLLIN, revents=0}"), Shape::Pollfd);
    assert_eq!(shape("{events=EPOLLIN, fd=1}"), Shape::EpollEvent);
    assert_eq!(shape("{onoff=1, linger=5}"), Shape::Linger);
    assert_eq!(shape("{cmsg_level=SOL_TCP, cmsg_type=TCP_CM_INQ, cmsg_data=7}"), Shape::ControlMessage);
    let c = call("+0 f({onoff=1, linger=5}) = 0");
    let Expr::Braces(items) = &c.args[0] else { panic!() };
    assert_eq!(field(items, "linger").and_then(Expr::number), Some(5));
}

#[test]
fn definitions_replace_words() {
    let text = "-D A=3\n-DN=100\n--define OPT=TCP_NODELAY\n--define=CMD=`true`\n--mtu=N\n\
                0 setsockopt(A, SOL_TCP, OPT, [N], 4) = 0\n+0 CMD\n+0 close(X) = 0";
    let outside = [("X".to_string(), "0x7".to_string()), ("A".to_string(), "9".to_string())];
    let script = parse(text, &outside, &Limits::default()).unwrap();
    assert_eq!(
        script.events[0].action.to_call().args[..3],
        [Expr::Int(3), Expr::Word("SOL_TCP".into()), Expr::Word("TCP_NODELAY".into())]
    );
    assert_eq!(script.events[1].action, Action::Command("true".into()));
    assert_eq!(script.events[2].action.to_call().args, [Expr::Hex(7)]);
    assert_eq!(script.options.len(), 1);
    assert_eq!(script.options[0].value.as_deref(), Some("100"));
    assert!(parse("0 close(3) = 0", &[("A".into(), "1 2".into())], &Limits::default()).is_err());
}

trait ToCall {
    fn to_call(&self) -> &Call;
}
impl ToCall for Action {
    fn to_call(&self) -> &Call {
        match self {
            Action::Call(call) => call,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn keywords_are_words_elsewhere() {
    let c = call("+0 ack(win, icmp, sack=nop) = udp");
    assert_eq!(c.name, "ack");
}

#[test]
fn unknown_constructs_are_unsupported() {
    for line in [
        "+0 < ipv4 192.0.2.1 > 192.0.2.2: . 1:1(0) win 1",
        "+0 < gre: . 1:1(0) win 1",
        "+0 < sctp (1)",
        "+0 < . 1:1(0) win 1 <mp_capable 1>",
        "+0 < [dscp 3] . 1:1(0) win 1",
        "+0 > . 1:1(0) ack 1 spi 4",
        "+0 < icmp unreachable port_unreachable [sctp(1)]",
        "+0 < icmp unreachable port_unreachable mtu 3 ttl 4",
        "+0 f({tcpi_state=1}) = 0",
        "+0 f({}) = 0",
        "+0 f(~1) = 0",
        "+0 f(1.5) = 0",
        "+0 sleep 5",
    ] {
        let error = second(line).unwrap_err();
        assert!(error.is_unsupported(), "{line}: {error}");
        assert_eq!(error.at().line, 2, "{line}");
    }
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        ("", "1:1: found the end of the file; expected: a time: every script has an event"),
        ("1 close(3) = 0", "1:1: time of the first event: found 1; allowed: 0"),
        ("-1 close(3) = 0", "1:1: time: found -1; allowed: 0 to 1000000 s, in whole nanoseconds"),
        ("0 close(3) 0", "1:12: found '0'; expected: '=' and the result of the call"),
        ("0 close(3) = 0 EBADF", "1:16: error of a call: found 0; allowed: -1 as the result before it"),
        (
            "0 close(3) = 0\n 2 close(3) = 0\n 1.5 close(3) = 0",
            "3:2: time: found 1.5; allowed: 2 s or later, as the event before",
        ),
        (
            "0 close(3) = 0\n+1~+2 close(3) = 0",
            "2:1: time: found a window; allowed: one instant, but before expected packets",
        ),
        ("0 close(3) = 0\n+2~+1 > . 1:1(0)", "2:5: end of the window: found 1; allowed: 2 s or later"),
        (
            "0 close(3) = 0\n+2~1 > . 1:1(0)",
            "2:4: found '1'; expected: '+': both ends of a window are relative, or none",
        ),
        ("0 < . 1:1(0) ack 1", "1:1: injected packet: found no win; allowed: win and the raw window"),
        ("0 < . 1:1(0) win 1 <...>", "1:1: injected packet: found <...>; allowed: a list of options"),
        ("0 < [ect01] . 1:1(0) win 1", "1:1: injected packet: found ect01; allowed: ect0 or ect1"),
        ("0 > . 1:5(3)", "1:7: sequence numbers: found 1:5(3); allowed: 1:4(3)"),
        ("0 > . 1:70001(70000)", "1:15: payload length: found 70000; allowed: whole numbers from 0 to 65535"),
        (
            "0 > . 4294967296:1(0)",
            "1:7: first sequence number: found 4294967296; allowed: whole numbers from 0 to 4294967295",
        ),
        (
            "0 > . 1:1(0) win 65536",
            "1:18: win (the raw field of the header): found 65536; allowed: whole numbers from 0 to 65535",
        ),
        (
            "0 > . 1:1(0) win 5 ack 5",
            "1:20: found 'ack'; expected: ack, win and urg once each and in this order",
        ),
        (
            "0 > . 1:1(0) <nop>",
            "1:15: length of the options: found 1; allowed: multiples of 4, filled up with nop",
        ),
        ("0 > . 1:1(0) <md5 00,nop>", "1:19: md5: found 1 bytes; allowed: 16 bytes"),
        (
            "0 > . 1:1(0) <ECN e0b 16777216,nop,nop,nop>",
            "1:23: e0b: found 16777216; allowed: whole numbers from 0 to 16777215",
        ),
        ("0 > . 1:1(0) <ECN ceb 1 e0b 2>", "1:19: found 'ceb'; expected: 'e0b' and a number"),
        ("0 f(99999999999999999999) = 0", "1:5: number: found 99999999999999999999; allowed: 64 bits"),
        ("0 \u{1b}[31m", "1:3: found '\\u{1b}'; expected: '<', '>', a call, a command or a code block"),
        (
            "0 close(3) = 0\n`a`\n0 close(3) = 0",
            "3:1: found '0'; expected: the end of the file: a command without a time is the last thing",
        ),
        ("0 `never closed", "1:3: found '`'; expected: its end"),
    ];
    for (text, message) in cases {
        assert_eq!(read(text).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn limits_hold() {
    let small = Limits { bytes: 100, events: 3, depth: 4 };
    let long = format!("0 close(3) = 0 //{}", "x".repeat(100));
    assert!(matches!(parse(&long, &[], &small), Err(Error::Limit { what: "bytes of the file", .. })));
    let many = "+0 `a`\n".repeat(4);
    assert!(matches!(parse(&many, &[], &small), Err(Error::Limit { what: "events", limit: 3, .. })));
    assert!(parse("+0 `a`\n+0 `a`\n+0 `a`\n`cleanup`", &[], &small).is_ok());
    for open in ["[", "{", "f("] {
        let deep = format!("0 f({}", open.repeat(200_000));
        let error = parse(&deep, &[], &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::Limit { what: "depth of nesting", .. }), "{error}");
    }
}

#[test]
fn a_million_events_and_long_tokens_end_quickly() {
    let wide = Limits { bytes: 64 << 20, ..Limits::default() };
    let events = "+0%{}%".repeat(1_000_000);
    assert_eq!(parse(&events, &[], &wide).unwrap().events.len(), 1_000_000);
    let one_more = format!("{events}+0%{{}}%");
    assert!(matches!(parse(&one_more, &[], &wide), Err(Error::Limit { what: "events", .. })));
    for piece in ["1", "a", "-", ".", "(", "/* */", "\"\"", "+", "~", "<", "`"] {
        let _ = parse(&format!("0 f({}", piece.repeat(1 << 20)), &[], &wide);
        let _ = parse(&format!("0 > {}", piece.repeat(1 << 20)), &[], &wide);
        let _ = parse(&piece.repeat(1 << 20), &[], &wide);
    }
}

#[test]
fn files_are_read_no_further_than_the_limit() {
    use ackclock_script::read;
    use std::path::Path;
    let limits = Limits { bytes: 10, ..Limits::default() };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(matches!(read(&own, &limits), Err(Error::Limit { .. })));
    assert!(read(&own, &Limits::default()).is_ok());
    for not_a_file in ["/dev/zero", "/", "/nowhere"] {
        let error = read(Path::new(not_a_file), &limits).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
    }
}
