//! Heap use of the calling thread.
//!
//! Every allocation is counted, so a bound on a run's memory (see `bounds`) covers all sources: queues, traces,
//! out-of-order data, and whatever is added later. A run stays on one thread and always makes the same allocations,
//! so the count is as deterministic as the run. Allocations are rare (none per packet), so the cost of counting is
//! not measurable.

#![allow(
    unsafe_code,
    reason = "the contract of an allocator, each call is handed on as it came; and a question to it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// Bytes allocated by the calling thread minus bytes freed by it. May be negative if the thread frees memory that
/// others allocated, so only differences are meaningful.
pub fn held() -> i64 {
    HELD.with(Cell::get)
}

fn count(bytes: i64) {
    HELD.with(|held| held.set(held.get() + bytes));
}

/// Return unused pages of the heap to the system, if the allocator supports this. The call walks the whole heap. Use
/// it after freeing a lot of memory that is needed elsewhere.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: glibc's own function; it takes a number, and touches only free pages
        unsafe { malloc_trim(0) };
    }
}

struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

// SAFETY: all four hand on to `System`, with the arguments they got; counting allocates nothing and cannot panic.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        System.alloc(layout)
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        System.alloc_zeroed(layout)
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        System.dealloc(at, layout)
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        System.realloc(at, layout, size)
    }
}

#[cfg(test)]
mod tests {
    use super::held;

    #[test]
    fn what_is_held_is_counted_and_what_is_freed_is_not() {
        let before = held();
        let mut rows: Vec<u64> = Vec::with_capacity(1000);
        assert_eq!(held() - before, 8000);
        rows.reserve_exact(5000);
        assert_eq!(held() - before, 40_000);
        drop(rows);
        assert_eq!(held(), before);
    }
}
