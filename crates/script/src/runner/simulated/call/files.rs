//! Descriptors other than sockets: zero-filled files written by the set-up, and pipes. No file on the real machine is
//! touched.

use super::{Answer, Expr};
use crate::ast::Call;
use crate::runner::constant::value;
use crate::runner::simulated::Simulated;
use crate::runner::{unsupported, Stop};

/// Files and pipes behind descriptors.
#[derive(Debug)]
pub enum Other {
    /// Length of the file, and the current position in it.
    File { len: i64, at: i64 },
    /// Pipe; both of its ends have the same number.
    Pipe { number: usize },
}

/// Capacity of a pipe, bytes (`pipe.7`).
const PIPE_SIZE: i64 = 65_536;

impl Simulated<'_> {
    pub(super) fn open(&mut self, line: u32, call: &Call) -> Result<Answer, Stop> {
        let path = match call.args.first() {
            Some(Expr::Text(parts)) => parts.concat(),
            _ => return unsupported(line, "an open without a path"),
        };
        let Some(len) = self.stack.host.setup.files.get(&path) else {
            return unsupported(line, format!("the file '{path}', which the set-up did not write"));
        };
        let Some(fd) = call.result.number().filter(|n| *n >= 0) else {
            return unsupported(line, "a file that cannot be opened");
        };
        self.sockets.others.retain(|(known, _)| *known != fd);
        self.sockets.others.push((fd, Other::File { len: *len as i64, at: 0 }));
        Ok(Ok(fd))
    }

    pub(super) fn pipe(&mut self, line: u32, call: &Call) -> Result<Answer, Stop> {
        let Some(Expr::List(ends)) = call.args.first() else { return unsupported(line, "this pipe") };
        let number = self.sockets.pipes.len();
        self.sockets.pipes.push(0);
        for end in ends {
            let fd = value(line, end)?;
            self.sockets.others.retain(|(known, _)| *known != fd);
            self.sockets.others.push((fd, Other::Pipe { number }));
        }
        Ok(Ok(0))
    }

    /// Close a descriptor that is not a socket.
    pub(super) fn close_other(&mut self, fd: i64) -> Option<Answer> {
        let before = self.sockets.others.len() + self.sockets.epolls.len();
        self.sockets.others.retain(|(known, _)| *known != fd);
        self.sockets.epolls.retain(|e| e.fd != fd);
        (before > self.sockets.others.len() + self.sockets.epolls.len()).then_some(Ok(0))
    }

    /// `sendfile(out, in, offset, count)`.
    pub(super) fn sendfile(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        let number = |n: usize| call.args.get(n).map_or(Ok(0), |e| value(line, e));
        let (out, file, count) = (number(0)?, number(1)?, number(3)?);
        let given = match call.args.get(2) {
            Some(Expr::Word(null)) if null == "NULL" => None,
            _ => Some(number(2)?),
        };
        let Some((_, Other::File { len, at })) = self.sockets.others.iter().find(|(fd, _)| *fd == file)
        else {
            return unsupported(line, "sendfile from what is no file");
        };
        let from = given.unwrap_or(*at);
        let bytes = count.min(len - from).max(0);
        let answer = match bytes {
            0 => Some(Ok(0)),
            bytes => {
                // If the file ends early, its bytes are sent as with MSG_MORE, and waiting data is pushed at the end
                // (Linux `splice_direct_to_actor`, `tcp_splice_eof`).
                let short = bytes < count;
                let answer = self.put(line, out, &[bytes], short, false, false, false)?;
                if short {
                    self.stack.act(|conn| conn.push_written());
                }
                answer
            }
        };
        if let (Some(Ok(n)), None) = (answer, given) {
            for (fd, other) in &mut self.sockets.others {
                if let Other::File { at, .. } = other {
                    *at += if *fd == file { n } else { 0 };
                }
            }
        }
        Ok(answer)
    }

    /// `splice(in, NULL, out, NULL, count, flags)`, between a socket and a pipe.
    pub(super) fn splice(&mut self, line: u32, call: &Call) -> Result<Option<Answer>, Stop> {
        let number = |n: usize| call.args.get(n).map_or(Ok(0), |e| value(line, e));
        let (from, to, count) = (number(0)?, number(2)?, number(4)?);
        let pipe = |fd: i64| {
            self.sockets.others.iter().find_map(|(known, other)| match other {
                Other::Pipe { number } if *known == fd => Some(*number),
                _ => None,
            })
        };
        match (pipe(from), pipe(to)) {
            (None, Some(to)) if self.sockets.get(from).is_some() => {
                let room = PIPE_SIZE - self.sockets.pipes[to];
                let nonblocking = self.sockets.get(from).is_some_and(|s| s.nonblocking);
                let answer = self.take(line, from, count.min(room), &[], nonblocking)?;
                if let Some(Ok(n)) = answer {
                    self.sockets.pipes[to] += n;
                }
                Ok(answer)
            }
            (Some(from), None) if self.sockets.get(to).is_some() => {
                let bytes = count.min(self.sockets.pipes[from]);
                if bytes == 0 {
                    return unsupported(line, "splice from an empty pipe");
                }
                let answer = self.put(line, to, &[bytes], false, false, false, false)?;
                if let Some(Ok(n)) = answer {
                    self.sockets.pipes[from] -= n;
                }
                Ok(answer)
            }
            _ => unsupported(line, "splice between these"),
        }
    }
}
