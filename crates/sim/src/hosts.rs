//! From a flow group to the settings of its hosts: the profile, and what the scenario changes in it.

use ackclock_core::Span;
use ackclock_tcp::{Config, DelayedAck, Detection, EarlyRetransmit, PROFILES};

use crate::error::Error;
use crate::spec::FlowGroup;

/// Settings of both hosts of the flows of `group`, the `index`-th.
pub fn config(group: &FlowGroup, index: usize) -> Result<Config, Error> {
    let place = |field: &str| format!("flows[{index}].{field}");
    let mut config = Config::profile(&group.profile)
        .ok_or_else(|| Error::name(place("profile"), &group.profile, PROFILES))?;

    config.congestion_control =
        known(place("congestion_control"), &group.congestion_control, ackclock_cc::controller::REGISTRY)?;
    if let Some(recovery) = &group.recovery {
        config.recovery = known(place("recovery"), recovery, ackclock_cc::recovery::REGISTRY)?;
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
    set(&mut config.sack, stack.sack);
    set(&mut config.timestamps, stack.timestamps);
    set(&mut config.tlp, stack.tlp);
    set(&mut config.frto, stack.frto);
    set(&mut config.undo, stack.undo);
    set(&mut config.limited_transmit, stack.limited_transmit);
    set(&mut config.idle_restart, stack.idle_restart);
    set(&mut config.sack_compression, stack.sack_compression);
    set(&mut config.receive_buffer, stack.receive_buffer);
    set(&mut config.hz, stack.hz);
    set(&mut config.pacing.on, stack.pacing);
    set(&mut config.pacing.initial_window, stack.pace_initial_window);
    set(&mut config.initial_rto, stack.initial_rto_ns.map(Span));
    set(&mut config.min_rto, stack.min_rto_ns.map(Span));
    config.beta_permille = stack.beta_permille.or(config.beta_permille);
    config.hystart = stack.hystart.or(config.hystart);
    Ok(config)
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn known(place: String, name: &str, registry: &[(&str, &str)]) -> Result<String, Error> {
    if registry.iter().any(|(known, _)| *known == name) {
        return Ok(name.to_string());
    }
    Err(Error::name(place, name, registry))
}
