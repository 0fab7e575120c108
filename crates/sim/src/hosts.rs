//! From a flow group to the settings of its hosts: the profile, and what the scenario changes in it.

use std::collections::BTreeMap;
use std::rc::Rc;

use ackclock_cc::controller::{Maker, Options, Recipe, Shared, Value};
use ackclock_cc::Rule;
use ackclock_core::{Rate, Span};
use ackclock_tcp::{
    Buffers, Config, DelayedAck, Detection, EarlyRetransmit, EcnUse, FinRule, SendLimit, Tso, PROFILES,
};

use crate::error::Error;
use crate::spec::{FlowGroup, OptionValue, Workload};
use crate::transport::{PccConfig, TransportConfig, UtilityMaker};
use crate::udp::{OnOff, Periods, SourceParams};

/// Transport of the flows of `group`, the `index`-th, and settings of its hosts.
pub fn transport(group: &FlowGroup, index: usize, customs: &Customs) -> Result<TransportConfig, Error> {
    Ok(match source(&group.workload) {
        Some(source) => TransportConfig::Udp(Rc::new(source)),
        None if is_pcc(&group.congestion_control) => {
            TransportConfig::Pcc(Rc::new(pcc(group, index, customs)?))
        }
        None => TransportConfig::Tcp(Rc::new(config(group, index, customs)?)),
    })
}

/// Whether a controller belongs to PCC's transport.
fn is_pcc(controller: &str) -> bool {
    ackclock_pcc::REGISTRY.iter().any(|(name, _)| *name == controller)
}

/// Settings of PCC.
fn pcc(group: &FlowGroup, index: usize, customs: &Customs) -> Result<PccConfig, Error> {
    let place = |field: &str| format!("flows[{index}].{field}");
    if !matches!(
        group.workload,
        Workload::Bulk | Workload::Transfer { .. } | Workload::Throttled { .. } | Workload::Video(_)
    ) {
        let found =
            format_args!("a workload that needs TCP's two directions, over {}", group.congestion_control);
        return Err(Error::value(place("workload"), found, "bulk, transfer, throttled, video"));
    }
    let mut options = options(group);
    let own = match options.get("utility") {
        Some(Value::Text(name)) => name.strip_prefix(CUSTOM).map(str::to_string),
        _ => None,
    };
    let utility = match own {
        None => None,
        Some(name) => {
            options.remove("utility");
            let Some(maker) = customs.utilities.get(&name) else {
                let known: Vec<&str> = customs.utilities.keys().map(String::as_str).collect();
                let allowed = match known.is_empty() {
                    true => "names of functions that are given to the run (none is)".to_string(),
                    false => known.join(", "),
                };
                let place = place("congestion_control_options.utility");
                return Err(Error::value(place, format_args!("{name:?}"), allowed));
            };
            Some(maker.clone())
        }
    };
    let recipe = ackclock_pcc::control::build(&group.congestion_control, &options).map_err(|refusal| {
        let place = place(&format!("congestion_control_options.{}", refusal.option));
        Error::value(place, refusal.found, refusal.allowed)
    })?;
    Ok(PccConfig { recipe, utility })
}

/// What a workload over plain datagrams sends; absent = it needs a transport that delivers.
fn source(workload: &Workload) -> Option<SourceParams> {
    Some(match *workload {
        Workload::ConstantRate { rate_bps, payload_bytes } => {
            SourceParams { payload: payload_bytes, rate: Rate(rate_bps), on_off: None }
        }
        Workload::OnOff { rate_bps, payload_bytes, on_ns, off_ns, exponential } => {
            let periods = if exponential { Periods::Exponential } else { Periods::Fixed };
            let on_off = Some(OnOff { on: Span(on_ns), off: Span(off_ns), periods });
            SourceParams { payload: payload_bytes, rate: Rate(rate_bps), on_off }
        }
        Workload::Voice { interval_ns, payload_bytes } => {
            SourceParams::every(Span(interval_ns), payload_bytes)
        }
        _ => return None,
    })
}

/// Settings of both TCP hosts of the flows of `group`, the `index`-th.
#[allow(clippy::too_many_lines, reason = "one step for each switch of a stack")]
pub fn config(group: &FlowGroup, index: usize, customs: &Customs) -> Result<Config, Error> {
    let place = |field: &str| format!("flows[{index}].{field}");
    let mut config = Config::profile(&group.profile)
        .ok_or_else(|| Error::name(place("profile"), &group.profile, PROFILES))?;

    if let Some(name) = &group.recovery {
        config.rule = Rule::by_name(name)
            .ok_or_else(|| Error::name(place("recovery"), name, ackclock_cc::recovery::REGISTRY))?;
    }

    let stack = &group.stack;
    if let Some(name) = &stack.detection {
        config.detection = match name.as_str() {
            "dupthresh" => Detection::Dupthresh,
            "fack" => Detection::Fack,
            "rack" => Detection::Rack,
            _ => return Err(Error::value(place("stack.detection"), name, "dupthresh, fack, rack")),
        };
    }
    if let Some(name) = &stack.early_retransmit {
        config.early_retransmit = match name.as_str() {
            "off" => EarlyRetransmit::Off,
            "rfc5827" => EarlyRetransmit::Rfc5827,
            "delayed" => EarlyRetransmit::Delayed,
            _ => return Err(Error::value(place("stack.early_retransmit"), name, "off, rfc5827, delayed")),
        };
    }
    match stack.delayed_ack {
        Some(false) => config.delayed_ack = DelayedAck::Off,
        Some(true) if config.delayed_ack == DelayedAck::Off => config.delayed_ack = DelayedAck::Rfc,
        _ => {}
    }
    match (stack.quick_acks, config.delayed_ack) {
        (Some(false), DelayedAck::Linux) => config.delayed_ack = DelayedAck::Rfc,
        (Some(true), DelayedAck::Rfc) => config.delayed_ack = DelayedAck::Linux,
        _ => {}
    }
    set(&mut config.responder_delays_acks, stack.response_carries_ack);
    set(&mut config.count_acks, stack.count_acks);
    set(&mut config.reordering, stack.reordering);
    if let Some(smss) = stack.smss {
        if !(64..=65_000).contains(&smss) {
            return Err(Error::value(place("stack.smss"), smss, "64 to 65000 bytes"));
        }
        config.smss = smss;
    }
    if let Some(iw) = stack.initial_window {
        if iw == 0 {
            return Err(Error::value(place("stack.initial_window"), iw, "at least 1 segment"));
        }
        config.iw = iw;
    }
    if let Some(name) = &stack.fin_ignores_cwnd {
        config.fin_rule = match name.as_str() {
            "off" => FinRule::Waits,
            "alone" => FinRule::AloneLeaves,
            "with-data" => FinRule::WithDataLeaves,
            _ => return Err(Error::value(place("stack.fin_ignores_cwnd"), name, "off, alone, with-data")),
        };
    }
    set(&mut config.first_burst_cap, stack.first_burst_cap);
    set(&mut config.sack, stack.sack);
    set(&mut config.timestamps, stack.timestamps);
    set(&mut config.tlp, stack.tlp);
    set(&mut config.frto, stack.frto);
    set(&mut config.undo, stack.undo);
    set(&mut config.limited_transmit, stack.limited_transmit);
    set(&mut config.idle_restart, stack.idle_restart);
    set(&mut config.sack_compression, stack.sack_compression);
    set(&mut config.receive_buffer, stack.receive_buffer);
    if let Some(buffer) = stack.socket_buffer {
        // SO_RCVBUF: the buffer no longer grows by itself
        let window = buffer / 4 * config.window_quarters as u64;
        (config.receive_buffer, config.first_buffer) = (window, window);
        if config.whole_window {
            config.initial_rwnd = window.min(u32::MAX as u64) as u32;
        }
    }
    if let Some(segments) = stack.initial_receive_window {
        config.initial_rwnd = segments.saturating_mul(config.payload());
        config.receive_buffer = config.receive_buffer.max(config.initial_rwnd as u64);
    }
    set(&mut config.hz, stack.hz);
    set(&mut config.pacing.on, stack.pacing);
    set(&mut config.pacing.initial_window, stack.pace_initial_window);
    let tso = stack.tso.filter(|&on| on).map(|_| Tso::LINUX);
    let limit = stack.send_buffer.map(SendLimit::fixed);
    if tso.is_some() || limit.is_some() {
        config.buffers = Some(Buffers { limit, tso, ..Buffers::UNLIMITED });
    }
    set(&mut config.initial_rto, stack.initial_rto_ns.map(Span));
    set(&mut config.min_rto, stack.min_rto_ns.map(Span));
    let usual = config.controller.shared();
    let shared = Shared {
        beta_permille: stack.beta_permille.or(usual.beta_permille),
        hystart: stack.hystart.or(usual.hystart),
    };
    config.controller = controller(group, shared, index, customs)?;
    config.ecn = match stack.ecn.as_deref() {
        None if config.controller.needs().exact_ecn => EcnUse::Ask,
        None => config.ecn,
        Some("off") => EcnUse::Off,
        Some("accept") => EcnUse::Accept,
        Some("ask") => EcnUse::Ask,
        Some(name) => {
            return Err(Error::value(place("stack.ecn"), format_args!("{name:?}"), "off, accept, ask"))
        }
    };
    Ok(config)
}

/// Users' own parts, by name.
#[derive(Clone, Default)]
pub struct Customs {
    /// Congestion controllers.
    pub controllers: BTreeMap<String, Maker>,
    /// Utility functions of PCC.
    pub utilities: BTreeMap<String, UtilityMaker>,
}

impl Customs {
    /// None.
    pub fn new() -> Customs {
        Customs::default()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.controllers.is_empty() && self.utilities.is_empty()
    }
}

/// What the name of a user's own controller or utility function begins with in a scenario.
pub const CUSTOM: &str = "custom:";

fn options(group: &FlowGroup) -> Options {
    let value = |value: &OptionValue| match value {
        OptionValue::Flag(on) => Value::Flag(*on),
        OptionValue::Number(x) => Value::Number(*x),
        OptionValue::Text(text) => Value::Text(text.clone()),
    };
    group.congestion_control_options.iter().map(|(key, v)| (key.clone(), value(v))).collect()
}

/// The controller that the group names, with its options; what it does not know is refused.
fn controller(group: &FlowGroup, shared: Shared, index: usize, customs: &Customs) -> Result<Recipe, Error> {
    let place = |field: &str| format!("flows[{index}].{field}");
    let options = options(group);
    let Some(name) = group.congestion_control.strip_prefix(CUSTOM) else {
        return Recipe::new(&group.congestion_control, &options, shared).map_err(|refusal| {
            let place = match refusal.option.as_str() {
                "" => place("congestion_control"),
                option => place(&format!("congestion_control_options.{option}")),
            };
            Error::value(place, refusal.found, refusal.allowed)
        });
    };
    let Some(maker) = customs.controllers.get(name) else {
        let known: Vec<&str> = customs.controllers.keys().map(String::as_str).collect();
        let allowed = match known.is_empty() {
            true => "names of controllers that are given to the run (none is)".to_string(),
            false => known.join(", "),
        };
        return Err(Error::value(place("congestion_control"), format_args!("{name:?}"), allowed));
    };
    if let Some(option) = options.keys().next() {
        let place = place(&format!("congestion_control_options.{option}"));
        return Err(Error::value(place, "an option", "none for a controller of one's own"));
    }
    Ok(Recipe::own(maker.clone()))
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}
