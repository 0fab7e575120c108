//! Host set-up: the settings that a script's commands would make on a real host, derived by parsing the
//! commands. No command is executed; a script with an unrecognised command is unsupported.

mod recognise;
mod route;
mod shell;
mod sysctl;

use std::collections::BTreeMap;

use crate::error::{Error, Pos};
pub use route::Route;
pub use sysctl::{Refused, Sysctls};

/// Queueing discipline between the stack and the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Qdisc {
    /// A queue that never drops; the stack does its own pacing.
    Fifo,
    /// `fq`: the queue paces.
    Fq,
    /// `pfifo limit 0`: every packet is refused and the stack is notified.
    DropAll,
}

/// Parameters of CUBIC (Linux `/sys/module/tcp_cubic/parameters`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "parameters of the kernel module, by its names")]
pub struct CubicModule {
    pub hystart: bool,
    /// Bit 0: ACK train; bit 1: delay.
    pub hystart_detect: u32,
    pub hystart_low_window: u32,
    pub hystart_ack_delta_us: u32,
    pub initial_ssthresh: u32,
    pub fast_convergence: bool,
    pub tcp_friendliness: bool,
}

impl Default for CubicModule {
    fn default() -> CubicModule {
        CubicModule {
            hystart: true,
            hystart_detect: 3,
            hystart_low_window: 16,
            hystart_ack_delta_us: 2_000,
            initial_ssthresh: 0,
            fast_convergence: true,
            tcp_friendliness: true,
        }
    }
}

/// Settings of the host on which a script is played.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// `net.ipv4.tcp_*` and some of `net.core`.
    pub sysctls: Sysctls,
    /// The device's queueing discipline.
    pub qdisc: Qdisc,
    /// Route to the peer.
    pub route: Route,
    /// Device MTU, bytes.
    pub mtu: u32,
    /// Size of the IP header, bytes: 20, or 40 for IPv6.
    pub ip_header: u32,
    /// Whether the device has TCP segmentation offload.
    pub tso: bool,
    /// Whether generic segmentation offload is on.
    pub gso: bool,
    /// Whether generic receive offload is on.
    pub gro: bool,
    /// Whether each TCP packet contains only one segment (the device's `gso_max_segs`).
    pub single: bool,
    /// CUBIC parameters.
    pub cubic: CubicModule,
    /// Sizes in bytes of zero-filled files, by path. They exist only in the simulation.
    pub files: BTreeMap<String, u64>,
}

impl Setup {
    /// Return the settings of a host right after the kernel has booted.
    pub fn kernel() -> Setup {
        Setup {
            sysctls: Sysctls::kernel(),
            qdisc: Qdisc::Fifo,
            route: Route::default(),
            mtu: 1500,
            ip_header: 20,
            tso: true,
            gso: true,
            gro: true,
            single: false,
            cubic: CubicModule::default(),
            files: BTreeMap::new(),
        }
    }

    /// Return the settings left by the public suites' defaults script.
    pub fn suite() -> Setup {
        Setup { sysctls: Sysctls::suite(), ..Setup::kernel() }
    }

    /// Apply the settings made by a command. If any part is not recognised, no setting changes.
    pub fn apply(&mut self, text: &str, at: Pos) -> Result<(), Error> {
        let mut after = self.clone();
        for simple in shell::split(text).map_err(|what| Error::unsupported(at, what))? {
            recognise::command(&mut after, &simple).map_err(|refused| match refused {
                Refused::Unknown(what) => Error::unsupported(at, what),
                Refused::Value { what, found, allowed } => Error::value(at, &what, found, allowed),
            })?;
        }
        *self = after;
        Ok(())
    }

    /// Set one sysctl: `name=value`, with or without `net.ipv4.` before the name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Refused> {
        self.sysctls.set(name, value)
    }
}
