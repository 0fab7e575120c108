//! One end of a flow on a stack in a library.
//!
//! Length: every call of the simulator, and what is held against the answers.

use std::fmt::Write;
use std::sync::Arc;

use ackclock_core::datagram::{Datagram, DatagramEndpoint, Opaque};
use ackclock_core::foreign::{hash, Accounts, Carried, Failure, Foreign, Maker, Row, Sample, Stats};
use ackclock_core::options::{Options, Value};
use ackclock_core::packet::Ecn;
use ackclock_core::schema::Refusal;
use ackclock_core::{Span, Stream, Time};

use crate::abi::{Told, NONE};
use crate::audit::Audit;
use crate::library::{loaded, Instance, Library, State};

/// Configuration of both ends of a flow.
#[derive(Clone)]
pub struct Recipe {
    library: &'static Library,
    controller: String,
    options: Arc<str>,
    stream: String,
    window: u32,
}

/// Return the recipe for `STACK:CONTROLLER`, or an error (under the key "*" if it concerns the options). A trial end
/// is opened to validate the options.
pub fn build(name: &str, options: &Options) -> Result<Arc<dyn Maker>, Refusal> {
    let (stack, controller) = name.split_once(':').unwrap_or((name, ""));
    let there = loaded();
    let found = format!("{:?}", format!("stack:{name}"));
    let Some(library) = there.iter().find(|library| library.name == stack) else {
        let names =
            there.iter().flat_map(|l| l.controllers.iter().map(|c| format!("\"stack:{}:{c}\"", l.name)));
        let names: Vec<String> = names.collect();
        let allowed = match names.is_empty() {
            true => "stacks that are given to the command with --stack FILE (none is)".to_string(),
            false => names.join(", "),
        };
        return Err(Refusal::new(found, allowed));
    };
    if !library.controllers.iter().any(|known| known == controller) {
        let known: Vec<String> =
            library.controllers.iter().map(|known| format!("\"stack:{stack}:{known}\"")).collect();
        return Err(Refusal::new(found, known.join(", ")));
    }
    let options = json(options);
    let trial = Instance::open(library, false, controller, &options, &[0; 32], 0).map_err(|reason| {
        Refusal::new(&options, format_args!("what {stack} {} takes: {reason}", library.version)).within("*")
    })?;
    let told = trial.sample();
    let window = match (told.window, told.mtu) {
        (NONE, _) | (_, NONE | 0) => 0,
        (window, mtu) => u32::try_from(window / mtu).unwrap_or(u32::MAX),
    };
    Ok(Arc::new(Recipe {
        library,
        controller: controller.to_string(),
        options: options.into(),
        stream: format!("stack.{stack}"),
        window,
    }))
}

/// Format options as a JSON object.
fn json(options: &Options) -> String {
    let mut text = String::from("{");
    for (key, value) in options {
        if text.len() > 1 {
            text.push(',');
        }
        let _ = write!(text, "{}:", quoted(key));
        let _ = match value {
            Value::Text(words) => write!(text, "{}", quoted(words)),
            other => write!(text, "{other}"),
        };
    }
    text.push('}');
    text
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Draw 32 bytes.
fn seed(stream: &mut Stream) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&stream.next_u64().to_le_bytes()));
    seed
}

impl Maker for Recipe {
    fn stack(&self) -> &str {
        &self.stream
    }

    fn initial_window(&self) -> u32 {
        self.window
    }

    fn end(&self, opens: bool, _: bool, mut stream: Stream, carried: &Carried) -> Box<dyn Foreign> {
        Box::new(End {
            seed: seed(&mut stream),
            recipe: self.clone(),
            opens,
            carried: carried.clone(),
            instance: None,
            scratch: Vec::new(),
            audit: Audit::new(0),
            waiting: 0,
            written: 0,
            forever: false,
            endless: false,
            closes: false,
            state: State::Opening,
            is_established: false,
            failure: None,
            deadline: Time::NEVER,
            in_vain: 0,
            told: Told::NOTHING,
            number: 0,
            pieces: 0,
            bytes: 0,
            reductions: 0,
            rtts: (0, 0),
            trace: None,
            lost_in_trace: 0,
        })
    }
}

/// One end of a flow.
struct End {
    recipe: Recipe,
    opens: bool,
    seed: [u8; 32],
    carried: Carried,
    /// Instance of the library, present once the connection is opened or the first datagram has arrived.
    instance: Option<Instance>,
    audit: Audit,
    scratch: Vec<u8>,
    /// Bytes written before the instance was created.
    waiting: u64,
    written: u64,
    forever: bool,
    /// Whether the amount written is unknown, because the application writes endlessly or has stopped.
    endless: bool,
    closes: bool,
    state: State,
    is_established: bool,
    failure: Option<Failure>,
    deadline: Time,
    /// Number of successive timer calls after which the deadline was still in the past.
    in_vain: u32,
    told: Told,
    /// Datagrams sent, datagrams with data, and total bytes.
    number: u64,
    pieces: u64,
    bytes: u64,
    reductions: u64,
    /// Sum of the RTT samples, ns, and number of samples.
    rtts: (u128, u64),
    trace: Option<Vec<Row>>,
    /// Losses reported in trace rows so far.
    lost_in_trace: u64,
}

impl End {
    fn open(&mut self, now: Time) {
        let Recipe { library, controller, options, .. } = &self.recipe;
        self.audit = Audit::new(now.0);
        match Instance::open(library, !self.opens, controller, options, &self.seed, now.0) {
            Ok(mut instance) => {
                if self.waiting > 0 {
                    instance.write(now.0, std::mem::take(&mut self.waiting));
                }
                if self.forever {
                    instance.write(now.0, NONE);
                }
                if self.closes {
                    instance.finish(now.0);
                }
                self.instance = Some(instance);
            }
            Err(_) => self.failure = Some(Failure::Refused),
        }
        self.look(now, false);
    }

    /// Fail because of an impossible report from the library; this ends the run.
    #[cold]
    fn accuse(&mut self, now: Time, said: &str) {
        let library = self.recipe.library;
        self.carried.accuse(format!("stack {} at {:.6} s: {said}", library.name, now.as_secs()));
        self.failure.get_or_insert(Failure::Error);
    }

    /// Read and audit the end's reports after a call. `settled`: nothing more is sent now.
    fn look(&mut self, now: Time, settled: bool) {
        let Some(instance) = &self.instance else { return };
        let state = instance.state();
        self.is_established |= state != State::Opening && !matches!(state, State::Failed(_));
        if let State::Failed(reason) = &state {
            self.failure.get_or_insert(Failure::of(reason));
        }
        self.state = state;
        let window = known(self.told.window);
        self.told = instance.sample();
        let held = self.audit.look(instance, &self.state, &self.told, now.0, settled);
        if let Err(said) = held {
            self.accuse(now, &said);
        }
        self.reductions += u64::from(known(self.told.window) < window);
        self.set_deadline(now);
    }

    /// Set the deadline. One that has already passed fires again after a pause, which doubles each time, so that a
    /// stack with a coarse clock does not loop at one instant.
    fn set_deadline(&mut self, now: Time) {
        let asked = match &self.instance {
            Some(instance) if self.failure.is_none() => instance.deadline(),
            _ => NONE,
        };
        let soonest = now.0.saturating_add(1 << self.in_vain.min(24));
        self.deadline = if asked == NONE { Time::NEVER } else { Time(asked.max(soonest)) };
    }

    fn call(&mut self, now: Time, action: impl FnOnce(&mut Instance)) {
        if let Some(instance) = &mut self.instance {
            action(instance);
            self.look(now, false);
        }
    }

    fn row(&self, t: Time, is_sent: bool) -> Option<Row> {
        Some(Row {
            t,
            is_sent,
            number: self.number,
            len: 0,
            acks: known(self.told.acks),
            lost: 0,
            window_before: known(self.told.window),
            sample: self.sample()?,
            min_rtt: min_rtt(&self.told),
        })
    }

    /// Keep a row with the losses that no earlier row has: a timer may declare some between two ACKs.
    fn keep(&mut self, row: Option<Row>) {
        if let (Some(rows), Some(row)) = (&mut self.trace, row) {
            let told = known(self.told.lost);
            let lost = told.saturating_sub(std::mem::replace(&mut self.lost_in_trace, told));
            rows.push(Row { lost, ..row });
        }
    }

    /// Record an ACK's RTT sample and a trace row.
    fn note_ack(&mut self, now: Time, before: &Told) {
        if known(self.told.acks) == known(before.acks) {
            return;
        }
        if self.told.latest_rtt_ns != NONE {
            self.rtts = (self.rtts.0 + u128::from(self.told.latest_rtt_ns), self.rtts.1 + 1);
        }
        if self.trace.is_some() {
            let row = self.row(now, false);
            let row = row.map(|row| Row { number: 0, window_before: known(before.window), ..row });
            self.keep(row);
        }
    }
}

/// Return a reported number, or 0 if not reported by the stack.
fn known(told: u64) -> u64 {
    if told == NONE {
        0
    } else {
        told
    }
}

fn min_rtt(told: &Told) -> Span {
    if told.min_rtt_ns == NONE {
        Span::MAX
    } else {
        Span(told.min_rtt_ns)
    }
}

impl Foreign for End {
    fn connect(&mut self, now: Time) {
        if self.opens && self.instance.is_none() {
            self.open(now);
        }
    }

    fn write(&mut self, now: Time, bytes: u64) {
        self.written += bytes;
        if self.instance.is_none() {
            self.waiting += bytes;
        }
        self.call(now, |instance| instance.write(now.0, bytes));
    }

    fn write_forever(&mut self, now: Time) {
        (self.forever, self.endless) = (true, true);
        self.call(now, |instance| instance.write(now.0, NONE));
    }

    fn close(&mut self, now: Time) {
        if !std::mem::replace(&mut self.closes, true) {
            self.call(now, |instance| instance.finish(now.0));
        }
    }

    fn stop_writing(&mut self, now: Time) {
        self.waiting = 0;
        (self.forever, self.endless) = (false, true);
        self.close(now);
    }

    fn arrive(&mut self, now: Time, datagram: &Opaque, ecn: Ecn) {
        if self.instance.is_none() {
            if self.opens || self.failure.is_some() {
                self.carried.lose(datagram);
                return;
            }
            self.open(now);
        }
        let before = self.told;
        let carried = self.carried.clone();
        self.in_vain = 0;
        carried.take(datagram, |bytes| {
            self.audit.arrives(bytes.len());
            if let Some(instance) = &mut self.instance {
                instance.datagram(now.0, ecn as u8, bytes);
            }
        });
        self.look(now, false);
        self.note_ack(now, &before);
    }

    fn is_established(&self) -> bool {
        self.is_established
    }

    fn acked(&self) -> u64 {
        match self.told.acked {
            NONE if self.state == State::Closed => self.written,
            acked => known(acked),
        }
    }

    fn received(&self) -> u64 {
        self.instance.as_ref().map_or(0, Instance::received)
    }

    fn peer_closed(&self) -> bool {
        self.instance.as_ref().is_some_and(Instance::peer_finished)
    }

    fn is_closing(&self) -> bool {
        self.closes
    }

    fn is_done(&self) -> bool {
        self.state == State::Closed || self.failure.is_some()
    }

    fn failure(&self) -> Option<Failure> {
        self.failure
    }

    fn is_responder(&self) -> bool {
        !self.opens
    }

    fn stats(&self) -> Stats {
        Stats {
            sent: if self.told.sent == NONE { self.number } else { self.told.sent },
            lost: known(self.told.lost),
            sent_bytes: self.bytes,
            acks: known(self.told.acks),
            reductions: self.reductions,
            rtt_sum_ns: self.rtts.0,
            rtt_samples: self.rtts.1,
            min_rtt: min_rtt(&self.told),
        }
    }

    fn sample(&self) -> Option<Sample> {
        self.instance.as_ref()?;
        let told = &self.told;
        Some(Sample {
            window: known(told.window),
            in_flight: known(told.in_flight),
            ssthresh: (told.ssthresh != NONE).then_some(told.ssthresh),
            srtt: Span(known(told.srtt_ns)),
            mtu: u16::try_from(known(told.mtu)).unwrap_or(u16::MAX).max(1),
        })
    }

    fn rtt_samples(&self) -> (u128, u64) {
        self.rtts
    }

    fn set_trace(&mut self, on: bool) {
        self.trace = on.then(Vec::new);
    }

    fn take_trace(&mut self) -> Vec<Row> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn accounts(&self) -> Option<Accounts> {
        let written = (!self.endless).then_some(self.written);
        Some(self.audit.accounts(written, self.closes, self.failure.is_some()))
    }

    fn hold_against(&self, peer: &Accounts) {
        let held = self.accounts().map_or(Ok(()), |own| self.audit.against(&own, peer));
        if let Err(said) = held {
            self.carried.accuse(format!("stack {}: {said}", self.recipe.library.name));
        }
    }
}

impl DatagramEndpoint for End {
    fn on_packet(&mut self, now: Time, datagram: &Datagram) {
        if let Datagram::Opaque(opaque) = datagram {
            self.arrive(now, opaque, Ecn::NotEct);
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.in_vain = self.in_vain.saturating_add(1);
        self.call(now, |instance| instance.timer(now.0));
        if self.instance.as_ref().is_none_or(|instance| instance.deadline() > now.0) {
            self.in_vain = 0;
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        let (len, mark) = match self.instance.as_mut()?.transmit(now.0, &mut self.scratch) {
            Ok(Some(sent)) => sent,
            Ok(None) => {
                self.look(now, true);
                return None;
            }
            Err(said) => {
                self.accuse(now, &said);
                self.failure = Some(Failure::Error);
                self.instance = None; // reports of this instance can no longer be trusted
                self.deadline = Time::NEVER;
                return None;
            }
        };
        let has_data = mark & 4 != 0;
        self.number += 1;
        self.pieces += u64::from(has_data);
        self.bytes += len as u64;
        if let Err(said) = self.audit.leaves(now.0, len as u64 + u64::from(self.recipe.library.header)) {
            self.accuse(now, &said);
            self.instance = None;
            self.deadline = Time::NEVER;
            return None;
        }
        let sent = &self.scratch[..len];
        let opaque = Opaque {
            number: self.number,
            hash: hash(sent),
            place: self.carried.put(sent),
            len: len as u32,
            piece: if has_data { self.pieces as u32 } else { 0 },
            ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(mark & 3)],
            header: self.recipe.library.header,
        };
        if has_data && self.trace.is_some() {
            let row = self.row(now, true).map(|row| Row { len: opaque.len, ..row });
            self.keep(row);
        }
        Some(Datagram::Opaque(opaque))
    }

    fn next_deadline(&self) -> Time {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_an_object_of_json() {
        let options: Options = [
            ("paced".to_string(), Value::Flag(true)),
            ("buffer".to_string(), Value::Whole(65_536)),
            ("share".to_string(), Value::Number(0.5)),
            ("note".to_string(), Value::Text("a \"b\"\n".to_string())),
        ]
        .into();
        assert_eq!(json(&options), r#"{"buffer":65536,"note":"a \"b\"\u000a","paced":true,"share":0.5}"#);
        assert_eq!(json(&Options::new()), "{}");
    }

    #[test]
    fn a_stack_that_is_not_there_is_refused() {
        let refused = build("nowhere:cubic", &Options::new()).err().expect("refused");
        assert_eq!(refused.found, "\"stack:nowhere:cubic\"");
        assert!(refused.allowed.contains("--stack FILE (none is)"), "{}", refused.allowed);
    }
}
