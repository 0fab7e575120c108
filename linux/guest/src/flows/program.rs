//! Typical application programs in place of a workload, to test the diagnosis of captures. As usual, the server sends.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{thread, End};
use crate::job::{Host, Program};
use crate::network::host_ip;
use crate::sys;

impl End {
    /// Start both ends; each waits for the flow's start.
    pub(super) fn launch_program(self, program: &Program, host: &Host) -> Result<()> {
        sys::enter(self.namespace[0])?;
        let listener = self.listener(0, host)?;
        if program.send_buffer > 0 {
            sys::set_option(listener.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &program.send_buffer)?;
        }
        let (server, asked) = (self.clone(), program.clone());
        thread(move || server.serve_program(&listener, &asked))?;
        let asked = program.clone();
        thread(move || self.read_program(&asked))
    }

    fn serve_program(&self, listener: &OwnedFd, program: &Program) -> Result<()> {
        let socket = sys::accept(listener.as_raw_fd())?;
        let fd = socket.as_raw_fd();
        if !program.nagle {
            sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1i32)?;
        }
        {
            let mut state = self.state();
            state.open = Some(fd);
            state.established = Some(self.shared.now());
        }
        let block = vec![0; program.block as usize];
        let (mut left, mut due) = (program.total, self.shared.now());
        while left > 0 {
            if program.request > 0 && sys::swallow(fd, program.request as usize)? == 0 {
                break;
            }
            self.shared.sleep_until(due);
            let mut now_left = program.block.min(left);
            left -= now_left;
            while now_left > 0 {
                match sys::send(fd, &block[..now_left as usize]) {
                    Ok(sent) => now_left -= sent as u64,
                    Err(_) => {
                        self.state().failed = true;
                        return Ok(());
                    }
                }
            }
            if program.request == 0 {
                // a paced program keeps to its schedule; others pause after each write
                due = if program.paced { due + program.pause } else { self.shared.now() + program.pause };
            }
        }
        let failed = sys::swallow(fd, 1).is_err(); // the reading program closes once it has everything
        let mut state = self.state();
        state.failed |= failed;
        if !failed {
            state.completed = Some(self.shared.now());
        }
        state.close(fd);
        Ok(())
    }

    fn read_program(&self, program: &Program) -> Result<()> {
        sys::enter(self.namespace[1])?;
        let socket = self.socket(1)?;
        let fd = socket.as_raw_fd();
        if program.receive_buffer > 0 {
            sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &program.receive_buffer)?;
        }
        sys::bind(fd, host_ip(1, self.group), self.port(1))?;
        self.shared.sleep_until(self.start);
        if sys::connect(fd, host_ip(0, self.group), self.port(0)).is_err() {
            self.state().failed = true;
            return Ok(());
        }
        let request = vec![0; program.request as usize];
        let mut left = program.total;
        while left > 0 {
            let mut part = left;
            if program.request > 0 {
                part = program.block.min(left);
                if left < program.total {
                    self.shared.sleep_until(self.shared.now() + program.pause);
                }
                sys::send(fd, &request)?;
            }
            while part > 0 {
                let mut most = part.min(1 << 30);
                if program.read > 0 {
                    self.shared.sleep_until(self.shared.now() + program.read_pause);
                    most = most.min(program.read);
                }
                match sys::swallow(fd, most as usize)? {
                    0 => return Ok(()),
                    got => (part, left) = (part - got as u64, left - got as u64),
                }
            }
        }
        Ok(())
    }
}
