//! Structures of `ackclock_controller.h`, generated from the contract's tables. `tools/contract.py` writes the header
//! from the same tables.

#![allow(missing_docs, reason = "the header says what each is")]

use std::ffi::{c_char, c_int, c_void};

use ackclock_cc::controller::Hook;
use ackclock_cc::{AckSample, Arrival, RateSample, Window};
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

/// C interface version.
pub const ABI: u32 = 3;
/// Value for an absent RTT or time, ns.
pub const NONE: u64 = u64::MAX;

/// C representation of a type of the contract.
pub trait Plain {
    type C;
    fn plain(&self) -> Self::C;
}

macro_rules! plain {
    ($($type:ty as $c:ty: $value:ident => $plain:expr;)*) => {
        $(impl Plain for $type {
            type C = $c;
            #[inline]
            fn plain(&self) -> $c {
                let $value = *self;
                $plain
            }
        })*
    };
}

plain! {
    u32 as u32: n => n;
    u64 as u64: n => n;
    bool as u32: flag => u32::from(flag);
    Time as u64: time => time.0;
    Span as u64: span => span.0;
    Option<Span> as u64: span => span.map_or(NONE, |span| span.0);
    CaState as u32: state => state as u32;
    Option<RateSample> as CRate: rate => rate.as_ref().map_or_else(CRate::default, CRate::from);
}

macro_rules! structures {
    (
        arrival { $($(#[doc = $about:literal])+ $field:ident: $type:ty [$over:ident, $linux:literal];)* }
        sample { $($(#[doc = $s_about:literal])+ $s_field:ident: $s_type:ty [$s_over:ident, $s_linux:literal];)* }
        rate { $($(#[doc = $r_about:literal])+ $r_field:ident: $r_type:ty [$r_over:ident, $r_linux:literal];)* }
    ) => {
        #[derive(Clone, Copy, Debug, Default)]
        #[repr(C)]
        pub struct CRate {
            pub is_given: u32,
            $(pub $r_field: <$r_type as Plain>::C,)*
        }

        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub struct CAck {
            $(pub $field: <$type as Plain>::C,)*
            $(pub $s_field: <$s_type as Plain>::C,)*
        }

        impl From<&RateSample> for CRate {
            fn from(rate: &RateSample) -> CRate {
                CRate { is_given: 1, $($r_field: rate.$r_field.plain(),)* }
            }
        }

        impl From<&AckSample> for CAck {
            #[inline]
            fn from(ack: &AckSample) -> CAck {
                CAck {
                    $($field: ack.arrival.$field.plain(),)*
                    $($s_field: ack.$s_field.plain(),)*
                }
            }
        }
    };
}

ackclock_cc::fields!(structures);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CWindow {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub cwnd_cnt: u32,
    pub cwnd_clamp: u32,
    pub prior_cwnd: u32,
    pub reserved: u32,
    pub pacing_rate: u64,
}

impl From<&Window> for CWindow {
    #[inline]
    fn from(window: &Window) -> CWindow {
        let Window { cwnd, ssthresh, cwnd_cnt, cwnd_clamp, prior_cwnd, pacing_rate } = *window;
        CWindow { cwnd, ssthresh, cwnd_cnt, cwnd_clamp, prior_cwnd, reserved: 0, pacing_rate }
    }
}

#[repr(C)]
pub struct CHost {
    pub run: *mut c_void,
    pub random: unsafe extern "C" fn(*mut c_void) -> u64,
    pub now: unsafe extern "C" fn(*mut c_void) -> u64,
}

/// A hook argument: the part kept while the hook runs, and the part passed to the hook.
pub trait Argument {
    type Held;
    type C;
    fn hold(&self) -> Self::Held;
    fn pass(held: &mut Self::Held) -> Self::C;
}

impl Argument for &mut Window {
    type Held = CWindow;
    type C = *mut CWindow;
    fn hold(&self) -> CWindow {
        CWindow::from(&**self)
    }
    fn pass(held: &mut CWindow) -> *mut CWindow {
        held
    }
}

impl Argument for &Window {
    type Held = CWindow;
    type C = *const CWindow;
    fn hold(&self) -> CWindow {
        CWindow::from(*self)
    }
    fn pass(held: &mut CWindow) -> *const CWindow {
        held
    }
}

impl Argument for &AckSample {
    type Held = CAck;
    type C = *const CAck;
    fn hold(&self) -> CAck {
        CAck::from(*self)
    }
    fn pass(held: &mut CAck) -> *const CAck {
        held
    }
}

impl Argument for &Arrival {
    type Held = CAck;
    type C = *const CAck;
    fn hold(&self) -> CAck {
        CAck::from(&AckSample::from(**self))
    }
    fn pass(held: &mut CAck) -> *const CAck {
        held
    }
}

macro_rules! values {
    ($($type:ty)*) => {
        $(impl Argument for $type {
            type Held = <$type as Plain>::C;
            type C = <$type as Plain>::C;
            fn hold(&self) -> Self::C {
                self.plain()
            }
            fn pass(held: &mut Self::C) -> Self::C {
                *held
            }
        })*
    };
}

values!(u32 u64 bool Time Span CaState);

/// Return value written by a hook through a pointer.
pub trait Answer: Sized {
    type C;
    /// Initial value, before the hook runs.
    fn start(hook: Hook) -> Self::C;
    fn read(written: Self::C) -> Result<Self, String>;
}

impl Answer for bool {
    type C = c_int;
    fn start(hook: Hook) -> c_int {
        c_int::from(hook == Hook::on_ecn)
    }
    fn read(written: c_int) -> Result<bool, String> {
        Ok(written != 0)
    }
}

impl Answer for u32 {
    type C = u32;
    fn start(_: Hook) -> u32 {
        0
    }
    fn read(written: u32) -> Result<u32, String> {
        match written {
            1..=Window::INFINITE => Ok(written),
            _ => Err(format!("it answers {written}; allowed: 1 to {}", Window::INFINITE)),
        }
    }
}

macro_rules! controller {
    (
        events { $(
            $(#[doc = $about:literal])+
            fn $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) $(-> $answer:ty)? $body:block $($required:ident)?
            [$linux:literal, after $($before:ident)+ $(, own $own:literal)?] $($inline:ident)?;
        )* }
        itself { $($itself:tt)* }
    ) => {
        /// Function pointers of the hooks; `None` for null.
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct CController {
            pub abi: u32,
            pub needs: u32,
            pub name: *const c_char,
            pub variables: *const c_char,
            pub reads: *const c_char,
            pub buffer_windows: u32,
            pub slow_packets: u32,
            pub open: Option<unsafe extern "C" fn(*const CHost) -> *mut c_void>,
            pub close: Option<unsafe extern "C" fn(*mut c_void)>,
            pub said: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
            pub copy: Option<unsafe extern "C" fn(*mut c_void, *const CHost) -> *mut c_void>,
            pub variables_of: Option<unsafe extern "C" fn(*mut c_void, *mut f64) -> c_int>,
            $(pub $hook: Option<
                unsafe extern "C" fn(*mut c_void $(, <$type as Argument>::C)* $(, *mut <$answer as Answer>::C)?) -> c_int,
            >,)*
        }
    };
}

ackclock_cc::hooks!(controller);

/// Type of the function exported by a library.
pub type Entry = unsafe extern "C" fn(*const c_char, *mut c_char, usize) -> *const CController;
