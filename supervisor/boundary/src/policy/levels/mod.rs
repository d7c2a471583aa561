//! Levels of access. Each has its own directory for files that are executed later.
//!
//! Package caches, build directories and homes of tools contain programs that later commands execute. So each of these
//! belongs to a level: a set of writable directories, network access, and whether a person approved the command.
//! Commands write and execute such files only in the directory of their level. When a worker starts, it gets copies of
//! files from levels with more access (*reading down*), never from levels with less.
//!
//! Workers of the lowest level have their caches in their private temp directory, since a directory of that level would
//! be writable in every other level.

mod bring;
mod level;
mod places;

pub use level::Level;
pub use places::LevelPlaces;
pub use places::is_empty;
