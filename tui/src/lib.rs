//! The terminal front end. It comes with the issue that builds it; until then this crate holds its place in the
//! dependency table and nothing else.
