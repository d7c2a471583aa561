//! Memory that a turn needed and the session does not: pieces of streams, events that were shown.

/// Gives the kernel back what was freed between what is kept: by itself the C library only does so at the heap's end.
pub(super) fn give_back() {
    // glibc's own, and in no other C library; the threshold is what to keep at the heap's end.
    #[cfg(target_env = "gnu")]
    // SAFETY: it has no preconditions (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}
