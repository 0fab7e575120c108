//! The kernel's own tracepoints: cwnd on every ACK (tcp_probe), changes of the congestion state (tcp_cong_state_set),
//! and the bytes read by the application in one RTT, whenever they reach a new maximum (tcp_rcvbuf_grow; the
//! simulator's `ReceiveWindow::widen`).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, Read, Result};
use std::os::unix::fs::OpenOptionsExt;

use ackclock_sim::scenario::spec::TraceLevel;

use crate::flows::{MOST_FLOWS, SENDER_PORT};

/// Tracepoint record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// tcp_probe: an ACK is about to be processed.
    Probe { snd_una: u32, snd_nxt: u32, cwnd: u32, ssthresh: u32, rwnd: u32, srtt_us: u32 },
    /// The congestion state changed.
    State(u8),
}

/// Row of table `receive_buffers`; the table's columns describe the fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Time of the event, CLOCK_MONOTONIC, us.
    pub us: u64,
    pub flow: u32,
    pub took_us: u32,
    pub rtt_us: u32,
    pub copied: u32,
    pub queued: u32,
    pub space: u32,
    pub beyond: u32,
    pub memory: u32,
    pub share: u32,
    pub offered: u32,
    pub bound: u32,
    pub told: u32,
}

/// Trace line: time, connection and event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Time of the line, CLOCK_MONOTONIC, us, which is the resolution of the trace's text.
    pub us: u64,
    pub flow: u32,
    pub peer: u16,
    pub event: Event,
}

/// An open trace instance.
pub struct Trace {
    pipe: File,
    rest: Vec<u8>,
    /// Events so far, in order.
    pub lines: Vec<Line>,
    pub growths: Vec<Growth>,
}

const ROOT: &str = "/sys/kernel/tracing";

/// Tracepoints in use, and the fields of each required by `parse` and `parse_growth`.
const USED: [(&str, &[&str]); 3] = [
    ("tcp_cong_state_set", &["sport", "dport", "cong_state"]),
    ("tcp_probe", &["src", "dest", "snd_una", "snd_nxt", "snd_cwnd", "ssthresh", "snd_wnd", "srtt"]),
    (
        GROWTH,
        &[
            "dport",
            "time",
            "rtt_us",
            "copied",
            "inq",
            "space",
            "ooo",
            "rcvbuf",
            "scaling_ratio",
            "rcv_ssthresh",
            "window_clamp",
            "rcv_wnd",
        ],
    ),
];
/// Tracepoint present since Linux 6.15; without it no growth is reported.
const GROWTH: &str = "tcp_rcvbuf_grow";

/// Fields printed by each of these tracepoints, according to the kernel's own description. A tracepoint that the
/// kernel lacks is absent.
pub fn events() -> BTreeMap<String, Vec<String>> {
    let of = |name: &str| {
        let text = fs::read_to_string(format!("{ROOT}/events/tcp/{name}/format")).ok()?;
        Some((name.to_string(), printed(&text)))
    };
    USED.iter().filter_map(|(name, _)| of(name)).collect()
}

/// Field names in the description of a tracepoint: the words before "=".
fn printed(description: &str) -> Vec<String> {
    let form = description.lines().find_map(|line| line.strip_prefix("print fmt: \"")).unwrap_or_default();
    let form = form.split('"').next().unwrap_or_default();
    form.split_whitespace().filter_map(|pair| Some(pair.split_once('=')?.0.to_string())).collect()
}

/// Fail, with the name, if a tracepoint of this kernel lacks a required field.
fn check(level: TraceLevel) -> Result<bool> {
    let found = events();
    for (name, wanted) in &USED[..if level == TraceLevel::None { 1 } else { 3 }] {
        let Some(has) = found.get(*name) else {
            if *name == GROWTH {
                continue;
            }
            return Err(Error::other(format!("this kernel has no tracepoint {name}")));
        };
        if let Some(lacking) = wanted.iter().find(|field| !has.iter().any(|one| one == *field)) {
            return Err(Error::other(format!("this kernel's tracepoint {name} does not print {lacking}")));
        }
    }
    Ok(found.contains_key(GROWTH))
}

impl Trace {
    /// Turn the tracepoints on, tcp_probe only if the trace level requires it.
    pub fn new(level: TraceLevel) -> Result<Trace> {
        let set = |file: &str, value: &str| {
            fs::write(format!("{ROOT}/{file}"), value)
                .map_err(|e| Error::new(e.kind(), format!("{file} = {value}: {e}")))
        };
        let grows = check(level)?;
        set("trace_clock", "mono")?; // the default clock advances only with the tick
        let last = SENDER_PORT as usize + MOST_FLOWS;
        let all = format!("sport >= {SENDER_PORT} && sport < {last}");
        set("events/tcp/tcp_cong_state_set/filter", &all)?;
        set("events/tcp/tcp_cong_state_set/enable", "1")?;
        if level != TraceLevel::None {
            set("buffer_size_kb", "32768")?;
            let one = format!("sport == {SENDER_PORT}");
            set("events/tcp/tcp_probe/filter", if level == TraceLevel::Flow { &one } else { &all })?;
            set("events/tcp/tcp_probe/enable", "1")?;
            if grows {
                let theirs = |ours: &str| ours.replace("sport", "dport"); // the receiver's socket has the ports swapped
                set(
                    &format!("events/tcp/{GROWTH}/filter"),
                    &theirs(if level == TraceLevel::Flow { &one } else { &all }),
                )?;
                set(&format!("events/tcp/{GROWTH}/enable"), "1")?;
            }
        }
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(format!("{ROOT}/trace_pipe"))?;
        Ok(Trace { pipe, rest: Vec::new(), lines: Vec::new(), growths: Vec::new() })
    }

    /// Read the new lines of the trace buffer.
    pub fn drain(&mut self) -> Result<()> {
        let mut buffer = vec![0; 65536];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => self.rest.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
            let Some(end) = self.rest.iter().rposition(|&b| b == b'\n') else { continue };
            for line in self.rest[..end].split(|&b| b == b'\n') {
                let text = String::from_utf8_lossy(line);
                if text.contains("LOST") {
                    return Err(Error::other(format!("the trace is not complete: {text}")));
                }
                self.lines.extend(parse(&text));
                self.growths.extend(parse_growth(&text));
            }
            self.rest.drain(..=end);
        }
    }
}

/// Split a line printed by the kernel: time, TCP tracepoint, content.
fn split(text: &str) -> Option<(u64, &str, &str)> {
    let (head, tail) = text.split_once(": tcp_")?;
    let (seconds, micros) = head.rsplit_once(' ')?.1.split_once('.')?;
    let us = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let (name, fields) = tail.split_once(": ")?;
    Some((us, name, fields))
}

fn field<'a>(fields: &'a str, name: &str) -> &'a str {
    fields.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
}

fn number(fields: &str, name: &str) -> Option<u32> {
    let text = field(fields, name);
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn port(fields: &str, name: &str) -> Option<u16> {
    field(fields, name).rsplit(':').next()?.parse().ok()
}

fn parse(text: &str) -> Option<Line> {
    let (us, name, fields) = split(text)?;
    let number = |name: &str| number(fields, name);
    let port = |name: &str| port(fields, name);
    let (ours, peer, event) = match name {
        "probe" => {
            let event = Event::Probe {
                snd_una: number("snd_una")?,
                snd_nxt: number("snd_nxt")?,
                cwnd: number("snd_cwnd")?,
                ssthresh: number("ssthresh")?,
                rwnd: number("snd_wnd")?,
                srtt_us: number("srtt")?,
            };
            (port("src")?, port("dest")?, event)
        }
        "cong_state_set" => (port("sport")?, port("dport")?, Event::State(number("cong_state")? as u8)),
        _ => return None,
    };
    Some(Line { us, flow: ours.checked_sub(SENDER_PORT)? as u32, peer, event })
}

fn parse_growth(text: &str) -> Option<Growth> {
    let (us, "rcvbuf_grow", fields) = split(text)? else { return None };
    let number = |name: &str| number(fields, name);
    Some(Growth {
        us,
        flow: port(fields, "dport")?.checked_sub(SENDER_PORT)? as u32,
        took_us: number("time")?,
        rtt_us: number("rtt_us")?,
        copied: number("copied")?,
        queued: number("inq")?,
        space: number("space")?,
        beyond: number("ooo")?,
        memory: number("rcvbuf")?,
        share: number("scaling_ratio")?,
        offered: number("rcv_ssthresh")?,
        bound: number("window_clamp")?,
        told: number("rcv_wnd")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_says_what_is_printed() {
        let text = "name: tcp_probe\nformat:\n\tfield:u32 snd_nxt;\toffset:8;\n\n\
                    print fmt: \"family=%s src=%pISpc snd_nxt=%#x\", REC->a == 2, REC->b\n";
        assert_eq!(printed(text), ["family", "src", "snd_nxt"]);
        assert!(printed("").is_empty());
    }

    #[test]
    fn reads_what_the_kernel_prints() {
        let text = "          <idle>-0       [000] ..s2.     2.040512: tcp_probe: family=AF_INET src=10.0.0.1:10003 \
                    dest=10.1.0.1:20003 mark=0x0 data_len=0 snd_nxt=0x1a snd_una=0x10 snd_cwnd=12 \
                    ssthresh=2147483647 snd_wnd=65160 srtt=40123 rcv_wnd=64256 sock_cookie=1 skbaddr=0 skaddr=0";
        let event = Event::Probe {
            snd_una: 16,
            snd_nxt: 26,
            cwnd: 12,
            ssthresh: 2_147_483_647,
            rwnd: 65_160,
            srtt_us: 40_123,
        };
        assert_eq!(parse(text), Some(Line { us: 2_040_512, flow: 3, peer: 20_003, event }));
        let text = "  x-1 [000] b.s3.  12.000001: tcp_cong_state_set: family=AF_INET sport=10000 dport=45000 \
                    saddr=10.0.0.1 daddr=10.1.0.1 saddrv6=::ffff:10.0.0.1 daddrv6=::ffff:10.1.0.1 cong_state=3";
        let event = Event::State(3);
        assert_eq!(parse(text), Some(Line { us: 12_000_001, flow: 0, peer: 45_000, event }));
        assert_eq!(parse("CPU:0 [LOST 5 EVENTS]"), None);
        let text = "  x-1 [000] b.s3.  12.000001: tcp_rcvbuf_grow: time=40100 rtt_us=40000 copied=43440 inq=1448 space=14480 ooo=0 \
                    scaling_ratio=162 rcvbuf=131072 rcv_ssthresh=65000 window_clamp=82944 rcv_wnd=64256 family=AF_INET \
                    sport=20000 dport=10002 saddr=10.1.0.1";
        let growth = parse_growth(text).expect("a line of this tracepoint");
        assert_eq!((growth.us, growth.flow, growth.took_us, growth.copied), (12_000_001, 2, 40_100, 43_440));
        assert_eq!((growth.memory, growth.share, growth.told), (131_072, 162, 64_256));
        assert_eq!(parse(text), None);
    }
}
