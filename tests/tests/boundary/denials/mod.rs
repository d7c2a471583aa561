//! The reports of denials through the whole stack: none for refusals by the machine, and for the sandbox the layer, the
//! object and the helpful grant.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside;
mod memory;
mod ordinary;
mod proved;
mod succeeded;
mod told;
