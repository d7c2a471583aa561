//! Renders results as text for the model: never empty, bounded, and with advice on how to continue.

use std::fmt::Write;

use ipc::tool::{
    CommandExit, CommandResult, Entry, EntryKind, FileText, Listing, Matches, SavedOutput, SnapshotSummary,
    ToolError, ToolOutput, Written, WrittenFile,
};

/// Maximum size of a result in bytes. A worker sends far less; a compromised one must not fill the context.
const MAX_BYTES: usize = 384 << 10;

const MAX_PATH: usize = 4 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub content: String,
    pub is_error: bool,
}

impl Rendered {
    pub fn failure(text: impl Into<String>) -> Self {
        Self { content: bounded(text.into()), is_error: true }
    }
}

impl From<&ToolError> for Rendered {
    fn from(error: &ToolError) -> Self {
        Self::failure(error.message.clone())
    }
}

pub fn render(output: &ToolOutput) -> Rendered {
    let content = match output {
        ToolOutput::File(file) => render_file(file),
        ToolOutput::Image(image) => image.to_string(),
        ToolOutput::Listing(listing) => render_listing(listing),
        ToolOutput::Matches(matches) => render_matches(matches),
        ToolOutput::Written(written) => render_written(written),
        ToolOutput::Command(result) => render_command(result),
        ToolOutput::Snapshot(summary) => render_snapshot(summary),
    };
    let is_error = matches!(output, ToolOutput::Command(result) if result.exit != CommandExit::Code(0));
    Rendered { content: bounded(content), is_error }
}

/// Renders a range of lines of a file like `cat -n`, then the number of remaining lines and how to read them.
fn render_file(file: &FileText) -> String {
    let mut text = String::with_capacity(file.text.len() + 8 * 64);
    let mut number = file.first_line;
    for line in file.text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        // A String takes every write.
        let _ = writeln!(text, "{number:>6}\t{}", line.strip_suffix('\r').unwrap_or(line));
        number = number.saturating_add(1);
    }
    let mut notes = Vec::new();
    if file.text.is_empty() && file.total_lines == Some(0) {
        notes.push("the file is empty".to_owned());
    }
    notes.extend(rest(file));
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        notes.push("the last line has no line end".to_owned());
    }
    if file.text.contains("\r\n") {
        notes.push("lines end with CRLF".to_owned());
    }
    if !file.encoding.is_empty() && !file.encoding.eq_ignore_ascii_case("utf-8") {
        notes.push(format!("encoding {}", file.encoding));
    }
    notes.extend(file.notes.iter().cloned());
    with_notes(text, &notes)
}

fn rest(file: &FileText) -> Option<String> {
    if file.lines == 0 {
        return None;
    }
    let next = file.first_line.saturating_add(file.lines);
    let last = next.saturating_sub(1);
    match file.total_lines {
        Some(total) if last < total => {
            Some(format!("lines {}-{last} of {total}; go on with offset {next}", file.first_line))
        }
        Some(total) if file.first_line > 1 => Some(format!("lines {}-{last} of {total}", file.first_line)),
        Some(_) => None,
        None => Some(format!("lines {}-{last}; there are more: go on with offset {next}", file.first_line)),
    }
}

fn render_listing(listing: &Listing) -> String {
    let mut text: String = listing.entries.iter().map(|entry| entry_line(entry) + "\n").collect();
    if listing.entries.is_empty() && listing.omitted == 0 {
        text.push_str("(the directory is empty, or all of it is ignored)\n");
    }
    let omitted = match listing.omitted {
        0 => vec![],
        more => {
            vec![format!("{more} more entries are left out; list a directory below, or with a smaller depth")]
        }
    };
    with_notes(text, &omitted)
}

fn entry_line(entry: &Entry) -> String {
    let path = &entry.path;
    match &entry.kind {
        EntryKind::File => format!("{path}  {}", bytes(entry.size)),
        EntryKind::Directory => format!("{path}/"),
        EntryKind::Symlink(target) => format!("{path} -> {target}"),
        EntryKind::Other => format!("{path}  (special file)"),
    }
}

fn render_matches(matches: &Matches) -> String {
    let Matches { text, matches: lines, files, searched, truncated } = matches;
    let mut notes = Vec::new();
    if *lines == 0 {
        notes.push(format!("no matches in {}", count(*searched, "file")));
    } else {
        let (lines, files) = (count(*lines, "matching line"), count(*files, "file"));
        notes.push(format!("{lines} in {files}; {searched} searched"));
    }
    if let Some(reason) = truncated {
        notes.push(format!("not all: {reason}; narrow the search with path, glob or a longer pattern"));
    }
    with_notes(text.clone(), &notes)
}

fn render_written(written: &Written) -> String {
    let lines = written.files.iter().map(written_line);
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() { "nothing had to be written".to_owned() } else { text }
}

fn written_line(file: &WrittenFile) -> String {
    let WrittenFile { path, created, bytes: size, replacements, notes, .. } = file;
    let size = bytes(*size);
    let line = match (created, replacements) {
        (true, _) => format!("created {path} ({size})"),
        (false, 0) => format!("wrote {path} ({size})"),
        (false, times) => format!("edited {path}: {} ({size})", count(*times, "replacement")),
    };
    if notes.is_empty() { line } else { with_notes(line, notes) }
}

fn render_command(result: &CommandResult) -> String {
    let mut text = result.head.clone();
    if result.omitted_bytes > 0 {
        end_line(&mut text);
        let _ = match &result.saved {
            Some(saved) => {
                let (left_out, whole) = (bytes(result.omitted_bytes), whole_output(saved));
                writeln!(text, "[{left_out} of output are left out here; {whole}]")
            }
            None => writeln!(text, "{}", left_out(result.omitted_bytes)),
        };
        text.push_str(&result.tail);
    }
    end_line(&mut text);
    let time = seconds(result.duration_ms);
    let _ = match result.exit {
        CommandExit::Code(code) => write!(text, "[exit code {code}, {time}]"),
        CommandExit::Signal(signal) => write!(text, "[ended by signal {signal}, {time}]"),
        CommandExit::TimedOut => write!(
            text,
            "[ended after {time}: the command ran longer than allowed. Run less at once, or pass a larger timeout_s]"
        ),
    };
    text
}

pub fn join_ends(head: &str, omitted_bytes: u64, tail: &str) -> String {
    let mut text = head.to_owned();
    if omitted_bytes > 0 {
        end_line(&mut text);
        text.push_str(&left_out(omitted_bytes));
        text.push('\n');
    }
    bounded(text + tail)
}

fn left_out(omitted_bytes: u64) -> String {
    format!("[{} of output are left out here]", bytes(omitted_bytes))
}

/// Returns where the whole output of a command is saved, and how to read it.
pub fn whole_output(saved: &SavedOutput) -> String {
    let SavedOutput { path, bytes: size, cut } = saved;
    let (path, cut) = (shortened(path.to_string()), cut.clone().map(shortened));
    let what = match cut {
        None => format!("the whole output ({})", bytes(*size)),
        Some(why) => format!("a part of the output, the first {} ({why}),", bytes(*size)),
    };
    format!(
        "{what} is in {path}: search_files finds places in it, read_file with offset and limit shows them"
    )
}

fn render_snapshot(summary: &SnapshotSummary) -> String {
    with_notes(format!("{}\n", count(summary.entries, "entry")), &summary.notes)
}

fn with_notes(mut text: String, notes: &[String]) -> String {
    if notes.is_empty() {
        if text.is_empty() {
            text.push_str("(nothing)");
        }
        return text;
    }
    end_line(&mut text);
    let _ = write!(text, "({})", notes.join("; "));
    text
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

fn bounded(mut text: String) -> String {
    if text.is_empty() {
        return "(nothing)".to_owned();
    }
    if text.len() > MAX_BYTES {
        let left_out = text.len() - MAX_BYTES;
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        let _ = write!(text, "\n[cut here: about {left_out} more bytes]");
    }
    text
}

/// Cuts a text to the maximum length that an honest worker sends.
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_PATH));
    text
}

fn count(number: u64, thing: &str) -> String {
    match (number, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        _ => format!("{number} {thing}s"),
    }
}

fn bytes(number: u64) -> String {
    count(number, "byte")
}

pub fn seconds(ms: u64) -> String {
    format!("{}.{:01} s", ms / 1000, ms % 1000 / 100)
}
