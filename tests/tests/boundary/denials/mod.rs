//! What is told of denials, through the whole stack: nothing of what the machine refuses by itself, and of what the sandbox
//! refuses the layer, the object and the grant that helps.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside;
mod memory;
mod ordinary;
mod proved;
mod succeeded;
mod told;
