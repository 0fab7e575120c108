//! Bulk, transfer, throttled: one connection, one direction.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use ackclock_sim::scenario::spec::{FlowGroup, WorkloadConfig};
use ackclock_sim::workload::ThrottledParams;

use super::{End, WRITE};
use crate::info::Info;
use crate::network::host_ip;
use crate::sys;

impl End {
    /// The receiving end of a stream. It knows how long a transfer is and closes first: a sender that has closed is no
    /// longer Established, and the kernel traces the ACKs of Established connections only.
    pub(super) fn swallow(&self, listener: &OwnedFd, spec: &FlowGroup) -> Result<()> {
        let socket = sys::accept(listener.as_raw_fd())?;
        let mut left = match &spec.workload {
            WorkloadConfig::Transfer(transfer) => transfer.bytes,
            WorkloadConfig::Throttled(throttled) => throttled.bytes.unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        while left > 0 {
            match sys::swallow(socket.as_raw_fd(), left.min(1 << 30) as usize)? {
                0 => break,
                n => left -= n as u64,
            }
        }
        Ok(())
    }

    /// The sending end of a stream: connect at the start, write as the workload says.
    pub(super) fn stream(&self, spec: &FlowGroup) -> Result<()> {
        sys::enter(self.namespace[0])?;
        let socket = self.socket()?;
        let fd = socket.as_raw_fd();
        sys::bind(fd, host_ip(0, self.group), self.port(0))?;
        self.shared.sleep_until(self.start);
        self.state().open = Some(fd);
        if sys::connect(fd, host_ip(1, self.group), self.port(1)).is_err() {
            let mut state = self.state();
            state.close(fd);
            state.failed = true;
            return Ok(());
        }
        {
            let syns = Info::of(fd)?.total_retrans as u64;
            let mut state = self.state();
            state.established = Some(self.shared.now());
            state.closed.syn_retransmissions += syns;
            state.closed.retransmissions = state.closed.retransmissions.wrapping_sub(syns);
            // counted apart
        }
        match &spec.workload {
            WorkloadConfig::Transfer(transfer) => self.write(fd, transfer.bytes)?,
            WorkloadConfig::Throttled(throttled) => {
                self.throttled(fd, throttled)?;
                if throttled.bytes.is_none() {
                    return self.stay(socket);
                }
            }
            _ => {
                self.write(fd, u64::MAX)?;
                return self.stay(socket);
            }
        }
        let failed = sys::swallow(fd, 1).is_err(); // the receiver closes when it has everything
        let mut state = self.state();
        state.failed |= failed;
        if !failed {
            state.completed = Some(self.shared.now());
        }
        state.close(fd);
        Ok(())
    }

    /// The connection stays open to the end of the run.
    fn stay(&self, socket: OwnedFd) -> Result<()> {
        std::mem::forget(socket);
        Ok(())
    }

    /// Write so many bytes, or until the flow's stop.
    fn write(&self, fd: RawFd, mut bytes: u64) -> Result<()> {
        let block = vec![0; WRITE];
        while bytes > 0 {
            let now = self.shared.now();
            if now >= self.stop {
                break;
            }
            sys::set_timeout(fd, true, self.stop - now)?;
            match sys::send(fd, &block[..bytes.min(WRITE as u64) as usize]) {
                Ok(sent) => bytes -= sent as u64,
                Err(_) => {
                    self.state().failed = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// The application's schedule runs from the start of the flow, whatever the network does: `initial` (or a chunk), then a
    /// chunk at every interval. What came due meanwhile is written together, as soon as the connection takes it.
    fn throttled(&self, fd: RawFd, params: &ThrottledParams) -> Result<()> {
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
            self.write(fd, bytes)?;
        }
        Ok(())
    }
}
