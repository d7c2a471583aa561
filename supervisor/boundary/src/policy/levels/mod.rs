//! Levels of rights as places: what is executed again lies where only commands with the same rights, or more, have written.
//!
//! A package cache, a build directory and the home of a tool hold programs that a later command executes. So they belong to a
//! level: the project, its write roots, its network, and whether a person approved the command. Each level writes its own place
//! alone and executes what lies there. *Reading down* goes by copies: when a worker starts, what places of more rights have and
//! its own has not is copied to its own. Nothing ever goes the other way.
//!
//! The lowest level, which writes nothing but its private temp, has its caches there: every other level may write it.

mod bring;
mod level;
mod places;

pub use level::Level;
pub use places::LevelPlaces;
pub use places::is_empty;
