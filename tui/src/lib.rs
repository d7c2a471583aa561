//! tui.
