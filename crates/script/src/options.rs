//! Player settings, from `--name=value` lines.

use ackclock_core::Span;

use crate::ast::ScriptOption;
use crate::error::Error;

/// Options that have no effect on a stack without addresses, interpreter and device.
const IGNORED: &[&str] = &[
    "bind_port",
    "code_command",
    "code_format",
    "code_sockopt",
    "connect_port",
    "gateway_ip",
    "gateway_linklocal_ip",
    "is_anyip",
    "local_ip",
    "local_linklocal_ip",
    "netmask_ip",
    "non_fatal",
    "persistent_tun_dev",
    "remote_ip",
    "send_omit_free",
    "speed",
    "tun_dev",
    "verbose",
];

/// Options of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// `tolerance_usecs`: maximum deviation of a time.
    pub tolerance: Span,
    /// `tolerance_percent`, in thousandths: maximum deviation as a fraction of the time since the previous event. The
    /// larger of the two tolerances applies.
    pub tolerance_permille: u32,
    /// `tcp_ts_tick_usecs`: length of a timestamp tick; `None` = timestamps are not compared.
    pub ts_tick: Option<Span>,
    /// `tcp_ts_ecr_scaled`: whether an injected `ecr` without a known timestamp is converted by its distance from the
    /// first one.
    pub ts_ecr_scaled: bool,
    /// `strict_segments`: whether consecutive segments are never joined to match an expectation.
    pub strict_segments: bool,
    /// `mtu` of the device, bytes.
    pub mtu: Option<u32>,
    /// `ip_version=ipv6`: the IP header is 40 bytes long; the suites' runners then set the device's MTU to 1520.
    pub ipv6: bool,
    /// `mss`: injected packets above this size arrive as one aggregate of segments of this size.
    pub gro_mss: Option<u16>,
    /// `init_scripts`: paths, recognised by name and never read.
    pub init_scripts: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            tolerance: Span::from_us(4_000),
            tolerance_permille: 125,
            ts_tick: None,
            ts_ecr_scaled: false,
            strict_segments: false,
            mtu: None,
            ipv6: false,
            gro_mss: None,
            init_scripts: Vec::new(),
        }
    }
}

impl Options {
    /// Read the lines of a script; if a name occurs several times, the last line wins.
    pub fn of(lines: &[ScriptOption]) -> Result<Options, Error> {
        let mut options = Options::default();
        for line in lines {
            options.set(line)?;
        }
        Ok(options)
    }

    fn set(&mut self, line: &ScriptOption) -> Result<(), Error> {
        let us = |n: u64| Span::from_us(n);
        match line.name.as_str() {
            "tolerance_usecs" => self.tolerance = us(number(line, 1_000_000_000)?),
            "tolerance_percent" => self.tolerance_permille = permille(line)?,
            "tcp_ts_tick_usecs" => {
                self.ts_tick = Some(number(line, 1_000_000)?).filter(|n| *n > 0).map(us);
            }
            "tcp_ts_ecr_scaled" => self.ts_ecr_scaled = flag(line)?,
            "strict_segments" => self.strict_segments = flag(line)?,
            "mtu" => self.mtu = Some(number(line, 65_535)? as u32).filter(|n| *n > 0),
            "mss" => self.gro_mss = Some(number(line, 65_535)? as u16).filter(|n| *n > 0),
            "init_scripts" => {
                let paths = line.value.as_deref().unwrap_or_default();
                self.init_scripts = paths.split(',').filter(|p| !p.is_empty()).map(str::to_string).collect();
            }
            "ip_version" => match line.value.as_deref().unwrap_or_default() {
                "ipv4" | "ipv4-mapped-ipv6" => self.ipv6 = false,
                "ipv6" => self.ipv6 = true,
                version => {
                    return Err(Error::value(
                        line.at,
                        "--ip_version",
                        version,
                        "ipv4, ipv4-mapped-ipv6, ipv6",
                    ))
                }
            },
            name if IGNORED.contains(&name) => {}
            name => return Err(Error::unsupported(line.at, format_args!("option --{name}"))),
        }
        Ok(())
    }
}

fn number(line: &ScriptOption, most: u64) -> Result<u64, Error> {
    let text = line.value.as_deref().unwrap_or_default();
    text.parse::<u64>().ok().filter(|n| *n <= most).ok_or_else(|| {
        Error::value(
            line.at,
            &format!("--{}", line.name),
            text,
            format_args!("whole numbers from 0 to {most}"),
        )
    })
}

/// Parse a percentage in thousandths: `12.5` -> 125.
fn permille(line: &ScriptOption) -> Result<u32, Error> {
    let text = line.value.as_deref().unwrap_or_default();
    let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
    match (whole.parse::<u32>(), tenths.parse::<u32>()) {
        (Ok(whole), Ok(tenths)) if whole <= 100 && tenths <= 9 => Ok(10 * whole + tenths),
        _ => Err(Error::value(line.at, "--tolerance_percent", text, "0 to 100, with one decimal at most")),
    }
}

fn flag(line: &ScriptOption) -> Result<bool, Error> {
    match line.value.as_deref() {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(text) => Err(Error::value(line.at, &format!("--{}", line.name), text, "nothing, 0 or 1")),
    }
}
