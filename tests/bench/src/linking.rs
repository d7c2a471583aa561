//! Finds out how the measured programs are linked: a static program starts without a loader.

use std::fs;
use std::path::Path;

use super::{BenchError, BenchSetup};

/// Type of the program header that names the loader (`PT_INTERP`, elf(5)).
const INTERPRETER: u32 = 3;

/// Returns a sentence about the linkage of sandbox-exec and the worker, the two programs that each start executes.
pub(super) fn note(setup: &BenchSetup) -> Result<String, BenchError> {
    let linked = |program: &Path| {
        let loaded = has_interpreter(&fs::read(program)?).ok_or("no ELF file of 64 bits")?;
        Ok::<_, BenchError>(if loaded { "dynamic" } else { "static" })
    };
    let programs = &setup.sandbox().programs;
    Ok(format!(
        "sandbox-exec is {}, the worker {}",
        linked(&programs.sandbox_exec)?,
        linked(&programs.worker)?
    ))
}

/// True if an ELF file names a loader. `None` if the file is no ELF file of 64 bits.
fn has_interpreter(file: &[u8]) -> Option<bool> {
    if !file.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let headers = usize::try_from(u64::from_ne_bytes(array(file, 0x20)?)).ok()?;
    let [size, count] = [0x36, 0x38].map(|place| array(file, place).map(u16::from_ne_bytes));
    let (size, count) = (usize::from(size?), usize::from(count?));
    for number in 0..count {
        let place = headers.checked_add(number.checked_mul(size)?)?;
        if u32::from_ne_bytes(array(file, place)?) == INTERPRETER {
            return Some(true);
        }
    }
    Some(false)
}

fn array<const N: usize>(file: &[u8], place: usize) -> Option<[u8; N]> {
    file.get(place..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_or_none_is_not_judged() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(has_interpreter(&own).is_some());
        assert_eq!(has_interpreter(&own[..0x40]), None);
        assert_eq!(has_interpreter(b"#!/bin/sh\n"), None);
    }
}
