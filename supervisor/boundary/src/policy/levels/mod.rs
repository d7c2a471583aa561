//! Levels of access: each has a separate directory for files that are executed later.
//!
//! Package caches, build directories and homes of tools hold programs that later commands execute. So each belongs to a
//! level. A level consists of writable directories, network access, and whether a person approved the command. Commands
//! write and execute files only in their level's directory. A worker that starts gets copies of files from levels with
//! more access (*reading down*), never from those with less.
//!
//! Workers of the lowest level have their caches in their private temp directory: every other level may write it
//! anyway.

mod bring;
mod level;
mod places;

pub use level::Level;
pub use places::LevelPlaces;
pub use places::is_empty;
