#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct PlanError {
    pub line: usize,
    /// Sentence with the expected and the actual text.
    pub message: String,
}

impl PlanError {
    pub(super) fn at(index: usize, message: impl Into<String>) -> Self {
        Self { line: index + 1, message: message.into() }
    }

    pub(super) fn found(index: usize, expected: &str, text: &str) -> Self {
        Self::at(index, format!("expected {expected}, found {}", quoted(text)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot write the plan: {cause}")]
pub struct Unwritable {
    /// Description of the field that cannot be written, or of the line that would not be read back as it was meant.
    pub cause: String,
}

pub(super) fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text.trim().chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.trim().chars().nth(MOST).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}
