//! Translates a script's set-up into the stack's constants. Parameters not modelled by the stack must have the
//! values of the imitated host.

use ackclock_cc::controller::{Options, Recipe, Value};
use ackclock_cc::slow_start::HyStartParams;
use ackclock_cc::{Rule, SlowStartConfig};
use ackclock_core::{Span, Time};
use ackclock_tcp::{
    AccEcnRules, Buffers, Config, EcnUse, KeepAlive, MtuProbing, Pacing, SendLimit, Switches, Tso,
};

use super::{unsupported, Profile, Stop};
use crate::setup::{CubicModule, Qdisc, Route, Setup, Sysctls};

/// Size of the TCP header without options, bytes.
const TCP_HEADER: u32 = 20;

/// Socket options that affect the connection.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// Requested SO_RCVBUF.
    pub receive_buffer: Option<u64>,
    /// Requested SO_SNDBUF.
    pub send_buffer: Option<u64>,
    /// TCP_MAXSEG.
    pub max_segment: Option<u32>,
    /// TCP_CONGESTION.
    pub controller: Option<String>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// TCP_CORK.
    pub cork: bool,
    /// SO_ZEROCOPY.
    pub zerocopy: bool,
    /// TCP_INQ.
    pub inq: bool,
    /// TCP_NOTSENT_LOWAT, bytes.
    pub notsent_lowat: Option<u64>,
    /// SO_TIMESTAMPING: its flags, and the offset in the stream at which its keys begin.
    pub stamping: Option<(i64, u64)>,
    /// SO_LINGER, seconds.
    pub linger: Option<i64>,
    /// SO_MAX_PACING_RATE, bytes/s.
    pub max_pacing_rate: Option<u64>,
    /// TCP_USER_TIMEOUT; zero = none.
    pub user_timeout: Span,
    /// SO_KEEPALIVE and related options.
    pub keepalive: KeepAliveOptions,
}

/// Options of keep-alive probes; `None` = the host's value.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepAliveOptions {
    /// SO_KEEPALIVE.
    pub on: bool,
    /// TCP_KEEPIDLE, seconds.
    pub idle: Option<u64>,
    /// TCP_KEEPINTVL, seconds.
    pub interval: Option<u64>,
    /// TCP_KEEPCNT.
    pub probes: Option<u64>,
}

/// Minimum MSS to advertise, bytes (Linux `ip_rt_min_advmss`).
const LEAST_ADVMSS: u32 = 256;

/// Simulated host parameters.
pub struct Host {
    pub setup: Setup,
    base: Config,
    /// Path MTU reported by a router, bytes; also used by later connections.
    path_mtu: Option<u32>,
}

impl Default for Host {
    fn default() -> Host {
        Host {
            setup: Setup::kernel(),
            base: Config::profile("linux-6").expect("invariant: a known profile"),
            path_mtu: None,
        }
    }
}

impl Host {
    pub fn new(setup: Setup, profile: &Profile) -> Result<Host, Stop> {
        let own = &setup.sysctls.profile;
        let name = if own.is_empty() { &profile.name } else { own };
        let Some(base) = Config::profile(name) else { return unsupported(1, format!("profile '{name}'")) };
        let mut host = Host {
            setup: Setup::kernel(),
            base: base.with(|set| set.timers.hz = profile.hz),
            path_mtu: None,
        };
        host.change(setup, 1)?;
        Ok(host)
    }

    pub fn change(&mut self, setup: Setup, line: u32) -> Result<(), Stop> {
        if let Some(what) = not_modelled(&setup) {
            return unsupported(line, what);
        }
        self.setup = setup;
        Ok(())
    }

    /// Process a router's report of a path MTU of `mtu` bytes. Returns the largest segment that fits, if the path
    /// MTU has changed.
    pub fn learn_mtu(&mut self, mtu: u32) -> Option<u32> {
        let known = self.path_mtu.or(self.setup.route.mtu).unwrap_or(self.setup.mtu);
        let locked = self.setup.route.mtu_locked;
        (mtu < known && !locked).then(|| {
            self.path_mtu = Some(mtu);
            self.path_mss()
        })
    }

    fn path_mss(&self) -> u32 {
        self.path_mtu.map_or(u32::MAX, |mtu| mtu.saturating_sub(self.setup.ip_header + TCP_HEADER))
    }

    /// Current path MTU, bytes.
    pub fn pmtu(&self) -> u32 {
        self.path_mtu.or(self.setup.route.mtu).unwrap_or(self.setup.mtu).min(self.setup.mtu)
    }

    /// Ticks per second.
    pub fn hz(&self) -> i64 {
        self.base.timers.hz.max(1) as i64
    }

    /// Ticks of the host's clock up to `at`. Ticks begin halfway between the milliseconds of a script (Linux
    /// `tcp_jiffies32`).
    pub fn ticks(&self, at: Time) -> u64 {
        let tick = self.base.tick().0.max(1);
        (at.0 + tick / 2) / tick
    }

    /// MSS to advertise.
    pub fn advmss(&self, socket: &SocketOptions) -> u32 {
        let route = &self.setup.route;
        // A path MTU reported by a router also applies here (Linux `ipv4_default_advmss`).
        let room = self.pmtu().saturating_sub(self.setup.ip_header + TCP_HEADER).max(LEAST_ADVMSS);
        let mss = route.advmss.unwrap_or(room).min(room);
        mss.min(socket.max_segment.unwrap_or(u32::MAX)).max(1)
    }

    /// Window shift to advertise (Linux `tcp_select_initial_window`).
    pub fn shift(&self, socket: &SocketOptions) -> u8 {
        let s = &self.setup.sysctls;
        let space = match socket.receive_buffer {
            Some(asked) => asked.min(s.rmem_max),
            None => s.tcp_rmem[2].max(s.rmem_max),
        };
        (space.max(1).ilog2().saturating_sub(15)).min(14) as u8
    }

    /// Keep-alive settings; `None` if the socket does not use keep-alive.
    pub fn keepalive(&self, socket: &SocketOptions) -> Option<KeepAlive> {
        let (s, k) = (&self.setup.sysctls, socket.keepalive);
        k.on.then(|| KeepAlive {
            idle: Span::from_secs(k.idle.unwrap_or(s.tcp_keepalive_time)),
            interval: Span::from_secs(k.interval.unwrap_or(s.tcp_keepalive_intvl)),
            probes: k.probes.unwrap_or(s.tcp_keepalive_probes) as u8,
        })
    }

    /// Send buffer limit (Linux `sk_setsockopt`: twice the requested size, at least SOCK_MIN_SNDBUF).
    pub fn send_limit(&self, socket: &SocketOptions) -> SendLimit {
        const LEAST: u64 = 4_608;
        let s = &self.setup.sysctls;
        match socket.send_buffer {
            Some(asked) => SendLimit::fixed((2 * asked.min(s.wmem_max)).max(LEAST)),
            None => SendLimit { bytes: s.tcp_wmem[1], most: s.tcp_wmem[2] },
        }
    }

    /// Receive buffer limit for a requested size (Linux `__sock_set_rcvbuf`: twice that size, at least
    /// SOCK_MIN_RCVBUF).
    pub fn receive_limit(&self, asked: u64) -> u64 {
        const LEAST: u64 = 2_304;
        (2 * asked.min(self.setup.sysctls.rmem_max)).max(LEAST)
    }

    /// Return the constants for a connection of this socket.
    pub fn config(
        &self,
        line: u32,
        socket: &SocketOptions,
        timestamps: bool,
        sack: bool,
    ) -> Result<Config, Stop> {
        let s = &self.setup.sysctls;
        let name = socket.controller.clone().or(self.setup.route.congctl.clone());
        let name = name.unwrap_or_else(|| s.tcp_congestion_control.clone());
        let options = if name == "cubic" { options_of(&self.setup.cubic) } else { Options::new() };
        let Ok(controller) = Recipe::new(&name, &options, self.base.sending.controller.shared()) else {
            return unsupported(line, format!("congestion control '{name}'"));
        };
        let rule = match s.recovery.as_str() {
            "" => Some(self.base.loss.rule.clone()),
            name => Rule::by_name(name),
        };
        let Some(rule) = rule else { return unsupported(line, format!("recovery rule '{}'", s.recovery)) };
        let advmss = self.advmss(socket);
        let buffer = match socket.receive_buffer {
            Some(asked) => self.receive_limit(asked) / 2,
            None => s.tcp_rmem[1] / 2, // window as a fraction of the buffer: one half (Linux TCP_DEFAULT_SCALING_RATIO)
        };
        // The window field of the SYN may be smaller than the window, which is always based on the whole buffer.
        let whole = |mss: u32| {
            let mss = mss.max(1) as u64;
            let offer = (buffer / mss * mss).clamp(1, u32::MAX as u64);
            offer.min(self.setup.route.initrwnd.map_or(u64::MAX, |segments| segments as u64 * mss))
        };
        let offer = whole(advmss - 12 * timestamps as u32);
        Ok(self.base.clone().with(|set| {
            set.sending.slow_start = match controller.needs().hystart {
                true => Some(slow_start_of(&self.setup.cubic)),
                false => self.base.sending.slow_start.clone(),
            };
            // the kernel uses the module's value only if HyStart is off
            set.switches = Switches {
                initial_ssthresh: match self.setup.cubic.initial_ssthresh {
                    ssthresh if name == "cubic" && ssthresh > 0 && !self.setup.cubic.hystart => ssthresh,
                    _ => self.base.switches.initial_ssthresh,
                },
                mtu_probing: match s.tcp_mtu_probing {
                    0 => MtuProbing::Off,
                    1 => MtuProbing::AfterTimeouts,
                    _ => MtuProbing::Always,
                },
                ..self.base.switches.clone()
            };
            set.smss = advmss.saturating_sub(12 * timestamps as u32).max(1);
            set.sending.path_mss = self.path_mss();
            set.sending.iw = self.setup.route.initcwnd.unwrap_or(self.base.sending.iw);
            set.sack = sack;
            set.timestamps = timestamps;
            set.loss.dup_thresh = s.tcp_reordering as u32;
            set.timers.min_rto = self.setup.route.rto_min.unwrap_or(Span::from_us(s.tcp_rto_min_us));
            set.timers.max_rto = Span::from_ms(s.tcp_rto_max_ms);
            set.timers.syn_linear_timeouts = s.tcp_syn_linear_timeouts as u8;
            set.timers.syn_retries = s.tcp_syn_retries as u8;
            set.timers.data_retries = s.tcp_retries2 as u8;
            set.receiving.sack_compression = self.base.receiving.sack_compression && s.tcp_comp_sack_nr > 0;
            set.loss.tlp = self.base.loss.tlp && matches!(s.tcp_early_retrans, 3 | 4);
            set.loss.frto = s.tcp_frto > 0;
            set.sending.idle_restart = s.tcp_slow_start_after_idle > 0;
            set.receiving.dsack = s.tcp_dsack > 0;
            set.ecn = ecn_use(s.tcp_ecn);
            set.accecn = accecn_rules(s);
            set.receiving.initial_rwnd = offer as u32;
            set.receiving.initiator_rwnd = whole(advmss) as u32; // computed without the space for timestamps
            set.receiving.first_buffer = buffer;
            set.receiving.receive_buffer = match socket.receive_buffer {
                Some(_) => buffer,
                None => (s.tcp_rmem[2] / 2).max(buffer),
            };
            set.receiving.receive_memory = match socket.receive_buffer {
                Some(_) => 2 * buffer,
                None => s.tcp_rmem[2].max(2 * buffer),
            };
            set.receiving.shrink_window = s.tcp_shrink_window > 0;
            set.sending.base_mss = s.tcp_base_mss as u32;
            set.ip_header = self.setup.ip_header;
            set.sending.pacing = Pacing {
                on: self.setup.qdisc == Qdisc::Fq || socket.max_pacing_rate.is_some(),
                initial_window: false,
                measured: true,
                ss_percent: s.tcp_pacing_ss_ratio as u32,
                ca_percent: s.tcp_pacing_ca_ratio as u32,
                most: socket.max_pacing_rate.unwrap_or(u64::MAX),
            };
            set.validate = Some(Span::from_ms(s.tcp_invalid_ratelimit));
            set.sending.buffers = Some(Buffers {
                limit: Some(self.send_limit(socket)),
                notsent_lowat: match socket.notsent_lowat.unwrap_or(s.tcp_notsent_lowat) {
                    0 | 0xffff_ffff => u64::MAX,
                    bytes => bytes,
                },
                tso: (!self.setup.single).then_some(Tso {
                    min_segments: s.tcp_min_tso_segs as u32,
                    win_divisor: s.tcp_tso_win_divisor as u32,
                }),
                call_bytes: u64::MAX, // the script determines the size of each write
            });
            set.ledger = true;
            set.receiving.explicit_reads = true;
            set.timers.tick_phase = self.base.tick().0 / 2;
            set.sending.controller = controller;
            set.loss.rule = rule;
        }))
    }
}

/// Return the ECN mode for a value of Linux's `tcp_ecn`.
fn ecn_use(tcp_ecn: u64) -> EcnUse {
    match tcp_ecn {
        0 => EcnUse::Off,
        1 => EcnUse::Ask,
        2 => EcnUse::Accept,
        3 => EcnUse::AccEcn,
        4 => EcnUse::AccEcnAsk,
        _ => EcnUse::AccEcnAccept,
    }
}

fn accecn_rules(s: &Sysctls) -> AccEcnRules {
    AccEcnRules {
        option: s.tcp_ecn_option as u8,
        beacon: s.tcp_ecn_option_beacon as u8,
        fallback: s.tcp_ecn_fallback > 0,
    }
}

/// Return the first part of the set-up not modelled by the stack.
fn not_modelled(setup: &Setup) -> Option<String> {
    let (s, k) = (&setup.sysctls, Sysctls::kernel());
    let fixed = [
        ("tcp_abort_on_overflow", s.tcp_abort_on_overflow, k.tcp_abort_on_overflow),
        ("tcp_app_win", s.tcp_app_win, k.tcp_app_win),
        ("tcp_fack", s.tcp_fack, k.tcp_fack),
        ("tcp_fin_timeout", s.tcp_fin_timeout, k.tcp_fin_timeout),
        ("tcp_min_snd_mss", s.tcp_min_snd_mss, k.tcp_min_snd_mss),
        ("tcp_moderate_rcvbuf", s.tcp_moderate_rcvbuf, k.tcp_moderate_rcvbuf),
        ("tcp_orphan_retries", s.tcp_orphan_retries, k.tcp_orphan_retries),
        ("tcp_reflect_tos", s.tcp_reflect_tos, k.tcp_reflect_tos),
        ("tcp_rfc1337", s.tcp_rfc1337, k.tcp_rfc1337),
        ("tcp_tso_rtt_log", s.tcp_tso_rtt_log, k.tcp_tso_rtt_log),
        ("tcp_workaround_signed_windows", s.tcp_workaround_signed_windows, k.tcp_workaround_signed_windows),
        ("tcp_comp_sack_delay_ns", s.tcp_comp_sack_delay_ns, k.tcp_comp_sack_delay_ns),
        ("tcp_comp_sack_slack_ns", s.tcp_comp_sack_slack_ns, k.tcp_comp_sack_slack_ns),
        ("tcp_max_reordering", s.tcp_max_reordering, k.tcp_max_reordering),
        ("tcp_min_rtt_wlen", s.tcp_min_rtt_wlen, k.tcp_min_rtt_wlen),
        ("tcp_mtu_probe_floor", s.tcp_mtu_probe_floor, k.tcp_mtu_probe_floor),
        ("tcp_probe_interval", s.tcp_probe_interval, k.tcp_probe_interval),
        ("tcp_probe_threshold", s.tcp_probe_threshold, k.tcp_probe_threshold),
        ("tcp_pingpong_thresh", s.tcp_pingpong_thresh, k.tcp_pingpong_thresh),
        ("tcp_recovery", s.tcp_recovery, k.tcp_recovery),
        ("tcp_thin_linear_timeouts", s.tcp_thin_linear_timeouts, k.tcp_thin_linear_timeouts),
    ];
    if let Some((name, value, _)) = fixed.iter().find(|(_, value, wanted)| value != wanted) {
        return Some(format!("sysctl '{name}={value}'"));
    }
    if s.tcp_comp_sack_nr != 0 && s.tcp_comp_sack_nr != k.tcp_comp_sack_nr {
        return Some(format!("sysctl 'tcp_comp_sack_nr={}'", s.tcp_comp_sack_nr));
    }
    if s.tcp_ecn_fallback == 0 && matches!(s.tcp_ecn, 1 | 4) {
        return Some("sysctl 'tcp_ecn_fallback=0' where ECN of RFC 3168 is asked for".into());
    }
    if s.tcp_syncookies > 1 {
        return Some("SYN cookies".into());
    }
    match setup.qdisc {
        Qdisc::Fifo | Qdisc::Fq | Qdisc::DropAll => {}
    }
    let route = Route {
        initcwnd: None,
        initrwnd: None,
        advmss: None,
        mtu: None,
        mtu_locked: false,
        rto_min: None,
        congctl: None,
        ..setup.route.clone()
    };
    if route != Route::default() {
        return Some("this metric of the route".into());
    }
    None
}

/// Return the module's parameters as options of the controller, omitting those with the kernel's default values.
fn options_of(cubic: &CubicModule) -> Options {
    let flags = [("fast_convergence", cubic.fast_convergence), ("tcp_friendliness", cubic.tcp_friendliness)];
    let flags = flags.into_iter().filter(|(_, on)| !on);
    flags.map(|(name, on)| (name.to_string(), Value::Flag(on))).collect()
}

/// Return the slow-start rule selected by these parameters.
fn slow_start_of(cubic: &CubicModule) -> SlowStartConfig {
    match cubic.hystart {
        true => SlowStartConfig::HyStart(HyStartParams {
            ack_train: cubic.hystart_detect & 1 > 0,
            delay: cubic.hystart_detect & 2 > 0,
            low_window: cubic.hystart_low_window,
            ack_delta: Span::from_us(cubic.hystart_ack_delta_us.into()),
        }),
        false => SlowStartConfig::CLASSIC,
    }
}
