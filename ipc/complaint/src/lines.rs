//! The lines of an output, each with information from a stack trace above it.

const MAX_LINES: usize = 4000;

/// Python's modules for POSIX shared memory and semaphores: `File ".../multiprocessing/synchronize.py", line 57`.
const OF_MEMORY: [&str; 2] = ["multiprocessing/shared_memory.py\"", "multiprocessing/synchronize.py\""];

#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub text: &'a str,
    /// True if the line is the error of a stack trace whose last call created shared memory or a semaphore. It may name
    /// no path.
    pub in_memory: bool,
}

pub fn lines(texts: [&str; 2]) -> impl Iterator<Item = Line<'_>> {
    let mut in_memory = false;
    texts.into_iter().flat_map(str::lines).take(MAX_LINES).map(move |text| {
        // Each call of a trace begins anew, and the lines of its source follow, indented as well.
        if text.trim_start().starts_with("File \"") {
            in_memory = OF_MEMORY.iter().any(|module| text.contains(module));
        }
        let ends = in_memory && !text.starts_with(' ');
        in_memory &= !ends;
        Line { text, in_memory: ends }
    })
}
