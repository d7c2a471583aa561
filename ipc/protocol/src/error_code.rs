//! Stable codes of the errors that people see, in one table. A test compares the table with docs/errors.md.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

/// Defines the enum of error codes. Each row has the code, the cause, the next step, and the exit status of a command.
macro_rules! errors {
    ($($variant:ident { code: $code:literal, cause: $cause:literal, next: $next:literal, exit: $exit:expr })+) => {
        /// The stable code of an error, which people can look up in docs/errors.md.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum ErrorCode {
            $(#[doc = $cause] #[serde(rename = $code)] $variant,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the code, as it is displayed.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),+ }
            }

            /// Returns the cause of the error, in one line.
            pub const fn cause(self) -> &'static str {
                match self { $(Self::$variant => $cause),+ }
            }

            /// Returns the next step for the user, in one line.
            pub const fn next(self) -> &'static str {
                match self { $(Self::$variant => $next),+ }
            }

            /// Returns the exit status of a command that ends with this error; `None` if the command goes on.
            pub const fn exit(self) -> Option<u8> {
                match self { $(Self::$variant => $exit),+ }
            }
        }
    };
}

errors! {
    NoKey {
        code: "no-key",
        cause: "No API key was found.",
        next: "Set the variable that the message names, or put the key into the key file. Without a key, try `bailiwick demo`.",
        exit: Some(2)
    }
    UnusableKey {
        code: "unusable-key",
        cause: "The API key cannot be used: it is empty, malformed, or in a file that others can read.",
        next: "Do what the hint says, such as `chmod 600` on the key file.",
        exit: Some(2)
    }
    BadKey {
        code: "bad-key",
        cause: "The provider does not accept the API key.",
        next: "Check the key where the message says that it is set; the message shows the key's last characters.",
        exit: Some(6)
    }
    LookupFailed {
        code: "lookup-failed",
        cause: "The name of the server or of the proxy cannot be looked up.",
        next: "Check the network and `--base-url`.",
        exit: Some(6)
    }
    ConnectionRefused {
        code: "connection-refused",
        cause: "No program listens at the address of the server.",
        next: "Start the server, or check `--base-url`.",
        exit: Some(6)
    }
    ConnectionFailed {
        code: "connection-failed",
        cause: "The server was not reached, or the connection to it broke.",
        next: "Check the network and `--base-url`.",
        exit: Some(6)
    }
    ProxyFailed {
        code: "proxy-failed",
        cause: "The proxy in a variable of the environment refused the connection, or does not accept the user name and password.",
        next: "Start the proxy, or correct or unset the variable that the message names.",
        exit: Some(6)
    }
    TlsFailed {
        code: "tls-failed",
        cause: "The certificate of the server is not accepted, or the server answers without TLS. A wrong clock has the same effect.",
        next: "Check the clock, the certificates and `--base-url` with `bailiwick doctor --api`.",
        exit: Some(6)
    }
    ProviderFailed {
        code: "provider-failed",
        cause: "The provider answered with another error, or with an invalid reply.",
        next: "Do what the hint says, or try again later.",
        exit: Some(6)
    }
    UnknownModel {
        code: "unknown-model",
        cause: "The provider does not have the model.",
        next: "Check `--model`.",
        exit: Some(6)
    }
    ContextTooLong {
        code: "context-too-long",
        cause: "The conversation is longer than the context of the model, and cannot be made shorter.",
        next: "Give a smaller task, or choose a model with a larger window.",
        exit: Some(3)
    }
    NoLandlock {
        code: "no-landlock",
        cause: "The kernel has no Landlock, or Landlock is switched off. A container's seccomp profile that answers ENOSYS looks the same.",
        next: "Use Linux 5.13 or later with `landlock` in `lsm=`; in a container, allow the calls `landlock_*`.",
        exit: Some(5)
    }
    LandlockBlocked {
        code: "landlock-blocked",
        cause: "A seccomp profile, such as a container's, denies Landlock (EPERM).",
        next: "Allow the calls `landlock_*` in the profile of the container.",
        exit: Some(5)
    }
    NoSandbox {
        code: "no-sandbox",
        cause: "The sandbox did not start, for a reason that the message names.",
        next: "Run `bailiwick doctor`, which shows what is missing on this machine.",
        exit: Some(5)
    }
    PartialSandbox {
        code: "partial-sandbox",
        cause: "The sandbox started, but this machine does not enforce all parts of the sandbox, for example with an older Landlock ABI.",
        next: "Run `bailiwick doctor`, which shows what is missing on this machine.",
        exit: None
    }
    WorkerDied {
        code: "worker-died",
        cause: "The worker of an agent ended in the middle of a call. The next call has a new worker.",
        next: "Do nothing, or free some memory if signal 9 ended the worker.",
        exit: None
    }
    ProjectReadOnly {
        code: "project-read-only",
        cause: "File modes or mounts of the machine make the project read-only, even if Bailiwick allows writing.",
        next: "Work in a copy that you can write.",
        exit: None
    }
    NoTerminal {
        code: "no-terminal",
        cause: "The terminal UI needs a terminal as standard input and standard output.",
        next: "Use `bailiwick exec`.",
        exit: Some(2)
    }
    DumbTerminal {
        code: "dumb-terminal",
        cause: "`TERM` is `dumb` or not set, but the terminal UI has to move the cursor.",
        next: "Set `TERM`, or use `bailiwick --plain`.",
        exit: Some(2)
    }
    TinyTerminal {
        code: "tiny-terminal",
        cause: "The terminal has fewer than 40 columns or 10 rows.",
        next: "Make the terminal larger. The session continues meanwhile.",
        exit: None
    }
    SessionOpen {
        code: "session-open",
        cause: "Another process has the session open.",
        next: "End the session there, or continue in a copy with `--fork`.",
        exit: Some(2)
    }
    DiskFull {
        code: "disk-full",
        cause: "The disk, or your quota on it, is full. The session's log has all events up to the event that the message names.",
        next: "Free some space, and resume the session.",
        exit: Some(1)
    }
}

impl ErrorCode {
    /// Returns an error's text with the code at the end of the first line, or unchanged if that line has a code.
    pub fn mark(self, text: &str) -> String {
        if Self::of(text).is_some() { text.to_owned() } else { self.mark_anew(text) }
    }

    /// Appends the code to the first line of another program's text, even if that line seems to end with a code.
    pub fn mark_anew(self, text: &str) -> String {
        let (cause, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
        format!("{cause} [{self}]{rest}")
    }

    /// Returns the code at the end of the first line of an error's text, if there is one.
    pub fn of(text: &str) -> Option<Self> {
        let (_, word) = text.lines().next()?.strip_suffix(']')?.rsplit_once(" [")?;
        Self::ALL.iter().copied().find(|code| code.as_str() == word)
    }
}

impl Display for ErrorCode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_one_word_of_its_own_and_is_read_where_it_was_written() {
        for (at, code) in ErrorCode::ALL.iter().enumerate() {
            let word = code.as_str();
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{word}");
            assert!(!ErrorCode::ALL[..at].iter().any(|other| other.as_str() == word), "{word}");
            let marked = code.mark("cannot do it: no\n  hint: do it");
            assert_eq!(marked, format!("cannot do it: no [{word}]\n  hint: do it"));
            assert_eq!((ErrorCode::of(&marked), code.mark(&marked)), (Some(*code), marked.clone()));
        }
        for text in ["", "no", "no [no-code]", "no\n  hint: x [no-key]"] {
            assert_eq!(ErrorCode::of(text), None, "{text}");
        }
    }
}
