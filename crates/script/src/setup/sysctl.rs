//! Kernel parameters, one line each: name, range, value after boot (Linux 6.x,
//! `Documentation/networking/ip-sysctl.rst`), and the value set by the public suites' defaults script if it differs.

/// Reason why a parameter or a command was rejected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// Unknown to ackclock.
    #[error("unsupported: {0}")]
    Unknown(String),
    /// Known, but with a disallowed value.
    #[error("{what}: found {found}; allowed: {allowed}")]
    Value {
        /// Name of the parameter.
        what: String,
        /// Value found in the script.
        found: String,
        /// Values allowed.
        allowed: String,
    },
}

impl Refused {
    pub(super) fn value(what: &str, found: &str, allowed: impl ToString) -> Refused {
        Refused::Value { what: what.to_string(), found: found.to_string(), allowed: allowed.to_string() }
    }
}

macro_rules! sysctls {
    (
        numbers { $($number:ident: $most:expr, $boot:expr $(, suite $suite:expr)?;)* }
        triples { $($triple:ident: $boot3:expr, suite $suite3:expr;)* }
        pairs { $($pair:ident: $boot2:expr;)* }
        words { $($word:ident: $boot_word:expr;)* }
    ) => {
        /// Kernel parameters under their names without `net.ipv4.` (`net.core.` for the `*_max` and `*_default`).
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[allow(missing_docs, reason = "the kernel's parameters, by its names (Documentation/networking/ip-sysctl.rst)")]
        pub struct Sysctls {
            $(pub $number: u64,)*
            /// Minimum, default and maximum, bytes.
            $(pub $triple: [u64; 3],)*
            $(pub $pair: [u64; 2],)*
            $(pub $word: String,)*
        }

        impl Sysctls {
            /// Values after boot.
            pub fn kernel() -> Sysctls {
                Sysctls {
                    $($number: $boot,)*
                    $($triple: $boot3,)*
                    $($pair: $boot2,)*
                    $($word: $boot_word.to_string(),)*
                }
            }

            /// Values set by the public suites' defaults script.
            pub fn suite() -> Sysctls {
                Sysctls {
                    $($($number: $suite,)?)*
                    $($triple: $suite3,)*
                    ..Sysctls::kernel()
                }
            }

            /// Return every kernel parameter and its value, as `sysctl` writes it.
            pub fn list(&self) -> Vec<(&'static str, String)> {
                let joined = |values: &[u64]| {
                    values.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
                };
                let all = [
                    $((stringify!($number), self.$number.to_string()),)*
                    $((stringify!($triple), joined(&self.$triple)),)*
                    $((stringify!($pair), joined(&self.$pair)),)*
                    $((stringify!($word), self.$word.clone()),)*
                ];
                all.into_iter().filter(|(name, _)| !OWN.contains(name)).collect()
            }

            fn set_known(&mut self, name: &str, value: &str) -> Result<bool, Refused> {
                match name {
                    $(stringify!($number) => self.$number = numbers::<1>(name, value, $most)?[0],)*
                    $(stringify!($triple) => self.$triple = numbers(name, value, u32::MAX as u64)?,)*
                    $(stringify!($pair) => self.$pair = numbers(name, value, u32::MAX as u64)?,)*
                    $(stringify!($word) => self.$word = word(name, value)?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

const BOOL: u64 = 1;
const BYTE: u64 = 255;
const INT: u64 = i32::MAX as u64;
const UINT: u64 = u32::MAX as u64;

sysctls! {
    numbers {
        tcp_abort_on_overflow: BOOL, 0;
        tcp_app_win: 31, 31;
        tcp_autocorking: BOOL, 1;
        tcp_base_mss: INT, 1024;
        tcp_challenge_ack_limit: INT, INT;
        tcp_comp_sack_delay_ns: INT, 1_000_000;
        tcp_comp_sack_nr: BYTE, 44;
        tcp_comp_sack_slack_ns: INT, 100_000;
        tcp_dsack: BOOL, 1;
        tcp_early_retrans: 4, 3, suite 4;
        tcp_ecn: 5, 2, suite 0;
        tcp_ecn_fallback: BOOL, 1;
        tcp_ecn_option: 3, 2;
        tcp_ecn_option_beacon: 3, 3;
        tcp_fack: BYTE, 0;
        tcp_fastopen: INT, 1;
        tcp_fin_timeout: INT, 60;
        tcp_frto: 2, 2;
        tcp_invalid_ratelimit: INT, 500;
        tcp_keepalive_intvl: INT, 75;
        tcp_keepalive_probes: BYTE, 9;
        tcp_keepalive_time: INT, 7_200;
        tcp_limit_output_bytes: INT, 4 << 20;
        tcp_max_reordering: INT, 300;
        tcp_min_rtt_wlen: 86_400, 300;
        tcp_min_snd_mss: 65_535, 48;
        tcp_min_tso_segs: BYTE, 2;
        tcp_moderate_rcvbuf: BYTE, 1;
        tcp_mtu_probe_floor: INT, 48;
        tcp_mtu_probing: 2, 0;
        tcp_no_metrics_save: BOOL, 0;
        tcp_no_ssthresh_metrics_save: BOOL, 1;
        tcp_notsent_lowat: UINT, UINT;
        tcp_orphan_retries: BYTE, 0;
        tcp_pacing_ca_ratio: 1_000, 120;
        tcp_pacing_ss_ratio: 1_000, 200;
        tcp_pingpong_thresh: BYTE, 1;
        tcp_probe_interval: UINT, 600;
        tcp_probe_threshold: INT, 8;
        tcp_recovery: BYTE, 1;
        tcp_reflect_tos: BOOL, 0;
        tcp_reordering: 127, 3;
        tcp_retrans_collapse: BOOL, 1;
        tcp_retries1: BYTE, 3;
        tcp_retries2: BYTE, 15;
        tcp_rfc1337: BOOL, 0;
        tcp_rto_max_ms: 120_000, 120_000;
        tcp_rto_min_us: INT, 200_000;
        tcp_sack: BOOL, 1;
        tcp_shrink_window: BOOL, 0;
        tcp_slow_start_after_idle: BOOL, 1, suite 0;
        tcp_syn_linear_timeouts: 127, 4;
        tcp_syn_retries: 127, 6, suite 5;
        tcp_synack_retries: BYTE, 5;
        tcp_syncookies: 2, 1;
        tcp_thin_linear_timeouts: BOOL, 0;
        tcp_timestamps: 2, 1;
        tcp_tso_rtt_log: BYTE, 9;
        tcp_tso_win_divisor: BYTE, 3;
        tcp_window_scaling: BOOL, 1;
        tcp_workaround_signed_windows: BOOL, 0;
        rmem_default: INT, 212_992;
        rmem_max: INT, 4 << 20;
        wmem_default: INT, 212_992;
        wmem_max: INT, 4 << 20;
    }
    triples {
        tcp_rmem: [4_096, 131_072, 6 << 20], suite [4_096, 540_000, 15 << 20];
        tcp_wmem: [4_096, 16_384, 4 << 20], suite [4_096, 256 << 10, 4 << 20];
    }
    pairs {
        ip_local_port_range: [32_768, 60_999];
    }
    words {
        tcp_congestion_control: "cubic";
        profile: "";
        recovery: "";
    }
}

/// Parameters of the stack that no kernel has, under `ackclock.`: host profile, recovery rule.
const OWN: &[&str] = &["profile", "recovery"];

/// Ignored parameters, for features unavailable to a script: other hosts, memory pressure, other protocols, the queue
/// of future devices.
const IGNORED: &[&str] = &[
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.somaxconn",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_fastopen_blackhole_timeout_sec",
    "net.ipv4.tcp_fastopen_key",
    "net.ipv4.tcp_fwmark_accept",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_tw_reuse",
];

impl Sysctls {
    /// Set one parameter, named as `tcp_sack`, `net.ipv4.tcp_sack`, or by its path below `/proc/sys`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Refused> {
        let dotted = name.strip_prefix("/proc/sys/").unwrap_or(name).replace('/', ".");
        let local = dotted.strip_prefix("net.ipv4.").filter(|n| !OWN.contains(n)).or_else(|| {
            dotted.strip_prefix("net.core.").filter(|n| n.starts_with("rmem_") || n.starts_with("wmem_"))
        });
        let local = local.or_else(|| dotted.strip_prefix("ackclock.").filter(|n| OWN.contains(n)));
        let known = match local {
            Some(local) => self.set_known(local, value)?,
            None if !dotted.contains('.') && !OWN.contains(&dotted.as_str()) => {
                self.set_known(&dotted, value)?
            }
            None => false,
        };
        let ignored = || dotted.starts_with("net.ipv4.conf.") || dotted.starts_with("net.ipv6.");
        if known || IGNORED.contains(&dotted.as_str()) || ignored() {
            return Ok(());
        }
        Err(Refused::Unknown(format!("sysctl '{dotted}'")))
    }
}

fn numbers<const N: usize>(name: &str, text: &str, most: u64) -> Result<[u64; N], Refused> {
    let refuse = || {
        let plural = if N > 1 { format!("{N} whole numbers") } else { "a whole number".to_string() };
        Refused::value(name, text, format_args!("{plural} from 0 to {most}"))
    };
    let mut values = [0; N];
    let mut parts = text.split_whitespace();
    for value in &mut values {
        *value = parts.next().and_then(number).filter(|v| *v <= most).ok_or_else(refuse)?;
    }
    if parts.next().is_some() {
        return Err(refuse());
    }
    Ok(values)
}

/// Parse a number: decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn word(name: &str, text: &str) -> Result<String, Refused> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    if text.is_empty() || text.len() > 15 || !text.chars().all(plain) {
        return Err(Refused::value(name, text, "a name of up to 15 letters, digits, '_', '-', '.'"));
    }
    Ok(text.to_string())
}
