//! Hints to the processor: data that will soon be read may be brought into its caches now. A hint changes no
//! result; on other processors nothing is done.

#![allow(
    unsafe_code,
    reason = "an instruction that reads nothing and writes nothing, on a reference that is valid"
)]

/// Bytes of a cache line.
const LINE: usize = 64;

/// The beginning of `place` will be read.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    line_at(place, 0);
}

/// Prefetch all of `place`.
#[inline(always)]
pub fn prefetch_all<T>(place: &T) {
    let bytes = std::mem::size_of::<T>();
    (0..bytes).step_by(LINE).for_each(|offset| line_at(place, offset));
    line_at(place, bytes.saturating_sub(1)); // the data need not begin where a line does
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
