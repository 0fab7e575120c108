//! A loaded library and its instances: the unsafe part of the C interface.

#![allow(
    unsafe_code,
    reason = "the border to C: functions of a library, whose contract is that of the header"
)]

use std::ffi::{c_char, c_int, CStr, CString};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use ackclock_core::{calls, Time};

use crate::abi::{Open, Raw, Table, Told, ABI};

/// Maximum size of a reason, bytes.
const REASON: usize = 256;
/// Maximum size of a datagram, bytes, and guard bytes that follow it.
pub const ROOM: usize = 9000;
const CANARY: [u8; 16] = [0xa5; 16];

/// A loaded stack.
pub struct Library {
    /// Name in scenarios.
    pub name: String,
    /// Library version.
    pub version: String,
    /// Names of its controllers.
    pub controllers: Vec<String>,
    /// Size of the headers in front of each datagram on the wire, bytes.
    pub header: u8,
    /// Number of handshake round trips before the client may send data.
    pub round_trips: u32,
    functions: Functions,
}

/// The library's functions, none of them null.
struct Functions {
    open: Open,
    datagram: unsafe extern "C" fn(*mut Raw, u64, u8, *const u8, usize),
    timer: unsafe extern "C" fn(*mut Raw, u64),
    transmit: unsafe extern "C" fn(*mut Raw, u64, *mut u8, usize, *mut u8) -> usize,
    deadline: unsafe extern "C" fn(*const Raw) -> u64,
    write: unsafe extern "C" fn(*mut Raw, u64, u64),
    finish: unsafe extern "C" fn(*mut Raw, u64),
    received: unsafe extern "C" fn(*const Raw) -> u64,
    peer_finished: unsafe extern "C" fn(*const Raw) -> c_int,
    state: unsafe extern "C" fn(*const Raw, *mut c_char, usize) -> c_int,
    sample: unsafe extern "C" fn(*const Raw, *mut Told),
    close: unsafe extern "C" fn(*mut Raw),
}

/// Maximum number of controllers in a library.
const MOST_CONTROLLERS: usize = 100;

static LOADED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

/// Return all loaded libraries.
pub fn loaded() -> Vec<&'static Library> {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Load a library from a file. Errors name the file and the fault. Loading runs the library's own initialisers.
pub fn load(file: &Path) -> Result<&'static Library, String> {
    // SAFETY: the user named this file as a program to be run.
    let opened = unsafe { libloading::Library::new(file) };
    let opened = opened.map_err(|error| format!("found no library ({error}); allowed: a shared library"))?;
    // SAFETY: the header defines the symbol's type.
    let table = unsafe {
        let symbol = opened.get::<unsafe extern "C" fn() -> *const Table>(b"ackclock_stack\0");
        let symbol = symbol.map_err(|_| {
            "found no symbol ackclock_stack; allowed: a library of ackclock_stack.h".to_string()
        })?;
        symbol().as_ref()
    };
    let library = read(table.ok_or("found a null table; allowed: one of ackclock_stack.h")?)?;
    let mut all = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if all.iter().any(|known| known.name == library.name) {
        return Err(format!("found the stack {:?} a second time; allowed: each name once", library.name));
    }
    std::mem::forget(opened); // keep the library until the process ends, because instances and names refer to it
    let library: &'static Library = Box::leak(Box::new(library));
    all.push(library);
    Ok(library)
}

fn read(table: &Table) -> Result<Library, String> {
    if table.abi != ABI {
        return Err(format!("found abi {}; allowed: {ABI}", table.abi));
    }
    let text = |what: &str, text: *const c_char| {
        if text.is_null() {
            return Err(format!("{what}: found null; allowed: text"));
        }
        // SAFETY: the contract of the header: text that ends with a zero.
        let text = unsafe { CStr::from_ptr(text) }.to_str();
        text.map(str::to_string).map_err(|_| format!("{what}: found no UTF-8; allowed: UTF-8"))
    };
    let word = |what: &str, text: &str| {
        let known = |c: u8| c.is_ascii_alphanumeric() || b"_.-".contains(&c);
        match (1..=40).contains(&text.len()) && text.bytes().all(known) {
            true => Ok(()),
            false => {
                Err(format!("{what}: found {text:?}; allowed: 1 to 40 letters, digits, and any of . _ -"))
            }
        }
    };
    let name = text("name", table.name)?;
    word("name", &name)?;
    let version = text("version", table.version)?;
    word("version", &version)?;
    let controllers: Vec<String> =
        text("controllers", table.controllers)?.split(',').map(|name| name.trim().to_string()).collect();
    if controllers.len() > MOST_CONTROLLERS {
        return Err(format!("controllers: found {}; allowed: at most {MOST_CONTROLLERS}", controllers.len()));
    }
    for controller in &controllers {
        word("controllers", controller)?;
    }
    let header = u8::try_from(table.header_bytes)
        .map_err(|_| format!("header_bytes: found {}; allowed: 0 to 255", table.header_bytes))?;
    let null = |name: &str| format!("{name}: found null; allowed: a function");
    let functions = Functions {
        open: table.open.ok_or_else(|| null("open"))?,
        datagram: table.datagram.ok_or_else(|| null("datagram"))?,
        timer: table.timer.ok_or_else(|| null("timer"))?,
        transmit: table.transmit.ok_or_else(|| null("transmit"))?,
        deadline: table.deadline.ok_or_else(|| null("deadline"))?,
        write: table.write.ok_or_else(|| null("write"))?,
        finish: table.finish.ok_or_else(|| null("finish"))?,
        received: table.received.ok_or_else(|| null("received"))?,
        peer_finished: table.peer_finished.ok_or_else(|| null("peer_finished"))?,
        state: table.state.ok_or_else(|| null("state"))?,
        sample: table.sample.ok_or_else(|| null("sample"))?,
        close: table.close.ok_or_else(|| null("close"))?,
    };
    Ok(Library { name, version, controllers, header, round_trips: table.round_trips, functions })
}

/// State of an end as reported by the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Opening,
    Open,
    Closed,
    Failed(String),
}

/// One end of a connection.
pub struct Instance {
    library: &'static Library,
    raw: NonNull<Raw>,
}

// SAFETY: the contract of the header: one thread at a time, not always the same one.
#[allow(clippy::non_send_fields_in_send_ty, reason = "as the header asks of the library")]
unsafe impl Send for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        let _call = self.begins("close", 0);
        // SAFETY: the pointer was made by `open`, and is not used again.
        unsafe { (self.library.functions.close)(self.raw.as_ptr()) }
    }
}

fn reason(bytes: &[u8; REASON]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(REASON);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Instance {
    /// Mark the start of a call into the library, which lasts until the returned value is dropped.
    fn begins(&self, function: &'static str, now: u64) -> calls::Call {
        calls::enter(&self.library.name, function, Time(now))
    }

    /// Open a client, or a server that waits for a connection.
    pub fn open(
        library: &'static Library,
        is_server: bool,
        controller: &str,
        options: &str,
        seed: &[u8; 32],
        now: u64,
    ) -> Result<Instance, String> {
        let [controller, options] = [controller, options].map(|text| CString::new(text).unwrap_or_default());
        let mut why = [0u8; REASON];
        let _call = calls::enter(&library.name, "open", Time(now));
        // SAFETY: text ends with a zero, the seed has 32 bytes, the reason its room.
        let raw = unsafe {
            (library.functions.open)(
                c_int::from(is_server),
                controller.as_ptr(),
                options.as_ptr(),
                seed.as_ptr(),
                now,
                why.as_mut_ptr().cast(),
                REASON,
            )
        };
        match NonNull::new(raw) {
            Some(raw) => Ok(Instance { library, raw }),
            None => Err(reason(&why)),
        }
    }

    pub fn datagram(&mut self, now: u64, ecn: u8, bytes: &[u8]) {
        let _call = self.begins("datagram", now);
        // SAFETY: as many bytes as given.
        unsafe { (self.library.functions.datagram)(self.raw.as_ptr(), now, ecn, bytes.as_ptr(), bytes.len()) }
    }

    pub fn timer(&mut self, now: u64) {
        let _call = self.begins("timer", now);
        // SAFETY: an instance of this library.
        unsafe { (self.library.functions.timer)(self.raw.as_ptr(), now) }
    }

    /// Write the next datagram to `into` and return its length and mark, or a library error.
    pub fn transmit(&mut self, now: u64, into: &mut Vec<u8>) -> Result<Option<(usize, u8)>, String> {
        let _call = self.begins("transmit", now);
        if into.len() < ROOM + CANARY.len() {
            into.resize(ROOM, 0);
            into.extend_from_slice(&CANARY);
        }
        let mut mark = 0;
        // SAFETY: there is as much room as given.
        let len = unsafe {
            (self.library.functions.transmit)(self.raw.as_ptr(), now, into.as_mut_ptr(), ROOM, &mut mark)
        };
        if len > ROOM || into[ROOM..] != CANARY {
            return Err(format!(
                "transmit: found {len} bytes, or some behind the room for them; allowed: at most {ROOM}"
            ));
        }
        Ok((len > 0).then_some((len, mark)))
    }

    pub fn deadline(&self) -> u64 {
        let _call = self.begins("deadline", 0);
        // SAFETY: an instance of this library.
        unsafe { (self.library.functions.deadline)(self.raw.as_ptr()) }
    }

    pub fn write(&mut self, now: u64, bytes: u64) {
        let _call = self.begins("write", now);
        // SAFETY: an instance of this library.
        unsafe { (self.library.functions.write)(self.raw.as_ptr(), now, bytes) }
    }

    pub fn finish(&mut self, now: u64) {
        let _call = self.begins("finish", now);
        // SAFETY: an instance of this library.
        unsafe { (self.library.functions.finish)(self.raw.as_ptr(), now) }
    }

    pub fn received(&self) -> u64 {
        let _call = self.begins("received", 0);
        // SAFETY: an instance of this library.
        unsafe { (self.library.functions.received)(self.raw.as_ptr()) }
    }

    pub fn peer_finished(&self) -> bool {
        let _call = self.begins("peer_finished", 0);
        // SAFETY: an instance of this library.
        unsafe { (self.library.functions.peer_finished)(self.raw.as_ptr()) != 0 }
    }

    pub fn state(&self) -> State {
        let _call = self.begins("state", 0);
        let mut why = [0u8; REASON];
        // SAFETY: an instance of this library, and room for the reason.
        let state =
            unsafe { (self.library.functions.state)(self.raw.as_ptr(), why.as_mut_ptr().cast(), REASON) };
        match state {
            0 => State::Opening,
            1 => State::Open,
            2 => State::Closed,
            3 => State::Failed(reason(&why)),
            other => State::Failed(format!("state {other}, which the header does not have")),
        }
    }

    pub fn sample(&self) -> Told {
        let _call = self.begins("sample", 0);
        let mut told = Told::NOTHING;
        // SAFETY: an instance of this library, and a whole struct.
        unsafe { (self.library.functions.sample)(self.raw.as_ptr(), &mut told) }
        told
    }
}
