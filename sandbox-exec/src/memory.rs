#![expect(unsafe_code, reason = "the program's own headers are read, and its pages given back")]

use std::io;

use nix::libc;

/// Unmaps the pages of this process's code and constants. The next access maps a page again, by a minor fault.
///
/// At its start a program accesses most of its code once, and the kernel maps 64 KiB around each access. That is two
/// thirds of an idle worker's resident memory. Segments that were ever writable stay, since relocated data would be
/// lost.
pub fn release_startup_pages() -> io::Result<()> {
    let mut result = Ok(());
    // SAFETY: the callback gets a pointer to `result`, which outlives the call, and is called on this thread.
    unsafe { libc::dl_iterate_phdr(Some(release), (&raw mut result).cast()) };
    result
}

/// Callback of `dl_iterate_phdr(3)`, called for each loaded object. Releases the pages of the first object, which is
/// the program, and ends the iteration.
///
/// # Safety
///
/// Both pointers must be valid. `result` must point to an `io::Result<()>` that nobody else uses meanwhile.
unsafe extern "C" fn release(
    program: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    result: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the dynamic linker gives a valid description, and the caller its own result.
    let (program, result) = unsafe { (&*program, &mut *result.cast::<io::Result<()>>()) };
    // SAFETY: the headers are where and as many as the description says, for as long as the program is
    // loaded.
    let headers = unsafe { std::slice::from_raw_parts(program.dlpi_phdr, program.dlpi_phnum.into()) };
    for header in
        headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0)
    {
        *result = release_segment(program.dlpi_addr + header.p_vaddr, header.p_memsz);
        if result.is_err() {
            break;
        }
    }
    // A value other than zero ends the iteration.
    1
}

/// Releases the whole pages of a segment. A page at an end of the segment may also contain writable data, and stays.
fn release_segment(start: u64, length: u64) -> io::Result<()> {
    const PAGE: u64 = 4096;
    let from = start.next_multiple_of(PAGE);
    let to = (start + length) / PAGE * PAGE;
    if from >= to {
        return Ok(());
    }
    let too_large = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let address = usize::try_from(from).map_err(too_large)? as *mut libc::c_void;
    let length = usize::try_from(to - from).map_err(too_large)?;
    // SAFETY: the range is a private mapping of our own file that nothing ever wrote to: its pages hold what
    // the file holds, before and after (`madvise(2)`, MADV_DONTNEED).
    match unsafe { libc::madvise(address, length, libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_constants_survive_being_given_back() {
        static CONSTANT: &str = "still here";
        for _ in 0..3 {
            release_startup_pages().unwrap();
            assert_eq!(CONSTANT.to_owned() + "!", "still here!");
        }
    }
}
