//! Wrapper that records the hooks called on a controller, to check that all are called and in an order that the table
//! allows.

use std::sync::{Arc, Mutex, PoisonError};

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use crate::controller::{AckSample, Arrival, CongestionControl, Custom, Hook, Needs};
use crate::window::Window;

/// Hooks recorded by witnesses, with their counts and orders.
#[derive(Default)]
pub struct Heard {
    calls: Vec<(Hook, u64)>,
    orders: Vec<(Option<Hook>, Hook)>,
}

impl Heard {
    /// Whether the hook was called.
    pub fn has(&self, hook: Hook) -> bool {
        self.calls.iter().any(|&(known, _)| known == hook)
    }

    /// Pairs of successive calls that the table forbids: the second hook neither may follow the first nor may begin an
    /// event.
    pub fn illegal(&self) -> Vec<String> {
        let allowed = |before: &Option<Hook>, hook: &Hook| hook.may_follow(*before) || hook.may_follow(None);
        let broken = self.orders.iter().filter(|(before, hook)| !allowed(before, hook));
        broken.map(|(before, hook)| format!("{hook:?} after {before:?}")).collect()
    }

    fn note(&mut self, before: Option<Hook>, hook: Hook) {
        match self.calls.iter_mut().find(|(known, _)| *known == hook) {
            Some((_, count)) => *count += 1,
            None => self.calls.push((hook, 1)),
        }
        if !self.orders.contains(&(before, hook)) {
            self.orders.push((before, hook));
        }
    }
}

/// Wrapper that records the calls to its inner controller.
pub struct Witness<C> {
    inner: C,
    before: Option<Hook>,
    heard: Arc<Mutex<Heard>>,
}

impl<C> Witness<C> {
    /// Wrap `inner` in a witness that records into `heard`.
    pub fn new(inner: C, heard: &Arc<Mutex<Heard>>) -> Witness<C> {
        Witness { inner, before: None, heard: heard.clone() }
    }

    fn note(&mut self, hook: Hook) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).note(self.before, hook);
        self.before = Some(hook);
    }
}

macro_rules! witnessed {
    ($($section:ident { $(
        $(#[doc = $about:literal])+
        fn $hook:ident($me:ident: $me_ty:ty $(, $arg:ident: $type:ty)*) $(-> $answer:ty)? $body:block $($required:ident)?
        [$linux:literal, after $($before:ident)+ $(, own $own:literal)?] $($inline:ident)?;
    )* })*) => {
        #[allow(clippy::needless_arbitrary_self_type, reason = "one form for all hooks")]
        impl<C: CongestionControl> CongestionControl for Witness<C> {
            $($(fn $hook($me: $me_ty $(, $arg: $type)*) $(-> $answer)? {
                note!($section $me $hook);
                $me.inner.$hook($($arg),*)
            })*)*
        }
    };
}

macro_rules! note {
    (events $me:ident $hook:ident) => {
        $me.note(Hook::$hook)
    };
    (itself $me:ident $hook:ident) => {};
}

crate::hooks!(witnessed);
