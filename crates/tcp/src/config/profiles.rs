//! Host profiles: named sets of constants. Each value cites its source. `profiles.txt` contains the whole configuration
//! of each profile, and a test compares the two, so a change to one profile shows its effect on all of them.

use ackclock_cc::controller::Recipe;
use ackclock_cc::{Rule, SlowStartConfig};
use ackclock_core::Span;

use super::{
    AccEcnRules, Config, DelayedAck, Detection, EarlyRetransmit, EcnUse, LossConfig, Pacing, ReceiveConfig,
    RtoStyle, SendConfig, Switches, TimerConfig, Wheel,
};

/// Per-packet overhead without offload, up to Linux 3.1: `struct sk_buff` (240 bytes; memory), and the
/// headers up to the cache line in which 1448 bytes of payload end. The payload followed the headers.
const HEAD_UP_TO_3_1: u32 = 456;

/// Name and one-line description of each profile.
pub const PROFILES: &[(&str, &str)] = &[
    ("linux-6", "another name of linux-7.3, and the same for ever"),
    (
        "linux-7.3",
        "Linux 7.3, compared with it event by event: RACK-TLP, PRR with SafeACK, IW 10, SACK compression, F-RTO",
    ),
    ("linux-3.2", "Linux 3.2: FACK, first PRR, initial RTO 1 s, IW 10"),
    ("linux-3.0", "Linux 3.0: FACK, rate halving, initial RTO 3 s, IW 10"),
    (
        "linux-2.6",
        "Linux 2.6 of 2004: FACK, rate halving, initial RTO 3 s, IW 2, a quarter of each buffer reserved",
    ),
    (
        "freebsd-4",
        "FreeBSD 4: NewReno without SACK, initial RTO 3 s, minimum RTO 1 s, IW 2, 100 ticks per second",
    ),
    ("rfc", "the RFCs: 5681, 6298, 6675, 6928, RFC 9937 for recovery"),
];

/// Whether this is the profile of the current kernel, by either of its names.
pub fn is_linux_today(profile: &str) -> bool {
    matches!(profile, "linux-6" | "linux-7.3")
}

impl Config {
    /// Return the profile called `name`, if there is one.
    pub fn profile(name: &str) -> Option<Config> {
        Some(match name {
            name if is_linux_today(name) => Config::linux_6(),
            "linux-3.2" => Config::linux_3_2(),
            "linux-3.0" => Config::linux_3_0(),
            "linux-2.6" => Config::linux_2_6(),
            "freebsd-4" => Config::freebsd_4(),
            "rfc" => Config::rfc(),
            _ => return None,
        })
    }

    /// Common base of all profiles, with all optional features off. Values common to every TCP come from the
    /// RFCs; each family of profiles sets its own.
    fn plain() -> Config {
        Config {
            smss: 0,
            switches: Switches::USUAL,
            sack: false,
            timestamps: false,
            whole_packets: false,
            ip_header: 20,
            ecn: EcnUse::Off,
            accecn: AccEcnRules { option: 2, beacon: 3, fallback: true },
            validate: None,
            application_waits: false,
            ledger: false,
            rests: true,
            sending: SendConfig {
                path_mss: u32::MAX,
                iw: 10, // RFC 6928
                count_acks: false,
                moderate_open: false,
                idle_restart: true, // RFC 5681 §4.1
                cwnd_validation: false,
                base_mss: 1024,
                ect1: false,
                pacing: Pacing::OFF,
                small_queues: None,
                buffers: None,
                buffer_overhead: 832, // SKB_TRUESIZE of a packet's head, in a kernel without WLAN and tunnels; 896 with them
                writer: None,
                controller: built_in("reno"),
                slow_start: None,
                fills: true,
            },
            receiving: ReceiveConfig {
                delayed_ack: DelayedAck::Rfc,
                delack_timeout: Span::from_ms(200), // RFC 5681 §4.2: below 500 ms
                sack_compression: false,
                optimistic_acks: None,
                initiator_rwnd: 0,
                initial_rwnd: 65_535, // maximum of an unscaled header field
                first_buffer: 0,
                receive_buffer: 64 << 20,
                receive_memory: 0,
                shrink_window: false,
                window_quarters: 4,
                whole_window: false,
                dsack: false,
                explicit_reads: false,
                predicts: true,
            },
            timers: TimerConfig {
                rto_style: RtoStyle::Rfc6298,
                initial_rto: Span::from_secs(1),  // RFC 6298 §2.1
                min_rto: Span::from_secs(1),      // RFC 6298 §2.4
                max_rto: Span::from_secs(60),     // RFC 6298 §2.5: a minimum
                fallback_rto: Span::from_secs(3), // RFC 6298 §5.7
                syn_linear_timeouts: 0,
                syn_retries: 6,
                data_retries: 15,
                hz: 0,
                wheel: Wheel::Exact,
                tick_phase: 0,
            },
            loss: LossConfig {
                detection: Detection::Dupthresh,
                dup_thresh: 3, // RFC 5681 §3.2
                limited_transmit: false,
                early_retransmit: EarlyRetransmit::Off,
                tlp: false,
                frto: false,
                undo: false,
                next_seg_rules: false,
                full_ack_ends: false,
                rule: rule("rfc6675"),
            },
        }
    }

    /// Settings common to every Linux from 2.6 to 7. Version-specific settings are in each version's own
    /// recipe, so that no version depends on another.
    fn linux() -> Config {
        let base = Config::plain();
        Config {
            sack: true,
            timestamps: true,
            sending: SendConfig {
                idle_restart: true, // tcp_slow_start_after_idle
                cwnd_validation: true,
                controller: built_in("cubic"),
                ..base.sending
            },
            receiving: ReceiveConfig {
                delayed_ack: DelayedAck::Linux,
                delack_timeout: Span::from_ms(40), // TCP_DELACK_MIN, TCP_ATO_MIN
                receive_buffer: 64 << 20,
                receive_memory: 64 << 20, // maximum of tcp_rmem on the kernel that was measured
                dsack: true,
                ..base.receiving
            },
            timers: TimerConfig {
                rto_style: RtoStyle::Linux,
                min_rto: Span::from_ms(200),      // TCP_RTO_MIN
                max_rto: Span::from_secs(120),    // TCP_RTO_MAX
                fallback_rto: Span::from_secs(3), // TCP_TIMEOUT_FALLBACK
                data_retries: 15,                 // tcp_retries2
                hz: 1000,
                ..base.timers
            },
            loss: LossConfig {
                dup_thresh: 3, // tcp_reordering
                limited_transmit: true,
                frto: true,
                undo: true,
                ..base.loss
            },
            ..base
        }
    }

    fn linux_6() -> Config {
        let base = Config::linux();
        Config {
            sending: SendConfig {
                iw: 10,                      // TCP_INIT_CWND
                small_queues: Some(4 << 20), // tcp_limit_output_bytes
                ..base.sending
            },
            receiving: ReceiveConfig {
                sack_compression: true,
                initial_rwnd: 65_160, // kernel reference: first advertised window with default rmem
                first_buffer: 65_536, // half of tcp_rmem's default
                ..base.receiving
            },
            timers: TimerConfig {
                initial_rto: Span::from_secs(1), // TCP_TIMEOUT_INIT
                syn_linear_timeouts: 4,          // tcp_syn_linear_timeouts
                syn_retries: 6,                  // tcp_syn_retries
                wheel: Wheel::Levels,
                ..base.timers
            },
            loss: LossConfig {
                detection: Detection::Rack,
                tlp: true,
                early_retransmit: EarlyRetransmit::Off, // replaced by RACK-TLP
                rule: rule("prr-linux-6"),
                ..base.loss
            },
            ..base
        }
    }

    fn linux_3_2() -> Config {
        let base = Config::linux();
        Config {
            sending: SendConfig {
                iw: 10, // TCP_INIT_CWND, since 2.6.39
                count_acks: true,
                ..base.sending
            },
            receiving: ReceiveConfig { initial_rwnd: 65_160, first_buffer: 65_536, ..base.receiving },
            timers: TimerConfig {
                initial_rto: Span::from_secs(1), // TCP_TIMEOUT_INIT, since 3.1
                syn_retries: 5,                  // tcp_syn_retries
                wheel: Wheel::Slack,
                ..base.timers
            },
            loss: LossConfig { detection: Detection::Fack, rule: rule("prr-linux-3.2"), ..base.loss },
            ..base
        }
    }

    fn linux_3_0() -> Config {
        let base = Config::linux();
        Config {
            sending: SendConfig {
                iw: 10, // TCP_INIT_CWND, since 2.6.39
                count_acks: true,
                moderate_open: true, // tcp_moderate_cwnd, up to 3.1
                buffer_overhead: HEAD_UP_TO_3_1,
                ..base.sending
            },
            receiving: ReceiveConfig { initial_rwnd: 65_160, first_buffer: 65_536, ..base.receiving },
            timers: TimerConfig {
                initial_rto: Span::from_secs(3), // TCP_TIMEOUT_INIT before 3.1
                syn_retries: 5,
                wheel: Wheel::Slack,
                ..base.timers
            },
            loss: LossConfig {
                detection: Detection::Fack,
                rule: rule("rate-halving"), // before 3.2
                ..base.loss
            },
            ..base
        }
    }

    /// Senders of the study on large pipes (2004). "Memory" marks values that no available source confirms.
    fn linux_2_6() -> Config {
        let base = Config::linux();
        Config {
            sending: SendConfig {
                iw: 2, // study sheet, ambiguity A12 (memory); RFC 3390 would allow 3
                count_acks: true,
                moderate_open: true, // tcp_moderate_cwnd, up to 3.1
                buffer_overhead: HEAD_UP_TO_3_1,
                slow_start: Some(SlowStartConfig::CLASSIC), // HyStart was added in 2.6.29
                ..base.sending
            },
            receiving: ReceiveConfig {
                window_quarters: 3, // tcp_adv_win_scale = 2: a quarter for overhead (study sheet 6.2; memory)
                initial_rwnd: 5_840, // four segments of 1460 (memory)
                first_buffer: 65_535, // three quarters of tcp_rmem of 87380 (memory)
                ..base.receiving
            },
            timers: TimerConfig {
                initial_rto: Span::from_secs(3), // TCP_TIMEOUT_INIT before 3.1
                syn_retries: 5,
                wheel: Wheel::Exact, // timers got slack in 2.6.36 (memory)
                ..base.timers
            },
            loss: LossConfig {
                detection: Detection::Fack,
                rule: rule("rate-halving"), // before 3.2
                ..base.loss
            },
            ..base
        }
    }

    /// Hosts of TCP Westwood in the same study. "Memory" marks values that no available source confirms.
    fn freebsd_4() -> Config {
        let base = Config::plain();
        Config {
            sack: false,      // study sheet, ambiguity A7 (memory); added in 5.3
            timestamps: true, // net.inet.tcp.rfc1323 = 1 (memory)
            sending: SendConfig {
                iw: 2,            // study sheet, ambiguity A12 (memory)
                count_acks: true, // RFC 2581: one segment per ACK
                idle_restart: true,
                cwnd_validation: false, // memory
                controller: built_in("reno"),
                slow_start: Some(SlowStartConfig::CLASSIC),
                ..base.sending
            },
            receiving: ReceiveConfig {
                delayed_ack: DelayedAck::Rfc,
                delack_timeout: Span::from_ms(100), // net.inet.tcp.delacktime (memory)
                initial_rwnd: 65_535, // net.inet.tcp.recvspace (memory); with a larger buffer all of it at once
                first_buffer: 65_536,
                whole_window: true, // study sheet 6.2: all of the 2 MiB is offered
                ..base.receiving
            },
            timers: TimerConfig {
                rto_style: RtoStyle::Rfc6298,     // Jacobson's estimator is the same
                initial_rto: Span::from_secs(3),  // TCPTV_RTOBASE (memory); RFC 2988
                min_rto: Span::from_secs(1),      // TCPTV_MIN (memory); RFC 2988
                max_rto: Span::from_secs(64),     // TCPTV_REXMTMAX (memory)
                fallback_rto: Span::from_secs(3), // same as initial_rto
                syn_retries: 12,                  // TCP_MAXRXTSHIFT (memory)
                data_retries: 12,                 // TCP_MAXRXTSHIFT (memory)
                hz: 100,                          // HZ of the i386 kernels (memory)
                ..base.timers
            },
            loss: LossConfig {
                detection: Detection::Dupthresh, // three duplicate ACKs: tcprexmtthresh (memory)
                limited_transmit: false,         // net.inet.tcp.rfc3042 = 0 (memory)
                undo: false,                     // the "bad retransmit" recovery of one RTO is not modelled
                full_ack_ends: true,
                rule: rule("freebsd-4"), // tcp_newreno_partial_ack, and the full ACK in tcp_input
                ..base.loss
            },
            ..base
        }
    }

    fn rfc() -> Config {
        let base = Config::plain();
        Config {
            sack: true,
            timestamps: true,
            sending: SendConfig {
                iw: 10,                        // RFC 6928
                idle_restart: true,            // RFC 5681 §4.1
                cwnd_validation: true,         // RFC 7661
                controller: built_in("cubic"), // RFC 9438
                ..base.sending
            },
            receiving: ReceiveConfig {
                delayed_ack: DelayedAck::Rfc,
                delack_timeout: Span::from_ms(200), // RFC 5681 §4.2: below 500 ms
                initial_rwnd: 65_160,
                first_buffer: 65_536,
                dsack: true, // RFC 2883
                ..base.receiving
            },
            timers: TimerConfig {
                rto_style: RtoStyle::Rfc6298,
                initial_rto: Span::from_secs(1), // RFC 6298 §2.1
                min_rto: Span::from_secs(1),     // RFC 6298 §2.4
                max_rto: Span::from_secs(60),    // RFC 6298 §2.5
                ..base.timers
            },
            loss: LossConfig {
                detection: Detection::Dupthresh,
                limited_transmit: true, // RFC 3042
                frto: true,             // RFC 5682
                undo: true,             // RFC 3522, RFC 3708
                next_seg_rules: true,   // RFC 6675 §4
                full_ack_ends: true,    // RFC 6582 §3.2 step 3
                rule: rule("prr-rfc9937"),
                ..base.loss
            },
            ..base
        }
    }
}

/// Return the recovery rule of this name.
fn rule(name: &str) -> Rule {
    Rule::by_name(name).expect("invariant: a rule of the registry")
}

/// Return the controller of this name.
fn built_in(name: &str) -> Recipe {
    Recipe::by_name(name).expect("invariant: a controller of the registry")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use super::*;

    /// Sub-structures of a configuration, left out of the list of its fields.
    const PARTS: [&str; 4] =
        ["sending SendConfig", "receiving ReceiveConfig", "timers TimerConfig", "loss LossConfig"];

    /// Return the value of each field, keyed by its path.
    fn flat(of: &impl Debug) -> BTreeMap<String, String> {
        let (mut path, mut found) = (Vec::new(), BTreeMap::new());
        for line in format!("{of:#?}").lines().map(str::trim) {
            let (key, value) = line.trim_end_matches(',').split_once(": ").unwrap_or(("", line));
            match line.trim_end_matches(',') {
                "}" | ")" | "]" | "{}" => drop(path.pop()),
                _ if value.ends_with(['{', '(', '[']) => {
                    let head = value.trim_end_matches([' ', '{', '(', '[']);
                    path.push(
                        [key, head]
                            .iter()
                            .filter(|part| !part.is_empty())
                            .copied()
                            .collect::<Vec<_>>()
                            .join(" "),
                    );
                }
                _ => {
                    let of = path
                        .iter()
                        .skip(1)
                        .map(String::as_str)
                        .filter(|part| !PARTS.contains(part))
                        .chain([key])
                        .filter(|part| !part.is_empty());
                    found.insert(of.collect::<Vec<_>>().join("."), value.trim_end_matches(',').to_string());
                }
            }
        }
        found
    }

    /// List the fields with their common value, or with the value in each profile, and compare with `profiles.txt`.
    #[test]
    fn each_profile_is_the_one_that_was_frozen() {
        let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
        let all =
            names.iter().map(|name| flat(&Config::profile(name).expect("a profile"))).collect::<Vec<_>>();
        let fields = all.iter().flat_map(BTreeMap::keys).collect::<std::collections::BTreeSet<_>>();
        let mut lines = Vec::new();
        for field in fields {
            let values = all.iter().map(|of| of.get(field).map_or("-", String::as_str)).collect::<Vec<_>>();
            match values.iter().all(|value| *value == values[0]) {
                true => lines.push(format!("{field} = {}", values[0])),
                false => {
                    lines.push(format!("{field}:"));
                    lines.extend(
                        names.iter().zip(&values).map(|(name, value)| format!("    {name} = {value}")),
                    );
                }
            }
        }
        let (now, frozen) = (lines.join("\n"), include_str!("profiles.txt").trim_end());
        let differs = now.lines().zip(frozen.lines()).find(|(now, frozen)| now != frozen);
        assert!(now == frozen, "{differs:?} differs from profiles.txt; all of it now:\n{now}");
    }
}
