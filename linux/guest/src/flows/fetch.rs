//! Fetches: one client that repeatedly opens a connection, requests, reads and closes.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{Receiver, Sender};

use ackclock_sim::workload::{FetchParams, Pace};

use super::{thread, End, Fetched};
use crate::info::Info;
use crate::network::host_ip;
use crate::sys;

impl End {
    /// Run the client: connect, request, read and close, `count` times.
    pub(super) fn fetch(&self, params: &FetchParams, closed: &Receiver<u16>) -> Result<()> {
        let FetchParams { bytes, request, count, pause, timeout, .. } = *params;
        sys::enter(self.namespace[1])?;
        let (mut due, mut last) = (self.start, None);
        for idx in 0..count {
            self.shared.sleep_until(due);
            if self.shared.now() >= self.stop {
                return Ok(());
            }
            if params.common_random_numbers {
                // packets of the previous fetch must not be subject to the loss process of this one
                while last.is_some_and(|port| closed.recv().is_ok_and(|other| other != port)) {}
                self.shared.restart(self.id, idx);
            }
            last = self.one_fetch(idx, bytes, request, timeout.map(|t| t.0))?;
            due = self.shared.now() + pause.0;
        }
        let mut state = self.state();
        state.completed = Some(due - pause.0).filter(|_| !state.failed);
        Ok(())
    }

    /// Perform one fetch; returns its port if the response arrived completely.
    fn one_fetch(&self, idx: u32, bytes: u64, request: u64, timeout: Option<u64>) -> Result<Option<u16>> {
        let socket = self.socket(1)?;
        let fd = socket.as_raw_fd();
        let start = self.shared.now();
        let row = {
            let mut fetches = self.shared.fetches();
            fetches.push(Fetched { flow: self.id, idx, start, bytes, ..Fetched::default() });
            fetches.len() - 1
        };
        let patience = || timeout.map(|t| t.saturating_sub(self.shared.now() - start).max(1));
        if let Some(left) = patience() {
            sys::set_timeout(fd, true, left)?;
        }
        sys::bind(fd, host_ip(1, self.group), 0)?;
        let port = sys::local_port(fd)?;
        self.shared.fetches()[row].port = port;
        if sys::connect(fd, host_ip(0, self.group), self.port(0)).is_err() {
            self.state().failed = true;
            return Ok(None);
        }
        let syns = Info::of(fd)?.total_retrans;
        let connected = self.shared.now();
        {
            let mut fetches = self.shared.fetches();
            fetches[row].connected = Some(connected);
            fetches[row].syn_retransmissions = syns;
            let mut state = self.state();
            state.established.get_or_insert(connected);
            state.closed.syn_retransmissions += syns as u64;
        }
        sys::send(fd, &vec![0; request as usize])?;
        let mut got = 0;
        while got < bytes {
            if let Some(left) = patience() {
                sys::set_timeout(fd, false, left)?;
            }
            // The first read takes one byte, to record its arrival time. The rest of the buffer is read at the same
            // instant.
            let want = if got == 0 { 1 } else { (bytes - got).min(1 << 30) };
            match sys::swallow(fd, want as usize) {
                Ok(0) | Err(_) => {
                    self.state().failed = true;
                    return Ok(None);
                }
                Ok(n) => {
                    if got == 0 {
                        self.shared.fetches()[row].first_byte = Some(self.shared.now());
                    }
                    got += n as u64;
                }
            }
        }
        let retransmitted = Info::of(fd)?.total_retrans - syns;
        let mut fetches = self.shared.fetches();
        fetches[row].completed = Some(self.shared.now());
        fetches[row].request_retransmissions = retransmitted;
        Ok(Some(port))
    }

    /// Run the server for fetches, with one thread per connection; the thread reports the client's port once both ends
    /// are closed.
    pub(super) fn serve(
        &self,
        listener: &OwnedFd,
        params: &FetchParams,
        pace: Option<Pace>,
        closed: &Sender<u16>,
    ) -> Result<()> {
        loop {
            let socket = sys::accept(listener.as_raw_fd())?;
            let (end, params, closed) = (self.clone(), params.clone(), closed.clone());
            thread(move || {
                let port = sys::peer_port(socket.as_raw_fd())?;
                let answered = end.respond(&socket, &params, pace);
                if params.common_random_numbers {
                    close_and_wait(socket)?;
                    let _ = closed.send(port);
                }
                answered
            })?;
        }
    }

    /// Update the row of the fetch whose client has this port.
    fn note(&self, port: u16, change: impl FnOnce(&mut Fetched)) {
        let mut fetches = self.shared.fetches();
        if let Some(row) = fetches.iter_mut().rev().find(|f| f.flow == self.id && f.port == port) {
            change(row);
        }
    }

    /// Close, and add the FIN retransmissions to the flow's counters. `before`: retransmissions and timeouts
    /// until now.
    fn count_repeated_fins(&self, fd: RawFd, before: (u32, u16)) -> Result<()> {
        sys::shut(fd);
        sys::until_fin_is_acknowledged(fd)?;
        let after = Info::of(fd)?;
        let (segments, timeouts) =
            (after.total_retrans.saturating_sub(before.0), after.total_rto.saturating_sub(before.1));
        let mut state = self.state();
        state.closed.retransmissions = state.closed.retransmissions.wrapping_add(segments as u64);
        state.closed.rtos = state.closed.rtos.wrapping_add(timeouts as u64);
        Ok(())
    }

    /// Serve one response: read the request, write, wait for the client's close, add the counters.
    fn respond(&self, socket: &OwnedFd, params: &FetchParams, pace: Option<Pace>) -> Result<()> {
        let fd = socket.as_raw_fd();
        let port = sys::peer_port(fd)?;
        let accepted = Info::of(fd)?;
        let synacks = accepted.total_retrans;
        {
            // SYN-ACK retransmissions have their own counter
            let mut state = self.state();
            state.open = Some(fd);
            state.closed.retransmissions = state.closed.retransmissions.wrapping_sub(synacks as u64);
            state.closed.rtos = state.closed.rtos.wrapping_sub(accepted.total_rto as u64);
        }
        self.note(port, |row| row.synack_retransmissions = synacks);
        sys::swallow(fd, params.request as usize)?;
        let block = vec![0; self.write.min(params.bytes as usize)];
        let mut left = params.bytes;
        let mut due = self.shared.now();
        while left > 0 {
            let bytes = match pace {
                None => left,
                Some(pace) if left == params.bytes => pace.initial.clamp(1, left),
                Some(pace) => pace.chunk.min(left),
            };
            if !send_all(fd, &block, bytes) {
                break;
            }
            left -= bytes;
            if let (Some(pace), true) = (pace, left > 0) {
                due += pace.interval().0;
                self.shared.sleep_until(due);
            }
        }
        sys::swallow(fd, 1)?; // the client's FIN
        let mut state = self.state();
        let Some(mut info) = state.close(fd) else { return Ok(()) };
        drop(state);
        let before = (info.total_retrans, info.total_rto);
        info.total_retrans -= synacks;
        self.note(port, |row| row.server = Some(info));
        self.count_repeated_fins(fd, before)
    }
}

/// Close a connection; returns once the FIN is acknowledged.
fn close_and_wait(socket: OwnedFd) -> Result<()> {
    let for_ever = libc::linger { l_onoff: 1, l_linger: i32::MAX };
    sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &for_ever)
}

/// Write `bytes` bytes; false if the connection failed.
fn send_all(fd: RawFd, block: &[u8], mut bytes: u64) -> bool {
    while bytes > 0 {
        match sys::send(fd, &block[..bytes.min(block.len() as u64) as usize]) {
            Ok(n) => bytes -= n as u64,
            Err(_) => return false,
        }
    }
    true
}
