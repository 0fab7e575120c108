// The contract of a controller in Rust. Written by tools/contract.py from crates/cc/src/controller/contract.rs: change that and
// tools/templates/ackclock_contract.rs, not this file.

/// Version of the interface.
pub const ABI: u32 = @ABI@;

/// Requirements of a controller on the connection around it, or'ed together in [`Controller::NEEDS`].
pub mod needs {
@NEEDS@
}

/// Delivery rate sample over the flight of the newest segment that an ACK covers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    is_given: u32,
@RATE@
}

impl Rate {
@RATE_ASKED@
}

/// An ACK.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Ack {
@ACK@
}

impl Ack {
@ACK_ASKED@
}

/// A congestion controller. One instance is created for each connection.
pub trait Controller: Sized {
    /// Requirements on the connection, see [`needs`].
    const NEEDS: u32 = 0;
    /// Names of the options; any other option is refused.
    const OPTIONS: &'static [&'static str] = &[];
    /// Names of the values that `variables` writes, for `record.controller`; at most eight.
    const VARIABLES: &'static [&'static str] = &[];
    /// Names of files that the controller reads.
    const READS: &'static [&'static str] = &[];
    /// Size of the send buffer as a multiple of cwnd; 0: two.
    const BUFFER_WINDOWS: u32 = 0;
    /// Pacing rate, bytes/s, from which on a packet has at least two segments; 0: the stack's minimum.
    const SLOW_PACKETS: u32 = 0;

    /// Create the controller of a connection.
    fn new(options: &Options, random: Random) -> Self;

    /// Return a copy in the same state, for a run that forks; `None` if the controller cannot be copied. By default its bytes are copied, unless
    /// it owns other memory, such as a `Vec`.
    fn copy(&self) -> Option<Self> {
        // SAFETY: a type with nothing to drop is its bytes.
        (!std::mem::needs_drop::<Self>()).then(|| unsafe { std::ptr::read(self) })
    }

    /// Write the values of `VARIABLES`. A value that is not written remains NaN.
    fn variables(&self, _values: &mut [f64]) {}
@METHODS@
}

/// Layout of `struct ackclock_controller`.
#[repr(C)]
pub struct Hooks {
    abi: u32,
    needs: u32,
    name: *const c_char,
    variables: *const c_char,
    reads: *const c_char,
    buffer_windows: u32,
    slow_packets: u32,
    open: unsafe extern "C" fn(*const Host) -> *mut c_void,
    close: unsafe extern "C" fn(*mut c_void),
    said: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    copy: unsafe extern "C" fn(*mut c_void, *const Host) -> *mut c_void,
    variables_of: unsafe extern "C" fn(*mut c_void, *mut f64) -> c_int,
@HOOKS@
}

impl Hooks {
    fn of<C: Controller>() -> Hooks {
        Hooks {
            abi: ABI,
            needs: C::NEEDS,
            name: c"rust".as_ptr(),
            variables: listed(C::VARIABLES),
            reads: listed(C::READS),
            buffer_windows: C::BUFFER_WINDOWS,
            slow_packets: C::SLOW_PACKETS,
            open: open::<C>,
            close: close::<C>,
            said: said::<C>,
            copy: copy::<C>,
            variables_of: variables_of::<C>,
@FILLING@
        }
    }
}
@CALLS@