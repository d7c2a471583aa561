//! The model session: what the model says, and tries, in six replies.

/// What the user asks for.
pub const PROMPT: &str = "A test of this crate fails. Find out why and fix it.";

/// Stands for the user's home directory; what takes its place must be escaped twice as JSON text.
pub const HOME: &str = "{{HOME}}";

/// One embedded reply by its name.
macro_rules! reply {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo/", $name, ".sse")))
    };
}

/// The replies as Messages API streams, in their order, with their names.
pub static REPLIES: &[(&str, &str)] = &[
    reply!("1-look"),
    reply!("2-test"),
    reply!("3-note"),
    reply!("4-fix"),
    reply!("5-verify"),
    reply!("6-done"),
];
