//! The rules of the house: who may import whom, what may not come back, and documents that lead where they say.

mod dependencies;
mod documents;
mod machines;
mod parameters;
mod place_lists;
mod prose;
mod rooms;
mod trusted_part;
mod words;
