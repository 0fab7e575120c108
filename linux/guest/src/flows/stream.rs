//! Workloads bulk, transfer and throttled: one connection, data in one direction.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use ackclock_core::Span;
use ackclock_sim::scenario::spec::{FlowGroup, WorkloadConfig};
use ackclock_sim::workload::{ReadingPace, ThrottledParams};

use super::End;
use crate::info::Info;
use crate::network::host_ip;
use crate::sys;

impl End {
    /// Run the receiving end of a stream: read until the sender closes, slowly if there is a pace, then close.
    pub(super) fn swallow(&self, listener: &OwnedFd, pace: Option<ReadingPace>) -> Result<()> {
        let socket = sys::accept(listener.as_raw_fd())?;
        let Some(pace) = pace else {
            while sys::swallow(socket.as_raw_fd(), 1 << 30)? > 0 {}
            return Ok(());
        };
        let mut wait = pace.wait;
        loop {
            if wait > Span::ZERO {
                self.shared.sleep_until(self.shared.now() + wait.0);
            }
            match sys::swallow_available(socket.as_raw_fd(), pace.most)? {
                0 => return Ok(()),
                read => wait = pace.after(read as u64),
            }
        }
    }

    /// Run the sending end of a stream: connect at the start, write what the workload requires, and close, no later
    /// than at the flow's stop time. The flow is complete when the FIN is acknowledged.
    pub(super) fn stream(&self, spec: &FlowGroup) -> Result<()> {
        sys::enter(self.namespace[0])?;
        let socket = self.socket(0)?;
        let fd = socket.as_raw_fd();
        sys::bind(fd, host_ip(0, self.group), self.port(0))?;
        self.shared.sleep_until(self.start);
        {
            let mut state = self.state();
            (state.open, state.connects) = (Some(fd), true);
        }
        let connected = sys::connect(fd, host_ip(1, self.group), self.port(1)).is_ok();
        let info = Info::of(fd)?;
        let mut state = self.state();
        if !connected {
            state.close(fd);
            state.failed = true;
            return Ok(());
        }
        // SYN retransmissions have their own counter
        state.closed.syn_retransmissions += info.total_retrans as u64;
        state.closed.retransmissions = state.closed.retransmissions.wrapping_sub(info.total_retrans as u64);
        state.closed.rtos = state.closed.rtos.wrapping_sub(info.total_rto as u64);
        state.established = Some(self.shared.now());
        state.writing = true;
        drop(state);
        match &spec.workload {
            WorkloadConfig::Transfer(transfer) => self.write(fd, transfer.bytes),
            WorkloadConfig::Throttled(throttled) => self.throttled(fd, throttled),
            _ => self.write(fd, u64::MAX),
        };
        if self.shared.now() >= self.stop && !self.stops {
            return self.stay(socket); // the run is over
        }
        sys::shut(fd); // the observer may have closed it already
        let failed = !sys::until_fin_is_acknowledged(fd)?;
        let mut state = self.state();
        state.failed |= failed;
        if !failed {
            state.completed = Some(self.shared.now());
        }
        state.close(fd);
        drop(state);
        let _ = sys::swallow(fd, 1); // the peer closes too
        Ok(())
    }

    /// Keep the connection open until the end of the run.
    fn stay(&self, socket: OwnedFd) -> Result<()> {
        std::mem::forget(socket);
        Ok(())
    }

    /// Write `bytes` bytes, or until the flow's stop time, when the observer shuts the connection down and so ends the
    /// call. Data already accepted by the kernel is still sent.
    fn write(&self, fd: RawFd, mut bytes: u64) {
        let block = vec![0; self.write];
        while bytes > 0 && self.shared.now() < self.stop {
            match sys::send(fd, &block[..bytes.min(self.write as u64) as usize]) {
                Ok(sent) => bytes -= sent as u64,
                Err(_) => {
                    self.state().failed |= self.shared.now() < self.stop;
                    break;
                }
            }
        }
    }

    /// Write on a schedule that starts with the flow and does not depend on the network: `initial` (or one chunk), then
    /// one chunk per interval. Chunks that fall due while the connection is blocked are written together as soon as it
    /// accepts data.
    fn throttled(&self, fd: RawFd, params: &ThrottledParams) {
        let interval = params.interval().0;
        let mut left = params.bytes.unwrap_or(u64::MAX);
        let mut due = self.start;
        let mut next = params.first();
        while left > 0 && due < self.stop {
            self.shared.sleep_until(due);
            let mut bytes = 0;
            while left > 0 && due <= self.shared.now().min(self.stop - 1) {
                let chunk = next.min(left);
                (bytes, left, next) = (bytes + chunk, left - chunk, params.chunk);
                due += interval;
            }
            self.write(fd, bytes);
        }
        if left > 0 {
            self.shared.sleep_until(self.stop);
        }
    }
}
