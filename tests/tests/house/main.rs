//! Tests of the repository's own rules: permitted imports, forbidden code, and correct documents.

mod dependencies;
mod documents;
mod machines;
mod parameters;
mod place_lists;
mod prose;
mod rooms;
mod trusted_part;
mod types;
mod words;
