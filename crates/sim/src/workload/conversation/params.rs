//! Conversation parameters.

use std::mem::size_of;
use std::rc::Rc;

use ackclock_core::rng::Family;
use ackclock_core::schema::{Described, Refusal, Takes, Unit, Value, COUNT, FLAG};
use ackclock_core::{table, Distribution, Span};
use ackclock_tcp::Config;

use super::super::needs::COPIES;
use super::super::transactions::Start;
use super::super::{Asks, Driver, Make, Params, Place, Site};
use super::{Conversation, Plan};
use crate::error::Error;
use crate::tables::tally::MessageRow;
use crate::transport::TransportConfig;

table! {
    /// A client at the receiving end and a server at the sending end exchange messages, step by step, over one
    /// connection.
    ///
    /// The client opens the connection, and closes it after the last step. A step begins when the previous step has
    /// arrived. Each message has a row in the table `conversations`. The values that a step draws depend only on the
    /// seed, the flow and the number of the step, so compared scenarios have the same conversation. Nagle's algorithm
    /// is on, the default of a socket; `stack.nodelay` turns it off.
    pub struct ConversationParams "conversation" {
        /// Steps of the conversation, in order.
        steps: Vec<Turn> = Takes::List(&Takes::Table(Turn::TABLE), 1);
        /// Number of rounds through the steps. Default: the steps are repeated until the flow stops.
        repeat: Option<u32> = COUNT;
        /// Time from the arrival of the last step of a round to the first step of the next round: a duration, or a
        /// distribution of durations.
        think: Distribution = Takes::DrawnOr(Unit::Duration, 0), Distribution::Constant { value: 0.0 };
        /// Number of concurrent conversations on the connection. Their messages share its byte stream, in the order of
        /// the writes.
        streams: u32 = Takes::Whole(1, 10_000), 1;
    }
    rules |params, rules| {
        for (at, step) in params.steps.iter().enumerate() {
            let key = |name: &str| format!("steps.{at}.{name}");
            match (&step.client, &step.server) {
                (Some(_), Some(_)) => {
                    let found = format!("{} beside client", rules.shown(&key("server")));
                    rules.refuse_as(&key("server"), found, "client or server: who writes");
                }
                (None, None) => rules.refuse_as(&format!("steps.{at}"), "nothing to write", "client or server: who writes"),
                _ => {}
            }
            if at == 0 && step.together {
                rules.refuse(&key("together"), "false for the first step");
            }
            if step.separate && step.corked {
                rules.refuse(&key("corked"), "false where each write is a message of its own");
            }
        }
    }
}

table! {
    /// A step of a conversation: one end writes a message, in one write or several.
    pub struct Turn "turn" {
        /// Writes of the client: a size, several writes of one size ("2 x 1 kB"), or a distribution of sizes.
        client: Option<Writes> = Takes::Writes;
        /// Writes of the server. A step has either `client` or `server`.
        server: Option<Writes> = Takes::Writes;
        /// Time from one write to the next: a duration, or a distribution of durations.
        gap: Distribution = Takes::DrawnOr(Unit::Duration, 0), Distribution::Constant { value: 0.0 };
        /// Time before the first write, for example the writer's processing time: a duration, or a distribution of
        /// durations.
        wait: Distribution = Takes::DrawnOr(Unit::Duration, 0), Distribution::Constant { value: 0.0 };
        /// Whether each write is a separate message.
        separate: bool = FLAG, false;
        /// Whether the step begins together with the previous step, instead of after its arrival.
        together: bool = FLAG, false;
        /// Whether TCP_CORK is set before the first write and cleared after the last one.
        corked: bool = FLAG, false;
    }
}

impl Turn {
    /// The writes of this step.
    pub fn said(&self) -> &Writes {
        self.server.as_ref().or(self.client.as_ref()).expect("invariant: judged with the scenario")
    }
}

/// Several writes, all of one size or with sizes drawn from one distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Writes {
    /// Number of writes.
    pub times: u32,
    /// Size of each write.
    pub each: Distribution,
}

impl Described for Writes {
    fn read(value: &Value) -> Result<Writes, Refusal> {
        let Value::Table(entries) = value else { return Err(Refusal::new(value, "a table")) };
        let times = value.get("times").map_or(Ok(1), u32::read).map_err(|refusal| refusal.within("times"))?;
        let rest = entries.iter().filter(|(key, _)| key != "times").cloned().collect();
        let each = Distribution::read(&Value::Table(rest))?;
        match times {
            0 => Err(Refusal::new("0", "at least 1").within("times")),
            _ => Ok(Writes { times, each }),
        }
    }

    fn write(&self) -> Value {
        let Value::Table(mut entries) = self.each.write() else { unreachable!("invariant: it has a kind") };
        if self.times > 1 {
            entries.push(("times".to_string(), Value::Whole(self.times.into())));
        }
        Value::Table(entries)
    }
}

impl ConversationParams {
    /// Number of messages in one round, and mean bytes written by the server and by the client.
    fn round(&self) -> (f64, [f64; 2]) {
        let mut messages = 0.0;
        let mut bytes = [0.0; 2];
        for step in &self.steps {
            let said = step.said();
            messages += if step.separate { said.times as f64 } else { 1.0 };
            bytes[step.writer()] += said.times as f64 * said.each.mean();
        }
        (messages, bytes)
    }

    /// Maximum number of rounds in `duration`, over all streams.
    fn rounds(&self, duration: Span) -> f64 {
        let waits =
            |step: &Turn| step.wait.mean() + step.gap.mean() * step.said().times.saturating_sub(1) as f64;
        let longest = self.steps.iter().map(waits).fold(0.0, f64::max);
        let by_time = duration.as_secs() / (self.think.mean() + longest).max(LEAST_ROUND_S) + 1.0;
        by_time.min(self.repeat.map_or(f64::INFINITY, f64::from)) * self.streams as f64
    }
}

impl Params for ConversationParams {
    fn may_read_slowly() -> bool {
        true
    }

    fn over_quic() -> bool {
        true
    }

    fn asks(&self, duration: Span) -> Asks {
        let (messages, bytes) = self.round();
        Asks::Packets(self.rounds(duration) * (messages + (bytes[0] + bytes[1]) / 1000.0) + 10.0)
    }

    fn rows(&self, duration: Span) -> f64 {
        self.rounds(duration) * self.round().0 * size_of::<MessageRow>() as f64 * COPIES
    }

    fn lay(&self, _: &Place, transport: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        let config = match transport {
            TransportConfig::Tcp(config) => config.clone(),
            // TCP settings are not used
            _ => Rc::new(Config::profile("rfc").expect("invariant: a profile of that name")),
        };
        let plan = Rc::new(Plan::new(self, Start { threshold: u64::MAX, config, tally: 0 }));
        Ok(Box::new(move |member, _| {
            let draws = Family::new(member.seed, &format!("conversation.{}", member.id));
            Driver::Conversation(Box::new(Conversation::new(plan.clone(), draws)))
        }))
    }
}

/// Our choice: minimum duration of a round on any path.
const LEAST_ROUND_S: f64 = 1e-4;
