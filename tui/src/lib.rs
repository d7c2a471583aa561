//! The terminal front end. It is not built yet: this crate holds its place in the
//! dependency table and nothing else.
