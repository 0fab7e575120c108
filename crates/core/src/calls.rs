//! Progress of calls into user code, written to a memory page that another process can read if a call kills this
//! process or never returns.
//!
//! Each thread has its own slot on the page. The first word of a slot counts entries and exits: an odd value means
//! that a call is in progress. Without a page, a call costs one load.

use std::cell::Cell;
use std::sync::atomic::{fence, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::time::Time;

/// Number of slots. If there are more threads, they share slots.
pub const ROOMS: usize = 64;
/// Words per slot: count, run seed + 1, time in ns, 3 words for the hook's name, 10 for the code's name.
pub const WORDS: usize = 16;

static PAGE: OnceLock<&'static [AtomicU64]> = OnceLock::new();
static TAKEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ROOM: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Use the first `ROOMS * WORDS` words of this page for the rest of the process. Return false if the page is too
/// short or one is already set.
pub fn share(page: &'static [AtomicU64]) -> bool {
    page.len() >= ROOMS * WORDS && PAGE.set(page).is_ok()
}

/// Return the slot of this thread, or `None` without a page.
fn room() -> Option<&'static [AtomicU64]> {
    let page = PAGE.get()?;
    let at = ROOM.with(|room| {
        if room.get() == usize::MAX {
            room.set(TAKEN.fetch_add(1, Ordering::Relaxed) % ROOMS);
        }
        room.get()
    });
    page.get(at * WORDS..(at + 1) * WORDS)
}

fn put(words: &[AtomicU64], text: &str) {
    let mut chunks = text.as_bytes().chunks(8);
    for word in words {
        let mut bytes = [0; 8];
        if let Some(chunk) = chunks.next() {
            bytes[..chunk.len()].copy_from_slice(chunk);
        }
        word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
}

/// Record the seed of the run that this thread is starting.
pub fn runs(seed: u64) {
    if let Some(room) = room() {
        room[1].store(seed.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Guard of a call: the call lasts until the guard is dropped.
pub struct Call(Option<&'static [AtomicU64]>);

/// Record entry into hook `hook` of the code `who`. A nested call counts as part of the outer one.
#[inline]
pub fn enter(who: &str, hook: &str, now: Time) -> Call {
    match PAGE.get() {
        None => Call(None),
        Some(_) => noted(who, hook, now),
    }
}

fn noted(who: &str, hook: &str, now: Time) -> Call {
    let Some(room) = room() else { return Call(None) };
    let count = room[0].load(Ordering::Relaxed);
    if count % 2 == 1 {
        return Call(None);
    }
    room[2].store(now.0, Ordering::Relaxed);
    put(&room[3..6], hook);
    put(&room[6..WORDS], who);
    fence(Ordering::Release);
    room[0].store(count + 1, Ordering::Release);
    Call(Some(room))
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(room) = self.0 {
            room[0].store(room[0].load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_where_a_call_stands() {
        let page: Vec<AtomicU64> = (0..ROOMS * WORDS).map(|_| AtomicU64::new(0)).collect();
        drop(enter("absent.py", "on_ack", Time(1))); // without a page nothing is recorded
        assert!(share(page.leak()));
        let room = room().expect("there is a page");
        runs(7);
        let call = enter("mine.py:Mine", "on_congestion_event", Time(5));
        drop(enter("other.py", "on_ack", Time(9))); // nested: part of the outer call
        assert_eq!([0, 1, 2].map(|at| room[at].load(Ordering::Relaxed)), [1, 8, 5]);
        assert_eq!(room[3].load(Ordering::Relaxed).to_le_bytes(), *b"on_conge");
        assert_eq!(room[6].load(Ordering::Relaxed).to_le_bytes(), *b"mine.py:");
        drop(call);
        assert_eq!(room[0].load(Ordering::Relaxed), 2);
    }
}
