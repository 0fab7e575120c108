//! Minimal rtnetlink: messages with nested attributes, each answered before the next is sent.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sys;

/// A request under construction.
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Start a request of the given type, with the fixed part that follows the header.
    pub fn new(kind: u16, flags: i32, body: &[u8]) -> Message {
        let flags = (libc::NLM_F_REQUEST | flags) as u16;
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]); // sequence number and port: one request at a time needs neither
        bytes.extend_from_slice(body);
        Message { bytes }
    }

    /// Append an attribute.
    pub fn attr(mut self, kind: u16, value: &[u8]) -> Message {
        self.bytes.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.pad()
    }

    /// Append a 32-bit attribute.
    pub fn u32(self, kind: u16, value: u32) -> Message {
        self.attr(kind, &value.to_ne_bytes())
    }

    /// Append a 64-bit attribute.
    pub fn u64(self, kind: u16, value: u64) -> Message {
        self.attr(kind, &value.to_ne_bytes())
    }

    /// Append a string attribute.
    pub fn text(self, kind: u16, value: &str) -> Message {
        let bytes: Vec<u8> = value.bytes().chain([0]).collect();
        self.attr(kind, &bytes)
    }

    /// Append an attribute that contains a fixed part and further attributes.
    pub fn nest(mut self, kind: u16, body: &[u8], inner: impl FnOnce(Message) -> Message) -> Message {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(body);
        let mut whole = inner(self.pad());
        let len = (whole.bytes.len() - start) as u16;
        whole.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        whole
    }

    fn pad(mut self) -> Message {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes
    }
}

/// A netlink socket for network configuration; it stays in the namespace where it was opened.
pub struct Netlink(OwnedFd);

impl Netlink {
    /// Open a socket in the namespace of the calling thread.
    pub fn new() -> Result<Netlink> {
        Ok(Netlink(sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?))
    }

    /// Perform a request; `what` names it in errors.
    pub fn request(&self, message: Message, what: &str) -> Result<()> {
        let mut bytes = message.finish();
        bytes[6] |= libc::NLM_F_ACK as u8;
        sys::write(self.0.as_raw_fd(), &bytes)?;
        let mut answer = [0; 8192];
        let n = sys::read(self.0.as_raw_fd(), &mut answer)?.unwrap_or(0);
        match (n, i32_at(&answer, 16)) {
            (20.., 0) => Ok(()),
            (20.., code) => Err(Error::other(format!("{what}: {}", Error::from_raw_os_error(-code)))),
            _ => Err(Error::other(format!("{what}: no answer"))),
        }
    }

    /// Request a dump; `each` receives the body of every entry.
    pub fn dump(&self, message: Message, mut each: impl FnMut(&[u8])) -> Result<()> {
        let mut bytes = message.finish();
        bytes[7] |= (libc::NLM_F_DUMP >> 8) as u8;
        sys::write(self.0.as_raw_fd(), &bytes)?;
        let mut answer = vec![0; 65536];
        loop {
            let n = sys::read(self.0.as_raw_fd(), &mut answer)?.unwrap_or(0);
            let mut at = 0;
            while at + 16 <= n {
                let len = u32_at(&answer, at) as usize;
                let kind = u16::from_ne_bytes([answer[at + 4], answer[at + 5]]) as i32;
                if kind == libc::NLMSG_DONE || kind == libc::NLMSG_ERROR || len < 16 {
                    return Ok(());
                }
                each(&answer[at + 16..at + len]);
                at += len.next_multiple_of(4);
            }
        }
    }
}

/// Attributes in `bytes`, in order.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]) as usize;
        let kind = u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]) & 0x3fff; // without the flag bits
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// Find the attribute of this kind.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// Read a 32-bit number at an offset.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("invariant: four bytes"))
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    u32_at(bytes, at) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_attributes_read_back() {
        let message = Message::new(16, 0, &[7; 16])
            .text(3, "eth0")
            .nest(18, &[], |m| m.text(1, "veth").nest(2, &[9; 4], |m| m.u32(4, 1500)))
            .u32(13, 5);
        let bytes = message.finish();
        assert_eq!(u32_at(&bytes, 0) as usize, bytes.len());
        let body = &bytes[32..];
        assert_eq!(attribute(body, 3), Some(&b"eth0\0"[..]));
        let inner = attribute(body, 18).unwrap();
        assert_eq!(attribute(inner, 1), Some(&b"veth\0"[..]));
        let innermost = &attribute(inner, 2).unwrap()[4..];
        assert_eq!(attribute(innermost, 4), Some(&1500u32.to_ne_bytes()[..]));
        assert_eq!(attribute(body, 13), Some(&5u32.to_ne_bytes()[..]));
        assert_eq!(attributes(body).count(), 3);
    }

    #[test]
    fn a_truncated_list_of_attributes_ends() {
        let bytes = Message::new(16, 0, &[]).u32(1, 2).finish();
        for cut in 16..bytes.len() {
            assert!(attributes(&bytes[16..cut]).count() == 0);
        }
    }
}
