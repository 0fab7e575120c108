// The contract of a controller in Rust. Written by tools/contract.py from crates/cc/src/controller/contract.rs: change that and
// tools/templates/ackclock_contract.rs, not this file.

/// Version of the interface.
pub const ABI: u32 = @ABI@;

/// Needs of a controller towards the connection around it; [`Controller::NEEDS`] has them or'ed together.
pub mod needs {
@NEEDS@
}

/// A sample of the delivery rate, over the flight of the newest segment that an ACK covers.
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

/// A congestion controller. One is made for each connection.
pub trait Controller: Sized {
    /// See [`needs`].
    const NEEDS: u32 = 0;
    /// Names of the options; another is refused.
    const OPTIONS: &'static [&'static str] = &[];
    /// Names of what `variables` writes, for `record.controller`; eight at most.
    const VARIABLES: &'static [&'static str] = &[];
    /// Names of files that the controller reads.
    const READS: &'static [&'static str] = &[];
    /// Windows for which the send buffer is to have room; 0: two.
    const BUFFER_WINDOWS: u32 = 0;
    /// Pacing rate, bytes/s, below which one segment is a packet; 0: as the stack is set.
    const SLOW_PACKETS: u32 = 0;

    /// For a connection.
    fn new(options: &Options, random: Random) -> Self;

    /// Another one in the same state, for a run that forks; None: it cannot be copied. Without this method its bytes are copied, unless it
    /// keeps something elsewhere, such as a `Vec`.
    fn copy(&self) -> Option<Self> {
        // SAFETY: a type with nothing to drop is its bytes.
        (!std::mem::needs_drop::<Self>()).then(|| unsafe { std::ptr::read(self) })
    }

    /// The values of `VARIABLES`; unknown values are left as they are (NaN).
    fn variables(&self, _values: &mut [f64]) {}
@METHODS@
}

/// `struct ackclock_controller`.
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