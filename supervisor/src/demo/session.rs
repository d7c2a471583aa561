//! The model session: what the model says, and tries, in six replies.

use std::path::Path;
use std::time::Duration;

use crate::replay::{Reply, Script};

/// How the replies are cut, and how fast the pieces come: to be watched, as from a real model, but not to be waited for.
const CHUNK: usize = 512;
const PACE: Duration = Duration::from_millis(12);

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

/// The session as a script for the replay server, for a user whose home is `home`.
pub fn script(home: &Path) -> Script {
    // Twice: the path stands in a string of the tool's arguments, which stand in a string of the stream.
    let home = escaped(&escaped(&home.to_string_lossy()));
    let replies = REPLIES.iter().map(|(_, sse)| sse.replace(HOME, &home));
    replies.fold(Script::new(), |script, sse| script.push(Reply::sse(sse).chunked(CHUNK).paced(PACE)))
}

/// The text as it stands inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}
