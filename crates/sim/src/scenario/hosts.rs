//! Settings of a flow group's hosts: the profile, with the scenario's overrides.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use ackclock_cc::controller::{Maker, Recipe, Shared, Value};
use ackclock_cc::Rule;
use ackclock_core::foreign::Maker as Ends;
use ackclock_core::options::Options;
use ackclock_core::schema::Refusal;
use ackclock_net::host::HostParams;
use ackclock_tcp::{is_linux_today, Config, EcnUse, SendLimit, PROFILES, WRITE};

use crate::error::Error;
use crate::scenario::names::{is_foreign, is_pcc, CUSTOM, STACK};
use crate::scenario::spec::FlowGroup;
use crate::transport::{ForeignConfig, Freight, PccConfig, TransportConfig, UtilityMaker};
use crate::workload::WorkloadConfig;

/// Return the transport for the flows of `group` (group number `index`), with its hosts' settings.
pub fn transport(
    group: &FlowGroup,
    index: usize,
    hosts: &[HostParams],
    customs: &Customs,
    freight: &Freight,
) -> Result<TransportConfig, Error> {
    if let (true, None) = (is_foreign(&group.congestion_control), group.workload.params().source()) {
        let maker = foreign_maker(&group.congestion_control, &group.congestion_control_options);
        let maker = maker.map_err(|Refusal { key, found, allowed }| {
            let place = match key.as_str() {
                "" => "congestion_control".to_string(),
                "*" => "congestion_control_options".to_string(), // the library does not report which option it rejects
                key => format!("congestion_control_options.{key}"),
            };
            Error::refused(format!("flows.{index}.{place}"), Refusal::new(found, allowed))
        })?;
        return Ok(TransportConfig::Foreign(Rc::new(ForeignConfig::new(maker, freight))));
    }
    Ok(match group.workload.params().source() {
        Some(source) => TransportConfig::Udp(Rc::new(source)),
        None if is_pcc(&group.congestion_control) => {
            TransportConfig::Pcc(Rc::new(pcc(group, index, customs)?))
        }
        None => TransportConfig::Tcp(Rc::new(config(group, index, hosts, customs)?)),
    })
}

/// Return a factory for the ends of a flow on an external stack, or the error in its controller or options.
fn foreign_maker(name: &str, options: &Options) -> Result<Arc<dyn Ends>, Refusal> {
    match name.strip_prefix(STACK) {
        #[cfg(feature = "stack")]
        Some(rest) => ackclock_stack::build(rest, options),
        #[cfg(not(feature = "stack"))]
        Some(_) => Err(Refusal::new(format_args!("{name:?}"), "in a build with stacks of others, not here")),
        #[cfg(feature = "quinn")]
        None => ackclock_quinn::build(name, options).map(|recipe| Arc::new(recipe) as Arc<dyn Ends>),
        #[cfg(not(feature = "quinn"))]
        None => {
            let _ = options;
            Err(Refusal::new(format_args!("{name:?}"), "in a build with QUIC, not here"))
        }
    }
}

/// PCC group settings.
fn pcc(group: &FlowGroup, index: usize, customs: &Customs) -> Result<PccConfig, Error> {
    let place = |field: &str| format!("flows.{index}.{field}");
    let mut options = group.congestion_control_options.clone();
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
    let recipe = ackclock_pcc::control::build(&group.congestion_control, &options)
        .map_err(|refusal| Error::refused(place("congestion_control_options"), refusal))?;
    Ok(PccConfig { recipe, utility })
}

/// Settings of both TCP hosts of the flows of `group` (group number `index`).
fn config(group: &FlowGroup, index: usize, hosts: &[HostParams], customs: &Customs) -> Result<Config, Error> {
    let place = |field: &str| format!("flows.{index}.{field}");
    let mut config = Config::profile(&group.profile)
        .ok_or_else(|| Error::name(place("profile"), &group.profile, PROFILES))?;

    if let Some(name) = &group.recovery {
        config.loss.rule = Rule::by_name(name)
            .ok_or_else(|| Error::name(place("recovery"), name, ackclock_cc::recovery::REGISTRY))?;
    }

    let stack = &group.stack;
    stack.apply(&mut config);
    let today = is_linux_today(&group.profile);
    if today && stack.initial_receive_window.is_none() && stack.socket_buffer.is_none() {
        config.offer_first_buffer();
    }
    if let (true, Some(segments)) = (today, stack.initial_receive_window) {
        config.offer_first_segments(segments, stack.receive_buffer);
    }
    let streams = matches!(
        group.workload,
        WorkloadConfig::Bulk(_)
            | WorkloadConfig::Transfer(_)
            | WorkloadConfig::Throttled(_)
            | WorkloadConfig::Writes(_)
            | WorkloadConfig::Fetch(_)
            | WorkloadConfig::Transactions(_)
            | WorkloadConfig::Population(_)
            | WorkloadConfig::Conversation(_)
    );
    if let Some(buffers) = config.sending.buffers.as_mut().filter(|_| today && streams) {
        buffers.limit.get_or_insert(SendLimit { bytes: FIRST_SEND_BUFFER, most: GREATEST_SEND_BUFFER });
        buffers.call_bytes = WRITE;
    } else if today && streams {
        config.sending.writer = Some(SendLimit { bytes: FIRST_SEND_BUFFER, most: GREATEST_SEND_BUFFER });
    }
    let own = [&group.host, &group.peer_host];
    let mut described = hosts.iter().filter(|host| own.into_iter().flatten().any(|name| *name == host.name));
    let large = config.sending.buffers.as_ref().is_some_and(|buffers| buffers.tso.is_some());
    config.whole_packets = large && !described.clone().any(HostParams::cuts);
    // a described host may do other work between two segments that are written one by one
    config.sending.fills &= own.into_iter().all(Option::is_none);
    let described = described.any(HostParams::runs_processes);
    config.application_waits = today && !described;
    let usual = config.sending.controller.shared();
    let permille = |share: f64| libm::rint(share * 1000.0) as u32;
    let shared = Shared {
        beta_permille: stack.beta.map(permille).or(usual.beta_permille),
        ecn_beta_permille: stack.ecn_beta.map(permille).or(usual.ecn_beta_permille),
        counts_acks: config.sending.count_acks,
    };
    config.sending.controller = controller(group, shared, index, customs)?;
    let needs = config.sending.controller.needs();
    if let (Some(rule), true) = (&stack.slow_start, needs.control || needs.own_start) {
        let found = format_args!("{:?} with the controller {}", rule.kind(), group.congestion_control);
        let allowed = "no slow_start: this controller has a start of its own";
        return Err(Error::value(place("stack.slow_start"), found, allowed));
    }
    config.ecn = match stack.ecn {
        Some(ecn) => ecn,
        None if config.sending.controller.needs().l4s => EcnUse::AccEcn,
        None if config.sending.controller.needs().exact_ecn => EcnUse::Ask,
        None => config.ecn,
    };
    config.sending.ect1 = stack.ect1.unwrap_or(config.sending.controller.needs().l4s);
    Ok(config)
}

/// A user's own controllers and utility functions, by name.
#[derive(Clone, Default)]
pub struct Customs {
    /// Congestion controllers.
    pub controllers: BTreeMap<String, Maker>,
    /// PCC utility functions.
    pub utilities: BTreeMap<String, UtilityMaker>,
}

impl Customs {
    /// Return an empty set.
    pub fn new() -> Customs {
        Customs::default()
    }

    /// Whether there are neither controllers nor utility functions.
    pub fn is_empty(&self) -> bool {
        self.controllers.is_empty() && self.utilities.is_empty()
    }
}

/// Linux `tcp_wmem`, bytes: the initial size, and the maximum set by the linux backend.
const FIRST_SEND_BUFFER: u64 = 16_384;
const GREATEST_SEND_BUFFER: u64 = 64 << 20;

/// Return the controller named by the group, with its options. Unknown options are rejected.
fn controller(group: &FlowGroup, shared: Shared, index: usize, customs: &Customs) -> Result<Recipe, Error> {
    let place = |field: &str| format!("flows.{index}.{field}");
    let options = &group.congestion_control_options;
    let Some(name) = group.congestion_control.strip_prefix(CUSTOM) else {
        return Recipe::new(&group.congestion_control, options, shared).map_err(|refusal| {
            let key =
                if refusal.key.is_empty() { "congestion_control" } else { "congestion_control_options" };
            Error::refused(place(key), refusal)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(workload: &str, stack: &str) -> Config {
        let text = format!(
            r#"{{"duration_ns": 1000000000, "network": {{"topology": "chain", "bottleneck": {{"rate": 1000000, "delay": 5}}}},
                "flows": [{{"profile": "linux-6", "congestion_control": "cubic", "workload": {{{workload}}}, "stack": {{{stack}}}}}]}}"#
        );
        let scenario = crate::parse(&text).expect("a scenario");
        config(&scenario.flows[0], 0, &scenario.hosts, &Customs::new()).expect("settings")
    }

    #[test]
    fn whoever_writes_to_tcp_has_a_send_buffer() {
        let transfer = r#""kind": "transfer", "bytes": 10000"#;
        let throttled = r#""kind": "throttled", "rate": 1000000, "chunk": 65536"#;
        let fetch = r#""kind": "fetch", "bytes": 10000"#;
        for workload in [r#""kind": "bulk""#, transfer, throttled, fetch] {
            assert!(settings(workload, "").sending.writer.is_some(), "{workload}");
        }
    }

    #[test]
    fn the_first_window_is_whole_segments_of_64_kib_unless_it_was_set() {
        let first = |stack| settings(r#""kind": "bulk""#, stack).receiving.initial_rwnd;
        assert_eq!((first(""), first(r#""timestamps": false"#)), (65_160, 64_240));
        assert_eq!((first(r#""smss": 1000"#), first(r#""smss": 1024"#)), (65_000, 65_535));
        assert_eq!(first(r#""initial_receive_window": 10"#), 14_480);
        let told = settings(r#""kind": "bulk""#, r#""initial_receive_window": 10"#);
        assert_eq!(told.receiving.initiator_rwnd, 14_600, "before it knows of timestamps");
        for (segments, bytes, buffer, told) in [
            (46, 76_700, 61_360, (60_816, 61_320)),
            (46, 200_000, 66_608, (66_608, 65_700)),
            (10, 76_700, 61_360, (14_480, 14_600)),
        ] {
            let stack = format!(r#""initial_receive_window": {segments}, "receive_buffer": {bytes}"#);
            let config = settings(r#""kind": "bulk""#, &stack).receiving;
            assert_eq!((config.first_buffer, config.receive_buffer), (buffer, bytes), "{stack}");
            assert_eq!((config.initial_rwnd, config.initiator_rwnd), told, "{stack}");
        }
    }
}
