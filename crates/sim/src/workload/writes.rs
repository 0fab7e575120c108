//! Writes: the application writes listed blocks at listed times over one connection, and closes after the last one.
//! Such a list can be derived from a capture: when an application had more to send, and how much. The times do not
//! depend on the network: data that cannot be sent yet waits in the send buffer.

use std::rc::Rc;

use ackclock_core::schema::{Takes, DURATION_OR_ZERO, SIZE};
use ackclock_core::{table, Span};

use super::one_way::OneWay;
use super::{Asks, Context, Driver, Make, Params, Place, Site, Workload};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::world::ConnId;

table! {
    /// Writes listed blocks at listed times, then closes the connection.
    pub struct WritesParams "writes" {
        /// The blocks, in the order of their times.
        writes: Vec<Write> = Takes::List(&Takes::Table(Write::TABLE), 1);
    }
    rules |params, rules| {
        if params.writes.windows(2).any(|pair| pair[1].at < pair[0].at) {
            rules.refuse("writes", format_args!("times that do not fall"));
        }
    }
}

table! {
    /// A block that an application writes at once.
    pub struct Write "write" {
        /// Time of the write, from the start of the flow.
        at: Span = DURATION_OR_ZERO, Span(0);
        /// Size of the block.
        bytes: u64 = SIZE;
    }
}

impl Params for WritesParams {
    fn may_read_slowly() -> bool {
        true
    }

    fn asks(&self, _duration: Span) -> Asks {
        let segments: f64 = self.writes.iter().map(|write| write.bytes as f64 / 1000.0 + 1.0).sum();
        Asks::Packets(segments + 10.0)
    }

    fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        let writes: Rc<[Write]> = self.writes.clone().into();
        Ok(Box::new(move |_, _| {
            Driver::Writes(Box::new(Writes { writes: writes.clone(), way: OneWay::default(), next: 0 }))
        }))
    }
}

/// State of a flow with listed writes.
#[derive(Clone)]
pub struct Writes {
    writes: Rc<[Write]>,
    way: OneWay,
    next: usize,
}

impl Writes {
    /// Write all blocks that are due, and schedule the next one.
    fn write(&mut self, cx: &mut Context) {
        let since = Span(cx.now().0 - cx.flow.start.0);
        while let Some(write) = self.writes.get(self.next).filter(|write| write.at <= since) {
            self.way.write(cx, write.bytes);
            self.next += 1;
        }
        match self.writes.get(self.next) {
            Some(write) => cx.wake((cx.flow.start + write.at).min(cx.flow.stop)),
            None => {
                self.way.close(cx);
                cx.wake(cx.flow.stop);
            }
        }
    }
}

impl Workload for Writes {
    fn start(&mut self, cx: &mut Context) {
        self.way.open(cx);
        self.write(cx);
    }

    fn wake(&mut self, cx: &mut Context) {
        if cx.now() >= cx.flow.stop {
            self.way.stop(cx);
        } else if self.way.is_open() {
            self.write(cx);
        }
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        self.way.progress(cx, conn, host);
    }
}

#[cfg(test)]
mod tests {
    use crate::{parse, run};

    fn written(writes: &str) -> String {
        format!(
            r#"{{"duration_ns": 5000000000,
                 "network": {{"topology": "chain", "bottleneck": {{"rate": 8000000, "delay": 10000000}}}},
                 "record": {{"trace": "flow"}},
                 "flows": [{{"profile": "linux-6", "congestion_control": "cubic", "start_ns": 500000000,
                             "workload": {{"kind": "writes", "writes": [{writes}]}}}}]}}"#
        )
    }

    #[test]
    fn each_block_leaves_at_its_time_and_the_last_ends_the_flow() {
        let blocks =
            r#"{"at": 0, "bytes": 1000}, {"at": 1000000000, "bytes": 5000}, {"at": 1000000000, "bytes": 2}"#;
        let output = run(&parse(&written(blocks)).expect("reads"), 1).expect("runs");
        assert_eq!(output.table("flows").integers("bytes_acked"), [6002]);
        let silent = |t: &&f64| (0.6..1.5).contains(*t);
        assert_eq!(output.table("acks").floats("t_s").iter().filter(silent).count(), 0);
        let done = output.table("flows").floats("completion_s")[0];
        assert!((1.02..1.06).contains(&done), "{done}");
    }

    #[test]
    fn times_that_fall_are_refused() {
        let wrong = match parse(&written(r#"{"at": 2, "bytes": 1}, {"at": 1, "bytes": 1}"#)) {
            Ok(scenario) => run(&scenario, 1).err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        assert!(wrong.as_ref().is_some_and(|wrong| wrong.contains("times that do not fall")), "{wrong:?}");
    }
}
