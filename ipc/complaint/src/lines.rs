//! Lines of a command's output, each marked if it ends a stack trace about shared memory.

const MAX_LINES: usize = 4000;

/// Ends of the paths of Python's modules for POSIX shared memory and semaphores, as they are quoted in a stack trace.
const OF_MEMORY: [&str; 2] = ["multiprocessing/shared_memory.py\"", "multiprocessing/synchronize.py\""];

#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub text: &'a str,
    /// True if the line (perhaps without a path) ends a stack trace that created shared memory or a semaphore.
    pub in_memory: bool,
}

pub fn lines(texts: [&str; 2]) -> impl Iterator<Item = Line<'_>> {
    let mut in_memory = false;
    texts.into_iter().flat_map(str::lines).take(MAX_LINES).map(move |text| {
        // Each call in a stack trace starts with such a line; the source lines of the call follow, indented as well.
        if text.trim_start().starts_with("File \"") {
            in_memory = OF_MEMORY.iter().any(|module| text.contains(module));
        }
        let ends = in_memory && !text.starts_with(' ');
        in_memory &= !ends;
        Line { text, in_memory: ends }
    })
}
