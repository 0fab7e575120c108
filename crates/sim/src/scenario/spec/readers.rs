//! Rules for flows whose application reads slowly.

use ackclock_core::schema::words::quoted;
use ackclock_core::schema::Rules;
use ackclock_tcp::is_linux_today;

use super::{FlowGroup, Transport};
use crate::workload::{ReaderParams, SlowEnd, WorkloadConfig};

impl FlowGroup {
    /// Check that the flow's workload supports a slow reader.
    pub(super) fn judge_reader(&self, reader: &ReaderParams, needed: Transport, rules: &mut Rules) {
        let workload = quoted(self.workload.kind());
        if needed != Transport::Tcp {
            let found = format!("a reader over {}", needed.name());
            return rules.refuse_as("reader", found, "no reader: over TCP only, applications read slowly");
        }
        let kinds = WorkloadConfig::read_slowly();
        if !kinds.contains(&self.workload.kind()) {
            rules.refuse_as("workload.kind", format!("{workload} with a reader"), kinds.join(", "));
        } else if reader.end != SlowEnd::Receiver && !matches!(self.workload, WorkloadConfig::Conversation(_))
        {
            let found = format!("{} with a workload of kind {workload}", rules.shown("reader.end"));
            rules.refuse_as(
                "reader.end",
                found,
                "\"receiver\": only in a conversation the sender reads, too",
            );
        }
        if !is_linux_today(&self.profile) {
            let found =
                format!("a reader with the profile {}", rules.shown_or("profile", || quoted(&self.profile)));
            rules.refuse_as(
                "reader",
                found,
                "no reader, or a profile of Linux today, whose receive memory is modelled",
            );
        }
        let others = [
            ("host", self.host.is_some()),
            ("peer_host", self.peer_host.is_some()),
            ("stack.optimistic_acks", self.stack.optimistic_acks.is_some()),
        ];
        for (key, _) in others.into_iter().filter(|(_, given)| *given) {
            rules.refuse_as("reader", format!("a reader beside {key}"), format!("no reader, or no {key}"));
        }
    }
}
