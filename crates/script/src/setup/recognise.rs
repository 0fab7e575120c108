//! Recognises a command and its settings.

use super::shell::Simple;
use super::sysctl::Refused;
use super::{Qdisc, Route, Setup};

type Outcome = Result<(), Refused>;

/// Apply the settings of one simple command.
pub fn command(setup: &mut Setup, simple: &Simple) -> Outcome {
    let words: Vec<&str> = simple.words.iter().map(String::as_str).collect();
    let (&name, args) = words.split_first().expect("invariant: a simple command has a word");
    let base = name.rsplit('/').next().unwrap_or(name);
    if let Some(file) = simple.output.as_deref().filter(|f| *f != "/dev/null") {
        return match base {
            "echo" | "printf" => write(setup, file, &args.join(" ")),
            _ => Err(Refused::Unknown(format!("'{base}' into the file '{file}'"))),
        };
    }
    match base {
        "sysctl" => assignments(setup, args),
        _ if base.starts_with("set_sysctls") => assignments(setup, args),
        // Every script starts with fresh settings, so there is nothing to restore.
        _ if base.contains("sysctl_restore") => Ok(()),
        "defaults.sh" => defaults(setup),
        "source" | "." | "sh" | "bash" => match args {
            [file] if file.rsplit('/').next() == Some("defaults.sh") => defaults(setup),
            [file] if file.contains("sysctl_restore") => Ok(()),
            _ => Err(Refused::Unknown(format!("'{}'", words.join(" ")))),
        },
        "tc" => qdisc(setup, args),
        "ip" => ip(setup, &simple.words[1..]),
        "ifconfig" => match args {
            [_, "mtu", bytes] => mtu(setup, bytes),
            [_, "txqueuelen", _] | [_, "up"] => Ok(()),
            _ => Err(Refused::Unknown(format!("'{}'", words.join(" ")))),
        },
        "ethtool" => offloads(setup, args),
        "rm" => match args {
            ["-f", path] if scratch(path) => {
                setup.files.remove(*path);
                Ok(())
            }
            _ => Err(Refused::Unknown(format!("'{}'", words.join(" ")))),
        },
        "dd" => zeros(setup, args),
        "truncate" | "fallocate" => match args {
            ["-s" | "-l", bytes, path] if scratch(path) => match bytes.parse() {
                Ok(bytes) => {
                    setup.files.insert(path.to_string(), bytes);
                    Ok(())
                }
                Err(_) => Err(Refused::Unknown(format!("'{}'", words.join(" ")))),
            },
            _ => Err(Refused::Unknown(format!("'{}'", words.join(" ")))),
        },
        // Commands that only print information.
        "cat" if args.iter().all(|a| a.starts_with("/proc/") || a.starts_with("/sys/")) => Ok(()),
        "ss" | "netstat" | "date" | "uname" | "hostname" | "dmesg" => Ok(()),
        // `nstat` prints counters; reading a single one needs a pipe, which is rejected.
        "nstat" if args.iter().all(|a| a.starts_with('-')) => Ok(()),
        "sleep" => Err(Refused::Unknown("set-up command 'sleep'".into())),
        "echo" | "printf" | ":" | "true" | "sync" | "cd" => Ok(()),
        "set" if args.iter().all(|a| a.starts_with('-')) => Ok(()),
        "modprobe"
            if args.iter().all(|a| a.starts_with('-') || a.starts_with("tcp_") || a.starts_with("sch_")) =>
        {
            Ok(())
        }
        _ => Err(Refused::Unknown(format!("set-up command '{base}'"))),
    }
}

/// Whether a path may be used for a script's files.
fn scratch(path: &str) -> bool {
    path.starts_with("/tmp/") && !path.contains("..")
}

/// `dd if=/dev/zero of=FILE bs=N count=N`
fn zeros(setup: &mut Setup, args: &[&str]) -> Outcome {
    let of = |name: &str| args.iter().find_map(|a| a.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str, default: u64| of(name).map_or(Some(default), |n| n.parse().ok());
    let bytes = number("bs", 512).zip(number("count", 1)).and_then(|(a, b)| a.checked_mul(b));
    match (of("if"), of("of").filter(|p| scratch(p)), bytes) {
        (Some("/dev/zero"), Some(path), Some(bytes)) => {
            setup.files.insert(path.to_string(), bytes);
            Ok(())
        }
        _ => Err(Refused::Unknown(format!("'dd {}'", args.join(" ")))),
    }
}

fn defaults(setup: &mut Setup) -> Outcome {
    *setup = Setup { mtu: setup.mtu, ip_header: setup.ip_header, ..Setup::suite() };
    Ok(())
}

/// Apply `name=value ...`. Flags are ignored, and a name without a value only reads.
fn assignments(setup: &mut Setup, args: &[&str]) -> Outcome {
    for arg in args.iter().filter(|a| !a.starts_with('-')) {
        if let Some((name, value)) = arg.split_once('=') {
            setup.sysctls.set(name.trim(), value.trim())?;
        }
    }
    Ok(())
}

fn write(setup: &mut Setup, file: &str, value: &str) -> Outcome {
    if file.starts_with("/proc/sys/") {
        return setup.sysctls.set(file, value.trim());
    }
    let Some(parameter) = file.strip_prefix("/sys/module/tcp_cubic/parameters/") else {
        return Err(Refused::Unknown(format!("writing to '{file}'")));
    };
    let number: u32 = value.trim().parse().map_err(|_| Refused::value(parameter, value, "whole numbers"))?;
    let cubic = &mut setup.cubic;
    match parameter {
        "hystart" => cubic.hystart = number != 0,
        "hystart_detect" => cubic.hystart_detect = number,
        "hystart_low_window" => cubic.hystart_low_window = number,
        "hystart_ack_delta_us" => cubic.hystart_ack_delta_us = number,
        "initial_ssthresh" => cubic.initial_ssthresh = number,
        "fast_convergence" => cubic.fast_convergence = number != 0,
        "tcp_friendliness" => cubic.tcp_friendliness = number != 0,
        _ => return Err(Refused::Unknown(format!("parameter '{parameter}' of tcp_cubic"))),
    }
    Ok(())
}

/// `tc qdisc VERB dev DEVICE root KIND ...`
fn qdisc(setup: &mut Setup, args: &[&str]) -> Outcome {
    let unknown = || Err(Refused::Unknown(format!("'tc {}'", args.join(" "))));
    let Some(rest) = args.strip_prefix(&["qdisc"]) else { return unknown() };
    let Some((verb, rest)) = rest.split_first() else { return unknown() };
    if ["show", "ls", "list"].contains(verb) {
        return Ok(());
    }
    let mut rest = rest.iter().copied().peekable();
    let mut kind = None;
    while let Some(word) = rest.next() {
        match word {
            "dev" | "handle" => {
                rest.next();
            }
            "root" => {}
            word => {
                kind = Some(word);
                break;
            }
        }
    }
    let options: Vec<&str> = rest.collect();
    setup.qdisc = match (*verb, kind, &options[..]) {
        ("del" | "delete", _, _) => Qdisc::Fifo,
        ("add" | "replace" | "change", Some("fq"), []) => Qdisc::Fq,
        ("add" | "replace" | "change", Some("pfifo"), ["limit", "0"]) => Qdisc::DropAll,
        // Limits never reached by scripts with a few packets.
        ("add" | "replace" | "change", Some("pfifo"), []) => Qdisc::Fifo,
        ("add" | "replace" | "change", Some("pfifo"), ["limit", n])
            if n.parse::<u64>().is_ok_and(|n| n >= 1000) =>
        {
            Qdisc::Fifo
        }
        ("add" | "replace" | "change", Some("pfifo_fast" | "noqueue"), []) => Qdisc::Fifo,
        _ => return unknown(),
    };
    Ok(())
}

fn ip(setup: &mut Setup, args: &[String]) -> Outcome {
    let start = args.iter().position(|a| !a.starts_with('-')).unwrap_or(args.len());
    let args = &args[start..];
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [_, "show" | "list" | "ls" | "get", ..]
        | ["tcp_metrics" | "tcpmetrics", "flush" | "del" | "delete", ..] => Ok(()),
        // Addresses and neighbours are irrelevant to a stack with one peer.
        ["address" | "addr" | "a" | "neighbour" | "neighbor" | "neigh" | "n", ..] => Ok(()),
        ["link" | "l", "set", .., "txqueuelen", _] => Ok(()),
        ["link" | "l", "set", .., "gso_max_segs", segments] => match segments {
            "1" => {
                setup.single = true;
                Ok(())
            }
            found => Err(Refused::value("gso_max_segs", found, "1")),
        },
        ["route" | "ro" | "r", "add" | "change" | "replace" | "append", ..] => {
            setup.route = Route::of(&args[2..])?;
            Ok(())
        }
        ["route" | "ro" | "r", "del" | "delete" | "flush", ..] => {
            setup.route = Route::default();
            Ok(())
        }
        ["link" | "l", "set", ..] => match words.iter().position(|w| *w == "mtu") {
            Some(at) => mtu(setup, words.get(at + 1).unwrap_or(&"")),
            None if words.last() == Some(&"up") => Ok(()),
            None => Err(Refused::Unknown(format!("'ip {}'", words.join(" ")))),
        },
        _ => Err(Refused::Unknown(format!("'ip {}'", words.join(" ")))),
    }
}

fn mtu(setup: &mut Setup, bytes: &str) -> Outcome {
    let allowed = "68 to 65535 bytes";
    setup.mtu = bytes
        .parse()
        .ok()
        .filter(|n| (68..=65_535).contains(n)) // RFC 791: every host must forward 68 bytes
        .ok_or_else(|| Refused::value("mtu", bytes, allowed))?;
    Ok(())
}

/// `ethtool -K DEVICE feature on|off ...`
fn offloads(setup: &mut Setup, args: &[&str]) -> Outcome {
    let features = match args {
        ["-K" | "--offload" | "--features", _, features @ ..] => features,
        ["-k" | "-i" | "-S" | "--show-features" | "--show-offload", ..] => return Ok(()),
        _ => return Err(Refused::Unknown(format!("'ethtool {}'", args.join(" ")))),
    };
    for pair in features.chunks(2) {
        let [feature, state] = pair else {
            return Err(Refused::value(pair[0], "nothing", "on or off"));
        };
        let on = match *state {
            "on" => true,
            "off" => false,
            other => return Err(Refused::value(feature, other, "on or off")),
        };
        match *feature {
            "tso" | "tcp-segmentation-offload" | "tx-tcp-segmentation" => setup.tso = on,
            "gso" | "generic-segmentation-offload" | "tx-generic-segmentation" => setup.gso = on,
            "gro" | "generic-receive-offload" => setup.gro = on,
            // Checksum and other receive offloads have no observable effect in a script.
            "rx" | "tx" | "sg" | "lro" | "tx-checksumming" | "rx-checksumming" | "scatter-gather" => {}
            other => return Err(Refused::Unknown(format!("offload '{other}'"))),
        }
    }
    Ok(())
}
