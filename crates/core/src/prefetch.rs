//! Prefetch hints for the processor's caches. A hint never changes a result; except on x86-64 it does nothing.

#![allow(
    unsafe_code,
    reason = "an instruction that reads nothing and writes nothing, on a reference that is valid"
)]

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetch the first cache line of `place`.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    line_at(place, 0);
}

/// Prefetch all cache lines of `place`.
#[inline(always)]
pub fn prefetch_all<T>(place: &T) {
    let bytes = std::mem::size_of::<T>();
    (0..bytes).step_by(LINE).for_each(|offset| line_at(place, offset));
    line_at(place, bytes.saturating_sub(1)); // the data may start in the middle of a cache line
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line_at<T>(place: &T, offset: usize) {
    use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
    // SAFETY: a prefetch never faults, whatever the address; it is computed without leaving the object's bounds or wrapping
    unsafe { _mm_prefetch::<_MM_HINT_T0>((place as *const T).cast::<i8>().wrapping_add(offset)) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line_at<T>(_: &T, _: usize) {}
