//! The application layer of a world: all flows of a run and the workloads that drive them.

use ackclock_core::FlowId;

use crate::report::observe::{Observer, STOP};
use crate::workload::flow::{Flow, Journal};
use crate::workload::{Context, Driver, Workload};
use crate::world::{Application, ConnId, World};

/// The applications on the hosts, and the observer.
#[derive(Clone)]
pub struct App {
    /// Flows by number.
    pub flows: Vec<Flow>,
    /// Workload of each flow.
    pub drivers: Vec<Driver>,
    /// Records written by flows and workloads.
    pub journal: Journal,
    /// Samples taken at intervals.
    pub observer: Observer,
}

impl App {
    /// Schedule the starts of all flows and the first samples.
    pub fn begin(&mut self, world: &mut World) {
        for (flow, driver) in self.flows.iter().zip(&self.drivers) {
            world.wake(flow.id, flow.start);
            if driver.keeps_no_stop() {
                world.tick(STOP, flow.stop);
            }
        }
        self.observer.begin(world);
    }

    /// Close the records of open flows at the end of the run.
    pub fn finish(&mut self, world: &mut World) {
        self.observer.finish(world, &self.flows);
        for (flow, driver) in self.flows.iter_mut().zip(&mut self.drivers) {
            let mut cx = Context { world, flow, journal: &mut self.journal };
            driver.finish(&mut cx);
            if cx.flow.stop >= cx.now() {
                cx.flow.acked_at_stop = None; // include ACKs that arrive in the last nanosecond
            }
            while let Some(&(conn, _)) = cx.flow.open.first() {
                cx.retire(conn);
            }
        }
    }
}

impl Application for App {
    #[inline]
    fn progress(&mut self, world: &mut World, conn: ConnId, flow: FlowId, host: usize) {
        let at = flow as usize;
        let mut cx = Context { world, flow: &mut self.flows[at], journal: &mut self.journal };
        self.drivers[at].progress(&mut cx, conn, host);
    }

    fn wake(&mut self, world: &mut World, flow: FlowId) {
        let at = flow as usize;
        let flow = &mut self.flows[at];
        if flow.wake_at != world.now() {
            return; // replaced by a later wake-up
        }
        flow.wake_at = ackclock_core::Time::NEVER;
        let first = !std::mem::replace(&mut flow.started, true);
        let mut cx = Context { world, flow, journal: &mut self.journal };
        if first {
            self.drivers[at].start(&mut cx);
        } else {
            self.drivers[at].wake(&mut cx);
        }
    }

    fn tick(&mut self, world: &mut World, what: u32) {
        if what == STOP {
            for (flow, driver) in self.flows.iter_mut().zip(&self.drivers) {
                if driver.keeps_no_stop() && flow.stop == world.now() {
                    flow.acked_at_stop = Some(flow.acked(world));
                }
            }
            return;
        }
        self.observer.tick(world, &self.flows, what);
    }
}
