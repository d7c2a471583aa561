//! Levels of rights: each has a directory of its own for files that are executed later.
//!
//! A package cache, a build directory and the home of a tool hold programs that a later command executes. So
//! they belong to a level, which consists of the writable directories, the network access, and the fact that
//! a person approved the command. Commands of a level write only its directory, and execute files only from
//! there. When a worker starts, it gets copies of files from levels with more rights (*reading down*).
//! Nothing is copied to a level with more rights.
//!
//! The lowest level, which writes only its private temp directory, has its caches there. Every other level
//! may write that directory.

mod bring;
mod level;
mod places;

pub use level::Level;
pub use places::LevelPlaces;
pub use places::is_empty;
