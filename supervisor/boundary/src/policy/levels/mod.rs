//! Levels of rights: each has a directory of its own for files that are executed later.
//!
//! A package cache, a build directory and the home of a tool hold programs that a later command executes. So they
//! belong to a level: the writable directories, the network, and if a person approved the command. Commands of a level
//! write only its own directory, and execute files only from there. When a worker starts, files that levels with more
//! rights have, and its own has not, are copied to its own (*reading down*). Nothing is ever copied to a level with
//! more rights.
//!
//! The lowest level, which writes only its private temp directory, has its caches there. Every other level may write that directory.

mod bring;
mod level;
mod places;

pub use level::Level;
pub use places::LevelPlaces;
pub use places::is_empty;
