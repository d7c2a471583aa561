//! sandbox-exec.
