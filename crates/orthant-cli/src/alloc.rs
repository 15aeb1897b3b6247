//! What happens when there is no more memory.
//!
//! The standard library aborts the process, which looks like a crash and tells nobody what to do. Everything whose size
//! depends on the input is checked against `--memory` before it is allocated; this is for what is left, such as a limit of
//! the address space that others use up.
#![expect(
    unsafe_code,
    reason = "a global allocator is an unsafe trait; this one hands everything to that of the system"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The allocator of the system, which ends the program with a message where that fails.
pub(crate) struct Exiting;

#[global_allocator]
static ALLOCATOR: Exiting = Exiting;

// SAFETY: every call goes to the system's allocator, with the arguments as they are.
unsafe impl GlobalAlloc for Exiting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.realloc(memory, layout, size) }, size)
    }
}

/// Memory that was granted; otherwise there is nothing more to be done.
fn granted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        refused(bytes);
    }
    memory
}

/// One line, made without memory, and exit code 1.
#[cold]
fn refused(bytes: usize) -> ! {
    let mut digits = [0; 20];
    let mut rest = bytes;
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b"0123456789"[rest % 10];
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut err = std::io::stderr();
    for part in [
        &b"orthant: out of memory: "[..],
        &digits[first..],
        b" bytes more were refused; set a smaller --memory, use --sample or fewer --columns, or a machine with more\n",
    ] {
        // There is nobody else to tell.
        let _ = err.write_all(part);
    }
    // SAFETY: ends the process; nothing of it is used any more.
    unsafe { libc::_exit(1) }
}
