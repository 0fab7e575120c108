//! Rules that relate keys of flows, network, hosts and record to each other. Messages use the scenario's key names:
//! `start`, not `start_ns`.

use std::collections::BTreeMap;

use ackclock_cc::controller::{Recipe, Shared, Value};
use ackclock_core::schema::words::{one_of, quoted};
use ackclock_core::schema::{words, Limit, Place, Refusal, Rules, Written};
use ackclock_core::Rate;
use ackclock_net::host::HostParams;
use ackclock_net::link::LinkParams;
use ackclock_net::{LossConfig, QueueConfig};

use super::read::MODERN;
use super::{FlowGroup, Network, Reverse, Scenario, Stack, Topology, Transport};
use crate::scenario::names::{
    is_pcc, is_quinn, is_stack, pcc_workloads, quinn_controllers, refused_by_quinn, CUSTOM,
};
use crate::workload::WorkloadConfig;

/// Maximum number of flows in a run, including population clients.
pub const MOST_FLOWS: u64 = 1_000_000;
/// Maximum number of samples of one kind in a run.
const MOST_INTERVALS: u64 = 1_000_000_000;
/// Sizes of a full IP packet, of the IPv4 and TCP headers with timestamps, and of an ACK without options, bytes.
const MTU: u64 = 1500;
const HEADERS: u64 = 52;
const SMALLEST_ACK: u64 = 40;
/// Name prefix of controllers that only a Linux kernel provides.
const KERNEL: &str = "kernel:";

/// Return all violated rules, in the order of the scenario's keys. `written` is the scenario as written by its
/// author, if known.
pub fn check(scenario: &Scenario, written: Option<&Written>) -> Vec<Refusal> {
    use ackclock_core::schema::Described;
    let mut broken = Vec::new();
    scenario.judge(&Place::whole(written), &mut broken);
    broken
}

impl FlowGroup {
    /// Number of flows in the group. A population has one flow per client.
    pub fn members(&self) -> u64 {
        self.count as u64 * self.workload.params().flows()
    }

    /// Check that transport, controller and workload fit together.
    pub(super) fn judge_group(&self, rules: &mut Rules) {
        self.judge_options(rules);
        let plain = self.workload.params().source().is_some();
        let pcc = !plain && is_pcc(&self.congestion_control);
        let quinn = !plain && is_quinn(&self.congestion_control);
        let stack = !plain && is_stack(&self.congestion_control);
        let needed = match (plain, pcc, quinn, stack) {
            (true, ..) => Transport::Udp,
            (_, true, ..) => Transport::Pcc,
            (_, _, true, _) => Transport::Quinn,
            (.., true) => Transport::Stack,
            _ => Transport::Tcp,
        };
        if let Some(reader) = &self.reader {
            self.judge_reader(reader, needed, rules);
        }
        let controller = rules.shown("congestion_control");
        let workload = quoted(self.workload.kind());
        if let Some(asked) = self.transport.filter(|&asked| asked != needed) {
            let own = [Transport::Pcc, Transport::Quinn, Transport::Stack];
            let beside = match own.contains(&needed) || own.contains(&asked) {
                true => format!("the controller {controller}"),
                false => format!("a workload of kind {workload}"),
            };
            let found = format!("{} with {beside}", rules.shown("transport"));
            let controllers: Vec<String> = quinn_controllers().iter().map(|(name, _)| quoted(name)).collect();
            let allowed = match asked {
                Transport::Quinn if needed == Transport::Tcp && !controllers.is_empty() => {
                    format!("a congestion_control of quinn: {}", controllers.join(", "))
                }
                Transport::Stack if needed == Transport::Tcp => {
                    "a congestion_control of a stack: \"stack:NAME:CONTROLLER\"".to_string()
                }
                _ => format!("\"{}\", or no transport", needed.name()),
            };
            rules.refuse_as("transport", found, allowed);
        }
        if pcc {
            self.judge_tcp_settings(&["recovery", "stack", "profile"], rules, |key| {
                let found = format!("a setting of TCP with the controller {controller}");
                (found, format!("no {key}: PCC is a transport of its own, over datagrams"))
            });
            let kinds = pcc_workloads();
            if !kinds.contains(&self.workload.kind()) {
                let found = format!("{workload} with the controller {controller}");
                rules.refuse_as("workload.kind", found, kinds.join(", "));
            }
            let payload = ackclock_pcc::Config::default().payload as u64;
            if let WorkloadConfig::Video(video) = &self.workload {
                if video.request > payload {
                    let found =
                        format!("{} with the controller {controller}", rules.shown("workload.request"));
                    let allowed = format_args!("at most {payload} bytes, a datagram's payload");
                    rules.refuse_as("workload.request", found, allowed);
                }
            }
        }
        if quinn || stack {
            let (of, initial) = match quinn {
                true => ("QUIC", "QUIC has congestion_control_options.initial_window"),
                false => ("it", "settings of the stack are congestion_control_options"),
            };
            self.judge_tcp_settings(&["recovery", "stack", "profile"], rules, |key| {
                let found = format!("a setting of TCP with the controller {controller}");
                (found, format!("no {key}: {of} is a transport of its own; its settings are congestion_control_options"))
            });
            if matches!(&self.workload, WorkloadConfig::Transactions(params) if !params.initial_window_mix.is_empty())
            {
                let found = format!("windows of TCP with the controller {controller}");
                let allowed = format!("none; {initial}");
                rules.refuse_as("workload.initial_window_mix", found, allowed);
            }
            let kinds = WorkloadConfig::carried_by_quic();
            if !kinds.contains(&self.workload.kind()) {
                let found = format!("{workload} with the controller {controller}");
                rules.refuse_as("workload.kind", found, kinds.join(", "));
            }
        }
        if plain {
            self.judge_tcp_settings(&["congestion_control", "recovery", "stack", "profile"], rules, |key| {
                let found = format!("a setting of TCP with a workload of kind {workload}");
                (found, format!("no {key}: plain datagrams know none"))
            });
        }
    }

    /// Reject TCP settings that would be ignored. If it is unknown which keys are set, settings that differ from the
    /// default count as set.
    fn judge_tcp_settings(&self, keys: &[&str], rules: &mut Rules, words: impl Fn(&str) -> (String, String)) {
        for &key in keys {
            let differs = match key {
                "congestion_control" => self.congestion_control != super::USUAL_CONTROLLER,
                "recovery" => self.recovery.is_some(),
                "stack" => self.stack != Stack::default(),
                _ => self.profile != super::USUAL_PROFILE,
            };
            if rules.given(key).unwrap_or(differs) {
                let (found, allowed) = words(key);
                rules.refuse_as(key, found, allowed);
            }
        }
    }

    /// Check that the controller accepts its options.
    fn judge_options(&self, rules: &mut Rules) {
        let (name, mut options) = (self.congestion_control.as_str(), self.congestion_control_options.clone());
        if [CUSTOM, KERNEL].iter().any(|own| name.starts_with(own)) {
            if !options.is_empty() {
                let found = format!("options of {}", rules.shown("congestion_control"));
                let allowed = "none for a controller of one's own; give them to its class";
                rules.refuse_as("congestion_control_options", found, allowed);
            }
            return;
        }
        let refused = if is_pcc(name) {
            let own = matches!(options.get("utility"), Some(Value::Text(text)) if text.starts_with(CUSTOM));
            if own {
                options.remove("utility");
            }
            ackclock_pcc::control::build(name, &options).err()
        } else if is_stack(name) {
            None // the library checks them at run time
        } else if is_quinn(name) {
            refused_by_quinn(name, &options)
        } else {
            Recipe::new(name, &options, Shared::default()).err()
        };
        if let Some(Refusal { key, found, allowed }) = refused {
            match key.is_empty() {
                true => rules.refuse_as("congestion_control", found, allowed),
                false => rules.refuse_as(&format!("congestion_control_options.{key}"), found, allowed),
            }
        }
    }
}

impl Network {
    /// Check that the keys match the topology, and that the names in a graph exist.
    pub(super) fn judge_shape(&self, rules: &mut Rules) {
        let topology = rules.shown("topology");
        let graph = self.topology == Topology::Graph;
        let usual = [
            ("access", self.access.is_some()),
            ("access_list", !self.access_list.is_empty()),
            ("bottleneck", self.bottleneck.is_some()),
            ("egress", self.egress.is_some()),
            ("reverse", self.reverse != Reverse::NONE),
        ];
        let listed = [("links", !self.links.is_empty()), ("paths", !self.paths.is_empty())];
        let (others, allowed) = match graph {
            true => (&usual[..], "links and paths"),
            false => (&listed[..], "access, bottleneck, egress and reverse"),
        };
        for (key, _) in others.iter().filter(|(_, given)| *given) {
            rules.refuse_as(key, format_args!("a value with topology {topology}"), allowed);
        }
        if graph {
            return self.judge_graph(rules);
        }
        match &self.bottleneck {
            None => {
                rules.refuse_as(
                    "bottleneck",
                    "nothing",
                    format_args!("a link; topology {topology} needs it"),
                );
            }
            // netem without a rate: the limit bounds the number of packets per delay
            Some(link) if matches!(link.queue, Some(QueueConfig::NetemLimit(_))) && link.delay.0 > 0 => {}
            Some(link) if link.nominal_rate() == Rate::INFINITE => {
                rules.refuse_as("bottleneck.rate", "nothing", "a rate with its unit, e.g. \"1.2 Mbit/s\"");
            }
            Some(_) => {}
        }
        let wishbone = self.topology == Topology::Wishbone;
        if wishbone && self.access_list.is_empty() {
            let allowed = "one or more links; topology \"wishbone\" needs them";
            rules.refuse_as("access_list", "nothing", allowed);
        }
        if wishbone && self.access.is_some() {
            rules.refuse_as("access", "a value with topology \"wishbone\"", "access_list instead");
        }
        if !wishbone && !self.access_list.is_empty() {
            let found = format!("a value with topology {topology}");
            rules.refuse_as("access_list", found, "topology \"wishbone\"");
        }
    }

    fn judge_graph(&self, rules: &mut Rules) {
        let links: Vec<&str> = self.links.iter().map(|link| link.name.as_str()).collect();
        let paths: Vec<&str> = self.paths.iter().map(|path| path.name.as_str()).collect();
        for (key, names) in [("links", &links), ("paths", &paths)] {
            if names.is_empty() {
                rules.refuse_as(key, "nothing", "one or more; topology \"graph\" needs them");
            }
            for (i, name) in names.iter().enumerate() {
                if names[..i].contains(name) {
                    let found = format!("{} twice", quoted(name));
                    rules.refuse_as(&format!("{key}.{i}.name"), found, "a name of its own");
                }
            }
        }
        // generated backward links may be part of a return path, but are not suggested
        let own: Vec<&str> = links.iter().copied().filter(|name| !name.ends_with(".backward")).collect();
        for (i, path) in self.paths.iter().enumerate() {
            if path.forward.is_empty() {
                rules.refuse_as(&format!("paths.{i}.forward"), "no links", "names of one or more links");
            }
            for (way, listed) in [("forward", &path.forward), ("backward", &path.backward)] {
                for (j, name) in listed.iter().enumerate() {
                    let key = format!("paths.{i}.{way}.{j}");
                    if !links.contains(&name.as_str()) {
                        rules.refuse_as(&key, quoted(name), one_of(name, &own));
                    } else if listed[..j].contains(name) {
                        rules.refuse_as(&key, format_args!("{} twice", quoted(name)), "each link once");
                    }
                }
            }
        }
    }
}

/// A link, its key, and whether it is certain to carry data rather than ACKs.
type Keyed<'a> = (String, &'a LinkParams, bool);

impl Scenario {
    /// Check the rules that concern the whole scenario.
    pub(super) fn judge_whole(&self, rules: &mut Rules) {
        self.judge_times(rules);
        self.judge_paths(rules);
        self.judge_hosts(rules);
        self.judge_destinations(rules);
        self.judge_size(rules);
        self.judge_scripts(rules);
        self.judge_byte_limits(rules);
    }

    fn judge_times(&self, rules: &mut Rules) {
        let end = self.duration_ns;
        let duration = rules.shown_or("duration", || quoted(&words::duration(end)));
        for (i, group) in self.flows.iter().enumerate() {
            let time = |rules: &Rules, key: &str, ns: u64| {
                rules.shown_or(&format!("flows.{i}.{key}"), || quoted(&words::duration(ns)))
            };
            // drawn start times may lie beyond the end of the run; then fewer flows start
            let start = group.start_ns;
            let last = start as u128 + group.stagger_ns as u128 * (group.count.max(1) - 1) as u128;
            let late = last >= end as u128;
            if late && start < end {
                let stagger = time(rules, "stagger", group.stagger_ns);
                let found =
                    format!("{stagger}, which starts the last of {} flows after the end", group.count);
                let allowed = format!("starts below the duration of {duration}");
                rules.refuse_as(&format!("flows.{i}.stagger"), found, allowed);
            } else if late {
                let found = time(rules, "start", start);
                let allowed = format!("a time below the duration of {duration}");
                rules.refuse_as(&format!("flows.{i}.start"), found, allowed);
            }
            if let Some(stop) = group.stop_ns.filter(|&stop| stop as u128 <= last) {
                let found = time(rules, "stop", stop);
                let allowed = "a time after the start of the group's last flow";
                rules.refuse_as(&format!("flows.{i}.stop"), found, allowed);
            }
        }
        // with a longer warm-up, nothing would be left to measure
        let warm_up = self.record.warm_up_ns;
        if warm_up >= end {
            let found = rules.shown_or("record.warm_up", || quoted(&words::duration(warm_up)));
            let allowed = format!("a time below the duration of {duration}");
            rules.refuse_as("record.warm_up", found, allowed);
        }
    }

    fn judge_paths(&self, rules: &mut Rules) {
        let paths: Vec<&str> = self.network.paths.iter().map(|path| path.name.as_str()).collect();
        for (i, group) in self.flows.iter().enumerate() {
            let Some(path) = group.path.as_deref().filter(|path| !paths.contains(path)) else { continue };
            let allowed = match paths.is_empty() {
                true => "no path unless the topology is \"graph\"".to_string(),
                false => one_of(path, &paths),
            };
            rules.refuse_as(&format!("flows.{i}.path"), quoted(path), allowed);
        }
    }

    fn judge_hosts(&self, rules: &mut Rules) {
        if rules.text("hosts") == Some(MODERN) {
            // the preset assigns the hosts, so a group must not name any
            for i in 0..self.flows.len() {
                for key in ["host", "peer_host"] {
                    let key = format!("flows.{i}.{key}");
                    if let Some(name) = rules.text(&key).map(quoted) {
                        rules.refuse_as(&key, name, "no host; the scenario lists none");
                    }
                }
            }
            return;
        }
        let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                let found = format!("{} twice", quoted(name));
                rules.refuse_as(&format!("hosts.{i}.name"), found, "a name of its own");
            }
        }
        let emulates = |(_, host): &(usize, &HostParams)| host.emulates_links;
        if let Some((second, _)) = self.hosts.iter().enumerate().filter(emulates).nth(1) {
            rules.refuse_as(
                &format!("hosts.{second}.emulates_links"),
                "true for a second host",
                "one such host",
            );
        }
        for (i, group) in self.flows.iter().enumerate() {
            for (key, name) in [("host", &group.host), ("peer_host", &group.peer_host)] {
                let Some(name) = name.as_deref().filter(|name| !names.contains(name)) else { continue };
                let allowed = match names.is_empty() {
                    true => "no host; the scenario lists none".to_string(),
                    false => one_of(name, &names),
                };
                rules.refuse_as(&format!("flows.{i}.{key}"), quoted(name), allowed);
            }
        }
    }

    /// Check that groups that share a destination cache agree on its initial content.
    fn judge_destinations(&self, rules: &mut Rules) {
        let mut first = BTreeMap::new();
        for (i, group) in self.flows.iter().enumerate() {
            let Some(cache) = &group.stack.metrics_cache else { continue };
            let held = (cache.ssthresh, cache.cwnd);
            if *first.entry(&cache.destination).or_insert(held) != held {
                let destination = quoted(&cache.destination);
                let found = format!("another ssthresh or cwnd for {destination} than in an earlier group");
                let allowed = "the same, or another destination";
                rules.refuse_as(&format!("flows.{i}.stack.metrics_cache"), found, allowed);
            }
        }
    }

    /// Check limits that hold regardless of the memory limit. Anything within them can be estimated quickly and
    /// exactly.
    fn judge_size(&self, rules: &mut Rules) {
        let flows = self.flow_count();
        if flows > MOST_FLOWS {
            let allowed = format_args!("at most {MOST_FLOWS}, clients included");
            rules.refuse_as("flows", format_args!("{flows} flows in all"), allowed);
        }
        let record = &self.record;
        let intervals = [
            ("sample_interval", record.sample_interval_ns),
            ("queue_interval", record.queue_interval_ns),
            ("goodput_interval", record.goodput_interval_ns),
            ("limits_interval", record.limits_interval_ns),
        ];
        for (key, interval) in intervals {
            let key = format!("record.{key}");
            let times = self.duration_ns.checked_div(interval).unwrap_or(0);
            if times > MOST_INTERVALS {
                let interval = rules.shown_or(&key, || quoted(&words::duration(interval)));
                let duration = rules.shown_or("duration", || quoted(&words::duration(self.duration_ns)));
                let found = format!("{interval}, {times} times in {duration}");
                let allowed =
                    format!("an interval that fits at most {MOST_INTERVALS} times into the duration");
                rules.refuse_as(&key, found, allowed);
            }
        }
    }

    /// Reject scripted losses for flows that do not exist, which would silently drop nothing.
    fn judge_scripts(&self, rules: &mut Rules) {
        let flows = self.flow_count();
        for (key, link, _) in self.links() {
            let Some(LossConfig::Scripted(scripted)) = &link.loss else { continue };
            for (i, drop) in scripted.drops.iter().enumerate().filter(|(_, drop)| drop.flow as u64 >= flows) {
                let allowed = match flows {
                    1 => "0, the only flow".to_string(),
                    _ => format!("0 to {}, the numbers of the flows", flows - 1),
                };
                rules.refuse_as(&format!("{key}.loss.drops.{i}.flow"), drop.flow, allowed);
            }
        }
    }

    /// Reject queues that cannot hold a single packet.
    fn judge_byte_limits(&self, rules: &mut Rules) {
        let full = |group: &FlowGroup| group.stack.smss.map_or(MTU, |smss| smss as u64 + HEADERS);
        let full = self.flows.iter().map(full).min().unwrap_or(MTU);
        for (key, link, data) in self.links() {
            let Some(QueueConfig::DropTail(queue)) = &link.queue else { continue };
            let Some(Limit::Bytes(limit)) = queue.limit else { continue };
            let (least, packet) = if data { (full, "one full packet") } else { (SMALLEST_ACK, "one ACK") };
            if limit < least {
                let key = format!("{key}.queue.limit");
                let found = rules.shown_or(&key, || quoted(&words::size(limit)));
                rules.refuse_as(&key, found, format_args!("at least {least} bytes ({packet})"));
            }
        }
    }

    /// Number of flows in the run. Each client of a population is a flow.
    pub fn flow_count(&self) -> u64 {
        self.flows.iter().map(FlowGroup::members).sum()
    }

    /// All links, each with its key in the scenario.
    fn links(&self) -> Vec<Keyed<'_>> {
        let net = &self.network;
        let one = |key: &str, link, data| Option::map(link, |link| (format!("network.{key}"), link, data));
        let listed = net.access_list.iter().enumerate();
        let in_graph = net.links.iter().enumerate().map(|(i, named)| {
            let data = net.paths.iter().any(|path| path.forward.contains(&named.name));
            (format!("network.links.{i}"), &named.link.0, data)
        });
        one("access", net.access.as_ref(), true)
            .into_iter()
            .chain(listed.map(|(i, link)| (format!("network.access_list.{i}"), link, true)))
            .chain(one("bottleneck", net.bottleneck.as_ref(), true))
            .chain(one("egress", net.egress.as_ref(), true))
            .chain(one("reverse.access", net.reverse.access.as_ref(), false))
            .chain(one("reverse.bottleneck", net.reverse.bottleneck.as_ref(), false))
            .chain(one("reverse.egress", net.reverse.egress.as_ref(), false))
            .chain(in_graph)
            .collect()
    }
}
